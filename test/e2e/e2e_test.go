// Package e2e runs the built program as its users do.
package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the outputs that scripts compare with")

// program builds rwannotate and returns its directory.
func program(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/rwannotate").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestScripts(t *testing.T) {
	dir := program(t)
	corpus, err := filepath.Abs("../corpus")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("CORPUS", corpus)
			env.Setenv("TZ", "Asia/Kolkata") // nothing may depend on it
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "pack": pack, "lines": lines, "make": makeFile},
	})
}

// status runs rwannotate and asserts its exit code: status 2 scan --bogus.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE ARG...")
	}
	err := ts.Exec("rwannotate", args[1:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// pack compresses a file: pack gz|zst FROM TO.
func pack(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if args[0] == "zst" {
		z, err := zstd.NewWriter(&b)
		ts.Check(err)
		w = z
	}
	_, err := io.WriteString(w, ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b.Bytes(), 0o644))
}

// lines asserts the number of lines of stdout or a file: lines 2 stdout.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if n := strings.Count(ts.ReadFile(args[1]), "\n"); (args[0] == strconv.Itoa(n)) == neg {
		ts.Fatalf("%s has %d lines", args[1], n)
	}
}

// makeFile writes a file that is awkward to put into a script: make KIND FILE.
func makeFile(ts *testscript.TestScript, _ bool, args []string) {
	const stamp = "2026-11-30T09:14:07Z"
	known := stamp + " ERROR risingwave_stream::task: failed error=snapshot backfill paused, but received snapshot chunk\n"
	content := map[string]string{
		"nul":     "\x00\x00\x00" + stamp + "  INFO a::b: x\x00y\n" + known,
		"crlf":    strings.ReplaceAll(stamp+"  INFO a::b: x\n"+known, "\n", "\r\n"),
		"bom":     "\ufeff" + known,
		"invalid": stamp + "  INFO a::b: \xff\xfe\xc3\n" + known,
		"deep":    strings.Repeat(`{"a":`, 20_000) + "\n" + known,
		"escapes": stamp + " ERROR a::b: \x1b]0;title\x07\x1b[31msnapshot backfill paused, but received snapshot chunk\x1b[0m \u009b2J\n",
		"empty":   "",
		"torn-gz": "\x1f\x8b\x08\x00",
	}
	text, ok := content[args[0]]
	if !ok {
		ts.Fatalf("make %s: no such kind", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// peak runs rwannotate and returns its largest resident size in bytes. The
// rusage of a child cannot be used: until it execs a child shares our memory,
// and starts with our own high-water mark.
func peak(t *testing.T, dir string, stdout io.Writer, args ...string) (most int64) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "rwannotate"), args...)
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, highWater(cmd.Process.Pid))
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return most
		case <-tick.C:
		}
	}
}

// highWater is a process's largest resident size so far; 0 if it has ended.
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, found := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if !found {
		return 0
	}
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0
	}
	return kib << 10
}

// TestMemory: a line of 20 MB and 100,000 lines of one record cost at most 128
// MiB more than a short log, and the errors in and behind them are found.
func TestMemory(t *testing.T) {
	dir, tmp := program(t), t.TempDir()
	const stamp = "2026-11-30T09:14:07Z ERROR risingwave_stream::task: "
	const known = "snapshot backfill paused, but received snapshot chunk"
	write := func(name string, parts ...string) string {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fill := strings.Repeat("filler text ", 20<<20/12)
	base := peak(t, dir, io.Discard, "scan", write("short", stamp+known+"\n"))
	for name, path := range map[string]string{
		"line":  write("line", stamp, fill, known, "\n", stamp, known, "\n"),
		"lines": write("lines", stamp, "x\n", strings.Repeat("  a frame of the stack\n", 50_000), "  "+known+"\n", strings.Repeat("  a frame of the stack\n", 50_000), stamp, known, "\n"),
		"json":  write("json", `{"log":"`, fill, ` `, known, `\n","stream":"stdout","time":"2026-11-30T09:14:07Z"}`, "\n", stamp, known, "\n"),
	} {
		for _, form := range []string{"json", "text", "inline"} {
			var out bytes.Buffer
			grown := peak(t, dir, &out, "scan", "-o", form, path) - base
			if grown > 128<<20 {
				t.Errorf("%s as %s: %d MiB over the base of %d", name, form, grown>>20, base>>20)
			}
			if form == "json" && strings.Count(out.String(), "\n") != 2 {
				t.Errorf("%s: %d events, not 2", name, strings.Count(out.String(), "\n"))
			}
		}
	}
}

// TestBrokenPipe: a reader that goes away ends the scan with one line on
// stderr and exit code 1, not with a signal and not at the end of the input.
func TestBrokenPipe(t *testing.T) {
	dir := program(t)
	path := filepath.Join(t.TempDir(), "log")
	line := "2026-11-30T09:14:07Z ERROR risingwave_stream::task: snapshot backfill paused, but received snapshot chunk\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 20_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"json", "inline"} {
		cmd := exec.Command(filepath.Join(dir, "rwannotate"), "scan", "-o", form, path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		out.Close()
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: %v", form, err)
		}
		if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "standard output was closed") {
			t.Errorf("%s: stderr %q", form, got)
		}
	}
}

// TestFullDisk: results that cannot be written are an error.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	dir := program(t)
	for _, args := range []string{"scan -o json", "scan -o text", "scan -o inline"} {
		cmd := exec.Command(filepath.Join(dir, "rwannotate"), strings.Fields(args)...)
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("2026-11-30T09:14:07Z ERROR a::b: snapshot backfill paused, but received snapshot chunk\n"), full, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: %v", args, err)
		}
		if !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%s: stderr %q", args, stderr.String())
		}
	}
}
