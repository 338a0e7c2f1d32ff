package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
)

func newStatsCmd(std streams) *cobra.Command {
	var from catalogFlags
	var output string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count the records of the catalogue by component, severity, role, …",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if output != "text" && output != "json" {
				return exitf(exitUsage, "-o %s: must be text or json", output)
			}
			records, err := readRecords(&from, std.err)
			if err != nil {
				return err
			}
			stats := countCatalogue(records)
			if output == "json" {
				return stats.json(std.out)
			}
			return stats.text(std.out)
		},
	}
	from.register(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// catalogueStats is how many records there are of each kind.
type catalogueStats struct {
	Records   int            `json:"records"`
	Version   string         `json:"version"`
	Digest    string         `json:"digest"`
	Component map[string]int `json:"component"`
	Severity  map[string]int `json:"severity"`
	Role      map[string]int `json:"role"`
	Review    map[string]int `json:"review"`
	Literal   map[string]int `json:"literal_bytes"` // wordings by the length of the text that is looked for
	Wordings  int            `json:"wordings"`      // messages and aliases
	Examples  int            `json:"examples"`      // examples.match
	Unproved  []string       `json:"unproved_aliases"`
}

func countCatalogue(records []catalog.Record) catalogueStats {
	s := catalogueStats{
		Records: len(records), Version: catalog.Version(records), Digest: catalog.Digest(records),
		Component: map[string]int{}, Severity: map[string]int{}, Role: map[string]int{}, Review: map[string]int{}, Literal: map[string]int{},
		Unproved: []string{},
	}
	for i := range records {
		r := &records[i]
		s.Component[cmp.Or(r.Component, "none")]++
		s.Severity[r.Severity]++
		s.Role[r.Role]++
		s.Review[cmp.Or(r.Review, "none")]++
		s.Wordings += 1 + len(r.Aliases)
		s.Examples += len(r.Examples.Match)
		for _, alias := range r.Aliases {
			if !proved(alias, r.Examples.Match) {
				s.Unproved = append(s.Unproved, r.Slug+": "+oneLine(alias, messageWidth))
			}
		}
	}
	matcher, _ := match.New(records)
	for _, l := range matcher.Literals() {
		s.Literal[lengthClass(len(l.Text))]++
	}
	return s
}

// proved reports whether an alias occurs in one of its record's examples.
func proved(alias string, examples []catalog.Example) bool {
	re, err := regexp.Compile("(?s)" + catalog.EscapedPattern(alias))
	return err == nil && slices.ContainsFunc(examples, func(e catalog.Example) bool { return re.MatchString(e.Text) })
}

// lengthClasses are ranges of lengths in rising order; the matcher refuses a
// wording with less than 6 bytes to look for and warns below 12.
func lengthClasses() []string { return []string{"6-7", "8-11", "12-15", "16-23", "24-31", "32-"} }

func lengthClass(n int) string {
	classes := lengthClasses()
	for i, top := range []int{7, 11, 15, 23, 31} {
		if n <= top {
			return classes[i]
		}
	}
	return classes[len(classes)-1]
}

func (s catalogueStats) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

func (s catalogueStats) text(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s, %s, %s; version %s, digest %s\n", plural(int64(s.Records), "record"), plural(int64(s.Wordings), "wording"),
		plural(int64(s.Examples), "example"), cmp.Or(s.Version, "unknown"), s.Digest)
	for _, group := range []struct {
		title  string
		counts map[string]int
		order  []string
	}{
		{"Component", s.Component, slices.Sorted(maps.Keys(s.Component))},
		{"Severity", s.Severity, catalog.Severities()},
		{"Role", s.Role, catalog.Roles()},
		{"Review", s.Review, slices.Sorted(maps.Keys(s.Review))},
		{"Bytes looked for", s.Literal, lengthClasses()},
	} {
		fmt.Fprintf(&b, "\n%s\n", group.title)
		for _, name := range group.order {
			fmt.Fprintf(&b, "  %-16s %5d\n", name, group.counts[name])
		}
	}
	if len(s.Unproved) > 0 {
		fmt.Fprintf(&b, "\nAliases that no example shows: %d\n", len(s.Unproved))
		for _, alias := range s.Unproved {
			fmt.Fprintln(&b, "  "+alias)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
