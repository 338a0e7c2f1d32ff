//go:build packed

package patterns

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// Made by go generate; a sixth of what the files take.
//
//go:embed catalogue.zip.zst
var packed []byte

// FS is the catalogue. It is unpacked at each call, so that nobody holds it who does not use it.
func FS() fs.FS {
	tree, err := unpack()
	if err != nil {
		panic("patterns: the catalogue is part of the program: " + err.Error())
	}
	return tree
}

func unpack() (fs.FS, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := r.DecodeAll(packed, nil)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
}
