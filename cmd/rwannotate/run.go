package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
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
	"github.com/rwannotate/rwannotate/internal/web"
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

A flag wins over a variable (RWANNOTATE_WEB_LISTEN is web.listen), that over
the configuration file, the file over the default: see "config show".

SIGTERM ends it within 800 ms (shutdown_timeout), everything read and saved;
SIGHUP reloads the catalogue and what the configuration says of it (catalog.*),
as does a change of their files. Other keys take effect at the next start.`,
		Example: `  rwannotate run --input '/var/log/pods/risingwave_*/{meta,compute}/*.log' --state /var/lib/rwannotate
  journalctl -f -o export -u risingwave-compute | rwannotate run`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			signals := make(chan os.Signal, 8)
			signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // at once: a SIGHUP while we start must not end us
			defer signal.Stop(signals)
			cfg, origins, err := flags.load(std.err)
			if err != nil {
				return err
			}
			given := configured{cfg, origins}
			a := &app{std: std, flags: &flags, given: given, cfg: cfg, signals: signals}
			return a.start(cmd.Context(), dryRun)
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "events on standard output only: no network, and no position is read or written")
	return cmd
}

// An app is the daemon's parts, wired together.
type app struct {
	std   streams
	flags *configFlags
	given configured    // at the start
	cfg   config.Config // what came of it
	log   zerolog.Logger

	current  atomic.Pointer[knowledge]
	state    *spool.Spool // nil: none
	files    *source.Files
	delivery *delivery   // nil: none
	server   *web.Server // nil: none
	ledger   *rwdaemon.Ledger
	tally    totalled
	piped    totalled // from standard input
	signals  chan os.Signal

	reloading sync.Mutex
}

// configured is a configuration, and where each value was given.
type configured struct {
	cfg     config.Config
	origins config.Origins
}

// start wires the parts together and runs them.
func (a *app) start(ctx context.Context, dryRun bool) error {
	if len(a.cfg.Inputs) == 0 {
		if !piped(a.std.in) {
			return exitf(exitUsage, "nothing to read: name inputs with --input or in the configuration, or pipe a log in")
		}
		a.cfg.Inputs = []config.Input{{Stdin: true}}
	}
	if dryRun {
		a.cfg.State.Dir, a.cfg.Loki.Endpoints, a.cfg.Output.Stdout = "", nil, true
	}
	a.log = newLogger(a.std.err, a.cfg.Log)
	k, err := loadKnowledge(a.std.err, a.given, a.cfg.Catalog.Strict)
	if err != nil {
		return err
	}
	a.use(k)
	closeState, err := a.openState()
	if err != nil {
		return err
	}
	defer closeState()
	return a.run(ctx)
}

func (a *app) run(ctx context.Context) error {
	var extras []rwdaemon.Runner
	if a.cfg.Web.Listen != "" {
		extras = append(extras, a.newServer())
	}
	if a.cfg.Reload.Interval > 0 {
		extras = append(extras, &watcher{every: a.cfg.Reload.Interval, paths: a.watched, changed: a.askReload})
	}
	sinks, err := a.newSinks()
	if err != nil {
		return err
	}
	sources, ready, err := a.newSources()
	if err != nil {
		return exitf(exitConfig, "%v", err)
	}
	watchdog, _ := daemon.SdWatchdogEnabled(false) // malformed: none
	k := a.current.Load()
	a.log.Info().Str("version", version).Int("records", len(k.records)).Str("catalog", k.version).Msg("started")
	return rwdaemon.New(rwdaemon.Options{
		Ledger: a.ledger, Sources: sources, Sinks: append(sinks, extras...), Ready: ready, Signals: a.signals, Log: a.log,
		Reload:        func() { _ = a.reload() },                                   // has said it
		Notify:        func(state string) { _, _ = daemon.SdNotify(false, state) }, // nobody to tell: none
		WatchdogEvery: watchdog,
		StopLimit:     min(stopLimit, a.cfg.ShutdownTimeout), DrainLimit: a.cfg.ShutdownTimeout,
	}).Run(ctx)
}

// newSinks makes the ledger, and what it hands events to.
func (a *app) newSinks() (sinks []rwdaemon.Runner, err error) {
	opt := rwdaemon.LedgerOptions{Interval: a.cfg.State.CommitInterval, Log: a.log}
	if a.cfg.Output.Stdout {
		opt.Output = stdout.New(a.std.out, func(dst []byte, ev *annotate.Event) []byte { return a.current.Load().encoder.Append(dst, ev) }, a.log)
	}
	if a.state != nil {
		opt.State = a.state
	}
	if len(a.cfg.Loki.Endpoints) > 0 {
		if a.delivery, err = newDelivery(a.cfg, a.state, a.server, a.current.Load, a.log); err != nil {
			return nil, err
		}
		opt.Delivery, opt.Full, opt.Committed = a.delivery, a.delivery.full, a.delivery.wake
		sinks = a.delivery.sinks()
	}
	a.ledger = rwdaemon.NewLedger(opt)
	return sinks, nil
}

// knowledge is a catalogue, ready to use. It is replaced as a whole.
type knowledge struct {
	configured // that it was loaded with

	records  []catalog.Record
	version  string
	digest   string
	disabled []catalog.Record
	unknown  []config.Problem // names in the configuration that no record has
	problems []catalog.Problem
	matcher  *match.Matcher
	encoder  *annotate.Encoder
}

func loadKnowledge(w io.Writer, given configured, strict bool) (*knowledge, error) {
	k, c := &knowledge{configured: given}, given.cfg.Catalog
	f := catalogFlags{dirs: c.Paths, noEmbedded: !c.Embedded, strict: strict, adjust: func(records []catalog.Record) []catalog.Record {
		k.unknown = unknownRecords(records, given)
		records, k.disabled = adjust(records, c)
		return records
	}}
	var err error
	if k.records, k.matcher, k.problems, err = f.loadAll(w); err != nil {
		return nil, err
	}
	k.version, k.digest = catalog.Version(k.records), catalog.Digest(k.records)
	k.encoder = annotate.NewEncoder(k.records, k.version, k.digest)
	return k, nil
}

// adjust applies what the configuration says of single records.
func adjust(records []catalog.Record, c config.Catalog) (kept, disabled []catalog.Record) {
	for _, r := range records {
		if slices.Contains(c.Disable, r.ID) || r.Slug != "" && slices.Contains(c.Disable, r.Slug) {
			disabled = append(disabled, r)
			continue
		}
		for _, name := range []string{r.Slug, r.ID} {
			if s := c.SeverityOverrides[name]; s != "" {
				r.Severity = s
			}
		}
		kept = append(kept, r)
	}
	return kept, disabled
}

// reload reads the catalogue again, as the configuration now says. The old one
// stays if anything is wrong with either.
func (a *app) reload() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	k, err := a.reloaded()
	if err != nil {
		a.log.Error().Err(err).Msg("reload failed; going on as before")
		if a.server != nil {
			a.server.ReloadFailed(err)
		}
		return err
	}
	a.use(k)
	if keys := a.waiting(); len(keys) > 0 {
		a.log.Warn().Strs("keys", keys).Msg("these settings have changed and take effect at the next start")
	}
	a.log.Info().Msg("reloaded")
	return nil
}

// maxFaults bounds what is said of one failed reload, in bytes.
const maxFaults = 8 << 10

// reloaded is the catalogue as it is now. The error names every fault.
func (a *app) reloaded() (*knowledge, error) {
	var faults bytes.Buffer
	cfg, origins, err := a.flags.load(&faults)
	if err == nil {
		var k *knowledge // strict: what works now is not given up for a part of what should
		if k, err = loadKnowledge(&faults, configured{cfg, origins}, true); err == nil {
			return k, nil
		}
	}
	if faults.Len() == 0 {
		return nil, err
	}
	said := strings.TrimSpace(strings.ReplaceAll(faults.String(), catalogFault, ""))
	if len(said) > maxFaults {
		said = strings.ToValidUTF8(said[:maxFaults], "") + " …"
	}
	return nil, fmt.Errorf("%w:\n%s", err, said)
}

// use puts a catalogue in force.
func (a *app) use(k *knowledge) {
	a.current.Store(k)
	a.showCatalog(k)
	for _, p := range k.unknown {
		a.log.Warn().Str("key", p.Key).Msg(p.Message)
	}
}

// waiting are the keys outside the catalogue's that the configuration, as last
// read, sets otherwise than at the start.
func (a *app) waiting() []string {
	values := map[string]string{}
	for _, l := range config.Show(a.given.cfg, nil) {
		values[l.Key] = l.Value
	}
	var keys []string
	for _, l := range config.Show(a.current.Load().cfg, nil) {
		if before, ok := values[l.Key]; (!ok || before != l.Value) && !ofCatalog(l.Key) {
			keys = append(keys, l.Key)
		}
		delete(values, l.Key)
	}
	for key := range values {
		if !ofCatalog(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func ofCatalog(key string) bool { return strings.HasPrefix(key, "catalog") }

// openState opens the state directory. Without one positions are kept in
// memory, and a temporary directory holds what waits for Loki, if anything does.
func (a *app) openState() (closeState func(), err error) {
	c := a.cfg.State
	remove := func() {}
	if c.Dir == "" {
		a.log.Warn().Msg("no state directory (--state): positions, and what waits for Loki, are forgotten at exit")
		if len(a.cfg.Loki.Endpoints) == 0 {
			return remove, nil
		}
		if c.Dir, err = os.MkdirTemp("", "rwannotate-"); err != nil {
			return nil, exitf(exitRuntime, "no state directory, and no temporary one: %v", err)
		}
		remove = func() { _ = os.RemoveAll(c.Dir) } // ours alone, and in a temporary place
	}
	a.state, err = spool.Open(c.Dir, spool.Options{MaxBytes: int64(c.QueueMaxBytes)}, a.log)
	if err != nil {
		return nil, exitf(exitRuntime, "%v", err)
	}
	return func() {
		if err := a.state.Close(); err != nil {
			a.log.Error().Err(err).Msg("state directory was not closed well")
		}
		remove()
	}, nil
}

// newSources makes what reads the inputs. ready is closed when it has begun.
func (a *app) newSources() (sources []rwdaemon.Runner, ready <-chan struct{}, err error) {
	cfg := a.cfg
	open := a.ledger.Open(a.newOpener())
	opt := source.Options{Own: ownFiles(a.std), K8s: podOf(cfg.Kubernetes)}
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
		if a.files, err = source.NewFiles(opt, open, a.ledger, a.log); err != nil {
			return nil, nil, err
		}
		sources, ready = append(sources, a.files), a.files.Ready()
	}
	if stdin {
		sources = append(sources, source.NewStdin(a.std.in, open, a.ledger))
	}
	return sources, ready, nil
}

// newOpener makes the path from bytes to events of one stream.
func (a *app) newOpener() func(source.StreamInfo, func(*annotate.Event) error) source.Consumer {
	cfg := a.cfg
	opt := pipeline.Options{FlushAfter: cfg.Multiline.FlushAfter, MaxRecord: int(cfg.Multiline.MaxBytes), Mask: annotate.NewMasker(redactions(cfg.Output)...)}
	matcher := func() *match.Matcher { return a.current.Load().matcher }
	least := slices.Index(logLevels, cfg.Match.MinLevel)
	return func(info source.StreamInfo, emit func(*annotate.Event) error) source.Consumer {
		seen := func(ev *annotate.Event) error {
			if level := slices.Index(logLevels, strings.ToLower(ev.RW.Level)); level >= 0 && level < least {
				return nil
			}
			if a.server != nil {
				a.server.Observe(ev)
			}
			return emit(ev)
		}
		stream := pipeline.New(pipeline.Info{Input: info.Input, Path: info.Path, K8s: info.K8s, Offset: info.Offset, Line: info.Line}, matcher, seen, opt)
		tallies := []*totalled{&a.tally}
		if info.Input == "stdin" {
			tallies = append(tallies, &a.piped)
		}
		return &counted{Stream: stream, tallies: tallies}
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
	} else {
		w = visible{w}
	}
	level, err := zerolog.ParseLevel(c.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger()
}
