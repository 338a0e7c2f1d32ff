package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
)

func newExplainCmd(std streams) *cobra.Command {
	var flags catalogFlags
	var output, color string
	cmd := &cobra.Command{
		Use:   "explain ID|SLUG|'LOG LINE'|-",
		Short: "Say what an error means and what to do",
		Long: `Say what an error means, when it happens and what to do about it.

The error is named by its id or slug, or recognised in a log line given as an
argument or on standard input ("-"). A line may carry any envelope and span
several lines. If nothing is recognised, the records that come closest are
named and the exit code is 1.`,
		Example: `  rwannotate explain snapshot-backfill-epoch-set-again
  rwannotate explain 'actor exit with error actor_id=17 error=Executor error: …'
  kubectl logs meta-0 | tail -1 | rwannotate explain - -o markdown`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exitf(exitUsage, "explain what? name an id or slug, or give a log line (see \"rwannotate explain --help\")")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			records, matcher, err := flags.load(std.err)
			if err != nil {
				return err
			}
			x := explainer{std: std, term: newTerminal(std.out, color), records: records, matcher: matcher}
			return x.run(strings.Join(args, " "), output)
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return completeSlugs(&flags, prefix), cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or markdown")
	cmd.Flags().StringVar(&color, "color", "auto", "auto, always or never")
	return cmd
}

func completeSlugs(flags *catalogFlags, prefix string) []string {
	records, _, err := flags.read()
	if err != nil {
		return nil
	}
	var slugs []string
	for _, r := range records {
		if strings.HasPrefix(r.Slug, prefix) {
			slugs = append(slugs, r.Slug)
		}
	}
	return slugs
}

type explainer struct {
	std     streams
	term    terminal
	records []catalog.Record
	matcher *match.Matcher
}

func (x *explainer) run(what, output string) error {
	if what == "-" {
		text, err := io.ReadAll(io.LimitReader(x.std.in, 1<<20))
		if err != nil {
			return exitf(exitRuntime, "read standard input: %v", err)
		}
		what = string(text)
	}
	if what = pasted(what); what == "" {
		return exitf(exitRuntime, "nothing to explain: the text is empty")
	}
	record, ev := x.find(what)
	if record == nil {
		return x.closest(what)
	}
	switch output {
	case "text":
		x.text(record, ev)
	case "markdown":
		x.markdown(record, ev)
	case "json":
		return x.json(record, ev)
	default:
		return exitf(exitUsage, "-o %s: want text, json or markdown", output)
	}
	return nil
}

// pasted takes off what copying adds to a log line: colour codes, whose escape
// character is shown in some way or lost, and the quotes of the text it was in.
func pasted(s string) string {
	code := regexp.MustCompile(`(?:\x1b|\^\[|\\u001b|\\x1b|\\033|\\e)?\[[0-9]+(?:;[0-9]+)*m`)
	s = code.ReplaceAllString(s, "")
	trimmed := strings.TrimSpace(s)
	n := len(trimmed)
	switch {
	case n == 0:
		return ""
	case n > 1 && trimmed[0] == trimmed[n-1] && strings.IndexByte("`\"'", trimmed[0]) >= 0:
		return trimmed[1 : n-1]
	}
	return s
}

// find looks for a record by name, else recognises it in a log text. ev is nil
// in the first case.
func (x *explainer) find(what string) (*catalog.Record, *annotate.Event) {
	if r, ok := x.matcher.Lookup(strings.TrimSpace(what)); ok {
		return r, nil
	}
	var found *annotate.Event
	stream := pipeline.New(pipeline.Info{Input: "argument", Line: 1}, func() *match.Matcher { return x.matcher }, func(ev *annotate.Event) error {
		if found == nil {
			found = ev
		}
		return nil
	}, pipeline.Options{Echoes: true, Mask: annotate.NewMasker(), Now: time.Now})
	r := strings.NewReader(what)
	for r.Len() > 0 {
		if _, err := stream.ReadOnce(r); err != nil {
			break
		}
	}
	_ = stream.End(true) // emit never fails here
	if found == nil {
		return nil, nil
	}
	record, _ := x.matcher.Lookup(found.Error.ID)
	return record, found
}

// closest names the records whose texts resemble what was asked for.
func (x *explainer) closest(what string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no record of the catalogue is called %q or recognised in it", cutWidth(firstLine(strings.TrimSpace(what)), 60))
	if near := x.matcher.Closest(what, 3); len(near) > 0 {
		b.WriteString("; the closest are:")
		for _, r := range near {
			fmt.Fprintf(&b, "\n  %s\n      %s", name(r), firstLine(r.ErrorMessage))
		}
	}
	return exitf(exitRuntime, "%s", b.String())
}

// text prints an explanation for a person at a terminal.
func (x *explainer) text(r *catalog.Record, ev *annotate.Event) {
	t, w := x.term, x.term.w
	title := t.paint(severityColor(r.Severity), r.Severity) + "  " + t.paint(bold, name(r))
	fmt.Fprintf(w, "%s   %s\n", title, t.paint(dim, r.ID))
	x.block("", "       ", r.ErrorMessage)
	if ev != nil {
		x.found(ev)
	}
	x.section("What it means", r.Documentation)
	x.section("When it happens", strings.TrimSpace(r.TriggerScenarios+"\n\n"+r.CommonSituations))
	x.numbered("Do this", r.Solutions)
	x.numbered("Prevent it", r.PreventionTips)
	x.provenance(r)
}

// found prints what the log line itself told.
func (x *explainer) found(ev *annotate.Event) {
	w := x.term.w
	fmt.Fprintln(w)
	x.block("  found  ", "         ", ev.Message)
	for i, a := range ev.Error.Args {
		x.block(fmt.Sprintf("  arg %d  ", i+1), "         ", a)
	}
	if len(ev.RW.Chain) > 0 {
		x.block("  inside ", "         ", strings.Join(ev.RW.Chain, " › "))
	}
	if ev.RW.Component != "" {
		fmt.Fprintf(w, "  from   %s\n", ev.RW.Component)
	}
}

// block prints text wrapped behind a lead, and nothing in it that a terminal
// obeys.
func (x *explainer) block(lead, indent, text string) {
	if lead == "" {
		lead = indent
	}
	for i, line := range wrap(printable(text), x.term.width-len(indent)) {
		if i > 0 {
			lead = indent
		}
		fmt.Fprintf(x.term.w, "%s%s\n", lead, line)
	}
}

func (x *explainer) section(title, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(x.term.w, "\n%s\n", x.term.paint(bold, title))
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 && paragraph != "" {
			fmt.Fprintln(x.term.w)
		}
		x.block("", "  ", paragraph)
	}
}

func (x *explainer) numbered(title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(x.term.w, "\n%s\n", x.term.paint(bold, title))
	for i, item := range items {
		x.block(fmt.Sprintf("  %d. ", i+1), "     ", item)
	}
}

// provenance says where the record comes from and how far to trust it.
func (x *explainer) provenance(r *catalog.Record) {
	w := x.term.w
	fmt.Fprintln(w)
	if r.FilePath != "" {
		fmt.Fprintf(w, "Thrown at  %s:%d\n", r.FilePath, r.LineNumber)
	}
	if r.GithubURL != "" {
		fmt.Fprintf(w, "           %s\n", r.GithubURL)
	}
	for _, ref := range r.References {
		fmt.Fprintf(w, "See also   %s\n", ref)
	}
	if r.AnalyzedSha != "" {
		fmt.Fprintln(w, x.term.paint(dim, analysed(r)))
	}
}

// analysed tells which source the record describes.
func analysed(r *catalog.Record) string {
	return fmt.Sprintf("Describes RisingWave at commit %.10s (%.10s); line numbers and wording of your version may differ.", r.AnalyzedSha, r.AnalyzedAt)
}

// markdown prints an explanation to paste into a ticket.
func (x *explainer) markdown(r *catalog.Record, ev *annotate.Event) {
	w := &strings.Builder{}
	fmt.Fprintf(w, "## %s: `%s`\n\n", r.Severity, name(r))
	fmt.Fprintf(w, "```\n%s\n```\n\n", r.ErrorMessage)
	if ev != nil {
		fmt.Fprintf(w, "Found: `%s`\n\n", strings.ReplaceAll(firstLine(ev.Message), "`", "'"))
	}
	for _, s := range []struct{ title, text string }{{"What it means", r.Documentation}, {"When it happens", strings.TrimSpace(r.TriggerScenarios + "\n\n" + r.CommonSituations)}} {
		if s.text != "" {
			fmt.Fprintf(w, "### %s\n\n%s\n\n", s.title, s.text)
		}
	}
	for _, s := range []struct {
		title string
		items []string
	}{{"Do this", r.Solutions}, {"Prevent it", r.PreventionTips}} {
		if len(s.items) == 0 {
			continue
		}
		fmt.Fprintf(w, "### %s\n\n", s.title)
		for i, item := range s.items {
			fmt.Fprintf(w, "%d. %s\n", i+1, item)
		}
		fmt.Fprintln(w)
	}
	if r.GithubURL != "" {
		fmt.Fprintf(w, "Source: [%s:%d](%s)\n", r.FilePath, r.LineNumber, r.GithubURL)
	}
	fmt.Fprint(x.std.out, printable(w.String()))
}

// json prints the event for a log line, the record for a name.
func (x *explainer) json(r *catalog.Record, ev *annotate.Event) error {
	if ev != nil {
		line := annotate.NewEncoder(x.records, catalog.Version(x.records), catalog.Digest(x.records)).Append(nil, ev)
		_, err := x.std.out.Write(line)
		return err
	}
	enc := json.NewEncoder(visible{x.std.out})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
