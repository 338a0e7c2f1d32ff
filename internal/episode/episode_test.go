package episode

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// hit is an occurrence of record id in pod, stamped at.
func hit(id, pod string, at time.Time) annotate.Event {
	return annotate.Event{
		Kind: annotate.KindMatch, Time: at, Level: "error", Message: id,
		RW: annotate.RW{Component: "compute"}, Error: annotate.Error{ID: id},
		K8s: annotate.K8s{Namespace: "rw", Pod: pod},
	}
}

// brief writes an event as "kind pod new/count +first +last @time", all times
// relative to start.
func brief(ev annotate.Event) string {
	rel := func(t time.Time) string { return t.Sub(start).String() }
	return fmt.Sprintf("%s %s %d/%d +%s +%s @%s", ev.Kind, ev.K8s.Pod, ev.Seen.New, ev.Seen.Count,
		rel(ev.Seen.First), rel(ev.Seen.Last), rel(ev.Time))
}

func briefs(evs []annotate.Event) []string {
	out := []string{}
	for _, ev := range evs {
		out = append(out, brief(ev))
	}
	return out
}

func check(t *testing.T, got []annotate.Event, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if d := cmp.Diff(want, briefs(got)); d != "" {
		t.Fatalf("events differ (-want +got):\n%s", d)
	}
}

// run ticks at every due time up to and including end.
func run(f *Folder, end time.Time) []annotate.Event {
	var out []annotate.Event
	for next := f.Next(); !next.IsZero() && !next.After(end); next = f.Next() {
		out = append(out, f.Tick(next)...)
	}
	return out
}

func TestThousandActorsAreTwoEvents(t *testing.T) {
	f := New(Options{})
	var out []annotate.Event
	for i := range 1000 {
		at := start.Add(time.Duration(i) * time.Millisecond)
		ev := hit("a", "p0", at)
		ev.RW.ActorID = fmt.Sprint(i)
		ev.Error.Args = []string{fmt.Sprint(i)}
		out = append(out, f.Add(ev, at)...)
	}
	out = append(out, run(f, start.Add(3*time.Hour))...)
	check(t, out,
		"first p0 1/1 +0s +0s @0s",
		"repeat p0 999/1000 +0s +999ms @999ms")
	if last := out[1].RW.ActorID; last != "999" {
		t.Errorf("a repeat shows its last occurrence; actor %s", last)
	}
	if f.Len() != 0 {
		t.Errorf("%d episodes still open after three silent hours", f.Len())
	}
}

func TestWindows(t *testing.T) {
	f := New(Options{})
	var out []annotate.Event
	// One occurrence in each of the first windows, and two in the first hourly one.
	for _, m := range []time.Duration{0, 30 * time.Second, 2 * time.Minute, 7 * time.Minute, 22 * time.Minute, 80 * time.Minute} {
		out = append(out, run(f, start.Add(m))...)
		out = append(out, f.Add(hit("a", "p", start.Add(m)), start.Add(m))...)
	}
	out = append(out, run(f, start.Add(24*time.Hour))...)
	check(t, out,
		"first p 1/1 +0s +0s @0s",
		"repeat p 1/2 +0s +30s @30s",
		"repeat p 1/3 +0s +2m0s @2m0s",
		"repeat p 1/4 +0s +7m0s @7m0s",
		"repeat p 2/6 +0s +1h20m0s @1h20m0s")
}

func TestWindowsCloseWhenDue(t *testing.T) {
	f := New(Options{})
	f.Add(hit("a", "p", start), start)
	var closed []time.Duration
	for now := start; now.Before(start.Add(5 * time.Hour)); now = now.Add(time.Second) {
		for _, ev := range append(f.Tick(now), f.Add(hit("a", "p", now), now)...) {
			if ev.Kind != annotate.KindRepeat {
				t.Fatalf("unexpected %s at %v", ev.Kind, now)
			}
			closed = append(closed, now.Sub(start))
		}
	}
	want := []time.Duration{time.Minute, 6 * time.Minute, 21 * time.Minute, 81 * time.Minute, 141 * time.Minute, 201 * time.Minute, 261 * time.Minute}
	if d := cmp.Diff(want, closed); d != "" {
		t.Fatalf("windows close at (-want +got):\n%s", d)
	}
}

// A permanent error costs 28 events a day: the first, one for each closed
// window (1, 6, 21 minutes, then 23 hours), and what a stop flushes.
func TestPermanentErrorForADay(t *testing.T) {
	f := New(Options{})
	var out []annotate.Event
	const every = 250 * time.Millisecond
	end := start.Add(24 * time.Hour)
	n := 0
	for now := start; now.Before(end); now = now.Add(every) {
		out = append(out, f.Tick(now)...)
		out = append(out, f.Add(hit("a", "p", now), now)...)
		n++
	}
	if len(out) != 27 {
		t.Errorf("%d events in 24 hours, want 27", len(out))
	}
	out = append(out, f.Flush(end)...)
	if len(out) != 28 {
		t.Errorf("%d events with the flush, want 28", len(out))
	}
	if got := sum(out); got != int64(n) {
		t.Errorf("sum of seen.new is %d, want %d", got, n)
	}
	if last := out[len(out)-1].Seen.Count; last != int64(n) {
		t.Errorf("last seen.count is %d, want %d", last, n)
	}
}

func TestEpisodeEndsAfterAnHourOfSilence(t *testing.T) {
	f := New(Options{})
	check(t, f.Add(hit("a", "p", start), start), "first p 1/1 +0s +0s @0s")
	at := start.Add(59 * time.Minute)
	check(t, f.Add(hit("a", "p", at), at)) // the hour starts anew
	at = at.Add(59 * time.Minute)
	check(t, f.Add(hit("a", "p", at), at), "repeat p 1/2 +0s +59m0s @59m0s")
	at = at.Add(time.Hour)
	check(t, f.Add(hit("a", "p", at), at),
		"repeat p 1/3 +0s +1h58m0s @1h58m0s",
		"first p 1/1 +2h58m0s +2h58m0s @2h58m0s")
}

func TestFingerprint(t *testing.T) {
	base := hit("a", "p", start)
	for name, tc := range map[string]struct {
		change func(*annotate.Event)
		same   bool
	}{
		"other args":      {func(e *annotate.Event) { e.Error.Args = []string{"x"} }, true},
		"other actor":     {func(e *annotate.Event) { e.RW.ActorID = "7" }, true},
		"other container": {func(e *annotate.Event) { e.K8s.Container = "x" }, true},
		"other restart":   {func(e *annotate.Event) { e.K8s.Restart = 3 }, true},
		"other record":    {func(e *annotate.Event) { e.Error.ID = "b" }, false},
		"other component": {func(e *annotate.Event) { e.RW.Component = "meta" }, false},
		"other pod":       {func(e *annotate.Event) { e.K8s.Pod = "q" }, false},
		"other namespace": {func(e *annotate.Event) { e.K8s.Namespace = "rw2" }, false},
	} {
		ev := base
		tc.change(&ev)
		if same := fingerprint(&ev) == fingerprint(&base); same != tc.same {
			t.Errorf("%s: same episode %v, want %v", name, same, tc.same)
		}
	}
	one, two := annotate.Event{}, annotate.Event{}
	one.Origin.Host, two.Origin.Host = "db1", "db2"
	if fingerprint(&one) == fingerprint(&two) {
		t.Error("two hosts of one journal are one episode")
	}
}

func TestOldLogsReadFast(t *testing.T) {
	// A day of log read within a second is one storm, told with the log's times,
	// and with the newest occurrence even if files are not read in order.
	f := New(Options{})
	var out []annotate.Event
	for _, h := range []int{3, 0, 23, 12} {
		out = append(out, f.Add(hit("a", "p", start.Add(time.Duration(h)*time.Hour)), start)...)
	}
	out = append(out, run(f, start.Add(time.Minute))...)
	check(t, out, "first p 1/1 +3h0m0s +3h0m0s @3h0m0s", "repeat p 3/4 +0s +23h0m0s @23h0m0s")
}

func TestSuppressedOccurrencesCount(t *testing.T) {
	f := New(Options{})
	ev := hit("a", "p", start)
	ev.Seen = annotate.Seen{New: 41, Count: 41, First: start.Add(-time.Minute), Last: start}
	check(t, f.Add(ev, start), "first p 41/41 +-1m0s +0s @0s")
}

func TestAllPassesThrough(t *testing.T) {
	f := New(Options{All: true})
	for range 500 {
		check(t, f.Add(hit("a", "p", start), start), "match p 1/1 +0s +0s @0s")
	}
	if !f.Next().IsZero() || f.Len() != 0 || f.Flush(start) != nil {
		t.Error("mode all keeps state")
	}
	f.Changed(func(string, []byte) { t.Error("mode all saves state") })
}

func TestRateLimitDelaysAndLosesNothing(t *testing.T) {
	f := New(Options{Rate: 2, Burst: 3})
	var out []annotate.Event
	for round := range 2 {
		for i := range 10 {
			at := start.Add(time.Duration(10*round+i) * time.Millisecond)
			out = append(out, f.Add(hit("a", fmt.Sprint("p", i), at), at)...)
		}
	}
	check(t, out, "first p0 1/1 +0s +0s @0s", "first p1 1/1 +1ms +1ms @1ms", "first p2 1/1 +2ms +2ms @2ms")

	// The others come at the rate, oldest first, with all that happened to them.
	late := run(f, start.Add(5*time.Second))
	if len(late) != 7 {
		t.Fatalf("%d late first events, want 7:\n%s", len(late), strings.Join(briefs(late), "\n"))
	}
	for i, ev := range late {
		want := fmt.Sprintf("first p%d 2/2 +%dms +%dms @%dms", i+3, i+3, i+13, i+13)
		if got := brief(ev); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	rest := run(f, start.Add(3*time.Minute))
	if len(rest) != 3 || sum(out)+sum(late)+sum(rest) != 20 {
		t.Errorf("rest: %q; sum %d, want 20", briefs(rest), sum(out)+sum(late)+sum(rest))
	}
}

func TestNextHonoursTheRate(t *testing.T) {
	f := New(Options{Rate: 2, Burst: 1})
	f.Add(hit("a", "p0", start), start)
	f.Add(hit("a", "p1", start), start)
	next := f.Next()
	if wait := next.Sub(start); wait < 500*time.Millisecond || wait > 501*time.Millisecond {
		t.Fatalf("Next is %v away, want half a second", wait)
	}
	check(t, f.Tick(next.Add(-time.Millisecond)))
	check(t, f.Tick(next), "first p1 1/1 +0s +0s @0s")
}

func TestBoundedEpisodes(t *testing.T) {
	f := New(Options{MaxEpisodes: 3, Rate: -1})
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for i := range 3 {
		f.Add(hit("a", fmt.Sprint("p", i), at(i)), at(i))
	}
	f.Add(hit("a", "p1", at(3)), at(3)) // p1 and p0 have something to tell; p0 is now newer
	f.Add(hit("a", "p0", at(4)), at(4))
	check(t, f.Add(hit("a", "p3", at(5)), at(5)), "first p3 1/1 +5s +5s @5s") // p2 went, silently: all told
	check(t, f.Add(hit("a", "p4", at(6)), at(6)),
		"repeat p1 1/2 +1s +3s @3s", "first p4 1/1 +6s +6s @6s")
	if f.Len() != 3 {
		t.Errorf("%d episodes, want 3", f.Len())
	}
	gone := []string{}
	f.Changed(func(key string, state []byte) {
		if state == nil {
			gone = append(gone, key[strings.LastIndex(key, "/")+1:])
		}
	})
	slices.Sort(gone)
	if d := cmp.Diff([]string{"p1", "p2"}, gone); d != "" {
		t.Error(d)
	}
}

func TestRestoreContinues(t *testing.T) {
	f := New(Options{})
	f.Add(hit("a", "p", start), start)
	at := start.Add(20 * time.Second)
	f.Add(hit("a", "p", at), at)
	saved := snapshot(f, nil)

	g := New(Options{})
	restore(t, g, saved, start.Add(40*time.Second))
	at = start.Add(50 * time.Second)
	check(t, g.Add(hit("a", "p", at), at))
	check(t, run(g, start.Add(time.Minute)), "repeat p 2/3 +0s +50s @50s")

	// A restart after the window has closed reports at once; after an hour of silence the episode is over.
	h := New(Options{})
	restore(t, h, saved, start.Add(2*time.Hour))
	check(t, h.Tick(start.Add(2*time.Hour)), "repeat p 1/2 +0s +20s @20s")
	check(t, h.Add(hit("a", "p", start.Add(2*time.Hour)), start.Add(2*time.Hour)), "first p 1/1 +2h0m0s +2h0m0s @2h0m0s")
}

func TestRestoreAfterTheClockWasSetBack(t *testing.T) {
	f := New(Options{})
	at := start.Add(100 * time.Hour)
	f.Add(hit("a", "p", at), at)
	f.Add(hit("a", "p", at), at)
	g := New(Options{})
	restore(t, g, snapshot(f, nil), start)
	if wait := g.Next().Sub(start); wait > time.Minute {
		t.Errorf("window closes in %v", wait)
	}
	check(t, run(g, start.Add(time.Minute)), "repeat p 1/2 +100h0m0s +100h0m0s @100h0m0s")
}

func TestRestoreRefusesNonsense(t *testing.T) {
	for _, bad := range []string{"", "{", "null", `{"c":-1}`, `{"c":1,"n":2,"ev":{}}`, `{"c":1,"n":1}`, `{"c":1,"r":true,"w":-5}`, `{"c":1}`, "\x00\x00"} {
		f := New(Options{})
		if err := f.Restore("k", []byte(bad), start); err == nil || !strings.Contains(err.Error(), `"k"`) {
			t.Errorf("%q: error %v", bad, err)
		}
		if f.Len() != 0 {
			t.Errorf("%q was loaded", bad)
		}
	}
	f := New(Options{})
	if err := f.Restore("k", []byte(`{"c":1,"r":true,"s":"2026-11-30T08:59:00Z"}`), start); err != nil {
		t.Fatal(err)
	}
	f.Tick(start) // a window that closed in year 1 must not be counted up from there
	if err := f.Restore("k", []byte(`{"c":1,"r":true}`), start); err == nil {
		t.Error("the same episode twice")
	}
}

func TestStampsThatCannotBeStored(t *testing.T) {
	f := New(Options{})
	ev := hit("a", "p", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	f.Add(ev, start)
	f.Add(ev, start)
	saved := snapshot(f, nil)
	g := New(Options{})
	restore(t, g, saved, start)
	check(t, g.Flush(start), "repeat p 1/2 +0s +0s @0s")
}

// TestCrash kills the process at random between commits and checks that what
// the queue has got tells exactly what was read, each time the counts are
// brought to rest: no more, no less.
func TestCrash(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crash(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

// disk is what survives a crash: one transaction at a time.
type disk struct {
	position int // occurrences taken from the input
	episodes map[string][]byte
	queue    []annotate.Event
}

func crash(t *testing.T, rnd *rand.Rand) {
	const total = 250
	input := make([]annotate.Event, total)
	matches := map[string]int64{}
	at := start
	for i := range input {
		at = at.Add(time.Duration(rnd.Int64N(int64(10 * time.Second))))
		ev := hit(string('a'+rune(rnd.IntN(3))), fmt.Sprint("p", rnd.IntN(4)), at)
		ev.Seen.New = rnd.Int64N(3) // 0 counts as 1
		input[i] = ev
		matches[fingerprint(&ev)] += max(ev.Seen.New, 1)
	}
	opt := Options{MaxEpisodes: 1 + rnd.IntN(14), Rate: []float64{-1, 0.5, 20}[rnd.IntN(3)], Burst: 1 + rnd.IntN(5)}
	d := disk{episodes: map[string][]byte{}}
	now := start
	for d.position < total {
		d, now = life(t, rnd, opt, input, d, now)
	}
	got := map[string]int64{}
	for _, ev := range d.queue {
		got[fingerprint(&ev)] += ev.Seen.New
	}
	f := New(opt)
	restore(t, f, d.episodes, now)
	for _, ev := range f.Flush(now) {
		got[fingerprint(&ev)] += ev.Seen.New
	}
	if d := cmp.Diff(matches, got); d != "" {
		t.Fatalf("sum of seen.new (-matches +events):\n%s", d)
	}
}

// life is one process: it restores, reads, commits now and then, and ends by
// SIGTERM or by a crash that forgets what was not committed.
func life(t *testing.T, rnd *rand.Rand, opt Options, input []annotate.Event, d disk, now time.Time) (disk, time.Time) {
	f := New(opt)
	restore(t, f, d.episodes, now)
	position, pending := d.position, []annotate.Event(nil)
	commit := func() {
		d = disk{position, snapshot(f, d.episodes), append(slices.Clone(d.queue), pending...)}
		pending = nil
	}
	for range rnd.IntN(120) {
		now = now.Add(time.Duration(rnd.Int64N(int64(40 * time.Second))))
		switch {
		case rnd.IntN(6) == 0:
			commit()
		case rnd.IntN(5) == 0:
			pending = append(pending, f.Tick(now)...)
		case position < len(input):
			pending = append(pending, f.Add(input[position], now)...)
			position++
		}
	}
	if rnd.IntN(3) == 0 || position == len(input) {
		pending = append(pending, f.Flush(now)...)
		commit()
	}
	return d, now.Add(time.Duration(rnd.Int64N(int64(2 * time.Hour))))
}

// snapshot applies Changed to a copy of the states that were saved before.
func snapshot(f *Folder, saved map[string][]byte) map[string][]byte {
	out := maps.Clone(saved)
	if out == nil {
		out = map[string][]byte{}
	}
	f.Changed(func(key string, state []byte) {
		if state == nil {
			delete(out, key)
			return
		}
		out[key] = state
	})
	return out
}

func restore(t *testing.T, f *Folder, saved map[string][]byte, now time.Time) {
	t.Helper()
	for key, state := range saved {
		if err := f.Restore(key, state, now); err != nil {
			t.Fatal(err)
		}
	}
}

func sum(evs []annotate.Event) (n int64) {
	for _, ev := range evs {
		n += ev.Seen.New
	}
	return n
}

func FuzzRestore(f *testing.F) {
	fold := New(Options{})
	fold.Add(hit("a", "p", start), start)
	fold.Add(hit("a", "p", start), start)
	fold.Changed(func(_ string, state []byte) { f.Add(state) })
	f.Add([]byte(`{"c":1,"r":true}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		fold := New(Options{})
		if fold.Restore("k", state, start) != nil {
			return
		}
		fold.Tick(start)
		fold.Add(hit("a", "p", start), start)
		fold.Flush(start)
		fold.Changed(func(_ string, state []byte) {
			if state != nil && !json.Valid(state) {
				t.Errorf("state %q", state)
			}
		})
	})
}

func BenchmarkAdd(b *testing.B) {
	f := New(Options{})
	ev := hit("a", "p", start)
	b.ReportAllocs()
	for b.Loop() {
		f.Add(ev, start)
	}
}
