package match

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/logline"
)

// Confidence of a Result.
const (
	High   = "high"
	Medium = "medium"
	Low    = "low"
)

// A Result is what a record reports.
type Result struct {
	Record     *catalog.Record
	Template   string            // the wording that matched
	Text       string            // the message with its arguments, as it stands in the record
	Args       []string          // one per placeholder, in the template's order
	Via        string            // message, field, continuation, panic, span
	Confidence string            // High, Medium, Low
	Chain      []string          // templates of what stands around it, outermost first
	Outermost  *catalog.Record   // of the chain, or Record itself
	Others     []*catalog.Record // what else the text may mean, then what the record says further in
}

// Match decides what a record reports; ok is false if it is nothing. Texts that
// end at or before the offset from in their segment are disregarded: a part of
// a long record that was looked at before.
func (m *Matcher) Match(rec *logline.Record, from int) (Result, bool) {
	hits := m.findAll(rec, from, false)
	span := false
	if len(hits) == 0 {
		hits = m.findAll(rec, from, true)
		span = true
	}
	hits = m.gate(hits, rec, span)
	hits, others := m.distinct(hits, rec)
	primary := m.primary(hits)
	if primary < 0 {
		return Result{}, false
	}
	return m.result(rec, hits, primary, others, span), true
}

// findAll collects confirmed wordings: in the event, or only in the spans
// around it.
func (m *Matcher) findAll(rec *logline.Record, from int, spans bool) []found {
	var hits []found
	for i, seg := range rec.Segments {
		if seg.Kind == logline.SQL || (seg.Kind == logline.Span) != spans {
			continue
		}
		hits = m.find(hits, rec, i)
	}
	if from > 0 {
		hits = slices.DeleteFunc(hits, func(f found) bool { return f.end <= from })
	}
	return hits
}

// gate drops wordings that count only from a level or for certain targets. A
// span's text is an error whatever the level of the event inside it.
func (m *Matcher) gate(hits []found, rec *logline.Record, span bool) []found {
	rank := logline.LevelRank(rec.Level)
	return slices.DeleteFunc(hits, func(f found) bool {
		r := &m.records[f.p.record]
		if !span && r.MinLevel != "" && rank >= 0 && rank < logline.LevelRank(r.MinLevel) {
			return true
		}
		return len(r.Targets) > 0 && rec.Target != "" && !fitsTarget(r, rec.Target)
	})
}

func fitsTarget(r *catalog.Record, target string) bool {
	return slices.ContainsFunc(r.Targets, func(t string) bool { return strings.HasPrefix(target, t) })
}

// distinct keeps one wording for each text: that with the most literal bytes.
// Of wordings that are alike the one that fits the record's target best wins,
// and the rest are alternatives. The order of what is kept is that of the text.
func (m *Matcher) distinct(hits []found, rec *logline.Record) (kept []found, others map[*pattern][]*catalog.Record) {
	slices.SortStableFunc(hits, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.p.literals, a.p.literals), cmp.Compare(m.fit(b, rec), m.fit(a, rec)),
			cmp.Compare(m.records[a.p.record].ID, m.records[b.p.record].ID))
	})
	others = map[*pattern][]*catalog.Record{}
	for _, h := range hits {
		i := slices.IndexFunc(kept, func(k found) bool { return k.segment == h.segment && overlap(k, h) })
		if i < 0 {
			kept = append(kept, h)
			continue
		}
		if k := kept[i]; k.p.literals == h.p.literals && k.p.record != h.p.record && m.fit(k, rec) == m.fit(h, rec) {
			others[k.p] = append(others[k.p], &m.records[h.p.record])
		}
	}
	slices.SortStableFunc(kept, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.start, b.start))
	})
	return kept, others
}

// fit says how well a record's origin agrees with the log target.
func (m *Matcher) fit(f found, rec *logline.Record) int {
	r := &m.records[f.p.record]
	switch {
	case len(r.Targets) > 0 && fitsTarget(r, rec.Target):
		return 2
	case fitsCrate(r.FilePath, rec.Target):
		return 1
	}
	return 0
}

// overlap reports whether the literal texts of two matches share a byte.
func overlap(a, b found) bool {
	for _, x := range a.spans {
		for _, y := range b.spans {
			if x[0] < y[1] && y[0] < x[1] {
				return true
			}
		}
	}
	return false
}

// primary chooses the cause: the innermost root, else the innermost symptom,
// else the innermost wrapper. An error chain prints its cause last. Wrappers of
// severity info only give context, since they stand around errors of no
// account too.
func (m *Matcher) primary(hits []found) int {
	for _, role := range [...]string{catalog.RoleRoot, catalog.RoleSymptom, catalog.RoleWrapper} {
		for i := len(hits) - 1; i >= 0; i-- {
			r := &m.records[hits[i].p.record]
			if hasRole(r, role) && (role != catalog.RoleWrapper || r.Severity != catalog.SeverityInfo) {
				return i
			}
		}
	}
	return -1
}

func (m *Matcher) result(rec *logline.Record, hits []found, primary int, others map[*pattern][]*catalog.Record, span bool) Result {
	h := hits[primary]
	seg := &rec.Segments[h.segment]
	res := Result{
		Record:   &m.records[h.p.record],
		Template: h.p.template,
		Text:     seg.Text[h.start:h.end],
		Args:     h.args,
		Via:      via(rec, seg, h.start, span),
		Others:   others[h.p],
	}
	for _, outer := range hits[:primary] {
		res.Chain = append(res.Chain, outer.p.template)
	}
	for _, inner := range hits[primary+1:] {
		res.Others = append(res.Others, &m.records[inner.p.record])
	}
	res.Outermost = &m.records[hits[0].p.record]
	res.Confidence = confidence(rec, &res, h, len(others[h.p]))
	return res
}

// via names the part of the record in which the text stands.
func via(rec *logline.Record, seg *logline.Segment, start int, span bool) string {
	switch {
	case span:
		return "span"
	case seg.Name == "panic":
		return "panic"
	case seg.Kind == logline.Field:
		return "field"
	case seg.Exact:
		return "message"
	case strings.Contains(seg.Text[:start], "\n"):
		return "continuation"
	case start > len(rec.Event):
		return "field"
	}
	return "message"
}

// confidence weighs how specific the wording is and whether the place fits it.
// alternatives is the number of other records with the very same text.
func confidence(rec *logline.Record, res *Result, h found, alternatives int) string {
	fits := rec.Target == "" || fitsTarget(res.Record, rec.Target) || fitsCrate(res.Record.FilePath, rec.Target) || res.Via == "field" || res.Via == "continuation" || len(res.Chain) > 0
	switch {
	case h.p.longest >= 20 && alternatives == 0 && fits:
		return High
	case h.p.longest >= 12 && alternatives <= 2:
		return Medium
	}
	return Low
}
