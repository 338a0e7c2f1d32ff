package web

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry has everything that is exposed under /metrics. Most of it is
// asked for when somebody scrapes, so that no number is kept twice.
func newRegistry(s *Server) (*prometheus.Registry, *prometheus.HistogramVec) {
	requests := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "rwannotate_sink_request_duration_seconds",
		Help:    "Requests to a sink until their answer, by class of its status; none: there was no answer.",
		Buckets: []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"sink", "code"})
	r := prometheus.NewRegistry()
	r.MustRegister(requests, &collector{s, newDescs()},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r, requests
}

// metric is one family of ours.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// descs are all families, by their name without the prefix.
type descs map[string]metric

func (d descs) family(kind prometheus.ValueType, name, help string, labels ...string) {
	d[name] = metric{prometheus.NewDesc("rwannotate_"+name, help, labels, nil), kind}
}

func newDescs() descs {
	d := descs{}
	counter := func(name, help string, labels ...string) { d.family(prometheus.CounterValue, name, help, labels...) }
	gauge := func(name, help string, labels ...string) { d.family(prometheus.GaugeValue, name, help, labels...) }

	gauge("build_info", "What is running; always 1.", "version", "revision", "goversion")
	gauge("healthy", "1 if the pipeline moves.")
	gauge("catalog_info", "The catalogue in force; always 1.", "version", "digest")
	gauge("catalog_records", "Records of the catalogue: matched, disabled by configuration, or refused as faulty.", "state")
	gauge("catalog_last_reload_successful", "1 if the last attempt to load configuration and catalogue succeeded.")
	gauge("catalog_last_reload_success_timestamp_seconds", "When the catalogue in force was loaded.")

	counter("source_read_bytes_total", "Bytes read from files and pipes.")
	counter("source_lines_total", "Lines read.")
	counter("source_opened_total", "Files opened.")
	counter("source_rotations_total", "Files that gave way to a successor.")
	counter("source_truncations_total", "Files that were truncated or rewritten.")
	counter("source_lost_bytes_total", "Bytes that were gone before they could be read.")
	counter("source_errors_total", "Failures to open or read a file.")
	gauge("source_files", "Open files, pipes included; finishing: rotated away or deleted, still being read.", "state")
	gauge("source_lag_bytes", "Bytes that are there and not yet read.", "component")
	gauge("source_last_line_timestamp_seconds", "When something was last read.", "component")

	counter("parse_failures_total", "Input that could be used in part only: damaged journal entries, journal entries without their text, records that were too long.", "reason")
	counter("prefilter_hits_total", "Log records that may hold a known error.")
	counter("regex_rejects_total", "Log records that might have held a known error and did not.")
	counter("matches_total", "Occurrences of known errors, by slug; the 201st and all further slugs count as _other.", "component", "severity", "error")
	gauge("match_last_seen_timestamp_seconds", "Time of the newest occurrence, by the log's own clock.", "component", "severity", "error")

	counter("events_suppressed_total", "Occurrences that made no event of their own: echoes in spans, those folded into a later event, and collapsed events that had to wait.", "reason")
	counter("events_emitted_total", "Events given to a sink.", "sink", "kind")
	counter("sink_sent_entries_total", "Events that a sink has acknowledged.", "sink")
	counter("sink_sent_bytes_total", "Bytes that a sink has acknowledged, before compression.", "sink")
	counter("sink_dropped_entries_total", "Events that were given up.", "sink", "reason")
	counter("sink_adjusted_entries_total", "Events that could only be sent changed.", "sink", "how")
	counter("sink_retries_total", "Requests that had to be repeated.", "sink")
	gauge("sink_queue_entries", "Events waiting for a sink.", "sink")
	gauge("sink_queue_bytes", "Bytes waiting for a sink.", "sink")
	gauge("sink_queue_max_bytes", "Room in the queue of a sink.", "sink")
	gauge("sink_queue_oldest_timestamp_seconds", "Time of the oldest event that waits; 0: none does.", "sink")
	gauge("sink_last_success_timestamp_seconds", "When a sink last took something; 0: not yet.", "sink")
	gauge("sink_failing", "1 if the sink as a whole does not take anything.", "sink")
	return d
}

// collector makes samples of what the Server's sources say.
type collector struct {
	s     *Server
	descs descs
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.descs {
		ch <- m.desc
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	o := samples{c.descs, ch}
	o.program(c.s)
	o.catalog(c.s)
	o.totals(call(c.s.opt.Totals))
	o.sources(call(c.s.opt.Sources))
	o.matches(c.s.seen)
	for _, sink := range call(c.s.opt.Sinks) {
		o.sink(sink)
	}
}

// call asks f, which may be nil.
func call[T any](f func() T) (v T) {
	if f != nil {
		return f()
	}
	return v
}

type samples struct {
	descs descs
	ch    chan<- prometheus.Metric
}

func (o samples) put(name string, v float64, labels ...string) {
	m := o.descs[name]
	o.ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, printable(labels)...)
}

// printable keeps a label value from failing the whole scrape: Prometheus
// takes valid UTF-8 only.
func printable(labels []string) []string {
	for i := range labels {
		labels[i] = clean(labels[i], maxName)
	}
	return labels
}

func (o samples) program(s *Server) {
	o.put("build_info", 1, s.opt.Version, s.opt.Revision, runtime.Version())
	o.put("healthy", flag(s.alive() == nil))
}

func (o samples) catalog(s *Server) {
	x := s.catalog.Load()
	last := s.lastReload()
	o.put("catalog_info", 1, x.Version, x.Digest)
	o.put("catalog_records", float64(len(x.Records)), "active")
	o.put("catalog_records", float64(len(x.Disabled)), "disabled")
	o.put("catalog_records", float64(len(x.Refused)), "invalid")
	o.put("catalog_last_reload_successful", flag(last.err == nil && !last.at.IsZero()))
	o.put("catalog_last_reload_success_timestamp_seconds", stamp(x.At))
}

func (o samples) totals(t Totals) {
	for name, n := range map[string]int64{
		"source_read_bytes_total": t.Bytes, "source_lines_total": t.Lines, "source_opened_total": t.Opened,
		"source_rotations_total": t.Rotations, "source_truncations_total": t.Truncations,
		"source_lost_bytes_total": t.LostBytes, "source_errors_total": t.SourceErrors,
		"prefilter_hits_total": t.Candidates, "regex_rejects_total": t.Rejected,
	} {
		o.put(name, float64(n))
	}
	o.labelled("parse_failures_total", map[string]int64{"malformed": t.Malformed, "null": t.Nulls, "truncated": t.Truncated})
	o.labelled("events_suppressed_total", map[string]int64{"echo": t.Echoes, "window": t.Folded, "rate_limit": t.RateLimited})
}

// labelled puts one sample for each key, which is the last label.
func (o samples) labelled(name string, values map[string]int64, labels ...string) {
	for key, n := range values {
		o.put(name, float64(n), append(slices.Clone(labels), key)...)
	}
}

func (o samples) sources(list []Source) {
	files := map[string]int64{"following": 0, "finishing": 0}
	lag, last := map[string]float64{}, map[string]time.Time{}
	for _, s := range list {
		if s.Retired {
			files["finishing"]++
		} else {
			files["following"]++
		}
		c := s.component()
		lag[c] += float64(s.Lag())
		if s.LastRead.After(last[c]) {
			last[c] = s.LastRead
		}
	}
	o.labelled("source_files", files)
	for c, n := range lag {
		o.put("source_lag_bytes", n, c)
		o.put("source_last_line_timestamp_seconds", stamp(last[c]), c)
	}
}

func (o samples) matches(s *seen) {
	tallies, _ := s.snapshot()
	total, last := o.descs["matches_total"].desc, "match_last_seen_timestamp_seconds"
	for key, t := range tallies {
		labels := printable([]string{key.component, key.severity, key.name})
		if t.created.IsZero() {
			o.put("matches_total", 0, labels...)
			continue
		}
		// The time of creation lets a server that reads it see the step from
		// 0 to 1, which is the one that matters.
		o.ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(total, prometheus.CounterValue, float64(t.count), t.created, labels...)
		o.put(last, stamp(t.last), labels...)
	}
}

// kinds of events, each with a counter from the start.
var kinds = map[string]int64{"match": 0, "first": 0, "repeat": 0}

func (o samples) sink(s Sink) {
	emitted := maps.Clone(kinds)
	maps.Copy(emitted, s.Emitted)
	o.labelled("events_emitted_total", emitted, s.Name)
	o.labelled("sink_dropped_entries_total", s.Dropped, s.Name)
	o.labelled("sink_adjusted_entries_total", s.Adjusted, s.Name)
	for name, v := range map[string]float64{
		"sink_sent_entries_total": float64(s.SentEntries), "sink_sent_bytes_total": float64(s.SentBytes), "sink_retries_total": float64(s.Retries),
		"sink_queue_entries": float64(s.QueueEntries), "sink_queue_bytes": float64(s.QueueBytes), "sink_queue_max_bytes": float64(s.QueueMaxBytes),
		"sink_queue_oldest_timestamp_seconds": stamp(s.Oldest), "sink_last_success_timestamp_seconds": stamp(s.LastSuccess),
		"sink_failing": flag(!s.FailingSince.IsZero()),
	} {
		o.put(name, v, s.Name)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// stamp is t in seconds; 0 for no time.
func stamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// MetricNames lists the families of this package as they are scraped, sorted,
// so that dashboards and alerts can be checked.
func MetricNames() []string {
	names := []string{"rwannotate_sink_request_duration_seconds"}
	for name := range newDescs() {
		names = append(names, "rwannotate_"+name)
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}
