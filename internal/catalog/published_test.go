package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParsePublished reads each form in testdata/published and compares the
// record with the YAML beside it.
func TestParsePublished(t *testing.T) {
	files, err := filepath.Glob("testdata/published/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no published records", err)
	}
	var records []Record
	for _, file := range files {
		r, problems := ParsePublished(read(t, file))
		if len(problems) > 0 {
			t.Errorf("%s: %v", file, problems)
		}
		records = append(records, r)
	}
	CompleteLinks(records, records)
	for i, file := range files {
		golden := strings.TrimSuffix(file, ".txt") + ".yaml"
		got := records[i].AppendYAML(nil)
		if *update {
			must(t, os.WriteFile(golden, got, 0o644))
		}
		if diff := cmp.Diff(string(read(t, golden)), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return data
}

// TestPageVariants changes a page in the ways pages vary.
func TestPageVariants(t *testing.T) {
	page := string(read(t, "testdata/published/003_31bf0534ce23273b.txt"))
	whole, _ := ParsePublished([]byte(page))
	for _, c := range []struct {
		name, old, new string
		change         func(*Record)
		problem        string
	}{
		{name: "CRLF", old: "\n", new: "\r\n"},
		{name: "headline cut", old: "· error\n\nshould not update vnode bitmap during consuming log store", new: "· error\n\nshould not update vnode bit…"},
		{name: "severity", old: "· error", new: "· critical", change: func(r *Record) { r.Severity = SeverityCritical }},
		{name: "unknown severity", old: "· error", new: "· dire"},
		{name: "no message", old: "Error message\n\nshould not update vnode bitmap during consuming log store\n", new: "",
			problem: `warning: the page has no "Error message"; the headline is taken, which may be cut short`},
		{name: "no id", old: "Data as JSON: /api/errors/a1174e815cc32dac.", new: "", change: func(r *Record) { r.ID = "" },
			problem: `error: this is neither JSON nor a record's page: "Data as JSON: /api/errors/<id>" is missing`},
		{name: "solution over two lines", old: "rescheduling with a stable topology", new: "rescheduling\n   with a stable topology"},
		{name: "no solutions", old: "\nSolutions\n", new: "\nSource\n", change: func(r *Record) { r.Solutions = nil }},
		{name: "several paragraphs", old: "An update-vnode", new: "\n\nAn update-vnode", change: func(r *Record) {
			r.Documentation = strings.Replace(r.Documentation, " An update-vnode", "\nAn update-vnode", 1)
		}},
		{name: "no class", old: "Background: ", new: "", change: func(r *Record) { r.BackgroundTag = "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.ReplaceAll(page, c.old, c.new)
			if changed == page {
				t.Fatal("nothing changed")
			}
			want := whole
			if c.change != nil {
				c.change(&want)
			}
			got, problems := ParsePublished([]byte(changed))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			var all []string
			for _, p := range problems {
				all = append(all, p.String())
			}
			if strings.Join(all, "\n") != c.problem {
				t.Errorf("problems: %q, want %q", all, c.problem)
			}
		})
	}
}

func TestParsePublishedGarbage(t *testing.T) {
	for _, data := range []string{"", "hello", "{", "[]", "{}", "\xff\xfe", `{"record":{"id":1}}`} {
		if r, problems := ParsePublished([]byte(data)); !HasErrors(problems) {
			t.Errorf("%q gave %+v without an error", data, r)
		}
	}
}

func FuzzParsePublished(f *testing.F) {
	files, _ := filepath.Glob("testdata/published/*.txt")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, problems := ParsePublished(data)
		if !HasErrors(problems) && (r.ID == "" || r.MessagePattern == "" || !validSlug(r.Slug)) {
			t.Fatalf("incomplete without a problem: %+v", r)
		}
	})
}
