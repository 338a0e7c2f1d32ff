package annotate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// SchemaVersion is the version of the published event.
const SchemaVersion = 1

// maxEvent bounds the published form, newline included.
const maxEvent = 64 << 10

// An Encoder writes events in their published form, schema v1: one JSON object
// a line with fixed keys in a fixed order, level first, since Loki takes the
// first key that looks like a level. What belongs to the catalogue record is
// encoded once. Safe for concurrent use.
type Encoder struct {
	records map[string]func() *static // made when first needed: few records ever are
	catalog []byte
}

// static is what an event takes from its record.
type static struct {
	slug, severity, role, class string
	tags, remedy, source        []byte
}

type remedy struct {
	Meaning    string   `json:"meaning"`
	Triggers   string   `json:"triggers"`
	Situations string   `json:"situations"`
	Solutions  []string `json:"solutions"`
	Prevention []string `json:"prevention"`
	Strategy   string   `json:"strategy"`
}

type source struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	URL    string `json:"url"`
	Commit string `json:"commit"`
}

// NewEncoder prepares the records' texts. version and digest name the
// catalogue.
func NewEncoder(records []catalog.Record, version, digest string) *Encoder {
	e := &Encoder{records: make(map[string]func() *static, len(records)), catalog: compact(map[string]string{"version": version, "digest": digest})}
	for i := range records {
		e.records[records[i].ID] = sync.OnceValue(func() *static { return newStatic(&records[i]) })
	}
	return e
}

func newStatic(r *catalog.Record) *static {
	return &static{
		slug: r.Slug, severity: or(r.Severity, catalog.SeverityError), role: or(r.Role, catalog.RoleRoot), class: r.BackgroundTag,
		tags:   compact(list(r.Tags)),
		remedy: compact(remedy{r.Documentation, r.TriggerScenarios, r.CommonSituations, list(r.Solutions), list(r.PreventionTips), r.HandlingStrategy}),
		source: compact(source{r.FilePath, r.LineNumber, r.GithubURL, cut(r.AnalyzedSha, 10)}),
	}
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// compact encodes v without HTML escapes and without a newline; what it
// returns may go into an event as it is.
func compact(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("annotate: %T cannot fail to encode: %v", v, err)) // strings and slices of strings only
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Append appends the published form of ev, with its newline, to dst. Events too
// large give up text in this order: the line, then message and arguments, then
// names.
func (e *Encoder) Append(dst []byte, ev *Event) []byte {
	from := len(dst)
	dst = e.append(dst, ev)
	for limit := maxLine / 4; len(dst)-from > maxEvent && limit >= shortText; limit /= 4 {
		small := shrink(*ev, limit)
		dst = e.append(dst[:from], &small)
	}
	return dst
}

// shortText is what is left of each text in the last resort.
const shortText = 64

// shrink cuts an event's texts: the smaller the limit, the more of them.
func shrink(ev Event, limit int) Event {
	ev.Origin.Line = cut(ev.Origin.Line, limit)
	ev.Origin.Truncated = true
	if limit < maxLine/4 {
		ev.Message = cut(ev.Message, limit)
		args := ev.Error.Args
		ev.Error.Args = make([]string, min(len(args), limit))
		for i := range ev.Error.Args {
			ev.Error.Args[i] = cut(args[i], limit/len(args)+1)
		}
	}
	if limit > shortText {
		return ev
	}
	for _, name := range []*string{&ev.Level, &ev.Kind, &ev.RW.Component, &ev.RW.Target, &ev.RW.Level, &ev.RW.Event, &ev.RW.ActorID,
		&ev.Error.ID, &ev.Error.Template, &ev.Error.Confidence, &ev.Error.Via, &ev.K8s.Namespace, &ev.K8s.Pod, &ev.K8s.Container, &ev.K8s.Node,
		&ev.Origin.Input, &ev.Origin.Path, &ev.Origin.Stream, &ev.Origin.Unit, &ev.Origin.Host, &ev.Origin.TimeFrom} {
		*name = cut(*name, shortText)
	}
	ev.RW.Chain, ev.Error.Others = nil, nil
	return ev
}

func (e *Encoder) append(dst []byte, ev *Event) []byte {
	var st *static
	if known := e.records[ev.Error.ID]; known != nil {
		st = known()
	} else { // a stored event whose record has left the catalogue
		st = &static{role: catalog.RoleRoot, severity: catalog.SeverityError, tags: []byte("[]"), remedy: compact(remedy{Solutions: []string{}, Prevention: []string{}}), source: compact(source{})}
	}
	w := &sliceWriter{dst}
	log := zerolog.New(w)
	out := log.Log().
		Str("level", ev.Level).
		Str("time", stamp(ev.Time)).
		Str("message", ev.Message).
		Int("v", SchemaVersion).
		Str("kind", ev.Kind).
		Dict("rw", zerolog.Dict().
			Str("component", ev.RW.Component).
			Str("target", ev.RW.Target).
			Str("level", ev.RW.Level).
			Str("event", ev.RW.Event).
			Str("actor_id", ev.RW.ActorID).
			Strs("chain", list(ev.RW.Chain))).
		Dict("error", zerolog.Dict().
			Str("id", ev.Error.ID).
			Str("slug", st.slug).
			Str("template", ev.Error.Template).
			Str("severity", st.severity).
			Str("role", st.role).
			Str("class", st.class).
			RawJSON("tags", st.tags).
			Strs("args", list(ev.Error.Args)).
			Str("confidence", ev.Error.Confidence).
			Str("via", ev.Error.Via).
			Array("others", others(ev.Error.Others))).
		RawJSON("remedy", st.remedy).
		RawJSON("source", st.source).
		Dict("seen", zerolog.Dict().
			Int64("new", ev.Seen.New).
			Int64("count", ev.Seen.Count).
			Str("first", stamp(ev.Seen.First)).
			Str("last", stamp(ev.Seen.Last)))
	if ev.K8s != (K8s{}) {
		out = out.Dict("k8s", zerolog.Dict().
			Str("namespace", ev.K8s.Namespace).
			Str("pod", ev.K8s.Pod).
			Str("container", ev.K8s.Container).
			Int("restart", ev.K8s.Restart).
			Str("node", ev.K8s.Node))
	}
	out.Dict("origin", zerolog.Dict().
		Str("input", ev.Origin.Input).
		Str("path", ev.Origin.Path).
		Str("unit", ev.Origin.Unit).
		Str("host", ev.Origin.Host).
		Int64("offset", ev.Origin.Offset).
		Int64("line_number", ev.Origin.LineNumber).
		Str("stream", ev.Origin.Stream).
		Str("line", ev.Origin.Line).
		Bool("truncated", ev.Origin.Truncated).
		Str("time_from", ev.Origin.TimeFrom)).
		RawJSON("catalog", e.catalog).
		Send()
	return w.b
}

// others writes alternatives as objects.
type others []Other

func (o others) MarshalZerologArray(a *zerolog.Array) {
	for _, x := range o {
		a.Dict(zerolog.Dict().Str("id", x.ID).Str("slug", x.Slug))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// sliceWriter collects what zerolog writes, one event at a time.
type sliceWriter struct{ b []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = AppendVisible(w.b, p)
	return len(p), nil
}
