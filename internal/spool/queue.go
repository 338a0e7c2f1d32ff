package spool

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Entry is one queued event.
type Entry struct {
	Seq  uint64 // grows within a queue, never reused
	Data []byte
}

func appendEntries(tx *bolt.Tx, queue string, entries [][]byte) (size, error) {
	bucket, err := tx.Bucket(bucketQueues).CreateBucketIfNotExists([]byte(queue))
	if err != nil {
		return size{}, err
	}
	bucket.FillPercent = 1 // keys only ever grow: full pages are never split again
	var n size
	for _, data := range entries {
		seq, err := bucket.NextSequence()
		if err != nil {
			return size{}, err
		}
		if err := bucket.Put(seqKey(seq), data); err != nil {
			return size{}, err
		}
		n.entries++
		n.bytes += int64(len(data))
		n.last = seq
	}
	return n, nil
}

// Read returns entries of the queue with a sequence above after, oldest first:
// at most maxEntries, and not more than maxBytes of data unless the first
// entry alone is larger.
func (s *Spool) Read(queue string, after uint64, maxEntries, maxBytes int) ([]Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return nil, fmt.Errorf("read queue %q: state directory is closed", queue)
	}
	var out []Entry
	err := guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			bucket := tx.Bucket(bucketQueues).Bucket([]byte(queue))
			if bucket == nil {
				return nil
			}
			c, bytes := bucket.Cursor(), 0
			for k, v := c.Seek(seqKey(after + 1)); k != nil && len(out) < maxEntries; k, v = c.Next() {
				if bytes += len(v); bytes > maxBytes && len(out) > 0 {
					return nil
				}
				out = append(out, Entry{binary.BigEndian.Uint64(k), append([]byte{}, v...)})
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read queue %q: %w", queue, err)
	}
	return out, nil
}

// Ack removes delivered entries. Unknown sequences are ignored.
func (s *Spool) Ack(queue string, seqs []uint64) error {
	_, err := s.remove(queue, func(bucket *bolt.Bucket) [][]byte {
		keys := make([][]byte, 0, len(seqs))
		for _, seq := range seqs {
			keys = append(keys, seqKey(seq))
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("acknowledge %d entries of queue %q: %w", len(seqs), queue, err)
	}
	return nil
}

// DropOldest removes the n oldest entries and returns their data.
func (s *Spool) DropOldest(queue string, n int) ([][]byte, error) {
	dropped, err := s.remove(queue, func(bucket *bolt.Bucket) [][]byte {
		var keys [][]byte
		c := bucket.Cursor()
		for k, _ := c.First(); k != nil && len(keys) < n; k, _ = c.Next() {
			keys = append(keys, append([]byte{}, k...))
		}
		return keys
	})
	if err != nil {
		return nil, fmt.Errorf("drop oldest of queue %q: %w", queue, err)
	}
	return dropped, nil
}

// remove deletes the keys that pick names, in one transaction, and returns
// the data of those that were there.
func (s *Spool) remove(queue string, pick func(*bolt.Bucket) [][]byte) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var removed [][]byte
	err := s.update(func(tx *bolt.Tx) error {
		removed = nil
		bucket := tx.Bucket(bucketQueues).Bucket([]byte(queue))
		if bucket == nil {
			return nil
		}
		for _, k := range pick(bucket) {
			v := bucket.Get(k)
			if v == nil {
				continue
			}
			removed = append(removed, append([]byte{}, v...))
			if err := bucket.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	n := s.sizes[queue]
	for _, data := range removed {
		n.entries--
		n.bytes -= int64(len(data))
	}
	s.sizes[queue] = n
	return removed, nil
}

// Size returns what a queue holds.
func (s *Spool) Size(queue string) (entries int, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.sizes[queue]
	return n.entries, n.bytes
}

// Full reports whether the queue has reached Options.MaxBytes. Nothing is
// refused: the caller decides who waits and what is dropped.
func (s *Spool) Full(queue string) bool {
	_, bytes := s.Size(queue)
	return bytes >= s.opts.MaxBytes
}
