package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/harvest"
)

func newDriftCmd(std streams) *cobra.Command {
	var from catalogFlags
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "drift SRC",
		Short: "Say which records' texts are gone or reworded in a RisingWave source",
		Long: `Look up each record's text in a source tree of RisingWave and say which are gone,
reworded (with the likely new wording), moved to another file, or there in one
of the record's other wordings. Check each new release with it: a reworded text
belongs into the record's aliases.

Texts that RisingWave only passes on (of databases, libraries) are not in its
source; they are counted, and listed with --all.`,
		Example: `  git -C ~/src/risingwave checkout v3.1.0
  rwannotate patterns drift ~/src/risingwave`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if output != "table" && output != "json" {
				return exitf(exitUsage, "-o %s: must be table or json", output)
			}
			records, err := readRecords(&from, std.err)
			if err != nil {
				return err
			}
			tree, messages, err := readSource(args[0])
			if err != nil {
				return err
			}
			drifts := harvest.Drifts(tree, messages, records)
			harvest.SortDrifts(drifts)
			if output == "json" {
				return driftJSON(std.out, drifts)
			}
			return driftTable(std.out, drifts, all)
		},
	}
	from.register(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json (one record a line)")
	cmd.Flags().BoolVar(&all, "all", false, "list the records without a change too")
	return cmd
}

func driftTable(out io.Writer, drifts []harvest.Drift, all bool) error {
	w := bufio.NewWriter(out)
	counts := map[string]int{}
	for _, d := range drifts {
		counts[d.Status]++
		if (d.Status == harvest.Same || d.Status == harvest.Foreign) && !all {
			continue
		}
		r := d.Record
		fmt.Fprintf(w, "%-8s  %s/%s\n", d.Status, r.Component, r.Slug)
		switch d.Status {
		case harvest.Gone:
			fmt.Fprintf(w, "          was  %s\n               %s:%d\n", oneLine(r.ErrorMessage, 2*messageWidth), r.FilePath, r.LineNumber)
		case harvest.Reworded, harvest.Alias:
			fmt.Fprintf(w, "          was  %s\n          now  %s\n               %s\n", oneLine(r.ErrorMessage, 2*messageWidth), oneLine(d.Found.Text, 2*messageWidth), place(d.Found))
		case harvest.Moved:
			fmt.Fprintf(w, "          was  %s:%d\n          now  %s\n", r.FilePath, r.LineNumber, place(d.Found))
		}
	}
	fmt.Fprintf(w, "%s: %d the same, %d moved, %d under another wording of theirs, %d reworded, %d gone; %d texts are not RisingWave's own\n",
		plural(int64(len(drifts)), "record"), counts[harvest.Same], counts[harvest.Moved], counts[harvest.Alias], counts[harvest.Reworded], counts[harvest.Gone], counts[harvest.Foreign])
	return w.Flush()
}

func place(m harvest.Message) string {
	if m.Line == 0 {
		return m.File
	}
	return fmt.Sprintf("%s:%d", m.File, m.Line)
}

// driftRow is the JSON form of a Drift.
type driftRow struct {
	ID         string  `json:"id"`
	Slug       string  `json:"slug"`
	Component  string  `json:"component"`
	Status     string  `json:"status"`
	Message    string  `json:"errorMessage"`
	File       string  `json:"filePath"`
	Line       int     `json:"lineNumber"`
	NewMessage string  `json:"newMessage"`
	NewFile    string  `json:"newFilePath"`
	NewLine    int     `json:"newLineNumber"`
	Likeness   float64 `json:"likeness"`
}

func driftJSON(out io.Writer, drifts []harvest.Drift) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for d := range slices.Values(drifts) {
		r := d.Record
		if err := enc.Encode(driftRow{r.ID, r.Slug, r.Component, d.Status, r.ErrorMessage, r.FilePath, r.LineNumber,
			d.Found.Text, d.Found.File, d.Found.Line, d.Likeness}); err != nil {
			return fmt.Errorf("write drift: %w", err)
		}
	}
	return nil
}
