package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

func TestDir(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "id: a", "meta/b.yaml": "id: b"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := fstest.TestFS(Dir(root), "a.yaml", "meta/b.yaml"); err != nil {
		t.Error(err)
	}
	if _, err := Dir(root).Open("none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestLoadPassesOverPipes: a link to a named pipe is refused, not waited for.
func TestLoadPassesOverPipes(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(root, ".pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".pipe", filepath.Join(root, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	records, problems := Load(Dir(root))
	if len(records) != 0 || len(problems) != 1 || problems[0].Message != "cannot be read: not a regular file" {
		t.Errorf("%d records, problems %v", len(records), problems)
	}
}
