package loki

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// store is a server that keeps one of several equal entries, as Loki does.
type store struct {
	mu      sync.Mutex
	entries map[string]map[string]string // stamp and line → metadata
	again   int
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Streams []struct {
			Values [][]json.RawMessage
		}
	}
	z, err := gzip.NewReader(r.Body)
	if err == nil {
		err = json.NewDecoder(z).Decode(&body)
	}
	if err != nil {
		w.WriteHeader(500) // a killed sender
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range body.Streams {
		for _, v := range stream.Values {
			var meta map[string]string
			if err := json.Unmarshal(v[2], &meta); err != nil {
				w.WriteHeader(400)
				return
			}
			id := string(v[0]) + string(v[1])
			if _, ok := s.entries[id]; ok {
				s.again++
			}
			s.entries[id] = meta
		}
	}
	w.WriteHeader(204)
}

// TestCountsSurviveKills: however often the process is killed while it folds
// and sends, the sum of seen_new in the end is the number of occurrences.
func TestCountsSurviveKills(t *testing.T) {
	const n, kills = 30_000, 10
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	setStamp(t, time.Now().Add(-time.Hour))
	s := &store{entries: map[string]map[string]string{}}
	server := httptest.NewServer(s)
	defer server.Close()
	dir, killed := t.TempDir(), 0
	for range kills {
		cmd := sender(dir, server.URL, n)
		cmd.Env = append(cmd.Env, envFold+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(30+rnd.IntN(200)) * time.Millisecond)
		cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
	}
	cmd := sender(dir, server.URL, n)
	cmd.Env = append(cmd.Env, envFold+"=1")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	sum, fingerprints := 0, map[string]bool{}
	for _, meta := range s.entries {
		count, err := strconv.Atoi(meta["seen_new"])
		if err != nil {
			t.Fatal(err)
		}
		sum += count
		fingerprints[fmt.Sprint(meta["error_id"], meta["pod"])] = true
	}
	t.Logf("killed %d times: %d entries of %d errors for %d occurrences, %d sent again", killed, len(s.entries), len(fingerprints), n, s.again)
	if sum != n {
		t.Errorf("the sum of seen_new is %d, want %d", sum, n)
	}
	if killed < kills/2 {
		t.Error("hardly ever killed: nothing was tested")
	}
	if len(s.entries) > n/10 {
		t.Errorf("%d entries: nothing was folded", len(s.entries))
	}
}
