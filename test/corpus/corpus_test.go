package corpus

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
	"github.com/rwannotate/rwannotate/patterns"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// An expectation is one entry of expected.json; README.md says what it means.
type expectation struct {
	Line      int64
	MatchLine int64 `json:"match_line"`
	Template  string
	Args      []string
	Level     *string
	Component string
	Role      string // root, symptom, log, echo
	Chain     []string
}

func expectations(t *testing.T) map[string][]expectation {
	var cases map[string]struct{ Expected []expectation }
	if err := json.Unmarshal(read(t, "expected.json"), &cases); err != nil {
		t.Fatal(err)
	}
	out := map[string][]expectation{}
	for name, c := range cases {
		out[name] = c.Expected
	}
	return out
}

func embedded(t testing.TB) []catalog.Record {
	t.Helper()
	records, problems := catalog.Load(patterns.FS())
	for _, p := range problems {
		if !p.Warning {
			t.Error(p)
		}
	}
	return records
}

func matcher(t testing.TB, records []catalog.Record) *match.Matcher {
	t.Helper()
	m, problems := match.New(records)
	for _, p := range problems {
		if p.Refused {
			t.Errorf("%s: %s", records[p.Record].File, p.Message)
		}
	}
	return m
}

// TestSeeds runs every case with the five seed records only: each expectation
// with one of their templates is found once, whole and exactly; nothing else
// is reported, and echoes are silent.
func TestSeeds(t *testing.T) {
	records := only(embedded(t), seedSlugs)
	if len(records) != len(seedSlugs) {
		t.Fatalf("%d of the %d seeds are in the catalogue", len(records), len(seedSlugs))
	}
	m := matcher(t, records)
	for name, expected := range expectations(t) {
		t.Run(name, func(t *testing.T) {
			var want []annotate.Event
			for _, e := range expected {
				if e.Role != "echo" && slices.ContainsFunc(records, func(r catalog.Record) bool { return r.ErrorMessage == e.Template }) {
					want = append(want, e.event())
				}
			}
			var got []annotate.Event
			for _, ev := range events(t, m, read(t, "logs", name), pipeline.Options{}) {
				got = append(got, essence(ev))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// event is what an expectation says of an event.
func (e expectation) event() annotate.Event {
	ev := annotate.Event{RW: annotate.RW{Component: e.Component}, Error: annotate.Error{Template: e.Template, Args: e.Args}, Origin: annotate.Origin{LineNumber: e.Line}}
	if e.Level != nil {
		ev.RW.Level = *e.Level
	}
	return ev
}

// essence keeps of an event what expectations speak of.
func essence(ev annotate.Event) annotate.Event {
	if ev.Error.Args == nil {
		ev.Error.Args = []string{}
	}
	return annotate.Event{RW: annotate.RW{Component: ev.RW.Component, Level: ev.RW.Level},
		Error: annotate.Error{Template: ev.Error.Template, Args: ev.Error.Args}, Origin: annotate.Origin{LineNumber: ev.Origin.LineNumber}}
}

// arguable are expectations that the full catalogue meets in another way than
// they state, each with the reason.
var arguable = map[string]string{
	"029-license-feature-multiline-template.log:4": "the deeper cause on the line, an invalid licence key, is reported as the root; the case's note allows it",
	"039-cloudwatch-json-wrapping-cri.log:1":       "Internal error: {0} is too generic for a root; the object store's message is, with the longer argument, as the case's note says",
	"067-merged-rpc-error-multi-worker.log:1":      "one event a record: of two symptoms on the line the last is primary and the other in its chain",
}

// TestCatalogue runs every case with the whole catalogue: each root and
// symptom is reported on its line, with level, component and arguments; what
// wraps it is in the chain; echoes are silent; cases that expect nothing give
// nothing.
func TestCatalogue(t *testing.T) {
	m := matcher(t, embedded(t))
	for name, expected := range expectations(t) {
		t.Run(name, func(t *testing.T) {
			got := events(t, m, read(t, "logs", name), pipeline.Options{})
			if len(expected) == 0 {
				for _, ev := range got {
					t.Errorf("line %d: %s is reported where nothing may be", ev.Origin.LineNumber, ev.Error.Template)
				}
			}
			for _, e := range expected {
				e.check(t, name, got)
			}
		})
	}
}

func (e expectation) check(t *testing.T, name string, got []annotate.Event) {
	i := slices.IndexFunc(got, func(ev annotate.Event) bool {
		return ev.Origin.LineNumber == e.Line && ev.Error.Template == e.Template
	})
	where := fmt.Sprintf("%s:%d", name, e.Line)
	switch {
	case e.Role == "echo":
		if i >= 0 {
			t.Errorf("%s: an echo is reported: %s", where, e.Template)
		}
		return
	case i < 0 && (e.Role == "log" || arguable[where] != ""):
		return
	case i < 0:
		t.Errorf("%s: %s %q is not reported", where, e.Role, e.Template)
		return
	}
	ev := got[i]
	if d := cmp.Diff(e.event(), essence(ev)); d != "" {
		t.Errorf("%s: %s", where, d)
	}
	for _, wrapper := range e.Chain {
		if !slices.Contains(ev.RW.Chain, wrapper) {
			t.Errorf("%s: %q is not in the chain %q", where, wrapper, ev.RW.Chain)
		}
	}
}

// TestGolden compares what every log gives, case or not, with what it gave
// when a person last looked.
func TestGolden(t *testing.T) {
	records := embedded(t)
	m := matcher(t, records)
	var logs []string
	for _, dir := range []string{"logs", "seed-logs", "formats"} {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, found...)
	}
	for _, log := range logs {
		t.Run(log, func(t *testing.T) {
			var b strings.Builder
			for _, ev := range events(t, m, read(t, log), pipeline.Options{}) {
				summary(&b, &ev)
			}
			golden := filepath.Join("golden", strings.ReplaceAll(log, string(filepath.Separator), "-")+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(string(read(t, golden)), b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// summary prints an event for a golden file; long texts by their ends.
func summary(b *strings.Builder, ev *annotate.Event) {
	fmt.Fprintf(b, "%d %s %s %s %s via %s, %s confidence, at byte %d, %s\n", ev.Origin.LineNumber, ev.Level, ev.RW.Level, ev.RW.Component,
		ev.Error.Template, ev.Error.Via, ev.Error.Confidence, ev.Origin.Offset, ev.Time.Format("2006-01-02T15:04:05.999999999Z07:00"))
	for _, a := range ev.Error.Args {
		if len(a) > 200 {
			a = fmt.Sprintf("%s … %d bytes … %s", a[:80], len(a), a[len(a)-80:])
		}
		fmt.Fprintf(b, "    arg    %q\n", a)
	}
	for _, c := range ev.RW.Chain {
		fmt.Fprintf(b, "    inside %q\n", c)
	}
	for _, o := range ev.Error.Others {
		fmt.Fprintf(b, "    also   %s\n", o.Slug)
	}
	fmt.Fprintf(b, "    event  %q actor %q target %q\n", ev.RW.Event, ev.RW.ActorID, ev.RW.Target)
}
