package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/unknown"
)

// unknownReport groups the records that the catalogue does not know: what a
// team should write records for next.
type unknownReport struct {
	w       *bufio.Writer
	term    terminal
	output  string // text, json, yaml
	top     int
	known   *unknown.Known
	grouper *unknown.Grouper
	events  int64 // known errors
}

// newUnknownReport makes the report and has the scan hand it those records.
func newUnknownReport(s *scan, w *bufio.Writer, term terminal, f scanFlags) (*unknownReport, error) {
	known, err := unknown.LoadKnown()
	if err != nil {
		return nil, err
	}
	u := &unknownReport{w: w, term: term, output: f.output, top: f.top, known: known}
	if u.output == "auto" {
		u.output = "json"
		if term.tty {
			u.output = "text"
		}
	}
	u.grouper = unknown.New(unknown.Options{Known: known, Mask: s.options.Mask.Mask})
	s.options.Unmatched = func(rec *logline.Record, at time.Time, component string) {
		if s.window.has(at) {
			u.grouper.Add(rec, at, component)
		}
	}
	return u, nil
}

func (u *unknownReport) event(*annotate.Event) error { u.events++; return nil }
func (u *unknownReport) read([]byte)                 {}
func (u *unknownReport) settled(int64) error         { return nil }

func (u *unknownReport) finish(sum totals) error {
	groups := u.grouper.Groups()
	switch u.output {
	case "yaml":
		for i, r := range unknown.Drafts(groups[:topOf(u.top, len(groups))], u.known.Commit) {
			if i > 0 {
				fmt.Fprintln(u.w, "---")
			}
			u.w.Write(r.AppendYAML(nil))
		}
	case "json":
		if err := u.json(groups); err != nil {
			return err
		}
	default:
		u.text(groups, sum)
	}
	return u.w.Flush()
}

// topOf is how many of n rows are shown; 0 means all.
func topOf(top, n int) int {
	if top <= 0 {
		return n
	}
	return min(top, n)
}

func (u *unknownReport) text(groups []*unknown.Group, sum totals) {
	rest := u.grouper.Rest()
	var records int64
	for _, g := range groups {
		records += g.Count
	}
	fmt.Fprintf(u.w, "%s of %s that the catalogue does not know, and %s, in %s (%s lines, %s)\n", plural(records+rest.Count, "record"),
		plural(int64(len(groups)), "kind"), plural(u.events, "known error"), plural(int64(sum.inputs), "input"), thousands(sum.stats.Lines), byteSize(sum.stats.Bytes))
	shown := groups[:topOf(u.top, len(groups))]
	for _, g := range shown {
		writeGroup(u.w, u.term, g)
	}
	if n := len(groups) - len(shown); n > 0 {
		fmt.Fprintf(u.w, "\n… and %s more; --top 0 shows all.\n", plural(int64(n), "kind"))
	}
	if rest.Count > 0 {
		fmt.Fprintf(u.w, "\n%s more of kinds beyond the first %s.\n", plural(rest.Count, "record"), thousands(int64(len(groups))))
	}
	if len(shown) > 0 {
		fmt.Fprintf(u.w, "\nDrafts of records to complete:  rwannotate scan --unknown -o yaml …\n")
	}
}

// writeGroup prints one kind of record for a person.
func writeGroup(w *bufio.Writer, term terminal, g *unknown.Group) {
	const margin = "          "
	level := term.paint(severityColor(g.Level()), g.Level())
	fmt.Fprintf(w, "\n%7s×  %s  %s\n", thousands(g.Count), level, term.paint(bold, cutWidth(firstLine(printable(g.Template)), max(40, 2*term.width))))
	fmt.Fprintf(w, "%s%s\n", margin, term.paint(dim, strings.Join(append(names(g.Components), when(g.First, g.Last)), "  ")))
	if len(g.Targets) > 0 {
		fmt.Fprintf(w, "%slogged by %s\n", margin, printable(strings.Join(names(g.Targets), ", ")))
	}
	if g.Site != nil {
		more := ""
		if g.Site.Others > 0 {
			more = fmt.Sprintf(" and %s", plural(int64(g.Site.Others), "other place"))
		}
		fmt.Fprintf(w, "%smade in %s:%d%s\n", margin, g.Site.File, g.Site.Line, more)
	}
	fmt.Fprintf(w, "%s%s\n", margin, cutWidth(oneLine(g.Sample, 4*messageWidth), max(40, 2*term.width)))
}

func names(counts []unknown.Count) []string {
	out := make([]string, len(counts))
	for i, c := range counts {
		out[i] = c.Name
	}
	return out
}

// unknownRow is the JSON form of a group.
type unknownRow struct {
	Count      int64            `json:"count"`
	Level      string           `json:"level"`
	Template   string           `json:"template"`
	Levels     map[string]int64 `json:"levels"`
	Components map[string]int64 `json:"components"`
	Targets    map[string]int64 `json:"targets"`
	First      time.Time        `json:"first"`
	Last       time.Time        `json:"last"`
	Source     *unknown.Site    `json:"source"`
	Sample     string           `json:"sample"`
	Overflow   bool             `json:"overflow"` // not a group: the records beyond the limit of groups
}

func (u *unknownReport) json(groups []*unknown.Group) error {
	enc := json.NewEncoder(visible{u.w})
	enc.SetEscapeHTML(false)
	for _, g := range groups {
		if err := enc.Encode(rowOf(g)); err != nil {
			return err
		}
	}
	if rest := u.grouper.Rest(); rest.Count > 0 {
		row := rowOf(rest)
		row.Overflow = true
		return enc.Encode(row)
	}
	return nil
}

func rowOf(g *unknown.Group) unknownRow {
	return unknownRow{Count: g.Count, Level: g.Level(), Template: g.Template, Levels: byName(g.Levels), Components: byName(g.Components),
		Targets: byName(g.Targets), First: g.First, Last: g.Last, Source: g.Site, Sample: g.Sample}
}

func byName(counts []unknown.Count) map[string]int64 {
	out := map[string]int64{}
	for _, c := range counts {
		out[c.Name] = c.N
	}
	return out
}
