package loki

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAnswers replays what Loki is known to do, row by row: what becomes of
// the entry in question and of the others in its request, and of those of
// another stream ("other").
func TestAnswers(t *testing.T) {
	other := func() Entry { return entry("other", label("namespace", "b")) }
	for _, row := range []struct {
		name  string
		setup func(w *world)
		add   func() []Entry
		wait  time.Duration // 0: a minute
		want  *expect       // nil: check does it
		check func(w *world)
	}{
		{
			name: "valid",
			add:  func() []Entry { return []Entry{entry("g1"), entry("g2"), other()} },
			want: &expect{stored: "g1 g2 other", requests: 2},
			check: func(w *world) {
				r := w.fake.log()[0]
				if r.path != "/loki/api/v1/push" || r.header.Get("User-Agent") != "rwannotate/1.2.3" {
					w.t.Errorf("%s from %s", r.path, r.header.Get("User-Agent"))
				}
				if _, ok := r.header["X-Scope-Orgid"]; ok {
					w.t.Error("a tenant was sent though none is configured")
				}
			},
		},
		{
			name: "request cannot be parsed because of one entry",
			setup: func(w *world) {
				w.fake.script = refuse("bad", 400, "loghttp.PushRequest.Streams: []: ReadMapCB: expect")
			},
			add:  func() []Entry { return []Entry{entry("g1"), entry("g2"), entry("bad"), entry("g3"), other()} },
			want: &expect{stored: "g1 g2 g3 other", dropped: map[Reason]uint64{Malformed: 1}, requests: 10},
		},
		{
			name: "lone surrogate, invalid UTF-8 in line and metadata",
			add:  func() []Entry { return []Entry{entry("s \xed\xa0\x80 \xff", meta("x", "a\xffb"))} },
			want: &expect{stored: "s"},
			check: func(w *world) {
				_, got := w.fake.find("s ")
				// Our queue is JSON, which replaces each byte; the client itself replaces runs.
				if strings.Trim(got[0].Line[2:], "\uFFFD ") != "" || !strings.Contains(got[0].Metadata["x"], "\uFFFD") {
					w.t.Errorf("%q %q", got[0].Line, got[0].Metadata)
				}
			},
		},
		{
			name: "wrong content type (a gateway that strips headers): held",
			setup: func(w *world) {
				w.fake.script = until(5*time.Minute, &reply{status: 400, body: "mime: no media type"})
			},
			add:  func() []Entry { return []Entry{entry("g1"), entry("g2"), other()} },
			want: &expect{left: "g1 g2 other"},
		},
		{
			name: "wrong content encoding: held",
			setup: func(w *world) {
				w.fake.script = until(5*time.Minute, &reply{status: 400, body: `Content-Encoding "gzip" not supported`})
			},
			add:  func() []Entry { return []Entry{entry("g1"), other()} },
			want: &expect{left: "g1 other"},
		},
		{
			name: "held, and delivered in order when it is put right",
			setup: func(w *world) {
				w.fake.script = until(5*time.Minute, &reply{status: 400, body: "snappy: corrupt input"})
			},
			add:  func() []Entry { return []Entry{entry("g1"), entry("g2"), other()} },
			wait: 6 * time.Minute,
			want: &expect{stored: "g1 g2 other"},
		},
		{
			name: "empty line",
			add:  func() []Entry { return []Entry{entry(""), entry("g1")} },
			want: &expect{stored: "g1"},
			check: func(w *world) {
				if _, got := w.fake.find(" "); len(got) != 1 {
					w.t.Errorf("%v", got)
				}
			},
		},
		{
			name: "label names that cannot be parsed are sanitised",
			add: func() []Entry {
				return []Entry{entry("g1", label("k8s.pod", "p"), label("9x", "1"), label("é", "2"), label("__name__", "3"))}
			},
			want:  &expect{stored: "g1"},
			check: inStream(`{_9x="1", _name__="3", component="meta", k8s_pod="p", level="error", log_kind="known_error", namespace="a", service_name="risingwave"}`),
		},
		{
			name: "labels refused as a whole: with fewer",
			setup: func(w *world) {
				w.fake.script = func(_ int, _ *http.Request, lines []string) *reply {
					if n := len(w.fake.requests); n == 0 && len(lines) > 1 {
						return &reply{status: 400, body: "couldn't parse labels: 1:5: parse error: unexpected character"}
					}
					return nil
				}
			},
			add:   func() []Entry { return []Entry{entry("g1"), entry("g2")} },
			want:  &expect{stored: "g1 g2", adjusted: map[string]uint64{"reduced": 2}, requests: 2},
			check: inStream(`{component="meta", level="error", log_kind="known_error", service_name="risingwave"}`),
		},
		{
			name: "no labels at all",
			add: func() []Entry {
				return []Entry{entry("g1", func(e *Entry) { e.Labels = nil })}
			},
			want:  &expect{stored: "g1"},
			check: inStream(`{service_name="risingwave"}`),
		},
		{
			name:  "empty label value, duplicate label name",
			add:   func() []Entry { return []Entry{entry("g1", label("pod", ""), label("a.b", "1"), label("a_b", "2"))} },
			want:  &expect{stored: "g1"},
			check: inStream(`{a_b="1", component="meta", level="error", log_kind="known_error", namespace="a", service_name="risingwave"}`),
		},
		{
			name: "more than 15 labels: the rest becomes metadata",
			add: func() []Entry {
				e := entry("g1")
				for i := range 14 {
					label(fmt.Sprintf("x%02d", i), "v")(&e)
				}
				return []Entry{e, other()}
			},
			want: &expect{stored: "g1 other"},
			check: func(w *world) {
				_, got := w.fake.find("g1")
				if got[0].Metadata["x13"] != "v" || got[0].Metadata["x09"] != "" {
					w.t.Errorf("metadata %v", got[0].Metadata)
				}
			},
		},
		{
			name:  "a server that allows five labels",
			setup: func(w *world) { w.fake.maxLabels = 5 },
			add: func() []Entry {
				return []Entry{entry("g1", label("cluster", "c")), entry("g2", label("cluster", "c")), other()}
			},
			want:  &expect{stored: "g1 g2 other", adjusted: map[string]uint64{"reduced": 2}, requests: 3},
			check: inStream(`{component="meta", level="error", log_kind="known_error", service_name="risingwave"}`),
		},
		{
			name: "label value of 5000 bytes is cut",
			add: func() []Entry {
				return []Entry{entry("g1", label("cluster", strings.Repeat("ü", 2500))), other()}
			},
			want: &expect{stored: "g1 other"},
		},
		{
			name:  "label value longer than this server allows",
			setup: func(w *world) { w.fake.maxValue = 50 },
			add:   func() []Entry { return []Entry{entry("g1", label("cluster", strings.Repeat("x", 80))), other()} },
			want:  &expect{stored: "g1 other", adjusted: map[string]uint64{"reduced": 1}},
		},
		{
			name: "line of 300 KB is cut before it is sent",
			add:  func() []Entry { return []Entry{entry("long " + strings.Repeat("ü", 150_000)), entry("g1")} },
			want: &expect{stored: "g1 long", requests: 1},
			check: func(w *world) {
				_, got := w.fake.find("long")
				if l := got[0].Line; len(l) > maxLine || !strings.HasSuffix(l, " … [300005 bytes in all]") || got[0].Metadata["truncated_bytes"] != fmt.Sprint(300_005-len(l)) {
					w.t.Errorf("%d bytes, %q, %v", len(l), l[len(l)-40:], got[0].Metadata)
				}
			},
		},
		{
			name:  "a server that allows shorter lines: only the long ones are sent again, cut",
			setup: func(w *world) { w.fake.maxLine = 1000 },
			add: func() []Entry {
				return []Entry{entry("g1"), entry("long1 " + strings.Repeat("x", 2000)), entry("g2"), entry("long2 " + strings.Repeat("y", 1500)), other()}
			},
			want: &expect{stored: "g1 g2 long1 long2 other", adjusted: map[string]uint64{"cut": 2}, requests: 3},
		},
		{
			name: "older than 7 days: dropped before it is sent",
			add:  func() []Entry { return []Entry{entry("old", ago(8*24*time.Hour)), entry("g1"), other()} },
			want: &expect{stored: "g1 other", dropped: map[Reason]uint64{TooOld: 1}, requests: 2},
		},
		{
			name:  "older than 7 days, sent by configuration: the server's refusal is about it alone",
			setup: func(w *world) { w.opts.MaxAge = -1 },
			add: func() []Entry {
				return []Entry{entry("old1", ago(8*24*time.Hour)), entry("old2", ago(9*24*time.Hour)), entry("g1"), entry("g2"), other()}
			},
			want: &expect{stored: "g1 g2 other", dropped: map[Reason]uint64{TooOld: 2}, requests: 2},
		},
		{
			name:  "several entries of one second refused with one counted text",
			setup: func(w *world) { w.opts.MaxAge = -1 },
			add: func() []Entry {
				out := []Entry{entry("g1")}
				for i := range 20 {
					e := entry(fmt.Sprint("old", i), ago(8*24*time.Hour))
					e.Time = e.Time.Truncate(time.Second).Add(time.Duration(i))
					out = append(out, e)
				}
				return out
			},
			want: &expect{stored: "g1", dropped: map[Reason]uint64{TooOld: 20}, requests: 1},
		},
		{
			name:  "several kinds of refusal in one answer",
			setup: func(w *world) { w.opts.MaxAge = -1; w.fake.maxLine = 1000 },
			add: func() []Entry {
				return []Entry{entry("old", ago(8*24*time.Hour)), entry("long " + strings.Repeat("x", 2000)), entry("g1"), other()}
			},
			want: &expect{stored: "g1 long other", dropped: map[Reason]uint64{TooOld: 1}, adjusted: map[string]uint64{"cut": 1}, requests: 3},
		},
		{
			name: "in the future: sent as of now, own time in the metadata",
			add:  func() []Entry { return []Entry{entry("future", ago(-time.Hour)), entry("g1")} },
			want: &expect{stored: "future g1", adjusted: map[string]uint64{"future": 1}, requests: 1},
			check: func(w *world) {
				_, got := w.fake.find("future")
				own, err := time.Parse(time.RFC3339Nano, got[0].Metadata["original_time"])
				if err != nil || own.Sub(got[0].Time) < 59*time.Minute {
					w.t.Errorf("stored at %s with %v", got[0].Time, got[0].Metadata)
				}
			},
		},
		{
			name: "9 minutes in the future is fine",
			add:  func() []Entry { return []Entry{entry("g1", ago(-9*time.Minute))} },
			want: &expect{stored: "g1", requests: 1},
		},
		{
			name:  "the server's clock is behind ours: its own time is taken",
			setup: func(w *world) { w.fake.clockBehind = 30 * time.Minute },
			add:   func() []Entry { return []Entry{entry("g1", ago(45*time.Minute)), entry("new")} },
			want:  &expect{stored: "g1 new", adjusted: map[string]uint64{"future": 1}, requests: 2},
		},
		{
			name: "too far behind: again in a replay stream, the others not again",
			setup: func(w *world) {
				w.fake.store(map[string]string{"component": "meta", "level": "error", "log_kind": "known_error", "namespace": "a", "service_name": "risingwave"},
					`{component="meta", level="error", log_kind="known_error", namespace="a", service_name="risingwave"}`,
					[]pushValue{{time.Now().UnixNano(), "live", nil}})
			},
			add: func() []Entry {
				return []Entry{entry("late1", ago(3*time.Hour)), entry("late2", ago(2*time.Hour)), entry("g1", ago(30*time.Minute)), entry("g2"), other()}
			},
			want: &expect{stored: "g1 g2 late1 late2 live other", adjusted: map[string]uint64{"replay": 2}, requests: 3},
			check: func(w *world) {
				where, _ := w.fake.find("late")
				for _, s := range where {
					if !strings.Contains(s, `replay="true"`) {
						w.t.Errorf("in %s", s)
					}
				}
			},
		},
		{
			name: "too far behind in the replay stream too: as of now",
			setup: func(w *world) {
				for _, replay := range []bool{false, true} {
					l := map[string]string{"component": "meta", "level": "error", "log_kind": "known_error", "namespace": "a", "service_name": "risingwave"}
					if replay {
						l["replay"] = "true"
					}
					w.fake.store(l, labelText(l), []pushValue{{time.Now().UnixNano(), "live", map[string]string{"x": fmt.Sprint(replay)}}})
				}
			},
			add:  func() []Entry { return []Entry{entry("late1", ago(3*time.Hour)), entry("g1")} },
			want: &expect{stored: "g1 late1 live×2", adjusted: map[string]uint64{"replay": 1, "restamped": 1}, requests: 3},
			check: func(w *world) {
				where, got := w.fake.find("late1")
				if got[0].Metadata["original_time"] == "" || !strings.Contains(where[0], `replay="restamped"`) {
					w.t.Errorf("in %s with %v", where[0], got[0].Metadata)
				}
			},
		},
		{
			name: "too far behind, counted per shard: by the bound, and what is doubtful again",
			setup: func(w *world) {
				l := map[string]string{"component": "meta", "level": "error", "log_kind": "known_error", "namespace": "a", "service_name": "risingwave"}
				w.fake.store(l, labelText(l), []pushValue{{time.Now().UnixNano(), "live", nil}})
				w.fake.shards = true
			},
			add: func() []Entry {
				return []Entry{entry("late1", ago(3*time.Hour)), entry("late2", ago(2*time.Hour)), entry("g1"), entry("g2")}
			},
			want: &expect{stored: "g1 g2 late1 late2 live", adjusted: map[string]uint64{"replay": 2}, requests: 3},
		},
		{
			name: "the ingester's refusal hides the distributor's: the long line is not lost",
			setup: func(w *world) {
				l := map[string]string{"component": "meta", "level": "error", "log_kind": "known_error", "namespace": "a", "service_name": "risingwave"}
				w.fake.store(l, labelText(l), []pushValue{{time.Now().UnixNano(), "live", nil}})
				w.fake.maxLine = 1000
			},
			add: func() []Entry {
				return []Entry{entry("late1", ago(3*time.Hour)), entry("long " + strings.Repeat("x", 3000)), entry("g1")}
			},
			want: &expect{stored: "g1 late1 live long", adjusted: map[string]uint64{"replay": 1, "cut": 1}},
		},
		{
			name: "six hours of backlog in any order go out by time, in one push",
			add: func() []Entry {
				out := []Entry{}
				for i := range 13 {
					out = append(out, entry(fmt.Sprintf("b%02d", i), ago(time.Duration(i)*30*time.Minute)))
				}
				return out
			},
			want: &expect{stored: "b00 b01 b02 b03 b04 b05 b06 b07 b08 b09 b10 b11 b12", requests: 1},
		},
		{
			name: "metadata: 200 items, names that need care, a value of 100 KB, a label's name",
			add: func() []Entry {
				e := entry("g1", meta("a.b", "1"), meta("a_b", "2"), meta("9", "3"), meta("__x", "4"), meta("", "5"), meta("é", "6"), meta("中文", "7"),
					meta("-", "8"), meta("Upper", "9"), meta("namespace", "10"), meta("big", strings.Repeat("ü", 50_000)), meta("empty", ""))
				for i := range 200 {
					meta(fmt.Sprint("m", i), strings.Repeat("x", 1000))(&e)
				}
				return []Entry{e, entry("g2"), other()}
			},
			want: &expect{stored: "g1 g2 other", requests: 2},
			check: func(w *world) {
				_, got := w.fake.find("g1")
				m := got[0].Metadata
				if m["a_b"] != "1" || m["key_9"] != "3" || m["_x"] != "4" || m["upper"] != "9" || m["meta_namespace"] != "10" || len(m["big"]) > maxValue {
					w.t.Errorf("%v", m)
				}
			},
		},
		{
			name:  "metadata: more items than this server allows",
			setup: func(w *world) { w.fake.maxMetadata = 2 },
			add: func() []Entry {
				return []Entry{entry("g1"), entry("many", meta("x", "1"), meta("y", `"2"`)), other()}
			},
			want: &expect{stored: "g1 many other", adjusted: map[string]uint64{"folded": 1}, requests: 3},
			check: func(w *world) {
				_, got := w.fake.find("many")
				if got[0].Line != `many error_id="d35cdfb22a5e48fe" x="1" y="\"2\""` {
					w.t.Errorf("%q", got[0].Line)
				}
			},
		},
		{
			name:  "metadata: larger than this server allows",
			setup: func(w *world) { w.fake.maxMetadataBytes = 100 },
			add:   func() []Entry { return []Entry{entry("g1"), entry("big", meta("x", strings.Repeat("v", 100)))} },
			want:  &expect{stored: "big g1", adjusted: map[string]uint64{"folded": 1}, requests: 2},
		},
		{
			name:  "metadata disallowed: into the line, for all from then on",
			setup: func(w *world) { w.fake.noMetadata = true },
			add: func() []Entry {
				return []Entry{entry("g1"), entry("none", func(e *Entry) { e.Metadata = nil }), entry("g2")}
			},
			want: &expect{stored: "g1 g2 none", adjusted: map[string]uint64{"folded": 2}, requests: 2},
			check: func(w *world) {
				n := len(w.fake.log())
				w.add(entry("g3"))
				w.pass(time.Minute)
				if got := w.fake.log(); len(got) != n+1 || got[n].lines[0] != `g3 error_id="d35cdfb22a5e48fe"` {
					w.t.Errorf("%d more requests, last %q", len(got)-n, got[len(got)-1].lines)
				}
			},
		},
		{
			name: "500 for a metadata name, for ever",
			setup: func(w *world) {
				w.fake.script = refuse("bad", 500, `normalization for label name "é" resulted in invalid name "_"`)
			},
			add:  func() []Entry { return []Entry{entry("g1"), entry("bad"), entry("g2"), other()} },
			want: &expect{stored: "g1 g2 other", dropped: map[Reason]uint64{Malformed: 1}, requests: 8},
		},
		{
			name: "control characters arrive as they are",
			add:  func() []Entry { return []Entry{entry("c \x00\x1b[31m\n\t\r\"\\\u2028\x7f")} },
			want: &expect{stored: "c"},
			check: func(w *world) {
				if _, got := w.fake.find("c "); got[0].Line != "c \x00\x1b[31m\n\t\r\"\\\u2028\x7f" {
					w.t.Errorf("%q", got[0].Line)
				}
			},
		},
		{
			name:  "tenant's rate: everything waits and comes in order",
			setup: func(w *world) { w.fake.tenantRate, w.fake.tenantBurst = 2000, 2000; w.opts.BatchBytes = 1500 },
			add:   func() []Entry { return many("g", 40, 300) },
			wait:  3 * time.Minute,
			want:  &expect{stored: words("g", 40)},
		},
		{
			name:  "tenant's rate is below the batch: it is split",
			setup: func(w *world) { w.fake.tenantRate, w.fake.tenantBurst = 3000, 3000 },
			add:   func() []Entry { return many("g", 40, 300) },
			wait:  5 * time.Minute,
			want:  &expect{stored: words("g", 40)},
		},
		{
			name:  "rate of one stream: the others do not wait",
			setup: func(w *world) { w.fake.streamRate = 1000; w.opts.BatchBytes = 2000 },
			add: func() []Entry {
				out := []Entry{}
				for i, e := range many("l", 30, 300) {
					label("namespace", "limited")(&e)
					out = append(out, e, entry(fmt.Sprintf("g%02d", i)))
				}
				return out
			},
			wait: 10 * time.Minute,
			want: &expect{stored: words("g", 30) + " " + words("l", 30)},
			check: func(w *world) {
				var lastGood, firstLimited time.Time
				for _, r := range w.fake.log() {
					if strings.Contains(r.labels, `"a"`) && r.status == 204 {
						lastGood = r.at
					}
					if strings.Contains(r.labels, "limited") && firstLimited.IsZero() {
						firstLimited = r.at
					}
				}
				if d := lastGood.Sub(firstLimited); d > 3*time.Second {
					w.t.Errorf("the other stream was done %v after the first refusal", d)
				}
			},
		},
		{
			name: "stream limit: existing streams go on, the new one with fewer labels",
			setup: func(w *world) {
				l := map[string]string{"component": "meta", "level": "error", "log_kind": "known_error", "service_name": "risingwave"}
				w.fake.store(l, labelText(l), []pushValue{{time.Now().Add(-time.Minute).UnixNano(), "live", nil}})
				w.fake.maxStreams = 2
				w.opts.Parallel = 1
			},
			add: func() []Entry {
				return []Entry{entry("g1"), entry("n1", label("namespace", "new")), entry("n2", label("namespace", "new"))}
			},
			want: &expect{stored: "g1 live n1 n2", adjusted: map[string]uint64{"reduced": 2}, requests: 4},
			check: func(w *world) {
				if _, got := w.fake.find("n1"); got[0].Metadata["namespace"] != "new" {
					w.t.Errorf("%v", got[0].Metadata)
				}
			},
		},
		{
			name:  "stream limit, no way out: it waits, the others do not",
			setup: func(w *world) { w.fake.maxStreams, w.opts.Parallel = 1, 1 },
			add:   func() []Entry { return []Entry{entry("g1"), entry("n1", label("namespace", "new"))} },
			check: func(w *world) {
				w.add(entry("g2"))
				w.pass(time.Minute)
				if got := strings.Join(w.words(), " "); got != "g1 g2" {
					w.t.Errorf("stored %q", got)
				}
				w.fake.mu.Lock()
				w.fake.maxStreams = 0
				w.fake.mu.Unlock()
				w.pass(5 * time.Minute)
				w.check(expect{stored: "g1 g2 n1", adjusted: map[string]uint64{"reduced": 1}})
			},
		},
		{
			name:  "401: held, one error a minute in the log",
			setup: func(w *world) { w.fake.auth = true },
			add:   func() []Entry { return []Entry{entry("g1"), other()} },
			wait:  10*time.Minute - time.Second,
			want:  &expect{left: "g1 other"},
			check: func(w *world) {
				if n := strings.Count(w.log.String(), `"level":"error"`); n < 6 || n > 10 { // a try each 30 s at most, a line each minute at most
					w.t.Errorf("%d errors in ten minutes:\n%s", n, w.log)
				}
				if n := len(w.fake.log()); n > 60 {
					w.t.Errorf("%d requests in ten minutes", n)
				}
			},
		},
		{
			name:  "missing enforced label: held",
			setup: func(w *world) { w.fake.requiredLabel = "team" },
			add:   func() []Entry { return []Entry{entry("g1"), entry("t", label("team", "x"))} },
			wait:  3 * time.Minute,
			want:  &expect{stored: "t", left: "g1"},
		},
		{
			name: "260, ingestion blocked: not an ack",
			setup: func(w *world) {
				w.fake.script = until(2*time.Minute, &reply{status: 260, body: "ingestion blocked for user 't' until '2099-01-01T00:00:00Z' with status code '260'"})
			},
			add:  func() []Entry { return []Entry{entry("g1"), other()} },
			want: &expect{left: "g1 other"},
			check: func(w *world) {
				w.pass(3 * time.Minute)
				w.check(expect{stored: "g1 other"})
			},
		},
		{
			name:  "413: split",
			setup: func(w *world) { w.fake.maxBody = 2000 },
			add:   func() []Entry { return append(many("g", 40, 300), other()) },
			want:  &expect{stored: words("g", 40) + " other"},
		},
		{
			name: "413 for one entry: dropped, the others are not",
			setup: func(w *world) {
				w.fake.maxBody = 2000
			},
			add: func() []Entry {
				return append(many("g", 10, 300), entry("huge "+strings.Repeat("x", 3000)), other())
			},
			want: &expect{stored: words("g", 10) + " other", dropped: map[Reason]uint64{TooLarge: 1}},
		},
		{
			name:  "500 above 4 MiB between distributor and ingester: split",
			setup: func(w *world) { w.fake.maxMessage = 40_000; w.opts.BatchBytes = 200_000 },
			add:   func() []Entry { return append(many("g", 60, 3000), other()) },
			want:  &expect{stored: words("g", 60) + " other"},
		},
		{
			name:  "500 empty ring: again",
			setup: func(w *world) { w.fake.script = until(20*time.Second, &reply{status: 500, body: "empty ring"}) },
			add:   func() []Entry { return []Entry{entry("g1"), entry("g2"), other()} },
			want:  &expect{stored: "g1 g2 other"},
		},
		{
			name: "500 for one entry and without a reason: found and dropped, the others delivered",
			setup: func(w *world) {
				w.fake.script = refuse("bad", 500, "internal error")
				w.opts.Parallel = 1
			},
			add:  func() []Entry { return append(many("g", 20, 10), entry("bad"), other()) },
			want: &expect{stored: words("g", 20) + " other", dropped: map[Reason]uint64{Unknown: 1}, requests: 20},
		},
		{
			name:  "the same with nothing else to send",
			setup: func(w *world) { w.fake.script = refuse("bad", 500, "internal error 17") },
			add:   func() []Entry { return append(many("g", 20, 10), entry("bad")) },
			wait:  time.Hour,
			want:  &expect{stored: words("g", 20), dropped: map[Reason]uint64{Unknown: 1}, requests: 40},
		},
		{
			name: "500 for a whole stream (its ingester is down) while others work: nothing is dropped",
			setup: func(w *world) {
				from := time.Now()
				w.fake.script = func(_ int, _ *http.Request, lines []string) *reply {
					if strings.HasPrefix(lines[0], "g") && time.Since(from) < time.Hour {
						return &reply{status: 500, body: "internal error"}
					}
					return nil
				}
			},
			add: func() []Entry { return append(many("g", 20, 10), other()) },
			check: func(w *world) {
				for range 70 {
					w.add(other())
					w.pass(time.Minute)
				}
				w.check(expect{stored: words("g", 20) + " other×71", requests: 1000})
			},
			want: &expect{stored: "other", left: words("g", 20)},
		},
		{
			name:  "405, a URL that takes no pushes: held",
			setup: func(w *world) { w.fake.script = until(time.Hour, &reply{status: 405}) },
			add:   func() []Entry { return []Entry{entry("g1")} },
			want:  &expect{left: "g1"},
		},
		{
			name: "redirect: held, nothing is sent elsewhere",
			setup: func(w *world) {
				w.fake.script = until(time.Hour, &reply{status: 302, header: map[string]string{"Location": "http://elsewhere.test/login"}})
			},
			add:  func() []Entry { return []Entry{entry("g1")} },
			want: &expect{left: "g1"},
		},
		{
			name: "200 with a web page: not an ack",
			setup: func(w *world) {
				w.fake.script = until(time.Hour, &reply{status: 200, header: map[string]string{"Content-Type": "text/html; charset=utf-8"}, body: "<html>log in</html>"})
			},
			add:  func() []Entry { return []Entry{entry("g1")} },
			want: &expect{left: "g1"},
		},
		{
			name: "200 is an ack",
			setup: func(w *world) {
				w.fake.script = until(time.Hour, &reply{status: 200, header: map[string]string{"Content-Type": "application/json"}, body: "{}"})
			},
			add:  func() []Entry { return []Entry{entry("g1")} },
			want: &expect{},
		},
		{
			name:  "404 for an hour, then right",
			setup: func(w *world) { w.fake.script = until(time.Hour, &reply{status: 404, body: "404 page not found"}) },
			add:   func() []Entry { return []Entry{entry("g1"), other()} },
			wait:  61 * time.Minute,
			want:  &expect{stored: "g1 other"},
		},
		{
			name: "unknown 400 for everything: a wrong URL must cost nothing",
			setup: func(w *world) {
				w.fake.script = until(time.Hour, &reply{status: 400, body: `unsupported path requested: "/loki/api/v1/push"`})
			},
			add:  func() []Entry { return append(many("g", 100, 10), other()) },
			wait: 30 * time.Minute,
			check: func(w *world) {
				w.pass(40 * time.Minute)
				w.check(expect{stored: words("g", 100) + " other"})
			},
			want: &expect{left: words("g", 100) + " other"},
		},
		{
			name: "unknown 400 for everything from an endpoint that has worked",
			setup: func(w *world) {
				w.fake.script = func(n int, _ *http.Request, _ []string) *reply {
					if n > 0 && time.Since(w.began) < 30*time.Minute {
						return &reply{status: 400, body: "unknown route"}
					}
					return nil
				}
			},
			add: func() []Entry { return []Entry{entry("first")} },
			check: func(w *world) {
				w.add(append(many("g", 30, 10), other())...)
				w.pass(20 * time.Minute)
				w.check(expect{stored: "first", left: words("g", 30) + " other"})
				w.pass(20 * time.Minute)
				w.check(expect{stored: "first " + words("g", 30) + " other"})
			},
		},
		{
			name:  "unknown 400 for one entry",
			setup: func(w *world) { w.fake.script = refuse("bad", 400, "entry for stream '{}' has timestamp too old") },
			add:   func() []Entry { return append(append(many("g", 20, 10), entry("bad")), many("h", 20, 10)...) },
			want:  &expect{stored: words("g", 20) + " " + words("h", 20), dropped: map[Reason]uint64{TooOld: 1}, requests: 14},
		},
		{
			name:  "unknown 4xx for one entry at the head of the queue",
			setup: func(w *world) { w.fake.script = refuse("bad", 422, "no") },
			add:   func() []Entry { return append([]Entry{entry("bad")}, many("g", 20, 10)...) },
			want:  &expect{stored: words("g", 20), dropped: map[Reason]uint64{Unknown: 1}, requests: 14},
		},
		{
			name: "network error, timeout, 408, 502, 504: again",
			setup: func(w *world) {
				n := 0
				w.rt.broken = func() error {
					if n++; n == 1 {
						return fmt.Errorf("dial tcp 127.0.0.1:3100: connect: connection refused")
					}
					return nil
				}
				w.rt.hang = func() time.Duration {
					if n == 2 {
						return time.Hour
					}
					return 0
				}
				w.fake.script = func(i int, _ *http.Request, _ []string) *reply {
					if codes := []int{408, 502, 504, 503}; i < len(codes) {
						return &reply{status: codes[i]}
					}
					return nil
				}
			},
			add:  func() []Entry { return []Entry{entry("g1"), entry("g2")} },
			wait: 3 * time.Minute,
			want: &expect{stored: "g1 g2"},
		},
	} {
		t.Run(strings.NewReplacer(" ", "_", ",", "", ":", "").Replace(row.name), func(t *testing.T) {
			simulate(t, func(w *world) {
				if row.setup != nil {
					row.setup(w)
				}
				w.add(row.add()...)
				w.start()
				wait := row.wait
				if wait == 0 {
					wait = time.Minute
				}
				w.pass(wait)
				if row.want != nil {
					w.check(*row.want)
				}
				if row.check != nil {
					row.check(w)
				}
			})
		})
	}
}

// refuse answers any request that has an entry beginning with word, and
// stores nothing of it.
func refuse(bad string, status int, body string) func(int, *http.Request, []string) *reply {
	return func(_ int, _ *http.Request, lines []string) *reply {
		for _, l := range lines {
			if word(l) == bad {
				return &reply{status: status, body: body}
			}
		}
		return nil
	}
}

// until answers everything with rep for a while.
func until(d time.Duration, rep *reply) func(int, *http.Request, []string) *reply {
	var from time.Time
	return func(int, *http.Request, []string) *reply {
		if from.IsZero() {
			from = time.Now()
		}
		if time.Since(from) < d {
			return rep
		}
		return nil
	}
}

// many makes n entries of about size bytes, a millisecond apart.
func many(prefix string, n, size int) []Entry {
	out := []Entry{}
	for i := range n {
		e := entry(fmt.Sprintf("%s%02d %s", prefix, i, strings.Repeat("x", size)))
		e.Time = e.Time.Add(time.Duration(i) * time.Millisecond)
		out = append(out, e)
	}
	return out
}

func words(prefix string, n int) string {
	out := []string{}
	for i := range n {
		out = append(out, fmt.Sprintf("%s%02d", prefix, i))
	}
	return strings.Join(out, " ")
}

// inStream checks that the line "g1" is in a certain stream.
func inStream(want string) func(w *world) {
	return func(w *world) {
		w.t.Helper()
		if where, _ := w.fake.find("g1"); len(where) != 1 || where[0] != want {
			w.t.Errorf("in stream %v, want %s", where, want)
		}
	}
}
