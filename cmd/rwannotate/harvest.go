package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/harvest"
	"github.com/rwannotate/rwannotate/internal/match"
)

func newHarvestCmd(std streams) *cobra.Command {
	h := harvester{std: std}
	cmd := &cobra.Command{
		Use:   "harvest SRC",
		Short: "List the messages in RisingWave's source, as drafts of records",
		Long: `Read the messages that RisingWave can print out of a source tree of any version:
log statements, errors and panics in Rust, log statements and exceptions in the
Java connector node. Test code is left out.

--format table and tsv list every message, yaml prints a draft of a record for
each wording that can mean an error. With -o DIR the drafts are written to
DIR/COMPONENT/SLUG.yaml, which must not exist yet. Drafts say where a text comes
from; what it means and what to do is yours to write.`,
		Example: `  rwannotate patterns harvest ~/src/risingwave --new --level error,panic
  rwannotate patterns harvest ~/src/risingwave --new -o drafts`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return h.run(args[0]) },
	}
	fl := cmd.Flags()
	h.catalog.register(fl)
	fl.StringVarP(&h.dir, "output-dir", "o", "", "write drafts below `DIR`")
	fl.StringVar(&h.format, "format", "table", "table, tsv (escaped with \\n, \\t, \\\\) or yaml")
	fl.StringSliceVar(&h.levels, "level", []string{"panic", "error", "warn"}, "only messages of these levels: "+strings.Join(harvest.Levels(), ", "))
	fl.BoolVar(&h.fresh, "new", false, "only wordings that no record of the catalogue has")
	fl.StringVar(&h.commit, "commit", "", "`COMMIT` of the source, for links (default: what SRC/.git says)")
	return cmd
}

type harvester struct {
	std     streams
	catalog catalogFlags
	dir     string
	format  string
	levels  []string
	fresh   bool
	commit  string
}

func (h *harvester) run(src string) error {
	for _, l := range h.levels {
		if !slices.Contains(harvest.Levels(), l) {
			return exitf(exitUsage, "--level %s: must be one of %s", l, strings.Join(harvest.Levels(), ", "))
		}
	}
	if !slices.Contains([]string{"table", "tsv", "yaml"}, h.format) {
		return exitf(exitUsage, "--format %s: must be table, tsv or yaml", h.format)
	}
	tree, messages, err := readSource(src)
	if err != nil {
		return err
	}
	if h.commit == "" {
		h.commit = harvest.Commit(tree)
	}
	all := slices.Clone(messages)
	messages = slices.DeleteFunc(messages, func(m harvest.Message) bool { return !slices.Contains(h.levels, m.Level) })
	if h.fresh {
		if messages, err = h.unknown(messages); err != nil {
			return err
		}
	}
	switch {
	case h.dir != "":
		return h.writeFiles(h.drafts(messages, all))
	case h.format == "yaml":
		return h.printYAML(h.drafts(messages, all))
	}
	return listMessages(h.std.out, messages, h.format == "tsv")
}

// readSource reads all messages of a source tree on disk.
func readSource(src string) (fs.FS, []harvest.Message, error) {
	st, err := os.Stat(src)
	switch {
	case err != nil:
		return nil, nil, exitf(exitRuntime, "%s: %v", src, reasonOf(err))
	case !st.IsDir():
		return nil, nil, exitf(exitUsage, "%s is not a directory; name the root of RisingWave's source", src)
	}
	tree := os.DirFS(src)
	messages, err := harvest.Source(tree)
	if err != nil {
		return nil, nil, exitf(exitRuntime, "%s: %v", src, err)
	}
	if !slices.ContainsFunc(messages, func(m harvest.Message) bool { return harvest.Component(m.File) == "meta" }) {
		return nil, nil, exitf(exitUsage, "%s is not the root of RisingWave's source: it has no messages below src/meta", src)
	}
	return tree, messages, nil
}

// unknown drops the messages that some record has as a wording.
func (h *harvester) unknown(messages []harvest.Message) ([]harvest.Message, error) {
	records, err := readRecords(&h.catalog, h.std.err)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, r := range records {
		for _, t := range append([]string{r.ErrorMessage}, r.Aliases...) {
			known[harvest.Wording(t)] = true
		}
	}
	return slices.DeleteFunc(messages, func(m harvest.Message) bool { return known[harvest.Wording(m.Text)] }), nil
}

// drafts makes records and leaves out those that no log can be searched for,
// and those that healthy logs are full of.
func (h *harvester) drafts(messages, all []harvest.Message) []catalog.Record {
	drafts := harvest.Drafts(messages, h.commit)
	made := len(drafts)
	drafts = harvest.Distinct(drafts, all)
	if n := made - len(drafts); n > 0 {
		fmt.Fprintf(h.std.err, "rwannotate: %s left out: healthy messages hold the same text\n", plural(int64(n), "wording"))
	}
	_, problems := match.New(drafts)
	refused := map[int]bool{}
	for _, p := range problems {
		if p.Refused && p.Record >= 0 {
			refused[p.Record] = true
		}
	}
	usable := make([]catalog.Record, 0, len(drafts))
	for i, r := range drafts {
		if !refused[i] {
			usable = append(usable, r)
		}
	}
	if n := len(refused); n > 0 {
		fmt.Fprintf(h.std.err, "rwannotate: %s left out: too little literal text to search for\n", plural(int64(n), "wording"))
	}
	return usable
}

func (h *harvester) writeFiles(drafts []catalog.Record) error {
	for i := range drafts {
		file := filepath.Join(h.dir, drafts[i].Component, drafts[i].Slug+".yaml")
		if err := writeNew(file, drafts[i].AppendYAML(nil)); err != nil {
			return exitf(exitRuntime, "harvest: %v", err)
		}
	}
	fmt.Fprintf(h.std.out, "%s written below %s\n", plural(int64(len(drafts)), "draft"), h.dir)
	return nil
}

// writeNew writes a file that must not exist yet, and its directory.
func writeNew(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (h *harvester) printYAML(drafts []catalog.Record) error {
	w := bufio.NewWriter(h.std.out)
	for i := range drafts {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		w.Write(drafts[i].AppendYAML(nil))
	}
	return w.Flush()
}

// escapeTSV keeps a template on one line.
func escapeTSV() *strings.Replacer {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`)
}

func listMessages(out io.Writer, messages []harvest.Message, tsv bool) error {
	w := bufio.NewWriter(out)
	if tsv {
		escape := escapeTSV()
		for _, m := range messages {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", m.Level, m.File, m.Line, escape.Replace(m.Text))
		}
		return w.Flush()
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "LEVEL\tKIND\tMESSAGE\tWHERE")
	for _, m := range messages {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s:%d\n", m.Level, m.Kind, oneLine(m.Text, messageWidth), m.File, m.Line)
	}
	tw.Flush()
	fmt.Fprintf(w, "%s\n", plural(int64(len(messages)), "message"))
	return w.Flush()
}
