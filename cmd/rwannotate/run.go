package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/config"
	rwdaemon "github.com/rwannotate/rwannotate/internal/daemon"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
	"github.com/rwannotate/rwannotate/internal/sink/stdout"
	"github.com/rwannotate/rwannotate/internal/source"
	"github.com/rwannotate/rwannotate/internal/spool"
)

// stopLimit is what reading to the end and saving may take at SIGTERM: the
// pods we run in have one second.
const stopLimit = 800 * time.Millisecond

func newRunCmd(std streams) *cobra.Command {
	var flags configFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Follow logs and write an event for each known error: the daemon",
		Long: `Follow logs and write an event for each known error.

Events go to standard output, one JSON object a line, our own messages to
standard error. Inputs are files, directories, globs, or "-" for standard
input; without any, what is piped in. With --state, positions survive restarts.

SIGTERM ends it within 800 ms, everything read and saved; SIGHUP reloads the
catalogue.`,
		Example: `  rwannotate run --input '/var/log/pods/risingwave_*/*/*.log' --state /var/lib/rwannotate
  journalctl -f -o export -u risingwave | rwannotate run`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := flags.load(std.err)
			if err != nil {
				return err
			}
			return runDaemon(cmd.Context(), std, &flags, cfg, dryRun)
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "events on standard output only: no network, and no position is read or written")
	return cmd
}

// runDaemon wires the parts together and runs them.
func runDaemon(ctx context.Context, std streams, flags *configFlags, cfg config.Config, dryRun bool) error {
	if len(cfg.Inputs) == 0 {
		if !piped(std.in) {
			return exitf(exitUsage, "nothing to read: name inputs with --input or in the configuration, or pipe a log in")
		}
		cfg.Inputs = []config.Input{{Stdin: true}}
	}
	if dryRun {
		cfg.State.Dir, cfg.Loki.Endpoints, cfg.Output.Stdout = "", nil, true
	}
	log := newLogger(std.err, cfg.Log)
	var current atomic.Pointer[knowledge]
	k, err := loadKnowledge(std.err, cfg.Catalog)
	if err != nil {
		return err
	}
	current.Store(k)

	state, closeState, err := openState(cfg.State, len(cfg.Loki.Endpoints) > 0, log)
	if err != nil {
		return err
	}
	defer closeState()
	signals := make(chan os.Signal, 8)
	// SIGPIPE too: else a closed standard output ends us without a word.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(signals)

	ledgerOptions := rwdaemon.LedgerOptions{
		Output: newOutput(std.out, cfg.Output, &current, log), Interval: cfg.State.CommitInterval, Log: log,
	}
	if state != nil {
		ledgerOptions.State = state
	}
	var sinks []rwdaemon.Runner
	if len(cfg.Loki.Endpoints) > 0 {
		d, err := newDelivery(cfg, state, current.Load, log)
		if err != nil {
			return err
		}
		ledgerOptions.Delivery, ledgerOptions.Full, ledgerOptions.Committed = d, d.full, d.wake
		sinks = d.sinks()
	}
	ledger := rwdaemon.NewLedger(ledgerOptions)
	sources, ready, err := newSources(std, cfg, ledger, &current, log)
	if err != nil {
		return exitf(exitConfig, "%v", err)
	}
	watchdog, _ := daemon.SdWatchdogEnabled(false) // malformed: none
	log.Info().Str("version", version).Int("records", len(k.records)).Str("catalog", catalog.Version(k.records)).Msg("started")
	return rwdaemon.New(rwdaemon.Options{
		Ledger: ledger, Sources: sources, Sinks: sinks, Ready: ready, Signals: signals, Log: log,
		Reload:        func() error { return reload(std.err, flags, &current) },
		Notify:        func(state string) { _, _ = daemon.SdNotify(false, state) }, // nobody to tell: none
		WatchdogEvery: watchdog,
		StopLimit:     min(stopLimit, cfg.ShutdownTimeout), DrainLimit: cfg.ShutdownTimeout,
	}).Run(ctx)
}

// knowledge is a catalogue, ready to use. It is replaced as a whole.
type knowledge struct {
	records []catalog.Record
	matcher *match.Matcher
	encoder *annotate.Encoder
}

func loadKnowledge(w io.Writer, c config.Catalog) (*knowledge, error) {
	f := catalogFlags{dirs: c.Paths, noEmbedded: !c.Embedded, strict: c.Strict, adjust: func(records []catalog.Record) []catalog.Record {
		return adjust(records, c)
	}}
	records, matcher, err := f.load(w)
	if err != nil {
		return nil, err
	}
	return &knowledge{records, matcher, annotate.NewEncoder(records, catalog.Version(records), catalog.Digest(records))}, nil
}

// adjust applies what the configuration says of single records.
func adjust(records []catalog.Record, c config.Catalog) []catalog.Record {
	kept := records[:0]
	for _, r := range records {
		if slices.Contains(c.Disable, r.ID) || r.Slug != "" && slices.Contains(c.Disable, r.Slug) {
			continue
		}
		for _, name := range []string{r.Slug, r.ID} {
			if s := c.SeverityOverrides[name]; s != "" {
				r.Severity = s
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// reload reads the catalogue again, as the configuration now says. The old one
// stays if anything is wrong with either.
func reload(w io.Writer, flags *configFlags, current *atomic.Pointer[knowledge]) error {
	cfg, _, err := flags.load(w)
	if err != nil {
		return err
	}
	k, err := loadKnowledge(w, cfg.Catalog)
	if err != nil {
		return err
	}
	current.Store(k)
	return nil
}

// openState opens the state directory. Without one positions are kept in
// memory, and a temporary directory holds what waits for Loki, if anything does.
func openState(c config.State, queues bool, log zerolog.Logger) (state *spool.Spool, closeState func(), err error) {
	remove := func() {}
	if c.Dir == "" {
		log.Warn().Msg("no state directory (--state): positions, and what waits for Loki, are forgotten at exit")
		if !queues {
			return nil, remove, nil
		}
		if c.Dir, err = os.MkdirTemp("", "rwannotate-"); err != nil {
			return nil, nil, exitf(exitRuntime, "no state directory, and no temporary one: %v", err)
		}
		remove = func() { _ = os.RemoveAll(c.Dir) } // ours alone, and in a temporary place
	}
	s, err := spool.Open(c.Dir, spool.Options{MaxBytes: int64(c.QueueMaxBytes)}, log)
	if err != nil {
		return nil, nil, exitf(exitRuntime, "%v", err)
	}
	return s, func() {
		if err := s.Close(); err != nil {
			log.Error().Err(err).Msg("state directory was not closed well")
		}
		remove()
	}, nil
}

// newOutput makes the writer of events, nil for none.
func newOutput(w io.Writer, c config.Output, current *atomic.Pointer[knowledge], log zerolog.Logger) rwdaemon.Output {
	if !c.Stdout {
		return nil
	}
	encode := func(dst []byte, ev *annotate.Event) []byte { return current.Load().encoder.Append(dst, ev) }
	return stdout.New(w, encode, log)
}

// newSources makes what reads the inputs. ready is closed when it has begun.
func newSources(std streams, cfg config.Config, ledger *rwdaemon.Ledger, current *atomic.Pointer[knowledge], log zerolog.Logger) (sources []rwdaemon.Runner, ready <-chan struct{}, err error) {
	open := ledger.Open(newOpener(cfg, current))
	opt := source.Options{Own: ownFiles(std), K8s: annotate.K8s(podOf(cfg.Kubernetes))}
	if cfg.State.Dir != "" {
		opt.Avoid = []string{cfg.State.Dir}
	}
	stdin := false
	for _, in := range cfg.Inputs {
		stdin = stdin || in.Stdin
		for _, path := range in.Files {
			opt.Inputs = append(opt.Inputs, source.Input{Path: path, Exclude: in.Exclude, Start: source.Start(in.Start)})
		}
	}
	begun := make(chan struct{})
	close(begun)
	ready = begun
	if len(opt.Inputs) > 0 {
		files, err := source.NewFiles(opt, open, ledger, log)
		if err != nil {
			return nil, nil, err
		}
		sources, ready = append(sources, files), files.Ready()
	}
	if stdin {
		sources = append(sources, source.NewStdin(std.in, open, ledger))
	}
	return sources, ready, nil
}

// newOpener makes the path from bytes to events of one stream.
func newOpener(cfg config.Config, current *atomic.Pointer[knowledge]) func(source.StreamInfo, func(*annotate.Event) error) source.Consumer {
	opt := pipeline.Options{FlushAfter: cfg.Multiline.FlushAfter, MaxRecord: int(cfg.Multiline.MaxBytes), Mask: annotate.NewMasker(redactions(cfg.Output)...)}
	matcher := func() *match.Matcher { return current.Load().matcher }
	least := slices.Index(logLevels, cfg.Match.MinLevel)
	return func(info source.StreamInfo, emit func(*annotate.Event) error) source.Consumer {
		if least > 0 {
			all := emit
			emit = func(ev *annotate.Event) error {
				if level := slices.Index(logLevels, strings.ToLower(ev.RW.Level)); level >= 0 && level < least {
					return nil
				}
				return all(ev)
			}
		}
		return pipeline.New(pipeline.Info{Input: info.Input, Path: info.Path, K8s: info.K8s, Offset: info.Offset, Line: info.Line}, matcher, emit, opt)
	}
}

// redactions compiles the user's own masks.
func redactions(c config.Output) []*regexp.Regexp {
	var masks []*regexp.Regexp
	for _, expr := range c.Redact {
		masks = append(masks, regexp.MustCompile(expr)) // config.Load has compiled it before
	}
	return masks
}

// logLevels of RisingWave's records, in rising order.
var logLevels = []string{"trace", "debug", "info", "warn", "error"}

// ownFiles returns what our output goes to, which is not to be read again.
func ownFiles(std streams) []os.FileInfo {
	var own []os.FileInfo
	for _, w := range []io.Writer{std.out, std.err} {
		if f, ok := w.(*os.File); ok {
			if info, err := f.Stat(); err == nil {
				own = append(own, info)
			}
		}
	}
	return own
}

// podOf is the pod that we run in: what the configuration says, else the
// variables that the manifests in configs/ set.
func podOf(c config.Kubernetes) annotate.K8s {
	or := func(value, variable string) string {
		if value == "" {
			value = os.Getenv(variable)
		}
		return value
	}
	return annotate.K8s{
		Namespace: or(c.Namespace, "POD_NAMESPACE"), Pod: or(c.Pod, "POD_NAME"),
		UID: or(c.UID, "POD_UID"), Node: or(c.Node, "NODE_NAME"),
	}
}

// newLogger makes the logger of our own messages.
func newLogger(w io.Writer, c config.Log) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }
	if c.Format == "text" {
		w = zerolog.ConsoleWriter{Out: w, NoColor: true, TimeFormat: time.RFC3339, TimeLocation: time.UTC}
	}
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}
