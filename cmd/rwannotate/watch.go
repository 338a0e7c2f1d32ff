package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// hangup is the signal that asks for a reload.
const hangup = syscall.SIGHUP

// A watcher looks at the content of files every so often and tells when it has
// changed. Content, not times or events: a ConfigMap is replaced by switching a
// link, which no watch on the file sees.
type watcher struct {
	every   time.Duration
	paths   func() []string // files and directories
	changed func() error
}

func (w *watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	last := w.sum()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now := w.sum(); !bytes.Equal(now, last) && w.changed() == nil {
			last = now
		}
	}
}

// sum digests names and contents. What cannot be read counts as empty: the
// reload will say what is wrong.
func (w *watcher) sum() []byte {
	h := sha256.New()
	for _, path := range w.paths() {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // else a link to a directory is not walked
		}
		_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			content, err := os.ReadFile(name)
			if err != nil {
				content = nil
			}
			h.Write([]byte(name))
			sum := sha256.Sum256(content)
			h.Write(sum[:])
			return nil
		})
	}
	return h.Sum(nil)
}

// watched are the files that a reload reads, as the configuration now says.
func (a *app) watched() []string {
	paths := slices.Clone(a.current.Load().cfg.Catalog.Paths)
	if file := a.flags.path(); file != "" {
		paths = append(paths, file)
	}
	return paths
}
