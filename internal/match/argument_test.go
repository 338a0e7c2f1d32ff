package match

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/logline"
)

const logHead = "2026-11-30T09:14:07.482913204Z ERROR risingwave_stream::task: "

// matchText matches a text in a record of one level and target.
func matchText(m *Matcher, level, target, text string) (Result, bool) {
	rec := logline.Record{Level: level, Target: target, Event: text, Text: text, Segments: []logline.Segment{{Kind: logline.Message, Text: text}}}
	return m.Match(&rec, 0)
}

const debugValue = `BackfillStateWithProgress { state: SourceCachingUp("72"), num_consumed_rows: 73, target_offset: Some("1045") }`

// TestArguments: where the arguments of a message end, in records as they are
// logged.
func TestArguments(t *testing.T) {
	const (
		value = "Unexpected backfill state: {:?}"     // one value behind a colon
		ids   = "epoch set again for job {} {} {}"    // the last is one value
		two   = "mismatch of bitmaps {:?}, expect {}" // text between
		text  = "failed to fetch snapshot: {}"        // free text
		dot   = "directory is in use: {:?}."          // text behind the last
		kinds = "cannot notify the node {:?} {:?}: {}"
	)
	for _, c := range []struct {
		name, template, record string
		want                   []string
	}{
		{"end of line", value, logHead + "Unexpected backfill state: Backfilling", []string{"Backfilling"}},
		{"next field", value, logHead + "x error=Unexpected backfill state: Backfilling actor_id=17", []string{"Backfilling"}},
		{"next field behind several words", text, logHead + "x error=failed to fetch snapshot: no such key (404) elapsed=2ms", []string{"no such key (404)"}},
		{"a comparison is no field", text, logHead + "x error=failed to fetch snapshot: a == b and c => d", []string{"a == b and c => d"}},
		{"dotted field", text, logHead + "x error=failed to fetch snapshot: gone otel.name=\"a\"", []string{"gone"}},
		{"fields inside of a value's brackets", value, logHead + "x error=Unexpected backfill state: A { b=1 c=2 } actor_id=17", []string{"A { b=1 c=2 }"}},
		{"Debug value whole", value, logHead + "x error=Unexpected backfill state: " + debugValue + " actor_id=17", []string{debugValue}},
		{"Debug value at the end", value, logHead + "Unexpected backfill state: " + debugValue, []string{debugValue}},
		{"Debug value, unbalanced", value, logHead + "Unexpected backfill state: A { b: (1 actor_id=17", []string{"A { b: (1"}},
		{"quotes that look like a field", value, logHead + `Unexpected backfill state: Some("a b=c") actor_id=17`, []string{`Some("a b=c")`}},
		{"quotes with brackets", value, logHead + `Unexpected backfill state: A("}") actor_id=17`, []string{`A("}")`}},
		{"nested", value, logHead + "Unexpected backfill state: [(1, {2: [3]}), ()] actor_id=1", []string{"[(1, {2: [3]}), ()]"}},

		{"wrapper's parenthesis", value, logHead + "failed (job 1, Unexpected backfill state: Backfilling) actor_id=1", []string{"Backfilling"}},
		{"wrapper's bracket", value, logHead + "failed [Unexpected backfill state: Backfilling] x", []string{"Backfilling"}},
		{"wrapper's brace", value, logHead + "Err { source: Unexpected backfill state: Backfilling }", []string{"Backfilling"}},
		{"wrapper's parenthesis, balanced value", value, logHead + "failed (1, Unexpected backfill state: A(2)) actor_id=1", []string{"A(2)"}},
		{"wrapper's quote", value, logHead + `status self: "Unexpected backfill state: Backfilling" x=1`, []string{"Backfilling"}},
		{"wrapper's quote, escaped value", value, logHead + `self: "Unexpected backfill state: SourceCachingUp(\"72\")", metadata: {}`, []string{`SourceCachingUp(\"72\")`}},
		{"wrapper's quote, escaped newline behind", value, logHead + `error="Unexpected backfill state: Backfilling\n\tat x" class=1`, []string{"Backfilling"}},
		{"wrapper's quote, brackets in an escaped string", value, logHead + `self: "Unexpected backfill state: A { b: \"[x\", c: \"}: \\\"y\\\"\" }", metadata: {}`, []string{`A { b: \"[x\", c: \"}: \\\"y\\\"\" }`}},
		{"wrapper's quote, field inside", text, logHead + `x error="java.io.IOException: failed to fetch snapshot: gone timeout=30 s\n\tat x" class="y"`, []string{"gone timeout=30 s"}},
		{"wrapper's quote, string not closed", value, logHead + `self: "Unexpected backfill state: A(\"b", metadata: {}`, []string{`A(\"b`}},
		{"closed before", value, logHead + "failed (job 1) Unexpected backfill state: a) b", []string{"a) b"}},

		{"backtrace on the line", value, logHead + "Unexpected backfill state: Backfilling Backtrace: 0: x", []string{"Backfilling"}},
		{"causes on the line", text, logHead + "failed to fetch snapshot: gone Caused by: x", []string{"gone"}},
		{"causes on the next line", text, logHead + "failed to fetch snapshot: gone\n\nCaused by:\n  x", []string{"gone"}},
		{"next line", value, logHead + "Unexpected backfill state: Backfilling\nmore", []string{"Backfilling"}},
		{"blanks behind", value, logHead + "Unexpected backfill state: Backfilling  \n", []string{"Backfilling"}},
		{"next cause behind one value", ids, logHead + "epoch set again for job 1 2 3: Storage error: x", []string{"1", "2", "3"}},
		{"colons of free text", text, logHead + "failed to fetch snapshot: Storage error: gone", []string{"Storage error: gone"}},
		{"semicolon behind one value", ids, logHead + "epoch set again for job 1 2 3; retry later", []string{"1", "2", "3"}},
		{"colon inside a value", ids, logHead + "epoch set again for job 1 2 a:b:c", []string{"1", "2", "a:b:c"}},

		{"dot inside of a value", dot, logHead + "x error=directory is in use: s3://b/v2.1/x. elapsed=1ms", []string{"s3://b/v2.1/x"}},
		{"dot inside of a Debug value", dot, logHead + `x error=directory is in use: [A(1. ), "b. c"].`, []string{`[A(1. ), "b. c"]`}},
		{"dot, quoted text", dot, logHead + `self: "directory is in use: {\"a.b\": \"[. \"}.", metadata: {}`, []string{`{\"a.b\": \"[. \"}`}},
		{"struct before a blank", kinds, logHead + "cannot notify the node Worker { id: 1 } Key { host: \"h: x\" }: gone", []string{"Worker { id: 1 }", `Key { host: "h: x" }`, "gone"}},
		{"map behind a blank", kinds, logHead + `cannot notify the node "a" {"b": 1}: gone`, []string{`"a"`, `{"b": 1}`, "gone"}},

		{"two values", two, logHead + "x error=mismatch of bitmaps 1110, expect 1100 actor_id=17", []string{"1110", "1100"}},
		{"the text between stands in the value too", two, logHead + "mismatch of bitmaps A { b: \"c, expect d\" }, expect e", []string{`A { b: "c, expect d" }`, "e"}},
		{"value with newline before text", two, logHead + "mismatch of bitmaps A {\n    b: 1,\n}, expect 2", []string{"A {\n    b: 1,\n}", "2"}},
		{"message twice, the inner one", text, logHead + "failed to fetch snapshot: failed to fetch snapshot: gone", []string{"failed to fetch snapshot: gone"}},

		{"pretty field", value, "  2026-11-30T09:14:07Z ERROR risingwave_stream::task: x, error: Unexpected backfill state: Backfilling, actor_id: 17\n    at src/x.rs:1\n", []string{"Backfilling"}},
		{"pretty, commas inside", value, "  2026-11-30T09:14:07Z ERROR risingwave_stream::task: x, error: Unexpected backfill state: A { b: 1, c: 2 }, actor_id: 17\n    at src/x.rs:1\n", []string{"A { b: 1, c: 2 }"}},

		{"JSON field", value, `{"fields":{"error":"Unexpected backfill state: SourceCachingUp(\"72\") x=1"},"level":"ERROR"}`, []string{`SourceCachingUp("72") x=1`}},
		{"JSON field, second line", value, `{"fields":{"error":"Unexpected backfill state: Backfilling"},"level":"ERROR"}`, []string{"Backfilling"}},
		{"JSON field, causes", text, `{"fields":{"error":"failed to fetch snapshot: gone\n\nCaused by:\n  x"},"level":"ERROR"}`, []string{"gone"}},
		{"JSON field, Java stack", text, `{"fields":{"error":"failed to fetch snapshot: gone\n\nor moved\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)"},"level":"ERROR"}`, []string{"gone\n\nor moved"}},
		{"JSON field, multi-line Debug", value, `{"fields":{"error":"Unexpected backfill state: A {\n    b: 1,\n}"},"level":"ERROR"}`, []string{"A {\n    b: 1,\n}"}},

		{"panic", value, "thread 'x' (1) panicked at src/x.rs:1:2:\nUnexpected backfill state: Backfilling\nnote: run with", []string{"Backfilling"}},
		{"old panic", value, "thread 'x' panicked at 'Unexpected backfill state: Backfilling', src/x.rs:1:2\nnote: run with", []string{"Backfilling"}},
		{"only blanks", text, logHead + "failed to fetch snapshot:  ", []string{" "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustNew(t, records(c.template))
			rec := logline.Parse([]byte(c.record))
			res, ok := m.Match(&rec, 0)
			if !ok {
				t.Fatalf("%q is not found in %q", c.template, c.record)
			}
			if d := cmp.Diff(c.want, res.Args); d != "" {
				t.Errorf("%q: %s", c.record, d)
			}
			_, after, _ := strings.Cut(c.template[strings.LastIndex(c.template, "{"):], "}")
			if end := res.Args[len(res.Args)-1] + after; !strings.HasSuffix(res.Text, end) {
				t.Errorf("the message %q does not end in %q", res.Text, end)
			}
		})
	}
}

// TestLeadingArgument: a value that stands before the text.
func TestLeadingArgument(t *testing.T) {
	for _, c := range []struct{ record, want string }{
		{logHead + "table t1 is not in the snapshot", "table t1"},
		{logHead + "x error=table t1 is not in the snapshot", "table t1"},
		{logHead + "x error=Executor error: t1 is not in the snapshot", "t1"},
		{logHead + "first\nt1 is not in the snapshot", "t1"},
	} {
		m := mustNew(t, records("{} is not in the snapshot"))
		rec := logline.Parse([]byte(c.record))
		res, ok := m.Match(&rec, 0)
		if !ok || len(res.Args) != 1 || res.Args[0] != c.want {
			t.Errorf("%q: %q, want %q", c.record, res.Args, c.want)
		}
	}
}

// TestHostileText: what repeats a literal, opens brackets without end or hides
// the end far away costs linear time.
func TestHostileText(t *testing.T) {
	m := mustNew(t, records("Unexpected backfill state: {:?}", "mismatch of bitmaps {:?}, expect {} of {}", "{} is not in the snapshot", "snapshot epochs {} {} {}"))
	const size = 256 << 10
	for name, unit := range map[string]string{
		"the message again and again":   "Unexpected backfill state: ",
		"beginnings of a message":       "mismatch of bitmaps ",
		"texts between":                 "mismatch of bitmaps x, expect ",
		"leading values":                "a=b is not in the snapshot ",
		"open brackets":                 "Unexpected backfill state: ((((((((",
		"open quotes":                   `Unexpected backfill state: "a `,
		"escaped quotes":                `self: "Unexpected backfill state: A(\"` + strings.Repeat(`\\\"`, 1000),
		"backslashes":                   `Unexpected backfill state: \\"`,
		"short values":                  "snapshot epochs 1 ",
		"first text of it, never whole": "snapshot epochs",
	} {
		text := strings.Repeat(unit, size/len(unit))
		rec := logline.Parse([]byte(logHead + text))
		begun := time.Now()
		m.Match(&rec, 0)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: %v for %d bytes", name, took, size)
		}
	}
}

// FuzzArguments: whatever the values, the arguments are parts of the text in
// their order, and the message holds them.
func FuzzArguments(f *testing.F) {
	m := mustNew(f, records("Unexpected backfill state: {:?}", "mismatch of bitmaps {:?}, expect {}", "{} is not in the snapshot", "failed to fetch {} of (snapshot): {}"))
	f.Add(uint(0), "a", "b", " x=1")
	f.Add(uint(1), `A { b: "}" }`, "(", ")\nCaused by:")
	f.Add(uint(3), "\"", "\\", `\"`)
	f.Fuzz(func(t *testing.T, n uint, first, second, rest string) {
		template := m.patterns[n%uint(len(m.patterns))].template
		holes := strings.NewReplacer("{:?}", "{}").Replace(template)
		message := strings.Replace(strings.Replace(holes, "{}", first+"v", 1), "{}", second+"v", 1)
		rec := logline.Record{Segments: []logline.Segment{{Text: fmt.Sprintf("x (%s%s", message, rest)}}}
		res, ok := m.Match(&rec, 0)
		if !ok {
			t.Fatalf("%q is not found in %q", template, rec.Segments[0].Text)
		}
		text := rec.Segments[0].Text
		if !strings.Contains(text, res.Text) {
			t.Errorf("%q is not in %q", res.Text, text)
		}
		for k, a := range res.Args {
			i := strings.Index(text, a)
			if a == "" && k < len(res.Args)-1 || i < 0 { // the last ends where a bracket around the message closes
				t.Errorf("argument %q is not in order in %q", a, text)
				continue
			}
			text = text[i:]
		}
	})
}
