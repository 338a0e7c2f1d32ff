package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what one process took.
type usage struct {
	cpu, wall time.Duration // cpu: user and system
	peak      int64         // bytes resident at most
}

// measure runs a command to its end. Exit status 1 is fine if okay1 is set
// (ripgrep: no match).
func measure(ctx context.Context, stdout io.Writer, okay1 bool, name string, args ...string) (usage, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	peak := make(chan int64, 1)
	done := make(chan struct{})
	go func() { peak <- watchPeak(cmd.Process.Pid, done) }()
	err := cmd.Wait()
	wall := time.Since(start)
	close(done)
	u := usage{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), wall: wall, peak: <-peak}
	if err != nil && !(okay1 && cmd.ProcessState.ExitCode() == 1) {
		return u, fmt.Errorf("%s %s: %w\n%.2000s", name, strings.Join(args, " "), err, &stderr)
	}
	return u, nil
}

// watchPeak follows the high-water mark of a process until done. The rusage
// of a child cannot be used: a child that shares our memory until it execs, as
// Go's do, starts with our own high-water mark.
func watchPeak(pid int, done <-chan struct{}) (peak int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if kib, err := statusKiB(pid, "VmHWM:"); err == nil {
			peak = max(peak, kib<<10)
		}
		select {
		case <-done:
			return peak
		case <-tick.C:
		}
	}
}

func statusKiB(pid int, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, ok := strings.Cut(string(text), key)
	if !ok {
		return 0, fmt.Errorf("no %s", key)
	}
	return strconv.ParseInt(strings.Fields(after)[0], 10, 64)
}

// medianBy sorts and returns the middle one.
func medianBy[T any](list []T, less func(a, b T) int) T {
	slices.SortFunc(list, less)
	return list[len(list)/2]
}

func byCPU(a, b usage) int { return int(a.cpu - b.cpu) }

func byWall(a, b usage) int { return int(a.wall - b.wall) }
