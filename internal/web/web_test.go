package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// hostile is what an attacker who can write into a log might try.
var hostile = "\x1b[31mred\x1b]8;;http://evil.example/\x07link\x1b]8;;\x07 </script><script>alert(1)</script> <img src=x onerror=alert(1)> \u202egnp.exe\u2066 \u200b\x00\x9b31m \"'` {{.}} javascript:alert(1) a\xff \U000e0041" + strings.Repeat("x", 5000)

func records() []catalog.Record {
	return []catalog.Record{
		{ID: "aaaaaaaaaaaaaaa1", Slug: "channel-closed", ErrorMessage: "channel closed: {}", MessagePattern: "channel closed: (.+?)", Severity: "critical", Role: catalog.RoleSymptom,
			Documentation: "An actor went away. See `RECOVER;`.\n\nSecond paragraph.", Solutions: []string{"Run `RECOVER;` and wait.", "Look for the first error."}, PreventionTips: []string{"Keep calm."},
			TriggerScenarios: "A node dies.", GithubURL: "https://github.com/risingwavelabs/risingwave/blob/x/a.rs#L1", FilePath: "src/a.rs", LineNumber: 1,
			References: []string{"javascript:alert(1)", "https://github.com/risingwavelabs/risingwave/issues/1"}, AnalyzedSha: "0123456789abcdef", AnalyzedAt: "2026-11-01T00:00:00Z", Tags: []string{"streaming"}, Component: "stream"},
		{ID: "aaaaaaaaaaaaaaa2", Slug: "dirty-row", ErrorMessage: "dirty row <b>{}</b>", Severity: "warning", Role: catalog.RoleRoot, Documentation: "A row was skipped.", Component: "connector"},
		{ID: "aaaaaaaaaaaaaaa3", Slug: "executor-error", ErrorMessage: "Executor error: {}", Severity: "error", Role: catalog.RoleWrapper, Component: "stream"},
	}
}

func event(id, component, pod, message string, at time.Time) *annotate.Event {
	return &annotate.Event{Level: "error", Time: at, Message: message, Kind: annotate.KindMatch,
		RW: annotate.RW{Component: component, ActorID: "7", Chain: []string{"Executor error: {0}"}}, Error: annotate.Error{ID: id, Template: "t", Args: []string{message}},
		Seen: annotate.Seen{New: 1, Count: 1, First: at, Last: at}, K8s: annotate.K8s{Namespace: "rw", Pod: pod, Container: component},
		Origin: annotate.Origin{Input: "file", Path: "/var/log/" + pod + ".log", LineNumber: 3, Line: "RAW " + message}}
}

// rig is a Server and what it is fed with.
type rig struct {
	*Server
	t       *testing.T
	now     time.Time
	totals  Totals
	sources []Source
	sinks   []Sink
	notices []string
	dead    error
}

func newRig(t *testing.T, change func(*Options)) *rig {
	r := &rig{t: t, now: noon, sources: []Source{{Input: "file", Path: "/var/log/compute/0.log", Container: "compute", Offset: 90, Size: 100, LastRead: noon}}}
	o := Options{Page: true, Version: "1.2.3", Revision: "abc", Now: func() time.Time { return r.now }, Alive: func() error { return r.dead },
		Totals: func() Totals { return r.totals }, Sources: func() []Source { return r.sources }, Sinks: func() []Sink { return r.sinks },
		Config:  func() []ConfigLine { return []ConfigLine{{"web:", ""}, {"  listen: 127.0.0.1:12399", "default"}} },
		Notices: func() []string { return r.notices }, Log: zerolog.Nop()}
	if change != nil {
		change(&o)
	}
	r.Server = New(o)
	r.SetCatalog(Catalog{Records: records(), Version: "2026", Digest: "sha256:1"})
	return r
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func (r *rig) do(method, target string, header ...string) *http.Response {
	r.t.Helper()
	req := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, req)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (r *rig) text(target string) string { return body(r.t, r.do("GET", target, "Accept", "*/*")) }
func (r *rig) html(target string) string { return body(r.t, r.do("GET", target, "Accept", browser)) }

func (r *rig) json(target string, to any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(body(r.t, r.do("GET", target))), to); err != nil {
		r.t.Fatalf("%s: %v", target, err)
	}
}

var allPages = []string{"/", "/errors", "/errors/channel-closed", "/errors/aaaaaaaaaaaaaaa2", "/errors/_other", "/sources", "/catalog", "/config", "/errors?q=x&severity=critical"}

func TestContentNegotiation(t *testing.T) {
	r := newRig(t, nil)
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "channel closed: x", noon))
	for _, tt := range []struct{ accept, want string }{
		{browser, "text/html; charset=utf-8"}, {"TEXT/HTML", "text/html; charset=utf-8"}, {"text/html;level=1", "text/html; charset=utf-8"},
		{"*/*", "text/plain; charset=utf-8"}, {"", "text/plain; charset=utf-8"}, {"text/html;q=0, */*", "text/plain; charset=utf-8"},
		{"text/*", "text/plain; charset=utf-8"}, {"application/json", "application/json"}, {"text/plain, application/json;q=0", "text/plain; charset=utf-8"},
	} {
		for _, page := range allPages {
			res := r.do("GET", page, "Accept", tt.accept)
			if got := res.Header.Get("Content-Type"); got != tt.want || res.StatusCode != 200 || res.Header.Get("Vary") != "Accept" {
				t.Errorf("GET %s, Accept %q: %d %q, want %q", page, tt.accept, res.StatusCode, got, tt.want)
			}
		}
	}
	for _, page := range []string{"status", "errors", "errors/channel-closed", "sources", "catalog", "catalog/dirty-row", "config"} {
		var v map[string]any
		if r.json("/api/v1/"+page, &v); len(v) == 0 {
			t.Errorf("/api/v1/%s is empty", page)
		}
	}
}

// TestHeaders holds for every answer, errors too.
func TestHeaders(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Pprof = true })
	for _, page := range slices.Concat(allPages, []string{"/nowhere", "/errors/nothing", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/style.css", "/debug/pprof/", "/api/v1/errors"}) {
		h := r.do("GET", page, "Accept", browser).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", page, name, got)
			}
		}
	}
}

func TestMethods(t *testing.T) {
	r := newRig(t, nil)
	for _, page := range slices.Concat(allPages, []string{"/nowhere", "/metrics", "/-/healthy", "/api/v1/errors"}) {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			if res := r.do(method, page); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, page, res.StatusCode, res.Header.Get("Allow"))
			}
		}
		if page == "/nowhere" {
			continue
		}
		head, get := r.do("HEAD", page), r.do("GET", page)
		if n := len(body(t, head)); head.StatusCode != 200 || n != 0 && page != "/metrics" && page != "/-/healthy" { // recorders keep what a server would not send
			t.Errorf("HEAD %s: %d with %d bytes", page, head.StatusCode, n)
		}
		if page != "/metrics" && head.Header.Get("Content-Length") != get.Header.Get("Content-Length") {
			t.Errorf("HEAD %s: length differs from GET's", page)
		}
	}
}

func TestNotFound(t *testing.T) {
	r := newRig(t, nil)
	for _, page := range []string{"/nowhere", "/errors/", "/errors/a/b", "/errors/no-such", "/api/v1/nothing", "/api/v1/errors/no-such", "/debug/pprof/", "/debug/pprof/cmdline", "/index.html", "/pages/layout.html", "/errors/..%2f..%2fetc%2fpasswd"} {
		if res := r.do("GET", page, "Accept", browser); res.StatusCode != 404 {
			t.Errorf("GET %s: %d", page, res.StatusCode)
		}
	}
	if got := r.html("/errors/closed-channel"); !strings.Contains(got, `href="../errors/channel-closed"`) {
		t.Errorf("no hint at the slug that comes close:\n%s", got)
	}
	off := newRig(t, func(o *Options) { o.Page = false })
	for _, page := range allPages {
		if res := off.do("GET", page); res.StatusCode != 404 {
			t.Errorf("page off: GET %s: %d", page, res.StatusCode)
		}
	}
	for _, page := range []string{"/metrics", "/-/healthy", "/-/ready"} {
		if res := off.do("GET", page); res.StatusCode != 200 {
			t.Errorf("page off: GET %s: %d", page, res.StatusCode)
		}
	}
}

// TestHostileTexts: whatever a log holds, no form of any page holds it raw.
func TestHostileTexts(t *testing.T) {
	giant := hostile + strings.Repeat("x", 1<<20)
	for _, lines := range []bool{false, true} {
		r := newRig(t, func(o *Options) { o.ShowLines = lines })
		ev := event("aaaaaaaaaaaaaaa1", giant, hostile, giant, noon)
		ev.Error.Args, ev.RW.Chain, ev.K8s.Node, ev.K8s.Namespace, ev.RW.ActorID, ev.Origin.Path = []string{giant}, []string{hostile}, hostile, hostile, hostile, giant
		r.Observe(ev)
		unknown := *ev
		unknown.Error.ID, unknown.Error.Template = hostile, hostile
		r.Observe(&unknown)
		r.sources = []Source{{Path: hostile, Pod: hostile, Namespace: hostile, Container: hostile, LastError: hostile, Size: 10}}
		r.sinks = []Sink{{Name: hostile, URL: hostile, LastError: hostile, FailingSince: noon, Dropped: map[string]int64{hostile: 1}, Adjusted: map[string]int64{hostile: 1}, Emitted: map[string]int64{hostile: 2}}}
		r.notices = []string{hostile}
		r.dead = errors.New(hostile)
		recs := records()
		recs[1].Documentation, recs[1].Solutions, recs[1].ErrorMessage, recs[1].References, recs[1].GithubURL, recs[1].FilePath = hostile, []string{hostile}, hostile, []string{hostile}, "javascript:alert(1)", hostile
		r.SetCatalog(Catalog{Records: recs, Refused: []catalog.Problem{{File: hostile, Message: hostile}}, Warnings: []catalog.Problem{{Message: hostile}},
			Disabled: []Disabled{{Record: catalog.Record{ID: "aaaaaaaaaaaaaaa9", Slug: "off"}, Why: hostile}}, Version: hostile, Digest: hostile})
		r.ReloadFailed(errors.New(hostile))

		for _, page := range slices.Concat(allPages, []string{"/errors/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/errors?q=%3Cscript%3E%1b[31m", "/-/healthy"}) {
			for _, accept := range []string{browser, "*/*", "application/json"} {
				checkHarmless(t, page+" "+accept, body(t, r.do("GET", page, "Accept", accept)), accept)
			}
		}
	}
}

func checkHarmless(t *testing.T, what, got, accept string) {
	t.Helper()
	if !utf8.ValidString(got) {
		t.Errorf("%s: invalid UTF-8", what)
	}
	for _, r := range got {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) {
			t.Errorf("%s: raw %U", what, r)
			break
		}
	}
	low := strings.ToLower(got)
	bad := []string{}
	if accept == browser && !strings.HasPrefix(what, "/-/") { // always plain text
		bad = []string{"<script", "</script", "<img", `="javascript:`, "<b>{}"}
	}
	for _, s := range bad {
		if strings.Contains(low, s) {
			t.Errorf("%s: unescaped %q", what, s)
		}
	}
	if len(got) > 300<<10 {
		t.Errorf("%s: %d bytes", what, len(got))
	}
}

func TestShowLines(t *testing.T) {
	for _, show := range []bool{false, true} {
		r := newRig(t, func(o *Options) { o.ShowLines = show })
		r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "channel closed: x", noon))
		for _, page := range []string{"/errors", "/errors/channel-closed"} {
			for _, got := range []string{r.html(page), r.text(page), r.text("/api/v1" + page)} {
				if strings.Contains(got, "RAW channel closed") != show {
					t.Errorf("show_lines %v: %s:\n%s", show, page, got)
				}
			}
		}
	}
}

// TestTextIsNarrow: plain text fits a terminal, but for addresses, which are
// copied.
func TestTextIsNarrow(t *testing.T) {
	r := newRig(t, func(o *Options) { o.ShowLines = true })
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", strings.Repeat("long words and text ", 50)+strings.Repeat("y", 300), noon))
	r.sinks = []Sink{{Name: "loki", URL: "http://loki:3100", FailingSince: noon.Add(-time.Hour), LastError: strings.Repeat("refused ", 30), QueueEntries: 7, QueueMaxBytes: 10, QueueBytes: 10, Dropped: map[string]int64{"too_old": 3}}}
	for _, page := range allPages {
		for line := range strings.SplitSeq(r.text(page), "\n") {
			if utf8.RuneCountInString(line) > 80 && !strings.Contains(line, "https://") {
				t.Errorf("%s: %d columns: %s", page, utf8.RuneCountInString(line), line)
			}
		}
	}
}

func TestProbes(t *testing.T) {
	r := newRig(t, nil)
	r.sinks = []Sink{{Name: "loki", FailingSince: noon.Add(-time.Hour)}} // Loki down changes neither
	probe := func(path, want string, status int) {
		t.Helper()
		res := r.do("GET", path)
		if got := body(t, res); res.StatusCode != status || got != want {
			t.Errorf("%s: %d %q, want %d %q", path, res.StatusCode, got, status, want)
		}
	}
	probe("/-/healthy", "ok\n", 200)
	probe("/-/ready", "ok\n", 200)
	r.dead = errors.New("/var/log/x: not moving for 40 s")
	probe("/-/healthy", "/var/log/x: not moving for 40 s\n", 503)
	probe("/-/ready", "ok\n", 200)
	fresh := New(Options{})
	w := httptest.NewRecorder()
	fresh.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/-/ready", nil))
	if w.Code != 503 {
		t.Errorf("ready without a catalogue: %d", w.Code)
	}
}

func TestReload(t *testing.T) {
	var calls int
	var fail error
	r := newRig(t, func(o *Options) { o.Reload = func() error { calls++; return fail } })
	for _, tt := range []struct {
		name, method string
		header       []string
		err          error
		status       int
		calls        int
	}{
		{"curl", "POST", nil, nil, 200, 1},
		{"same page", "POST", []string{"Sec-Fetch-Site", "same-origin"}, nil, 200, 2},
		{"foreign page", "POST", []string{"Sec-Fetch-Site", "cross-site"}, nil, 403, 2},
		{"foreign origin", "POST", []string{"Origin", "http://evil.example"}, nil, 403, 2},
		{"get", "GET", nil, nil, 405, 2},
		{"put", "PUT", nil, nil, 405, 2},
		{"bad", "POST", nil, errors.New("patterns/x.yaml:3: unknown key\x1b[31m"), 500, 3},
	} {
		fail = tt.err
		res := r.do(tt.method, "/-/reload", tt.header...)
		got := body(t, res)
		if res.StatusCode != tt.status || calls != tt.calls || tt.err != nil && (!strings.Contains(got, "x.yaml:3") || strings.Contains(got, "\x1b")) {
			t.Errorf("%s: %d after %d calls: %q", tt.name, res.StatusCode, calls, got)
		}
		if tt.status == 405 && !strings.Contains(res.Header.Get("Allow"), "POST") {
			t.Errorf("%s: Allow %q", tt.name, res.Header.Get("Allow"))
		}
	}
	off := newRig(t, nil)
	if res := off.do("POST", "/-/reload"); res.StatusCode != 403 {
		t.Errorf("off: %d", res.StatusCode)
	}
}

// TestOneReloadAtATime: the second caller is told, not queued.
func TestOneReloadAtATime(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, func(o *Options) { o.Reload = func() error { close(entered); <-leave; return nil } })
	var wg sync.WaitGroup
	wg.Go(func() {
		if res := r.do("POST", "/-/reload"); res.StatusCode != 200 {
			t.Errorf("first: %d", res.StatusCode)
		}
	})
	<-entered
	if res := r.do("POST", "/-/reload"); res.StatusCode != 409 {
		t.Errorf("second: %d", res.StatusCode)
	}
	close(leave)
	wg.Wait()
}

func TestPprof(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Pprof = true })
	if res := r.do("GET", "/debug/pprof/goroutine?debug=1"); res.StatusCode != 200 {
		t.Errorf("goroutine: %d", res.StatusCode)
	}
	if res := r.do("GET", "/debug/pprof/cmdline"); res.StatusCode != 404 {
		t.Errorf("cmdline, which may hold a password: %d", res.StatusCode)
	}
}

func TestMetricsAreLint(t *testing.T) {
	r := newRig(t, nil)
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "x", noon))
	r.sinks = []Sink{{Name: "loki", Dropped: map[string]int64{"too_old": 0}, Adjusted: map[string]int64{"cut": 0}, LastSuccess: noon}}
	r.Requests("loki")(20*time.Millisecond, 204, 100)
	problems, err := testutil.GatherAndLint(r.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families, err := r.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "rwannotate_") {
			ours = append(ours, f.GetName())
		}
	}
	if slices.Sort(ours); !slices.Equal(ours, MetricNames()) {
		t.Errorf("gathered %q\nMetricNames %q", ours, MetricNames())
	}
}

func TestMetrics(t *testing.T) {
	r := newRig(t, nil)
	r.totals = Totals{Bytes: 10, Lines: 2, Candidates: 5, Rejected: 3, Echoes: 4, Rotations: 1}
	r.sinks = []Sink{{Name: "loki", SentEntries: 9, Dropped: map[string]int64{"too_old": 0, "rejected": 2}, QueueBytes: 77, FailingSince: noon}, {Name: "stdout", Emitted: map[string]int64{"match": 3}}}
	got := r.text("/metrics")
	for _, want := range []string{
		`rwannotate_matches_total{component="",error="_other",severity="critical"} 0`, // from the start
		`rwannotate_build_info{goversion=`, `rwannotate_catalog_records{state="active"} 3`, `rwannotate_catalog_last_reload_successful 1`,
		`rwannotate_sink_dropped_entries_total{reason="too_old",sink="loki"} 0`, `rwannotate_sink_dropped_entries_total{reason="rejected",sink="loki"} 2`,
		`rwannotate_prefilter_hits_total 5`, `rwannotate_regex_rejects_total 3`, `rwannotate_source_lag_bytes{component="compute"} 10`,
		`rwannotate_events_suppressed_total{reason="echo"} 4`, `rwannotate_events_emitted_total{kind="first",sink="loki"} 0`, `rwannotate_events_emitted_total{kind="match",sink="stdout"} 3`,
		`rwannotate_sink_failing{sink="loki"} 1`, `rwannotate_sink_failing{sink="stdout"} 0`, `rwannotate_healthy 1`, "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s", want)
		}
	}
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "x", noon.Add(-time.Minute)))
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-1", "x", noon.Add(-time.Hour)))
	r.ReloadFailed(errors.New("x"))
	got = r.text("/metrics")
	for _, want := range []string{
		`rwannotate_matches_total{component="compute",error="channel-closed",severity="critical"} 2`,
		fmt.Sprintf(`rwannotate_match_last_seen_timestamp_seconds{component="compute",error="channel-closed",severity="critical"} %g`, float64(noon.Add(-time.Minute).Unix())),
		`rwannotate_catalog_last_reload_successful 0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s", want)
		}
	}
}

// TestLabelsAreBounded: no log can make series without end.
func TestLabelsAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for i := range 1000 {
		r.Observe(event(fmt.Sprintf("%016x", i), fmt.Sprintf("component-%d", i), fmt.Sprintf("pod-%d", i), "x", noon))
	}
	got := r.text("/metrics")
	if n := strings.Count(got, "\nrwannotate_matches_total{"); n > 210 {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(got, `rwannotate_matches_total{component="",error="_other",severity="error"} 800`) {
		t.Error("the rest is not counted as _other")
	}
	if n := len(r.seen.newest(noon)); n != 100 {
		t.Errorf("%d fingerprints", n)
	}
	if len(r.seen.entries) != 100 {
		t.Errorf("%d entries kept", len(r.seen.entries))
	}
}

func TestSeen(t *testing.T) {
	r := newRig(t, nil)
	at := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "old", at(2*time.Hour)))
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "new", at(3*time.Minute)))
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-1", "other pod", at(time.Minute)))
	r.Observe(event("aaaaaaaaaaaaaaa2", "meta", "m-0", "ahead", noon.Add(24*time.Hour)))
	folded := event("aaaaaaaaaaaaaaa3", "meta", "m-0", "folded", at(time.Minute))
	folded.Kind, folded.Seen = annotate.KindRepeat, annotate.Seen{New: 40, Count: 50, First: at(time.Hour), Last: at(time.Minute)}
	r.Observe(folded)

	var page statusPage
	r.json("/api/v1/status", &page)
	var got []string
	for _, e := range page.Errors {
		got = append(got, fmt.Sprint(e.Slug, " ", e.LastHour, "/", e.Count, " ", e.Places))
	}
	want := []string{"channel-closed 2/3 [compute · c-1 compute · c-0]", "executor-error 40/40 [meta · m-0]", "dirty-row 1/1 [meta · m-0]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if page.Occurrences != 44 || page.Worst != "critical" || page.Summary != "3 known errors in the last hour" {
		t.Errorf("%d, %q, %q", page.Occurrences, page.Worst, page.Summary)
	}
	if first := page.Errors[0].First; !first.Equal(at(2 * time.Hour)) {
		t.Errorf("first %v", first)
	}

	r.now = noon.Add(2 * time.Hour)
	r.json("/api/v1/status", &page)
	if strings.Contains(r.text("/"), "executor-error") {
		t.Error("an error of two hours ago is one of the last hour")
	}
	if !strings.Contains(r.text("/errors"), "executor-error") {
		t.Error("an error of two hours ago is forgotten")
	}
}

func TestFilter(t *testing.T) {
	r := newRig(t, nil)
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "channel closed: x", noon))
	r.Observe(event("aaaaaaaaaaaaaaa2", "meta", "m-0", "dirty row y", noon))
	for query, want := range map[string]string{
		"": "channel-closed dirty-row", "?q=DIRTY": "dirty-row", "?q=c-0": "channel-closed", "?severity=warning": "dirty-row", "?severity=nonsense": "channel-closed dirty-row",
		"?q=dirty+closed": "", "?q=meta&severity=critical": "",
	} {
		var page errorsPage
		r.json("/api/v1/errors"+query, &page)
		var got []string
		for _, o := range page.Errors {
			got = append(got, o.Slug)
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := r.text("/catalog?q=executor"); !strings.Contains(got, "executor-error") || strings.Contains(got, "dirty-row") {
		t.Errorf("catalogue filter:\n%s", got)
	}
}

func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*rig)
		health string
		want   string // in the first finding
	}{
		{"all well", func(*rig) {}, "ok", ""},
		{"dead", func(r *rig) { r.dead = errors.New("stuck") }, "failing", "does not move: stuck"},
		{"no catalogue", func(r *rig) { r.SetCatalog(Catalog{}) }, "failing", "No record"},
		{"reload failed", func(r *rig) { r.ReloadFailed(errors.New("x")) }, "attention", "reload of 2026-11-30 12:00:00 UTC failed"},
		{"reload failed, then succeeded", func(r *rig) { r.ReloadFailed(errors.New("x")); r.SetCatalog(Catalog{Records: records()}) }, "ok", ""},
		{"refused", func(r *rig) { r.SetCatalog(Catalog{Records: records(), Refused: make([]catalog.Problem, 2)}) }, "attention", "2 records of the catalogue cannot be used"},
		{"sink down", func(r *rig) {
			r.sinks = []Sink{{Name: "loki", FailingSince: noon.Add(-5 * time.Minute), QueueEntries: 3, QueueBytes: 2048, LastError: "connection refused"}}
		}, "attention", "loki has taken nothing for 5 min; waiting: 3 events (2 KiB). It says: connection refused"},
		{"queue full", func(r *rig) { r.sinks = []Sink{{Name: "loki", QueueBytes: 95, QueueMaxBytes: 100}} }, "attention", "queue for loki is full"},
		{"dropped", func(r *rig) { r.sinks = []Sink{{Name: "loki", Dropped: map[string]int64{"too_old": 2, "x": 0}}} }, "attention", "loki could not be given 2 events (too_old 2)."},
		{"nothing to read", func(r *rig) { r.sources = nil }, "attention", "No file matches"},
		{"unreadable", func(r *rig) { r.sources[0].LastError = "permission denied" }, "attention", "Cannot be read just now: /var/log/compute/0.log"},
		{"stalled", func(r *rig) { r.sources[0].LastRead = noon.Add(-11 * time.Minute) }, "attention", "Not read for 10 min"},
		{"quiet", func(r *rig) { r.sources[0].LastRead, r.sources[0].Size = noon.Add(-11*time.Hour), 90 }, "ok", ""},
		{"backlog", func(r *rig) { r.sources[0].Size = 1 << 30 }, "ok", "1 GiB are still to be read"},
		{"lost", func(r *rig) { r.totals.LostBytes = 5000 }, "attention", "4.88 KiB were truncated or deleted"},
		{"notice", func(r *rig) { r.notices = []string{"Positions are kept in memory only."} }, "ok", "in memory only"},
	} {
		r := newRig(t, nil)
		tt.change(r)
		var page statusPage
		r.json("/api/v1/status", &page)
		got := ""
		if len(page.Findings) > 0 {
			got = page.Findings[0].What
		}
		if page.Health != tt.health || !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: %s, %q; want %s, %q", tt.name, page.Health, got, tt.health, tt.want)
		}
		if got != "" && !strings.Contains(strings.Join(strings.Fields(r.text("/")), " "), strings.Join(strings.Fields(got), " ")) {
			t.Errorf("%s: the text page does not say %q", tt.name, got)
		}
	}
}

// TestLinksAreRelative: the page may be behind a proxy that serves it below a
// path.
func TestLinksAreRelative(t *testing.T) {
	r := newRig(t, nil)
	r.Observe(event("aaaaaaaaaaaaaaa1", "compute", "c-0", "x", noon))
	for _, page := range append(slices.Clone(allPages), "/a/b/c") {
		got := r.html(page)
		if strings.Contains(got, `href="/`) || strings.Contains(got, `action="/`) {
			t.Errorf("%s has an absolute link", page)
		}
		up := strings.Repeat("../", strings.Count(strings.SplitN(page, "?", 2)[0], "/")-1)
		if up == "" {
			up = "./"
		}
		if !strings.Contains(got, `href="`+up+`style.css?`) {
			t.Errorf("%s: the style sheet is not at %sstyle.css", page, up)
		}
		if strings.Contains(got, "ZgotmplZ") || strings.Contains(got, "style=") {
			t.Errorf("%s: filtered content or inline style", page)
		}
	}
}

func TestRecordAsAdvice(t *testing.T) {
	r := newRig(t, nil)
	got := r.html("/errors/channel-closed")
	for _, want := range []string{"<li>Run <code>RECOVER;</code> and wait.</li>", "Second paragraph.", "Look for the error that came first", "src/a.rs:1", "at commit 0123456789 (2026-11-01)", `href="https://github.com/risingwavelabs/risingwave/issues/1"`, "Not since rwannotate started"} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, `href="javascript`) {
		t.Error("a script as a link")
	}
	r.SetCatalog(Catalog{Disabled: []Disabled{{records()[0], "named in catalog.disable"}}, Records: records()[1:]})
	if got := r.text("/errors/channel-closed"); !strings.Contains(got, "named in catalog.disable") {
		t.Errorf("does not say that it is disabled:\n%s", got)
	}
}

func TestRefresh(t *testing.T) {
	r := newRig(t, nil)
	if got := r.html("/errors?q=x&refresh=30"); !strings.Contains(got, `http-equiv="refresh" content="30"`) || !strings.Contains(got, `href="?q=x"`) {
		t.Error("no refresh, or no way out of it")
	}
	for _, q := range []string{"", "?refresh=1", "?refresh=0;url=http://evil.example", "?refresh=99999"} {
		if strings.Contains(r.html("/"+q), "http-equiv") {
			t.Errorf("%q refreshes", q)
		}
	}
}

func TestObserveConcurrently(t *testing.T) {
	r := newRig(t, nil)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 300 {
				r.Observe(event("aaaaaaaaaaaaaaa1", "compute", fmt.Sprint("c-", w, "-", i), "x", noon))
			}
		})
	}
	wg.Go(func() {
		for range 10 {
			r.html("/")
			r.text("/metrics")
			r.SetCatalog(Catalog{Records: records()})
		}
	})
	wg.Wait()
	if _, total := r.seen.snapshot(); total != 1200 {
		t.Errorf("counted %d of 1200", total)
	}
}

func TestServe(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(o *Options) { o.Log = zerolog.New(&log) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, l) }()

	client := &http.Client{Transport: &http.Transport{}}
	res, err := client.Get("http://" + l.Addr().String() + "/-/healthy")
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, res); got != "ok\n" {
		t.Errorf("%q", got)
	}
	_ = res.Body.Close()
	idle, err := net.Dial("tcp", l.Addr().String()) // a client that never asks must not hold up the end
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	client.CloseIdleConnections()
	start := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 700*time.Millisecond {
		t.Errorf("stopping took %v", took)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := New(Options{Listen: taken.Addr().String()}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "web.listen") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// TestConnectionsAreBounded: beyond the limit the oldest connection is closed,
// and room comes back when others go.
func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &bounded{Listener: inner, most: 2}
	defer l.Close()
	accept := func() net.Conn {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		return server
	}
	closed := func(c net.Conn) bool { return errors.Is(c.SetDeadline(time.Time{}), net.ErrClosed) }
	first, second, third := accept(), accept(), accept()
	if !closed(first) || closed(second) || closed(third) {
		t.Error("not the oldest connection was closed")
	}
	_ = second.Close()
	_ = second.Close()
	fourth := accept()
	if closed(third) || closed(fourth) {
		t.Error("the room of a closed connection was not used")
	}
}

// Whoever looks after a restart is not told that the hour was quiet.
func TestSummaryOfTheFirstHour(t *testing.T) {
	r := newRig(t, nil)
	for after, want := range map[time.Duration]string{
		10 * time.Minute: "NO KNOWN ERRORS SINCE THE START 10 MIN AGO", 2 * time.Hour: "NO KNOWN ERRORS IN THE LAST HOUR",
	} {
		r.now = noon.Add(after)
		if got := r.text("/"); !strings.Contains(got, want) {
			t.Errorf("after %v: %s", after, got)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                           "plain",
		"a\nb\tc":                         "a b c",
		"\x1b[31m":                        `\x1b[31m`,
		"a\x7fb":                          `a\x7fb`,
		"\u202eabc":                       `\u202eabc`,
		"\u009b\x00":                      `\u009b\x00`,
		"a\xffb":                          "a�b",
		"日本語 שלום":                        "日本語 שלום",
		"12345678901":                     "1234567890…",
		"12345\x1b[31m":                   `12345\x1b[` + "…",
		"a" + strings.Repeat("\u0301", 9): "a\u0301\u0301\u0301",
	} {
		if got := clean(in, 10); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := cleanBlock("a\nb\r\n\x1b", 10); got != "a\nb \n\\x1b" {
		t.Errorf("%q", got)
	}
}

func TestFormat(t *testing.T) {
	for _, tt := range [][2]string{
		{size(0), "0 B"}, {size(1023), "1,023 B"}, {size(1536), "1.5 KiB"}, {size(1 << 20), "1 MiB"}, {size(1000 << 10), "0.977 MiB"}, {size(5 << 40), "5 TiB"},
		{number(1234567), "1,234,567"}, {number(999), "999"}, {number(-1000), "-1,000"}, {number(0), "0"},
		{ago(noon, noon.Add(-90*time.Second)), "1 min ago"}, {ago(noon, noon), "just now"}, {ago(noon, time.Time{}), "never"}, {ago(noon, noon.Add(time.Hour)), "in the future"},
		{ago(noon, noon.Add(-72*time.Hour)), "3 days ago"}, {plural(1, "file"), "1 file"}, {plural(0, "file"), "0 files"},
		{reasons(map[string]int64{"b": 1, "a": 1, "c": 5, "d": 0}), "c 5, a 1, b 1"},
		{strings.Join(wrap("aaa bbb cccccccccc", 7), "|"), "aaa bbb|ccccccc|ccc"},
		{fmt.Sprint(prose("run `x` or ` y")), "[{false run } {true x} {false  or ` y}]"},
	} {
		if tt[0] != tt[1] {
			t.Errorf("got %q, want %q", tt[0], tt[1])
		}
	}
}
