package annotate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/logline"
)

func sample() (catalog.Record, Event) {
	r := catalog.Record{ID: "d35cdfb22a5e48fe", Slug: "mismatch-bitmap", ErrorMessage: "mismatch {:?}", Severity: catalog.SeverityError, Role: catalog.RoleRoot,
		BackgroundTag: "invariant", Tags: []string{"rust"}, Documentation: "What <it> means & more.", TriggerScenarios: "When.", CommonSituations: "Where.",
		Solutions: []string{"Do this."}, PreventionTips: []string{"Avoid that."}, HandlingStrategy: "retry", FilePath: "src/x.rs", LineNumber: 121,
		GithubURL: "https://github.com/x", AnalyzedSha: "6469eb736d691e8e9b8a419a57edd6429ca77417"}
	at := time.Date(2026, 11, 30, 9, 14, 7, 482913204, time.FixedZone("", 8*3600))
	ev := Event{Level: "error", Time: at, Message: "mismatch 1", Kind: KindMatch,
		RW:     RW{Component: "compute", Target: "a::b", Level: "ERROR", Event: "actor exit", ActorID: "17", Chain: []string{"Executor error: {}"}},
		Error:  Error{ID: r.ID, Template: r.ErrorMessage, Args: []string{"1"}, Confidence: "high", Via: "field", Others: []Other{{"ff", "other"}}},
		Seen:   Seen{New: 1, Count: 2, First: at, Last: at},
		K8s:    K8s{Namespace: "ns", Pod: "p", UID: "u", Container: "c", Restart: 3, Node: "n"},
		Origin: Origin{Input: "file", Path: "/p", Offset: 18, LineNumber: 12, Stream: "stdout", Unit: "u", Host: "h", Line: "the line", Truncated: true, TimeFrom: "record"}}
	return r, ev
}

// shape prints the keys of a JSON value in their order, with the types of the
// values, and fails on a key that is there twice.
func shape(t testing.TB, line []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(line))
	var b strings.Builder
	var value func()
	value = func() {
		tok, err := dec.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch tok := tok.(type) {
		case json.Delim:
			b.WriteString(tok.String())
			seen := map[string]bool{}
			for dec.More() {
				if tok == '{' {
					key, err := dec.Token()
					if err != nil {
						t.Fatalf("%v in %s", err, line)
					}
					if name := key.(string); seen[name] {
						t.Fatalf("the key %q is there twice in %s", name, line)
					} else {
						seen[name] = true
						b.WriteString(name + ":")
					}
				}
				value()
				b.WriteByte(' ')
			}
			end, err := dec.Token()
			if err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			b.WriteString(end.(json.Delim).String())
		default:
			fmt.Fprintf(&b, "%T", tok)
		}
	}
	value()
	if _, err := dec.Token(); err != io.EOF {
		t.Fatalf("more than one value in %s", line)
	}
	return b.String()
}

const (
	headShape = `{level:string time:string message:string v:float64 kind:string ` +
		`rw:{component:string target:string level:string event:string actor_id:string chain:[%s] } ` +
		`error:{id:string slug:string template:string severity:string role:string class:string tags:[%s] args:[%s] confidence:string via:string others:[%s] } ` +
		`remedy:{meaning:string triggers:string situations:string solutions:[%s] prevention:[%s] strategy:string } ` +
		`source:{file:string line:float64 url:string commit:string } ` +
		`seen:{new:float64 count:float64 first:string last:string } `
	k8sShape  = `k8s:{namespace:string pod:string container:string restart:float64 node:string } `
	tailShape = `origin:{input:string path:string unit:string host:string offset:float64 line_number:float64 stream:string line:string truncated:bool time_from:string } ` +
		`catalog:{digest:string version:string } }`
)

// TestShape: the keys, their order and their types never vary, but for k8s,
// which is left out where nothing is known.
func TestShape(t *testing.T) {
	r, ev := sample()
	e := NewEncoder([]catalog.Record{r, {ID: "bare"}}, "2026-09-14", "sha256:5b1f7c09")
	full := fmt.Sprintf(headShape, "string ", "string ", "string ", "{id:string slug:string } ", "string ", "string ") + k8sShape + tailShape
	if d := cmp.Diff(full, shape(t, e.Append(nil, &ev))); d != "" {
		t.Error(d)
	}
	empty := fmt.Sprintf(headShape, "", "", "", "", "", "") + tailShape
	for _, id := range []string{"bare", "gone from the catalogue"} {
		if d := cmp.Diff(empty, shape(t, e.Append(nil, &Event{Error: Error{ID: id}}))); d != "" {
			t.Errorf("%s: %s", id, d)
		}
	}
}

// TestValues compares the sample's published form, byte by byte.
func TestValues(t *testing.T) {
	r, ev := sample()
	e := NewEncoder([]catalog.Record{r}, "2026-09-14", "sha256:5b1f7c09")
	const want = `{"level":"error","time":"2026-11-30T01:14:07.482913204Z","message":"mismatch 1","v":1,"kind":"match",` +
		`"rw":{"component":"compute","target":"a::b","level":"ERROR","event":"actor exit","actor_id":"17","chain":["Executor error: {}"]},` +
		`"error":{"id":"d35cdfb22a5e48fe","slug":"mismatch-bitmap","template":"mismatch {:?}","severity":"error","role":"root","class":"invariant","tags":["rust"],"args":["1"],"confidence":"high","via":"field","others":[{"id":"ff","slug":"other"}]},` +
		`"remedy":{"meaning":"What <it> means & more.","triggers":"When.","situations":"Where.","solutions":["Do this."],"prevention":["Avoid that."],"strategy":"retry"},` +
		`"source":{"file":"src/x.rs","line":121,"url":"https://github.com/x","commit":"6469eb736d"},` +
		`"seen":{"new":1,"count":2,"first":"2026-11-30T01:14:07.482913204Z","last":"2026-11-30T01:14:07.482913204Z"},` +
		`"k8s":{"namespace":"ns","pod":"p","container":"c","restart":3,"node":"n"},` +
		`"origin":{"input":"file","path":"/p","unit":"u","host":"h","offset":18,"line_number":12,"stream":"stdout","line":"the line","truncated":true,"time_from":"record"},` +
		`"catalog":{"digest":"sha256:5b1f7c09","version":"2026-09-14"}}` + "\n"
	if d := cmp.Diff("before"+want, string(e.Append([]byte("before"), &ev))); d != "" {
		t.Error(d)
	}
}

// check asserts what holds for every event: one line of valid JSON in valid
// UTF-8, within its bound.
func check(t testing.TB, line []byte) {
	t.Helper()
	if n := len(line); n > maxEvent {
		t.Errorf("%d bytes: more than %d", n, maxEvent)
	}
	if n := bytes.IndexByte(line, '\n'); n != len(line)-1 {
		t.Errorf("the first newline is at %d of %d", n, len(line))
	}
	if !utf8.Valid(line) {
		t.Errorf("no valid UTF-8: %q", line)
	}
	shape(t, line)
}

// TestSize: whatever is large gives way, the line first.
func TestSize(t *testing.T) {
	r, _ := sample()
	e := NewEncoder([]catalog.Record{r}, "", "")
	big, wide := strings.Repeat("é", 100<<10), strings.Repeat("\x01", 100<<10)
	for name, change := range map[string]func(*Event){
		"line":           func(ev *Event) { ev.Origin.Line = big },
		"escaped line":   func(ev *Event) { ev.Origin.Line = wide },
		"message":        func(ev *Event) { ev.Message = wide },
		"argument":       func(ev *Event) { ev.Error.Args = []string{"keep", wide} },
		"many arguments": func(ev *Event) { ev.Error.Args = strings.SplitAfter(big, "é") },
		"names": func(ev *Event) {
			ev.RW.Target, ev.RW.Event, ev.RW.ActorID, ev.Origin.Path, ev.Origin.Unit, ev.Origin.Host = wide, wide, wide, wide, wide, wide
			ev.K8s = K8s{Namespace: wide, Pod: wide, Container: wide, Node: wide}
		},
		"chain": func(ev *Event) { ev.RW.Chain = strings.SplitAfter(big, "é") },
	} {
		_, ev := sample()
		change(&ev)
		before := ev.Error.Args
		line := e.Append(nil, &ev)
		check(t, line)
		var got struct {
			Error  struct{ ID string }
			Origin struct{ Truncated bool }
		}
		if err := json.Unmarshal(line, &got); err != nil || got.Error.ID != r.ID || !got.Origin.Truncated {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
		if len(before) > 0 && len(ev.Error.Args[0]) != len(before[0]) {
			t.Errorf("%s: the event itself was changed", name)
		}
	}
}

// FuzzEvent: any bytes in any field.
func FuzzEvent(f *testing.F) {
	r, _ := sample()
	e := NewEncoder([]catalog.Record{r}, "v", "d")
	f.Add("a", "b", "c", "d", uint8(1), uint8(1))
	f.Add("\x00\x1b[31m\u009b\x7f", "\xff\xfe", "\"},\"level\":\"forged\n", "\u2028é", uint8(40), uint8(200))
	f.Fuzz(func(t *testing.T, a, b, c, d string, times, many uint8) {
		grown := strings.Repeat(a, 1+int(times)*64)
		if len(grown) > 1<<20 {
			t.Skip("too large to be a record")
		}
		ev := Event{Level: b, Message: grown, Kind: c, RW: RW{a, b, c, d, a, []string{b, grown}},
			Error: Error{r.ID, a, append([]string{c, grown}, strings.Split(strings.Repeat(d+"\xff", int(many)), "\xff")...), b, c, []Other{{a, b}}},
			K8s:   K8s{a, b, c, d, int(times), grown}, Origin: Origin{a, b, int64(many), 1, c, d, a, grown, false, b}}
		check(t, e.Append(nil, &ev))
	})
}

func TestEventLevel(t *testing.T) {
	for _, c := range []struct{ level, severity, want string }{
		{"ERROR", catalog.SeverityError, "error"},
		{"INFO", catalog.SeverityError, "error"},
		{"ERROR", catalog.SeverityInfo, "error"},
		{"WARN", catalog.SeverityWarning, "warn"},
		{"DEBUG", catalog.SeverityInfo, "info"},
		{"", catalog.SeverityCritical, "fatal"},
		{logline.PanicLevel, catalog.SeverityError, "fatal"},
		{"", "", "error"},
		{"nonsense", catalog.SeverityWarning, "warn"},
	} {
		if got := eventLevel(c.level, c.severity); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestNew: what the event takes from the record, and its bounds.
func TestNew(t *testing.T) {
	long := strings.Repeat("é", 40<<10)
	ev := event(t, "2026-11-30T09:14:07Z ERROR risingwave_meta::x: it failed error=cannot connect: "+long+"\n\n", nil)
	if got := len(ev.Origin.Line); got > maxLine || got < maxLine-4 || !ev.Origin.Truncated || !utf8.ValidString(ev.Origin.Line) {
		t.Errorf("the line has %d bytes, truncated %v", got, ev.Origin.Truncated)
	}
	if got := len(ev.Error.Args[0]); got > maxArgs || got < maxArgs-4 || !utf8.ValidString(ev.Error.Args[0]) {
		t.Errorf("the argument has %d bytes", got)
	}
	if got := len(ev.Message); got > maxMessage || !strings.HasPrefix(ev.Message, "cannot connect: é") {
		t.Errorf("the message has %d bytes", got)
	}
	if ev.RW.Event != "it failed" || ev.RW.Target != "risingwave_meta::x" || ev.RW.Level != "ERROR" || ev.RW.Component != "meta" || ev.Seen != (Seen{1, 1, ev.Time, ev.Time}) {
		t.Errorf("%+v", ev.RW)
	}
	small := event(t, "cannot connect: x\n", nil)
	if small.Origin.Line != "cannot connect: x" || small.Origin.Truncated {
		t.Errorf("%+v", small.Origin)
	}
}

// TestStored: an event survives the form in which it is queued.
func TestStored(t *testing.T) {
	_, ev := sample()
	ev.Time, ev.Seen.First, ev.Seen.Last = ev.Time.UTC(), ev.Seen.First.UTC(), ev.Seen.Last.UTC()
	b, err := json.Marshal(&ev)
	if err != nil {
		t.Fatal(err)
	}
	var back Event
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(ev, back); d != "" {
		t.Error(d)
	}
}

func BenchmarkAppend(b *testing.B) {
	r, ev := sample()
	e := NewEncoder([]catalog.Record{r}, "v", "d")
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = e.Append(dst[:0], &ev)
	}
}

func BenchmarkMask(b *testing.B) {
	m := NewMasker()
	for name, text := range map[string]string{"none": strings.Repeat("actor exit with error ", 20), "one": "cannot connect to postgres://rw:hunter22@db:5432/dev " + strings.Repeat("x", 400)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.of(text).apply(text)
			}
		})
	}
}
