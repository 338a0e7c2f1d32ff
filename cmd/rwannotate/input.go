package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/klauspost/compress/zstd"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/source"
)

// expandInputs turns the arguments into names to open: globs into the files
// they match, no argument into standard input if something is piped in.
func expandInputs(args []string, stdin io.Reader) ([]string, error) {
	if len(args) == 0 {
		if !piped(stdin) {
			return nil, exitf(exitUsage, "nothing to scan: name a file, or pipe a log in (see \"rwannotate scan --help\")")
		}
		return []string{"-"}, nil
	}
	var names []string
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || arg == "-" || !strings.ContainsAny(arg, "*?[{") {
			names = append(names, arg)
			continue
		}
		found, err := doublestar.FilepathGlob(arg, doublestar.WithFilesOnly())
		if err != nil {
			return nil, exitf(exitUsage, "%s: %v", arg, err)
		}
		if len(found) == 0 {
			return nil, exitf(exitRuntime, "%s: no file matches", arg)
		}
		slices.Sort(found)
		names = append(names, found...)
	}
	return names, nil
}

// piped reports whether stdin is something other than a terminal.
func piped(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice == 0
}

// An input is an open log, decompressed.
type input struct {
	io.Reader
	name, kind, path string
	k8s              annotate.K8s
	size             int64      // bytes on disk; 0 if unknown
	raw              *countedIO // what was read of them
	closers          []func() error
}

// countedIO counts the bytes read from the file itself, compressed or not.
type countedIO struct {
	io.Reader
	n int64
}

func (c *countedIO) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func (in *input) Close() {
	for _, c := range slices.Backward(in.closers) {
		_ = c() // nothing was written
	}
}

// openInput opens a file or standard input. Compression is told by the first
// bytes, not by the name.
func openInput(name string, stdin io.Reader) (*input, error) {
	in := &input{name: name, kind: "file", path: name}
	if name == "-" {
		in.name, in.kind, in.path = "standard input", "stdin", ""
		in.raw = &countedIO{Reader: stdin}
	} else {
		f, err := openRegular(name)
		if err != nil {
			return nil, err
		}
		in.closers = append(in.closers, f.Close)
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			in.size = st.Size()
		}
		in.k8s = source.K8sFromPath(name)
		in.raw = &countedIO{Reader: f}
	}
	if err := in.decompress(); err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", in.name, err)
	}
	return in, nil
}

func openRegular(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return nil, fmt.Errorf("%s: cannot be opened: %w", name, path.Err)
		}
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s: is a directory; name its files, for example '%s/**/*.log'", name, strings.TrimRight(name, "/"))
	}
	return f, nil
}

func (in *input) decompress() error {
	in.Reader = in.raw
	head := make([]byte, 4)
	n, err := io.ReadFull(in.raw, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	head = head[:n]
	whole := io.MultiReader(bytes.NewReader(head), in.raw)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bufio.NewReaderSize(whole, 256<<10))
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		in.closers = append(in.closers, z.Close)
		in.Reader = z
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(whole, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
		in.closers = append(in.closers, func() error { z.Close(); return nil })
		in.Reader = z
	default:
		in.Reader = whole
	}
	return nil
}
