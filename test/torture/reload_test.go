package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/patterns"
)

// reloads is how often the catalogue is replaced: every third time by a faulty
// one, which must change nothing.
const reloads = 1000

// TestReload replaces the catalogue under load, as a ConfigMap does: by
// switching a link. Each error is reported exactly once, and memory stays flat.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "rwannotate")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/rwannotate").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	c := newCatalog(t, dir)
	log, err := os.Create(filepath.Join(dir, "a.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(bin, "run", "--input", log.Name(), "--state", filepath.Join(dir, "state"), "--no-embedded", "--patterns", c.link, "--web-listen", "")
	cmd.Env = append(os.Environ(), "RWANNOTATE_RELOAD_INTERVAL=0") // one reload for each signal
	out, err := os.Create(filepath.Join(dir, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // if the test has failed before
	said := bufio.NewScanner(stderr)
	hear(t, said, "started")

	var early, late int
	for i := range reloads {
		write(t, log, i)
		c.next(t, i)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{true: "reload failed", false: "reloaded"}[i%3 == 2]; hear(t, said, `"message":"reload`) != want {
			t.Fatalf("reload %d: want %q", i, want)
		}
		switch i {
		case reloads / 5:
			early = resident(t, cmd.Process.Pid)
		case reloads - 1:
			late = resident(t, cmd.Process.Pid)
		}
	}
	time.Sleep(2 * time.Second) // the flush of the last record
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for said.Scan() { // or it could not end
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("ended with %v", err)
	}
	exactlyOnce(t, out.Name(), reloads)
	t.Logf("%d MiB after a fifth of the reloads, %d MiB at the end", early, late)
	if late > early+16 {
		t.Errorf("memory grows: %d MiB after a fifth of the reloads, %d MiB at the end", early, late)
	}
}

func write(t *testing.T, log *os.File, i int) {
	line := fmt.Sprintf("2026-11-30T10:00:00.%06dZ ERROR risingwave_stream::executor::actor: actor exit with error seq=%07d error=snapshot backfill paused, but received snapshot chunk\n", i, i)
	if _, err := log.WriteString(line); err != nil {
		t.Fatal(err)
	}
}

// hear reads our own messages up to one that holds text, and says which kind of
// reload message it was.
func hear(t *testing.T, said *bufio.Scanner, text string) string {
	for said.Scan() {
		if line := said.Text(); strings.Contains(line, text) {
			if strings.Contains(line, "reload failed") {
				return "reload failed"
			}
			return "reloaded"
		}
	}
	t.Fatalf("%q was never said", text)
	return ""
}

// catalogDir is a directory behind a link, like a mounted ConfigMap.
type catalogDir struct {
	link, dir string
	record    []byte
}

func newCatalog(t *testing.T, dir string) *catalogDir {
	record, err := fs.ReadFile(patterns.FS(), "stream/snapshot-backfill-paused-but-received-snapshot-ch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := &catalogDir{filepath.Join(dir, "catalog"), dir, record}
	c.next(t, 0)
	return c
}

// next makes another version and switches the link to it.
func (c *catalogDir) next(t *testing.T, i int) {
	version := filepath.Join(c.dir, fmt.Sprintf("v%d", i%2+10*(i%3)))
	extra := fmt.Sprintf("id: '%016x'\nslug: some-other-error\nerrorMessage: 'some other error number %d: {}'\nsolutions: [Look it up.]\n", i, i)
	if i%3 == 2 {
		extra = "id: '1\nslug: [faulty\n"
	}
	must(t, os.RemoveAll(version))
	must(t, os.MkdirAll(version, 0o755))
	must(t, os.WriteFile(filepath.Join(version, "snapshot-backfill-paused-but-received-snapshot-ch.yaml"), c.record, 0o644))
	must(t, os.WriteFile(filepath.Join(version, "some-other-error.yaml"), []byte(extra), 0o644))
	must(t, os.RemoveAll(c.link+".new"))
	must(t, os.Symlink(version, c.link+".new"))
	must(t, os.Rename(c.link+".new", c.link))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var rss = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is a process's memory in MiB.
func resident(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	if m := rss.FindSubmatch(status); m == nil {
		t.Fatal("no VmRSS")
	} else if _, err := fmt.Sscan(string(m[1]), &kib); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

var reloadSequence = regexp.MustCompile(`seq=(\d{7})`)

// exactlyOnce checks that each number up to n is in one event.
func exactlyOnce(t *testing.T, file string, n int) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(content)) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("not JSON: %s", line)
		}
		seen[reloadSequence.FindStringSubmatch(line)[1]]++
	}
	for i := range n {
		if got := seen[fmt.Sprintf("%07d", i)]; got != 1 {
			t.Errorf("number %d is in %d events", i, got)
		}
	}
}
