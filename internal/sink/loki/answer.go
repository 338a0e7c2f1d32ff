package loki

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Reason says why an entry was dropped, or what an endpoint is held for.
type Reason string

// Reasons. Each has a counter from the start.
const (
	TooOld           Reason = "too_old"
	TooNew           Reason = "too_new"
	TooFarBehind     Reason = "too_far_behind"
	LineTooLong      Reason = "line_too_long"
	InvalidLabels    Reason = "invalid_labels"
	MetadataTooLarge Reason = "metadata_too_large"
	RateLimited      Reason = "rate_limited"
	StreamLimit      Reason = "stream_limit"
	Blocked          Reason = "blocked"
	Auth             Reason = "auth"
	Malformed        Reason = "malformed"
	QueueFull        Reason = "queue_full"
	TooLarge         Reason = "too_large"
	Unknown          Reason = "unknown"
)

// Reasons lists them all.
func Reasons() []Reason {
	return []Reason{TooOld, TooNew, TooFarBehind, LineTooLong, InvalidLabels, MetadataTooLarge, RateLimited,
		StreamLimit, Blocked, Auth, Malformed, QueueFull, TooLarge, Unknown}
}

// action is what an answer asks of us.
type action int

const (
	accepted action = iota // every entry is stored
	later                  // nothing is stored; the endpoint has to recover first
	slower                 // this stream has to wait, the others need not
	fewer                  // the labels are not welcome: try with fewer
	halves                 // nothing is stored and the same bytes never will be: send parts
	inspect                // some entries are refused, the others are stored
)

// verdict is the meaning of an answer.
type verdict struct {
	do     action
	reason Reason
	hold   bool          // nothing but a person can change this: configuration or permission
	wait   time.Duration // Retry-After; 0: not said
	poison bool          // a 500 that may be due to one entry
	// Of a rate limit, as far as the text says: what is allowed and what this
	// request had, in bytes.
	limit, total int
}

// maxRetryAfter is the longest pause we take orders for.
const maxRetryAfter = 5 * time.Minute

// judge reads an answer. What Loki means is only partly in the status: one 2xx
// stores nothing, 400 stores most, and some 500s are for ever.
func judge(a answer) verdict {
	v := judgeStatus(a, strings.ToLower(a.body))
	v.wait = retryAfter(a.header.Get("Retry-After"), a.when)
	return v
}

func judgeStatus(a answer, text string) verdict {
	switch s := a.status; {
	case a.err != nil:
		return verdict{do: later, reason: Unknown}
	case s == http.StatusOK && strings.HasPrefix(a.header.Get("Content-Type"), "text/html"):
		return verdict{do: later, reason: Auth, hold: true} // somebody's login page
	case s == http.StatusNoContent, s == http.StatusOK:
		return verdict{do: accepted}
	case s/100 == 2: // 260: ingestion blocked; no other has a meaning either
		return verdict{do: later, reason: Blocked, hold: true}
	case s/100 == 3, s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusNotFound,
		s == http.StatusMethodNotAllowed, s == http.StatusProxyAuthRequired, s == http.StatusNotImplemented:
		return verdict{do: later, reason: Auth, hold: true}
	case s == http.StatusBadRequest:
		return judge400(text)
	case s == http.StatusRequestEntityTooLarge:
		return verdict{do: halves, reason: TooLarge}
	case s == http.StatusTooManyRequests:
		return judge429(text)
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly:
		return verdict{do: later, reason: Unknown}
	case s/100 == 4:
		return verdict{do: halves, reason: Unknown}
	case s == http.StatusInternalServerError:
		return judge500(text)
	}
	return verdict{do: later, reason: Unknown}
}

func judge400(text string) verdict {
	switch {
	case mentions(text, "no org id", "org ids present", "tenant id", "missing required labels", "mime:", "snappy:", "content-encoding", "content-type", "gzip:"):
		return verdict{do: later, reason: Auth, hold: true}
	case mentions(text, "label names; limit", "has label value too long", "has label name too long", "has duplicate label name", "parse labels"):
		return verdict{do: fewer, reason: InvalidLabels}
	case mentions(text, "loghttp.pushrequest", "readmapcb", "unexpected end of json"):
		return verdict{do: halves, reason: Malformed}
	}
	return verdict{do: inspect, reason: reasonOf(text)}
}

var rateText = regexp.MustCompile(`limit: (\d+) bytes/sec\).* totaling '(\d+)' bytes`)

func judge429(text string) verdict {
	switch {
	case strings.Contains(text, "per stream rate limit"):
		return verdict{do: slower, reason: RateLimited}
	case strings.Contains(text, "active stream limit"), strings.Contains(text, "maximum number of streams"):
		return verdict{do: fewer, reason: StreamLimit}
	}
	v := verdict{do: later, reason: RateLimited}
	if m := rateText.FindStringSubmatch(text); m != nil {
		v.limit, _ = strconv.Atoi(m[1])
		v.total, _ = strconv.Atoi(m[2])
	}
	return v
}

func judge500(text string) verdict {
	switch {
	case strings.Contains(text, "larger than max"): // gRPC's 4 MiB between distributor and ingester
		return verdict{do: halves, reason: TooLarge}
	case mentions(text, "label name is empty", "normalization for label name"):
		return verdict{do: halves, reason: Malformed}
	case mentions(text, "empty ring", "live replicas", "shutting down", "context canceled", "deadline exceeded"):
		return verdict{do: later, reason: Unknown}
	}
	return verdict{do: later, reason: Unknown, poison: true}
}

func mentions(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// retryAfter understands both forms, seconds and a date, and is bounded.
func retryAfter(value string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
		d = time.Duration(min(n, int(maxRetryAfter/time.Second))) * time.Second
	} else if t, err := http.ParseTime(value); err == nil {
		d = t.Sub(now)
	}
	return max(0, min(d, maxRetryAfter))
}

// fault is what one entry of a batch was refused for.
type fault struct {
	reason Reason
	limit  int // the server's, where it names one
}

var (
	groupText    = regexp.MustCompile(`(\d+) errors like: `)
	ignoredText  = regexp.MustCompile(`total ignored: (\d+) out of (\d+)`)
	boundText    = regexp.MustCompile(`too far behind.*?oldest acceptable timestamp is: ([0-9T:.Z+-]+)`)
	stampText    = regexp.MustCompile(`has timestamp too (?:old|new): ([0-9tz:.+-]+)`)
	entryText    = regexp.MustCompile(`max entry size '?(\d+)'? bytes exceeded`)
	limitText    = regexp.MustCompile(`limit: '?(\d+)'?`)
	disallowText = "structured metadata, but this feature is disallowed"
)

func reasonOf(text string) Reason {
	switch {
	case mentions(text, "too far behind", "out of order"):
		return TooFarBehind
	case strings.Contains(text, "timestamp too old"):
		return TooOld
	case strings.Contains(text, "timestamp too new"):
		return TooNew
	case strings.Contains(text, "max entry size"):
		return LineTooLong
	case strings.Contains(text, "structured metadata"):
		return MetadataTooLarge
	}
	return Unknown
}

// explain finds the entries that a 400 is about. items are in the order in
// which they were sent, that is by time. No faults: the text does not say, and
// the batch has to be sent again in parts. whole says that the text accounts
// for every refusal, so that the entries that are not named are stored.
func explain(body string, items []item) (faults map[int]fault, whole bool) {
	text := strings.ToLower(body)
	if reason := reasonOf(text); len(items) == 1 && reason != Unknown {
		return map[int]fault{0: {reason, limitOf(text)}}, true
	}
	if reasonOf(text) == TooFarBehind {
		return explainBehind(text, body, items)
	}
	faults = map[int]fault{}
	for _, g := range groups(text) {
		if !g.find(items, faults) {
			return nil, false
		}
	}
	return faults, true
}

// explainBehind: what is too far behind are the oldest entries of the batch,
// and the ingester says how many of how many. If it did not get our whole
// batch, because busy streams are split into shards or the distributor has
// refused something too without a word, the bound it names has to do.
func explainBehind(text, body string, items []item) (faults map[int]fault, whole bool) {
	if strings.Contains(text, "per stream rate limit") {
		return nil, false // counted together
	}
	faults = map[int]fault{}
	if m := ignoredText.FindStringSubmatch(text); m != nil && m[2] == strconv.Itoa(len(items)) {
		n, _ := strconv.Atoi(m[1])
		for i := range min(n, len(items)) {
			faults[i] = fault{reason: TooFarBehind}
		}
		return faults, true
	}
	m := boundText.FindStringSubmatch(body)
	if m == nil {
		return nil, false
	}
	bound, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil {
		return nil, false
	}
	for i := range items {
		if items[i].entry.Time.Before(bound.Add(time.Second)) { // it is printed in whole seconds
			faults[i] = fault{reason: TooFarBehind}
		}
	}
	return faults, false
}

// group is one refusal and how many entries it is said of.
type group struct {
	count int
	text  string
}

// groups splits "2 errors like: a; 1 errors like: b". A text without counts is
// about one entry.
func groups(text string) []group {
	marks := groupText.FindAllStringSubmatchIndex(text, -1)
	if len(marks) == 0 {
		return []group{{1, text}}
	}
	var out []group
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		n, _ := strconv.Atoi(text[m[2]:m[3]])
		out = append(out, group{n, text[m[1]:end]})
	}
	return out
}

// find marks the entries that the group is about; false if there are not as
// many as it says.
func (g group) find(items []item, faults map[int]fault) bool {
	f := fault{reasonOf(g.text), limitOf(g.text)}
	match := g.matcher(f)
	if match == nil {
		return false
	}
	left, ban := g.count, strings.Contains(g.text, disallowText) // a ban is about all, however many it is said of
	for i := range items {
		if _, taken := faults[i]; (left > 0 || ban) && !taken && match(&items[i].entry) {
			faults[i] = f
			left--
		}
	}
	return left <= 0
}

// matcher says which entries a refusal can be about; nil if it does not name
// anything we can look for.
func (g group) matcher(f fault) func(*Entry) bool {
	switch f.reason {
	case TooOld, TooNew:
		m := stampText.FindStringSubmatch(g.text)
		if m == nil {
			return nil
		}
		stamp, err := time.Parse(time.RFC3339Nano, strings.ToUpper(m[1]))
		if err != nil {
			return nil
		}
		return func(e *Entry) bool { return e.Time.Unix() == stamp.Unix() }
	case LineTooLong:
		if f.limit == 0 {
			return nil
		}
		return func(e *Entry) bool { return len(e.Line) > f.limit }
	case MetadataTooLarge:
		switch {
		case strings.Contains(g.text, disallowText):
			return func(e *Entry) bool { return len(e.Metadata) > 0 }
		case f.limit == 0:
			return nil
		case strings.Contains(g.text, "too many"):
			return func(e *Entry) bool { return len(e.Metadata) > f.limit }
		}
		return func(e *Entry) bool { return metadataSize(e) > f.limit }
	}
	return nil
}

func metadataSize(e *Entry) (n int) {
	for _, p := range e.Metadata {
		n += len(p.Name) + len(p.Value)
	}
	return n
}

func limitOf(text string) int {
	m := entryText.FindStringSubmatch(text)
	if m == nil {
		m = limitText.FindStringSubmatch(text)
	}
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
