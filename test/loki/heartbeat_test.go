package loki

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/sink/loki"
)

// heartbeatLine is the line of a heartbeat as it is sent.
func heartbeatLine(t *testing.T) (line map[string]any) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := lokiOf(func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Streams []struct{ Values [][]json.RawMessage }
			}
			var text string
			z, err := gzip.NewReader(r.Body)
			if err == nil {
				err = json.NewDecoder(z).Decode(&body)
			}
			if err == nil {
				err = json.Unmarshal(body.Streams[0].Values[0][1], &text)
			}
			if err == nil {
				err = json.Unmarshal([]byte(text), &line)
			}
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(204)
		})
		c, err := loki.New(loki.Options{URL: "http://loki.test", RoundTripper: server, Instance: "node-1"}, &backlog{from: time.Now(), acked: map[uint64]bool{}}, nil, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(62 * time.Second)
		synctest.Wait()
		cancel()
		<-done
	})
	return line
}
