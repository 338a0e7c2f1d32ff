package source

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// tellPacked tells of generations that were packed while we were not running,
// with lines that nobody has read. It is for the start.
func (m *Files) tellPacked(s *slot, real string) {
	since, known := m.lastOf(s, real)
	if !known {
		return
	}
	dir, base := filepath.Split(real)
	for _, e := range namedLike(base, m.list(real)) {
		name, packed := strings.CutSuffix(e.Name(), ".gz")
		info, err := e.Info()
		if _, rotated := relation(name, base); !packed || !rotated || err != nil || !info.ModTime().After(since) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if n := m.unreadPacked(s, path); n > 0 {
			m.totals.lost.Add(n)
			m.log.Warn().Str("path", path).Int64("bytes", n).
				Msg("lines are missed: the log was rotated and packed while nobody read it; rwannotate scan reads this file")
		}
	}
}

// unreadPacked returns how many bytes of a packed generation of the slot were
// not read before it was packed.
func (m *Files) unreadPacked(s *slot, path string) int64 {
	fd, err := openRegular(path)
	if err != nil {
		return 0
	}
	defer fd.Close()
	head, size := unpacked(fd)
	read := int64(0)
	m.pos.Each(func(_ string, v []byte) {
		p, ok := decodePosition(v)
		if ok && p.Input == s.path && p.Head.Len > 0 && p.Head.Len <= len(head) && fingerprintOf(head[:p.Head.Len]) == p.Head {
			read = max(read, p.Offset)
		}
	})
	return size - read
}

// unpacked returns the beginning of what is packed in a file, and its size as
// far as the format tells: modulo 4 GiB. Both are nothing if it is damaged.
func unpacked(fd *os.File) (head []byte, size int64) {
	z, err := gzip.NewReader(fd)
	if err != nil {
		return nil, 0
	}
	head = make([]byte, headSize)
	n, _ := io.ReadFull(z, head)
	var end [4]byte
	info, err := fd.Stat()
	if err != nil || info.Size() < int64(len(end)) {
		return nil, 0
	}
	if _, err := fd.ReadAt(end[:], info.Size()-int64(len(end))); err != nil {
		return nil, 0
	}
	return head[:n], int64(binary.LittleEndian.Uint32(end[:]))
}
