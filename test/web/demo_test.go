// Package web tests the pages in a real browser, and takes their pictures.
package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/web"
	"github.com/rwannotate/rwannotate/patterns"
)

// now is the time of the demonstration; pictures must not change by themselves.
var now = time.Date(2026, 11, 30, 3, 12, 40, 0, time.UTC)

// hostile is a log line of somebody who wishes the reader ill.
const hostile = "\x1b]8;;http://evil.example/\x07click\x1b]8;;\x07</script><script>document.title='owned'</script>" +
	`<img src="http://evil.example/x.png" onerror="document.title='owned'"><style>body{display:none}</style> ` + "\u202eevil\u2066 \"'><b id=owned>"

// demo is a night in which Loki is down, one error storms, and some are old.
// state is the argument of one of the errors.
func demo(t *testing.T, state string) *web.Server {
	t.Helper()
	records, problems := catalog.Load(patterns.FS())
	if catalog.HasErrors(problems) {
		t.Fatal(problems)
	}
	clock := now.Add(-31 * time.Hour)
	s := web.New(web.Options{
		Page: true, ShowLines: true, Version: "0.1.0", Revision: "0123456789", Now: func() time.Time { return clock },
		Totals: func() web.Totals {
			return web.Totals{Bytes: 3_412_887_040, Lines: 11_203_377, Candidates: 5120, Rejected: 1873, Events: 3247, Opened: 6, Rotations: 2}
		},
		Sources: sources, Sinks: sinks, Config: config,
	})
	s.SetCatalog(web.Catalog{Records: records, Version: catalog.Version(records), Digest: catalog.Digest(records), At: now.Add(-7 * time.Hour),
		Refused:  []catalog.Problem{{File: "/etc/rwannotate/patterns/own.yaml", Line: 4, Column: 1, Field: "serverity", Message: "unknown key; did you mean severity?"}},
		Disabled: []web.Disabled{{Record: catalog.Record{ID: "00000000000000aa", Slug: "a-text-we-know", ErrorMessage: "a text we know", Severity: "info"}, Why: "named in catalog.disable"}}})
	clock = now
	for _, st := range append(storms(), storm{"unexpected-backfill-state", "compute", 1, 1, 9 * time.Minute, 0, []string{state}}) {
		for i := range st.times {
			s.Observe(st.event(t, records, i))
		}
	}
	return s
}

// storm is one error that occurs several times, on as many pods in turn.
type storm struct {
	slug, component string
	pods, times     int
	since, every    time.Duration
	args            []string
}

func storms() []storm {
	return []storm{
		{"should-not-update-vnode-bitmap-during-consuming-lo", "compute", 1, 2, 26 * time.Hour, time.Hour, nil},
		{"snapshot-backfill-epoch-set-again", "meta", 1, 3, 44 * time.Minute, 11 * time.Minute, []string{"1001", "8321498123468800", "8321498189004800"}},
		{"mismatch-initial-vnode-bitmap-expect", "compute", 3, 214, 17 * time.Minute, 4 * time.Second, []string{"Bitmap { num_bits: 256, count_ones: 64 }", "Bitmap { num_bits: 256, count_ones: 32 }"}},
		{"failed-to-acquire-connection-from-pool", "meta", 1, 6, 14 * time.Minute, 2 * time.Minute, []string{"pool timed out while waiting for an open connection"}},
	}
}

func (s storm) event(t *testing.T, records []catalog.Record, i int) *annotate.Event {
	for _, r := range records {
		if r.Slug != s.slug {
			continue
		}
		at := now.Add(-s.since).Add(time.Duration(i) * s.every)
		pod := fmt.Sprintf("risingwave-%s-%d", s.component, i%s.pods)
		message := catalog.Instantiate(r.ErrorMessage, append(s.args, "x", "x", "x"))
		return &annotate.Event{Level: "error", Time: at, Message: message, Kind: annotate.KindMatch,
			RW:    annotate.RW{Component: s.component, ActorID: fmt.Sprint(24817 + i), Level: "ERROR", Event: "actor exit with error", Chain: []string{"Executor error: {0}"}},
			Error: annotate.Error{ID: r.ID, Template: r.ErrorMessage, Args: s.args, Confidence: "high", Via: "field"},
			Seen:  annotate.Seen{New: 1, Count: 1, First: at, Last: at},
			K8s:   annotate.K8s{Namespace: "risingwave", Pod: pod, Container: s.component, Node: "ip-10-0-3-17"},
			Origin: annotate.Origin{Input: "file", Path: "/var/log/pods/risingwave_" + pod + "_1c2d/" + s.component + "/0.log", LineNumber: int64(18273 + i),
				Line: at.Format(time.RFC3339Nano) + " ERROR risingwave_stream::task::actor_manager: actor exit with error error=Executor error: " + message}}
	}
	t.Fatalf("the catalogue has no %s", s.slug)
	return nil
}

func sources() []web.Source {
	var out []web.Source
	for i, c := range []string{"meta", "compute", "compute", "compute", "frontend"} {
		pod := fmt.Sprintf("risingwave-%s-%d", c, max(0, i-1)%3)
		out = append(out, web.Source{Input: "file", Path: "/var/log/pods/risingwave_" + pod + "_1c2d/" + c + "/0.log", Namespace: "risingwave", Pod: pod, Container: c,
			Offset: 682_577_408 + int64(i)*31_337, Size: 682_577_408 + int64(i)*31_337, LastRead: now.Add(-time.Duration(i) * time.Second)})
	}
	out[2].Retired, out[2].Size = true, out[2].Size+81_920
	out[4].LastError = "open: permission denied"
	return out
}

func sinks() []web.Sink {
	return []web.Sink{
		{Name: "stdout", Emitted: map[string]int64{"match": 3247}, SentEntries: 3247},
		{Name: "loki", URL: "http://loki.monitoring:3100/loki/api/v1/push", Emitted: map[string]int64{"first": 12, "repeat": 31}, SentEntries: 29, Retries: 41, QueueEntries: 14,
			QueueBytes: 43_008, QueueMaxBytes: 256 << 20, FailingSince: now.Add(-21 * time.Minute), LastSuccess: now.Add(-21 * time.Minute), LastError: "dial tcp: lookup loki.monitoring: no such host"},
	}
}

func config() []web.ConfigLine {
	var out []web.ConfigLine
	for _, l := range strings.Split(`inputs:
  - files:
    - /var/log/pods/*_*_*/{meta,compute,frontend}/*.log|file /etc/rwannotate/config.yaml:3
loki:
  endpoints:
    - name: loki|default
      url: http://***@loki.monitoring:3100|variable LOKI_URL
web:
  listen: :12399|flag --web-listen
  page: true|default`, "\n") {
		text, origin, _ := strings.Cut(l, "|")
		out = append(out, web.ConfigLine{Text: text, Origin: origin})
	}
	return out
}
