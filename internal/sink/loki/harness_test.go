package loki

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memQueue is a Queue in memory.
type memQueue struct {
	mu      sync.Mutex
	seq     uint64
	entries []QueueEntry
	bytes   int64
	ackErr  error
	readErr error
	reads   int
}

func (q *memQueue) add(data ...[]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range data {
		q.seq++
		q.entries = append(q.entries, QueueEntry{q.seq, d})
		q.bytes += int64(len(d))
	}
}

func (q *memQueue) Read(after uint64, maxEntries, maxBytes int) ([]QueueEntry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reads++
	if q.readErr != nil {
		return nil, q.readErr
	}
	from, _ := slices.BinarySearchFunc(q.entries, after+1, func(e QueueEntry, seq uint64) int {
		return int(int64(e.Seq) - int64(seq))
	})
	n, size := from, 0
	for n < len(q.entries) && n-from < maxEntries {
		if size += len(q.entries[n].Data); size > maxBytes && n > from {
			break
		}
		n++
	}
	return slices.Clone(q.entries[from:n]), nil
}

func (q *memQueue) Ack(seqs []uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ackErr != nil {
		return q.ackErr
	}
	gone := map[uint64]bool{}
	for _, s := range seqs {
		gone[s] = true
	}
	q.entries = slices.DeleteFunc(q.entries, func(e QueueEntry) bool {
		if gone[e.Seq] {
			q.bytes -= int64(len(e.Data))
		}
		return gone[e.Seq]
	})
	return nil
}

func (q *memQueue) Size() (int, int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries), q.bytes
}

func (q *memQueue) left() (out []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.entries {
		var entry Entry
		if json.Unmarshal(e.Data, &entry) == nil {
			out = append(out, word(entry.Line))
		}
	}
	return out
}

// renderTest is the renderer of the tests: the queue holds entries as JSON.
func renderTest(data []byte) (Entry, error) {
	var e Entry
	err := json.Unmarshal(data, &e)
	return e, err
}

// entry is a test entry of namespace "a", a minute old.
func entry(line string, change ...func(*Entry)) Entry {
	e := Entry{
		Labels:   []Pair{{"service_name", "risingwave"}, {"namespace", "a"}, {"component", "meta"}, {"level", "error"}, {"log_kind", "known_error"}},
		Metadata: []Pair{{"error_id", "d35cdfb22a5e48fe"}},
		Time:     time.Now().Add(-time.Minute), Line: line,
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func label(name, value string) func(*Entry) {
	return func(e *Entry) {
		e.Labels = slices.DeleteFunc(slices.Clone(e.Labels), func(p Pair) bool { return p.Name == name })
		e.Labels = append(e.Labels, Pair{name, value})
	}
}

func meta(name, value string) func(*Entry) {
	return func(e *Entry) { e.Metadata = append(slices.Clone(e.Metadata), Pair{name, value}) }
}

func ago(d time.Duration) func(*Entry) {
	return func(e *Entry) { e.Time = time.Now().Add(-d) }
}

// world is a client, its queue and its Loki inside a synctest bubble.
type world struct {
	t    *testing.T
	fake *fakeLoki
	rt   direct
	q    *memQueue
	opts Options
	c    *Client
	log  *bytes.Buffer
	stop func()

	began time.Time
}

// simulate runs f in a bubble. The first start is f's; what still runs at the
// end is stopped.
func simulate(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, fake: newFakeLoki(t), q: &memQueue{}, log: &bytes.Buffer{}, began: time.Now()}
		w.opts = Options{URL: "http://loki.test", Name: "test", Heartbeat: -1, Version: "1.2.3"}
		w.rt.handler = w.fake
		f(w)
		if w.stop != nil {
			w.stop()
		}
	})
}

func (w *world) add(entries ...Entry) {
	w.t.Helper()
	for _, e := range entries {
		b, err := json.Marshal(e)
		if err != nil {
			w.t.Fatal(err)
		}
		w.q.add(b)
	}
	if w.c != nil {
		w.c.Wake()
	}
}

// start builds a client and runs it.
func (w *world) start() {
	w.t.Helper()
	w.opts.RoundTripper = w.rt
	c, err := New(w.opts, w.q, renderTest, zerolog.New(w.log))
	if err != nil {
		w.t.Fatal(err)
	}
	w.c = c
	stop := running(w.t, c)
	w.stop = func() {
		stop()
		w.stop = nil
	}
}

// running runs a client until the function that it returns is called.
func running(t *testing.T, c *Client) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// pass lets simulated time go by.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// words returns the first words of what is stored, sorted, with counts if a
// word is there more than once.
func (w *world) words() []string {
	n := map[string]int{}
	for _, lines := range w.fake.lines() {
		for _, l := range lines {
			if w := word(l); w != "" {
				n[w]++
			}
		}
	}
	out := []string{}
	for _, k := range slices.Sorted(maps.Keys(n)) {
		if n[k] > 1 {
			k = fmt.Sprintf("%s×%d", k, n[k])
		}
		out = append(out, k)
	}
	return out
}

func word(line string) string {
	w, _, _ := strings.Cut(line, " ")
	return w
}

// expect compares everything that can be said about the outcome.
type expect struct {
	stored   string // words, sorted
	left     string // words still queued, in order
	dropped  map[Reason]uint64
	adjusted map[string]uint64
	requests int // at most; 0: not asked
}

func (w *world) check(want expect) {
	w.t.Helper()
	if d := cmp.Diff(strings.Fields(want.stored), w.words(), cmp.Transformer("", func(s []string) string { return strings.Join(s, " ") })); d != "" {
		w.t.Errorf("stored (-want +got):\n%s", d)
	}
	if got := strings.Join(w.q.left(), " "); got != want.left {
		w.t.Errorf("still queued: %q, want %q", got, want.left)
	}
	s := w.c.Stats()
	dropped, adjusted := map[Reason]uint64{}, map[string]uint64{}
	for r, n := range s.Dropped {
		if n > 0 {
			dropped[r] = n
		}
	}
	for how, n := range s.Adjusted {
		if n > 0 {
			adjusted[how] = n
		}
	}
	if want.dropped == nil {
		want.dropped = map[Reason]uint64{}
	}
	if want.adjusted == nil {
		want.adjusted = map[string]uint64{}
	}
	if d := cmp.Diff(want.dropped, dropped); d != "" {
		w.t.Errorf("dropped (-want +got):\n%s", d)
	}
	if d := cmp.Diff(want.adjusted, adjusted); d != "" {
		w.t.Errorf("adjusted (-want +got):\n%s", d)
	}
	if n := len(w.fake.log()); want.requests > 0 && n > want.requests {
		w.t.Errorf("%d requests, want at most %d:", n, want.requests)
	}
	if w.t.Failed() {
		for i, r := range w.fake.log() {
			if i > 12 {
				break
			}
			words := []string{}
			for _, l := range r.lines {
				words = append(words, word(l))
			}
			w.t.Logf("%s %d %s %.60v %.140s", r.at.Format("05.000"), r.status, r.labels, words, r.answer)
		}
		w.t.Logf("log:\n%s", w.log.String())
	}
}
