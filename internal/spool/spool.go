// Package spool is the state directory: where every input stands, which
// episodes are open, and the events that still have to be delivered. All of it
// lives in one bbolt file, so that an event and the position behind it commit
// in one transaction: a kill -9 at any moment neither loses nor doubles what
// was queued.
//
// The directory holds
//
//	state.db                   the file itself
//	state.lock                 flock of the one process that may write it
//	state.db.damaged-<time>    what could not be read, set aside (the newest three)
//
// Nothing here is worth dying for: a damaged file is set aside with one
// warning, and a full disk makes Commit return an error that the caller may
// answer by trying again later.
package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	bolt "go.etcd.io/bbolt"
)

// ErrLocked says that another process works with the state directory.
var ErrLocked = errors.New("state directory is in use by another process")

// errDamaged marks what bbolt says, or how it panics, when the file's content
// cannot be what we wrote.
var errDamaged = errors.New("state file is damaged")

// DefaultMaxBytes bounds one queue unless Options say otherwise.
const DefaultMaxBytes = 256 << 20

// Options of a Spool; the zero value means the defaults.
type Options struct {
	MaxBytes    int64            // content of one queue in bytes, above which it is Full; default 256 MiB
	LockTimeout time.Duration    // how long Open waits for a predecessor that is still stopping; default 2 s
	Now         func() time.Time // names damaged files; default time.Now
}

// Batch is what becomes durable together.
type Batch struct {
	Positions map[string][]byte   // by stream key; nil value = delete
	Episodes  map[string][]byte   // by fingerprint; nil value = delete
	Events    map[string][][]byte // by queue name, appended in order
	Cursor    string              // journald cursor; "" = unchanged
}

// Empty reports whether committing b would change nothing.
func (b Batch) Empty() bool {
	return len(b.Positions) == 0 && len(b.Episodes) == 0 && len(b.Events) == 0 && b.Cursor == ""
}

// Names of the buckets and of the keys in the meta bucket.
var (
	bucketPositions = []byte("positions")
	bucketEpisodes  = []byte("episodes")
	bucketQueues    = []byte("queues") // one bucket a queue, 8-byte big-endian sequence -> entry
	bucketMeta      = []byte("meta")
	keyCursor       = []byte("cursor")
	keyFormat       = []byte("format")
)

// format is raised when older versions of the program could not read the file.
const format = "1"

// Spool is the open state directory. Its methods may be called concurrently.
type Spool struct {
	dir  string
	opts Options
	log  zerolog.Logger
	lock *os.File

	mu        sync.RWMutex
	db        *bolt.DB
	positions map[string][]byte // the same as in the file: read at Open, changed after each commit
	episodes  map[string][]byte
	cursor    string
	sizes     map[string]size
}

// size of one queue.
type size struct {
	entries int
	bytes   int64
	last    uint64 // the highest sequence number given out
}

// Open opens the state directory, making it if needed. A second process gets
// ErrLocked; a file that can't be read is set aside.
func Open(dir string, opts Options, log zerolog.Logger) (*Spool, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	if opts.LockTimeout <= 0 {
		opts.LockTimeout = 2 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	lock, err := acquire(filepath.Join(dir, "state.lock"), opts.LockTimeout)
	if err != nil {
		return nil, fmt.Errorf("lock state directory %s: %w", dir, err)
	}
	s := &Spool{dir: dir, opts: opts, log: log, lock: lock}
	if err := s.load(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open state directory %s: %w", dir, err)
	}
	return s, nil
}

// path of the state file.
func (s *Spool) path() string { return filepath.Join(s.dir, "state.db") }

// load opens the state file and reads what is kept in memory. A damaged file
// is set aside and load starts from nothing.
func (s *Spool) load() error {
	if info, err := os.Stat(s.path()); err == nil && info.Size() == 0 {
		s.log.Warn().Str("file", s.path()).Msg("state file is empty: starting without positions")
	}
	err := s.open()
	if err == nil {
		return s.compact()
	}
	if !errors.Is(err, errDamaged) {
		return err
	}
	if err := s.setAside(err); err != nil {
		return err
	}
	return s.open()
}

// open opens the file as it is.
func (s *Spool) open() error {
	s.positions, s.episodes, s.cursor, s.sizes = map[string][]byte{}, map[string][]byte{}, "", map[string]size{}
	return guard(func() error {
		if err := checkSize(s.path()); err != nil {
			return err
		}
		db, err := bolt.Open(s.path(), 0o600, boltOptions())
		if err != nil {
			return classify(err)
		}
		s.db = db
		err = guard(func() error { return s.db.Update(s.read) })
		if errors.Is(err, errDamaged) {
			s.db = nil // not closed: see rebuild
		} else if err != nil {
			_ = s.db.Close()
			s.db = nil
		}
		return err
	})
}

// boltOptions leaves NoFreelistSync off: with it, Open walks the whole file in a
// goroutine of its own, and a damaged page there panics where nobody can catch it.
func boltOptions() *bolt.Options {
	return &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType}
}

// read makes missing buckets and fills the maps.
func (s *Spool) read(tx *bolt.Tx) error {
	for _, name := range [][]byte{bucketPositions, bucketEpisodes, bucketQueues, bucketMeta} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return fmt.Errorf("make bucket %s: %w", name, err)
		}
	}
	meta := tx.Bucket(bucketMeta)
	if v := meta.Get(keyFormat); v == nil {
		if err := meta.Put(keyFormat, []byte(format)); err != nil {
			return err
		}
	} else if string(v) != format {
		return fmt.Errorf("%w: format %q, this version reads %q", errDamaged, v, format)
	}
	s.cursor = string(meta.Get(keyCursor))
	into := func(m map[string][]byte) func(k, v []byte) error {
		return func(k, v []byte) error { m[string(k)] = append([]byte{}, v...); return nil }
	}
	if err := tx.Bucket(bucketPositions).ForEach(into(s.positions)); err != nil {
		return err
	}
	if err := tx.Bucket(bucketEpisodes).ForEach(into(s.episodes)); err != nil {
		return err
	}
	queues := tx.Bucket(bucketQueues)
	return queues.ForEachBucket(func(name []byte) error {
		n := size{last: queues.Bucket(name).Sequence()}
		err := queues.Bucket(name).ForEach(func(_, v []byte) error {
			n.entries++
			n.bytes += int64(len(v))
			return nil
		})
		s.sizes[string(name)] = n
		return err
	})
}

// Commit makes b durable, all of it or nothing. Errors leave the state as it
// was; the caller may try again.
func (s *Spool) Commit(b Batch) error {
	if b.Empty() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added := map[string]size{}
	write := func(tx *bolt.Tx) error {
		clear(added)
		return writeBatch(tx, b, added)
	}
	err := s.update(write)
	if errors.Is(err, errDamaged) {
		if err = s.rebuild(err); err == nil {
			err = s.update(write)
		}
	}
	if err != nil {
		return fmt.Errorf("commit to state file: %w", err)
	}
	apply(s.positions, b.Positions)
	apply(s.episodes, b.Episodes)
	if b.Cursor != "" {
		s.cursor = b.Cursor
	}
	for name, n := range added {
		have := s.sizes[name]
		s.sizes[name] = size{have.entries + n.entries, have.bytes + n.bytes, n.last}
	}
	return nil
}

func writeBatch(tx *bolt.Tx, b Batch, added map[string]size) error {
	if err := writeMap(tx.Bucket(bucketPositions), b.Positions); err != nil {
		return err
	}
	if err := writeMap(tx.Bucket(bucketEpisodes), b.Episodes); err != nil {
		return err
	}
	if b.Cursor != "" {
		if err := tx.Bucket(bucketMeta).Put(keyCursor, []byte(b.Cursor)); err != nil {
			return err
		}
	}
	for name, entries := range b.Events {
		n, err := appendEntries(tx, name, entries)
		if err != nil {
			return fmt.Errorf("queue %q: %w", name, err)
		}
		added[name] = n
	}
	return nil
}

func writeMap(bucket *bolt.Bucket, m map[string][]byte) error {
	for k, v := range m {
		var err error
		if v == nil {
			err = bucket.Delete([]byte(k))
		} else {
			err = bucket.Put([]byte(k), v)
		}
		if err != nil {
			return fmt.Errorf("key %q: %w", k, err)
		}
	}
	return nil
}

func apply(m, change map[string][]byte) {
	for k, v := range change {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = append([]byte{}, v...)
		}
	}
}

// update runs fn in one durable transaction. s.mu is held.
func (s *Spool) update(fn func(*bolt.Tx) error) error {
	if s.db == nil {
		return errors.New("state directory is closed")
	}
	return guard(func() error { return s.db.Update(fn) })
}

// Position returns where the stream with the key stands.
func (s *Spool) Position(key string) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.positions[key]
	return v, ok
}

// Positions calls f for each position, in no order. f must not call the Spool.
func (s *Spool) Positions(f func(key string, v []byte)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, v := range s.positions {
		f(k, v)
	}
}

// Episodes calls f for each open episode, in no order. f must not call the Spool.
func (s *Spool) Episodes(f func(key string, v []byte)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, v := range s.episodes {
		f(k, v)
	}
}

// Cursor returns the journald cursor of the last entry that was committed.
func (s *Spool) Cursor() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.cursor
}

// Close closes the file and gives up the directory.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	err := guard(s.db.Close)
	s.db = nil
	s.lock.Close() // gives up the lock
	if err != nil {
		return fmt.Errorf("close state file: %w", err)
	}
	return nil
}

func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
