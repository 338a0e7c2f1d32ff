package source

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A sibling lies beside a log under a name made from its: what rotation calls
// older generations and copies.
type sibling struct {
	path    string
	key     string
	size    int64
	mtime   time.Time
	rotated bool // its name says so: by a number or a date
	restart bool // its name is that of another restart of the same container: never a copy
}

// siblings lists the generations beside the file with the path: a.log.1,
// a.log-20261130, 0.log.20261130-101500.
func (m *Files) siblings(path string, entries []os.DirEntry) []sibling {
	dir, base := filepath.Split(path)
	var out []sibling
	for _, e := range namedLike(base, entries) {
		related, rotated := relation(e.Name(), base)
		restart := isRestart(e.Name(), base)
		if !related && !restart || excluded(e.Name(), nil) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			out = append(out, sibling{filepath.Join(dir, e.Name()), identityOf(info).key(), info.Size(), info.ModTime(), rotated || restart, restart})
		}
	}
	return out
}

// namedLike returns those of the entries, which are sorted by name, that may
// be siblings of base. In a directory of thousands of logs each has few.
func namedLike(base string, entries []os.DirEntry) []os.DirEntry {
	if restartName.MatchString(base) {
		return entries
	}
	byName := func(e os.DirEntry, name string) int { return strings.Compare(e.Name(), name) }
	from, _ := slices.BinarySearchFunc(entries, base, byName)
	n := slices.IndexFunc(entries[from:], func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), base) })
	if n < 0 {
		return entries[from:]
	}
	return entries[from : from+n]
}

var (
	generation  = regexp.MustCompile(`^[.-](?:[0-9][0-9T:._-]*Z?|old|prev)$`)
	restartName = regexp.MustCompile(`^[0-9]+\.log$`)
)

// relation reports whether a name is made from base, and whether it is how
// rotation names generations.
func relation(name, base string) (related, rotated bool) {
	rest, ok := strings.CutPrefix(name, base)
	if !ok || len(rest) < 2 || rest[0] != '.' && rest[0] != '-' {
		return false, false
	}
	return true, generation.MatchString(rest)
}

// isRestart reports whether names are two restarts of one container, as
// kubelet counts them: 0.log, 1.log.
func isRestart(name, base string) bool {
	return name != base && restartName.MatchString(base) && restartName.MatchString(name)
}

// later reports whether a path is that of a later restart of the container.
func later(path, than string) bool {
	_, a, ok := containerAndRestart(path)
	_, b, okThan := containerAndRestart(than)
	return ok && okThan && a > b
}

// isSibling reports whether a file lies beside another, under a name made from its.
func isSibling(path, of string) bool {
	related, _ := relation(path, of)
	return related && filepath.Dir(path) == filepath.Dir(of)
}

// copied is an open copy of content that we read elsewhere. Nobody else opens
// it until it is closed.
type copied struct {
	sibling
	fd  *os.File
	env *Files
}

func (c *copied) close() {
	c.fd.Close()
	c.env.unclaim(c.key)
}

// findCopy looks beside f for a copy of content that f no longer has: the
// oldest that was not read yet.
func (m *Files) findCopy(f *file, old position) *copied {
	if old.Head.Len == 0 {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Dir(f.real)) // no directory, no copies
	all := m.siblings(f.real, entries)
	slices.SortFunc(all, func(a, b sibling) int { return a.mtime.Compare(b.mtime) })
	for _, s := range all {
		if s.restart || s.size < old.Offset || m.isOpen(s.key) || !m.isNew(s) {
			continue
		}
		if c := m.openCopy(s); c != nil {
			if old.fits(c.fd, s.size) {
				return c
			}
			c.close()
		}
	}
	return nil
}

func (m *Files) openCopy(s sibling) *copied {
	if !m.claim(s.key) {
		return nil
	}
	fd, err := openRegular(s.path)
	if err != nil {
		m.unclaim(s.key)
		return nil
	}
	return &copied{s, fd, m}
}

// copiesSince lists the copies of content that f had, and lost again, since
// then: between two looks it was truncated more than once.
func (m *Files) copiesSince(f *file, since time.Time) []sibling {
	read := f.r.position(f.real, f.path, f.r.off, 0)
	entries, _ := os.ReadDir(filepath.Dir(f.real))
	var out []sibling
	for _, s := range m.siblings(f.real, entries) {
		if s.rotated && !s.restart && s.mtime.After(since) && !m.isOpen(s.key) && m.isNew(s) && !m.copyAt(s, read, f.fd) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b sibling) int { return a.mtime.Compare(b.mtime) })
	return out
}

// isCopy reports whether fd is a copy of content that an open file beside it
// has, or had. Such content is not read twice; what we had not read of it is
// read when the original is truncated.
func (m *Files) isCopy(fd *os.File, path string, size int64) bool {
	for _, f := range m.openFiles() {
		if !isSibling(path, f.real) {
			continue
		}
		if sameContent(fd, size, f.fd) {
			return true
		}
		f.mu.Lock()
		past, now := append([]position{}, f.past...), f.now
		f.mu.Unlock()
		if info, err := f.fd.Stat(); err == nil && !now.fits(f.fd, info.Size()) {
			past = append(past, now) // truncated, which its goroutine has not seen yet
		}
		for _, old := range past {
			if old.Head.Len == headSize && old.Head.at(fd, 0) &&
				(size < old.Offset || old.Mark.at(fd, old.Offset-int64(old.Mark.Len))) {
				return true
			}
		}
	}
	return false
}

// sameContent reports whether a file of that size is, as far as its beginning
// and its end tell, a copy of what the original has now.
func sameContent(fd *os.File, size int64, original *os.File) bool {
	head := make([]byte, min(headSize, size))
	n, _ := fd.ReadAt(head, 0)
	return n > 0 && fingerprintOf(head[:n]).at(original, 0) && sameEnd(fd, original, size)
}

// sameEnd compares the last bytes before the offset.
func sameEnd(a, b *os.File, end int64) bool {
	n := min(end, markSize)
	mark := make([]byte, n)
	got, _ := a.ReadAt(mark, end-n)
	return fingerprintOf(mark[:got]).at(b, end-n)
}
