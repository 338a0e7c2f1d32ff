package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rwannotate runs one command line in-process.
func rwannotate(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, streams{in: strings.NewReader(stdin), out: &out, err: &errs})
	return code, out.String(), errs.String()
}

const localRecord = "id: local-1\nslug: local\nerrorMessage: a local message {}\nseverity: critical\nrole: symptom\ntags: [ours]\nreview: reviewed\naliases: [another local wording]\n"

func localTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPatternsList(t *testing.T) {
	dir := localTree(t, map[string]string{
		"meta/local.yaml": localRecord,
		"other.yaml":      "id: local-2\nslug: other\nerrorMessage: \"other\\n message {} " + strings.Repeat("x", 100) + "\"\nfilePath: src/stream/src/x.rs\n",
	})
	for _, c := range []struct {
		name, args, want string
		code             int
	}{
		{"all", "", "COMPONENT  SEVERITY  ROLE     SLUG   MESSAGE\n" +
			"meta       critical  symptom  local  a local message {}\n" +
			"stream     error     root     other  other message {} xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…\n", 0},
		{"by component", "--component stream", "other", 0},
		{"by severity", "--severity critical,warning", "local", 0},
		{"by role", "--role symptom", "local", 0},
		{"by tag", "--tag ours --tag theirs", "local", 0},
		{"no match", "--tag theirs", "COMPONENT  SEVERITY  ROLE  SLUG  MESSAGE\n", 0},
		{"bad severity", "--severity dire", "", exitUsage},
		{"bad role", "--role boss", "", exitUsage},
		{"bad output", "-o xml", "", exitUsage},
		{"argument", "x", "", exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := rwannotate(t, "", append([]string{"patterns", "list", "--no-embedded", "--patterns", dir}, strings.Fields(c.args)...)...)
			if code != c.code || (code == exitOK) != (errs == "") {
				t.Errorf("exit code %d, want %d; stderr %q", code, c.code, errs)
			}
			if strings.Contains(c.want, "\n") && out != c.want {
				t.Errorf("output:\n%s\nwant:\n%s", out, c.want)
			}
			if lines := strings.Count(out, "\n"); !strings.Contains(out, c.want) || !strings.Contains(c.want, "\n") && code == exitOK && lines != 2 {
				t.Errorf("output has %d lines:\n%s", lines, out)
			}
		})
	}
}

// TestPatternsListJSON: what is listed can be dropped into a --patterns
// directory and is the same record again.
func TestPatternsListJSON(t *testing.T) {
	dir := localTree(t, map[string]string{"meta/local.yaml": localRecord})
	_, first, _ := rwannotate(t, "", "patterns", "list", "--no-embedded", "--patterns", dir, "-o", "json")
	var record struct{ ID, Slug, MessagePattern string }
	if err := json.Unmarshal([]byte(first), &record); err != nil || record.ID != "local-1" || record.MessagePattern != "a local message (.+?)" {
		t.Fatalf("%+v %v from %s", record, err, first)
	}
	again := localTree(t, map[string]string{"local.json": first})
	if code, second, errs := rwannotate(t, "", "patterns", "list", "--no-embedded", "--patterns", again, "-o", "json"); code != 0 || errs != "" || second != first {
		t.Errorf("exit code %d, stderr %q\n%s\nwant\n%s", code, errs, second, first)
	}
}

// TestPatternsOverride: a record of a later directory replaces an embedded one.
func TestPatternsOverride(t *testing.T) {
	one := localTree(t, map[string]string{"x.yaml": "id: f223316b6872918a\nslug: x\nerrorMessage: ours {}\n"})
	two := localTree(t, map[string]string{"y.yaml": "id: f223316b6872918a\nslug: y\nerrorMessage: ours again {}\n"})
	_, plain, _ := rwannotate(t, "", "patterns", "list")
	_, both, _ := rwannotate(t, "", "patterns", "list", "--patterns", one, "--patterns", two)
	if strings.Contains(both, "unexpected-backfill-state ") || strings.Contains(both, "ours {}") || !strings.Contains(both, "ours again {}") {
		t.Error("not overridden by the last directory")
	}
	if strings.Count(plain, "\n") != strings.Count(both, "\n") {
		t.Error("the override added or lost records")
	}
}

// TestPatternsFaults: a bad record is named with its directory, does not take
// the others down, and stops the command with --strict only.
func TestPatternsFaults(t *testing.T) {
	dir := localTree(t, map[string]string{"meta/local.yaml": localRecord, "bad.yaml": "id: a\nseverty: error\n"})
	args := []string{"patterns", "list", "--no-embedded", "--patterns", dir}
	code, out, errs := rwannotate(t, "", args...)
	if code != exitOK || !strings.Contains(out, "local message") || !strings.Contains(errs, filepath.Join(dir, "bad.yaml")+":2:1: error: unknown key \"severty\"; did you mean \"severity\"?") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	if code, out, _ := rwannotate(t, "", append(args, "--strict")...); code != exitConfig || out != "" {
		t.Errorf("--strict: exit code %d, output %q", code, out)
	}
	if code, _, errs := rwannotate(t, "", "patterns", "list", "--patterns", filepath.Join(dir, "nowhere")); code != exitConfig || errs == "" {
		t.Errorf("missing directory: exit code %d, %q", code, errs)
	}
}

func TestPatternsStats(t *testing.T) {
	dir := localTree(t, map[string]string{"meta/local.yaml": localRecord})
	args := []string{"patterns", "stats", "--no-embedded", "--patterns", dir}
	code, out, _ := rwannotate(t, "", args...)
	for _, want := range []string{"1 record, 2 wordings, 0 examples", "\nSeverity\n", "  critical             1\n", "  error                0\n", "  symptom              1\n",
		"  reviewed             1\n", "  16-23                2\n", "Aliases that no example shows: 1\n  local: another local wording\n"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, out)
		}
	}
	code, out, _ = rwannotate(t, "", append(args, "-o", "json")...)
	var stats catalogueStats
	if err := json.Unmarshal([]byte(out), &stats); code != exitOK || err != nil || stats.Records != 1 || stats.Severity["critical"] != 1 {
		t.Errorf("exit code %d, %v, %+v", code, err, stats)
	}
}

func TestPatternsImport(t *testing.T) {
	const published = "../../internal/catalog/testdata/published/"
	page, record := published+"003_31bf0534ce23273b.txt", published+"001_d6313917d8a9374e.txt"
	want := read(t, published+"003_31bf0534ce23273b.yaml") + "---\n" + read(t, published+"001_d6313917d8a9374e.yaml")

	if code, out, errs := rwannotate(t, "", "patterns", "import", page, record); code != exitOK || out != want || errs != "" {
		t.Errorf("exit code %d, stderr %q\n%s", code, errs, out)
	}
	// Alone, the page's commit is known from the embedded catalogue.
	if _, out, _ := rwannotate(t, read(t, page), "patterns", "import", "-"); out != read(t, published+"003_31bf0534ce23273b.yaml") {
		t.Errorf("from standard input:\n%s", out)
	}

	dir := t.TempDir()
	args := []string{"patterns", "import", "-o", dir, page, record}
	code, out, errs := rwannotate(t, "", args...)
	file := filepath.Join(dir, "stream", "should-not-update-vnode-bitmap-during-consuming-lo.yaml")
	if code != exitOK || !strings.HasPrefix(out, file+"\n") || errs != "" || read(t, file) != read(t, published+"003_31bf0534ce23273b.yaml") {
		t.Errorf("-o: exit code %d, stderr %q, output %q", code, errs, out)
	}
	if code, _, errs := rwannotate(t, "", args...); code != exitRuntime || !strings.Contains(errs, "file exists") {
		t.Errorf("again: exit code %d, stderr %q", code, errs)
	}
	if code, _, errs := rwannotate(t, "", append(args, "--force")...); code != exitOK || errs != "" {
		t.Errorf("--force: exit code %d, stderr %q", code, errs)
	}
}

func TestPatternsImportFaults(t *testing.T) {
	dir := localTree(t, map[string]string{"a.txt": "nothing\n", "b.json": `{"id": "b1", "errorMessage": "fine {}"}`})
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.json")
	code, out, errs := rwannotate(t, "", "patterns", "import", a, b)
	if code != exitConfig || !strings.HasPrefix(out, "id: b1\n") || !strings.Contains(errs, a+": error: this is neither JSON nor a record's page") ||
		!strings.Contains(errs, "1 of 2 files could not be imported") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	if code, _, errs := rwannotate(t, "", "patterns", "import", filepath.Join(dir, "c")); code != exitRuntime || !strings.Contains(errs, "no such file") {
		t.Errorf("missing file: exit code %d, %q", code, errs)
	}
	if code, _, _ := rwannotate(t, "", "patterns", "import"); code != exitUsage {
		t.Errorf("no file: exit code %d", code)
	}
	if code, _, _ := rwannotate(t, "", "patterns"); code != exitUsage {
		t.Errorf("no subcommand: exit code %d", code)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
