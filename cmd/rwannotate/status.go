package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/config"
	rwdaemon "github.com/rwannotate/rwannotate/internal/daemon"
	"github.com/rwannotate/rwannotate/internal/pipeline"
	"github.com/rwannotate/rwannotate/internal/web"
)

// totalled adds up what all streams have seen, open and closed ones.
type totalled struct {
	mu   sync.Mutex
	sum  pipeline.Stats
	read time.Time // when bytes came last
}

func (t *totalled) add(s pipeline.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum = t.sum.Plus(s)
	if s.Bytes > 0 {
		t.read = time.Now()
	}
}

func (t *totalled) total() (sum pipeline.Stats, read time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sum, t.read
}

// counted is a stream that keeps a tally.
type counted struct {
	*pipeline.Stream
	tallies []*totalled
	last    pipeline.Stats
}

func (c *counted) ReadOnce(r io.Reader) (int, error) {
	defer c.note()
	return c.Stream.ReadOnce(r)
}

func (c *counted) Idle(now time.Time) {
	defer c.note()
	c.Stream.Idle(now)
}

func (c *counted) End(partial bool) error {
	defer c.note()
	return c.Stream.End(partial)
}

func (c *counted) note() {
	if now := c.Stats(); now != c.last {
		for _, t := range c.tallies {
			t.add(now.Minus(c.last))
		}
		c.last = now
	}
}

// newServer makes the listener for health, metrics and pages.
func (a *app) newServer() rwdaemon.Runner {
	w := a.cfg.Web
	build := newBuildInfo(nil)
	opt := web.Options{
		Listen: w.Listen, Page: w.Page, ShowLines: w.ShowLines, Pprof: w.Pprof, Version: build.Version, Revision: build.Commit,
		Alive: a.alive, Totals: a.totals, Sources: a.sourceRows, Sinks: a.sinkRows, Config: a.configLines, Notices: a.notices, Log: a.log,
	}
	if w.EnableReload {
		opt.Reload = a.reload
	}
	a.server = web.New(opt)
	a.showCatalog(a.current.Load())
	return optional{a.server, a.log}
}

// optional is a part without which the daemon does its work all the same.
type optional struct {
	part rwdaemon.Runner
	log  zerolog.Logger
}

func (o optional) Run(ctx context.Context) error {
	if err := o.part.Run(ctx); err != nil {
		o.log.Warn().Err(err).Msg("going on without it")
	}
	return nil
}

// showCatalog tells the pages which catalogue is in force.
func (a *app) showCatalog(k *knowledge) {
	if a.server == nil {
		return
	}
	c := web.Catalog{Records: k.records, Version: k.version, Digest: k.digest}
	for _, p := range k.problems {
		if p.Warning {
			c.Warnings = append(c.Warnings, p)
		} else {
			c.Refused = append(c.Refused, p)
		}
	}
	for _, r := range k.disabled {
		c.Disabled = append(c.Disabled, web.Disabled{Record: r, Why: "catalog.disable"})
	}
	a.server.SetCatalog(c)
}

// alive says which streams have not moved for half a minute, unless they wait
// for somebody outside.
func (a *app) alive() error {
	if a.files == nil || a.ledger.Blocked() {
		return nil
	}
	if stalled := a.files.Stalled(30 * time.Second); len(stalled) > 0 {
		return fmt.Errorf("not moving: %s", strings.Join(stalled, ", "))
	}
	return nil
}

func (a *app) totals() web.Totals {
	s, _ := a.tally.total()
	t := web.Totals{Bytes: s.Bytes, Lines: s.Lines, Candidates: s.Candidates, Rejected: s.Rejected, Events: s.Events,
		Echoes: s.Echoes, Malformed: s.Malformed, Nulls: s.Nulls, Truncated: s.Truncated}
	if a.delivery != nil {
		t.Folded = a.delivery.folded.Load()
	}
	if a.files != nil {
		f := a.files.Totals()
		t.Opened, t.Rotations, t.Truncations, t.LostBytes, t.SourceErrors = f.Opened, f.Rotations, f.Truncations, f.LostBytes, f.Errors
	}
	return t
}

func (a *app) sourceRows() []web.Source {
	var rows []web.Source
	if slices.ContainsFunc(a.cfg.Inputs, func(in config.Input) bool { return in.Stdin }) {
		s, read := a.piped.total()
		rows = append(rows, web.Source{Input: "stdin", Path: "standard input", Offset: s.Bytes, LastRead: read})
	}
	if a.files == nil {
		return rows
	}
	for _, s := range a.files.Stats() {
		row := web.SourceOf("file", s.Path, s.K8s)
		row.Offset, row.Size, row.Retired, row.Truncated, row.LostBytes, row.LastRead, row.LastError = s.Offset, s.Size, s.Retired, s.Truncated, s.Lost, s.LastRead, s.LastError
		rows = append(rows, row)
	}
	return rows
}

func (a *app) sinkRows() []web.Sink {
	var rows []web.Sink
	if a.cfg.Output.Stdout {
		s, _ := a.tally.total()
		rows = append(rows, web.Sink{Name: "stdout", Emitted: map[string]int64{"match": s.Events}, SentEntries: s.Events})
	}
	if a.delivery != nil {
		rows = append(rows, a.delivery.rows(a.cfg)...)
	}
	return rows
}

func (a *app) configLines() []web.ConfigLine {
	cfg, origins := a.cfg, maps.Clone(a.given.origins)
	k := a.current.Load()
	cfg.Catalog = k.cfg.Catalog
	maps.DeleteFunc(origins, func(key string, _ config.Origin) bool { return ofCatalog(key) })
	for key, o := range k.origins {
		if ofCatalog(key) {
			origins[key] = o
		}
	}
	var lines []web.ConfigLine
	for _, l := range config.Show(cfg, origins) {
		lines = append(lines, web.ConfigLine{Text: l.Text, Origin: l.Origin})
	}
	return lines
}

func (a *app) notices() []string {
	var said []string
	if a.cfg.State.Dir == "" {
		said = append(said, "No state directory is configured (--state): after a restart the files are read from their beginning.")
	}
	for _, p := range a.current.Load().unknown {
		said = append(said, p.Key+": "+p.Message+".")
	}
	if keys := a.waiting(); len(keys) > 0 {
		said = append(said, "Changed in the configuration, and in effect only after a restart: "+strings.Join(keys, ", ")+".")
	}
	return said
}

// errReloadBusy says that a reload was asked for while signals are not heard.
var errReloadBusy = errors.New("a reload is under way")

// askReload asks the daemon's loop for a reload, as SIGHUP does.
func (a *app) askReload() error {
	select {
	case a.signals <- hangup:
		return nil
	default:
		return errReloadBusy
	}
}
