package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/lint"
	"github.com/rwannotate/rwannotate/patterns"
)

func newLintCmd(std streams) *cobra.Command {
	var all, strict bool
	cmd := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Say what is wrong with the records of a catalogue",
		Long: `Say what is wrong with the records of DIR, or of the embedded catalogue, in one
sentence each with file and field. Exits with 78 if there is an error, with
--strict also if there is a warning.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			tree, records, problems, err := openTree(args)
			if err != nil {
				return err
			}
			found := lint.Lint(records)
			catalog.Locate(found, func(file string) ([]byte, error) { return fs.ReadFile(tree, file) })
			return printProblems(std.out, append(problems, found...), len(records), all, strict)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "print every warning, not only the first few of a kind")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	return cmd
}

func newTestCmd(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "test [DIR]",
		Short: "Prove each record of a catalogue with its examples, in every log form",
		Long: `Run each record's examples, and its own message in every form a log can have,
through the same path that run and scan use. Exits with 78 if a record fails.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, records, problems, err := openTree(args)
			if err != nil {
				return err
			}
			return printProblems(std.out, append(problems, lint.Test(records)...), len(records), true, false)
		},
	}
}

// openTree loads the records of a directory, or the embedded ones.
func openTree(args []string) (fs.FS, []catalog.Record, []catalog.Problem, error) {
	tree := patterns.FS()
	if len(args) > 0 {
		st, err := os.Stat(args[0])
		if err != nil {
			return nil, nil, nil, exitf(exitConfig, "%v", err)
		}
		if !st.IsDir() {
			return nil, nil, nil, exitf(exitUsage, "%s is not a directory", args[0])
		}
		tree = os.DirFS(args[0])
	}
	records, problems := catalog.Load(tree)
	return tree, records, problems, nil
}

// fewOfAKind is how many warnings of one kind are printed without --all.
const fewOfAKind = 10

// printProblems prints all errors, and warnings up to a few of a kind.
func printProblems(w io.Writer, problems []catalog.Problem, records int, all, strict bool) error {
	kinds := map[string]int{}
	errs, warnings := 0, 0
	for _, p := range problems {
		if !p.Warning {
			errs++
			fmt.Fprintln(w, printable(p.String()))
			continue
		}
		warnings++
		kind, _, _ := strings.Cut(p.Message, ",")
		if kinds[kind[:min(len(kind), 24)]]++; all || kinds[kind[:min(len(kind), 24)]] <= fewOfAKind {
			fmt.Fprintln(w, printable(p.String()))
		}
	}
	if !all {
		for kind, n := range kinds {
			if n > fewOfAKind {
				fmt.Fprintf(w, "… and %d more like %q (--all prints them)\n", n-fewOfAKind, kind+"…")
			}
		}
	}
	fmt.Fprintf(w, "%s, %s, %s\n", plural(int64(records), "record"), plural(int64(errs), "error"), plural(int64(warnings), "warning"))
	if errs > 0 || strict && warnings > 0 || records == 0 {
		return exitError{code: exitConfig}
	}
	return nil
}
