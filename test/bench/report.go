package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// report collects the rows of both tables.
type report struct {
	rows  []row
	scans []scanResult
}

// A row is one bar: what has to be reached, what was measured.
type row struct{ what, bar, measured, verdict string }

// judge adds a row. A limit of 0 means that nothing may be measured at all.
func (r *report) judge(what string, value, limit float64, format string) {
	verdict := "ok"
	if value > limit {
		verdict = "MISSED"
	}
	r.rows = append(r.rows, row{what, "≤ " + fmt.Sprintf(format, limit), fmt.Sprintf(format, value), verdict})
}

// note adds a row without a bar.
func (r *report) note(what, measured string) { r.rows = append(r.rows, row{what, "", measured, ""}) }

func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	tableRow(w, "what", "bar", "measured", "")
	tableRow(w, "---", "---", "---", "---")
	for _, r := range r.rows {
		tableRow(w, r.what, r.bar, r.measured, r.verdict)
	}
	w.Flush()
	if len(r.scans) == 0 {
		return
	}
	fmt.Fprintln(out)
	fmt.Fprintln(out, "CPU seconds with what start takes of them; GB/s a core after the start; peak memory of the program.")
	tableRow(w, "form", "records", "CPU s", "start", "GB/s", "rg CPU s", "start", "GB/s", "ratio", "peak MiB", "events", "expected", "rg lines")
	tableRow(w, slices.Repeat([]string{"---"}, 13)...)
	for _, s := range r.scans {
		expected := s.log.Hits
		if s.set.n < 500 {
			expected = s.log.SeedHits
		}
		speed := func(all, start usage) string {
			return fmt.Sprintf("%.2f", float64(s.log.Bytes)/1e9/max(all.cpu-start.cpu, 1).Seconds())
		}
		tableRow(w, string(s.form), fmt.Sprint(s.set.n),
			seconds(s.ours), seconds(s.start.ours), speed(s.ours, s.start.ours),
			seconds(s.rg), seconds(s.start.rg), speed(s.rg, s.start.rg),
			fmt.Sprintf("%.2f", s.ratio()), fmt.Sprint(s.ours.peak>>20), fmt.Sprint(s.events), fmt.Sprint(expected), fmt.Sprint(s.rgLines))
	}
	w.Flush()
}

func tableRow(w io.Writer, cells ...string) {
	fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| "))
}

func seconds(u usage) string { return fmt.Sprintf("%.2f", u.cpu.Seconds()) }
