package unknown

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/harvest"
	"github.com/rwannotate/rwannotate/internal/logline"
)

var testKnown = []harvest.Message{
	{Text: "`interval` field is not decodable", Level: "error", File: "src/stream/src/from_proto/now.rs", Line: 61},
	{Text: "`lag` field is not decodable", Level: "error", File: "src/stream/src/from_proto/now.rs", Line: 63},
	{Text: "failed to read s3 object {}", Level: "error", File: "src/object_store/src/s3.rs", Line: 5},
	{Text: "table {} is not found in the catalog", Level: "error", File: "src/meta/src/x.rs", Line: 1},
	{Text: "table {} is not found in the catalog", Level: "error", File: "src/stream/src/y.rs", Line: 2},
	{Text: "Failed to run the query: {}", Level: "error", File: "src/frontend/src/z.rs", Line: 3},
	{Text: "wait version not set", Level: "panic", File: "src/meta/src/p.rs", Line: 9},
}

// header makes a record of the text form.
func header(level, rest string) string { return "2026-08-21T14:06:38.556Z " + level + " " + rest }

func TestFold(t *testing.T) {
	const at = "risingwave_stream::executor: "
	f := folder{keep: newKnown(testKnown, "").keep}
	for _, c := range []struct{ name, text, want string }{
		{"numbers", "epoch 8321498123468800 of actor 17, took 1.25s (0x1f)", "epoch {} of actor {}, took {} ({})"},
		{"ids", "worker 6f1c2d3e-1111-2222-3333-444455556666 at 10.42.3.17:5688 deadbeefcafe", "worker {} at {} {}"},
		{"paths", "open /var/lib/rw/x and hummock_001/12/3.data from s3://bucket/a b@c.d", "open {} and {} from {} {}"},
		{"quoted", "no \"a b\" for `t1`.`c` or 'x y', don't", "no \"{}\" for `{}`.`{}` or '{}', don't"},
		{"quoted in a message", "`interval` field is not decodable", "`interval` field is not decodable"},
		{"word with a digit in a message", "failed to read s3 object 12", "failed to read s3 object {}"},
		{"lists", "splits [1, 2, 3] and 1, 2, 3 of {a: 1, b: {c: 2}} [Schema history] x", "splits {} and {} of {} [Schema history] x"},
		{"fields", `failed actor_id=17 state=Some(A b) table="x y" host=HostAddress { host: "h", port: 1 }`, "failed"},
		{"fields and error", `failed id=1 error=Sink error: sink_id=5, error: no such topic elapsed=3ms x=y`, "failed error=Sink error: sink_id={}, error: no such topic"},
		{"field in a sentence", "source_id=5 is gone because job_id=6 failed", "source_id={} is gone because job_id={} failed"},
		{"causes", "outer error=a\n\nCaused by:\n  0: b 12\n  1: c\n\nBacktrace:\n  0: main", "outer error=a Caused by: {}: b {} {}: c"},
		{"torn", `cut in "the middle of [1, 2`, `cut in "the middle of [{}`},
	} {
		rec := logline.Parse([]byte(header("ERROR", at+c.text)))
		if got := string(f.record(nil, &rec)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestFormsAgree: the same event is the same kind in every form.
func TestFormsAgree(t *testing.T) {
	g := New(Options{})
	for _, text := range []string{
		header("ERROR", `risingwave_meta::x: failed to do id=7 error=Executor error: table "a" is 3 bytes splits=["0", "1"]`),
		header("ERROR", `actor{id=1}: risingwave_meta::x: failed to do id=8 table_name="q" error=Executor error: table "b" is 4 bytes`),
		`{"timestamp":"2026-08-21T14:06:40Z","level":"ERROR","fields":{"message":"failed to do","id":"9","error":"Executor error: table \"c\" is 5 bytes\n\nBacktrace:\n 0: x"},"target":"risingwave_meta::x"}`,
		"  2026-08-21T14:06:41.183461124Z ERROR risingwave_meta::x: failed to do, id: 9, error: Executor error: table \"d\" is 6 bytes, splits: [\"0\"]\n    at src/meta/src/x.rs:8\n",
	} {
		rec := logline.Parse([]byte(text))
		g.Add(&rec, time.Now(), "meta")
	}
	groups := g.Groups()
	if len(groups) != 1 || groups[0].Count != 4 {
		for _, group := range groups {
			t.Errorf("%d× %s", group.Count, group.Template)
		}
	}
}

func TestGroups(t *testing.T) {
	known := newKnown(testKnown, "")
	at := time.Date(2026, 8, 21, 14, 0, 0, 0, time.UTC)
	g := New(Options{Known: known})
	add := func(text, component string) {
		rec := logline.Parse([]byte(text))
		at = at.Add(time.Second)
		g.Add(&rec, at, component)
	}
	const target = "risingwave_stream::y: "
	for i := range 3 {
		add(header("WARN", target+fmt.Sprintf("retry %d", i)), "compute")
	}
	add(header("ERROR", "risingwave_meta::x: retry 9"), "meta")
	add(header("ERROR", target+"x error=`interval` field is not decodable"), "compute")
	add(header("ERROR", target+"x error=`lag` field is not decodable"), "compute")
	for _, name := range []string{"orders", "users", "lines"} { // no digits, no quotes: only the source tells that it varies
		add(header("ERROR", target+"x error=Failed to run the query: table "+name+" is not found in the catalog"), "compute")
	}
	add(header("ERROR", target+"x error=Failed to run the query: something else"), "compute")
	add("thread 'rw-main' (7) panicked at src/meta/src/p.rs:44:5:\nwait version not set\nnote: x", "meta")
	add("thread 'rw-main' (7) panicked at src/meta/src/q.rs:45:5:\nwait version not set", "meta")
	add(header("WARN", "etcd::x: table a is not found in the catalog"), "")

	var got []string
	for _, group := range g.Groups() {
		site := "-"
		if group.Site != nil {
			site = fmt.Sprintf("%s:%d %s +%d", group.Site.File, group.Site.Line, group.Site.Template, group.Site.Others)
		}
		got = append(got, fmt.Sprintf("%d %s %s @ %s", group.Count, group.Level(), group.Template, site))
	}
	want := []string{
		"4 error retry {} @ -",
		"3 error x error=Failed to run the query: table {} is not found in the catalog @ src/stream/src/y.rs:2 table {} is not found in the catalog +1",
		"1 error x error=Failed to run the query: something else @ src/frontend/src/z.rs:3 Failed to run the query: {} +0",
		"1 error x error=`interval` field is not decodable @ src/stream/src/from_proto/now.rs:61 `interval` field is not decodable +0",
		"1 error x error=`lag` field is not decodable @ src/stream/src/from_proto/now.rs:63 `lag` field is not decodable +0",
		"1 panic src/meta/src/p.rs:44:5: wait version not set @ src/meta/src/p.rs:44 wait version not set +0",
		"1 panic src/meta/src/q.rs:45:5: wait version not set @ src/meta/src/q.rs:45  +0",
		"1 warn table a is not found in the catalog @ -",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	first := g.Groups()[0]
	if fmt.Sprint(first.Levels, first.Components, first.Last.Sub(first.First)) != "[{WARN 3} {ERROR 1}] [{compute 3} {meta 1}] 3s" {
		t.Errorf("of the first: %v %v %v", first.Levels, first.Components, first.Last.Sub(first.First))
	}
}

// TestBounded: a storm of texts that never repeat is counted in bounded memory.
func TestBounded(t *testing.T) {
	known := newKnown(testKnown, "")
	g := New(Options{MaxGroups: 100, Known: known})
	name := func(i int) string {
		return strings.Repeat(string(rune('a'+i%26)), 1+i/26%40) + strings.Repeat("xy", i/1040)
	}
	const records = 20_000
	var before, after runtime.MemStats
	for i := range records {
		rec := logline.Parse([]byte(header("ERROR", "risingwave_meta::x: never seen "+name(i)+strings.Repeat(" long tail", 200))))
		g.Add(&rec, time.Unix(int64(i), 0), "meta")
		if i == 1000 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("%d bytes more after %d records", grown, records)
	}
	var sum int64
	for _, group := range g.Groups() {
		sum += group.Count
	}
	if n := len(g.Groups()); n != 100 || sum+g.Rest().Count != records {
		t.Errorf("%d groups, %d records of %d counted", n, sum+g.Rest().Count, records)
	}
	for i := range 500 { // a known message with ever new names is one group, however small the table of aliases
		rec := logline.Parse([]byte(header("ERROR", "risingwave_meta::x: table "+name(i)+" is not found in the catalog")))
		small := New(Options{MaxGroups: 2, Known: known})
		small.Add(&rec, time.Unix(0, 0), "")
		if len(small.Groups()) != 1 {
			t.Fatal("no group")
		}
	}
	runtime.KeepAlive(g)
}

func TestAliasesBounded(t *testing.T) {
	g := New(Options{MaxGroups: 10, Known: newKnown(testKnown, "")})
	for i := range 1000 {
		name := strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprint(i))
		rec := logline.Parse([]byte(header("ERROR", "risingwave_meta::x: table "+name+" is not found in the catalog")))
		g.Add(&rec, time.Unix(0, 0), "")
	}
	if groups := g.Groups(); len(groups) != 1 || groups[0].Count != 1000 || len(g.aliases) > 20 {
		t.Errorf("%d groups, %d aliases", len(groups), len(g.aliases))
	}
}

func TestMask(t *testing.T) {
	g := New(Options{Mask: func(s string) string { return strings.ReplaceAll(s, "hunter", "***") }})
	rec := logline.Parse([]byte(header("ERROR", "x: login hunter failed"+strings.Repeat(" ab hunter", 300))))
	g.Add(&rec, time.Now(), "")
	got := g.Groups()[0]
	if strings.Contains(got.Sample+got.Template, "hunt") || !strings.Contains(got.Template, "***") || len(got.Sample) > maxSample+4 {
		t.Errorf("template %s\nsample (%d bytes) %s", got.Template, len(got.Sample), got.Sample)
	}
}

// TestDrafts: a draft matches its own sample, and loads.
func TestDrafts(t *testing.T) {
	g := New(Options{Known: newKnown(testKnown, "")})
	for _, text := range []string{
		header("ERROR", "risingwave_meta::x: y error=table orders is not found in the catalog"),
		header("WARN", `risingwave_meta::x: cannot reach "kafka" after 3 tries id=7`),
		header("ERROR", "risingwave_meta::x: stop error=broker said\n\nCaused by:\n  no such topic 5"),
	} {
		rec := logline.Parse([]byte(text))
		g.Add(&rec, time.Now(), "meta")
	}
	var got []string
	for _, r := range Drafts(g.Groups(), "") {
		examples := 0
		for _, e := range r.Examples.Match {
			examples += 1 + len(e.Args)
		}
		got = append(got, fmt.Sprintf("%s|%s|%s|%d", r.Severity, r.ErrorMessage, r.FilePath, examples))
	}
	slices.Sort(got)
	want := []string{
		"error|broker said||1",
		"error|table {} is not found in the catalog|src/meta/src/x.rs|2",
		`warning|cannot reach "{}" after {} tries||3`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLoadKnown: the embedded table is whole and of use.
func TestLoadKnown(t *testing.T) {
	known, err := LoadKnown()
	if err != nil {
		t.Fatal(err)
	}
	if len(known.Commit) != 40 || len(known.sites) < 5000 || !known.keep["s3"] {
		t.Errorf("commit %q, %d wordings", known.Commit, len(known.sites))
	}
	rec := logline.Parse([]byte(header("ERROR", "risingwave_stream::task::actor_manager: actor exit with error actor_id=1 error=Executor error: should not update vnode bitmap during consuming log store")))
	site, _ := known.find(&rec)
	if site == nil || !strings.HasPrefix(site.File, "src/stream/") || !strings.HasPrefix(site.URL, "https://github.com/risingwavelabs/risingwave/blob/"+known.Commit) {
		t.Errorf("a message of the source is at %v", site)
	}
}

// FuzzFold: whatever a record holds, its template is bounded, and folding an
// equal record gives the same.
func FuzzFold(f *testing.F) {
	f.Add(header("ERROR", `x: a "b" [1, 2] {c: 'd'} e=f error=g/h/i`))
	f.Add(`{"level":"ERROR","fields":{"message":"a","error":"[["}}`)
	f.Add("thread 'x' panicked at src/a.rs:1:2:\nb `c")
	fold := folder{keep: newKnown(testKnown, "").keep}
	f.Fuzz(func(t *testing.T, text string) {
		rec := logline.Parse([]byte(text))
		first := string(fold.record(nil, &rec))
		again := string(fold.record(nil, &rec))
		if first != again || len(first) > maxTemplate+maxText+len(rec.File) {
			t.Errorf("%q and %q (%d bytes)", first, again, len(first))
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	g := New(Options{})
	text := []byte(header("ERROR", `risingwave_stream::task::actor_manager: actor exit with error actor_id=17 error=Executor error: Storage error: Hummock error: read "data" at 812345 of hummock_001/12/3.data failed after [1, 2, 3] tries`))
	rec := logline.Parse(text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		g.Add(&rec, time.Time{}, catalog.SeverityError)
	}
}
