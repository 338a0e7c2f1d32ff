package loki

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/sink/loki"
)

// backlog is a queue that grows by so many entries a second. They are made
// when they are read, so that what the client holds can be measured.
type backlog struct {
	mu    sync.Mutex
	from  time.Time
	rate  int
	total uint64
	acked map[uint64]bool
	low   uint64 // everything up to here is acknowledged
}

func (q *backlog) last() uint64 {
	return min(q.total, uint64(time.Since(q.from).Seconds()*float64(q.rate)))
}

func (q *backlog) Read(after uint64, maxEntries, _ int) ([]loki.QueueEntry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []loki.QueueEntry
	for seq := max(after, q.low) + 1; seq <= q.last() && len(out) < maxEntries; seq++ {
		if !q.acked[seq] {
			out = append(out, loki.QueueEntry{Seq: seq, Data: fmt.Appendf(nil, "%d", seq)})
		}
	}
	return out, nil
}

func (q *backlog) Ack(seqs []uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range seqs {
		if s <= q.low || q.acked[s] {
			return fmt.Errorf("%d is acknowledged twice", s)
		}
		q.acked[s] = true
	}
	for q.acked[q.low+1] {
		q.low++
		delete(q.acked, q.low)
	}
	return nil
}

func (q *backlog) Size() (int, int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := int(q.last()-q.low) - len(q.acked)
	return n, int64(n) * 700
}

// lokiOf answers without a network, so that time can be simulated.
type lokiOf func(w http.ResponseWriter, r *http.Request)

func (f lokiOf) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f(w, r)
	return w.Result(), nil
}

// TestTenMinutesDownAtAThousandErrorsASecond: nothing folded, Loki gone for ten
// simulated minutes. Memory stays where it was, hardly any request is made,
// and afterwards every entry arrives, in the order of its stream.
func TestTenMinutesDownAtAThousandErrorsASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 660_000
		q := &backlog{from: time.Now(), rate: 1000, total: total, acked: map[uint64]bool{}}
		filler := strings.Repeat("x", 300)
		render := func(data []byte) (loki.Entry, error) {
			var seq int
			fmt.Sscan(string(data), &seq)
			return loki.Entry{
				Labels: []loki.Pair{{Name: "service_name", Value: "risingwave"}, {Name: "component", Value: []string{"meta", "compute", "frontend"}[seq%3]}},
				Time:   q.from.Add(time.Duration(seq) * time.Millisecond), Line: fmt.Sprintf("%d %s", seq, filler),
			}, nil
		}
		var down atomic.Bool
		var refused atomic.Int64
		down.Store(true)
		var mu sync.Mutex
		last, count := map[string]int{}, 0
		server := lokiOf(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				refused.Add(1)
				w.WriteHeader(503)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			count += arrived(t, r, last)
			w.WriteHeader(204)
		})
		c, err := loki.New(loki.Options{URL: "http://loki.test", Heartbeat: -1, RoundTripper: server}, q, render, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		before := heap()
		most := int64(0)
		for range 10 {
			time.Sleep(time.Minute)
			synctest.Wait()
			most = max(most, heap()-before)
		}
		s := c.Stats()
		t.Logf("after ten minutes: %d requests, %d entries wait in the queue, %d KiB of them in memory, heap grew by %d KiB",
			refused.Load(), s.QueueEntries, s.HeldBytes>>10, most>>10)
		if refused.Load() > 80 {
			t.Error("that is no backoff")
		}
		if most > 32<<20 {
			t.Error("memory is the queue")
		}
		down.Store(false)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		cancel()
		<-done
		if n, _ := q.Size(); n != 0 || count != total {
			t.Errorf("%d of %d arrived, %d left in the queue", count, total, n)
		}
	})
}

// arrived reads a push and checks that the numbers of its stream grow.
func arrived(t *testing.T, r *http.Request, last map[string]int) int {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Error(err)
		return 0
	}
	var body struct {
		Streams []struct {
			Stream map[string]string
			Values [][2]string
		}
	}
	if err := json.NewDecoder(z).Decode(&body); err != nil {
		t.Error(err)
		return 0
	}
	n := 0
	for _, s := range body.Streams {
		name := s.Stream["component"]
		for _, v := range s.Values {
			var seq int
			fmt.Sscan(v[1], &seq)
			if seq <= last[name] {
				t.Errorf("%s: %d after %d", name, seq, last[name])
			}
			last[name] = seq
			n++
		}
	}
	return n
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
