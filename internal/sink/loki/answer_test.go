package loki

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	type want struct {
		do     action
		reason Reason
		hold   bool
	}
	for _, tc := range []struct {
		status int
		body   string
		want   want
	}{
		{204, "", want{do: accepted}},
		{200, "", want{do: accepted}},
		{201, "", want{later, Blocked, true}},
		{260, "ingestion blocked for user 't'", want{later, Blocked, true}},
		{301, "", want{later, Auth, true}},
		{307, "", want{later, Auth, true}},
		{400, "entry for stream '{}' has timestamp too old: x", want{inspect, TooOld, false}},
		{400, "something new", want{inspect, Unknown, false}},
		{400, "multiple org IDs present", want{later, Auth, true}},
		{400, "tenant ID 'a/b' contains unsupported character '/'", want{later, Auth, true}},
		{400, "missing required labels 'namespace' for user fake", want{later, Auth, true}},
		{400, "mime: no media type", want{later, Auth, true}},
		{400, "snappy: corrupt input", want{later, Auth, true}},
		{400, `Content-Encoding "zstd" not supported`, want{later, Auth, true}},
		{400, "gzip: invalid header", want{later, Auth, true}},
		{400, "couldn't parse labels: 1:5: parse error", want{fewer, InvalidLabels, false}},
		{400, "stream '{a=\"b\"}' has duplicate label name: 'a'", want{fewer, InvalidLabels, false}},
		{400, "entry for stream '{}' has 16 label names; limit 15", want{fewer, InvalidLabels, false}},
		{400, "stream '{}' has label value too long: 'x'", want{fewer, InvalidLabels, false}},
		{400, "loghttp.PushRequest.Streams: []", want{halves, Malformed, false}},
		{401, "no org id", want{later, Auth, true}},
		{403, "", want{later, Auth, true}},
		{404, "", want{later, Auth, true}},
		{405, "", want{later, Auth, true}},
		{407, "", want{later, Auth, true}},
		{408, "", want{later, Unknown, false}},
		{413, "request body too large", want{halves, TooLarge, false}},
		{422, "error at least one valid stream is required for ingestion", want{halves, Unknown, false}},
		{425, "", want{later, Unknown, false}},
		{429, "ingestion rate limit exceeded for user X", want{later, RateLimited, false}},
		{429, "", want{later, RateLimited, false}},
		{429, "entry ignored, reason: 'Per stream rate limit exceeded (limit: 1KB/sec)'", want{slower, RateLimited, false}},
		{429, "maximum active stream limit exceeded when trying to create stream {}", want{fewer, StreamLimit, false}},
		{429, "Maximum active stream limit exceeded, reduce the number of active streams", want{fewer, StreamLimit, false}},
		{500, "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5002812 vs. 4194304)", want{halves, TooLarge, false}},
		{500, "label name is empty", want{halves, Malformed, false}},
		{500, "empty ring", want{later, Unknown, false}},
		{500, "at least 1 live replicas required, could only find 0", want{later, Unknown, false}},
		{501, "", want{later, Auth, true}},
		{502, "", want{later, Unknown, false}},
		{503, "", want{later, Unknown, false}},
		{504, "", want{later, Unknown, false}},
		{520, "", want{later, Unknown, false}},
	} {
		v := judge(answer{status: tc.status, body: tc.body})
		if got := (want{v.do, v.reason, v.hold}); got != tc.want {
			t.Errorf("%d %q: %+v, want %+v", tc.status, tc.body, got, tc.want)
		}
		if v.sentence() == "" {
			t.Errorf("%d has no sentence", tc.status)
		}
	}
	if v := judge(answer{err: errors.New("refused")}); v.do != later {
		t.Errorf("%+v", v)
	}
	if v := judge(answer{status: 200, header: http.Header{"Content-Type": {"text/html"}}}); v.do != later || !v.hold {
		t.Errorf("a web page is %+v", v)
	}
	v := judge(answer{status: 429, body: "ingestion rate limit exceeded for user fake (limit: 3000 bytes/sec) while attempting to ingest '7' lines totaling '13132' bytes, reduce"})
	if v.limit != 3000 || v.total != 13132 {
		t.Errorf("%+v", v)
	}
	for body, poison := range map[string]bool{"internal error": true, "empty ring": false, "context canceled": false, "": true} {
		if v := judge(answer{status: 500, body: body}); v.poison != poison {
			t.Errorf("500 %q: poison %v", body, v.poison)
		}
	}
}

func TestExplain(t *testing.T) {
	base := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	at := func(s int, line int, md ...Pair) item {
		return item{entry: Entry{Time: base.Add(time.Duration(s) * time.Second), Line: strings.Repeat("x", line), Metadata: md}}
	}
	four := []item{at(0, 10), at(1, 2000), at(2, 10), at(3, 3000)}
	old := func(s int) string {
		return fmt.Sprintf(`entry for stream '{a="b; 1 c"}' has timestamp too old: %s, oldest acceptable timestamp is: 2026-11-30T10:00:00Z`, base.Add(time.Duration(s)*time.Second).Format(time.RFC3339))
	}
	behind := func(n, m int) string {
		return fmt.Sprintf("entry with timestamp 2026-11-30 09:00:00 +0000 UTC ignored, reason: 'entry too far behind, entry timestamp is: 2026-11-30T09:00:00Z, oldest acceptable timestamp is: 2026-11-30T09:00:01Z',\nuser 'fake', total ignored: %d out of %d for stream: {a=\"b\"}", n, m)
	}
	for name, tc := range map[string]struct {
		body  string
		items []item
		want  map[int]fault
		whole bool
	}{
		"one too old":                {old(1), four, map[int]fault{1: {reason: TooOld}}, true},
		"two too old":                {"1 errors like: " + old(0) + "; 1 errors like: " + old(2), four, map[int]fault{0: {reason: TooOld}, 2: {reason: TooOld}}, true},
		"one that we do not have":    {old(77), four, nil, false},
		"more than we have":          {"2 errors like: " + old(1), four, nil, false},
		"too old, no stamp":          {"entry for stream '{}' has timestamp too old", four, nil, false},
		"too old, nonsense stamp":    {"entry for stream '{}' has timestamp too old: 2026-99-99T00:00:00Z", four, nil, false},
		"too new":                    {"entry for stream '{}' has timestamp too new: 2026-11-30T09:00:03Z", four, map[int]fault{3: {reason: TooNew}}, true},
		"too long":                   {"2 errors like: Max entry size '1000' bytes exceeded for stream '{}' while adding an entry with length '2000' bytes", four, map[int]fault{1: {LineTooLong, 1000}, 3: {LineTooLong, 1000}}, true},
		"too long, each":             {"1 errors like: max entry size '2500' bytes exceeded for stream '{}' while adding an entry with length '3000' bytes; 1 errors like: " + old(0), four, map[int]fault{3: {LineTooLong, 2500}, 0: {reason: TooOld}}, true},
		"too long, no limit":         {"max entry size exceeded", four, nil, false},
		"a single entry needs no id": {"entry for stream '{}' has timestamp too old", four[:1], map[int]fault{0: {reason: TooOld}}, true},
		"a single entry, unknown":    {"no", four[:1], nil, false},
		"behind":                     {behind(2, 4), four, map[int]fault{0: {reason: TooFarBehind}, 1: {reason: TooFarBehind}}, true},
		"behind, all":                {behind(4, 4), four[:4], map[int]fault{0: {reason: TooFarBehind}, 1: {reason: TooFarBehind}, 2: {reason: TooFarBehind}, 3: {reason: TooFarBehind}}, true},
		"behind, other count":        {behind(1, 3), four, map[int]fault{0: {reason: TooFarBehind}, 1: {reason: TooFarBehind}}, false},
		"behind, no bound":           {"entry too far behind", four, nil, false},
		"behind and rate":            {behind(2, 4) + " Per stream rate limit exceeded", four, nil, false},
		"metadata disallowed": {"1 errors like: stream '{}' includes structured metadata, but this feature is disallowed. Please see `limits_config.allow_structured_metadata`",
			[]item{at(0, 1), at(1, 1, Pair{"a", "b"})}, map[int]fault{1: {reason: MetadataTooLarge}}, true},
		"metadata disallowed, said once": {"stream '{}' includes structured metadata, but this feature is disallowed",
			[]item{at(0, 1, Pair{"a", "b"}), at(1, 1), at(2, 1, Pair{"a", "b"})}, map[int]fault{0: {reason: MetadataTooLarge}, 2: {reason: MetadataTooLarge}}, true},
		"metadata too many": {"stream '{}' has too many structured metadata labels: '2', limit: '1'", []item{at(0, 1, Pair{"a", "b"}), at(1, 1, Pair{"a", "b"}, Pair{"c", "d"})},
			map[int]fault{1: {MetadataTooLarge, 1}}, true},
		"metadata too large": {"stream '{}' has structured metadata too large: '7' bytes, limit: '5' bytes", []item{at(0, 1, Pair{"a", "b"}), at(1, 1, Pair{"a", "123456"})},
			map[int]fault{1: {MetadataTooLarge, 5}}, true},
		"metadata, no limit": {"structured metadata", four, nil, false},
		"nothing":            {"", four, nil, false},
	} {
		got, whole := explain(tc.body, tc.items)
		if len(got) == 0 {
			got, whole = nil, false
		}
		if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(fault{})); d != "" || whole != tc.whole {
			t.Errorf("%s: whole %v; faults (-want +got):\n%s", name, whole, d)
		}
	}
}

// FuzzAnswer: no answer, however garbled, ends the process or names entries
// that are not there.
func FuzzAnswer(f *testing.F) {
	f.Add(400, "2 errors like: entry for stream '{}' has timestamp too old: 2026-11-30T09:00:00Z; 1 errors like: max entry size '1' bytes exceeded", "3")
	f.Add(400, "too far behind total ignored: 99 out of 2 oldest acceptable timestamp is: 2026-11-30T09:00:00Z", "Mon, 30 Nov 2026 09:00:07 GMT")
	f.Add(429, "(limit: 99999999999999999999 bytes/sec) while totaling '1' bytes", "-1")
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		a := answer{status: status, body: body, header: http.Header{"Retry-After": {after}}, when: time.Unix(1, 0)}
		v := judge(a)
		if v.wait < 0 || v.wait > maxRetryAfter {
			t.Errorf("wait %v", v.wait)
		}
		if v.do == accepted && status != 200 && status != 204 {
			t.Errorf("status %d is an ack", status)
		}
		for n := range 4 {
			items := make([]item, n)
			for i := range items {
				items[i].entry = Entry{Time: time.Unix(int64(i), 0), Line: "line"}
			}
			faults, _ := explain(body, items)
			for i := range faults {
				if i < 0 || i >= n {
					t.Errorf("entry %d of %d", i, n)
				}
			}
		}
	})
}
