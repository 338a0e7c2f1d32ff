package torture

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLokiDown lets errors come at 1,000 a second, each to be sent, while
// nobody listens where Loki should be and the queue has little room. Memory
// stays within its bound, the input waits, and once Loki is there everything
// is delivered, in order.
func TestLokiDown(t *testing.T) {
	const rate, seconds, limit = 1000, 15, 128
	dir := t.TempDir()
	bin := filepath.Join(dir, "rwannotate")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/rwannotate").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close()) // nobody listens there for now
	log, err := os.Create(filepath.Join(dir, "a.log"))
	must(t, err)
	defer log.Close()
	config := filepath.Join(dir, "config.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `inputs: [{files: [%s]}]
output: {stdout: false}
state: {dir: %s, queue_max_bytes: 2MiB}
loki: {repeat: all, endpoints: [{url: "http://%s"}]}
web: {listen: ""}
`, log.Name(), filepath.Join(dir, "state"), address), 0o644))
	cmd := exec.Command(bin, "run", "-c", config)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }() // if the test has failed before

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	peak, n := 0, 0
	for n < rate*seconds {
		<-tick.C
		for range rate / 50 {
			write(t, log, n)
			n++
		}
		peak = max(peak, resident(t, cmd.Process.Pid))
	}
	t.Logf("peak %d MiB while Loki was down", peak)
	if peak > limit {
		t.Errorf("%d MiB while Loki was down, want %d at most", peak, limit)
	}

	listener, err = net.Listen("tcp", address)
	must(t, err)
	stub := &lokiStub{}
	server := &http.Server{Handler: stub, ReadHeaderTimeout: time.Second}
	go server.Serve(listener) // ends with Close
	defer server.Close()
	for end := time.Now().Add(90 * time.Second); stub.count() < n && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	stub.check(t, n)
}

// lokiStub takes everything and remembers the order of the numbers.
type lokiStub struct {
	mu   sync.Mutex
	seqs []string
}

func (s *lokiStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	var push struct {
		Streams []struct{ Values [][]any }
	}
	if err := json.NewDecoder(body).Decode(&push); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range push.Streams {
		for _, value := range stream.Values {
			if m := reloadSequence.FindStringSubmatch(fmt.Sprint(value[1])); m != nil { // not the heartbeat
				s.seqs = append(s.seqs, m[1])
			}
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *lokiStub) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seqs)
}

func (s *lokiStub) check(t *testing.T, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.IsSorted(s.seqs) {
		t.Error("not in order")
	}
	if got := len(slices.Compact(slices.Clone(s.seqs))); got != n || len(s.seqs) != n {
		t.Errorf("%d of %d delivered, %d in all", got, n, len(s.seqs))
	}
}
