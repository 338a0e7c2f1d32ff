package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rwannotate/rwannotate/test/bench/gen"
)

// scanResult is one log searched for one catalogue.
type scanResult struct {
	form            gen.Form
	set             patternSet
	log             logFile
	ours, rg        usage
	start           starts
	events, rgLines int64
}

func (s scanResult) ratio() float64 { return s.ours.cpu.Seconds() / s.rg.cpu.Seconds() }

// starts is what the programs take before they read a byte.
type starts struct{ ours, rg usage }

// plainSet is the catalogue that every form is measured with.
const plainSet = 5000

// bars of the scan against ripgrep; forms without one are measured only.
var bars = map[gen.Form]float64{gen.Text: 0.35, gen.CRI: 0.5, gen.JSON: 0.6, gen.JournalExport: 0.7, gen.Docker: 0.7}

// scans measures the whole program on a log: the text form with every
// catalogue, the other forms with one.
func scans(ctx context.Context, s settings, r *report) error {
	results := map[string]scanResult{}
	sets := map[int]patternSet{}
	start := map[int]starts{}
	for _, n := range s.patterns {
		set, err := makePatterns(s, n)
		if err != nil {
			return err
		}
		empty := logFile{path: filepath.Join(s.dir, "empty.log")}
		nothing, err := compare(ctx, s, gen.Text, empty, set)
		if err != nil {
			return err
		}
		sets[n], start[n] = set, starts{nothing.ours, nothing.rg}
	}
	for _, form := range s.forms {
		log, err := makeLog(s, form)
		if err != nil {
			return err
		}
		for _, n := range s.patterns {
			if form != gen.Text && n != plainSet && len(s.patterns) > 1 {
				continue
			}
			progress("scanning %s for %d records", form, n)
			result, err := compare(ctx, s, form, log, sets[n])
			if err != nil {
				return err
			}
			result.start = start[n]
			results[fmt.Sprint(form, n)] = result
			r.scans = append(r.scans, result)
			if bar, ok := bars[form]; ok && (n == plainSet || form == gen.Text && n == 500) {
				r.judge(fmt.Sprintf("scan of %s, %d records, CPU against ripgrep", form, n), result.ratio(), bar, "%.2f ×")
			}
		}
	}
	growth(r, results)
	return peaks(ctx, s, r, results)
}

// compare alternates the two programs, so that whatever else the machine does
// hits both.
func compare(ctx context.Context, s settings, form gen.Form, log logFile, set patternSet) (scanResult, error) {
	result := scanResult{form: form, set: set, log: log}
	scan := []string{"scan", "-o", "json", "--no-embedded", "--patterns", set.dir, log.path}
	search := []string{"-j1", "-c", "-F", "-f", set.literals, log.path}
	// The first run of each counts, and has the file in memory for the others.
	var events lineCounter
	if _, err := measure(ctx, &events, false, s.binary, scan...); err != nil {
		return result, err
	}
	var count bytes.Buffer
	if _, err := measure(ctx, &count, true, s.rg, search...); err != nil {
		return result, err
	}
	result.events = events.lines
	result.rgLines, _ = strconv.ParseInt(strings.TrimSpace(count.String()), 10, 64)
	var ours, theirs []usage
	for range s.runs {
		u, err := measure(ctx, nil, false, s.binary, scan...)
		if err != nil {
			return result, err
		}
		ours = append(ours, u)
		if u, err = measure(ctx, nil, true, s.rg, search...); err != nil {
			return result, err
		}
		theirs = append(theirs, u)
	}
	result.ours, result.rg = medianBy(ours, byCPU), medianBy(theirs, byCPU)
	return result, nil
}

// growth compares catalogues of different sizes on the text form.
func growth(r *report, results map[string]scanResult) {
	small, ok := results[fmt.Sprint(gen.Text, 500)]
	for _, g := range []struct {
		records int
		bar     float64
	}{{5000, 1.5}, {20_000, 3}} {
		if large, has := results[fmt.Sprint(gen.Text, g.records)]; ok && has {
			r.judge(fmt.Sprintf("CPU with %d records against 500", g.records), large.ours.cpu.Seconds()/small.ours.cpu.Seconds(), g.bar, "%.2f ×")
		}
	}
}

// peaks judges memory: the most that any form took.
func peaks(ctx context.Context, s settings, r *report, results map[string]scanResult) error {
	var most int64
	var text logFile
	for _, result := range results {
		if result.set.n == plainSet {
			most = max(most, result.ours.peak)
		}
		if result.form == gen.Text {
			text = result.log
		}
	}
	if most > 0 {
		r.judge("memory with 5,000 records, MiB resident", float64(most)/(1<<20), 128, "%.0f")
	}
	if text.path == "" {
		return nil
	}
	u, err := measure(ctx, nil, false, s.binary, "scan", "-o", "json", text.path)
	if err != nil {
		return err
	}
	r.judge("memory with the embedded catalogue, MiB resident", float64(u.peak)/(1<<20), 48, "%.0f")
	return nil
}

// startTimes measures a scan of nothing.
func startTimes(ctx context.Context, s settings, r *report) error {
	empty := filepath.Join(s.dir, "empty.log")
	set, err := makePatterns(s, plainSet)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what string
		bar  float64
		args []string
	}{
		{"start with the embedded catalogue, ms", 100, nil},
		{"start with 5,000 records, ms", 600, []string{"--no-embedded", "--patterns", set.dir}},
	} {
		progress("%s", c.what)
		var runs []usage
		for range 3 * s.runs {
			u, err := measure(ctx, nil, false, s.binary, append([]string{"scan", "-o", "json", empty}, c.args...)...)
			if err != nil {
				return err
			}
			runs = append(runs, u)
		}
		r.judge(c.what, float64(medianBy(runs, byWall).wall.Microseconds())/1000, c.bar, "%.0f")
		r.note("the same, CPU", fmt.Sprintf("%d", medianBy(runs, byCPU).cpu.Milliseconds()))
	}
	return nil
}

// allocations runs the benchmarks of lines without a hit.
func allocations(ctx context.Context, r *report) error {
	progress("allocations on a miss")
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Miss", "-benchmem", "-benchtime", "300ms", "./internal/match", "./internal/pipeline")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	found := regexp.MustCompile(`(?m)^Benchmark(\S+)\s.*?(\d+) allocs/op`).FindAllStringSubmatch(string(out), -1)
	if len(found) == 0 {
		return fmt.Errorf("no benchmark of a miss in\n%s", out)
	}
	for _, m := range found {
		allocs, _ := strconv.ParseFloat(m[2], 64)
		r.judge("allocations on lines without a hit, "+m[1], allocs, 0, "%.0f")
	}
	return nil
}
