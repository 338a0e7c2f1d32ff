package loki

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeLoki answers pushes as a real Loki does, with its texts: what is
// validated where, what is stored beside a refusal, and what is not. It is
// strict where we must never err: such requests fail the test.
type fakeLoki struct {
	t *testing.T

	// Limits; zero values are Loki's defaults.
	maxLine, maxLabels, maxValue  int
	maxMetadata, maxMetadataBytes int
	noMetadata                    bool
	maxStreams                    int
	maxBody, maxMessage           int // decompressed request; message to the ingester
	auth                          bool
	requiredLabel                 string
	clockBehind                   time.Duration
	tenantRate, tenantBurst       int // bytes a second
	streamRate                    int // bytes a second, of streams with namespace="limited"
	script                        func(n int, r *http.Request, lines []string) *reply
	shards                        bool // counts "out of" per shard
	legacyAcceptsManyStreams      bool
	onStored                      func(labels, line string)
	requests                      []request
	streams                       map[string]*fakeStream
	tenantTokens                  float64
	tenantAt                      time.Time

	mu sync.Mutex
}

type reply struct {
	status int
	header map[string]string
	body   string
}

// request is what the tests look at afterwards.
type request struct {
	at      time.Time
	status  int
	labels  string
	lines   []string
	bytes   int
	path    string
	header  http.Header
	answer  string
	streams int
}

type fakeStream struct {
	newest  time.Time
	entries []stored
	have    map[string]bool
	tokens  float64
	at      time.Time
}

type stored struct {
	Time     time.Time
	Line     string
	Metadata map[string]string
}

type pushValue struct {
	ts   int64
	line string
	meta map[string]string
}

type pushStream struct {
	labels map[string]string
	values []pushValue
}

func newFakeLoki(t *testing.T) *fakeLoki {
	return &fakeLoki{t: t, streams: map[string]*fakeStream{}}
}

func or(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}

func (f *fakeLoki) now() time.Time { return time.Now().Add(-f.clockBehind) }

func (f *fakeLoki) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	rep, req := f.push(r, body)
	req.at, req.path, req.header, req.status, req.answer = time.Now(), r.URL.RequestURI(), r.Header.Clone(), rep.status, rep.body
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	w.Header().Set("Date", f.now().UTC().Format(http.TimeFormat))
	for k, v := range rep.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(rep.status)
	io.WriteString(w, rep.body)
}

func (f *fakeLoki) push(r *http.Request, body []byte) (reply, request) {
	var req request
	plain, rep := f.unpack(r, body)
	streams, err := decodePush(plain)
	for _, s := range streams {
		req.labels = labelText(s.labels)
		for _, v := range s.values {
			req.lines = append(req.lines, v.line)
		}
	}
	req.bytes, req.streams = len(plain), len(streams)
	if f.script != nil {
		if rep := f.script(len(f.requests), r, req.lines); rep != nil {
			return *rep, req
		}
	}
	if rep != nil {
		return *rep, req
	}
	if err != nil {
		return reply{status: 400, body: "loghttp.PushRequest.Streams: " + err.Error()}, req
	}
	if len(plain) > or(f.maxBody, 100<<20) {
		return reply{status: 413, body: fmt.Sprintf("request body too large: message size too large than max (%d vs %d)", len(plain), f.maxBody)}, req
	}
	if f.auth && r.Header.Get("X-Scope-OrgID") == "" {
		return reply{status: 401, body: "no org id"}, req
	}
	if len(streams) == 0 {
		f.t.Error("a request without a stream")
		return reply{status: 422, body: "error at least one valid stream is required for ingestion"}, req
	}
	if len(streams) > 1 && !f.legacyAcceptsManyStreams {
		f.t.Error("more than one stream in a request: Loki may lose one without a word")
	}
	return f.ingest(streams[0], len(plain)), req
}

func (f *fakeLoki) unpack(r *http.Request, body []byte) ([]byte, *reply) {
	if r.Method != http.MethodPost {
		return nil, &reply{status: 405}
	}
	ct, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, &reply{status: 400, body: "mime: no media type"}
	}
	if ct != "application/json" {
		return nil, &reply{status: 400, body: "snappy: corrupt input"}
	}
	if r.Header.Get("Content-Encoding") != "gzip" {
		return nil, &reply{status: 400, body: fmt.Sprintf("Content-Encoding %q not supported", r.Header.Get("Content-Encoding"))}
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, &reply{status: 400, body: "gzip: invalid header"}
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return nil, &reply{status: 400, body: err.Error()}
	}
	return plain, nil
}

// decodePush reads a request as strictly as Loki does: stamps are strings of
// digits, everything else is a string too.
func decodePush(plain []byte) ([]pushStream, error) {
	var body struct {
		Streams []struct {
			Stream map[string]string
			Values [][]json.RawMessage
		}
	}
	if !json.Valid(plain) {
		return nil, fmt.Errorf("unexpected end of JSON input")
	}
	if err := json.Unmarshal(plain, &body); err != nil {
		return nil, err
	}
	var out []pushStream
	for _, s := range body.Streams {
		ps := pushStream{labels: s.Stream}
		for _, v := range s.Values {
			if len(v) != 2 && len(v) != 3 {
				return nil, fmt.Errorf("value has %d parts", len(v))
			}
			var pv pushValue
			var ts string
			if err := json.Unmarshal(v[0], &ts); err != nil {
				return nil, err
			}
			n, err := strconv.ParseInt(ts, 10, 64)
			if err != nil || strconv.FormatInt(n, 10) != ts {
				return nil, fmt.Errorf("stamp %q", ts)
			}
			pv.ts = n
			if err := json.Unmarshal(v[1], &pv.line); err != nil {
				return nil, err
			}
			if len(v) == 3 {
				if err := json.Unmarshal(v[2], &pv.meta); err != nil {
					return nil, err
				}
			}
			ps.values = append(ps.values, pv)
		}
		out = append(out, ps)
	}
	return out, nil
}

func labelText(labels map[string]string) string {
	names := []string{}
	for n := range labels {
		names = append(names, n)
	}
	slices.Sort(names)
	parts := []string{}
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%s=%q", n, labels[n]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var (
	goodLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	goodMeta  = regexp.MustCompile(`^[a-z_]*[a-z][a-z0-9_]*$`)
)

// ingest is the distributor's part.
func (f *fakeLoki) ingest(s pushStream, size int) reply {
	name := labelText(s.labels)
	if len(s.labels) == 0 || len(s.values) == 0 {
		f.t.Errorf("stream %s with %d values", name, len(s.values))
	}
	for n, v := range s.labels {
		if !goodLabel.MatchString(n) {
			f.t.Errorf("label name %q was sent", n)
			return reply{status: 400, body: fmt.Sprintf("couldn't parse labels: 1:5: parse error: unexpected character: %q", n)}
		}
		if v == "" {
			f.t.Errorf("label %s is empty", n)
		}
		if len(v) > or(f.maxValue, 2048) {
			return reply{status: 400, body: fmt.Sprintf("stream '%s' has label value too long: '%s'", name, v)}
		}
	}
	if f.requiredLabel != "" && s.labels[f.requiredLabel] == "" {
		return reply{status: 400, body: fmt.Sprintf("missing required labels '%s' for user fake", f.requiredLabel)}
	}
	if n := len(s.labels); n > or(f.maxLabels, 15) {
		return reply{status: 400, body: fmt.Sprintf("entry for stream '%s' has %d label names; limit %d", name, n, or(f.maxLabels, 15))}
	}
	fine, refusals := f.validate(name, s.values)
	if f.tenantRate > 0 && !take(&f.tenantTokens, &f.tenantAt, f.now(), float64(f.tenantRate), float64(f.tenantBurst), float64(size)) {
		return reply{status: 429, body: fmt.Sprintf("ingestion rate limit exceeded for user fake (limit: %d bytes/sec) while attempting to ingest '%d' lines totaling '%d' bytes, reduce log volume or contact your Loki administrator", f.tenantRate, len(s.values), size)}
	}
	if size > or(f.maxMessage, 4<<20) {
		return reply{status: 500, body: fmt.Sprintf("rpc error: code = ResourceExhausted desc = grpc: received message larger than max (%d vs. %d)", size, or(f.maxMessage, 4<<20))}
	}
	// The ingester's errors hide the distributor's.
	if rep := f.store(s.labels, name, fine); rep != nil {
		return *rep
	}
	if len(refusals) > 0 {
		return reply{status: 400, body: group2(refusals)}
	}
	return reply{status: 204}
}

func (f *fakeLoki) validate(name string, values []pushValue) (fine []pushValue, refusals []string) {
	now := f.now()
	for _, v := range values {
		at := time.Unix(0, v.ts).UTC()
		metaBytes := 0
		for n, m := range v.meta {
			metaBytes += len(n) + len(m)
			if !goodMeta.MatchString(n) {
				f.t.Errorf("metadata name %q was sent", n)
			}
		}
		switch oldest := now.Add(-7 * 24 * time.Hour); {
		case at.Before(oldest):
			refusals = append(refusals, fmt.Sprintf("entry for stream '%s' has timestamp too old: %s, oldest acceptable timestamp is: %s", name, at.Format(time.RFC3339), oldest.UTC().Format(time.RFC3339)))
		case at.After(now.Add(10 * time.Minute)):
			refusals = append(refusals, fmt.Sprintf("entry for stream '%s' has timestamp too new: %s", name, at.Format(time.RFC3339)))
		case len(v.line) > or(f.maxLine, 262144):
			refusals = append(refusals, fmt.Sprintf("Max entry size '%d' bytes exceeded for stream '%s' while adding an entry with length '%d' bytes", or(f.maxLine, 262144), name, len(v.line)))
		case f.noMetadata && len(v.meta) > 0:
			refusals = append(refusals, fmt.Sprintf("stream '%s' includes structured metadata, but this feature is disallowed. Please see `limits_config.allow_structured_metadata` or contact your Loki administrator to enable it", name))
		case len(v.meta) > or(f.maxMetadata, 128):
			refusals = append(refusals, fmt.Sprintf("stream '%s' has too many structured metadata labels: '%d', limit: '%d'. Please see `limits_config.max_structured_metadata_entries_count`", name, len(v.meta), or(f.maxMetadata, 128)))
		case metaBytes > or(f.maxMetadataBytes, 64<<10):
			refusals = append(refusals, fmt.Sprintf("stream '%s' has structured metadata too large: '%d' bytes, limit: '%d' bytes. Please see `limits_config.max_structured_metadata_size`", name, metaBytes, or(f.maxMetadataBytes, 64<<10)))
		default:
			fine = append(fine, v)
		}
	}
	return fine, refusals
}

// group2 joins refusals as the distributor does: equal ones are counted.
func group2(refusals []string) string {
	if len(refusals) == 1 {
		return refusals[0]
	}
	var order []string
	n := map[string]int{}
	for _, r := range refusals {
		if n[r]++; n[r] == 1 {
			order = append(order, r)
		}
	}
	parts := []string{}
	for _, r := range order {
		parts = append(parts, fmt.Sprintf("%d errors like: %s", n[r], r))
	}
	return strings.Join(parts, "; ")
}

// take is a token bucket.
func take(tokens *float64, at *time.Time, now time.Time, rate, burst, n float64) bool {
	if at.IsZero() {
		*tokens = burst
	} else {
		*tokens = min(burst, *tokens+now.Sub(*at).Seconds()*rate)
	}
	*at = now
	if *tokens < n {
		return false
	}
	*tokens -= n
	return true
}

// store is the ingester's part.
func (f *fakeLoki) store(labels map[string]string, name string, values []pushValue) *reply {
	s := f.streams[name]
	if s == nil {
		if f.maxStreams > 0 && len(f.streams) >= f.maxStreams {
			return &reply{status: 429, body: fmt.Sprintf("maximum active stream limit exceeded when trying to create stream %s, reduce the number of active streams (reduce labels or reduce label values), or contact your Loki administrator to see if the limit can be increased, user: 'fake'", name)}
		}
		s = &fakeStream{have: map[string]bool{}}
		f.streams[name] = s
	}
	size := 0
	for _, v := range values {
		size += len(v.line)
	}
	if f.streamRate > 0 && labels["namespace"] == "limited" && !take(&s.tokens, &s.at, f.now(), float64(f.streamRate), float64(f.streamRate), float64(size)) {
		text := ""
		for _, v := range values[:min(len(values), 10)] {
			text += fmt.Sprintf("entry with timestamp %s ignored, reason: 'Per stream rate limit exceeded (limit: 1KB/sec) while attempting to ingest for stream '%s' totaling %dB, consider splitting a stream via additional labels',\n", time.Unix(0, v.ts).UTC(), name, size)
		}
		return &reply{status: 429, body: fmt.Sprintf("%suser 'fake', total ignored: %d out of %d for stream: %s", text, len(values), len(values), name)}
	}
	late, text := 0, ""
	for _, v := range values {
		at := time.Unix(0, v.ts).UTC()
		if bound := s.newest.Add(-time.Hour); at.Before(bound) {
			if late++; late <= 10 {
				text += fmt.Sprintf("entry with timestamp %s ignored, reason: 'entry too far behind, entry timestamp is: %s, oldest acceptable timestamp is: %s',\n", at, at.Format(time.RFC3339), bound.UTC().Format(time.RFC3339))
			}
			continue
		}
		if at.After(s.newest) {
			s.newest = at
		}
		meta, _ := json.Marshal(v.meta)
		id := fmt.Sprint(v.ts, v.line, string(meta))
		if s.have[id] {
			continue
		}
		s.have[id] = true
		s.entries = append(s.entries, stored{at, v.line, v.meta})
		if f.onStored != nil {
			f.onStored(name, v.line)
		}
	}
	if late > 0 {
		total := len(values)
		if f.shards {
			total = total/2 + 1
		}
		return &reply{status: 400, body: fmt.Sprintf("%suser 'fake', total ignored: %d out of %d for stream: %s", text, late, total, name)}
	}
	return nil
}

// lines returns what is stored, as "line" per stream name.
func (f *fakeLoki) lines() map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]string{}
	for name, s := range f.streams {
		for _, e := range s.entries {
			out[name] = append(out[name], e.Line)
		}
	}
	return out
}

// find returns the stored entries whose line begins with prefix, and where.
func (f *fakeLoki) find(prefix string) (where []string, found []stored) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range f.streams {
		for _, e := range s.entries {
			if strings.HasPrefix(e.Line, prefix) {
				where, found = append(where, name), append(found, e)
			}
		}
	}
	return where, found
}

func (f *fakeLoki) log() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// direct is a RoundTripper that calls a handler without a network, so that
// time can be simulated.
type direct struct {
	handler http.Handler
	broken  func() error // a network error instead, if it returns one
	hang    func() time.Duration
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.broken != nil {
		if err := d.broken(); err != nil {
			return nil, err
		}
	}
	if d.hang != nil {
		if wait := d.hang(); wait > 0 {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}
