package main

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
)

// A table counts the known errors of a scan and prints them for a person: what
// happened, how often, when, and the first thing to do.
type table struct {
	w       *bufio.Writer
	term    terminal
	matcher *match.Matcher
	top     int
	rows    map[string]*tableRow
}

type tableRow struct {
	record      *catalog.Record
	count       int64
	first, last time.Time
	components  []string
	example     string
}

func newTable(w *bufio.Writer, term terminal, m *match.Matcher, top int) *table {
	return &table{w: w, term: term, matcher: m, top: top, rows: map[string]*tableRow{}}
}

func (t *table) read([]byte)         {}
func (t *table) settled(int64) error { return nil }

func (t *table) event(ev *annotate.Event) error {
	row := t.rows[ev.Error.ID]
	if row == nil {
		record, _ := t.matcher.Lookup(ev.Error.ID)
		row = &tableRow{record: record, first: ev.Time, last: ev.Time, example: printable(ev.Message)}
		t.rows[ev.Error.ID] = row
	}
	row.count += ev.Seen.New
	if ev.Time.Before(row.first) {
		row.first = ev.Time
	}
	if ev.Time.After(row.last) {
		row.last = ev.Time
	}
	if c := ev.RW.Component; c != "" && !slices.Contains(row.components, c) {
		row.components = append(row.components, c)
	}
	return nil
}

// sorted lists the rows: causes before symptoms, then the most severe, then the
// most frequent.
func (t *table) sorted() []*tableRow {
	rows := make([]*tableRow, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *tableRow) int {
		return cmp.Or(cmp.Compare(roleRank(a.record), roleRank(b.record)),
			cmp.Compare(severityRank(b.record.Severity), severityRank(a.record.Severity)),
			cmp.Compare(b.count, a.count), cmp.Compare(a.record.ID, b.record.ID))
	})
	return rows
}

func roleRank(r *catalog.Record) int { return slices.Index(catalog.Roles()[1:], r.Role) }

func (t *table) finish(sum totals) error {
	rows := t.sorted()
	var events int64
	for _, r := range rows {
		events += r.count
	}
	fmt.Fprintf(t.w, "%s in %s (%s lines, %s)\n", plural(events, "known error"), plural(int64(sum.inputs), "input"), thousands(sum.stats.Lines), byteSize(sum.stats.Bytes))
	shown := rows
	if t.top > 0 && len(shown) > t.top {
		shown = shown[:t.top]
	}
	for _, r := range shown {
		t.row(r)
	}
	if n := len(rows) - len(shown); n > 0 {
		fmt.Fprintf(t.w, "\n… and %s more; --top 0 shows all.\n", plural(int64(n), "kind"))
	}
	if len(rows) > 0 {
		fmt.Fprintf(t.w, "\nWhat it means and what to do:  rwannotate explain %s\n", name(shown[0].record))
	}
	return t.w.Flush()
}

// row prints one kind of error.
func (t *table) row(r *tableRow) {
	const margin = "          "
	title := t.term.paint(severityColor(r.record.Severity), r.record.Severity)
	slug := t.term.paint(bold, name(r.record))
	note := ""
	switch r.record.Role {
	case catalog.RoleSymptom:
		note = "  (a symptom: look for the cause above)"
	case catalog.RoleWrapper:
		note = "  (carries another error: read the text after it)"
	}
	fmt.Fprintf(t.w, "\n%7s×  %s  %s%s\n", thousands(r.count), title, slug, note)
	fmt.Fprintf(t.w, "%s%s\n", margin, t.term.paint(dim, strings.Join(append(r.components, when(r.first, r.last)), "  ")))
	fmt.Fprintf(t.w, "%s%s\n", margin, cutWidth(firstLine(r.example), t.term.width-len(margin)))
	if len(r.record.Solutions) > 0 {
		for i, line := range wrap(r.record.Solutions[0], t.term.width-len(margin)-3) {
			lead := "→  "
			if i > 0 {
				lead = "   "
			}
			fmt.Fprintf(t.w, "%s%s%s\n", margin, lead, line)
		}
	}
}

// name is how a record is called on the command line.
func name(r *catalog.Record) string { return cmp.Or(r.Slug, r.ID) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// when prints a span of time, in UTC, without repeating the date.
func when(first, last time.Time) string {
	const day, clock = "2006-01-02", "15:04:05"
	switch {
	case last.Sub(first) < time.Second:
		return first.Format(day+" "+clock) + " UTC"
	case first.Format(day) == last.Format(day):
		return first.Format(day+" "+clock) + " – " + last.Format(clock) + " UTC"
	}
	return first.Format(day+" "+clock) + " – " + last.Format(day+" "+clock) + " UTC"
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// thousands prints 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func byteSize(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, prefix := float64(n)/unit, 0
	for size >= unit && prefix < 4 {
		size /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[prefix])
}
