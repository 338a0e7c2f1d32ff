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

// TestDashboardQueriesParse hands the dashboard's expressions to promtool as
// if they were rules.
func TestDashboardQueriesParse(t *testing.T) {
	promtool := need(t, "promtool")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$instance", ".*")
	for i, expr := range expressions(t, filepath.Join(shipped, "grafana/health.json")) {
		if !strings.Contains(expr, "rwannotate_") || strings.HasPrefix(expr, "label_values") {
			continue
		}
		quoted, err := json.Marshal(variables.Replace(expr))
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
