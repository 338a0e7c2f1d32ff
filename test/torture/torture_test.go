// Package torture lets writers and rotations loose on the real binary, stops
// and kills it, and counts: each error that was written is reported exactly
// once; after a kill -9, at least once.
//
// RWANNOTATE_TORTURE sets the duration (default 15s; 60s under
// RWANNOTATE_REQUIRE_ALL=1), RWANNOTATE_TORTURE_SEED repeats a run.
package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// perKill is how many events one kill may repeat: what one commit interval
// holds, and this is far more than our writers write in it.
const perKill = 1500

func TestTorture(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("RWANNOTATE_TORTURE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	for _, kill := range []bool{false, true} {
		name := "exactly once"
		if kill {
			name = "kill -9"
		}
		t.Run(name, func(t *testing.T) {
			t.Logf("RWANNOTATE_TORTURE_SEED=%d", seed)
			torture(t, seed, duration(t)/2, kill)
		})
	}
}

func duration(t *testing.T) time.Duration {
	d := 15 * time.Second
	if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
		d = time.Minute
	}
	if s := os.Getenv("RWANNOTATE_TORTURE"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func torture(t *testing.T, seed uint64, d time.Duration, kill bool) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(dir, "log")
	if err := os.Mkdir(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, logs: logs, files: len(rotations) * len(forms), binary: build(t, dir), args: []string{"run", "--state", filepath.Join(dir, "state")}, events: map[string]int{},
		rnd: rand.New(rand.NewPCG(seed, 99))}
	var calm sync.RWMutex
	var writers []*writer
	for _, way := range slices.Sorted(maps.Keys(rotations)) {
		for _, f := range slices.Sorted(maps.Keys(forms)) {
			w := &writer{name: way + f, form: forms[f], rotate: rotations[way], t: t, calm: &calm, seen: v.seen,
				path: filepath.Join(logs, way+f+".log"), rnd: rand.New(rand.NewPCG(seed, uint64(len(writers))))}
			writers = append(writers, w)
			v.args = append(v.args, "--input", w.path)
			if way == "relink" {
				w.link()
			} else {
				w.open()
			}
		}
	}
	v.start()

	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() { w.run(stop) })
	}
	kills := v.trouble(d, kill, &calm)
	close(stop)
	wg.Wait()
	v.finish(writers)
	v.stop()
	v.verdict(writers, kills)
}

func build(t *testing.T, dir string) string {
	binary := filepath.Join(dir, "rwannotate")
	cmd := exec.Command("go", "build", "-o", binary, "../../cmd/rwannotate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// A victim is the daemon through its lives.
type victim struct {
	t      *testing.T
	binary string
	args   []string
	logs   string // directory of the logs
	files  int    // number of logs
	rnd    *rand.Rand

	cmd    *exec.Cmd
	read   chan struct{} // closed when the output of this life was read to its end
	stderr strings.Builder

	mu     sync.Mutex
	events map[string]int // by writer and number
	wrong  []string
	hold   sync.Mutex // held while standard output is not read
}

func (v *victim) start() {
	v.cmd = exec.Command(v.binary, v.args...)
	v.cmd.Stderr = &lines{v: v}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	v.await(func() bool { return v.open() >= v.files })
	v.read = make(chan struct{})
	go func(read chan struct{}) { defer close(read); v.follow(out) }(v.read)
}

// open counts the logs that the daemon has open.
func (v *victim) open() int {
	dir := fmt.Sprintf("/proc/%d/fd", v.cmd.Process.Pid)
	entries, _ := os.ReadDir(dir)
	logs := map[string]bool{}
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.HasPrefix(to, v.logs) {
			logs[to] = true
		}
	}
	return len(logs)
}

// await waits for something, for a while.
func (v *victim) await(ok func() bool) {
	for end := time.Now().Add(20 * time.Second); !ok() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// lines keeps what the daemon says for the report of a failure.
type lines struct{ v *victim }

func (l *lines) Write(p []byte) (int, error) {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	return l.v.stderr.Write(p)
}

// follow counts the events of one life.
func (v *victim) follow(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return // what a kill left of a line counts for nothing
		}
		v.count(line)
		v.pass()
	}
}

// pass waits while the reader of the output is held.
func (v *victim) pass() {
	v.hold.Lock()
	defer v.hold.Unlock()
}

var sequence = regexp.MustCompile(`seq=([a-z]+)-(\d{7}) `)

// count looks at one event: it must hold one error, whole.
func (v *victim) count(line string) {
	var ev struct {
		Message string
		Origin  struct {
			Line, Path string
			Offset     int64
		}
	}
	err := json.Unmarshal([]byte(line), &ev)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.wrong = append(v.wrong, fmt.Sprintf("not JSON: %v: %.200s", err, line))
		return
	}
	text := ev.Origin.Line
	ids := sequence.FindAllStringSubmatch(text, -1)
	if len(ids) != 1 {
		v.wrong = append(v.wrong, fmt.Sprintf("%d errors in one event at %d of %s: %.100q … %q", len(ids), ev.Origin.Offset, filepath.Base(ev.Origin.Path), text, text[max(0, len(text)-200):]))
		return
	}
	n, _ := strconv.Atoi(ids[0][2])
	// A long line keeps its beginning and what stands around the match.
	begin, rest, _ := strings.Cut(text, " … ")
	end, _, _ := strings.Cut(rest, "\n")
	want := errorLine(ids[0][1], n)
	if !strings.HasPrefix(want, begin) && !strings.HasPrefix(text, want) || !strings.HasSuffix(want, end) {
		v.wrong = append(v.wrong, fmt.Sprintf("not as it was written: %.300q", text))
	}
	v.events[ids[0][1]+"-"+ids[0][2]]++
}

func (v *victim) seen(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.events[id] > 0
}

// trouble stops, blocks and kills the daemon for the time given.
func (v *victim) trouble(d time.Duration, kill bool, calm *sync.RWMutex) (kills int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(500+v.rnd.IntN(2000)) * time.Millisecond)
		pause := time.Duration(100+v.rnd.IntN(1500)) * time.Millisecond
		what := v.rnd.IntN(4)
		if what == 3 && !kill {
			what = 2
		}
		switch what {
		case 0:
			v.signal(syscall.SIGSTOP)
			time.Sleep(pause)
			v.signal(syscall.SIGCONT)
		case 1:
			v.hold.Lock() // the reader of standard output does nothing
			time.Sleep(pause)
			v.hold.Unlock()
		case 2:
			calm.Lock()
			v.stop()
			time.Sleep(pause / 2)
			v.start()
			calm.Unlock()
		case 3:
			calm.Lock()
			kills++
			v.signal(syscall.SIGKILL)
			<-v.read
			_ = v.cmd.Wait() // killed
			time.Sleep(pause / 2)
			v.start()
			calm.Unlock()
		}
	}
	return kills
}

func (v *victim) signal(s syscall.Signal) {
	if err := v.cmd.Process.Signal(s); err != nil {
		v.t.Errorf("%v: %v", s, err)
	}
}

// stop ends the daemon as an operator does.
func (v *victim) stop() {
	v.signal(syscall.SIGTERM)
	<-v.read
	if err := v.cmd.Wait(); err != nil {
		v.t.Errorf("after SIGTERM: %v\n%s", err, v.said())
	}
}

func (v *victim) said() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.stderr.String()
	return s[max(0, len(s)-8000):]
}

// finish waits until everything is out, or nothing more comes.
func (v *victim) finish(writers []*writer) {
	want := 0
	for _, w := range writers {
		want += w.n
	}
	last, since := -1, time.Now()
	for {
		v.mu.Lock()
		n := len(v.events)
		v.mu.Unlock()
		if n >= want {
			time.Sleep(time.Second) // for duplicates
			return
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > 20*time.Second {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (v *victim) verdict(writers []*writer, kills int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	total, lost, twice, rotated := 0, 0, 0, 0
	for _, w := range writers {
		rotated += w.rotated
		for i := range w.n {
			total++
			id := fmt.Sprintf("%s-%07d", w.name, i)
			n := v.events[id]
			delete(v.events, id)
			if n == 0 {
				if lost++; lost <= 20 {
					v.t.Errorf("%s was not reported; it was written %s", id, w.when(i))
				}
			}
			if n > 1 {
				if twice += n - 1; kills == 0 && twice <= 20 {
					v.t.Errorf("%s was reported %d times; it was written %s", id, n, w.when(i))
				}
			}
		}
	}
	for id, n := range v.events {
		v.t.Errorf("%s was never written, and reported %d times", id, n)
	}
	for _, s := range v.wrong[:min(len(v.wrong), 20)] {
		v.t.Error(s)
	}
	v.t.Logf("%d errors written, %d rotations, %d kills: %d lost, %d repeated", total, rotated, kills, lost, twice)
	if twice > kills*perKill {
		v.t.Errorf("%d repeated after %d kills", twice, kills)
	}
	if v.t.Failed() {
		s := v.stderr.String()
		v.t.Logf("standard error: %s", s[max(0, len(s)-60_000):])
	}
}
