// Package falsealarm proves that a healthy log raises no alarm.
package falsealarm

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
	"github.com/rwannotate/rwannotate/patterns"
	"github.com/rwannotate/rwannotate/test/bench/gen"
)

// size is how many MiB of log are looked at: RWANNOTATE_HEALTHY_MIB, else what
// a test run can afford.
func size(t *testing.T) int64 {
	mib := int64(64)
	if s := os.Getenv("RWANNOTATE_HEALTHY_MIB"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatalf("RWANNOTATE_HEALTHY_MIB: %v", err)
		}
		mib = n
	}
	return mib << 20
}

// healthy are the texts of all info! and debug! statements, at the levels INFO,
// DEBUG and WARN.
func healthy() gen.Templates {
	ts := gen.LoadTemplates()
	ts.Warn = nil
	for _, t := range append(ts.Info, ts.Debug...) {
		t.Level = "warn"
		ts.Warn = append(ts.Warn, t)
	}
	return ts
}

// TestHealthyLog feeds text made of all that a healthy RisingWave says to the
// embedded catalogue: no error may come out. The forms differ in what surrounds
// a message.
func TestHealthyLog(t *testing.T) {
	records, problems := catalog.Load(patterns.FS())
	if catalog.HasErrors(problems) {
		t.Fatal(problems)
	}
	matcher, _ := match.New(records)
	forms := []gen.Form{gen.Text, gen.JSON, gen.Compact, gen.Pretty}
	for i, form := range forms {
		t.Run(string(form), func(t *testing.T) {
			t.Parallel()
			raised, stats := scan(t, matcher, gen.Options{Size: size(t) / int64(len(forms)), Seed: uint64(i), Form: form, Templates: healthy()})
			t.Logf("%d records, %d MiB, %d candidates, %d events", stats.Records, stats.Bytes>>20, raised.candidates, raised.events)
			for slug, line := range raised.errors {
				t.Errorf("%s is raised by healthy text: %.300s", slug, line)
			}
			if stats.Records < 10_000 {
				t.Errorf("only %d records were made", stats.Records)
			}
		})
	}
}

type raised struct {
	candidates, events int64
	errors             map[string]string // slug → the first line
}

// scan reads a generated log through the path of run and scan.
func scan(t *testing.T, matcher *match.Matcher, opt gen.Options) (raised, gen.Stats) {
	found := raised{errors: map[string]string{}}
	emit := func(ev *annotate.Event) error {
		r, _ := matcher.Lookup(ev.Error.ID)
		if _, seen := found.errors[r.Slug]; !seen && (r.Severity == catalog.SeverityError || r.Severity == catalog.SeverityCritical) {
			found.errors[r.Slug] = strings.TrimSpace(ev.Origin.Line)
		}
		return nil
	}
	stream := pipeline.New(pipeline.Info{Input: "stdin"}, func() *match.Matcher { return matcher }, emit, pipeline.Options{})
	r, w := io.Pipe()
	var stats gen.Stats
	go func() {
		var err error
		stats, err = gen.Write(w, opt)
		w.CloseWithError(err)
	}()
	for {
		if _, err := stream.ReadOnce(r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.End(true); err != nil {
		t.Fatal(err)
	}
	found.candidates, found.events = stream.Stats().Candidates, stream.Stats().Events
	return found, stats
}

// TestRaises proves that the test above would see a false alarm: a record with
// the text of an info! statement raises one.
func TestRaises(t *testing.T) {
	ts := healthy()
	matcher, _ := match.New([]catalog.Record{{ID: "x", Slug: "x", ErrorMessage: ts.Info[0].Text, Severity: catalog.SeverityError}})
	found, _ := scan(t, matcher, gen.Options{Size: 1 << 20, Templates: ts})
	if len(found.errors) != 1 {
		t.Errorf("%d records raised an error, not one", len(found.errors))
	}
}
