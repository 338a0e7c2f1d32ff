// Package readme holds README.md to its word: each command is copied from it
// and run, what it shows is what comes out, and the tables name all keys that
// there are and no others.
package readme

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

const root = "../.."

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var block = regexp.MustCompile("(?s)(?:<!-- test: (\\w+)[^\n]*-->\n)?```sh\n(.*?)```")

// commands are the shell blocks by the name that stands before them. One
// without a name, or with one that no test knows, is an error.
func commands(t *testing.T) map[string]string {
	t.Helper()
	tested := []string{"first", "terminal", "journal", "install", "files", "page", "config"}
	found := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(readme(t), -1) {
		name, text := m[1], m[2]
		switch {
		case name == "none":
		case !slices.Contains(tested, name):
			t.Errorf("no test runs this block, called %q:\n%s", name, text)
		default:
			found[name] = text
		}
	}
	for _, name := range tested {
		if found[name] == "" {
			t.Errorf("README.md has no block %q", name)
		}
	}
	return found
}

// place is a directory with the program on the PATH.
type place struct {
	dir, bin string
	env      []string
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rwannotate-readme")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("make", "-s", "build", "OUT="+dir+"/rwannotate")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	return dir, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := build(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func newPlace(t *testing.T) *place {
	t.Helper()
	built, err := build()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	p := &place{dir: t.TempDir(), bin: t.TempDir()}
	if err := os.Symlink(built+"/rwannotate", p.bin+"/rwannotate"); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "PATH="+p.bin+":"+os.Getenv("PATH"), "NO_COLOR=1", "TERM=dumb")
	return p
}

// copyLog puts the bundled log into the place.
func (p *place) copyLog(t *testing.T, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "test/corpus/logs", bundled))
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, to, string(text), 0o644)
}

// writeNow puts the bundled log into the place as if it were written now:
// Loki takes nothing that is older than a week.
func (p *place) writeNow(t *testing.T, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "test/corpus/logs", bundled))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Format("2006-01-02T15:04:05")
	p.write(t, to, regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`).ReplaceAllString(string(text), now), 0o644)
}

func (p *place) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(p.dir, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// sh runs a command to its end.
func (p *place) sh(t *testing.T, command string) (stdout string, code int) {
	t.Helper()
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir, cmd.Env = p.dir, p.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", command, err)
	}
	t.Logf("$ %s\n%s%s", command, out, &stderr)
	return string(out), cmd.ProcessState.ExitCode()
}

// lines are the commands of a block, without comments.
func lines(text string) []string {
	var list []string
	for l := range strings.Lines(text) {
		l, _, _ = strings.Cut(l, " #")
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	return list
}

const bundled = "026-worker-expired-invalid-worker.log"

// TestFirst: the first command, on a terminal, prints what README.md shows.
func TestFirst(t *testing.T) {
	command := lines(commands(t)["first"])[0]
	shown := regexp.MustCompile("(?s)```text\n(2 known errors.*?)```").FindStringSubmatch(readme(t))
	if shown == nil {
		t.Fatal("README.md does not show what comes out")
	}
	p := newPlace(t)
	p.dir = root
	// script gives it a terminal.
	out, code := p.sh(t, "script -qec '"+command+"' /dev/null </dev/null")
	if got := strings.ReplaceAll(out, "\r\n", "\n"); code != 0 || got != shown[1] {
		t.Errorf("exit %d; README.md shows\n%s\nthere is\n%s", code, shown[1], got)
	}
}

func TestTerminal(t *testing.T) {
	p := newPlace(t)
	p.copyLog(t, "compute-0.log")
	p.copyLog(t, "logs/a.log")
	if _, code := p.sh(t, "gzip logs/a.log"); code != 0 {
		t.Fatal("gzip")
	}
	want := []struct {
		part string // of the output
		code int
	}{
		{`"slug":"invalid-worker"`, 0}, // in a pipe: JSON
		{"╰─ error  invalid-worker", 0},
		{`"slug":"invalid-worker"`, 0},
		{`"severity":"error"`, 0}, // nothing critical
		{"Do this\n  1. Let the node restart", 0},
		{"found  Invalid worker: 31", 0},
		{"", 0}, // everything is known
	}
	list := lines(commands(t)["terminal"])
	if len(list) != len(want) {
		t.Fatalf("%d commands, this test knows %d", len(list), len(want))
	}
	for i, command := range list {
		out, code := p.sh(t, command)
		if code != want[i].code || !strings.Contains(out, want[i].part) {
			t.Errorf("%s: exit %d, want %d and %q", command, code, want[i].code, want[i].part)
		}
	}
	if _, code := p.sh(t, strings.Replace(list[3], "critical", "error", 1)); code != 10 {
		t.Errorf("--fail-on error: exit %d, want 10", code)
	}
}

// TestJournal pipes a real journal in, which ends when the shim's time is over.
func TestJournal(t *testing.T) {
	p := newPlace(t)
	p.journal(t, "2026-05-18T12:27:23.004Z ERROR risingwave_rpc_client::meta_client: worker expired Invalid worker: 31, worker not found")
	out, code := p.sh(t, commands(t)["journal"])
	if code != 0 || !strings.Contains(out, `"slug":"invalid-worker"`) || !strings.Contains(out, `"unit":"risingwave-compute.service"`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

// journal makes journalctl read a journal with one message, for two seconds.
func (p *place) journal(t *testing.T, message string) {
	t.Helper()
	const remote = "/lib/systemd/systemd-journal-remote"
	real, err := exec.LookPath("journalctl")
	if err == nil {
		_, err = os.Stat(remote)
	}
	if err != nil {
		missing(t, "journalctl or systemd-journal-remote is not installed ('make tools' as root on Debian installs them)")
	}
	p.write(t, "x.export", "__REALTIME_TIMESTAMP=1779107243000000\n__MONOTONIC_TIMESTAMP=1\n_BOOT_ID=6e4f0f9a5c7b4d0b9d0d5b8a2f1c3e7a\n_SYSTEMD_UNIT=risingwave-compute.service\nMESSAGE="+message+"\n\n", 0o644)
	if out, err := exec.Command(remote, "-o", p.dir+"/x.journal", p.dir+"/x.export").CombinedOutput(); err != nil {
		t.Fatalf("systemd-journal-remote: %v\n%s", err, out)
	}
	p.write(t, p.bin+"/journalctl", "#!/bin/sh\nexec timeout 2 "+real+" -D "+p.dir+" \"$@\"\n", 0o755)
}

func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// TestInstall installs into a directory, and systemctl only listens.
func TestInstall(t *testing.T) {
	p := newPlace(t)
	p.write(t, p.bin+"/systemctl", "#!/bin/sh\necho \"$@\" >>"+p.dir+"/systemctl\n", 0o755)
	for _, dir := range []string{"usr/bin", "etc/systemd/system"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	block := strings.NewReplacer(" bin/rwannotate", " "+p.bin+"/rwannotate", " /usr/", " "+p.dir+"/usr/", " /etc/", " "+p.dir+"/etc/").Replace(commands(t)["install"])
	if strings.Contains(block, " /usr") || strings.Contains(block, " /etc") {
		t.Fatalf("this would install on the machine:\n%s", block)
	}
	install := *p
	install.dir = root
	if _, code := install.sh(t, "set -e\n"+block); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, file := range []string{"usr/bin/rwannotate", "etc/rwannotate/config.yaml", "etc/systemd/system/rwannotate.service"} {
		if _, err := os.Stat(filepath.Join(p.dir, file)); err != nil {
			t.Error(err)
		}
	}
	if out, code := p.sh(t, "cat systemctl && rwannotate config validate etc/rwannotate/config.yaml"); code != 0 || !strings.Contains(out, "enable --now rwannotate") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestFilesAndPage: a daemon that follows files, a Loki that takes events, and
// the page.
func TestFilesAndPage(t *testing.T) {
	p := newPlace(t)
	p.writeNow(t, "log/compute.log")
	pushed, server := fakeLoki(t)
	page := freeAddress(t)
	blocks := commands(t)
	command := strings.NewReplacer("/var/log/risingwave", p.dir+"/log", "/var/lib/rwannotate", p.dir+"/state", "http://localhost:3100", server).Replace(blocks["files"])
	stop := p.daemon(t, command, "RWANNOTATE_WEB_LISTEN="+page)
	defer stop()
	await(t, "the events in Loki", func() bool {
		return strings.Contains(pushed(), `"error_slug":"invalid-worker"`) && strings.Contains(pushed(), `"error_slug":"deleted-expired-worker"`)
	})
	if got := pushed(); !strings.Contains(got, `"service_name":"risingwave"`) {
		t.Errorf("pushed:\n%s", got)
	}
	want := []string{"", "invalid-worker", "Let the node restart", `rwannotate_matches_total{component="compute",error="invalid-worker",severity="error"} 1`}
	list := lines(blocks["page"])
	if len(list) != len(want) {
		t.Fatalf("%d commands, this test knows %d", len(list), len(want))
	}
	for i, l := range list {
		out, code := p.sh(t, strings.Replace(l, "curl http://localhost:12399", "curl -sf http://"+page, 1))
		if code != 0 || out == "" || !strings.Contains(out, want[i]) {
			t.Errorf("%s: exit %d, want %q", l, code, want[i])
		}
	}
}

// daemon starts a command that runs until it is stopped.
func (p *place) daemon(t *testing.T, command string, env ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, "bash", "-c", "exec "+command)
	cmd.Dir, cmd.Env = p.dir, append(slices.Clone(p.env), env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		defer cancel()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, &output)
		}
	}
}

// fakeLoki takes everything.
func fakeLoki(t *testing.T) (pushed func() string, url string) {
	t.Helper()
	var mu sync.Mutex
	var all strings.Builder
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if z, err := gzip.NewReader(r.Body); err == nil {
			body = z
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&all, body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return func() string { mu.Lock(); defer mu.Unlock(); return all.String() }, s.URL
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

func TestConfig(t *testing.T) {
	p := newPlace(t)
	p.dir = root
	for _, l := range lines(commands(t)["config"]) {
		if out, code := p.sh(t, l); code != 0 || out == "" {
			t.Errorf("%s: exit %d", l, code)
		}
	}
}

// TestLinks: what README.md and its neighbours link to is there.
func TestLinks(t *testing.T) {
	for _, file := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "configs/kubernetes/README.md", "patterns/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`).FindAllSubmatch(text, -1) {
			target := string(m[1])
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to what is not there: %s", file, target)
			}
		}
	}
}

// section is the text under a heading.
func section(t *testing.T, title string) string {
	t.Helper()
	_, after, ok := strings.Cut(readme(t), "\n## "+title+"\n")
	if !ok {
		t.Fatalf("README.md has no section %q", title)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// firstColumn are the names in the first column of the tables of a text.
func firstColumn(text string) []string {
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(text, -1) {
		for _, m := range regexp.MustCompile("`([a-z0-9_.]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestEventReference: the table has every key of an event, and no other.
func TestEventReference(t *testing.T) {
	p := newPlace(t)
	p.copyLog(t, "risingwave_compute-0_0b1c/compute/0.log")
	out, _ := p.sh(t, "NODE_NAME=n timeout 10 rwannotate run --input '*/*/*.log' --web-listen '' & sleep 2; kill $!; wait")
	first, _, _ := strings.Cut(out, "\n")
	var event map[string]any
	if err := json.Unmarshal([]byte(first), &event); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	has := map[string]bool{}
	for key, value := range event {
		inner, ok := value.(map[string]any)
		if !ok {
			has[key] = true
		}
		for k := range inner {
			has[key+"."+k] = true
		}
	}
	told := map[string]bool{}
	for _, name := range firstColumn(section(t, "The event")) {
		told[name] = true
	}
	if !maps.Equal(has, told) {
		for k := range has {
			if !told[k] {
				t.Errorf("README.md does not tell of %s", k)
			}
		}
		for k := range told {
			if !has[k] {
				t.Errorf("README.md tells of %s, which no event has", k)
			}
		}
	}
}

// TestTuning: the keys that people change exist.
func TestTuning(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join(root, "configs/config.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var top struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(schema, &top); err != nil {
		t.Fatal(err)
	}
	names := firstColumn(section(t, "Configuration"))
	if len(names) < 10 {
		t.Errorf("%d keys found", len(names))
	}
	for _, name := range names {
		group, key, _ := strings.Cut(name, ".")
		var inner struct{ Properties map[string]any }
		if err := json.Unmarshal(top.Properties[group], &inner); err != nil || inner.Properties[key] == nil {
			t.Errorf("the configuration has no %s", name)
		}
	}
}
