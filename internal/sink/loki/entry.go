package loki

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what Loki takes with its defaults. A larger value has a whole
// entry, stream or request refused, so everything is brought inside before it
// is sent.
const (
	maxLabels        = 15       // per stream
	maxLabelName     = 1024     // bytes
	maxValue         = 2048     // bytes of a label's value; we bound metadata values alike
	maxMetadata      = 100      // entries; Loki's limit is 128
	maxMetadataBytes = 48 << 10 // names and values; Loki's limit is 64 KiB
	maxLine          = 64 << 10 // bytes; Loki's limit is 256 KiB
)

// Names that the client itself may add to an entry.
const (
	labelReplay     = "replay"          // "true": too far behind the newest entry of its own stream; "restamped": behind that too
	metaOriginal    = "original_time"   // the log's own time where Loki would have refused it
	metaTruncated   = "truncated_bytes" // cut off the end of the line
	labelService    = "service_name"
	replayLate      = "true"
	replayRestamped = "restamped"
)

// Pair is one label or one item of structured metadata.
type Pair struct{ Name, Value string }

// Entry is one log line for Loki.
type Entry struct {
	Labels   []Pair // few and bounded: each set of them is a stream
	Metadata []Pair
	Time     time.Time
	Line     string
}

// tidy returns the entry in a form that Loki accepts and that is the same each
// time: names sanitised, empty values left out, texts valid UTF-8 and within
// their bounds, labels sorted.
func (e Entry) tidy(lineLimit int) Entry {
	out := Entry{Time: e.Time}
	var extra []Pair
	for _, p := range e.Labels {
		p = Pair{labelName(p.Name), bounded(p.Value)}
		switch {
		case p.Name == "" || p.Value == "" || has(out.Labels, p.Name):
		case len(out.Labels) == maxLabels:
			extra = append(extra, p)
		default:
			out.Labels = append(out.Labels, p)
		}
	}
	if len(out.Labels) == 0 {
		out.Labels = []Pair{{labelService, "risingwave"}} // no stream is without a label
	}
	slices.SortFunc(out.Labels, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	line := strings.ToValidUTF8(e.Line, "\uFFFD")
	out.Line = cutLine(line, lineLimit)
	if out.Line == "" {
		out.Line = " " // stored as an empty line by Loki, as an error text by VictoriaLogs
	}
	if n := len(line) - len(out.Line); n > 0 {
		extra = append(extra, Pair{metaTruncated, fmt.Sprint(n)})
	}
	out.Metadata = tidyMetadata(append(extra, e.Metadata...), out.Labels)
	return out
}

func tidyMetadata(in, labels []Pair) []Pair {
	var out []Pair
	size := 0
	for _, p := range in {
		p = Pair{metadataName(p.Name), bounded(p.Value)}
		if has(labels, p.Name) {
			p.Name = "meta_" + p.Name // Loki would rename it, VictoriaLogs would overwrite the label
		}
		size += len(p.Name) + len(p.Value)
		if p.Name == "" || p.Value == "" || has(out, p.Name) || len(out) == maxMetadata || size > maxMetadataBytes {
			continue
		}
		out = append(out, p)
	}
	return out
}

// with returns the metadata plus one more item, in front so that no bound can
// take it away.
func (e Entry) with(name, value string) Entry {
	if !has(e.Metadata, name) {
		e.Metadata = append([]Pair{{name, value}}, e.Metadata...)
	}
	return e
}

// at moves the entry to another time and keeps its own one in the metadata.
func (e Entry) at(t time.Time) Entry {
	e = e.with(metaOriginal, e.Time.UTC().Format(time.RFC3339Nano))
	e.Time = t
	return e
}

// folded puts the metadata into the line, for servers that allow none.
func (e Entry) folded(lineLimit int) Entry {
	var b strings.Builder
	for _, p := range e.Metadata {
		fmt.Fprintf(&b, " %s=%q", p.Name, p.Value)
	}
	suffix := cutLine(b.String(), lineLimit/2)
	e.Line = cutLine(e.Line, lineLimit-len(suffix)) + suffix
	e.Metadata = nil
	return e
}

// reduced keeps only the labels that never have more than a handful of
// values; the others become metadata.
func (e Entry) reduced() Entry {
	labels, metadata := []Pair{}, []Pair{}
	for _, p := range e.Labels {
		switch p.Name {
		case labelService, "component", "level", "log_kind":
			labels = append(labels, p)
		default:
			metadata = append(metadata, p)
		}
	}
	return Entry{Labels: labels, Metadata: append(metadata, e.Metadata...), Time: e.Time, Line: e.Line}.tidy(maxLine)
}

// labelled returns labels plus one, still sorted.
func labelled(labels []Pair, name, value string) []Pair {
	out := append(slices.Clone(labels), Pair{name, value})
	slices.SortFunc(out, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// key names a label set. No label value contains NUL unescaped in it: %q.
func key(labels []Pair) string {
	var b strings.Builder
	for _, p := range labels {
		fmt.Fprintf(&b, "%s=%q,", p.Name, p.Value)
	}
	return b.String()
}

func has(pairs []Pair, name string) bool {
	return slices.ContainsFunc(pairs, func(p Pair) bool { return p.Name == name })
}

// labelName makes a name Loki can parse, or "" if nothing is left of it.
// app.kubernetes.io/name becomes app_kubernetes_io_name.
func labelName(s string) string {
	if len(s) > maxLabelName {
		s = s[:maxLabelName]
	}
	return identifier(s, "_")
}

// metadataName makes a name that Loki does not have to normalise; one that
// normalises to nothing fails the whole request with a 500, for ever.
func metadataName(s string) string {
	if len(s) > maxLabelName {
		s = s[:maxLabelName]
	}
	return strings.ToLower(identifier(s, "key_"))
}

// identifier replaces every byte outside [a-zA-Z0-9_], puts digitPrefix before
// a leading digit and allows one leading underscore (two are Loki's own).
func identifier(s, digitPrefix string) string {
	b := []byte(s)
	solid := false
	for i, c := range b {
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
			solid = true
		default:
			b[i] = '_'
		}
	}
	if !solid {
		return ""
	}
	out := string(b)
	for strings.HasPrefix(out, "__") {
		out = out[1:]
	}
	if '0' <= out[0] && out[0] <= '9' {
		out = digitPrefix + out
	}
	return out
}

// bounded makes a value valid UTF-8 of at most maxValue bytes.
func bounded(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxValue {
		return s
	}
	return s[:runeBorder(s, maxValue-len("…"))] + "…"
}

// cutLine shortens a line to limit bytes and says so at its end.
func cutLine(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	marker := fmt.Sprintf(" … [%d bytes in all]", len(s))
	if len(marker) > limit {
		return s[:runeBorder(s, limit)]
	}
	return s[:runeBorder(s, limit-len(marker))] + marker
}

// runeBorder is the largest index up to n that does not split a rune of s.
func runeBorder(s string, n int) int {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
