package configs

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/sink/loki"
	"github.com/rwannotate/rwannotate/internal/web"
)

// expressions are the queries of a dashboard or of a rules file.
func expressions(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if filepath.Ext(file) == ".json" {
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	} else {
		doc = documents(t, file)[0]
	}
	var found []string
	walk(doc, func(m map[string]any) {
		for _, key := range []string{"expr", "query", "stream"} {
			if s, ok := m[key].(string); ok {
				found = append(found, s)
			}
		}
	})
	return found
}

// metrics are the families that a daemon exposes, with the labels of each,
// read from a scrape of one that has seen everything.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	s := web.New(web.Options{
		Version: "0", Revision: "0", Now: time.Now,
		Sources: func() []web.Source { return []web.Source{{Input: "file", Path: "/a", Container: "compute"}} },
		Sinks: func() []web.Sink {
			return []web.Sink{{Name: "loki", Dropped: map[string]int64{"too_old": 0}, Adjusted: map[string]int64{"cut": 0}}}
		},
	})
	s.SetCatalog(web.Catalog{Version: "0"})
	s.Requests("loki")(time.Second, 204, 10)
	s.Observe(&annotate.Event{Level: "error", Time: time.Now(), Kind: annotate.KindMatch, Error: annotate.Error{ID: "0000000000000000"}})
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(rec.Result().Body)
	labels := map[string][]string{}
	for _, name := range web.MetricNames() {
		labels[name] = nil
	}
	sample := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z_]+)="`)
	for _, m := range sample.FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		labels[name] = append(labels[name], "")
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels[name] = append(labels[name], l[1])
		}
	}
	if !slices.Contains(labels["rwannotate_matches_total"], "error") {
		t.Fatalf("no labels found in\n%s", text)
	}
	return labels
}

var (
	metricName   = regexp.MustCompile(`\b(?:rwannotate|process|go)_[a-z_]+\b`)
	selector     = regexp.MustCompile(`\b([a-z_]+)\{([^}]*)\}`)
	matcher      = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping     = regexp.MustCompile(`\b(?:by|on|without|group_left)\s*\(([^)]*)\)`)
	templateName = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	// scrapeLabels are added by Prometheus and its operator.
	scrapeLabels = []string{"instance", "job", "namespace", "pod", "le"}
)

// TestPrometheusNames: every metric and label in dashboards and alerts exists.
func TestPrometheusNames(t *testing.T) {
	known := metrics(t)
	var all []string
	for _, labels := range known {
		all = append(all, labels...)
	}
	used := 0
	for _, file := range []string{"grafana/health.json", "prometheus/alerts.yaml"} {
		for _, expr := range expressions(t, filepath.Join(shipped, file)) {
			for _, name := range metricName.FindAllString(expr, -1) {
				used++
				if _, ok := known[name]; !ok {
					t.Errorf("%s: no metric %s, in %s", file, name, expr)
				}
			}
			for _, s := range selector.FindAllStringSubmatch(expr, -1) {
				for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
					if !slices.Contains(known[s[1]], l[1]) && !slices.Contains(scrapeLabels, l[1]) {
						t.Errorf("%s: %s has no label %s, in %s", file, s[1], l[1], expr)
					}
				}
			}
			for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
				for _, l := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
					if !slices.Contains(all, l) && !slices.Contains(scrapeLabels, l) {
						t.Errorf("%s: no label %s, in %s", file, l, expr)
					}
				}
			}
		}
	}
	if used < 40 {
		t.Errorf("only %d metrics found", used)
	}
	text, err := os.ReadFile(filepath.Join(shipped, "prometheus/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range templateName.FindAllSubmatch(text, -1) {
		if l := string(m[1]); !slices.Contains(all, l) && !slices.Contains(scrapeLabels, l) {
			t.Errorf("alerts.yaml: no label %s", l)
		}
	}
}

var (
	streamSelector = regexp.MustCompile(`\{((?:[a-z_]+=~?"[^"]*"(?:, )?)+)\}`)
	// stage is what a LogQL pipeline filters, keeps, groups or unwraps by.
	stage    = regexp.MustCompile(`\|\s*([a-z_]+)\s*(?:=~|!=|=)\s*["` + "`" + `]`)
	keep     = regexp.MustCompile(`\|\s*keep ([a-z_, ]+)`)
	unwrap   = regexp.MustCompile(`\|\s*unwrap ([a-z_]+)`)
	jsonPath = regexp.MustCompile(`([a-z_]+)="([a-z_.]+)"`)
)

// lokiFiles are the dashboard and, if they are there, the rules for Loki.
func lokiFiles(t *testing.T) []string {
	t.Helper()
	rules, err := filepath.Glob(shipped + "/loki/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return append(rules, shipped+"/grafana/known-errors.json")
}

// TestLokiNames: every label, piece of metadata and JSON path in the queries
// to Loki exists.
func TestLokiNames(t *testing.T) {
	labels, metadata := append(loki.LabelNames(), "cluster"), loki.MetadataNames()
	names := slices.Concat(labels, metadata)
	event := exampleEvent(t)
	used := 0
	for _, file := range lokiFiles(t) {
		for _, expr := range expressions(t, file) {
			if !strings.Contains(expr, "{") {
				continue
			}
			for _, s := range streamSelector.FindAllStringSubmatch(expr, -1) {
				for _, l := range matcher.FindAllStringSubmatch(s[1], -1) {
					if used++; !slices.Contains(labels, l[1]) {
						t.Errorf("%s: no label %s, in %s", file, l[1], expr)
					}
				}
			}
			extracted := checkPaths(t, file, expr, event)
			for _, re := range []*regexp.Regexp{stage, keep, unwrap, grouping} {
				for _, m := range re.FindAllStringSubmatch(expr, -1) {
					for _, name := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
						if used++; !slices.Contains(names, name) && !slices.Contains(extracted, name) {
							t.Errorf("%s: neither label nor metadata %s, in %s", file, name, expr)
						}
					}
				}
			}
		}
	}
	if used < 50 {
		t.Errorf("only %d names found", used)
	}
}

// checkPaths looks up the paths of a json stage in an event and returns the
// names that it gives.
func checkPaths(t *testing.T, file, expr string, event map[string]any) (extracted []string) {
	t.Helper()
	_, after, ok := strings.Cut(expr, "| json ")
	if !ok {
		return nil
	}
	args, _, _ := strings.Cut(after, "|")
	for _, m := range jsonPath.FindAllStringSubmatch(args, -1) {
		extracted = append(extracted, m[1])
		var v any = event
		for key := range strings.SplitSeq(m[2], ".") {
			o, _ := v.(map[string]any)
			if v, ok = o[key]; !ok {
				t.Errorf("%s: an event has no %s, in %s", file, m[2], expr)
			}
		}
	}
	return extracted
}

// exampleEvent is what the program prints for one of its seeds.
func exampleEvent(t *testing.T) map[string]any {
	t.Helper()
	out, err := exec.Command("go", "run", "../../cmd/rwannotate", "scan", "-o", "json", "../corpus/seed-logs/3b-compute-full.log").Output()
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	var event map[string]any
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &event); err != nil {
		t.Fatalf("event %s: %v", out, err)
	}
	return event
}

// TestDashboards: what Grafana does not check: ids, and that panels do not
// lie on each other.
func TestDashboards(t *testing.T) {
	for _, file := range []string{"known-errors.json", "health.json"} {
		text, err := os.ReadFile(filepath.Join(shipped, "grafana", file))
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID, Title string
			Panels     []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have id %d", file, p.ID)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q lies on %q or beside the page", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
		if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
			t.Errorf("%s: %+v", file, d)
		}
	}
}
