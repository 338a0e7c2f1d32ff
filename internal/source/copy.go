package source

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A sibling lies beside a log under a name made from its: what rotation calls
// older generations and copies.
type sibling struct {
	path  string
	key   string
	size  int64
	mtime time.Time
}

// siblings lists the generations beside the file with the path: a.log.1,
// a.log-20261130, 0.log.20261130-101500.
func (m *Files) siblings(path string, entries []os.DirEntry) []sibling {
	dir, base := filepath.Split(path)
	var out []sibling
	for _, e := range entries {
		if !isSibling(e.Name(), base) || excluded(e.Name(), nil) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			out = append(out, sibling{filepath.Join(dir, e.Name()), identityOf(info).key(), info.Size(), info.ModTime()})
		}
	}
	return out
}

func isSibling(name, base string) bool {
	rest, ok := strings.CutPrefix(name, base)
	return ok && len(rest) > 1 && (rest[0] == '.' || rest[0] == '-')
}

// copied is an open copy of content that we read elsewhere.
type copied struct {
	fd   *os.File
	key  string
	path string
}

// findCopy looks beside f for a copy of content that f no longer has.
func (m *Files) findCopy(f *file, old position) *copied {
	if old.Head.Len == 0 {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(f.real)) // no directory, no copies
	for _, s := range m.siblings(f.real, entries) {
		if s.key == f.key || s.size < old.Offset || m.isOpen(s.key) {
			continue
		}
		fd, err := openRegular(s.path)
		if err != nil {
			continue
		}
		if old.fits(fd, s.size) {
			return &copied{fd, s.key, s.path}
		}
		fd.Close()
	}
	return nil
}

// isCopy reports whether fd is a copy of content that an open file beside it
// has, or had. Such content is not read twice; what we had not read of it is
// read when the original is truncated.
func (m *Files) isCopy(fd *os.File, path string, size int64) bool {
	for _, f := range m.openFiles() {
		if filepath.Dir(f.real) != filepath.Dir(path) || !isSibling(filepath.Base(path), filepath.Base(f.real)) {
			continue
		}
		f.mu.Lock()
		contents := append([]position{f.now}, f.past...)
		f.mu.Unlock()
		for i, old := range contents {
			if old.Head.Len == 0 || !old.Head.at(fd, 0) {
				continue
			}
			if size >= old.Offset {
				if old.Mark.at(fd, old.Offset-int64(old.Mark.Len)) {
					return true
				}
			} else if i > 0 || sameEnd(fd, f.fd, size) {
				return true
			}
		}
	}
	return false
}

// sameEnd compares the last bytes before the offset.
func sameEnd(a, b *os.File, end int64) bool {
	n := min(end, markSize)
	mark := make([]byte, n)
	got, _ := a.ReadAt(mark, end-n)
	return fingerprintOf(mark[:got]).at(b, end-n)
}
