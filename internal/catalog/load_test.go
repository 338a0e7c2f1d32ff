package catalog

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files of testdata/problems anew")

// TestProblems loads the files of each archive and compares what Load and Lint
// say, and which records remain, with the archive's last file, "want".
func TestProblems(t *testing.T) {
	archives, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fsys, want := fstest.MapFS{}, ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				fsys[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			got := report(fsys)
			if *update {
				updateArchive(t, name, archive, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func updateArchive(t *testing.T, name string, archive *txtar.Archive, got string) {
	var files []txtar.File
	for _, f := range archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	archive.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// report is what a person would see of a catalogue, with the records that
// loaded at the end.
func report(fsys fs.FS) string {
	var b strings.Builder
	records, problems := Load(fsys)
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	lint := Lint(records)
	Locate(lint, func(file string) ([]byte, error) { return fs.ReadFile(fsys, file) })
	if len(lint) > 0 {
		b.WriteString("lint:\n")
	}
	for _, p := range lint {
		b.WriteString(p.String() + "\n")
	}
	b.WriteString("loaded:")
	for _, r := range records {
		b.WriteString(" " + r.Slug)
	}
	return b.String() + "\n"
}

const minimal = "id: aaaaaaaaaaaaaaaa\nslug: x\nerrorMessage: some message {}\n"

// TestOddBytes covers files that an archive of text cannot hold.
func TestOddBytes(t *testing.T) {
	for _, c := range []struct {
		name, file, data, want string
		loads                  bool
	}{
		{"empty", "x.yaml", "", "x.yaml: error: the file is empty", false},
		{"white space", "x.yaml", " \n\n", "x.yaml: error: the file is empty", false},
		{"comment only", "x.yaml", "# nothing\n", "the file is empty", false},
		{"BOM", "x.yaml", "\ufeff" + minimal, "x.yaml: warning: the file begins with a byte order mark", true},
		{"BOM JSON", "x.json", "\ufeff{\"id\": \"a\", \"errorMessage\": \"m\"}", "byte order mark", true},
		{"UTF-16", "x.yaml", "\xff\xfei\x00d\x00", "the file is UTF-16; save it as UTF-8", false},
		{"Latin-1", "x.yaml", minimal + "documentation: caf\xe9\n", "x.yaml:4:19: error: the file is not UTF-8 from here on\n    4 | documentation: caf", false},
		{"too large", "x.yaml", minimal + "documentation: " + strings.Repeat("x", maxFile), "a record has at most 1048576", false},
		{"CRLF", "x.yaml", strings.ReplaceAll(minimal, "\n", "\r\n"), "", true},
		{"tab indentation", "x.yaml", minimal + "solutions:\n\t- a\n", "x.yaml:5:1: error: the line is indented with a tab; YAML indents with spaces\n    5 | →- a", false},
		{"tab at the start", "x.yaml", "\tid: a\n", "YAML indents with spaces", false},
		{"NUL", "x.yaml", minimal + "documentation: \"a\x00b\"\n", "", true},
		{"plain and huge", "x.yaml", minimal + "documentation: " + strings.Repeat("x", maxFile/2), "", true},
		{"huge and not plain", "x.yaml", minimal + "? a\n" + strings.Repeat("#\n", maxGeneralYAML), "x.yaml:4:1: error: the file is larger than 128 KiB and from here on not written plainly", false},
		{"deep JSON", "x.json", `{"id":` + strings.Repeat("[", 20000), "exceeded max depth", false},
		{"less deep JSON", "x.json", `{"id":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}", "nested too deep", false},
		{"deep YAML", "x.yaml", "id: " + strings.Repeat("[", 20000), "nested too deep", false},
		{"deep block YAML", "x.yaml", "a:\n" + strings.Repeat("- ", 20000) + "b\n", "", false},
		{"terminal codes", "x.yaml", "nonsense: \x1b]8;;x\x07\n", "\uFFFD]8;;x\uFFFD", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			records, problems := Load(fstest.MapFS{c.file: {Data: []byte(c.data)}})
			if (len(records) == 1) != c.loads {
				t.Errorf("loaded %d records", len(records))
			}
			var all strings.Builder
			for _, p := range problems {
				all.WriteString(p.String() + "\n")
			}
			if !strings.Contains(all.String(), c.want) || c.want == "" && c.loads && len(problems) > 0 || !c.loads && len(problems) == 0 {
				t.Errorf("problems:\n%s\nwant: %s", all.String(), c.want)
			}
			if strings.ContainsAny(all.String(), "\x1b\x00\x07") {
				t.Errorf("control characters in %q", all.String())
			}
		})
	}
}

// TestConfigMap loads a directory as the kubelet mounts one, and one with links
// that lead nowhere or back.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "..2026_11_30", "meta")
	must(t, os.MkdirAll(real, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "..2026_11_30", "x.yaml"), []byte(minimal), 0o644))
	must(t, os.WriteFile(filepath.Join(real, "y.yaml"), []byte("id: b\nslug: y\nerrorMessage: other {}\n"), 0o644))
	must(t, os.Symlink("..2026_11_30", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/x.yaml", filepath.Join(dir, "x.yaml")))
	must(t, os.Symlink("..data/meta", filepath.Join(dir, "meta")))
	must(t, os.Symlink(".", filepath.Join(real, "loop")))
	must(t, os.Symlink(".", filepath.Join(dir, "self")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "gone.yaml")))
	must(t, os.WriteFile(filepath.Join(dir, ".hidden.yaml"), []byte("not: read"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("not read"), 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "directory.yaml"), 0o755))

	records, problems := Load(os.DirFS(dir))
	var got []string
	for _, r := range records {
		got = append(got, r.File+" "+r.Component)
	}
	if diff := cmp.Diff([]string{"meta/y.yaml meta", "x.yaml "}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if len(problems) != 1 || problems[0].String() != "gone.yaml: error: cannot be read: no such file or directory" {
		t.Errorf("problems: %v", problems)
	}
}

func TestLoadNothing(t *testing.T) {
	_, problems := Load(os.DirFS(filepath.Join(t.TempDir(), "missing")))
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "no such file") {
		t.Errorf("problems: %v", problems)
	}
	if records, problems := Load(fstest.MapFS{}); len(records)+len(problems) != 0 {
		t.Errorf("an empty tree gave %v %v", records, problems)
	}
}

// TestPublished loads the published form, wrapped and bare: nulls, code
// excerpts, one unknown key.
func TestPublished(t *testing.T) {
	const record = `{"id":"65df22fd2e2f78e4","repo":"r/r","slug":null,"errorCode":null,"errorMessage":"a (b) {}","messagePattern":null,
		"severity":"fatal","lineNumber":12,"sourceCode":"x","tags":null,"solutions":["Do it"],"schemaVersion":2,"novel":1}`
	for name, data := range map[string]string{"wrapped": `{"record":` + record + `,"datasetVersion":"2026-09-14T11:17:12.474Z"}`, "bare": record} {
		t.Run(name, func(t *testing.T) {
			records, problems := Load(fstest.MapFS{"download.json": {Data: []byte(data)}})
			want := Record{ID: "65df22fd2e2f78e4", Repo: "r/r", Slug: "a-b", ErrorMessage: "a (b) {}", MessagePattern: `a \(b\) (.+?)`,
				Severity: SeverityError, Role: RoleRoot, LineNumber: 12, Solutions: []string{"Do it"}, File: "download.json"}
			if name == "wrapped" {
				want.DatasetVersion = "2026-09-14T11:17:12.474Z"
			}
			if diff := cmp.Diff([]Record{want}, records); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Field+": "+p.Message)
				if !p.Warning || p.Line == 0 {
					t.Errorf("not a warning with a line: %v", p)
				}
			}
			if diff := cmp.Diff([]string{`severity: "fatal" is none of info, warning, error, critical`, `: unknown key "novel"`}, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzLoad: no file brings the loader down, and each gives a record, a problem,
// or both.
func FuzzLoad(f *testing.F) {
	for _, text := range plainSamples() {
		f.Add("x.yaml", text)
	}
	f.Add("x.json", `{"record":{"id":"a","errorMessage":"m {}"},"datasetVersion":"x"}`)
	f.Add("x.yaml", "a: &a [*a, !!str 1, {<<: *a}]\n? b\n: c\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if !fs.ValidPath(name) || !isRecordFile(name) || strings.Contains(name, "/.") || name[0] == '.' || len(text) > 10000 {
			return
		}
		records, problems := Load(fstest.MapFS{name: {Data: []byte(text)}})
		if len(records) == 0 && !HasErrors(problems) {
			t.Fatal("neither a record nor an error")
		}
		Lint(records)
		for _, p := range problems {
			_ = p.String()
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
