package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/test/bench/gen"
)

func TestParse(t *testing.T) {
	s, err := parse([]string{"-size", "64MiB", "-forms", "text,json", "-patterns", "5,500"})
	if err != nil || s.size != 64<<20 || len(s.forms) != 2 || s.forms[1] != gen.JSON || len(s.patterns) != 2 || s.runs != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"-size=x", "-forms=morse", "-patterns=many"} {
		if _, err := parse([]string{bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestMeasure(t *testing.T) {
	var out lineCounter
	u, err := measure(context.Background(), &out, false, "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done; sleep 0.1")
	if err != nil || out.lines != 20000 {
		t.Fatalf("%d lines, %v", out.lines, err)
	}
	if u.cpu <= 0 || u.wall < 100*time.Millisecond || u.peak < 100<<10 || u.peak > 32<<20 {
		t.Errorf("%+v", u)
	}
	if _, err := measure(context.Background(), nil, true, "sh", "-c", "exit 1"); err != nil {
		t.Error(err)
	}
	if _, err := measure(context.Background(), nil, false, "sh", "-c", "echo broken >&2; exit 1"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Error(err)
	}
}

func TestMakeLogKeepsWhatItMade(t *testing.T) {
	s := settings{size: 1 << 18, seed: 3, hitRate: 0.1, dir: t.TempDir()}
	first, err := makeLog(s, gen.Docker)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(first.path)
	if err != nil || info.Size() != first.Bytes || first.Hits == 0 {
		t.Fatalf("%+v, %v, %v", first, info, err)
	}
	again, err := makeLog(s, gen.Docker)
	if err != nil || again != first {
		t.Errorf("%+v, %v", again, err)
	}
	s.seed++
	if other, err := makeLog(s, gen.Docker); err != nil || other.path == first.path {
		t.Errorf("%+v, %v", other, err)
	}
}

func TestMakePatterns(t *testing.T) {
	set, err := makePatterns(settings{dir: t.TempDir()}, 50)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(set.dir, "*", "*.yaml"))
	literals, err := os.ReadFile(set.literals)
	if err != nil || len(files) != 50 || bytes.Count(literals, []byte("\n")) != 50 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func TestReport(t *testing.T) {
	r := &report{}
	r.judge("fast", 0.2, 0.35, "%.2f ×")
	r.judge("slow", 0.5, 0.35, "%.2f ×")
	r.judge("allocations", 1, 0, "%.0f")
	var b bytes.Buffer
	r.print(&b)
	want := []string{"| fast | ≤ 0.35 × | 0.20 × | ok |", "| slow | ≤ 0.35 × | 0.50 × | MISSED |", "| allocations | ≤ 0 | 1 | MISSED |"}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, &b)
		}
	}
}

func TestPercentile(t *testing.T) {
	var list []time.Duration
	for i := range 100 {
		list = append(list, time.Duration(100-i)*time.Millisecond)
	}
	if p50, p99 := percentile(list, 50), percentile(list, 99); p50 != 51 || p99 != 100 {
		t.Errorf("p50 %g, p99 %g", p50, p99)
	}
}
