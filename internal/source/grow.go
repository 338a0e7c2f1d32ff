package source

import (
	"fmt"
	"os"
	"time"

	"github.com/nxadm/tail"
	"github.com/nxadm/tail/watch"
	"golang.org/x/sys/unix"
)

// maxLead is how far a file may run ahead of its tail: the library works line
// by line, slower than we read, and holds an unfinished line in memory.
const maxLead = 1 << 20

// maxTails is how many files are followed by events at a time, at most: a tail
// costs a descriptor, two goroutines and their buffers. Then files in which nothing
// came for quietAfter make room for others; Files.scan sees those grow.
const (
	maxTails   = 256
	quietAfter = time.Minute
)

// A growth tells when an open file has grown by a line. It rests on
// github.com/nxadm/tail, which ends the whole process when it can't stat the
// path that it follows: the path given to it is /proc/self/fd/N, where stat
// can't fail as long as we hold the descriptor, and which neither rotation
// nor deletion touches.
type growth struct {
	tail *tail.Tail
	path string
	off  int64 // up to where the tail has read
}

// follow starts following f from the offset. f must stay open until stop has
// returned.
func follow(f *os.File, off int64) (*growth, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	ours, err := f.Stat()
	if err != nil {
		return nil, err
	}
	seen, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(ours, seen) {
		return nil, fmt.Errorf("%s is another file", path)
	}
	t, err := tail.TailFile(path, tail.Config{
		Location:      &tail.SeekInfo{Offset: off},
		Follow:        true,
		MustExist:     true, // opens it now: a failure is ours to see
		CompleteLines: true, // else it seeks over what is written meanwhile
		Logger:        tail.DiscardingLogger,
	})
	if err != nil {
		return nil, err
	}
	return &growth{t, path, off}, nil
}

// lines returns the channel to receive from, nil if g is.
func (g *growth) lines() <-chan *tail.Line {
	if g == nil {
		return nil
	}
	return g.tail.Lines
}

// stop ends the tail and waits until the library has let go of the path, since
// the next file to get the same descriptor number has the same path. Waiting
// is bounded: if the library hangs, its goroutine is left behind, deaf.
func (g *growth) stop() {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = g.tail.Stop() // what ended it no longer matters
	}()
	limit := time.After(2 * time.Second)
	select {
	case <-stopped:
	case <-limit:
		return
	}
	for watch.Events(g.path) != nil {
		select {
		case <-limit:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// startInotify starts the library's inotify watcher, which all tails share. The
// library ends the process when inotify is not to be had (too many instances,
// no descriptors), so we try first: two instances, so that one is to spare in
// the moment between our closing and its opening.
func startInotify() error {
	if err := tryInotify(2); err != nil {
		return err
	}
	if err := watch.Watch("/"); err != nil {
		return fmt.Errorf("start file watcher: %w", err)
	}
	return watch.RemoveWatch("/")
}

func tryInotify(instances int) error {
	for range instances {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("start inotify: %w", err)
		}
		defer unix.Close(fd)
		if _, err := unix.InotifyAddWatch(fd, "/", unix.IN_DELETE_SELF); err != nil {
			return fmt.Errorf("add inotify watch: %w", err)
		}
	}
	return nil
}

// local reports whether inotify sees all changes of the file: not on network
// and user-space file systems, where moreover stat of an open file can fail.
func local(f *os.File) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, 0x2fc12fc1 /* zfs */ :
		return true
	}
	return false
}
