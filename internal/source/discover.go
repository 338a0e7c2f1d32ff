package source

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// notLogs are the endings of what lies beside logs without being one: packed
// generations, and files that an editor or a packer is about to rename.
var notLogs = []string{".gz", ".bz2", ".xz", ".zst", ".tmp", ".swp"}

// linkRoots are where the links in kubelet's directories lead.
var linkRoots = []string{"/var/log/pods", "/var/log/containers", "/var/lib/docker/containers"}

// An input is an Input whose kind is known.
type input struct {
	pattern string
	literal bool
	base    string // of a glob: the part without wildcards
	exclude []string
	start   Start
}

// parseInputs checks all patterns and reports every bad one.
func parseInputs(given []Input) ([]input, error) {
	var inputs []input
	var errs []error
	for _, g := range given {
		p := g.Path
		if p == "" {
			errs = append(errs, errors.New("input: empty path"))
			continue
		}
		p = filepath.Clean(p)
		_, err := os.Lstat(p)
		in := input{pattern: p, literal: err == nil || !strings.ContainsAny(p, `*?[{\`), exclude: g.Exclude, start: g.Start}
		if in.start == "" {
			in.start = FromCheckpoint
		}
		if !in.literal {
			if !doublestar.ValidatePathPattern(p) {
				errs = append(errs, fmt.Errorf("input %q: malformed glob", p))
				continue
			}
			in.base, _ = doublestar.SplitPattern(p)
		}
		inputs = append(inputs, in)
	}
	return inputs, errors.Join(errs...)
}

// paths lists what the input names now. A directory means everything below it.
func (in input) paths() ([]string, input, error) {
	if in.literal {
		info, err := os.Stat(in.pattern)
		if err != nil || !info.IsDir() {
			return []string{in.pattern}, in, nil // looked at, and reported, by path
		}
		in.base, in.literal = in.pattern, false
		paths, err := below(in.base)
		return paths, in, err
	}
	paths, err := doublestar.FilepathGlob(in.pattern, doublestar.WithNoFollow())
	return paths, in, err
}

// below lists the files below a directory. Links to directories are not
// followed: they may lead anywhere, in circles too.
func below(dir string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			return nil // a directory that went away, or is closed to us
		}
		if !d.IsDir() {
			paths = append(paths, path)
		}
		return nil
	})
	return paths, err
}

// allows reports whether the file that a path led to may be read. Whoever can
// write into a watched directory can place a link to any file there, so links
// may only lead to where the input looks anyway, or into the roots. A path
// that the operator wrote out in full is the operator's decision.
func (in input) allows(real string, roots []string) bool {
	if in.literal {
		return true
	}
	base := in.base
	if resolved, err := filepath.EvalSymlinks(base); err == nil {
		base = resolved
	}
	if under(real, base) {
		return true
	}
	for _, root := range append(linkRoots, roots...) {
		if under(real, root) {
			return true
		}
	}
	return false
}

func under(path, dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	path, err = filepath.Abs(path)
	return err == nil && (path == abs || strings.HasPrefix(path, strings.TrimSuffix(abs, "/")+"/"))
}

// excluded reports whether a path is left out by its name.
func excluded(path string, patterns []string) bool {
	name := filepath.Base(path)
	for _, end := range notLogs {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	for _, p := range patterns {
		if doublestar.MatchUnvalidated(p, name) || doublestar.PathMatchUnvalidated(p, path) {
			return true
		}
	}
	return false
}

// mountPoints returns those of the paths that are mounted by themselves. After
// a rotation such a path still shows the old file.
func mountPoints(inputs []input) []string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	mounted := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 4 {
			mounted[fields[4]] = true
		}
	}
	var found []string
	for _, in := range inputs {
		info, err := os.Stat(in.pattern)
		if abs, _ := filepath.Abs(in.pattern); err == nil && !info.IsDir() && in.literal && mounted[abs] {
			found = append(found, in.pattern)
		}
	}
	return found
}
