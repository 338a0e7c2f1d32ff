package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
)

// scanFlags are the options of the scan command.
type scanFlags struct {
	catalog  catalogFlags
	output   string
	color    string
	top      int
	since    string
	until    string
	failOn   string
	echoes   bool
	unknown  bool
	quiet    bool
	noFilter bool
}

func newScanCmd(std streams) *cobra.Command {
	var f scanFlags
	cmd := &cobra.Command{
		Use:   "scan [FILE|GLOB|-]...",
		Short: "Read logs to their end and report the known errors in them",
		Long: `Read logs to their end and report the known errors in them.

FILE may be plain, .gz or .zst, in any of the forms RisingWave writes and
collectors wrap (text, JSON, CRI, docker, journald, compose, kubectl, stern).
"-" is standard input; so is no argument at all when input is piped in.

On a terminal the result is a table; in a pipe it is one JSON event a line.
"-o inline" prints the log itself with the explanation under each line.`,
		Example: `  rwannotate scan compute-0.log
  kubectl logs compute-0 | rwannotate scan
  rwannotate scan -o json '/var/log/pods/*/compute/*.log' | jq .error.slug
  rwannotate scan --fail-on error --since 2026-11-30T08:00:00Z meta.log.gz`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runScan(cmd.Context(), std, f, args)
		},
	}
	fl := cmd.Flags()
	f.catalog.register(fl)
	fl.StringVarP(&f.output, "output", "o", "auto", "auto, text, json or inline; with --unknown also yaml: drafts of records")
	fl.StringVar(&f.color, "color", "auto", "auto, always or never")
	fl.IntVar(&f.top, "top", 20, "`ROWS` of the table, most severe first; 0 for all")
	fl.StringVar(&f.since, "since", "", "only errors from `TIME` on (RFC 3339, or a duration back from now such as 2h)")
	fl.StringVar(&f.until, "until", "", "only errors before `TIME`")
	fl.StringVar(&f.failOn, "fail-on", "", "exit with 10 if an error of `SEVERITY` or higher is found: info, warning, error or critical")
	fl.BoolVar(&f.echoes, "echoes", false, "report repetitions of an error in tracing spans too")
	fl.BoolVar(&f.unknown, "unknown", false, "report the WARN, ERROR and panic records that the catalogue does not know, in groups")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on standard error")
	fl.BoolVar(&f.noFilter, "no-prefilter", false, "decode every record (slow; to check the prefilter)")
	_ = fl.MarkHidden("no-prefilter")
	return cmd
}

// A report receives what a scan finds.
type report interface {
	// event is called for each known error, in the order of the log.
	event(*annotate.Event) error
	// read is called with the bytes of the input as they are read, before their
	// events.
	read(p []byte)
	// settled tells that everything before offset has been decided.
	settled(offset int64) error
	// finish ends the report.
	finish(totals) error
}

// totals is what a scan has read.
type totals struct {
	inputs int
	stats  pipeline.Stats
}

// A scan is one run of the command.
type scan struct {
	std     streams
	matcher *match.Matcher
	options pipeline.Options
	report  report
	window  window
	failOn  int
	failed  bool // --fail-on matched
	broken  bool // an input could not be read
	totals  totals
	meter   *meter
}

func runScan(ctx context.Context, std streams, f scanFlags, args []string) error {
	s := &scan{std: std, options: pipeline.Options{Echoes: f.echoes, Unfiltered: f.noFilter, Mask: annotate.NewMasker()}}
	var err error
	if s.window, err = newWindow(f.since, f.until, time.Now()); err != nil {
		return err
	}
	if s.failOn, err = failOnRank(f.failOn); err != nil {
		return err
	}
	inputs, err := expandInputs(args, std.in)
	if err != nil {
		return err
	}
	if err := f.checkOutput(); err != nil {
		return err
	}
	records, matcher, err := f.catalog.load(std.err)
	if err != nil {
		return err
	}
	s.matcher = matcher
	out := bufio.NewWriterSize(std.out, 64<<10)
	term := newTerminal(std.out, f.color)
	switch {
	case f.unknown:
		if s.report, err = newUnknownReport(s, out, term, f); err != nil {
			return err
		}
	case f.output == "inline":
		s.report = newInline(out, term, matcher, s.options.Mask)
	case f.output == "text", f.output == "auto" && term.tty:
		s.report = newTable(out, term, matcher, f.top)
	default:
		s.report = &ndjson{w: out, encoder: annotate.NewEncoder(records, catalog.Version(records), catalog.Digest(records))}
	}
	s.meter = newMeter(std.err, f.quiet)
	return s.run(ctx, inputs)
}

func (f *scanFlags) checkOutput() error {
	forms := []string{"auto", "text", "json", "inline"}
	if f.unknown {
		forms = []string{"auto", "text", "json", "yaml"}
	}
	if !slices.Contains(forms, f.output) {
		return exitf(exitUsage, "-o %s: want %s", f.output, strings.Join(forms, ", "))
	}
	return nil
}

// run scans the inputs one after the other. Inputs that cannot be read are
// reported and the rest is scanned all the same.
func (s *scan) run(ctx context.Context, inputs []string) error {
	for _, name := range inputs {
		err := s.input(ctx, name)
		s.meter.clear()
		var out outputError
		if errors.As(err, &out) {
			return out.explain()
		}
		if err != nil {
			s.broken = true
			fmt.Fprintln(s.std.err, "rwannotate: "+printable(err.Error()))
		}
	}
	if err := s.report.finish(s.totals); err != nil {
		return outputError{err}.explain()
	}
	switch {
	case ctx.Err() != nil:
		return exitf(exitRuntime, "interrupted; the scan is not complete")
	case s.broken:
		return exitError{code: exitRuntime}
	case s.failed:
		return exitError{code: exitFailOn}
	}
	return nil
}

// outputError is a failure to write what was found: the scan cannot go on.
type outputError struct{ error }

// explain says why in one line. A reader that has gone, as in "scan … | head",
// is no fault of ours.
func (e outputError) explain() error {
	if errors.Is(e.error, syscall.EPIPE) {
		return exitf(exitRuntime, "standard output was closed by its reader; the scan is not complete")
	}
	return exitf(exitRuntime, "write results: %v", e.error)
}

// input scans one input.
func (s *scan) input(ctx context.Context, name string) error {
	in, err := openInput(name, s.std.in)
	if err != nil {
		return err
	}
	defer in.Close()
	s.totals.inputs++
	s.meter.begin(in)
	info := pipeline.Info{Input: in.kind, Path: in.path, Line: 1, K8s: in.k8s}
	stream := pipeline.New(info, func() *match.Matcher { return s.matcher }, s.emit, s.options)
	defer func() { s.totals.stats = s.totals.stats.Plus(stream.Stats()) }()
	r := reader{in, s.report}
	for ctx.Err() == nil {
		n, err := stream.ReadOnce(r)
		if err == nil {
			err = s.settle(stream)
		}
		s.meter.add(n, stream.Stats().Events)
		if err == io.EOF {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read %s: %w", in.name, err), s.end(stream))
		}
	}
	return s.end(stream)
}

// reader shows the report what is read.
type reader struct {
	io.Reader
	report report
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.report.read(p[:n])
	return n, err
}

func (s *scan) settle(stream *pipeline.Stream) error {
	offset, _ := stream.Resume()
	if err := s.report.settled(offset); err != nil {
		return outputError{err}
	}
	return nil
}

func (s *scan) end(stream *pipeline.Stream) error {
	if err := stream.End(true); err != nil {
		return err
	}
	return s.settle(stream)
}

func (s *scan) emit(ev *annotate.Event) error {
	if !s.window.has(ev.Time) {
		return nil
	}
	if r, ok := s.matcher.Lookup(ev.Error.ID); ok && s.failOn >= 0 && severityRank(r.Severity) >= s.failOn {
		s.failed = true
	}
	if err := s.report.event(ev); err != nil {
		return outputError{err}
	}
	return nil
}

// severityRank orders severities; -1 for an unknown word.
func severityRank(severity string) int { return slices.Index(catalog.Severities(), severity) }

func failOnRank(severity string) (int, error) {
	rank := severityRank(severity)
	if rank < 0 && severity != "" {
		return 0, exitf(exitUsage, "--fail-on %s: want %s", severity, strings.Join(catalog.Severities(), ", "))
	}
	return rank, nil
}

// A window is a span of log time; zero ends are open.
type window struct{ since, until time.Time }

func (w window) has(t time.Time) bool {
	return !(t.Before(w.since) || !w.until.IsZero() && !t.Before(w.until))
}

func newWindow(since, until string, now time.Time) (w window, err error) {
	if w.since, err = parseTime("--since", since, now); err != nil {
		return w, err
	}
	if w.until, err = parseTime("--until", until, now); err != nil {
		return w, err
	}
	if !w.until.IsZero() && !w.since.Before(w.until) {
		return w, exitf(exitUsage, "--since %s is not before --until %s", since, until)
	}
	return w, nil
}

// parseTime reads a time in RFC 3339, a date, or a duration back from now.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, exitf(exitUsage, "%s %s: want a time such as 2026-11-30T08:00:00Z, or a duration back from now such as 2h", flag, s)
}

// ndjson writes each event as one line of JSON.
type ndjson struct {
	w       *bufio.Writer
	encoder *annotate.Encoder
	line    []byte
}

func (n *ndjson) event(ev *annotate.Event) error {
	n.line = n.encoder.Append(n.line[:0], ev)
	_, err := n.w.Write(n.line)
	return err
}

func (n *ndjson) read([]byte)         {}
func (n *ndjson) settled(int64) error { return nil }
func (n *ndjson) finish(totals) error { return n.w.Flush() }
