package source

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"syscall"
)

const (
	headSize = 256 // bytes of a file's beginning that identify its content
	markSize = 64  // bytes before the read position that must not have changed
)

// identity names a file on this machine for as long as it exists.
type identity struct{ dev, ino uint64 }

func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(st.Dev), st.Ino}
}

func (id identity) key() string { return fmt.Sprintf("file:%x:%x", id.dev, id.ino) }

// A fingerprint is the number and the hash of some bytes.
type fingerprint struct {
	Len int    `json:"n"`
	Sum uint64 `json:"h,string"`
}

func fingerprintOf(b []byte) fingerprint {
	h := fnv.New64a()
	h.Write(b)
	return fingerprint{len(b), h.Sum64()}
}

// at reports whether the bytes at the offset of r are those of the fingerprint. Too
// few bytes are not.
func (p fingerprint) at(r io.ReaderAt, offset int64) bool {
	b := make([]byte, p.Len)
	n, _ := r.ReadAt(b, offset)
	return n == p.Len && fingerprintOf(b) == p
}

// A position is how far a file was read, and enough of its content to tell
// whether the file with that inode is still the one that was read.
type position struct {
	Path   string      `json:"path"`  // links resolved
	Input  string      `json:"input"` // the path by which an input named it
	Head   fingerprint `json:"head"`  // of the first bytes
	Mark   fingerprint `json:"mark"`  // of the bytes just before Offset
	Offset int64       `json:"offset"`
	Line   int64       `json:"line"`
	Mtime  int64       `json:"mtime"` // of the file when it was read, ns since 1970: siblings that are newer came later
	Size   int64       `json:"size"`  // of the file when it was last looked at
}

func (p position) encode() []byte {
	b, err := json.Marshal(p)
	if err != nil { // no: strings and integers only
		return nil
	}
	return b
}

func decodePosition(b []byte) (position, bool) {
	var p position
	err := json.Unmarshal(b, &p)
	ok := err == nil && p.Offset >= 0 && p.Line >= 0 && p.Head.Len >= 0 && p.Head.Len <= headSize &&
		p.Mark.Len >= 0 && p.Mark.Len <= markSize && int64(p.Mark.Len) <= p.Offset
	return p, ok
}

// fits reports whether r, of the given size, still has the content up to the
// position.
func (p position) fits(r io.ReaderAt, size int64) bool {
	return size >= p.Offset && p.Head.at(r, 0) && p.Mark.at(r, p.Offset-int64(p.Mark.Len))
}
