package loki

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

func testRenderer() *Renderer {
	return &Renderer{
		Encode: func(dst []byte, ev *annotate.Event) []byte {
			return append(append(dst, `{"level":"`+ev.Level+`","message":"`+ev.Message+`"}`...), '\n')
		},
		Describe: func(id string) (slug, severity string) {
			if id == "d35cdfb22a5e48fe" {
				return "mismatch-initial-vnode-bitmap-expect", "error"
			}
			return "", ""
		},
		Catalog: "sha256:5b1f7c09",
		Labels:  map[string]string{"cluster": "c1", "az": "b"},
	}
}

func fullEvent() annotate.Event {
	return annotate.Event{
		Level: "error", Message: "m", Kind: annotate.KindRepeat, Time: time.Date(2026, 11, 30, 9, 14, 7, 482913000, time.UTC),
		RW:    annotate.RW{Component: "compute", ActorID: "24817"},
		Error: annotate.Error{ID: "d35cdfb22a5e48fe", Confidence: "high"},
		Seen:  annotate.Seen{New: 999, Count: 1000},
		K8s:   annotate.K8s{Namespace: "risingwave", Pod: "compute-0", Node: "ip-10-0-3-17"},
		Origin: annotate.Origin{
			Input: "file", Path: "/var/log/x", Offset: 18273645, LineNumber: 12004,
		},
	}
}

func render(t *testing.T, r *Renderer, ev annotate.Event) Entry {
	t.Helper()
	data, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.Render(data)
	if err != nil {
		t.Fatal(err)
	}
	return e.tidy(maxLine)
}

func TestRender(t *testing.T) {
	got := render(t, testRenderer(), fullEvent())
	want := Entry{
		Labels: []Pair{{"az", "b"}, {"cluster", "c1"}, {"component", "compute"}, {"level", "error"}, {"log_kind", "known_error"}, {"namespace", "risingwave"}, {"service_name", "risingwave"}},
		Metadata: []Pair{{"error_id", "d35cdfb22a5e48fe"}, {"error_slug", "mismatch-initial-vnode-bitmap-expect"}, {"severity", "error"}, {"confidence", "high"},
			{"actor_id", "24817"}, {"node", "ip-10-0-3-17"}, {"seen_new", "999"}, {"catalog", "sha256:5b1f7c09"}, {"pod", "compute-0"}},
		Time: time.Date(2026, 11, 30, 9, 14, 7, 482913004, time.UTC), // microseconds, and the line's place in the free digits
		Line: `{"level":"error","message":"m"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if again := render(t, testRenderer(), fullEvent()); cmp.Diff(got, again) != "" {
		t.Error("not the same on replay")
	}
}

func TestRenderWithPodLabelAndWithoutKubernetes(t *testing.T) {
	r := testRenderer()
	r.PodLabel, r.Labels = true, nil
	got := render(t, r, fullEvent())
	if !slices.Contains(got.Labels, Pair{"pod", "compute-0"}) || has(got.Metadata, "pod") {
		t.Errorf("%v %v", got.Labels, got.Metadata)
	}
	ev := fullEvent()
	ev.K8s, ev.Origin.Host, ev.RW, ev.Error.ID, ev.Seen = annotate.K8s{}, "db1", annotate.RW{}, "gone", annotate.Seen{}
	got = render(t, r, ev)
	want := Entry{
		Labels:   []Pair{{"level", "error"}, {"log_kind", "known_error"}, {"service_name", "risingwave"}},
		Metadata: []Pair{{"error_id", "gone"}, {"confidence", "high"}, {"node", "db1"}, {"seen_new", "1"}, {"catalog", "sha256:5b1f7c09"}},
		Time:     got.Time, Line: got.Line,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestNames of what is sent against the lists that queries are checked with.
func TestNameLists(t *testing.T) {
	r := testRenderer()
	r.Labels = nil
	for _, pod := range []bool{false, true} {
		r.PodLabel = pod
		e := render(t, r, fullEvent()).at(time.Now())
		for _, p := range e.Labels {
			if !slices.Contains(LabelNames(), p.Name) {
				t.Errorf("label %s is not listed", p.Name)
			}
		}
		for _, p := range e.Metadata {
			if !slices.Contains(MetadataNames(), p.Name) {
				t.Errorf("metadata %s is not listed", p.Name)
			}
		}
	}
	if err := CheckLabels(map[string]string{"cluster": "c"}); err != nil {
		t.Error(err)
	}
}

func TestUnique(t *testing.T) {
	at := time.Date(2026, 11, 30, 10, 0, 1, 0, time.UTC)
	seen := map[time.Time]bool{}
	last := time.Time{}
	for i := range int64(1000) {
		ev := annotate.Event{Time: at, Origin: annotate.Origin{LineNumber: 12000 + i}}
		got := unique(&ev)
		if seen[got] || got.Sub(at) < 0 || got.Sub(at) >= time.Microsecond || !got.After(last) {
			t.Fatalf("line %d: %v", i, got)
		}
		seen[got], last = true, got
	}
	for name, tc := range map[string]struct {
		ev   annotate.Event
		want time.Duration
	}{
		"nanoseconds are the log's own": {annotate.Event{Time: at.Add(5), Origin: annotate.Origin{LineNumber: 7}}, 5},
		"offset where no line is known": {annotate.Event{Time: at, Origin: annotate.Origin{Offset: 5123}}, 123},
	} {
		if got := unique(&tc.ev).Sub(at); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := unique(&annotate.Event{}); !got.IsZero() {
		t.Error(got)
	}
}

func TestRenderRefusesWhatIsNoEvent(t *testing.T) {
	for _, bad := range []string{"", "{", `{"t":5}`} {
		if _, err := testRenderer().Render([]byte(bad)); err == nil || !strings.Contains(err.Error(), "decode stored event") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
