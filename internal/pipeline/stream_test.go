package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/test/bench/gen"
)

const (
	stamp   = "2026-11-30T09:14:07.482913204Z"
	header  = stamp + " ERROR risingwave_stream::task: "
	healthy = stamp + "  INFO risingwave_stream::task: all is well actor_id=17\n"
	// known is an error of the tests' catalogue, with one argument.
	known = "Unexpected backfill state: "
)

func matcher(t testing.TB, messages ...string) *match.Matcher {
	t.Helper()
	if messages == nil {
		messages = []string{known + "{:?}"}
	}
	var records []catalog.Record
	for i, m := range messages {
		records = append(records, catalog.Record{ID: fmt.Sprint(i), ErrorMessage: m})
	}
	m, problems := match.New(records)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return m
}

// A rig is a Stream with a clock to set and what it has emitted.
type rig struct {
	*Stream
	t      testing.TB
	now    time.Time
	events []annotate.Event
}

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func newRig(t testing.TB, info Info, opt Options) *rig {
	m := matcher(t)
	return rigWith(t, info, opt, func() *match.Matcher { return m })
}

func rigWith(t testing.TB, info Info, opt Options, m func() *match.Matcher) *rig {
	r := &rig{t: t, now: start}
	opt.Now = func() time.Time { return r.now }
	if info.Input == "" {
		info.Input, info.Line = "file", max(info.Line, 1)
	}
	r.Stream = New(info, m, func(ev *annotate.Event) error {
		r.events = append(r.events, *ev)
		return nil
	}, opt)
	return r
}

// feed gives s in as many reads as the stream wants.
func (r *rig) feed(s string) {
	r.t.Helper()
	for in := strings.NewReader(s); in.Len() > 0; {
		if _, err := r.ReadOnce(in); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) idle(after time.Duration) {
	r.now = r.now.Add(after)
	r.Idle(r.now)
}

// args are the events' first arguments.
func (r *rig) args() []string {
	out := []string{}
	for _, ev := range r.events {
		out = append(out, ev.Error.Args[0])
	}
	return out
}

func (r *rig) want(args ...string) {
	r.t.Helper()
	if args == nil {
		args = []string{}
	}
	if d := cmp.Diff(args, r.args()); d != "" {
		r.t.Error(d)
	}
}

// TestFlush: a record without an end is complete after the silence set for it,
// a message in pieces after ten seconds, and time without bytes counts only.
func TestFlush(t *testing.T) {
	for _, c := range []struct {
		name, in string
		opt      Options
		wait     time.Duration
	}{
		{"default", header + known + "a\n", Options{}, 250 * time.Millisecond},
		{"set", header + known + "a\n", Options{FlushAfter: 2 * time.Second}, 2 * time.Second},
		{"continuation", header + "x\n\nCaused by:\n  " + known + "a\n", Options{}, 250 * time.Millisecond},
		{"CRI part", stamp + " stdout P " + header + known + "a\n", Options{}, 10 * time.Second},
		{"CRI part and end", stamp + " stdout P " + header + "\n" + stamp + " stdout F " + known + "a\n", Options{}, 250 * time.Millisecond},
		{"docker part", `{"log":"` + header + known + `a","stream":"stdout","time":"` + stamp + `"}` + "\n", Options{}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Info{}, c.opt)
			r.feed(c.in)
			r.idle(c.wait - 1)
			r.want()
			if offset, line := r.Resume(); offset != 0 || line != 1 {
				t.Errorf("resumes at %d, line %d, while the record is open", offset, line)
			}
			r.idle(1)
			r.want("a")
			if offset, line := r.Resume(); offset != int64(len(c.in)) || line != int64(1+strings.Count(c.in, "\n")) {
				t.Errorf("resumes at %d, line %d", offset, line)
			}
			r.idle(time.Hour)
			if err := r.End(true); err != nil {
				t.Fatal(err)
			}
			r.want("a")
		})
	}
}

// TestFlushWaitsForSilence: lines that keep coming keep the record open.
func TestFlushWaitsForSilence(t *testing.T) {
	r := newRig(t, Info{}, Options{})
	r.feed(header + "x\n")
	for range 10 {
		r.idle(200 * time.Millisecond)
		r.feed("  cause\n")
	}
	r.feed("  " + known + "a\n")
	r.want()
	r.idle(250 * time.Millisecond)
	r.want("a")
	if got := r.events[0].Origin; got.Offset != 0 || got.LineNumber != 1 || strings.Count(got.Line, "\n") != 11 {
		t.Errorf("%+v", got)
	}
}

// TestHalfLine: a line without its newline is no line, whatever the silence,
// until the stream ends.
func TestHalfLine(t *testing.T) {
	for partial, want := range map[bool][]string{true: {"a"}, false: {}} {
		r := newRig(t, Info{}, Options{})
		r.feed(healthy + header + known + "a")
		r.idle(time.Hour)
		r.want()
		if offset, line := r.Resume(); offset != int64(len(healthy)) || line != 2 {
			t.Errorf("resumes at %d, line %d", offset, line)
		}
		if err := r.End(partial); err != nil {
			t.Fatal(err)
		}
		r.want(want...)
	}
}

func TestOrigin(t *testing.T) {
	r := newRig(t, Info{Path: "/log/compute-0.log", Offset: 1000, Line: 51, Input: "file", K8s: annotate.K8s{Namespace: "rw"}}, Options{})
	lines := []string{"no stamp " + known + "a\n", healthy, header + known + "b\n", stamp + " stderr F " + header + known + "c\n", "Nov 30 09:14:07 n1 rw[42]: " + known + "d\n"}
	r.feed(strings.Join(lines, ""))
	r.End(true)
	r.want("a", "b", "c", "d")
	var got []annotate.Origin
	for _, ev := range r.events {
		ev.Origin.Line = ""
		got = append(got, ev.Origin)
	}
	after := func(n int) int64 { return int64(1000 + len(strings.Join(lines[:n], ""))) }
	base := annotate.Origin{Input: "file", Path: "/log/compute-0.log", TimeFrom: "record"}
	want := []annotate.Origin{base, base, base, base}
	want[0].Offset, want[0].LineNumber, want[0].TimeFrom = 1000, 51, "receive"
	want[1].Offset, want[1].LineNumber = after(2), 53
	want[2].Offset, want[2].LineNumber, want[2].Stream = after(3), 54, "stderr"
	want[3].Offset, want[3].LineNumber, want[3].Unit, want[3].Host, want[3].TimeFrom = after(4), 55, "rw", "n1", "envelope"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if ev := r.events[1]; ev.RW.Component != "compute" || ev.K8s.Namespace != "rw" || !ev.Time.Equal(time.Date(2026, 11, 30, 9, 14, 7, 482913204, time.UTC)) {
		t.Errorf("%+v", ev)
	}
	if ev := r.events[0]; !ev.Time.Equal(start) {
		t.Errorf("received at %v", ev.Time)
	}
}

// cri wraps lines, each a whole message of a stream.
func cri(stream, flag, text string) string {
	return stamp + " " + stream + " " + flag + " " + text + "\n"
}

// TestInterleaved: pieces of stdout and stderr, of two containers, of two
// journal streams are put together apart.
func TestInterleaved(t *testing.T) {
	docker := func(stream, text string) string {
		return `{"log":"` + text + `","stream":"` + stream + `","time":"` + stamp + `"}` + "\n"
	}
	journal := func(stream, text string, more bool) string {
		s := `{"_STREAM_ID":"` + stream + `","MESSAGE":"` + text + `"`
		if more {
			s += `,"_LINE_BREAK":"line-max"`
		}
		return s + "}\n"
	}
	for name, in := range map[string]string{
		"CRI": cri("stdout", "P", header+"Unexpected back") + cri("stderr", "P", "thread 'x' (1) panicked at src/x.rs:1:2:") + cri("stdout", "P", "fill sta") +
			cri("stderr", "F", "") + cri("stdout", "F", "te: a") + cri("stderr", "P", "Unexpected ") + cri("stdout", "F", "  more") + cri("stderr", "F", "backfill state: b"),
		"CRI, headers in pieces": cri("stdout", "F", header+"x") + cri("stdout", "P", stamp[:9]) + cri("stderr", "P", "thread 'x' ") + cri("stdout", "F", header[9:]+known+"a") +
			cri("stderr", "P", "panicked") + cri("stderr", "F", " at src/x.rs:1:2:") + cri("stderr", "P", "Unexpected ") + cri("stdout", "F", "  more") + cri("stderr", "F", "backfill state: b") + cri("stderr", "F", "note: x"),
		"docker":  docker("stdout", header+"Unexpected back") + docker("stderr", header+"Unexpected ba") + docker("stdout", `fill state: a\n`) + docker("stderr", `ckfill state: b\n`),
		"journal": journal("s1", header+"Unexpected back", true) + journal("s2", header+"Unexpected ba", true) + journal("s1", "fill state: a", false) + journal("s2", "ckfill state: b", false),
		"compose": "a-0  | " + header + "x\n" + "b-0  | " + header + "x\n" + "a-0  |   " + known + "a\n" + "b-0  |   " + known + "b\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Info{}, Options{})
			r.feed(in)
			r.End(true)
			r.want("a", "b")
		})
	}
}

// TestPieces: wherever a line is cut, inside of its stamp, a colour code or a
// letter too, its record is the one of the whole line.
func TestPieces(t *testing.T) {
	lines := []string{
		header + "first",
		"\x1b[2m" + stamp + "\x1b[0m \x1b[31mERROR\x1b[0m \x1b[2mx::y\x1b[0m\x1b[2m:\x1b[0m failed \x1b[3merror\x1b[0m\x1b[2m=\x1b[0m" + known + "é",
		"",
		"thread 'rw-main' (1) panicked at src/x.rs:1:2:",
		known + "b",
		"note: run",
	}
	read := func(cutLine, at int) (events []annotate.Event, offsets []int64) {
		r := newRig(t, Info{}, Options{})
		offset := int64(0)
		for i, line := range lines {
			offsets = append(offsets, offset)
			text := cri("stdout", "F", line)
			if i == cutLine {
				text = cri("stdout", "P", line[:at]) + cri("stdout", "F", line[at:])
			}
			r.feed(text)
			offset += int64(len(text))
		}
		r.End(true)
		return r.events, offsets
	}
	want, _ := read(-1, 0)
	if len(want) != 2 || want[0].RW.Target != "x::y" {
		t.Fatalf("%+v", want)
	}
	for i, line := range lines {
		for at := 1; at < len(line); at++ {
			got, offsets := read(i, at)
			if len(got) != len(want) {
				t.Fatalf("line %d cut at %d: %d events", i, at, len(got))
			}
			for k := range got {
				if from := got[k].Origin.Offset; from != offsets[1+k] && (k == 0 || from != offsets[3]) { // a panic's empty line is its own or not
					t.Errorf("line %d cut at %d: event %d is at %d", i, at, k, from)
				}
				got[k].Origin.Offset, got[k].Origin.LineNumber = want[k].Origin.Offset, want[k].Origin.LineNumber
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("line %d cut at %d: %s", i, at, d)
			}
		}
	}
}

// TestPieceAlone: a coloured line whose other pieces never come.
func TestPieceAlone(t *testing.T) {
	r := newRig(t, Info{}, Options{})
	r.feed(cri("stdout", "P", header+strings.Replace(known, " ", "\x1b[0m \x1b[3m", 1)+"x"))
	r.End(true)
	if len(r.events) != 1 || strings.Contains(r.events[0].Origin.Line, "[3m") {
		t.Errorf("%+v", r.events)
	}
}

// TestEchoes: what a span repeats is silent for ten minutes after its report,
// by the log's own time; then, and alone, it counts.
func TestEchoes(t *testing.T) {
	line := func(minute int, span, text string) string {
		return fmt.Sprintf("2026-11-30T09:%02d:00Z  INFO failure_recovery{error=%s}: risingwave_meta::barrier: %s\n", minute, span, text)
	}
	in := line(0, known+"alone", "recovery start!") + line(1, known+"alone", "x") + // a span only: once
		"2026-11-30T09:05:00Z ERROR risingwave_meta::barrier: failed error=" + known + "a\n" +
		line(6, known+"a", "x") + line(15, known+"a", "x") + // silent
		line(16, known+"a", "x") + // the window is over
		line(17, known+"other", "x") // another argument is another error
	r := newRig(t, Info{}, Options{})
	r.feed(in)
	r.End(true)
	r.want("alone", "a", "a", "other")
	if r.events[0].Error.Via != "span" || r.events[1].Error.Via != "field" || r.Stats().Echoes != 3 {
		t.Errorf("%+v, %d echoes", r.events[0].Error, r.Stats().Echoes)
	}
	all := newRig(t, Info{}, Options{Echoes: true})
	all.feed(in)
	all.End(true)
	all.want("alone", "alone", "a", "a", "a", "a", "other")
}

// TestGiantLine: a line of 20 MB is not held; the error in it is found wherever
// it stands, and so is the one in the line behind it.
func TestGiantLine(t *testing.T) {
	const size = 20 << 20
	fill := strings.Repeat("filler text ", size/12)
	for name, line := range map[string]string{
		"start":                   header + known + "a " + fill,
		"middle":                  header + fill[:size/2] + " " + known + "a " + fill[size/2:],
		"across a record's limit": header + fill[:256<<10-len(header)-10] + " " + known + "a " + fill,
		"across a piece's limit":  header + fill[:1<<20-len(header)-10] + " " + known + "a " + fill,
		"end":                     header + fill + " " + known + "a",
		"in CRI":                  stamp + " stdout F " + header + fill + " " + known + "a",
		"in JSON":                 `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"` + fill + `","error":"` + known + `a"},"target":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Info{}, Options{})
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.feed(healthy + line + "\n" + header + known + "b\n")
			r.End(true)
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
				t.Errorf("%d bytes are held", grown)
			}
			if len(r.events) != 2 || !strings.HasPrefix(r.events[0].Error.Args[0], "a") || r.events[1].Error.Args[0] != "b" {
				t.Fatalf("%d events", len(r.events))
			}
			ev := r.events[0]
			if ev.Origin.LineNumber != 2 || ev.Origin.Offset != int64(len(healthy)) || !ev.Origin.Truncated || r.events[1].Origin.LineNumber != 3 {
				t.Errorf("at byte %d, line %d, truncated %v; then line %d", ev.Origin.Offset, ev.Origin.LineNumber, ev.Origin.Truncated, r.events[1].Origin.LineNumber)
			}
		})
	}
}

// TestManyContinuationLines: 100,000 lines without a header behind a record are
// cut into records of bounded size, and an error in any of them is found once.
func TestManyContinuationLines(t *testing.T) {
	const n = 100_000
	r := newRig(t, Info{}, Options{})
	var b strings.Builder
	b.WriteString(header + "it begins\n")
	want := []string{}
	for i := range n {
		if i%9973 == 5 {
			fmt.Fprintf(&b, "  %sv%d\n", known, i)
			want = append(want, fmt.Sprintf("v%d", i))
		} else {
			fmt.Fprintf(&b, "  %4d: frame of a stack that does not end\n", i)
		}
	}
	b.WriteString(header + known + "last\n")
	r.feed(b.String())
	r.End(true)
	r.want(append(want, "last")...)
	if st := r.Stats(); st.Truncated == 0 || st.Lines != n+2 {
		t.Errorf("%+v", st)
	}
	if got := r.events[len(r.events)-1].Origin.LineNumber; got != n+2 {
		t.Errorf("the last is on line %d", got)
	}
}

// TestLimit: a record at its very limit, and one byte more.
func TestLimit(t *testing.T) {
	for extra := -3; extra <= 3; extra++ {
		r := newRig(t, Info{}, Options{MaxRecord: 4 << 10})
		line := header + strings.Repeat("x", 4<<10-len(header)-len(known)-3+extra) + " " + known + "a"
		r.feed(line + "\n" + header + known + "b\n")
		r.End(true)
		if len(r.events) != 2 || !strings.HasPrefix(r.events[0].Error.Args[0], "a") {
			t.Errorf("%+d: %q", extra, r.args())
		}
	}
}

// TestManyWriters: more writers than are kept open at once lose nothing.
func TestManyWriters(t *testing.T) {
	r := newRig(t, Info{}, Options{})
	var b strings.Builder
	var want []string
	for i := range 3 * maxOpen {
		fmt.Fprintf(&b, "[pod/p%d/c] %s%sv%d\n", i, header, known, i)
		want = append(want, fmt.Sprintf("v%d", i))
	}
	r.feed(b.String())
	if len(r.open) > maxOpen {
		t.Errorf("%d records are open", len(r.open))
	}
	r.End(true)
	r.want(want...)
}

// TestReplacedCatalogue: a catalogue that is swapped between two reads counts
// from the next read on; a record that is open then is judged by the new one.
func TestReplacedCatalogue(t *testing.T) {
	first, second := matcher(t), matcher(t, "another known error: {}")
	current := first
	r := rigWith(t, Info{}, Options{}, func() *match.Matcher { return current })
	r.feed(header + known + "a\n" + healthy)
	current = second
	r.feed(header + known + "no\n" + header + "another known error: b\n")
	current = first
	r.feed(healthy + header + known + "c\n")
	r.End(true)
	if r.events[0].Error.Args[0] != "a" || r.events[len(r.events)-1].Error.Args[0] != "c" {
		t.Error(r.args())
	}
	for _, arg := range r.args() {
		if arg == "no" {
			t.Error("the replaced catalogue still counts")
		}
	}
}

// TestEmitError: an error of emit ends the stream: no further event, and the
// error to whoever reads.
func TestEmitError(t *testing.T) {
	m, stop, calls := matcher(t), errors.New("stop"), 0
	s := New(Info{}, func() *match.Matcher { return m }, func(*annotate.Event) error {
		calls++
		return stop
	}, Options{})
	in := strings.NewReader(strings.Repeat(header+known+"a\n", 10))
	if _, err := s.ReadOnce(in); !errors.Is(err, stop) {
		t.Errorf("ReadOnce: %v", err)
	}
	if err := s.End(true); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("End: %v after %d calls", err, calls)
	}
}

// TestReadError: what Read gives with its error is handled, and the error is
// passed on.
func TestReadError(t *testing.T) {
	r := newRig(t, Info{}, Options{})
	broken := errors.New("broken")
	n, err := r.ReadOnce(readFunc(func(p []byte) (int, error) { return copy(p, header+known+"a\n"), broken }))
	if n == 0 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", n, err)
	}
	r.End(true)
	r.want("a")
	if n, err := r.ReadOnce(strings.NewReader("")); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// resumable are logs for TestResume: of several writers, forms and sizes.
func resumable() map[string]string {
	r := rand.New(rand.NewPCG(5, 6))
	var text, mixed, parts strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "%sx%d\n", healthy, i)
		switch r.IntN(3) {
		case 0:
			fmt.Fprintf(&text, "%s%sv%d\n", header, known, i)
		case 1:
			fmt.Fprintf(&text, "%sfailed\n\nCaused by:\n  %sv%d\n", header, known, i)
		}
		fmt.Fprintf(&mixed, "%s%s%s", cri("stdout", "F", header+fmt.Sprintf("failed %d", i)), cri("stderr", "F", header+known+fmt.Sprintf("e%d", i)), cri("stdout", "F", "  "+known+fmt.Sprintf("o%d", i)))
		fmt.Fprintf(&parts, "%s%s%s", cri("stdout", "P", header+"Unexpected back"), cri("stderr", "F", healthy[:len(healthy)-1]), cri("stdout", "F", fmt.Sprintf("fill state: p%d", i)))
	}
	return map[string]string{"text": text.String(), "two streams": mixed.String(), "pieces": parts.String()}
}

// TestResume: a new stream that reads from where the old one said, after any
// prefix and any silence, misses no event. In a log of one writer it repeats
// none; where several share a log it may repeat what stands behind the start of
// another's record that was still open.
func TestResume(t *testing.T) {
	for name, log := range resumable() {
		whole := newRig(t, Info{}, Options{})
		whole.feed(log)
		whole.End(true)
		r := rand.New(rand.NewPCG(7, 8))
		for range 150 {
			cut := r.IntN(len(log) + 1)
			first := newRig(t, Info{}, Options{})
			for at := 0; at < cut; {
				n := min(cut-at, 1+r.IntN(500))
				first.feed(log[at : at+n])
				if at += n; r.IntN(20) == 0 {
					first.idle(300 * time.Millisecond)
				}
			}
			offset, line := first.Resume()
			if want := int64(1 + strings.Count(log[:offset], "\n")); line != want {
				t.Fatalf("%s: byte %d is on line %d, not %d", name, offset, want, line)
			}
			second := newRig(t, Info{Offset: offset, Line: line}, Options{})
			second.feed(log[offset:])
			second.End(true)
			times := map[string]int{}
			for _, arg := range append(first.args(), second.args()...) {
				times[arg]++
			}
			for _, arg := range first.args() {
				if times[arg] > 1 && name == "text" {
					t.Errorf("%s, cut at %d, resumed at %d: %s is repeated", name, cut, offset, arg)
				}
			}
			for _, arg := range whole.args() {
				if times[arg] == 0 {
					t.Errorf("%s, cut at %d, resumed at %d: %s is lost", name, cut, offset, arg)
				}
				delete(times, arg)
			}
			if len(times) > 0 {
				t.Errorf("%s, cut at %d: events that the whole log does not give: %v", name, cut, times)
			}
		}
	}
}

// TestResumeIsNeverWithinAMessage: a later start that began between the pieces
// of a message would take the rest for a message of its own.
func TestResumeIsNeverWithinAMessage(t *testing.T) {
	long := strings.Repeat("x", 200)
	piece := func(stream, tag, text string) string { return stamp + " " + stream + " " + tag + " " + text + "\n" }
	log := piece("stdout", "P", header+long) + piece("stderr", "F", "something else") + piece("stdout", "F", " "+known+"1") +
		piece("stdout", "P", header+long) + piece("stdout", "F", " "+known+"2") + piece("stdout", "F", header+known+"3")
	for cut := range len(log) {
		first := newRig(t, Info{}, Options{})
		first.feed(log[:cut])
		offset, line := first.Resume()
		second := newRig(t, Info{Offset: offset, Line: line}, Options{})
		second.feed(log[offset:])
		second.End(true)
		for _, ev := range second.events {
			if !strings.HasPrefix(ev.Origin.Line, header) {
				t.Fatalf("cut at %d, resumed at %d: %q is a rest", cut, offset, ev.Origin.Line)
			}
		}
	}
}

// A stop in the middle of a message: the pieces wait for the rest, unless they
// tell an error already.
func TestStopWithinAMessage(t *testing.T) {
	begin := stamp + " stdout P " + header + strings.Repeat("x", 200)
	r := newRig(t, Info{}, Options{})
	r.feed(begin + "\n")
	r.End(false)
	if offset, _ := r.Resume(); offset != 0 || len(r.events) != 0 {
		t.Errorf("resumes at %d, %d events", offset, len(r.events))
	}
	r = newRig(t, Info{}, Options{})
	r.feed(begin + " error=" + known + "1\n")
	r.End(false)
	if offset, _ := r.Resume(); offset == 0 || len(r.events) != 1 {
		t.Errorf("resumes at %d, %d events", offset, len(r.events))
	}
}

// TestCursor: the cursor to go on behind is that of the last entry before the
// oldest record that is open.
func TestCursor(t *testing.T) {
	entry := func(c, text string) string { return "__CURSOR=" + c + "\n_STREAM_ID=s\nMESSAGE=" + text + "\n\n" }
	r := newRig(t, Info{}, Options{})
	for _, step := range []struct{ in, want string }{
		{entry("c1", stamp+" ERROR a::b: x"), ""},
		{entry("c2", stamp+" ERROR a::b: y"), "c1"},
		{entry("c3", "  continues"), "c1"},
		{"__CURSOR=c4\nCOREDUMP=x\n\n", "c1"},
		{entry("c5", stamp+" ERROR a::b: z"), "c4"},
	} {
		r.feed(step.in)
		if got := r.Cursor(); got != step.want {
			t.Errorf("after %q: %q, want %q", step.in, got, step.want)
		}
	}
	r.idle(time.Second)
	if got := r.Cursor(); got != "c5" {
		t.Errorf("when all is handled: %q", got)
	}
}

// TestNothingIsAllocatedOnAMiss: reading healthy blocks, in the forms that come
// in bulk.
func TestNothingIsAllocatedOnAMiss(t *testing.T) {
	for _, form := range bulkForms {
		read, size := healthyBlock(t, form)
		if n := testing.AllocsPerRun(10, read); n != 0 {
			t.Errorf("%s: %v allocations for %d bytes", form, n, size)
		}
	}
}

func BenchmarkMiss(b *testing.B) {
	for _, form := range bulkForms {
		read, size := healthyBlock(b, form)
		b.Run(string(form), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				read()
			}
		})
	}
}

var bulkForms = []gen.Form{gen.Text, gen.CRI, gen.JSON, gen.Docker, gen.ANSI, gen.JournalExport}

// healthyBlock returns what feeds a block without an error to a stream that has
// its buffers already, and the block's size.
func healthyBlock(t testing.TB, form gen.Form) (read func(), size int) {
	m, _ := match.New(gen.Catalog(500))
	var log bytes.Buffer
	if _, err := gen.Write(&log, gen.Options{Size: 1 << 20, Seed: 3, Form: form}); err != nil {
		t.Fatal(err)
	}
	block := log.Bytes()[:bytes.LastIndexByte(log.Bytes()[:400<<10], '\n')+1]
	s := New(Info{Line: 1}, func() *match.Matcher { return m }, func(*annotate.Event) error {
		t.Errorf("%s: an event in a healthy log", form)
		return nil
	}, Options{Now: func() time.Time { return start }})
	in := bytes.NewReader(nil)
	read = func() {
		in.Reset(block)
		for in.Len() > 0 {
			if _, err := s.ReadOnce(in); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 {
		read()
	}
	return read, len(block)
}

func BenchmarkReadOnce(b *testing.B) {
	m, _ := match.New(gen.Catalog(500))
	for _, form := range gen.Forms() {
		var log bytes.Buffer
		if _, err := gen.Write(&log, gen.Options{Size: 4 << 20, Seed: 3, Form: form, HitRate: 0.001}); err != nil {
			b.Fatal(err)
		}
		b.Run(string(form), func(b *testing.B) {
			b.SetBytes(int64(log.Len()))
			b.ReportAllocs()
			for b.Loop() {
				s := New(Info{Line: 1}, func() *match.Matcher { return m }, func(*annotate.Event) error { return nil }, Options{Now: func() time.Time { return start }})
				for in := bytes.NewReader(log.Bytes()); in.Len() > 0; {
					if _, err := s.ReadOnce(in); err != nil {
						b.Fatal(err)
					}
				}
				s.End(true)
			}
		})
	}
}

// Thousands of quiet files are followed: none keeps the buffer of its backlog.
func TestAQuietStreamGivesItsBufferBack(t *testing.T) {
	s := New(Info{Line: 1}, func() *match.Matcher { return &match.Matcher{} }, nil, Options{})
	s.buf = make([]byte, 0, bulkBuffer)
	s.Idle(time.Now())
	if _, err := s.ReadOnce(strings.NewReader("")); err != io.EOF {
		t.Fatal(err)
	}
	if cap(s.buf) > startBuffer {
		t.Errorf("%d bytes", cap(s.buf))
	}
}
