package harvest

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

const sha = "448c6570b1b9d636736708340f61a85900c2b7d7"

func TestDrafts(t *testing.T) {
	drafts := Drafts([]Message{
		{"snapshot epoch not set for {:?}", "anyhow", "error", "src/stream/src/a.rs", 192},
		{"snapshot epoch not set for {x}", "bail", "error", "src/stream/src/b.rs", 7}, // the same wording
		{"a (b) {}", "warn", "warn", "src/meta/src/c.rs", 1},
		{"a b {}", "panic", "panic", "src/meta/src/d.rs", 2}, // the same slug
		{"all is well", "info", "info", "src/meta/src/d.rs", 3},
		{"{}", "LOG.error", "error", "java/x/X.java", 4}, // no slug
	}, sha)
	var got []string
	for _, r := range drafts {
		got = append(got, fmt.Sprint(r.Component, " ", r.Slug, " ", r.Severity, " ", r.ErrorType, " ", r.MessagePattern, " ", r.FilePath, ":", r.LineNumber))
	}
	want := []string{
		"connector-node " + hash("connector-node/{}")[:6] + " error log (.+?) java/x/X.java:4",
		`meta a-b warning log a \(b\) (.+?) src/meta/src/c.rs:1`,
		"meta a-b-" + hash("meta/a b {}")[:6] + " critical panic a b (.+?) src/meta/src/d.rs:2",
		"stream snapshot-epoch-not-set-for error exception snapshot epoch not set for (.+?) src/stream/src/a.rs:192",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	last := drafts[3]
	if last.ID != hash("stream/snapshot-epoch-not-set-for")[:16] || last.GithubURL != "https://github.com/risingwavelabs/risingwave/blob/"+sha+"/src/stream/src/a.rs#L192" {
		t.Errorf("id %s, link %s", last.ID, last.GithubURL)
	}
}

func TestDistinct(t *testing.T) {
	healthy := []Message{{Text: "committing epoch {}", Level: "info"}, {Text: "task {} failed, retry", Level: "debug"}, {Text: "lost {}", Level: "warn"}}
	drafts := Drafts([]Message{{Text: "committing", Level: "error", Kind: "bail"}, {Text: "{} failed", Level: "error"}, {Text: "lost {}", Level: "warn"},
		{Text: "committing epoch twice", Level: "error"}}, "")
	var kept []string
	for _, r := range Distinct(drafts, healthy) {
		kept = append(kept, r.ErrorMessage)
	}
	if diff := cmp.Diff([]string{"committing epoch twice", "lost {}"}, kept); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDraftsLoad: a draft is a record that the loader takes without an error.
func TestDraftsLoad(t *testing.T) {
	tree := fstest.MapFS{}
	texts := []string{"a: b {}", "line\nbreak {name:?}", "`quoted` \"{}\" and {{braces}}", "  leading", "- dash: {}", "100% of {}", "tab\there"}
	for i, text := range texts {
		r := Drafts([]Message{{text, "bail", "error", "src/meta/src/x.rs", i + 1}}, sha)[0]
		tree[r.Component+"/"+r.Slug+".yaml"] = &fstest.MapFile{Data: r.AppendYAML(nil)}
	}
	records, problems := catalog.Load(tree)
	if len(problems) > 0 || len(records) != len(texts) {
		t.Errorf("%d of %d drafts load: %v", len(records), len(texts), problems)
	}
	for _, r := range records {
		if r.ErrorMessage != texts[r.LineNumber-1] {
			t.Errorf("%q was written as %q", texts[r.LineNumber-1], r.ErrorMessage)
		}
	}
}

func TestCommit(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, tree := range map[string]fstest.MapFS{
		"detached": {".git/HEAD": file(sha + "\n")},
		"branch":   {".git/HEAD": file("ref: refs/heads/main\n"), ".git/refs/heads/main": file(sha + "\n")},
		"packed":   {".git/HEAD": file("ref: refs/heads/main\n"), ".git/packed-refs": file("# pack-refs\n" + sha + " refs/heads/main\n")},
	} {
		if got := Commit(tree); got != sha {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Commit(fstest.MapFS{".git": file("gitdir: elsewhere")}); got != "" {
		t.Errorf("no commit to be seen, got %q", got)
	}
}

func TestDrifts(t *testing.T) {
	tree := fstest.MapFS{
		"src/meta/src/a.rs": {Data: []byte(`
			bail!("kept {}", x);
			bail!("failed to create the control stream worker {}", x);
			error!("completely different thing about {}", y);
			bail!("now called this way");
			const LATE: &str = "text of a constant";
			unimplemented!("write model {} to store");`)},
		"src/meta/src/b.rs": {Data: []byte(`bail!("moved text of {name}", name);`)},
	}
	messages, err := Source(tree)
	if err != nil {
		t.Fatal(err)
	}
	record := func(text, file string, aliases ...string) catalog.Record {
		return catalog.Record{Slug: catalog.Slug(text), ErrorMessage: text, FilePath: file, LineNumber: 3, Aliases: aliases}
	}
	records := []catalog.Record{
		record("kept {name:?}", "src/meta/src/a.rs"),
		record("moved text of {}", "src/meta/src/a.rs"),
		record("fail to create control stream worker {}", "src/meta/src/a.rs"),
		record("the old way", "src/meta/src/a.rs", "now called this way"),
		record("text of a constant", "src/meta/src/a.rs"),
		record("nothing like it anywhere {}", "src/meta/src/a.rs"),
		record("text of a library", ""),
		record("called `Option::unwrap()` on a `None` value", "src/utils/runtime/src/panic_hook.rs"),
		record("not implemented: write model {} to store", "src/meta/src/a.rs"),
	}
	var got []string
	for _, d := range Drifts(tree, messages, records) {
		got = append(got, fmt.Sprintf("%s %s:%d %s", d.Status, strings.TrimPrefix(d.Found.File, "src/meta/src/"), d.Found.Line, d.Found.Text))
	}
	want := []string{
		"same a.rs:2 kept {}",
		"moved b.rs:1 moved text of {name}",
		"reworded a.rs:3 failed to create the control stream worker {}",
		"alias a.rs:5 now called this way",
		"same a.rs:0 text of a constant",
		"gone :0 ",
		"foreign :0 ",
		"foreign :0 ",
		"same a.rs:7 write model {} to store",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
