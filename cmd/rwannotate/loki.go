package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/config"
	rwdaemon "github.com/rwannotate/rwannotate/internal/daemon"
	"github.com/rwannotate/rwannotate/internal/episode"
	"github.com/rwannotate/rwannotate/internal/sink/loki"
	"github.com/rwannotate/rwannotate/internal/spool"
	"github.com/rwannotate/rwannotate/internal/web"
)

// delivery is all that sends events to Loki: storms are folded into few
// events, which wait in the spool, one queue an endpoint, until each is taken.
type delivery struct {
	folder  *episode.Folder
	spool   *spool.Spool
	clients []*loki.Client
	stdin   bool // an input cannot be read again: at the cap the oldest entries give way
	log     zerolog.Logger
	folded  atomic.Int64 // occurrences without an event of their own
	kinds   [3]atomic.Int64
}

// newDelivery builds the endpoints' clients, and restores the episodes that the
// last run left open. server may be nil.
func newDelivery(cfg config.Config, state *spool.Spool, server *web.Server, current func() *knowledge, log zerolog.Logger) (*delivery, error) {
	d := &delivery{spool: state, log: log, folder: episode.New(episode.Options{
		All: cfg.Loki.Repeat == "all", Rate: unlessZero(cfg.Loki.Rate.EventsPerSecond), Burst: cfg.Loki.Rate.Burst})}
	for _, in := range cfg.Inputs {
		d.stdin = d.stdin || in.Stdin
	}
	for _, e := range cfg.Loki.Endpoints {
		opt := lokiOptions(cfg, e)
		if server != nil {
			opt.Observe = server.Requests(e.Name)
		}
		client, err := loki.New(opt, queue{state, e.Name}, func(data []byte) (loki.Entry, error) {
			return renderer(cfg.Loki, current()).Render(data)
		}, log)
		if err != nil {
			return nil, exitf(exitConfig, "%v", err)
		}
		d.clients = append(d.clients, client)
	}
	state.Episodes(func(key string, saved []byte) {
		if err := d.folder.Restore(key, saved, time.Now()); err != nil {
			log.Warn().Err(err).Msg("an open episode of the last run is forgotten: its count starts anew")
		}
	})
	return d, nil
}

// renderer turns queue entries into what is sent, with the catalogue as it is
// now.
func renderer(c config.Loki, k *knowledge) *loki.Renderer {
	return &loki.Renderer{
		Encode: k.encoder.Append,
		Describe: func(id string) (slug, severity string) {
			if r, ok := k.matcher.Lookup(id); ok {
				return r.Slug, r.Severity
			}
			return "", ""
		},
		Labels: c.Labels, PodLabel: c.PodLabel, Catalog: k.digest,
	}
}

// unlessZero turns the configuration's 0 for "no limit" into the options' -1.
func unlessZero[T time.Duration | float64](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

func lokiOptions(cfg config.Config, e config.Endpoint) loki.Options {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := loki.Options{
		Name: e.Name, URL: e.URL, Tenant: e.TenantID,
		Username: e.BasicAuth.Username, PasswordFile: e.BasicAuth.PasswordFile, BearerTokenFile: e.BearerTokenFile, Headers: e.Headers,
		ProxyURL: e.ProxyURL,
		TLS: loki.TLS{CAFile: e.TLS.CAFile, CertFile: e.TLS.CertFile, KeyFile: e.TLS.KeyFile, ServerName: e.TLS.ServerName,
			InsecureSkipVerify: e.TLS.InsecureSkipVerify},
		MinBackoff: e.Backoff.Min, MaxBackoff: e.Backoff.Max,
		Timeout: e.Timeout, Linger: e.Batch.Linger, BatchBytes: int(e.Batch.MaxBytes), MaxAge: unlessZero(e.DropOlderThan),
		Drain:     cfg.ShutdownTimeout / 2,
		Heartbeat: unlessZero(cfg.Loki.Heartbeat), HeartbeatLabels: cfg.Loki.Labels, Instance: host, Version: version,
	}
	if cfg.State.Dir != "" {
		o.DeadLetter = filepath.Join(cfg.State.Dir, "dead-letter-"+e.Name+".ndjson")
	}
	return o
}

// queue is an endpoint's part of the spool.
type queue struct {
	spool *spool.Spool
	name  string
}

func (q queue) Read(after uint64, maxEntries, maxBytes int) ([]loki.QueueEntry, error) {
	entries, err := q.spool.Read(q.name, after, maxEntries, maxBytes)
	out := make([]loki.QueueEntry, len(entries))
	for i, e := range entries {
		out[i] = loki.QueueEntry(e)
	}
	return out, err
}

func (q queue) Ack(seqs []uint64) error          { return q.spool.Ack(q.name, seqs) }
func (q queue) Size() (entries int, bytes int64) { return q.spool.Size(q.name) }

// Fold implements daemon.Delivery: what is to be sent, and the state of the
// folding, are committed with the positions behind them.
func (d *delivery) Fold(events []annotate.Event, now time.Time, last bool, b *spool.Batch) {
	for _, ev := range events {
		d.enqueue(d.folder.Add(ev, now), b)
	}
	d.folded.Add(int64(len(events)))
	d.enqueue(d.folder.Tick(now), b)
	if last {
		d.enqueue(d.folder.Flush(now), b)
	}
	d.folder.Changed(func(key string, state []byte) {
		if b.Episodes == nil {
			b.Episodes = map[string][]byte{}
		}
		b.Episodes[key] = state
	})
}

func (d *delivery) enqueue(events []annotate.Event, b *spool.Batch) {
	for i := range events {
		data, err := json.Marshal(&events[i])
		if err != nil { // only a year beyond 9999 can do this, and no record has one
			d.log.Error().Err(err).Msg("an event cannot be stored")
			continue
		}
		if b.Events == nil {
			b.Events = map[string][][]byte{}
		}
		for _, c := range d.clients {
			b.Events[c.Name()] = append(b.Events[c.Name()], data)
		}
		d.folded.Add(-1)
		if i := slices.Index(kinds, events[i].Kind); i >= 0 {
			d.kinds[i].Add(1)
		}
	}
}

// kinds of events, in the order of delivery.kinds.
var kinds = []string{annotate.KindMatch, annotate.KindFirst, annotate.KindRepeat}

// rows is the state of each endpoint, for the pages and metrics.
func (d *delivery) rows(cfg config.Config) []web.Sink {
	var rows []web.Sink
	for i, c := range d.clients {
		s := c.Stats()
		row := web.Sink{Name: c.Name(), URL: config.MaskURL(cfg.Loki.Endpoints[i].URL), Emitted: map[string]int64{}, Dropped: map[string]int64{}, Adjusted: map[string]int64{},
			SentEntries: int64(s.SentEntries), SentBytes: int64(s.SentBytes), Retries: int64(s.Retries),
			QueueEntries: int64(s.QueueEntries), QueueBytes: s.QueueBytes, QueueMaxBytes: int64(cfg.State.QueueMaxBytes),
			Oldest: s.OldestTime, LastSuccess: s.LastSuccess}
		if s.Failing {
			row.FailingSince, row.LastError = s.FailingSince, s.LastError
		}
		for k, kind := range kinds {
			row.Emitted[kind] = d.kinds[k].Load()
		}
		for reason, n := range s.Dropped {
			row.Dropped[string(reason)] = int64(n)
		}
		for how, n := range s.Adjusted {
			row.Adjusted[how] = int64(n)
		}
		rows = append(rows, row)
	}
	return rows
}

// full reports whether inputs have to wait. Where one cannot, the oldest
// entries are given up instead.
func (d *delivery) full() bool {
	full := false
	for _, c := range d.clients {
		for d.spool.Full(c.Name()) {
			if !d.stdin {
				full = true
				break
			}
			dropped, err := d.spool.DropOldest(c.Name(), dropAtOnce)
			if err != nil || len(dropped) == 0 {
				break
			}
			c.Discard(loki.QueueFull, dropped)
		}
	}
	return full
}

// dropAtOnce is how many entries give way to new ones in one step.
const dropAtOnce = 1000

func (d *delivery) wake() {
	for _, c := range d.clients {
		c.Wake()
	}
}

func (d *delivery) sinks() []rwdaemon.Runner {
	var out []rwdaemon.Runner
	for _, c := range d.clients {
		out = append(out, c)
	}
	return out
}
