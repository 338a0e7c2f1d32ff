package annotate

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
)

// Limits of one event. The published form stays within 64 KiB.
const (
	maxLine    = 16 << 10
	maxMessage = 4 << 10
	maxArgs    = 32 << 10
	maxName    = 1 << 10 // target, event, thread and the like
	maxOthers  = 5
	maxChain   = 16 // those next to the cause
)

// New makes the event for one record and what was recognised in it. k8s and
// origin tell where the record came from; origin.Line is set here.
func New(rec *logline.Record, res *match.Result, component string, at time.Time, k8s K8s, origin Origin, mask *Masker) Event {
	m := mask.of(rec.Text, res.Text, rec.Event)
	ev := Event{
		Level:   eventLevel(rec.Level, res.Record.Severity),
		Time:    at,
		Message: cut(m.apply(res.Text), maxMessage),
		Kind:    KindMatch,
		RW: RW{
			Component: component,
			Target:    cut(rec.Target, maxName),
			Level:     rec.Level,
			Event:     cut(m.apply(rec.Event), maxName),
			ActorID:   cut(rec.ActorID, maxName),
			Chain:     res.Chain[max(0, len(res.Chain)-maxChain):],
		},
		Error: Error{
			ID:         res.Record.ID,
			Template:   res.Template,
			Args:       cutArgs(res.Args, m),
			Confidence: res.Confidence,
			Via:        res.Via,
		},
		Seen:   Seen{New: 1 + rec.Unlogged, Count: 1 + rec.Unlogged, First: at, Last: at},
		K8s:    k8s,
		Origin: origin,
	}
	for _, o := range res.Others[:min(len(res.Others), maxOthers)] {
		ev.Error.Others = append(ev.Error.Others, Other{o.ID, o.Slug})
	}
	line := m.apply(strings.TrimRight(rec.Text, "\n"))
	ev.Origin.Line = excerpt(line, firstWords(ev.Message), maxLine)
	ev.Origin.Truncated = origin.Truncated || len(ev.Origin.Line) < len(line)
	return ev
}

// firstWords is how a message begins, to find it again in its line.
func firstWords(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return cut(line, 64)
}

// excerpt shortens a line to about n bytes: its head, and what stands around
// the mark if that is further behind.
func excerpt(line, mark string, n int) string {
	at := strings.Index(line, mark)
	if len(line) <= n || at < 0 || at+len(mark) <= n {
		return cut(line, n)
	}
	const gap = " … "
	head := cut(line, n/4)
	from := at - n/4
	for !utf8.RuneStart(line[from]) {
		from--
	}
	return head + gap + cut(line[from:], n-len(head)-len(gap))
}

// cutArgs masks the arguments and keeps them, all together, within maxArgs: a
// long one gives way to the short ones.
func cutArgs(args []string, m masked) []string {
	out := make([]string, len(args))
	room := maxArgs
	for i, a := range args {
		out[i] = cut(m.apply(a), max(64, room))
		room -= len(out[i])
	}
	return out
}

// cut shortens s to at most n bytes at a rune's border.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// eventLevel is the higher of the record's own level and the catalogue's
// severity, in lower case as Loki and Grafana know them.
func eventLevel(level, severity string) string {
	names := [...]string{"trace", "debug", "info", "warn", "error", "fatal"}
	rank := 2
	switch severity {
	case catalog.SeverityWarning:
		rank = 3
	case catalog.SeverityError, "":
		rank = 4
	case catalog.SeverityCritical:
		rank = 5
	}
	return names[max(rank, logline.LevelRank(level))]
}
