package logline

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func at(s string) time.Time {
	t, ok := ParseTime(s)
	if !ok {
		panic(s)
	}
	return t
}

const (
	actorTarget = "risingwave_stream::task::actor_manager"
	textHeader  = stamp + " ERROR " + actorTarget + ": "
	backtrace   = "\n\nBacktrace:\n   0: std::backtrace::Backtrace::create\n             at /rustc/library/std/src/backtrace.rs:331:13\n"
)

// TestParse: the record's parts, exactly. Text is left out: it is the input,
// cleaned.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Record
	}{
		{"text", textHeader + "actor exit with error actor_id=17 error=Executor error: boom",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "actor exit with error", ActorID: "17", Component: Compute,
				Segments: []Segment{{Kind: Message, Text: "actor exit with error actor_id=17 error=Executor error: boom"}}}},
		{"padded level, zone, thread", "2026-11-30T17:14:07.5+08:00  INFO rw-standalone-meta risingwave_meta::barrier: started",
			Record{Time: at("2026-11-30T09:14:07.5Z"), Level: "INFO", Thread: "rw-standalone-meta", Target: "risingwave_meta::barrier", Event: "started", Component: Meta,
				Segments: []Segment{{Kind: Message, Text: "started"}}}},
		{"thread tells the component of a shared crate", stamp + "  WARN rw-standalone-compactor risingwave_object_store::object: slow",
			Record{Time: at(stamp), Level: "WARN", Thread: "rw-standalone-compactor", Target: "risingwave_object_store::object", Event: "slow", Component: Compactor,
				Segments: []Segment{{Kind: Message, Text: "slow"}}}},
		{"spans", stamp + `  WARN actor{otel.name="Actor 17" actor_id=17}:executor{chunk=3 barrier}: ` + actorTarget + ": reader error error=x",
			Record{Time: at(stamp), Level: "WARN", Target: actorTarget, Event: "reader error", ActorID: "17", Component: Compute,
				Segments: []Segment{{Kind: Span, Text: `otel.name="Actor 17" actor_id=17`}, {Kind: Span, Text: "chunk=3 barrier"}, {Kind: Message, Text: "reader error error=x"}}}},
		{"span holds brackets and quotes", stamp + `  INFO failure_recovery{error=a { b: "}: x" } (c)}: risingwave_meta::barrier::worker: recovery start!`,
			Record{Time: at(stamp), Level: "INFO", Target: "risingwave_meta::barrier::worker", Event: "recovery start!", Component: Meta,
				Segments: []Segment{{Kind: Span, Text: `error=a { b: "}: x" } (c)`}, {Kind: Message, Text: "recovery start!"}}}},
		{"span holds a lone bracket", stamp + `  INFO failure_recovery{error=cut (here}: risingwave_meta::barrier::worker: recovery start!`,
			Record{Time: at(stamp), Level: "INFO", Target: "risingwave_meta::barrier::worker", Event: "recovery start!", Component: Meta,
				Segments: []Segment{{Kind: Span, Text: `error=cut (here`}, {Kind: Message, Text: "recovery start!"}}}},
		{"span holds a backtrace, target behind it", stamp + "  INFO failure_recovery{error=(1, boom" + backtrace + ")}: risingwave_meta::barrier::worker: recovery start!",
			Record{Time: at(stamp), Level: "INFO", Target: "risingwave_meta::barrier::worker", Event: "recovery start!", Component: Meta,
				Segments: []Segment{{Kind: Span, Text: "error=(1, boom"}, {Kind: Message, Text: "recovery start!"}}}},
		{"span without fields", stamp + " ERROR handle_query: pgwire::pg_protocol: error when process message error=x",
			Record{Time: at(stamp), Level: "ERROR", Target: "pgwire::pg_protocol", Event: "error when process message", Component: Frontend,
				Segments: []Segment{{Kind: Message, Text: "error when process message error=x"}}}},
		{"SQL in a span", stamp + ` ERROR handle_query{mode="simple" sql=SELECT 'a}: b' user="root"}: pgwire::pg_protocol: failed error=x`,
			Record{Time: at(stamp), Level: "ERROR", Target: "pgwire::pg_protocol", Event: "failed", Component: Frontend,
				Segments: []Segment{{Kind: SQL, Name: "sql", Text: "SELECT 'a}: b'"}, {Kind: Span, Text: `mode="simple" user="root"`}, {Kind: Message, Text: "failed error=x"}}}},
		{"compact: SQL behind the event", stamp + ` ERROR handle_query: pgwire::pg_protocol: failed error=x mode="simple" sql=SELECT 1 user="root"`,
			Record{Time: at(stamp), Level: "ERROR", Target: "pgwire::pg_protocol", Event: "failed", Component: Frontend,
				Segments: []Segment{{Kind: SQL, Name: "sql", Text: "SELECT 1"}, {Kind: Message, Text: `failed error=x mode="simple" user="root"`}}}},
		{"compact: a recovery's span field", stamp + "  INFO failure_recovery: risingwave_meta::barrier::worker: recovery start! error=Executor error: x",
			Record{Time: at(stamp), Level: "INFO", Target: "risingwave_meta::barrier::worker", Event: "recovery start!", Component: Meta,
				Segments: []Segment{{Kind: Span, Text: "error=Executor error: x"}, {Kind: Message, Text: "recovery start!"}}}},
		{"causes stay, frames go", textHeader + "failed error=outer\n\nCaused by:\n  inner" + backtrace,
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "failed", Component: Compute,
				Segments: []Segment{{Kind: Message, Text: "failed error=outer\n\nCaused by:\n  inner"}}}},
		{"pretty", "  " + stamp + " ERROR " + actorTarget + ": reader error, error: a, b: c, actor_id: 9\n    at src/x.rs:812\n    in risingwave_stream::actor with otel.name: \"Actor 17\", actor_id: 17\n",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "reader error", ActorID: "9", Component: Compute, Pretty: true,
				Segments: []Segment{{Kind: Span, Text: "risingwave_stream::actor with otel.name: \"Actor 17\", actor_id: 17"}, {Kind: Message, Text: "reader error, error: a, b: c, actor_id: 9"}}}},
		{"pretty: frames in the event, lines and frames in a span", "  " + stamp + " ERROR " + actorTarget + ": reader error, error: a\n  at most" + backtrace + "\n\n    at src/x.rs:812 on rw-main\n    in risingwave_stream::recovery with error: b\nc" + backtrace + "\n    in risingwave_stream::actor with actor_id: 17\n",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "reader error", ActorID: "17", Component: Compute, Pretty: true,
				Segments: []Segment{{Kind: Span, Text: "risingwave_stream::recovery with error: b\nc"}, {Kind: Span, Text: "risingwave_stream::actor with actor_id: 17"}, {Kind: Message, Text: "reader error, error: a\n  at most"}}}},
		{"pretty, only its first line", "  " + stamp + " ERROR " + actorTarget + ": reader error, error: a, b: c, actor_id: 9",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "reader error", ActorID: "9", Component: Compute, Pretty: true,
				Segments: []Segment{{Kind: Message, Text: "reader error, error: a, b: c, actor_id: 9"}}}},
		{"full, indented", "  " + stamp + " ERROR " + actorTarget + ": reader error error=a, b: c",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "reader error", Component: Compute,
				Segments: []Segment{{Kind: Message, Text: "reader error error=a, b: c"}}}},
		{"query log", stamp + ` rw-main ThreadId(07) handle_query{mode="simple query" session_id=12 sql=SELECT 1}: status="ok" time=12ms`,
			Record{Time: at(stamp), Thread: "rw-main",
				Segments: []Segment{{Kind: SQL, Name: "sql", Text: "SELECT 1"}, {Kind: Span, Text: `mode="simple query" session_id=12`}, {Kind: Message, Text: `status="ok" time=12ms`}}}},
		{"colours", "\x1b[2m" + stamp + "\x1b[0m \x1b[31mERROR\x1b[0m \x1b[2m" + actorTarget + "\x1b[0m\x1b[2m:\x1b[0m failed \x1b[3merror\x1b[0m\x1b[2m=\x1b[0mboom",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "failed", Component: Compute, Segments: []Segment{{Kind: Message, Text: "failed error=boom"}}}},
		{"level without a stamp", "ERROR " + actorTarget + ": failed",
			Record{Level: "ERROR", Target: actorTarget, Event: "failed", Component: Compute, Segments: []Segment{{Kind: Message, Text: "failed"}}}},
		{"log4j", "2026-11-30 09:14:07,482 [app] ERROR text here", Record{Time: at("2026-11-30T09:14:07.482Z"), Level: "ERROR", Event: "text here", Segments: []Segment{{Kind: Message, Text: "text here"}}}},
		{"year out of reach", "1753-12-05T00:00:00Z ERROR " + actorTarget + ": failed",
			Record{Level: "ERROR", Target: actorTarget, Event: "failed", Component: Compute, Segments: []Segment{{Kind: Message, Text: "failed"}}}},
		{"Java connector", stamp + ` ERROR risingwave_connector_node: failed to run thread="t1" class="com.risingwave.X" error="java.lang.Exception: boom\n\tat a.b.c"`,
			Record{Time: at(stamp), Level: "ERROR", Target: "risingwave_connector_node", Event: "failed to run", Component: ConnectorNode,
				Segments: []Segment{{Kind: Message, Text: `failed to run thread="t1" class="com.risingwave.X" error="java.lang.Exception: boom\n\tat a.b.c"`}}}},

		{"panic", "thread 'rw-streaming' (20062) panicked at src/stream/src/executor/x.rs:1:87:\nboom: Err\nmore\nnote: run with `RUST_BACKTRACE=1`",
			Record{Level: PanicLevel, Thread: "rw-streaming", Event: "boom: Err", Component: Compute, File: "src/stream/src/executor/x.rs:1:87",
				Segments: []Segment{{Kind: Message, Name: "panic", Text: "boom: Err\nmore", Exact: true}}}},
		{"panic before 1.73", "thread 'rw-main' panicked at 'it's \"broken\"', src/meta/src/x.rs:5:9\nnote: run",
			Record{Level: PanicLevel, Thread: "rw-main", Event: `it's "broken"`, Component: Meta, File: "src/meta/src/x.rs:5:9",
				Segments: []Segment{{Kind: Message, Name: "panic", Text: `it's "broken"`, Exact: true}}}},
		{"panic with a stack", "thread 'rw-main' panicked at src/frontend/src/x.rs:5:9:\nboom\nstack backtrace:\n   0: rust_begin_unwind",
			Record{Level: PanicLevel, Thread: "rw-main", Event: "boom", Component: Frontend, File: "src/frontend/src/x.rs:5:9",
				Segments: []Segment{{Kind: Message, Name: "panic", Text: "boom", Exact: true}}}},

		{"cloud", `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"actor exit","actor_id":17,"error":"a \"b\"\nc` + `"},"target":"` + actorTarget + `","spans":[{"actor_id":"18","error":"s","name":"actor"}],"threadName":"rw-streaming"}`,
			Record{Time: at(stamp), Level: "ERROR", Thread: "rw-streaming", Target: actorTarget, Event: "actor exit", ActorID: "17", Component: Compute,
				Segments: []Segment{{Kind: Message, Text: "actor exit", Exact: true}, {Kind: Field, Name: "error", Text: "a \"b\"\nc", Exact: true}, {Kind: Span, Name: "actor_id", Text: "18", Exact: true}, {Kind: Span, Name: "error", Text: "s", Exact: true}}}},
		{"cloud, message twice", `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"suspend","message":"recv failure","err":"x"},"target":"risingwave_stream::task"}`,
			Record{Time: at(stamp), Level: "ERROR", Target: "risingwave_stream::task", Event: "suspend", Component: Compute,
				Segments: []Segment{{Kind: Message, Text: "suspend", Exact: true}, {Kind: Message, Text: "recv failure", Exact: true}, {Kind: Field, Name: "err", Text: "x", Exact: true}}}},
		{"cloud, frames and SQL", `{"timestamp":"` + stamp + `","level":"WARN","fields":{"error":"x\n\nBacktrace:\n   0: y","sql":"SELECT 1"},"target":"pgwire::pg"}`,
			Record{Time: at(stamp), Level: "WARN", Target: "pgwire::pg", Component: Frontend,
				Segments: []Segment{{Kind: Field, Name: "error", Text: "x", Exact: true}, {Kind: SQL, Name: "sql", Text: "SELECT 1", Exact: true}}}},
		{"escaped letters", `{"fields":{"error":"\u0063hunk \ud83d\ude00"}}`, Record{Segments: []Segment{{Kind: Field, Name: "error", Text: "chunk 😀", Exact: true}}}},
		{"terminal control in JSON", `{"fields":{"error":"\u001b[31mred\u001b[0m \u009b1mbold"}}`, Record{Segments: []Segment{{Kind: Field, Name: "error", Text: "red bold", Exact: true}}}},
		{"torn JSON", `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"error":"half a \"mes`,
			Record{Time: at(stamp), Level: "ERROR", Segments: []Segment{{Kind: Message, Text: `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"error":"half a "mes`}}}},
		{"JSON of others", `{"ts":"` + stamp + `","severity":"err","msg":"hello","nested":{"reason":"why"}}`,
			Record{Time: at(stamp), Level: "ERR", Event: "hello", Segments: []Segment{{Kind: Message, Text: "hello", Exact: true}, {Kind: Field, Name: "reason", Text: "why", Exact: true}}}},
		{"array in a field", `{"fields":{"errors":["one \"a\"","two"],"n":[1,2]}}`,
			Record{Segments: []Segment{{Kind: Field, Name: "errors", Text: `["one "a"","two"]`}, {Kind: Field, Name: "n", Text: "[1,2]"}}}},
		{"event log", "COLLECT_BARRIER_FAIL\t{\"error\":\"x\"}",
			Record{Event: "COLLECT_BARRIER_FAIL", Component: Meta, Segments: []Segment{{Kind: Field, Name: "error", Text: "x", Exact: true}}}},
		{"no form", "hello\nworld", Record{Event: "hello", Segments: []Segment{{Kind: Message, Text: "hello\nworld"}}}},
		{"no JSON", "{hello", Record{Event: "{hello", Segments: []Segment{{Kind: Message, Text: "{hello"}}}},
		{"empty", "", Record{Segments: []Segment{{Kind: Message}}}},
		{"invalid UTF-8", textHeader + "a\xff\xfeb", Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "a\ufffdb", Component: Compute,
			Segments: []Segment{{Kind: Message, Text: "a\ufffdb"}}}},
		{"suppressed before", textHeader + "failed error=x suppressed_count=57",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "failed", Component: Compute, Unlogged: 57,
				Segments: []Segment{{Kind: Message, Text: "failed error=x suppressed_count=57"}}}},
		{"suppressed before, JSON", `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"failed","suppressed_count":57},"target":"` + actorTarget + `"}`,
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "failed", Component: Compute, Unlogged: 57,
				Segments: []Segment{{Kind: Message, Text: "failed", Exact: true}}}},
		{"another's actor before its own", textHeader + "failed upstream_actor_id=5 actor_id=17",
			Record{Time: at(stamp), Level: "ERROR", Target: actorTarget, Event: "failed", ActorID: "17", Component: Compute,
				Segments: []Segment{{Kind: Message, Text: "failed upstream_actor_id=5 actor_id=17"}}}},
		{"actor in a sentence", stamp + " ERROR risingwave_meta::x: failed: Actor 4711 exited unexpectedly: boom",
			Record{Time: at(stamp), Level: "ERROR", Target: "risingwave_meta::x", Event: "failed: Actor 4711 exited unexpectedly: boom", ActorID: "4711", Component: Meta,
				Segments: []Segment{{Kind: Message, Text: "failed: Actor 4711 exited unexpectedly: boom"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Parse([]byte(c.in))
			if d := cmp.Diff(c.want, got, cmpopts.IgnoreFields(Record{}, "Text")); d != "" {
				t.Errorf("%q: %s", c.in, d)
			}
		})
	}
}

// TestDeepJSON: objects and arrays a hundred thousand deep are read in linear
// time, without recursion that grows the stack, and the text inside is kept.
func TestDeepJSON(t *testing.T) {
	const deep = 100_000
	for name, in := range map[string]string{
		"closed":  strings.Repeat(`{"a":`, deep) + `"known"` + strings.Repeat("}", deep),
		"torn":    strings.Repeat(`{"a":`, deep) + `"known"`,
		"arrays":  `{"spans":` + strings.Repeat("[", deep) + `"known"`,
		"fields":  `{"fields":` + strings.Repeat(`{"a":`, deep) + `"known"` + strings.Repeat("}", deep+1),
		"numbers": strings.Repeat(`{"a":1,"b":`, deep) + `"known"` + strings.Repeat("}", deep),
	} {
		rec := Parse([]byte(in))
		if len(rec.Segments) == 0 || !strings.Contains(rec.Segments[len(rec.Segments)-1].Text, "known") {
			t.Errorf("%s: the text inside is lost: %d segments", name, len(rec.Segments))
		}
		var u Unwrapper
		if l := u.Unwrap([]byte(in), false); string(l.Payload) != in {
			t.Errorf("%s: taken for an envelope", name)
		}
	}
	var u Unwrapper
	u.Unwrap([]byte(`{"MESSAGE":`+strings.Repeat("[", deep)+"120"+strings.Repeat("]", deep)+"}"), false)
}

func TestIsHeader(t *testing.T) {
	for line, want := range map[string]bool{
		header:                                        true,
		"\x1b[2m" + stamp + "\x1b[0m ERROR":           true,
		"  " + stamp + "  INFO x: y":                  true,
		"   " + stamp + "  INFO x: y":                 false,
		`{"timestamp":"x"}`:                           true,
		"{ not json":                                  false,
		"thread 'main' panicked at src/x.rs:1:1:":     true,
		"thread 'main' has overflowed its stack":      false,
		"ERROR risingwave_meta::x: text":              true,
		" WARN risingwave_meta::x: text":              true,
		"ERROR in the text":                           false,
		"EVENT_NAME\t{\"a\":1}":                       true,
		"EVENT_NAME {\"a\":1}":                        false,
		"2026-08-21 14:06:38,396 ERROR x":             true,
		"2026-08-21":                                  false,
		"":                                            false,
		"Caused by:":                                  false,
		"   0: std::backtrace::Backtrace::create":     false,
		"    at src/stream/src/x.rs:812":              false,
		"\x1b[":                                       false,
		"2026-08-21T14:06:38Z stdout F is no header?": true,
	} {
		if got := IsHeader([]byte(line)); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

func TestSplitGlued(t *testing.T) {
	second := stamp + "  INFO risingwave_meta::x: second"
	for in, want := range map[string][]string{
		header:                            {header},
		header + second:                   {header, second},
		header + second + second:          {header, second, second},
		header + ")" + second:             {header + ")", second},
		header + " " + second:             {header + " " + second}, // a value that quotes a line
		header + " since " + stamp:        {header + " since " + stamp},
		"at " + stamp + " ERROR happened": {"at " + stamp + " ERROR happened"},
		"x" + stamp + " ERROR happened":   {"x" + stamp + " ERROR happened"},
		"":                                {""},
		strings.Repeat("T", 100):          {strings.Repeat("T", 100)},
		header + stamp + "  INFO span{a=1}: x::y: z": {header, stamp + "  INFO span{a=1}: x::y: z"},
	} {
		var got []string
		for _, part := range SplitGlued([]byte(in)) {
			got = append(got, string(part))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

func TestHeaderLen(t *testing.T) {
	for in, want := range map[string]string{
		textHeader + "failed error=x":                         textHeader,
		stamp + "  INFO a{b=1}: x::y: z":                      stamp + "  INFO a{b=1}: x::y: ",
		"no header":                                           "",
		`{"timestamp":"` + stamp + `"}`:                       "",
		stamp + " ERROR \xff: z":                              "",
		stamp + " ERROR x: \xff":                              "",
		stamp + " ERROR " + strings.Repeat("x", 2000) + ": y": "",
	} {
		if got := HeaderLen([]byte(in)); got != len(want) {
			t.Errorf("%q: %d, want %d", in, got, len(want))
		}
	}
}

func TestComponentOf(t *testing.T) {
	for _, c := range []struct {
		target, file string
		names        []string
		want         string
	}{
		{"risingwave_meta::x", "", []string{"compute-0"}, Meta},
		{"risingwave_storage::hummock::compactor::runner", "", nil, Compactor},
		{"risingwave_storage::hummock::store", "", []string{"", "frontend"}, Frontend},
		{"risingwave_storage::hummock::store", "", nil, Compute},
		{"", "/risingwave/src/utils/pgwire/src/x.rs:1", nil, Frontend},
		{"", "src/storage/compactor/src/x.rs", nil, Compactor},
		{"", "", []string{"rw-standalone-0"}, Standalone},
		{"", "", []string{"single_node"}, Standalone},
		{"", "", []string{"postgres"}, ""},
		{"tokio::runtime", "", []string{"my-compactor"}, Compactor},
	} {
		rec := Record{Target: c.target, File: c.file}
		rec.identify()
		if got := ComponentOf(&rec, c.names...); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestLevelRank(t *testing.T) {
	order := []string{"", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", PanicLevel}
	for i, level := range order {
		if LevelRank(level) != i-1 || LevelRank(strings.ToLower(level)) != i-1 {
			t.Errorf("%q has rank %d", level, LevelRank(level))
		}
	}
}

// parts collects the texts of a record that events may carry.
func parts(r *Record) []string {
	out := []string{r.Text, r.Event, r.Target, r.Thread, r.ActorID, r.File, r.Level}
	for _, s := range r.Segments {
		out = append(out, s.Name, s.Text)
	}
	return out
}

// FuzzParse: whatever the bytes, there is a segment and all texts are valid
// UTF-8, except what JSON escapes bring, free of terminal control.
func FuzzParse(f *testing.F) {
	for _, s := range []string{header, textHeader + "failed error=x" + backtrace, `{"timestamp":"` + stamp + `","fields":{"message":"\u001bx","a":[1,{"b":"c`, "thread 'x' panicked at 'm', src/x.rs:1:2", "EVENT_NAME\t{\"a\":{}}",
		"  " + stamp + " ERROR x: a, b: c\n    at x\n    in y with sql: z", stamp + ` INFO a{b="c" sql='}:d{e}: f::g: h`, stamp + " [x] WARN y", "\x1b]0;title\x07" + header} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rec := Parse(b)
		if len(rec.Segments) == 0 {
			t.Errorf("%q: no segment", b)
		}
		for _, s := range parts(&rec) {
			if !utf8.ValidString(s) {
				t.Errorf("%q: %q is not valid UTF-8", b, s)
			}
			if c := control(s); c != "" {
				t.Errorf("%q: %q holds %s", b, s, c)
			}
		}
	})
}
