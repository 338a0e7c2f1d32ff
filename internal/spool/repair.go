package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// acquire takes the lock file, waiting for at most the timeout. bbolt locks its
// own file too, but we look at that file, and may rename it, before bbolt does.
func acquire(path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, err
		}
		if time.Now().After(deadline) {
			f.Close()
			return nil, ErrLocked
		}
	}
}

// guard turns the ways in which bbolt meets a damaged file into errDamaged: it
// panics on pages that make no sense, and reading a mapped page that the file
// does not have (any more) is a memory fault, which would end the process.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errDamaged, r)
		}
	}()
	return fn()
}

// classify tells damage from trouble with the system (permission, disk).
func classify(err error) error {
	for _, e := range []error{berrors.ErrInvalid, berrors.ErrVersionMismatch, berrors.ErrChecksum, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, e) {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return ErrLocked
	}
	return err
}

// checkSize refuses a file that is shorter than its newest meta page says: a
// file cut in half opens well and faults later. The layout is bbolt's: two meta
// pages, each with a 16-byte page header, then magic, version, page size, flags
// (4 bytes each), root bucket (16), free list page (8), number of pages (8).
func checkSize(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	const magic = 0xED0CDAED
	var need int64
	for at := int64(0); at <= 65536; at += 4096 {
		var meta [72]byte
		if _, err := f.ReadAt(meta[:], at); err != nil || binary.LittleEndian.Uint32(meta[16:]) != magic {
			continue
		}
		pageSize, pages := int64(binary.LittleEndian.Uint32(meta[24:])), int64(binary.LittleEndian.Uint64(meta[56:]))
		if (at == 0 || at == pageSize) && pages > 0 && pages < 1<<40 {
			need = max(need, pages*pageSize)
		}
	}
	if need == 0 || need > info.Size() {
		return fmt.Errorf("%w: %d bytes, its meta pages ask for %d", errDamaged, info.Size(), need)
	}
	return nil
}

// setAside renames the damaged file and says so, once.
func (s *Spool) setAside(cause error) error {
	to := s.path() + ".damaged-" + s.opts.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(s.path(), to); err != nil {
		return fmt.Errorf("set damaged state file aside: %w", err)
	}
	s.log.Warn().Err(cause).Str("kept_as", to).
		Msg("state file could not be read and was set aside: files are read from their beginning, undelivered events in it are not sent")
	old, _ := filepath.Glob(s.path() + ".damaged-*") // can't fail: our own pattern
	slices.Sort(old)
	for len(old) > 3 {
		os.Remove(old[0])
		old = old[1:]
	}
	return nil
}

// rebuild replaces a file that turned out damaged while in use. Positions,
// episodes and the cursor are in memory and survive; what was queued does not.
// The old file is not closed: the panic that told us of the damage left bbolt's
// locks held, and Close would wait for them for ever. s.mu is held.
func (s *Spool) rebuild(cause error) error {
	positions, episodes, cursor, sizes := s.positions, s.episodes, s.cursor, s.sizes
	s.db = nil
	if err := s.setAside(cause); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	b := Batch{Positions: positions, Episodes: episodes, Cursor: cursor}
	err := s.update(func(tx *bolt.Tx) error {
		return errors.Join(writeBatch(tx, b, map[string]size{}), continueNumbers(tx, sizes))
	})
	if err != nil {
		return err
	}
	s.positions, s.episodes, s.cursor = positions, episodes, cursor
	for name, n := range sizes {
		s.sizes[name] = size{last: n.last}
	}
	return nil
}

// continueNumbers makes the queues' numbers go on where they were: an
// acknowledgement that is under way must not meet a new entry.
func continueNumbers(tx *bolt.Tx, sizes map[string]size) error {
	for name, n := range sizes {
		bucket, err := tx.Bucket(bucketQueues).CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		if err := bucket.SetSequence(n.last); err != nil {
			return err
		}
	}
	return nil
}

// compactAbove is the file size from which giving space back is worth a copy.
const compactAbove = 16 << 20

// compact rewrites the file when most of it is free pages; bbolt itself never
// shrinks a file. Failing to do so is no harm, unless nothing is open then.
func (s *Spool) compact() error {
	info, err := os.Stat(s.path())
	if err != nil || info.Size() < compactAbove {
		return nil
	}
	free := int64(s.db.Stats().FreePageN+s.db.Stats().PendingPageN) * int64(os.Getpagesize())
	if free < info.Size()/2 {
		return nil
	}
	if err := guard(s.rewrite); err != nil {
		s.log.Warn().Err(err).Msg("state file could not be compacted")
	}
	if s.db == nil {
		return s.open()
	}
	return nil
}

// rewrite copies the live content beside the file and renames the copy over it.
func (s *Spool) rewrite() error {
	tmp := s.path() + ".tmp"
	os.Remove(tmp)
	dst, err := bolt.Open(tmp, 0o600, boltOptions())
	if err != nil {
		return err
	}
	err = bolt.Compact(dst, s.db, 1<<20)
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	if err := s.db.Close(); err != nil {
		return err
	}
	s.db = nil
	if err := os.Rename(tmp, s.path()); err != nil {
		return err
	}
	return s.open()
}

// PeekCursor reads the journald cursor from a state directory that a running
// daemon may hold locked: journal-args is called while `run` starts. It works
// on a copy in memory. A copy taken while the daemon commits may make no
// sense; then it is taken again.
func PeekCursor(dir string) (string, error) {
	path := filepath.Join(dir, "state.db")
	var err error
	for range 5 {
		var cursor string
		err = guard(func() (err error) {
			cursor, err = peek(path)
			return err
		})
		if err == nil {
			return cursor, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", fmt.Errorf("read journald cursor from %s: %w", path, err)
}

func peek(path string) (string, error) {
	if err := checkSize(path); err != nil {
		return "", err
	}
	src, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer src.Close()
	fd, err := unix.MemfdCreate("state.db", unix.MFD_CLOEXEC)
	if err != nil {
		return "", err
	}
	dst := os.NewFile(uintptr(fd), "state.db")
	n, err := io.Copy(dst, src)
	if err != nil || n == 0 {
		dst.Close()
		return "", err
	}
	db, err := bolt.Open("state.db", 0, &bolt.Options{ReadOnly: true, Timeout: time.Second,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return dst, nil }})
	if err != nil {
		return "", err
	}
	defer db.Close()
	var cursor string
	err = db.View(func(tx *bolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil {
			cursor = string(meta.Get(keyCursor))
		}
		return nil
	})
	return cursor, err
}
