package loki

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// Labels and metadata of an event. Queries, rules and dashboards are written
// against these names.
const (
	LabelNamespace = "namespace"
	LabelComponent = "component"
	LabelLevel     = "level"
	LabelKind      = "log_kind"
	LabelPod       = "pod" // only if configured

	ServiceEvents    = "risingwave" // service_name of events
	ServiceHeartbeat = "rwannotate" // service_name of heartbeats
	KindEvents       = "known_error"
	KindHeartbeat    = "heartbeat"
)

// LabelNames lists the labels that the client sets itself; configured ones
// come on top.
func LabelNames() []string {
	return []string{labelService, LabelNamespace, LabelComponent, LabelLevel, LabelKind, LabelPod, labelReplay}
}

// MetadataNames lists the structured metadata that an event can have.
func MetadataNames() []string {
	return []string{"error_id", "error_slug", "severity", "confidence", "actor_id", "pod", "node", "seen_new", "catalog", metaOriginal, metaTruncated}
}

// Renderer turns stored events into entries. Its fields are not changed once
// it is in use; it is safe for concurrent use.
type Renderer struct {
	// Encode appends the published form of an event (annotate.Encoder.Append).
	Encode func(dst []byte, ev *annotate.Event) []byte
	// Describe returns slug and severity of a catalogue record, empty if unknown.
	Describe func(id string) (slug, severity string)
	Catalog  string            // digest of the catalogue
	Labels   map[string]string // configured ones, the same for every entry
	PodLabel bool              // pod becomes a label: more streams, but no pod is held up by another's clock
}

// Render builds the entry of a stored event: the line is the whole published
// event, so that the remedy is there whatever event someone clicks on.
func (r *Renderer) Render(data []byte) (Entry, error) {
	var ev annotate.Event
	if err := json.Unmarshal(data, &ev); err != nil {
		return Entry{}, fmt.Errorf("decode stored event: %w", err)
	}
	line := r.Encode(nil, &ev)
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	return Entry{Labels: r.labels(&ev), Metadata: r.metadata(&ev), Time: unique(&ev), Line: string(line)}, nil
}

func (r *Renderer) labels(ev *annotate.Event) []Pair {
	out := []Pair{
		{labelService, ServiceEvents},
		{LabelNamespace, ev.K8s.Namespace},
		{LabelComponent, ev.RW.Component},
		{LabelLevel, ev.Level},
		{LabelKind, KindEvents},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		out = append(out, Pair{name, r.Labels[name]})
	}
	if r.PodLabel {
		out = append(out, Pair{LabelPod, ev.K8s.Pod})
	}
	return out
}

func (r *Renderer) metadata(ev *annotate.Event) []Pair {
	slug, severity := r.Describe(ev.Error.ID)
	node := ev.K8s.Node
	if node == "" {
		node = ev.Origin.Host
	}
	out := []Pair{
		{"error_id", ev.Error.ID},
		{"error_slug", slug},
		{"severity", severity},
		{"confidence", ev.Error.Confidence},
		{"actor_id", ev.RW.ActorID},
		{"node", node},
		{"seen_new", strconv.FormatInt(max(ev.Seen.New, 1), 10)},
		{"catalog", r.Catalog},
	}
	if !r.PodLabel {
		out = append(out, Pair{"pod", ev.K8s.Pod})
	}
	return out
}

// unique is the time to store the event under. Loki keeps one of several
// entries with equal stamp, line and metadata, and RisingWave prints
// microseconds at best: the free digits take the place in the file, modulo
// 1000. It depends on the stored event alone, so that a replay is the same
// entry again and not a new one.
func unique(ev *annotate.Event) time.Time {
	if ev.Time.IsZero() || ev.Time.Nanosecond()%1000 != 0 {
		return ev.Time
	}
	place := ev.Origin.LineNumber
	if place == 0 {
		place = ev.Origin.Offset
	}
	return ev.Time.Add(time.Duration(place%1000) * time.Nanosecond)
}
