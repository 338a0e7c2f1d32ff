package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Dir is a directory of records, as os.DirFS. It does not offer each file to the
// runtime's poller, which takes no regular files: asking it and being refused is most of
// what opening a small file costs.
type Dir string

// Open implements fs.FS.
func (d Dir) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	path := d.path(name)
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil // the entries of a directory need its path
	}
}

// Stat implements fs.StatFS: what a name leads to need not be a file that can be opened.
func (d Dir) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return os.Stat(d.path(name))
}

func (d Dir) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }
