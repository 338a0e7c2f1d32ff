package corpus

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/lint"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
	"github.com/rwannotate/rwannotate/test/bench/gen"
)

// allLogs are the cases, the formats and the journal samples.
func allLogs(t testing.TB) []string {
	var logs []string
	for _, dir := range []string{"logs", "seed-logs", "formats", "journal"} {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %d files", dir, err, len(found))
		}
		logs = append(logs, found...)
	}
	return logs
}

// TestPrefilterOnCases: with and without the prefilter the events are the same.
func TestPrefilterOnCases(t *testing.T) {
	m := matcher(t, embedded(t))
	for _, log := range allLogs(t) {
		differential(t, m, log, read(t, log))
	}
}

// TestPrefilterOnGenerated is the same over generated logs in every envelope,
// with a catalogue of 500 records.
func TestPrefilterOnGenerated(t *testing.T) {
	m := matcher(t, gen.Catalog(500))
	for _, form := range gen.Forms() {
		var b bytes.Buffer
		st, err := gen.Write(&b, gen.Options{Size: 1 << 20, Seed: 7, HitRate: 0.02, Form: form})
		if err != nil {
			t.Fatal(err)
		}
		got := differential(t, m, string(form), b.Bytes())
		if int64(got) < st.Hits {
			t.Errorf("%s: %d events for %d known errors", form, got, st.Hits)
		}
	}
}

func differential(t *testing.T, m *match.Matcher, name string, log []byte) int {
	t.Helper()
	with := events(t, m, log, pipeline.Options{})
	without := events(t, m, log, pipeline.Options{Unfiltered: true})
	if d := cmp.Diff(without, with); d != "" {
		t.Errorf("%s: the prefilter changes the events (- without, + with):\n%s", name, d)
	}
	return len(with)
}

func FuzzPrefilter(f *testing.F) {
	m := matcher(f, embedded(f))
	for _, log := range allLogs(f) {
		if b := read(f, log); len(b) < 4<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, log []byte) { differential(t, m, "fuzzed", log) })
}

// TestSplitIntoReads: however the bytes are split into reads, the events are
// the same.
func TestSplitIntoReads(t *testing.T) {
	m := matcher(t, embedded(t))
	r := rand.New(rand.NewPCG(1, 2))
	for _, log := range allLogs(t) {
		b := read(t, log)
		want := events(t, m, b, pipeline.Options{})
		for range 4 {
			if d := cmp.Diff(want, splitEvents(t, m, b, r)); d != "" {
				t.Errorf("%s: %s", log, d)
			}
		}
	}
}

// splitEvents reads in pieces of random sizes.
func splitEvents(t testing.TB, m *match.Matcher, log []byte, r *rand.Rand) []annotate.Event {
	var out []annotate.Event
	s := pipeline.New(pipeline.Info{Input: "file", Line: 1}, func() *match.Matcher { return m }, func(ev *annotate.Event) error {
		out = append(out, *ev)
		return nil
	}, pipeline.Options{Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }})
	for len(log) > 0 {
		n := min(len(log), 1+r.IntN(1<<r.IntN(14)))
		piece := bytes.NewReader(log[:n])
		for piece.Len() > 0 {
			if _, err := s.ReadOnce(piece); err != nil {
				t.Fatal(err)
			}
		}
		log = log[n:]
	}
	if err := s.End(true); err != nil {
		t.Fatal(err)
	}
	return out
}

func FuzzSplit(f *testing.F) {
	m := matcher(f, embedded(f))
	for _, log := range allLogs(f) {
		if b := read(f, log); len(b) < 4<<10 {
			f.Add(b, uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, log []byte, seed uint64) {
		want := events(t, m, log, pipeline.Options{})
		if d := cmp.Diff(want, splitEvents(t, m, log, rand.New(rand.NewPCG(seed, 1)))); d != "" {
			t.Error(d)
		}
	})
}

// TestOneByteReads is the worst split there is.
func TestOneByteReads(t *testing.T) {
	m := matcher(t, embedded(t))
	for _, log := range []string{"logs/001-vnode-bitmap-plain-backtrace.log", "logs/040-docker-json-16k-split.log", "logs/046-journald-export-text.log", "journal/out.export"} {
		b := read(t, log)
		want := events(t, m, b, pipeline.Options{})
		var got []annotate.Event
		s := pipeline.New(pipeline.Info{Input: "file", Line: 1}, func() *match.Matcher { return m }, func(ev *annotate.Event) error {
			got = append(got, *ev)
			return nil
		}, pipeline.Options{Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }})
		r := iotest.OneByteReader(bytes.NewReader(b))
		for range b {
			if _, err := s.ReadOnce(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.End(true); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", log, d)
		}
	}
}

// TestTemplatesInEveryForm: 5,000 patterns made from RisingWave's own message
// templates; each one's message, filled with values, is found in each form a
// log can have, with its arguments.
func TestTemplatesInEveryForm(t *testing.T) {
	records := gen.Catalog(5000)
	if testing.Short() {
		records = records[:500]
	}
	for i, p := range lint.Test(records) {
		if t.Error(p); i == 20 {
			t.Fatal("and more")
		}
	}
}

// FuzzTemplates embeds messages with values of any bytes: whatever the values,
// the text around them is found.
func FuzzTemplates(f *testing.F) {
	records := gen.Catalog(500)
	m := matcher(f, records)
	f.Add(uint(3), "72", "BackfillState { x: \"y\" }")
	f.Add(uint(1), "a: b", "(")
	f.Fuzz(func(t *testing.T, n uint, first, second string) {
		r := records[n%uint(len(records))]
		message := catalog.Instantiate(r.ErrorMessage, []string{"x" + first, "y" + second, "z"})
		log, err := json.Marshal(map[string]any{"timestamp": "2026-08-21T14:06:38Z", "level": "ERROR", "fields": map[string]string{"error": message}, "target": "risingwave_stream::x"})
		if err != nil || len(message) > 32<<10 {
			t.Skip("not a log record")
		}
		if len(events(t, m, append(log, '\n'), pipeline.Options{})) == 0 {
			t.Errorf("%q is not found in %s", r.ErrorMessage, log)
		}
	})
}
