package source

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errRewritten says that the file no longer has the content that was read:
// truncated, or rewritten in place.
var errRewritten = errors.New("file was truncated or rewritten")

// errHole says that a hole comes next: reading goes on behind it.
var errHole = errors.New("a hole comes next in the file")

// A reader reads an open file by offset and notices when the content behind
// its back is no longer what it has read. Rewriting may leave a file longer
// than it was, or exactly as long, so the size alone tells nothing.
type reader struct {
	f       *os.File
	off     int64     // of the next byte
	size    int64     // at the last look
	mtime   time.Time // at the last look
	checked time.Time // mtime for which the content was compared
	links   uint64    // names that the file still has
	head    []byte    // first bytes, at most headSize
	mark    []byte    // last bytes before off, at most markSize
	scratch [headSize]byte
	behind  int64 // with errHole: where the hole ends
	err     error // of the last Read, unless io.EOF
}

// newReader starts at the offset.
func newReader(f *os.File, off int64) (*reader, error) {
	r := &reader{f: f, off: off}
	if err := r.stat(); err != nil {
		return nil, err
	}
	r.head = append(r.head, r.peek(0, headSize)...)
	n := min(off, markSize)
	r.mark = append(r.mark, r.peek(off-n, int(n))...)
	return r, nil
}

// Read implements io.Reader. At the end of the file it returns io.EOF, for
// rewritten content errRewritten; more may come after either.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.f.ReadAt(p, r.off)
	if n > 0 {
		err = nil
	}
	if err == nil || err == io.EOF {
		if serr := r.stat(); serr != nil {
			err = serr
		} else if !r.same(n) {
			err = errRewritten
		} else if n = r.beforeHole(p[:n]); n == 0 && err == nil {
			err = errHole
		}
	}
	r.err = err
	if err == io.EOF {
		r.err = nil
	}
	if err != nil {
		return 0, err
	}
	r.off += int64(n)
	r.remember(p[:n])
	return n, nil
}

// same reports whether what was read before, and the n bytes read just now,
// belong to one content. If the file is now shorter than that, the n bytes
// were read before it was cut, and are good: the next Read sees the cut.
func (r *reader) same(n int) bool {
	switch {
	case n > 0 && r.size < r.off+int64(n):
		return true
	case r.size < r.off:
		return false
	case n == 0 && r.mtime.Equal(r.checked) && time.Since(r.mtime) > time.Second:
		return true // untouched since the last comparison
	}
	r.checked = r.mtime
	head := r.peek(0, headSize)
	if !bytes.HasPrefix(head, r.head) {
		return false
	}
	r.head = append(r.head, head[len(r.head):]...)
	return bytes.Equal(r.peek(r.off-int64(len(r.mark)), len(r.mark)), r.mark)
}

// remember keeps the last bytes read.
func (r *reader) remember(p []byte) {
	if len(p) >= markSize {
		r.mark = append(r.mark[:0], p[len(p)-markSize:]...)
		return
	}
	r.mark = append(r.mark, p...)
	if over := len(r.mark) - markSize; over > 0 {
		r.mark = r.mark[:copy(r.mark, r.mark[over:])]
	}
}

// peek returns up to n bytes at the offset, valid until the next peek.
func (r *reader) peek(off int64, n int) []byte {
	got, _ := r.f.ReadAt(r.scratch[:n], off)
	return r.scratch[:got]
}

func (r *reader) stat() error {
	info, err := r.f.Stat()
	if err != nil {
		return err
	}
	r.size, r.mtime = info.Size(), info.ModTime()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		r.links = uint64(st.Nlink)
	}
	return nil
}

// position describes the content up to the offset, which is not beyond what
// was read.
func (r *reader) position(path, input string, offset, line int64) position {
	mark := r.mark
	if offset != r.off {
		n := min(offset, markSize)
		mark = r.peek(offset-n, int(n))
	}
	p := position{Path: path, Input: input, Mark: fingerprintOf(mark), Offset: offset, Line: line, Mtime: r.mtime.UnixNano(), Size: r.size}
	if int64(len(mark)) > offset {
		p.Mark = fingerprint{}
	}
	p.Head = fingerprintOf(r.head)
	return p
}

// beforeHole returns how many of the bytes just read, p, come before a hole
// that reaches beyond them, or with which the file begins. A writer that does
// not append leaves one in a file that was truncated under it, and it may be
// gigabytes of NULs.
func (r *reader) beforeHole(p []byte) int {
	n := len(p)
	if n == 0 {
		return 0
	}
	if r.off == 0 && p[0] == 0 {
		if r.behind = r.dataFrom(0); r.behind > 0 {
			return 0
		}
	}
	if end := r.off + int64(n); p[n-1] == 0 {
		if r.behind = r.dataFrom(end); r.behind > end {
			return len(bytes.TrimRight(p, "\x00"))
		}
	}
	return n
}

// dataFrom returns where data comes next at the offset or behind it: at the
// end of the file as it was last looked at, if there is none.
func (r *reader) dataFrom(off int64) int64 {
	data, err := unix.Seek(int(r.f.Fd()), off, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return max(off, r.size)
	case err != nil: // the file system does not tell
		return off
	}
	return data
}

// lineStart returns the offset of the beginning of the last, unterminated line
// before end; end itself if a line ends there or none begins in the last MiB.
func lineStart(f *os.File, end int64) int64 {
	const far = 1 << 20
	b := make([]byte, min(end, far))
	n, _ := f.ReadAt(b, end-int64(len(b)))
	if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
		return end - int64(len(b)) + int64(i) + 1
	}
	if int64(len(b)) == end {
		return 0
	}
	return end
}
