package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/pipeline"
	"github.com/rwannotate/rwannotate/internal/unknown"
)

func newCoverageCmd(std streams) *cobra.Command {
	c := coverage{cells: map[cell]*tally{}}
	var from catalogFlags
	var color string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "coverage [FILE|GLOB|-]...",
		Short: "Say how many of the WARN, ERROR and panic records in logs a record explains",
		Long: `Read logs to their end and say how many of the WARN, ERROR and panic records in
them a record of the catalogue explains, by component and level, and which
unexplained ones are the most frequent. Inputs are as for scan.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.output != "text" && c.output != "json" {
				return exitf(exitUsage, "-o %s: must be text or json", c.output)
			}
			inputs, err := expandInputs(args, std.in)
			if err != nil {
				return err
			}
			_, matcher, err := from.load(std.err)
			if err != nil {
				return err
			}
			known, err := unknown.LoadKnown()
			if err != nil {
				return err
			}
			mask := annotate.NewMasker()
			c.w, c.term = bufio.NewWriter(std.out), newTerminal(std.out, color)
			c.grouper = unknown.New(unknown.Options{Known: known, Mask: mask.Mask})
			options := pipeline.Options{Echoes: true, Mask: mask, Unmatched: c.unmatched}
			s := &scan{std: std, matcher: matcher, options: options, report: &c, failOn: -1, meter: newMeter(std.err, quiet)}
			return s.run(cmd.Context(), inputs)
		},
	}
	fl := cmd.Flags()
	from.register(fl)
	fl.StringVarP(&c.output, "output", "o", "text", "text or json")
	fl.IntVar(&c.top, "top", 10, "unexplained kinds to list, most frequent first; 0 for all")
	fl.StringVar(&color, "color", "auto", "auto, always or never")
	fl.BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	return cmd
}

// coverage counts what a catalogue explains.
type coverage struct {
	w       *bufio.Writer
	term    terminal
	output  string
	top     int
	cells   map[cell]*tally
	grouper *unknown.Grouper
}

type cell struct{ component, level string }

// A tally counts records, and those among them that a record explains.
type tally struct {
	Records   int64 `json:"records"`
	Explained int64 `json:"explained"`
}

func (t tally) percent() string {
	if t.Records == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(t.Explained)/float64(t.Records))
}

func (c *coverage) at(component, level string) *tally {
	key := cell{cmp.Or(component, "unknown"), level}
	if c.cells[key] == nil {
		c.cells[key] = &tally{}
	}
	return c.cells[key]
}

func (c *coverage) unmatched(rec *logline.Record, at time.Time, component string) {
	c.at(component, rec.Level).Records++
	c.grouper.Add(rec, at, component)
}

func (c *coverage) event(ev *annotate.Event) error {
	if logline.LevelRank(ev.RW.Level) >= logline.LevelRank("WARN") {
		t := c.at(ev.RW.Component, ev.RW.Level)
		t.Records++
		t.Explained++
	}
	return nil
}

func (c *coverage) read([]byte)         {}
func (c *coverage) settled(int64) error { return nil }

func (c *coverage) finish(totals) error {
	if c.output == "json" {
		if err := c.json(); err != nil {
			return err
		}
		return c.w.Flush()
	}
	c.text()
	return c.w.Flush()
}

// sum adds the cells by what a key function makes of them.
func (c *coverage) sum(of func(cell) string) map[string]tally {
	out := map[string]tally{}
	for k, t := range c.cells {
		s := out[of(k)]
		out[of(k)] = tally{s.Records + t.Records, s.Explained + t.Explained}
	}
	return out
}

func (c *coverage) text() {
	tw := tabwriter.NewWriter(c.w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "\tRECORDS\tEXPLAINED\tSHARE")
	row := func(name string, t tally) {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", name, thousands(t.Records), thousands(t.Explained), t.percent())
	}
	for _, of := range []func(cell) string{func(k cell) string { return k.component }, func(k cell) string { return k.level }} {
		sums := c.sum(of)
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			row(name, sums[name])
		}
	}
	row("all", c.sum(func(cell) string { return "" })[""])
	tw.Flush()
	groups := c.grouper.Groups()
	shown := groups[:topOf(c.top, len(groups))]
	if len(shown) > 0 {
		fmt.Fprintf(c.w, "\nNot explained, %s, most frequent first:\n", plural(int64(len(groups)), "kind"))
	}
	for _, g := range shown {
		writeGroup(c.w, c.term, g)
	}
}

func (c *coverage) json() error {
	rows := []unknownRow{}
	groups := c.grouper.Groups()
	for _, g := range groups[:topOf(c.top, len(groups))] {
		rows = append(rows, rowOf(g))
	}
	enc := json.NewEncoder(visible{c.w})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		tally
		Component   map[string]tally `json:"component"`
		Level       map[string]tally `json:"level"`
		Unexplained []unknownRow     `json:"unexplained"`
	}{c.sum(func(cell) string { return "" })[""], c.sum(func(k cell) string { return k.component }),
		c.sum(func(k cell) string { return k.level }), rows})
}
