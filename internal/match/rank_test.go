package match

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/logline"
)

// ranked is what a result is about, for comparison.
type ranked struct {
	ID, Via string
	Chain   []string
	Others  []string
}

func rankOf(res Result) ranked {
	r := ranked{ID: res.Record.ID, Via: res.Via, Chain: res.Chain}
	for _, o := range res.Others {
		r.Others = append(r.Others, o.ID)
	}
	return r
}

const (
	wrapperText = "Executor error: {}"
	storageText = "Storage error: {}"
	symptomText = "Actor {} exited unexpectedly: {}"
	rootText    = "sink buffer is full of rows: {}"
)

func chainRecords() []catalog.Record {
	return []catalog.Record{
		{ID: "executor", ErrorMessage: wrapperText, Role: catalog.RoleWrapper, Severity: catalog.SeverityError},
		{ID: "storage", ErrorMessage: storageText, Role: catalog.RoleWrapper, Severity: catalog.SeverityInfo},
		{ID: "symptom", ErrorMessage: symptomText, Role: catalog.RoleSymptom, Severity: catalog.SeverityError},
		{ID: "root", ErrorMessage: rootText, Severity: catalog.SeverityError},
		{ID: "other", ErrorMessage: "the disk of the node is gone", Severity: catalog.SeverityError, Role: catalog.RoleRoot},
		{ID: "level", ErrorMessage: "reached end of stream here", MinLevel: "warn"},
		{ID: "target", ErrorMessage: "fragment was not found", Targets: []string{"risingwave_meta::"}},
	}
}

func TestRanking(t *testing.T) {
	m := mustNew(t, chainRecords())
	for _, c := range []struct {
		name, record string
		want         ranked // ID "" for nothing
	}{
		{"root below its wrappers", logHead + "x error=Actor 17 exited unexpectedly: Executor error: Storage error: sink buffer is full of rows: 3",
			ranked{"root", "field", []string{symptomText, wrapperText, storageText}, nil}},
		{"symptom above its wrapper", logHead + "x error=Actor 17 exited unexpectedly: Executor error: new thing", ranked{"symptom", "field", nil, []string{"executor"}}},
		{"wrapper alone", logHead + "x error=Executor error: new thing", ranked{"executor", "field", nil, nil}},
		{"wrapper of severity info is context only", logHead + "x error=Storage error: new thing", ranked{}},
		{"the inner root of two", logHead + "the disk of the node is gone: sink buffer is full of rows: 3", ranked{"root", "message", []string{"the disk of the node is gone"}, nil}},
		{"a root inside the argument of another", logHead + "sink buffer is full of rows: the disk of the node is gone", ranked{"other", "message", []string{rootText}, nil}},
		{"root before a symptom", logHead + "sink buffer is full of rows: 3 reason=Actor 17 exited unexpectedly: x", ranked{"root", "message", nil, []string{"symptom"}}},
		{"nothing", logHead + "all is well", ranked{}},

		{"level too low", "2026-11-30T09:14:07Z  INFO risingwave_meta::x: reached end of stream here", ranked{}},
		{"level high enough", "2026-11-30T09:14:07Z  WARN risingwave_meta::x: reached end of stream here", ranked{"level", "message", nil, nil}},
		{"level unknown", "reached end of stream here", ranked{"level", "message", nil, nil}},
		{"a span's text is an error whatever the level", "2026-11-30T09:14:07Z  INFO a{error=reached end of stream here}: risingwave_meta::x: y", ranked{"level", "span", nil, nil}},
		{"target of another", "2026-11-30T09:14:07Z ERROR risingwave_frontend::x: fragment was not found", ranked{}},
		{"its target", "2026-11-30T09:14:07Z ERROR risingwave_meta::barrier: fragment was not found", ranked{"target", "message", nil, nil}},
		{"no target", "fragment was not found", ranked{"target", "message", nil, nil}},

		{"event before span", "2026-11-30T09:14:07Z ERROR a{error=sink buffer is full of rows: 3}: risingwave_meta::x: y error=the disk of the node is gone", ranked{"other", "field", nil, nil}},
		{"span only", "2026-11-30T09:14:07Z ERROR a{error=sink buffer is full of rows: 3}: risingwave_meta::x: y", ranked{"root", "span", nil, nil}},
		{"SQL only", `2026-11-30T09:14:07Z ERROR a{sql=SELECT 'the disk of the node is gone'}: pgwire::x: y`, ranked{}},
		{"JSON, statements only", `{"level":"ERROR","fields":{"message":"x","definition":"SELECT 'the disk of the node is gone'","stmt":"the disk of the node is gone"},"spans":[{"sql":"the disk of the node is gone","name":"q"}]}`, ranked{}},
		{"continuation", logHead + "failed\n\nCaused by:\n  the disk of the node is gone", ranked{"other", "continuation", nil, nil}},
		{"panic", "thread 'x' (1) panicked at src/x.rs:1:2:\nthe disk of the node is gone\nnote: x", ranked{"other", "panic", nil, nil}},
		{"JSON message", `{"fields":{"message":"the disk of the node is gone"}}`, ranked{"other", "message", nil, nil}},
		{"JSON field", `{"fields":{"err":"the disk of the node is gone"}}`, ranked{"other", "field", nil, nil}},
		{"frames say nothing", logHead + "failed\n\nBacktrace:\n   0: the disk of the node is gone", ranked{}},
		{"part of a longer word", logHead + "xthe disk of the node is gone", ranked{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := logline.Parse([]byte(c.record))
			var got ranked
			if res, ok := m.Match(&rec, 0); ok {
				got = rankOf(res)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAlike: records whose texts match the same place.
func TestAlike(t *testing.T) {
	recs := []catalog.Record{
		{ID: "5", ErrorMessage: "failed to build executor", FilePath: "src/stream/src/x.rs"},
		{ID: "4", ErrorMessage: "failed to build executors and trigger execution", FilePath: "src/stream/src/x.rs"},
		{ID: "3", ErrorMessage: "wait version not set", FilePath: "src/storage/src/a.rs"},
		{ID: "2", ErrorMessage: "wait version not set", FilePath: "src/meta/src/a.rs"},
		{ID: "1", ErrorMessage: "wait version not set", FilePath: "src/batch/src/a.rs", Targets: []string{"risingwave_batch::task"}},
		{ID: "7", ErrorMessage: "table is unknown: {}", FilePath: "src/meta/src/a.rs"},
		{ID: "6", ErrorMessage: "table is unknown: {}", FilePath: "src/meta/src/b.rs"},
	}
	for _, c := range []struct {
		name, target, text string
		want               ranked
	}{
		{"most literal bytes", "", "failed to build executors and trigger execution", ranked{"4", "message", nil, nil}},
		{"the shorter alone", "", "failed to build executor", ranked{"5", "message", nil, nil}},
		{"targets", "risingwave_batch::task::x", "wait version not set", ranked{"1", "message", nil, nil}},
		{"crate of the file", "risingwave_meta::x", "wait version not set", ranked{"2", "message", nil, nil}},
		{"no telling: the lowest id, the rest are others", "", "wait version not set", ranked{"1", "message", nil, []string{"2", "3"}}},
		{"same crate: the lowest id", "risingwave_meta::x", "table is unknown: t", ranked{"6", "message", nil, []string{"7"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range 100 { // the order never depends on a map's
				m := mustNew(t, recs)
				res, ok := matchText(m, "ERROR", c.target, c.text)
				if !ok {
					t.Fatal("nothing is found")
				}
				if d := cmp.Diff(c.want, rankOf(res)); d != "" {
					t.Fatalf("run %d: %s", i, d)
				}
			}
		})
	}
}

// TestMatchIsStable: the embedded catalogue over a record with many of its
// texts gives the same each time, in whatever order it was loaded.
func TestMatchIsStable(t *testing.T) {
	recs := embedded(t)
	text := ""
	for i := 0; i < len(recs); i += 7 {
		text += catalog.Instantiate(recs[i].ErrorMessage, nil) + "; "
	}
	want, ok := matchText(mustNew(t, recs), "ERROR", "risingwave_meta::x", text)
	if !ok {
		t.Fatal("nothing is found")
	}
	for i := range 10 {
		if recs = slices.Clone(recs); i%2 == 0 {
			slices.Reverse(recs)
		}
		m := mustNew(t, recs)
		for range 10 {
			got, _ := matchText(m, "ERROR", "risingwave_meta::x", text)
			if d := cmp.Diff(rankOf(want), rankOf(got)); d != "" {
				t.Fatalf("run %d: %s", i, d)
			}
		}
	}
}

// TestFrom: what ends before the offset was reported with the record before.
func TestFrom(t *testing.T) {
	m := mustNew(t, chainRecords())
	text := "the disk of the node is gone, sink buffer is full of rows: 3"
	rec := logline.Record{Segments: []logline.Segment{{Text: text}}}
	for from, want := range map[int]string{0: "root", 10: "root", 28: "root", len(text) - 1: "root", len(text): ""} {
		got := ""
		if res, ok := m.Match(&rec, from); ok {
			got = res.Record.ID
			if from >= 28 && len(res.Chain) > 0 {
				t.Errorf("from %d: %q is in the chain", from, res.Chain)
			}
		}
		if got != want {
			t.Errorf("from %d: %q, want %q", from, got, want)
		}
	}
}

func TestAliases(t *testing.T) {
	m := mustNew(t, []catalog.Record{{ID: "a", ErrorMessage: "failed to open the table {}: {}", Aliases: []string{"fail to open table: {}"}}})
	res, ok := matchText(m, "ERROR", "", "fail to open table: t1")
	if !ok || res.Template != "fail to open table: {}" || !slices.Equal(res.Args, []string{"t1"}) || res.Record.ID != "a" {
		t.Errorf("%+v", res)
	}
}

func TestConfidence(t *testing.T) {
	recs := []catalog.Record{
		{ID: "long", ErrorMessage: "a text of more than twenty bytes", FilePath: "src/meta/src/x.rs"},
		{ID: "mid", ErrorMessage: "fourteen bytes: {}", FilePath: "src/meta/src/x.rs"},
		{ID: "short", ErrorMessage: "overflow: {}"},
		{ID: "twin1", ErrorMessage: "two records have this very text"}, {ID: "twin2", ErrorMessage: "two records have this very text"},
	}
	m := mustNew(t, recs)
	for _, c := range []struct{ target, text, want string }{
		{"risingwave_meta::x", recs[0].ErrorMessage, High},
		{"", recs[0].ErrorMessage, High},
		{"risingwave_stream::x", recs[0].ErrorMessage, Medium},
		{"risingwave_meta::x", "fourteen bytes: 1", Medium},
		{"", "overflow: 1", Low},
		{"", recs[3].ErrorMessage, Medium},
	} {
		if res, ok := matchText(m, "ERROR", c.target, c.text); !ok || res.Confidence != c.want {
			t.Errorf("%s %q: %q, want %q", c.target, c.text, res.Confidence, c.want)
		}
	}
}

func TestLookup(t *testing.T) {
	m := mustNew(t, []catalog.Record{{ID: "0123", Slug: "the-slug", ErrorMessage: "a message to look for"}})
	for _, name := range []string{"0123", "the-slug"} {
		if r, ok := m.Lookup(name); !ok || r.ID != "0123" {
			t.Errorf("%q is not found", name)
		}
	}
	for _, name := range []string{"", "012", "the"} {
		if _, ok := m.Lookup(name); ok {
			t.Errorf("%q is found", name)
		}
	}
}

func TestClosest(t *testing.T) {
	m := mustNew(t, embedded(t))
	for asked, want := range map[string]string{
		"the mismatched vnode bitmap was not as expect":        "mismatch-initial-vnode-bitmap-expect",
		"epoch of snapshot backfill was set once again":        "snapshot-backfill-epoch-set-again",
		"SNAPSHOT BACKFILL PAUSED BUT RECEIVED A CHUNK":        "snapshot-backfill-paused-but-received-snapshot-ch",
		"some backfill state that is unexpected: Something(1)": "unexpected-backfill-state",
	} {
		near := m.Closest(asked, 3)
		if len(near) > 3 || !slices.ContainsFunc(near, func(r *catalog.Record) bool { return r.Slug == want }) {
			var slugs []string
			for _, r := range near {
				slugs = append(slugs, r.Slug)
			}
			t.Errorf("%q: %q is not among %q", asked, want, slugs)
		}
	}
	for _, asked := range []string{"", "zzz qqq", "a"} {
		if near := m.Closest(asked, 3); len(near) > 0 {
			t.Errorf("%q comes close to %q", asked, near[0].Slug)
		}
	}
	if near := m.Closest("snapshot backfill", 0); len(near) > 0 {
		t.Errorf("%d records though none was asked for", len(near))
	}
}

func BenchmarkMatch(b *testing.B) {
	m := mustNew(b, embedded(b))
	for name, text := range map[string]string{
		"one root":  logHead + "x error=Executor error: Unexpected backfill state: " + debugValue + " actor_id=17",
		"rejected":  logHead + "x error=Unexpected backfill status",
		"long text": logHead + fmt.Sprintf("x error=Unexpected backfill state: %0*d", 16<<10, 7),
	} {
		rec := logline.Parse([]byte(text))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Match(&rec, 0)
			}
		})
	}
}
