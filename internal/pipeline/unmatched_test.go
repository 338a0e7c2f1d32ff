package pipeline

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/patterns"
)

// collect reads a log and returns "LEVEL event" of each record that is WARN or
// higher: of events, and of what no record of the catalogue matched.
func collect(t *testing.T, m *match.Matcher, r io.Reader, opt Options) (events, unmatched []string) {
	t.Helper()
	opt.Echoes = true
	opt.Unmatched = func(rec *logline.Record, at time.Time, component string) {
		if at.IsZero() {
			t.Errorf("no time for %q", rec.Text)
		}
		unmatched = append(unmatched, strings.TrimSpace(rec.Level+" "+rec.Event+" "+component))
	}
	s := New(Info{Input: "stdin"}, func() *match.Matcher { return m }, func(ev *annotate.Event) error {
		if logline.LevelRank(ev.RW.Level) >= logline.LevelRank("WARN") {
			events = append(events, ev.RW.Level+" "+ev.RW.Event)
		}
		return nil
	}, opt)
	for {
		if _, err := s.ReadOnce(r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(true); err != nil {
		t.Fatal(err)
	}
	return events, unmatched
}

func TestUnmatched(t *testing.T) {
	m, _ := match.New([]catalog.Record{{ID: "a", Slug: "a", ErrorMessage: "known trouble with {}", Severity: "error"}})
	const log = "2026-08-21T14:06:38.1Z  INFO risingwave_meta::x: nothing\n" +
		"2026-08-21T14:06:38.2Z ERROR risingwave_meta::x: known trouble with 7\n" +
		"2026-08-21T14:06:38.3Z ERROR risingwave_meta::x: new trouble error=a\n\nCaused by:\n  known\n" +
		"2026-08-21T14:06:38.4Z  WARN risingwave_stream::x: odd\n" +
		"2026-08-21T14:06:38.5Z  WARN risingwave_stream::x: known trouble without an end\n" +
		"\nthread 'rw-main' (7) panicked at src/meta/src/x.rs:1:2:\nboom\n" +
		`{"timestamp":"2026-08-21T14:06:40Z","level":"ERROR","fields":{"message":"in JSON"},"target":"risingwave_frontend::x"}` + "\n" +
		"2026-08-21T14:06:38.6Z DEBUG risingwave_stream::x: ERROR\n"
	want := []string{"ERROR new trouble meta", "WARN odd compute", "WARN known trouble without an end compute", "PANIC boom meta", "ERROR in JSON frontend"}
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(log), "byte by byte": iotest.OneByteReader(strings.NewReader(log))} {
		events, got := collect(t, m, r, Options{})
		if !slices.Equal(got, want) || len(events) != 1 {
			t.Errorf("%s: %d events, unmatched %q, want %q", name, len(events), got, want)
		}
	}
}

// TestUnmatchedGiant: a record cut by its limit is counted once.
func TestUnmatchedGiant(t *testing.T) {
	m, _ := match.New(nil)
	log := "2026-08-21T14:06:38.1Z ERROR risingwave_meta::x: " + strings.Repeat("long ", 1<<20) + "\n" + "2026-08-21T14:06:38.1Z ERROR risingwave_meta::x: next\n"
	_, got := collect(t, m, strings.NewReader(log), Options{MaxRecord: 4 << 10})
	if len(got) != 2 {
		t.Errorf("%d records", len(got))
	}
}

// TestUnmatchedIsTheRest: with the embedded catalogue each record of level WARN
// or higher is either an event or unmatched, none is both or neither.
func TestUnmatchedIsTheRest(t *testing.T) {
	records, _ := catalog.Load(patterns.FS())
	full, _ := match.New(records)
	none, _ := match.New(nil)
	files, _ := filepath.Glob("../../test/corpus/logs/*")
	total := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, all := collect(t, none, bytes.NewReader(data), Options{})
		events, rest := collect(t, full, bytes.NewReader(data), Options{})
		if len(events)+len(rest) != len(all) {
			t.Errorf("%s: %d events and %d unmatched of %d records", filepath.Base(file), len(events), len(rest), len(all))
		}
		total += len(all)
	}
	if total < 200 {
		t.Errorf("only %s were looked at", fmt.Sprint(total))
	}
}
