package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	followed = 50  // files
	samples  = 500 // lines whose way is timed
)

// daemon is a running `rwannotate run` that follows the files of a directory.
type daemon struct {
	cmd    *exec.Cmd
	files  []*os.File
	events chan event
}

// event is the arrival of the event of a line that we numbered.
type event struct {
	number int
	at     time.Time
}

// live measures the way of a written line to its event, and what it costs to
// follow files that nobody writes to.
func live(ctx context.Context, s settings, r *report) (err error) {
	if s.idle == 0 {
		return nil
	}
	progress("live: %d files, %d lines, %v of idleness", followed, samples, s.idle)
	d, err := startDaemon(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	// The line after an error tells that its record is complete. Without one,
	// the record waits for the flush interval.
	followedBy, err := d.latencies(ctx, samples, 10*time.Millisecond, true)
	if err != nil {
		return err
	}
	alone, err := d.latencies(ctx, 20, 400*time.Millisecond, false)
	if err != nil {
		return err
	}
	r.judge("line written to event on stdout, p99, ms", percentile(followedBy, 99), 20, "%.2f")
	r.note("the same, p50, ms", fmt.Sprintf("%.2f", percentile(followedBy, 50)))
	r.note("the same with the record flush, p99, ms", fmt.Sprintf("%.0f", percentile(alone, 99)))
	share, err := d.idle(ctx, s.idle)
	if err != nil {
		return err
	}
	r.judge(fmt.Sprintf("idle with %d files, %% of a core", followed), 100*share, 1, "%.2f")
	return nil
}

func startDaemon(ctx context.Context, s settings) (*daemon, error) {
	set, err := makePatterns(s, 500)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, "live")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o755); err != nil {
		return nil, err
	}
	d := &daemon{events: make(chan event, samples)}
	for i := range followed {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%02d.log", i)))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(f, "2026-11-30T00:00:00Z  INFO risingwave_compute: file %d\n", i)
		d.files = append(d.files, f)
	}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	d.cmd = exec.CommandContext(ctx, s.binary, "run", "--input", filepath.Join(dir, "*.log"), "--state", filepath.Join(dir, "state"),
		"--no-embedded", "--patterns", set.dir)
	d.cmd.Stderr = stderr
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go d.read(stdout)
	return d, d.warmUp(ctx)
}

var numbered = regexp.MustCompile(`seq=(\d+)`)

// read times each event as it comes. The channel holds what a run sends.
func (d *daemon) read(stdout io.Reader) {
	defer close(d.events)
	for lines := bufio.NewReaderSize(stdout, 1<<20); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		if m := numbered.FindSubmatch(line); m != nil {
			n, _ := strconv.Atoi(string(m[1]))
			d.events <- event{n, time.Now()}
		}
	}
}

// warmUp waits until every file is followed.
func (d *daemon) warmUp(ctx context.Context) error {
	for i := range d.files {
		if _, err := d.write(i, -1, true); err != nil {
			return err
		}
	}
	for range d.files {
		if _, err := d.next(ctx); err != nil {
			return fmt.Errorf("waiting until all files are followed: %w", err)
		}
	}
	time.Sleep(time.Second) // let it reach the live edge everywhere
	return nil
}

func (d *daemon) write(file, number int, followedBy bool) (time.Time, error) {
	line := fmt.Sprintf("2026-11-30T00:00:01Z ERROR risingwave_stream::task::actor_manager: actor exit with error seq=%d "+
		"error=Executor error: snapshot backfill paused, but received snapshot chunk\n", max(number, 0))
	if followedBy {
		line += "2026-11-30T00:00:01Z  INFO risingwave_stream::task: actor stopped\n"
	}
	at := time.Now()
	_, err := d.files[file].WriteString(line)
	return at, err
}

func (d *daemon) next(ctx context.Context) (event, error) {
	select {
	case e, ok := <-d.events:
		if !ok {
			return event{}, errors.New("the daemon ended")
		}
		return e, nil
	case <-time.After(10 * time.Second):
		return event{}, errors.New("no event within 10 s")
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}

// latencies writes n lines, one after the other, to files chosen at random.
func (d *daemon) latencies(ctx context.Context, n int, pause time.Duration, followedBy bool) ([]time.Duration, error) {
	r := rand.New(rand.NewPCG(1, 1))
	var took []time.Duration
	for i := range n {
		time.Sleep(pause/2 + rand.N(pause))
		at, err := d.write(r.IntN(len(d.files)), i, followedBy)
		if err != nil {
			return nil, err
		}
		e, err := d.next(ctx)
		if err != nil {
			return nil, err
		}
		if e.number != i {
			return nil, fmt.Errorf("line %d was written, the event is of line %d", i, e.number)
		}
		took = append(took, e.at.Sub(at))
	}
	return took, nil
}

// idle returns the share of a core that the daemon takes while nothing is written.
func (d *daemon) idle(ctx context.Context, span time.Duration) (float64, error) {
	time.Sleep(2 * time.Second) // the last commit
	before, err := cpuTime(d.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	select {
	case <-time.After(span):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := cpuTime(d.cmd.Process.Pid)
	return (after - before).Seconds() / time.Since(start).Seconds(), err
}

// cpuTime reads user and system time from fields 14 and 15 of /proc/PID/stat,
// in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

func (d *daemon) stop() error {
	for _, f := range d.files {
		f.Close()
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("the daemon on SIGTERM: %w", err)
	}
	return nil
}

// percentile in milliseconds.
func percentile(list []time.Duration, p int) float64 {
	slices.Sort(list)
	return float64(list[min(len(list)-1, len(list)*p/100)].Microseconds()) / 1000
}
