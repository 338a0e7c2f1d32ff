package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// strangeLog holds one known error, three unknown records of two kinds and a
// healthy one.
const strangeLog = `2026-08-21T14:06:38.1Z  INFO risingwave_meta::x: all is well
2026-08-21T14:06:38.2Z ERROR risingwave_stream::x: actor exit with error actor_id=1 error=Executor error: should not update vnode bitmap during consuming log store
2026-08-21T14:06:39.3Z  WARN risingwave_stream::x: flux capacitor "a" off by 12% password=hunter2
2026-08-21T14:06:40.4Z  WARN risingwave_stream::x: flux capacitor "b" off by 7% password=hunter2
2026-08-21T14:06:41.5Z ERROR risingwave_meta::x: the meta store said no to 3 rows
`

func TestScanUnknown(t *testing.T) {
	log := writeFile(t, "x.log", strangeLog)
	code, out, errs := execute(t, "scan", "--unknown", log)
	var rows []unknownRow
	for line := range strings.Lines(out) {
		var row unknownRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if code != exitOK || errs != "" || len(rows) != 2 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	r := rows[0]
	if r.Count != 2 || r.Level != "warn" || r.Template != `flux capacitor "{}" off by {}` || r.Components["compute"] != 2 || r.Last.Sub(r.First).Seconds() != 1.1 || strings.Contains(out, "hunter2") {
		t.Errorf("%s", out)
	}

	code, out, _ = execute(t, "scan", "--unknown", "-o", "text", log)
	if code != exitOK || !strings.HasPrefix(out, "3 records of 2 kinds that the catalogue does not know, and 1 known error, in 1 input") || !strings.Contains(out, "      2×  warn  flux capacitor") {
		t.Errorf("exit %d\n%s", code, out)
	}
	code, out, _ = execute(t, "scan", "--unknown", "--since", "2026-08-21T14:06:41Z", log)
	if code != exitOK || strings.Count(out, "\n") != 1 || !strings.Contains(out, "the meta store said no to {} rows") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestScanUnknownYAML: the drafts are records, and with them nothing is unknown.
func TestScanUnknownYAML(t *testing.T) {
	log := writeFile(t, "x.log", strangeLog)
	code, out, errs := execute(t, "scan", "--unknown", "-o", "yaml", log)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	dir := t.TempDir()
	for i, doc := range strings.Split(out, "\n---\n") {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".yaml"), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	records, problems := catalog.Load(os.DirFS(dir))
	if len(records) != 2 || catalog.HasErrors(problems) {
		t.Fatalf("%d records, %v\n%s", len(records), problems, out)
	}
	if code, out, errs := execute(t, "scan", "--unknown", "--patterns", dir, log); code != exitOK || out != "" {
		t.Errorf("exit %d, still unknown:\n%s%s", code, out, errs)
	}
}

func TestScanUnknownUsage(t *testing.T) {
	for _, args := range [][]string{{"--unknown", "-o", "inline"}, {"-o", "yaml"}} {
		if code, _, errs := execute(t, append([]string{"scan", os.DevNull}, args...)...); code != exitUsage || !strings.Contains(errs, "want auto, text, json") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}

func TestCoverage(t *testing.T) {
	log := writeFile(t, "x.log", strangeLog)
	code, out, errs := execute(t, "patterns", "coverage", log)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{"compute  3        1          33.3 %", "meta     1        0          0.0 %", "ERROR    2        1          50.0 %", "all      4        1          25.0 %", "Not explained, 2 kinds"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	code, out, _ = execute(t, "patterns", "coverage", "-o", "json", "--top", "1", log)
	var got struct {
		Records, Explained int64
		Component, Level   map[string]tally
		Unexplained        []unknownRow
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if code != exitOK || got.Records != 4 || got.Explained != 1 || got.Level["WARN"].Records != 2 || len(got.Unexplained) != 1 {
		t.Errorf("exit %d\n%s", code, out)
	}
}
