package loki

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/sink/loki"
)

const shipped = "../../configs/loki/"

var (
	fence    = regexp.MustCompile("(?s)```logql\n(.*?)```")
	selector = regexp.MustCompile(`\{([a-z_]+=[^{}]*)\}`)
	matching = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	naming   = regexp.MustCompile(`\|\s*(?:keep|unwrap) ([a-z_, ]+)`)
	by       = regexp.MustCompile(`\bby \(([a-z_, ]+)\)`)
	parser   = regexp.MustCompile(`\|\s*json ((?:[a-z]+="[a-z_.]+"(?:, )?)+)`)
	template = regexp.MustCompile(`\.([a-z_]+)`)
)

// queries are all expressions on the page and in the rules.
func queries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	page, err := os.ReadFile(shipped + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		out["README: "+m[1]] = m[1]
	}
	if len(out) < 8 {
		t.Errorf("only %d queries on the page", len(out))
	}
	text, err := os.ReadFile(shipped + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("rule %s lacks something", r.Alert)
			}
			out["rule "+r.Alert] = r.Expr
		}
	}
	return out
}

// TestQueriesUseWhatIsSent: each label, piece of metadata and JSON path of the
// queries is one that the code sends.
func TestQueriesUseWhatIsSent(t *testing.T) {
	labels := append(loki.LabelNames(), "cluster")
	names := append(slices.Clone(labels), loki.MetadataNames()...)
	for where, q := range queries(t) {
		known := append(slices.Clone(names), paths(t, where, q)...)
		for _, m := range selector.FindAllStringSubmatch(q, -1) {
			for _, l := range matching.FindAllStringSubmatch(m[1], -1) {
				if !slices.Contains(labels, l[1]) {
					t.Errorf("%s: no label %s", where, l[1])
				}
			}
		}
		pipeline, text, _ := strings.Cut(selector.ReplaceAllString(q, ""), "`")
		pipeline = parser.ReplaceAllString(pipeline, "")
		var used []string
		for _, m := range matching.FindAllStringSubmatch(pipeline, -1) {
			used = append(used, m[1])
		}
		for _, re := range []*regexp.Regexp{naming, by} {
			for _, m := range re.FindAllStringSubmatch(q, -1) {
				used = append(used, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })...)
			}
		}
		for _, m := range template.FindAllStringSubmatch(text, -1) {
			used = append(used, m[1])
		}
		for _, name := range used {
			if !slices.Contains(known, name) {
				t.Errorf("%s: nobody sends %s", where, name)
			}
		}
		if n := strings.Count(q, "(") - strings.Count(q, ")"); n != 0 {
			t.Errorf("%s: %d brackets too many", where, n)
		}
	}
}

// paths checks a json stage against what is really in a line and returns the
// names it gives.
func paths(t *testing.T, where, q string) (names []string) {
	m := parser.FindStringSubmatch(q)
	if m == nil {
		return nil
	}
	var line map[string]any
	if strings.Contains(q, loki.KindHeartbeat) {
		line = heartbeatLine(t)
	} else {
		ev := event(0)
		encoded := annotate.NewEncoder(records, "v", "d").Append(nil, &ev)
		if err := json.Unmarshal(encoded, &line); err != nil {
			t.Fatal(err)
		}
	}
	for assignment := range strings.SplitSeq(m[1], ", ") {
		name, path, _ := strings.Cut(assignment, "=")
		names = append(names, name)
		var v any = line
		for key := range strings.SplitSeq(strings.Trim(path, `"`), ".") {
			o, _ := v.(map[string]any)
			if v = o[key]; v == nil {
				t.Errorf("%s: no %s in %v", where, path, slices.Sorted(maps.Keys(line)))
				break
			}
		}
	}
	return names
}
