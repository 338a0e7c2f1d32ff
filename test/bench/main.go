// Command bench measures the program against the speed and size it has to
// reach: `make bench`. All speeds are ratios to ripgrep on the same file and
// the same literals in the same run, in CPU seconds (user and system) of the
// whole process, so that a busy or a slow machine does not matter. It prints
// and judges; nothing of it runs in `go test`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rwannotate/rwannotate/test/bench/gen"
)

type settings struct {
	size     int64
	seed     uint64
	hitRate  float64
	forms    []gen.Form
	patterns []int
	runs     int
	idle     time.Duration
	dir      string
	binary   string
	rg       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, s)
	}
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	s := settings{size: 1 << 30, forms: gen.Forms(), patterns: []int{5, 500, 5000, 20_000}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Func("size", "bytes of each log, e.g. 64MiB (default 1GiB)", func(v string) (err error) {
		s.size, err = parseSize(v)
		return err
	})
	flags.Func("forms", fmt.Sprintf("comma-separated log forms (default all of %s)", gen.Forms()), func(v string) error {
		s.forms = nil
		for name := range strings.SplitSeq(v, ",") {
			if !slices.Contains(gen.Forms(), gen.Form(name)) {
				return fmt.Errorf("no form %q", name)
			}
			s.forms = append(s.forms, gen.Form(name))
		}
		return nil
	})
	flags.Func("patterns", "comma-separated catalogue sizes (default 5,500,5000,20000)", func(v string) error {
		s.patterns = nil
		for n := range strings.SplitSeq(v, ",") {
			size, err := strconv.Atoi(n)
			if err != nil {
				return err
			}
			s.patterns = append(s.patterns, size)
		}
		return nil
	})
	flags.Uint64Var(&s.seed, "seed", 1, "decides the logs")
	flags.Float64Var(&s.hitRate, "hits", 0.001, "share of log records with a known error")
	flags.IntVar(&s.runs, "runs", 3, "runs of each command; medians are shown")
	flags.DurationVar(&s.idle, "idle", 30*time.Second, "how long idleness is measured; 0 leaves the live part out")
	flags.StringVar(&s.dir, "dir", filepath.Join(os.TempDir(), "rwannotate-bench"), "where logs are made and kept for the next run")
	flags.StringVar(&s.binary, "binary", "", "program to measure (default: built from ./cmd/rwannotate)")
	flags.StringVar(&s.rg, "rg", "rg", "ripgrep")
	err := flags.Parse(args)
	return s, err
}

func parseSize(v string) (int64, error) {
	unit := int64(1)
	for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if n, ok := strings.CutSuffix(v, suffix); ok {
			v, unit = n, u
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n * unit, err
}

func run(ctx context.Context, s settings) error {
	rg, err := exec.Command(s.rg, "--version").Output()
	if err != nil {
		return fmt.Errorf("ripgrep is what we compare with: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "empty.log"), nil, 0o644); err != nil {
		return err
	}
	if s.binary == "" {
		s.binary = filepath.Join(s.dir, "rwannotate")
		build := exec.CommandContext(ctx, "make", "build", "OUT="+s.binary)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	version, _, _ := strings.Cut(string(rg), "\n")
	fmt.Printf("%s, %s, %d cores; %d MiB a log, seed %d, %g of the records are hits; medians of %d runs\n\n",
		runtime.Version(), version, runtime.NumCPU(), s.size>>20, s.seed, s.hitRate, s.runs)
	r := &report{}
	// What needs nothing else goes first, what takes longest last; a part that
	// fails does not cost the others.
	err = errors.Join(
		allocations(ctx, r),
		startTimes(ctx, s, r),
		live(ctx, s, r),
		scans(ctx, s, r),
	)
	r.print(os.Stdout)
	return err
}
