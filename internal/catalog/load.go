package catalog

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxDepth bounds the directory levels below the tree's root.
const maxDepth = 16

// Load reads every record below the root of fsys: *.yaml and *.yml (ours,
// strict) and *.json (published, lenient), one record a file, in the order of
// their paths. Names that begin with a dot are not looked at; links are followed,
// since a mounted ConfigMap consists of links into a hidden directory.
//
// It returns the usable records and all that is wrong with any file, by path. A file with an
// error yields no record and takes no other down; one with warnings does. Records come
// completed: role, severity, slug, errorMessage and messagePattern are never empty.
func Load(fsys fs.FS) ([]Record, []Problem) {
	w := walker{fsys: fsys}
	w.walk(".", nil)
	return w.load()
}

type walker struct {
	fsys     fs.FS
	files    []string
	problems []Problem
}

// walk collects the files below dir; above are the directories it lies in.
func (w *walker) walk(dir string, above []fs.FileInfo) {
	info, err := fs.Stat(w.fsys, dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	loop := slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) })
	if loop || len(above) > maxDepth {
		return // a link to a directory it lies in
	}
	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.problem(dir, err)
	}
	for _, e := range entries {
		w.entry(path.Join(dir, e.Name()), e, append(above, info))
	}
}

func (w *walker) entry(name string, e fs.DirEntry, above []fs.FileInfo) {
	if strings.HasPrefix(e.Name(), ".") {
		return
	}
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := fs.Stat(w.fsys, name)
		if err != nil {
			if isRecordFile(name) {
				w.problem(name, err)
			}
			return
		}
		mode = info.Mode().Type()
	}
	switch {
	case mode.IsDir():
		w.walk(name, above)
	case isRecordFile(name) && mode.IsRegular():
		w.files = append(w.files, name)
	case isRecordFile(name):
		w.problem(name, fmt.Errorf("not a regular file"))
	}
}

func (w *walker) problem(name string, err error) {
	w.problems = append(w.problems, Problem{File: name, Message: "cannot be read: " + reason(err)})
}

// reason is an error without the path, which the problem names already.
func reason(err error) string {
	if e, ok := err.(*fs.PathError); ok {
		err = e.Err
	}
	return err.Error()
}

// isPublished tells the knowledge base's form from ours.
func isPublished(name string) bool { return path.Ext(name) == ".json" }

func isRecordFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// load reads the files, several at a time.
func (w *walker) load() ([]Record, []Problem) {
	slices.Sort(w.files)
	records, problems := make([]Record, len(w.files)), make([][]Problem, len(w.files))
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(w.files)) {
		readers.Go(func() {
			var b bytes.Buffer
			for i := next.Add(1) - 1; i < int64(len(w.files)); i = next.Add(1) - 1 {
				records[i], problems[i] = w.read(w.files[i], &b)
			}
		})
	}
	readers.Wait()

	usable := 0
	for i, found := range problems {
		w.problems = append(w.problems, found...)
		if HasErrors(found) || records[i].ID == "" {
			continue
		}
		if usable < i { // a record is large
			records[usable] = records[i]
		}
		usable++
	}
	records = w.unique(records[:usable])
	SortProblems(w.problems)
	return records, w.problems
}

// read decodes a file. b is room to read it into.
func (w *walker) read(name string, b *bytes.Buffer) (Record, []Problem) {
	b.Reset()
	if err := readBounded(w.fsys, name, b); err != nil {
		return Record{}, []Problem{{File: name, Message: "cannot be read: " + reason(err)}}
	}
	return decode(name, b.Bytes())
}

// readBounded reads a file, of one that is too large for a record no more than
// what shows that.
func readBounded(fsys fs.FS, name string, b *bytes.Buffer) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = b.ReadFrom(io.LimitReader(f, maxFile+1))
	return err
}

// unique drops records whose id, or whose slug with another id, came before.
// Two published records may share a slug: the knowledge base cuts them short.
func (w *walker) unique(records []Record) []Record {
	byID, bySlug := map[string]string{}, map[string]string{}
	return slices.DeleteFunc(records, func(r Record) bool {
		if first, ok := byID[r.ID]; ok {
			w.problems = append(w.problems, w.located(r.File, "id", false, "%q is the id of %s already", r.ID, first))
			return true
		}
		byID[r.ID] = r.File
		first, ok := bySlug[r.Slug]
		if !ok {
			bySlug[r.Slug] = r.File
			return false
		}
		published := isPublished(r.File) || isPublished(first)
		w.problems = append(w.problems, w.located(r.File, "slug", published, "%q is the slug of %s already", r.Slug, first))
		return !published
	})
}

func (w *walker) located(file, field string, warning bool, format string, args ...any) Problem {
	p := []Problem{{File: file, Field: field, Warning: warning, Message: fmt.Sprintf(format, args...)}}
	Locate(p, func(name string) ([]byte, error) { return fs.ReadFile(w.fsys, name) })
	return p[0]
}

// Locate fills in line, column and excerpt of problems that have only a file and a
// field, as Lint's, and sorts them by place. read returns a file's content by Problem.File; problems
// whose file cannot be read stay as they are.
func Locate(problems []Problem, read func(file string) ([]byte, error)) {
	for i := range problems {
		p := &problems[i]
		if p.Line > 0 || p.File == "" {
			continue
		}
		data, err := read(p.File)
		if err != nil {
			continue
		}
		text := strings.TrimPrefix(string(data), "\ufeff")
		root, bad := parse(text, isPublished(p.File))
		if len(bad) > 0 || root.kind != kindMapping {
			continue
		}
		record := &root
		if inner, ok := root.get("record"); ok && inner.kind == kindMapping {
			record = inner
		}
		at := record.at(p.Field)
		p.place(text, int(at.off), int(at.width))
	}
	SortProblems(problems)
}
