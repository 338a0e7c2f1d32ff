// Package harvest reads the messages that RisingWave can print out of its
// source: the texts of log statements, errors and panics in Rust, and of log
// statements and exceptions in the Java connector node. Test code is left out.
//
// It knows the shape of the two languages' tokens, not their grammar: no
// compiler is needed and any version of the source can be read. A text that is
// put together at run time, from variables or over several statements, is not
// found.
package harvest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// A Message is one text in the source.
type Message struct {
	Text  string // template with Rust's placeholders; Java's are written {} too
	Kind  string // how it is made: anyhow, .context, #[error], Status::internal, LOG.error, new SQLException …
	Level string // see Levels
	File  string // slash-separated, from the root of the source: src/meta/src/…
	Line  int    // of the statement, 1-based
}

// Levels of messages: those of log statements, and error for texts that become
// an error's, panic for those of a panic, stdout and stderr for plain output.
func Levels() []string {
	return []string{"panic", "error", "warn", "info", "debug", "trace", "stderr", "stdout"}
}

// ErrNoSource says that a tree holds no file to read.
var ErrNoSource = errors.New("no Rust or Java source in it")

// maxSource bounds one file; generated ones are larger, and hold no messages.
const maxSource = 4 << 20

// Source reads every message of a source tree, ordered by file and line. Files
// that cannot be read are an error: a part of the messages looks like the
// whole.
func Source(fsys fs.FS) ([]Message, error) {
	files, err := sourceFiles(fsys)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, ErrNoSource
	}
	found := make([][]Message, len(files))
	failed := make([]error, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				found[i], failed[i] = file(fsys, files[i])
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	wg.Wait()
	messages := slices.Concat(found...)
	slices.SortStableFunc(messages, func(a, b Message) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return messages, errors.Join(failed...)
}

func sourceFiles(fsys fs.FS) (files []string, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("read source: %w", err)
		case d.IsDir() && name != "." && skipDir(d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular() && isSource(d.Name()):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// skipDir names directories whose code does not run in a node.
func skipDir(name string) bool {
	switch name {
	case "tests", "test", "benches", "bench", "examples", "test_runner", "test_utils", "hummock_test", "risedevtool", "target", "node_modules",
		"java-binding-benchmark", "java-binding-integration-test", "risingwave-source-cdc-test":
		return true
	}
	return strings.HasPrefix(name, ".")
}

func isSource(name string) bool {
	stem := strings.TrimSuffix(name, path.Ext(name))
	switch path.Ext(name) {
	case ".rs":
		return stem != "tests" && stem != "test" && stem != "build" && !strings.HasPrefix(stem, "test_") &&
			!strings.HasSuffix(stem, "_test") && !strings.HasSuffix(stem, "_tests")
	case ".java":
		return !strings.HasSuffix(stem, "Test") && !strings.HasPrefix(stem, "Test")
	}
	return false
}

func file(fsys fs.FS, name string) ([]Message, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	if len(data) > maxSource {
		return nil, nil
	}
	var found []Message
	if path.Ext(name) == ".java" {
		found = Java(string(data))
	} else {
		found = Rust(string(data))
	}
	for i := range found {
		found[i].File = name
	}
	return found, nil
}

// Wording is a template with its placeholders made alike, so that {}, {name}
// and {0:?} compare equal.
func Wording(template string) string {
	var b strings.Builder
	for _, p := range catalog.ParseTemplate(template) {
		if p.Hole != "" {
			b.WriteString("{}")
		} else {
			b.WriteString(p.Literal)
		}
	}
	return b.String()
}
