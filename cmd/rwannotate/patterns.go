package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

func newPatternsCmd(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "patterns",
		Short: "List, check, count and import the records of the catalogue",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return exitError{code: exitUsage}
		},
	}
	cmd.AddCommand(newListCmd(std), newLintCmd(std), newTestCmd(std), newStatsCmd(std), newImportCmd(std),
		newHarvestCmd(std), newDriftCmd(std), newCoverageCmd(std))
	return cmd
}

// listFilter says which records are listed; an empty list of values lets all
// through.
type listFilter struct {
	components, severities, roles, tags []string
}

func newListCmd(std streams) *cobra.Command {
	var from catalogFlags
	var filter listFilter
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the records of the catalogue",
		Long: `List the records of the catalogue, one a line. Several values of a filter are
alternatives; several filters must all hold. -o json prints each record in full,
in the form of the published knowledge base, one a line.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if err := filter.check(output); err != nil {
				return err
			}
			records, err := readRecords(&from, std.err)
			if err != nil {
				return err
			}
			records = slices.DeleteFunc(records, func(r catalog.Record) bool { return !filter.has(&r) })
			if output == "json" {
				return listJSON(std.out, records)
			}
			return listText(std.out, records)
		},
	}
	from.register(cmd.Flags())
	fl := cmd.Flags()
	fl.StringSliceVar(&filter.components, "component", nil, "only records of this directory of the catalogue: meta, stream, …")
	fl.StringSliceVar(&filter.severities, "severity", nil, "only records of this severity: "+strings.Join(catalog.Severities(), ", "))
	fl.StringSliceVar(&filter.roles, "role", nil, "only records of this role: "+strings.Join(catalog.Roles(), ", "))
	fl.StringSliceVar(&filter.tags, "tag", nil, "only records with this tag")
	fl.StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func (f *listFilter) check(output string) error {
	if output != "text" && output != "json" {
		return exitf(exitUsage, "-o %s: must be text or json", output)
	}
	for _, c := range []struct {
		flag         string
		values, list []string
	}{{"severity", f.severities, catalog.Severities()}, {"role", f.roles, catalog.Roles()}} {
		for _, v := range c.values {
			if !slices.Contains(c.list, v) {
				return exitf(exitUsage, "--%s %s: must be one of %s", c.flag, v, strings.Join(c.list, ", "))
			}
		}
	}
	return nil
}

func (f *listFilter) has(r *catalog.Record) bool {
	among := func(values []string, v string) bool { return len(values) == 0 || slices.Contains(values, v) }
	tagged := func(tag string) bool { return slices.Contains(r.Tags, tag) }
	return among(f.components, r.Component) && among(f.severities, r.Severity) && among(f.roles, r.Role) &&
		(len(f.tags) == 0 || slices.ContainsFunc(f.tags, tagged))
}

// readRecords reads the chosen catalogue for commands that only look at it:
// faults are named on w, and end the program with --strict.
func readRecords(from *catalogFlags, w io.Writer) ([]catalog.Record, error) {
	records, problems, err := from.read()
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		fmt.Fprintln(w, printable(catalogFault+p.String()))
	}
	if from.strict && catalog.HasErrors(problems) {
		return nil, exitf(exitConfig, "the catalogue has faults")
	}
	return records, nil
}

// messageWidth is how much of a message the list shows, in characters.
const messageWidth = 80

func listText(w io.Writer, records []catalog.Record) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "COMPONENT\tSEVERITY\tROLE\tSLUG\tMESSAGE")
	for _, r := range records {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.Component, r.Severity, r.Role, r.Slug, oneLine(r.ErrorMessage, messageWidth))
	}
	return tw.Flush()
}

// oneLine shows a message on one line of at most width characters.
func oneLine(s string, width int) string {
	runes := []rune(strings.Join(strings.Fields(printable(s)), " "))
	if len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return string(runes)
}

func listJSON(w io.Writer, records []catalog.Record) error {
	enc := json.NewEncoder(visible{w})
	enc.SetEscapeHTML(false)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
	}
	return nil
}
