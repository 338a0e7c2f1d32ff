package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/spool"
)

// knownLine is a log line with an error of the embedded catalogue.
func knownLine(n int) string {
	return fmt.Sprintf("2026-11-30T10:00:00.%06dZ ERROR risingwave_stream::executor: n=%d error=snapshot backfill paused, but received snapshot chunk\n", n, n)
}

// daemonWith runs the daemon on an input that ends.
func daemonWith(t *testing.T, in string, args ...string) (code int, events []map[string]any, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"run", "--web-listen", ""}, args...)
	code = run(context.Background(), args, streams{strings.NewReader(in), &out, &errs})
	for line := range strings.Lines(out.String()) {
		var ev map[string]any
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, ev)
	}
	return code, events, errs.String()
}

func TestRunReadsWhatIsPipedIn(t *testing.T) {
	in := knownLine(1) + "nothing\n" + strings.TrimSuffix(knownLine(2), "\n")
	for _, args := range [][]string{nil, {"--input", "-"}, {"--dry-run"}} {
		code, events, stderr := daemonWith(t, in, args...)
		if code != 0 || len(events) != 2 {
			t.Fatalf("%q: exit %d, %d events\n%s", args, code, len(events), stderr)
		}
		if strings.Count(stderr, "no state directory") != 1 {
			t.Errorf("positions in memory are said once: %s", stderr)
		}
	}
}

func TestRunUsage(t *testing.T) {
	taken := t.TempDir()
	s, err := spool.Open(taken, spool.Options{}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--input", "/logs/["}, exitConfig, "/logs/["},
		{[]string{"--input", "/logs/*.log", "--start", "soon"}, exitConfig, "soon"},
		{[]string{"file.log"}, exitUsage, "file.log"},
		{[]string{"--no-such-flag"}, exitUsage, "no-such-flag"},
		{[]string{"--strict=maybe"}, exitUsage, `--strict "maybe": a value of type bool is expected (see`},
		{[]string{"--patterns", "/no/such/directory"}, exitConfig, "/no/such/directory"},
		{[]string{"--state", taken}, exitRuntime, "in use by another process"},
	} {
		code, events, stderr := daemonWith(t, "", c.args...)
		if code != c.code || !strings.Contains(stderr, c.says) || len(events) > 0 {
			t.Errorf("%q: exit %d, %s", c.args, code, stderr)
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"run"}, streams{nil, &out, &errs}); code != exitUsage || !strings.Contains(errs.String(), "nothing to read") {
		t.Errorf("no input at all: exit %d, %s", code, errs.String())
	}
}

// A signal that comes while we start counts too. The configuration is a named
// pipe here: it is read until we close our end.
func TestRunHearsSignalsWhileItStarts(t *testing.T) {
	t.Setenv("RWANNOTATE_RELOAD_INTERVAL", "0") // nobody looks at the pipe again
	dir := t.TempDir()
	conf, log := filepath.Join(dir, "conf.yaml"), filepath.Join(dir, "a.log")
	if err := errors.Join(syscall.Mkfifo(conf, 0o600), os.WriteFile(log, []byte(knownLine(1)), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(context.Background(), []string{"run", "-c", conf, "--web-listen", "", "--input", log}, streams{nil, &out, &errs})
	}()
	reading, err := os.OpenFile(conf, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	reading.Close()
	if c := <-code; c != 0 || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("exit %d, %s%s", c, out.String(), errs.String())
	}
}

// brokenPipe is a standard output whose reader is gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestRunEndsWithItsReader(t *testing.T) {
	var errs bytes.Buffer
	code := run(context.Background(), []string{"run", "--web-listen", "", "--log-level", "error"}, streams{strings.NewReader(knownLine(1)), brokenPipe{}, &errs})
	if code != exitRuntime || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "reader is gone") {
		t.Errorf("exit %d, %s", code, errs.String())
	}
}

// The cursor of the last journal entry is kept, and given to journalctl.
func TestJournalArgs(t *testing.T) {
	state := t.TempDir()
	ask := func(args ...string) (int, string, string) {
		return execute(t, append([]string{"journal-args"}, args...)...)
	}
	if code, out, _ := ask("--state", state); code != 0 || out != "--since=now\n" {
		t.Errorf("before the first run: exit %d, %q", code, out)
	}
	if code, _, stderr := ask(); code != exitUsage || !strings.Contains(stderr, "--state") {
		t.Errorf("without a state directory: exit %d, %q", code, stderr)
	}
	var in strings.Builder
	for i := range 3 {
		entry, _ := json.Marshal(map[string]string{"__CURSOR": fmt.Sprintf("s=a;i=%d", i), "__REALTIME_TIMESTAMP": "1796032800000000",
			"_SYSTEMD_UNIT": "risingwave.service", "MESSAGE": strings.TrimSpace(knownLine(i))})
		in.Write(append(entry, '\n'))
	}
	if code, events, stderr := daemonWith(t, in.String(), "--state", state); code != 0 || len(events) != 3 {
		t.Fatalf("exit %d, %d events\n%s", code, len(events), stderr)
	}
	if code, out, _ := ask("--state", state); code != 0 || out != "--after-cursor=s=a;i=2\n" {
		t.Errorf("after a run: exit %d, %q", code, out)
	}
	if err := os.WriteFile(filepath.Join(state, "state.db"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Nothing: journalctl repeats from the beginning rather than leave a gap.
	if code, out, stderr := ask("--state", state); code != exitRuntime || out != "" || stderr == "" {
		t.Errorf("damaged: exit %d, %q, %q", code, out, stderr)
	}
}
