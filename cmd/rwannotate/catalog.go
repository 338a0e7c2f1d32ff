package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/patterns"
)

// catalogFlags choose the catalogue: what is embedded, and directories that
// add to it or override records by id, later ones first.
type catalogFlags struct {
	dirs       []string
	noEmbedded bool
	strict     bool
	adjust     func([]catalog.Record) []catalog.Record // what the configuration says of single records; nil: nothing
}

func (f *catalogFlags) register(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.dirs, "patterns", nil, "`DIR` with further records, which override embedded ones by id (repeatable)")
	fl.BoolVar(&f.noEmbedded, "no-embedded", false, "leave out the catalogue inside the binary")
	fl.BoolVar(&f.strict, "strict", false, "stop if a record of the catalogue cannot be used")
}

// catalogFault begins what is said of a faulty record.
const catalogFault = "rwannotate: catalogue: "

// read loads the records without judging them.
func (f *catalogFlags) read() ([]catalog.Record, []catalog.Problem, error) {
	var records []catalog.Record
	var problems []catalog.Problem
	if !f.noEmbedded {
		records, problems = catalog.Load(patterns.FS())
	}
	for _, dir := range f.dirs {
		st, err := os.Stat(dir)
		if err != nil {
			return nil, nil, exitf(exitConfig, "--patterns %s: %v", dir, err)
		}
		if !st.IsDir() {
			return nil, nil, exitf(exitConfig, "--patterns %s: is not a directory", dir)
		}
		more, found := catalog.Load(catalog.Dir(dir))
		for i := range more {
			more[i].File = filepath.Join(dir, more[i].File)
		}
		for i := range found {
			found[i].File = filepath.Join(dir, found[i].File)
		}
		records = catalog.Merge(records, more)
		problems = append(problems, found...)
	}
	return records, problems, nil
}

// load reads the catalogue and builds the matcher. Records that cannot be used
// are named on w and left out; with --strict they end the program.
func (f *catalogFlags) load(w io.Writer) ([]catalog.Record, *match.Matcher, error) {
	records, matcher, _, err := f.loadAll(w)
	return records, matcher, err
}

// loadAll is load, and what it found wrong.
func (f *catalogFlags) loadAll(w io.Writer) ([]catalog.Record, *match.Matcher, []catalog.Problem, error) {
	records, problems, err := f.read()
	if err != nil {
		return nil, nil, nil, err
	}
	if f.adjust != nil {
		records = f.adjust(records)
	}
	matcher, refused := match.New(records)
	for _, p := range refused {
		if p.Refused {
			problems = append(problems, recordProblem(records, p))
		}
	}
	bad := 0
	for _, p := range problems {
		if !p.Warning {
			bad++
			fmt.Fprintln(w, printable(catalogFault+p.String()))
		}
	}
	if bad > 0 && f.strict {
		return nil, nil, nil, exitf(exitConfig, "%d faults in the catalogue", bad)
	}
	if len(records) == 0 {
		return nil, nil, nil, exitf(exitConfig, "the catalogue is empty: no record could be loaded")
	}
	return records, matcher, problems, nil
}

// recordProblem gives a problem of the matcher the place of its record.
func recordProblem(records []catalog.Record, p match.Problem) catalog.Problem {
	out := catalog.Problem{Message: p.Message, Warning: !p.Refused}
	if p.Record >= 0 {
		out.File, out.Field = records[p.Record].File, "messagePattern"
	}
	return out
}
