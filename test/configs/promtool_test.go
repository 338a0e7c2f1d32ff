package configs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAlerts(t *testing.T) {
	promtool := need(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = filepath.Join(shipped, "prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	cmd := exec.Command(promtool, "check", "config", "prometheus.yaml")
	cmd.Dir = t.TempDir()
	for from, to := range map[string]string{"compose/prometheus.yaml": "prometheus.yaml", "prometheus/alerts.yaml": "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(shipped, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cmd.Dir, to), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("compose's prometheus.yaml: %v\n%s", err, out)
	}
}

// variables are what Grafana puts in.
func variables(expr string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$instance", ".*").Replace(expr)
}

// TestDashboardQueriesParse hands the dashboard's expressions to promtool as
// if they were rules.
func TestDashboardQueriesParse(t *testing.T) {
	promtool := need(t, "promtool")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, expr := range expressions(t, filepath.Join(shipped, "grafana/health.json")) {
		if !strings.Contains(expr, "rwannotate_") || strings.HasPrefix(expr, "label_values") {
			continue
		}
		quoted, err := json.Marshal(variables(expr))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&rules, "  - {record: 'panel:%d', expr: %s}\n", i, quoted)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestDashboardQueriesSee: an error that has occurred once is on the dashboard,
// though its counter appears with 1; and what is lost is, though no sink has
// ever been asked to take anything.
func TestDashboardQueriesSee(t *testing.T) {
	promtool := need(t, "promtool")
	exprs := expressions(t, filepath.Join(shipped, "grafana/health.json"))
	find := func(metric string) string {
		t.Helper()
		for _, e := range exprs {
			if strings.Contains(e, metric) {
				return variables(e)
			}
		}
		t.Fatalf("no panel shows %s", metric)
		return ""
	}
	type sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	type check struct {
		Expr    string   `json:"expr"`
		At      string   `json:"eval_time"`
		Samples []sample `json:"exp_samples"`
	}
	type series struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	matches, lost := find("rwannotate_matches_total"), find("rwannotate_source_lost_bytes_total")
	file, err := json.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []any{map[string]any{
		"interval": "1m",
		"input_series": []series{
			{`rwannotate_matches_total{instance="a", error="once"}`, "_x10 1x30"},
			{`rwannotate_matches_total{instance="b", error="more"}`, "3x10 4x30"},
			{`rwannotate_source_lost_bytes_total{instance="a"}`, "0x30"},
		},
		"promql_expr_test": []check{
			{matches, "9m", nil},
			{matches, "13m", []sample{{`{error="more"}`, 1}, {`{error="once"}`, 1}}},
			{matches, "20m", nil},
			{lost, "20m", []sample{{"{}", 0}}},
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "dashboard_test.yaml")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "test", "rules", name).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
