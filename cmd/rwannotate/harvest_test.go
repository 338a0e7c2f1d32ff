package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// sourceTree writes a small RisingWave source with three texts of the
// embedded catalogue: as it is, reworded, moved.
func sourceTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"src/meta/src/controller/fragment.rs":                            "fn f() {\n    bail!(\"the snapshot backfill epoch was set again: {} {} {}\", a, b, c);\n    bail!(\"brand new trouble with {}\", x);\n}\n",
		"src/meta/src/elsewhere.rs":                                      "fn f() { tracing::warn!(\"mismatch initial vnode bitmap: {:?}, expect: {:?}\", a, b) }\n",
		"src/stream/src/executor/backfill/snapshot_backfill/executor.rs": "fn f() { bail!(\"should not update vnode bitmap during consuming log store\") }\n",
		"java/a/A.java": "class A { void f() { LOG.error(\"sink closed: {}\", x); } }\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHarvest(t *testing.T) {
	src := sourceTree(t)
	code, out, errs := execute(t, "patterns", "harvest", src, "--format", "tsv", "--new")
	want := "error\tjava/a/A.java\t1\tsink closed: {}\n" +
		"error\tsrc/meta/src/controller/fragment.rs\t2\tthe snapshot backfill epoch was set again: {} {} {}\n" +
		"error\tsrc/meta/src/controller/fragment.rs\t3\tbrand new trouble with {}\n"
	if code != exitOK || out != want || errs != "" {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, _ := execute(t, "patterns", "harvest", src, "--level", "warn"); code != exitOK || !strings.Contains(out, "mismatch initial vnode bitmap") || !strings.Contains(out, "\n1 message\n") {
		t.Errorf("exit %d\n%s", code, out)
	}

	dir := filepath.Join(t.TempDir(), "drafts")
	if code, out, errs := execute(t, "patterns", "harvest", src, "--new", "-o", dir); code != exitOK || !strings.HasPrefix(out, "3 drafts") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	records, problems := catalog.Load(os.DirFS(dir))
	if len(records) != 3 || len(problems) > 0 {
		t.Errorf("%d drafts load: %v", len(records), problems)
	}
	if code, _, errs := execute(t, "patterns", "harvest", src, "-o", dir, "--new"); code != exitRuntime || !strings.Contains(errs, "exists") {
		t.Errorf("written over: exit %d, %s", code, errs)
	}
	if code, out, _ := execute(t, "patterns", "harvest", src, "--new", "--format", "yaml"); code != exitOK || strings.Count(out, "\n---\n") != 2 {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestHarvestUsage(t *testing.T) {
	empty := t.TempDir()
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "x.rs"), []byte(`fn f() { bail!("a b") }`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"harvest"}, exitUsage, "arg"},
		{[]string{"harvest", empty, "--level", "loud"}, exitUsage, "loud"},
		{[]string{"harvest", empty, "--format", "xml"}, exitUsage, "xml"},
		{[]string{"harvest", filepath.Join(empty, "none")}, exitRuntime, "no such file"},
		{[]string{"harvest", empty}, exitRuntime, "no Rust or Java source"},
		{[]string{"drift", other}, exitUsage, "root of RisingWave"},
		{[]string{"drift", filepath.Join(other, "x.rs")}, exitUsage, "not a directory"},
		{[]string{"drift", other, "-o", "xml"}, exitUsage, "xml"},
		{[]string{"coverage", "-o", "xml"}, exitUsage, "xml"},
	} {
		code, _, errs := execute(t, append([]string{"patterns"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, want %d; %s", c.args, code, c.code, errs)
		}
	}
}

func TestDrift(t *testing.T) {
	src := sourceTree(t)
	code, out, errs := execute(t, "patterns", "drift", src)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"reworded  meta/snapshot-backfill-epoch-set-again\n",
		"now  the snapshot backfill epoch was set again: {} {} {}\n",
		"src/meta/src/controller/fragment.rs:2\n",
		"moved     stream/mismatch-initial-vnode-bitmap-expect\n",
		"now  src/meta/src/elsewhere.rs:1\n",
		"1 the same, 1 moved",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%.3000s", want, out)
		}
	}
	code, out, _ = execute(t, "patterns", "drift", src, "-o", "json")
	status := map[string]string{}
	for line := range strings.Lines(out) {
		var row driftRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		status[row.Slug] = row.Status
	}
	if code != exitOK || status["should-not-update-vnode-bitmap-during-consuming-lo"] != "same" || status["unexpected-backfill-state"] != "gone" {
		t.Errorf("exit %d, %v", code, status)
	}
}
