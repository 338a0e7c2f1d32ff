package loki

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/sink/loki"
)

// victoriaLogs is a server on loopback with a directory of its own.
type victoriaLogs struct {
	t        *testing.T
	bin, dir string
	addr     string
	cmd      *exec.Cmd
}

// newVictoriaLogs starts one. Without the program the test is left out, with
// RWANNOTATE_REQUIRE_ALL=1 it fails.
func newVictoriaLogs(t *testing.T) *victoriaLogs {
	t.Helper()
	bin := os.Getenv("RWANNOTATE_VICTORIALOGS")
	if bin == "" {
		var err error
		if bin, err = exec.LookPath("victoria-logs"); err != nil {
			const missing = "victoria-logs is not here: `make tools` installs it, or RWANNOTATE_VICTORIALOGS says where it is"
			if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
				t.Fatal(missing)
			}
			t.Skip(missing)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	v := &victoriaLogs{t: t, bin: bin, dir: t.TempDir(), addr: addr}
	v.start()
	t.Cleanup(v.stop)
	return v
}

func (v *victoriaLogs) start() {
	v.t.Helper()
	v.cmd = exec.Command(v.bin, "-httpListenAddr="+v.addr, "-storageDataPath="+v.dir, "-loggerLevel=ERROR", "-search.maxQueryDuration=5m")
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	for range 300 {
		if resp, err := http.Get("http://" + v.addr + "/health"); err == nil {
			resp.Body.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	v.t.Fatal("victoria-logs does not answer")
}

func (v *victoriaLogs) stop() {
	if v.cmd == nil {
		return
	}
	v.cmd.Process.Signal(syscall.SIGTERM)
	v.cmd.Wait()
	v.cmd = nil
}

func (v *victoriaLogs) pushURL() string {
	return "http://" + v.addr + "/insert/loki/api/v1/push?disable_message_parsing=1"
}

// each calls f with every stored entry: its fields as they come out.
func (v *victoriaLogs) each(f func(map[string]string)) {
	v.t.Helper()
	if resp, err := http.Get("http://" + v.addr + "/internal/force_flush"); err != nil {
		v.t.Fatal(err)
	} else {
		resp.Body.Close()
	}
	resp, err := http.Get("http://" + v.addr + "/select/logsql/query?query=" + url.QueryEscape(`_time:7d service_name:="risingwave"`))
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 1 {
			var fields map[string]string
			if err := json.Unmarshal(line, &fields); err != nil {
				v.t.Fatalf("%v in %.200q", err, line)
			}
			f(fields)
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			v.t.Fatal(err)
		}
	}
}

// numberOf finds out which event an entry is.
func numberOf(fields map[string]string) int {
	_, rest, ok := strings.Cut(fields["_msg"], "seq=")
	if !ok || len(rest) < 7 {
		return -1
	}
	n, err := strconv.Atoi(rest[:7])
	if err != nil {
		return -1
	}
	return n
}

// difference compares what is stored with what was sent, field by field; ""
// means equal. Nothing may be missing and nothing may have been added.
func difference(r *loki.Renderer, i int, got map[string]string) string {
	ev := event(i)
	data, _ := json.Marshal(&ev)
	want, err := r.Render(data)
	if err != nil {
		return err.Error()
	}
	if got["_msg"] != want.Line {
		return fmt.Sprintf("line %q, want %q", got["_msg"], want.Line)
	}
	if at, err := time.Parse(time.RFC3339Nano, got["_time"]); err != nil || !at.Equal(want.Time) {
		return fmt.Sprintf("time %s, want %s", got["_time"], want.Time)
	}
	left := map[string]string{}
	for name, value := range got {
		if !strings.HasPrefix(name, "_") {
			left[name] = value
		}
	}
	for _, p := range append(want.Labels, want.Metadata...) {
		if left[p.Name] != p.Value {
			return fmt.Sprintf("%s is %q, want %q", p.Name, left[p.Name], p.Value)
		}
		delete(left, p.Name)
	}
	if len(left) > 0 {
		return fmt.Sprintf("fields that nobody sent: %v", left)
	}
	return ""
}

// stored counts how often each of the first n events is stored, and compares
// every field of it.
func (v *victoriaLogs) stored(t *testing.T, n int) []int {
	t.Helper()
	seen := make([]int, n)
	r, wrong := renderer(), 0
	v.each(func(fields map[string]string) {
		i := numberOf(fields)
		if i < 0 || i >= n {
			t.Errorf("unexpected entry %.300q", fields["_msg"])
			return
		}
		seen[i]++
		if d := difference(r, i, fields); d != "" && wrong < 10 {
			wrong++
			t.Errorf("event %d: %s", i, d)
		}
	})
	return seen
}

func TestEveryFieldArrives(t *testing.T) {
	const n = 100_000
	v := newVictoriaLogs(t)
	setStamp(t, time.Now().Add(-6*time.Hour))
	began := time.Now()
	if err := send(t.Context(), t.TempDir(), v.pushURL(), n); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events queued and delivered in %v", n, time.Since(began).Round(time.Millisecond))
	seen := v.stored(t, n)
	report(t, seen, 0)
}

// report fails if an event is missing or there are more duplicates than may
// be.
func report(t *testing.T, seen []int, mayRepeat int) {
	t.Helper()
	lost, twice, first := 0, 0, -1
	for i, n := range seen {
		if n == 0 {
			lost++
			if first < 0 {
				first = i
			}
		}
		twice += max(n-1, 0)
	}
	t.Logf("%d events, %d lost, %d duplicates", len(seen), lost, twice)
	if lost > 0 {
		t.Errorf("%d of %d lost, the first is %d", lost, len(seen), first)
	}
	if twice > mayRepeat {
		t.Errorf("%d duplicates, want at most %d", twice, mayRepeat)
	}
}

// TestKillsAndRestarts kills the sender at random and stops the server now and
// then. Each event is there afterwards. VictoriaLogs keeps duplicates, so they
// can be counted: at most what was on its way at each kill.
func TestKillsAndRestarts(t *testing.T) {
	const n, kills = 40_000, 8
	v := newVictoriaLogs(t)
	setStamp(t, time.Now().Add(-6*time.Hour))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	killed := 0
	for k := range kills {
		cmd := sender(dir, v.pushURL(), n)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended: // it was fast
			if err != nil {
				t.Fatal(err)
			}
			continue
		case <-time.After(time.Duration(100+rnd.IntN(700)) * time.Millisecond):
		}
		if k%3 == 1 { // the server goes under a running sender
			v.stop()
			time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
			v.start()
			time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		}
		cmd.Process.Kill()
		<-ended
		killed++
	}
	cmd := sender(dir, v.pushURL(), n)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	seen := v.stored(t, n)
	t.Logf("killed %d times", killed)
	if killed == 0 {
		t.Error("the sender was never killed: nothing was tested")
	}
	// Four requests of 1 MiB at most were on their way at each kill, and of at
	// least 1.2 KB an entry. A server that stops may have stored what it does
	// not acknowledge any more; that is less.
	report(t, seen, (killed+kills)*4*(1<<20)/1200)
}

func sender(dir, url string, n int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envState+"="+dir, envURL+"="+url, fmt.Sprint(envEvents, "=", n))
	cmd.Stderr = os.Stderr
	return cmd
}
