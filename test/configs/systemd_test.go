package configs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/config"
)

const unitFile = shipped + "/systemd/rwannotate.service"

func readUnit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestUnitVerifies lets systemd read the unit, with a program that exists in
// place of ours.
func TestUnitVerifies(t *testing.T) {
	analyze := need(t, "systemd-analyze")
	file := filepath.Join(t.TempDir(), "rwannotate.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(readUnit(t), "/usr/bin/rwannotate", "/bin/true")), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=yes", "--threshold=20", file).CombinedOutput()
	if err != nil {
		t.Errorf("more exposed than 2.0: %v\n%s", err, out)
	}
}

func TestUnitFitsConfiguration(t *testing.T) {
	c := load(t, "systemd/config.yaml", config.Env{})
	unit := readUnit(t)
	if !c.Inputs[0].Stdin || c.State.Dir != "/var/lib/rwannotate" || !strings.Contains(unit, "StateDirectory=rwannotate\n") {
		t.Errorf("inputs %+v, state %s", c.Inputs, c.State.Dir)
	}
	stop := regexp.MustCompile(`TimeoutStopSec=(\d+)\n`).FindStringSubmatch(unit)
	if limit, err := time.ParseDuration(stop[1] + "s"); err != nil || limit <= c.ShutdownTimeout {
		t.Errorf("systemd waits %v, we take %v", limit, c.ShutdownTimeout)
	}
}

// journal is a directory of journal files and a journalctl that reads it
// instead of the machine's.
type journal struct {
	dir, bin string
	files    int
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	journalctl := need(t, "journalctl")
	j := &journal{dir: t.TempDir(), bin: t.TempDir()}
	shim := fmt.Sprintf("#!/bin/sh\nexec %s -D %s \"$@\"\n", journalctl, j.dir)
	if err := os.WriteFile(filepath.Join(j.bin, "journalctl"), []byte(shim), 0o755); err != nil {
		t.Fatal(err)
	}
	return j
}

// add writes one message of a unit, as of at.
func (j *journal) add(t *testing.T, unit string, at time.Time, message string) {
	t.Helper()
	const remote = "/lib/systemd/systemd-journal-remote"
	if _, err := os.Stat(remote); err != nil {
		missing(t, "systemd-journal-remote is not installed ('make tools' as root on Debian installs it)")
	}
	j.files++
	entry := fmt.Sprintf("__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=6e4f0f9a5c7b4d0b9d0d5b8a2f1c3e7a\n_SYSTEMD_UNIT=%s.service\nSYSLOG_IDENTIFIER=risingwave\nPRIORITY=6\nMESSAGE=%s\n\n",
		at.UnixMicro(), j.files*1000000, unit, message)
	export := filepath.Join(t.TempDir(), "x.export")
	if err := os.WriteFile(export, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(remote, "-o", fmt.Sprintf("%s/%d.journal", j.dir, j.files), export).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-journal-remote: %v\n%s", err, out)
	}
}

// placedCommand is the unit's command with our program, an edited configuration
// and the state in places of the test's.
func placedCommand(t *testing.T, edit func(string) string) string {
	t.Helper()
	need(t, "bash")
	text, err := os.ReadFile(shipped + "/systemd/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	placed := strings.NewReplacer("/usr/bin/rwannotate", binary(t), "/etc/rwannotate/config.yaml", dir+"/config.yaml", "/var/lib/rwannotate", dir+"/state", "$$", "$")
	if err := os.WriteFile(dir+"/config.yaml", []byte(edit(placed.Replace(string(text)))), 0o600); err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ExecStart=/bin/bash -c '(.*)'$`).FindStringSubmatch(readUnit(t))
	if command == nil {
		t.Fatal("no ExecStart with bash in the unit")
	}
	return placed.Replace(command[1])
}

// TestUnitStops: a faulty configuration ends the main process with a code for
// which systemd does not start it again. (It looks at no other process's.)
func TestUnitStops(t *testing.T) {
	command := placedCommand(t, func(text string) string { return text + "\nlokki: {}\n" })
	cmd := exec.Command("bash", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+newJournal(t).bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	code := strconv.Itoa(cmd.ProcessState.ExitCode())
	prevented := regexp.MustCompile(`(?m)^RestartPreventExitStatus=(.*)$`).FindStringSubmatch(readUnit(t))
	if err == nil || prevented == nil || !slices.Contains(strings.Fields(prevented[1]), code) || !bytes.Contains(out, []byte("lokki")) {
		t.Errorf("exit %s, of %q: %s", code, prevented, out)
	}
	if strings.Contains(readUnit(t), "\nExecStartPre=") {
		t.Error("what fails before the main process is tried for ever")
	}
}

// TestUnitRuns runs the very command of the unit against a real journal, twice:
// it says when it is ready, finds the error, and that of a unit which logs for
// the first time then, stops at SIGTERM, and goes on where it stopped.
func TestUnitRuns(t *testing.T) {
	j, command := newJournal(t), placedCommand(t, func(text string) string { return text })
	const line = "2026-08-21T14:06:38.556Z ERROR risingwave_stream::task::actor_manager: actor exit with error actor_id=%d error=Executor error: should not update vnode bitmap during consuming log store"
	later := time.Now().Add(time.Minute) // --since=now takes what comes
	j.add(t, "sshd", later, "no unit of RisingWave has ever logged")
	run := func(unit string, actor int) string {
		t.Helper()
		return runUnit(t, j, command, func() {
			later = later.Add(time.Second)
			j.add(t, unit, later, fmt.Sprintf(line, actor))
		})
	}
	for i, unit := range []string{"risingwave-compute", "risingwave-meta"} {
		if got, want := run(unit, 17+i), strconv.Itoa(17+i); got != want {
			t.Errorf("run %d found actors %q, want %s", i+1, got, want)
		}
	}
	later = later.Add(time.Second)
	j.add(t, "risingwave-worker", later, fmt.Sprintf(line, 19)) // fits the pattern only
	if got := run("risingwave", 20); got != "19 20" {
		t.Errorf("the third run found actors %q, want 19 20", got)
	}
}

// runUnit runs a command as systemd does, calls ready when it says so, waits
// until it has printed an event and been quiet for a moment, and stops it. It
// returns the actors of the events.
func runUnit(t *testing.T, j *journal, command string, ready func()) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+j.bin+":"+os.Getenv("PATH"), "NOTIFY_SOCKET="+socket.LocalAddr().String(), "RWANNOTATE_WEB_LISTEN=127.0.0.1:0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, socket, &stderr)
	time.Sleep(time.Second) // journalctl has looked for units by now
	ready()
	events := make(chan string)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var ev struct {
				RW struct {
					Actor string `json:"actor_id"`
				} `json:"rw"`
			}
			if json.Unmarshal(lines.Bytes(), &ev) != nil {
				ev.RW.Actor = lines.Text()
			}
			events <- ev.RW.Actor
		}
	}()
	actors := []string{<-events} // the command's deadline ends the wait
	for quiet := false; !quiet; {
		select {
		case a, ok := <-events:
			if ok {
				actors = append(actors, a)
			}
			quiet = !ok
		case <-time.After(time.Second): // a repetition would follow at once
			quiet = true
		}
	}
	// bash has become the program: the signal reaches it and not a shell.
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the process is gone: %v\n%s", err, &stderr)
	}
	for range events {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("stopped with %v\n%s", err, &stderr)
	}
	return strings.Join(actors, " ")
}

func awaitReady(t *testing.T, socket *net.UnixConn, stderr *bytes.Buffer) {
	t.Helper()
	if err := socket.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for {
		n, err := socket.Read(buf)
		if err != nil {
			t.Fatalf("systemd was never told READY=1: %v\n%s", err, stderr)
		}
		if strings.Contains(string(buf[:n]), "READY=1") {
			return
		}
	}
}
