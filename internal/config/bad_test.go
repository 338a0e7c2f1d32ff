package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// golden is one configuration of an archive in testdata.
type golden struct {
	archive, name string
	text, want    string
	env           Env
}

func readGolden(t *testing.T, pattern string) []golden {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no archives (%v)", pattern, err)
	}
	var all []golden
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			name, kind := strings.TrimSuffix(f.Name, filepath.Ext(f.Name)), filepath.Ext(f.Name)
			if kind == ".yaml" {
				all = append(all, golden{archive: path, name: name, text: string(f.Data), env: Env{}})
				continue
			}
			last := &all[len(all)-1]
			if last.name != name {
				t.Fatalf("%s: %s does not follow its .yaml", path, f.Name)
			}
			switch kind {
			case ".env":
				last.env = EnvOf(strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n"))
			case ".want":
				last.want = string(f.Data)
			}
		}
	}
	return all
}

// problemText is what a golden file holds.
func problemText(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func updateGolden(t *testing.T, cases []golden) {
	t.Helper()
	archives := map[string]*txtar.Archive{}
	for _, c := range cases {
		a := archives[c.archive]
		if a == nil {
			var err error
			if a, err = txtar.ParseFile(c.archive); err != nil {
				t.Fatal(err)
			}
			archives[c.archive] = a
		}
		_, _, problems := parse(c.name+".yaml", []byte(c.text), c.env, nil)
		for i := range a.Files {
			if a.Files[i].Name == c.name+".want" {
				a.Files[i].Data = []byte(problemText(problems))
			}
		}
	}
	for path, a := range archives {
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBad: each bad configuration gives one problem, which says what is wrong
// and what to do, at a line with a caret, and shows no secret.
func TestBad(t *testing.T) {
	cases := readGolden(t, "testdata/bad/*.txtar")
	if *update {
		updateGolden(t, cases)
		cases = readGolden(t, "testdata/bad/*.txtar")
	}
	if len(cases) < 200 {
		t.Errorf("%d bad configurations, want at least 200", len(cases))
	}
	seen := map[string]string{}
	for _, c := range cases {
		name := strings.TrimSuffix(filepath.Base(c.archive), ".txtar") + "/" + c.name
		t.Run(name, func(t *testing.T) {
			_, _, problems := parse(c.name+".yaml", []byte(c.text), c.env, nil)
			got := problemText(problems)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(problems) != 1 || !Failed(problems) {
				t.Fatalf("%d problems, want one that is no warning:\n%s", len(problems), got)
			}
			p := problems[0]
			if p.Line == 0 || !strings.Contains(p.Excerpt, "^") {
				t.Errorf("no line with a caret:\n%s", got)
			}
			if strings.Contains(got, "hunter") {
				t.Errorf("a secret is shown:\n%s", got)
			}
			if strings.Contains(p.Message, ". ") || strings.HasSuffix(p.Message, ".") {
				t.Errorf("more than one sentence: %s", p.Message)
			}
			if other, twice := seen[c.text]; twice && len(c.env) == 0 {
				t.Errorf("the same configuration as %s", other)
			}
			seen[c.text] = name
		})
	}
}

// TestWarnings: configurations that work, but hardly as meant.
func TestWarnings(t *testing.T) {
	cases := readGolden(t, "testdata/warnings.txtar")
	if *update {
		updateGolden(t, cases)
		cases = readGolden(t, "testdata/warnings.txtar")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, problems := parse(c.name+".yaml", []byte(c.text), c.env, nil)
			if diff := cmp.Diff(c.want, problemText(problems)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(problems) != 1 || Failed(problems) {
				t.Errorf("want one warning:\n%s", problemText(problems))
			}
		})
	}
}
