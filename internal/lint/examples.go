package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
)

// Test proves each record of the catalogue: its examples hit it first with the
// arguments they state, its rejects do not hit it, and its own wordings are
// found in every form a log can have. The problems returned are faults.
func Test(records []catalog.Record) []catalog.Problem {
	matcher, _ := match.New(records)
	t := tester{records: records, matcher: matcher}
	for i := range records {
		if _, ok := matcher.Lookup(records[i].ID); !ok {
			continue // refused: Lint says why
		}
		t.matches(i)
		t.rejects(i)
		t.wordings(i)
	}
	catalog.SortProblems(t.problems)
	return t.problems
}

type tester struct {
	records  []catalog.Record
	matcher  *match.Matcher
	problems []catalog.Problem
}

func (t *tester) fault(record int, field, format string, args ...any) {
	t.problems = append(t.problems, of(t.records, record, field, false, fmt.Sprintf(format, args...)))
}

// events runs a log text through the whole path, as a file.
func (t *tester) events(log string) []annotate.Event {
	var out []annotate.Event
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	s := pipeline.New(pipeline.Info{Input: "test", Line: 1}, func() *match.Matcher { return t.matcher }, func(ev *annotate.Event) error {
		out = append(out, *ev)
		return nil
	}, pipeline.Options{Now: func() time.Time { return now }})
	r := strings.NewReader(log)
	for r.Len() > 0 {
		if _, err := s.ReadOnce(r); err != nil {
			break
		}
	}
	_ = s.End(true) // emit above never fails
	return out
}

func (t *tester) matches(i int) {
	for k, ex := range t.records[i].Examples.Match {
		field := fmt.Sprintf("examples.match[%d]", k)
		events := t.events(ex.Text)
		if len(events) == 0 {
			if !contextOnly(&t.records[i]) {
				t.fault(i, field, "is not recognised at all")
			}
			continue
		}
		if ev := events[0]; ev.Error.ID != t.records[i].ID {
			t.fault(i, field, "hits %s first, not this record", t.name(ev.Error.ID))
		} else if !slices.Equal(ev.Error.Args, ex.Args) {
			t.fault(i, field, "gives the arguments %q, not %q", ev.Error.Args, ex.Args)
		}
	}
}

func (t *tester) rejects(i int) {
	for k, text := range t.records[i].Examples.Reject {
		for _, ev := range t.events(text) {
			if ev.Error.ID == t.records[i].ID {
				t.fault(i, fmt.Sprintf("examples.reject[%d]", k), "is recognised as this record, via %s: %q", ev.Error.Via, ev.Message)
			}
		}
	}
}

// contextOnly reports whether a record never is what an event is about: it only
// shows in the chain of others.
func contextOnly(r *catalog.Record) bool {
	return r.Role == catalog.RoleWrapper && r.Severity == catalog.SeverityInfo
}

// wordings instantiates the message and the aliases and looks for them in every
// form.
func (t *tester) wordings(i int) {
	r := &t.records[i]
	if contextOnly(r) {
		return
	}
	for k, template := range append([]string{r.ErrorMessage}, r.Aliases...) {
		if template == "" {
			continue
		}
		field := "errorMessage"
		if k > 0 {
			field = fmt.Sprintf("aliases[%d]", k-1)
		}
		values := sampleValues(catalog.Holes(template))
		message := catalog.Instantiate(template, values)
		for _, f := range forms() {
			t.wording(i, field, f, message, values, strings.Contains(template, "\n"))
		}
	}
}

// wording checks one message in one form.
func (t *tester) wording(i int, field string, f form, message string, values []string, lines bool) {
	r := &t.records[i]
	if f.name == "panic" && len(r.Targets) > 0 || lines && f.name == "journal short" {
		return
	}
	log := f.write("ERROR", sampleTarget(r), message)
	events := t.events(log)
	at := slices.IndexFunc(events, func(ev annotate.Event) bool {
		return ev.Error.ID == r.ID || slices.ContainsFunc(ev.Error.Others, func(o annotate.Other) bool { return o.ID == r.ID }) ||
			slices.Contains(ev.RW.Chain, r.ErrorMessage)
	})
	if at < 0 {
		t.fault(i, field, "its own message is not found in the form %q: %q", f.name, log)
		return
	}
	if ev := events[at]; ev.Error.ID == r.ID && len(ev.Error.Args) == len(values) && !adjacent(message, values) && !slices.Equal(ev.Error.Args, values) {
		t.fault(i, field, "in the form %q the arguments %q come out as %q", f.name, values, ev.Error.Args)
	}
}

func (t *tester) name(id string) string {
	if r, ok := t.matcher.Lookup(id); ok {
		return r.File
	}
	return id
}

// sampleValues are n different values of one word each.
func sampleValues(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("v%d", i+1)
	}
	return out
}

// adjacent reports whether two values stand next to each other, so that nothing
// tells where one ends.
func adjacent(message string, values []string) bool {
	for i := 1; i < len(values); i++ {
		if strings.Contains(message, values[i-1]+values[i]) {
			return true
		}
	}
	return false
}
