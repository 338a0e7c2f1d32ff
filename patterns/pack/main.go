// Pack writes the catalogue as one archive, which the program embeds when it is
// built with -tags packed (make build): a zip, stored and then compressed as a whole,
// since records resemble each other. Run by go generate in the directory above.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := pack(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(file string) error {
	records, err := filepath.Glob("*/*.yaml") // what embed.go takes
	if err != nil {
		return err
	}
	var stored bytes.Buffer
	archive := zip.NewWriter(&stored)
	for _, name := range records {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		w, err := archive.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	whole, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	return replace(file, whole.EncodeAll(stored.Bytes(), nil))
}

// replace puts a file in place as a whole: other builds, which tests make at the
// same time, may be reading it, or writing theirs.
func replace(file string, data []byte) error {
	f, err := os.CreateTemp(".", "new-*.zst")
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
