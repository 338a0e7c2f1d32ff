package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHealthcheck(t *testing.T) {
	answer := func(status int, text string, wait time.Duration) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
			}
			http.Error(w, text, status)
		}))
		t.Cleanup(srv.Close)
		return srv.Listener.Addr().String()
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	well := answer(200, "ok", 0)

	for _, tt := range []struct {
		name, addr, env string
		code            int
		say             string
	}{
		{"well", well, "", exitOK, well + ": ok"},
		{"from the environment, every address", "", "0.0.0.0" + well[strings.LastIndex(well, ":"):], exitOK, ": ok"},
		{"stuck", answer(503, "/var/log/x: not moving", 0), "", exitRuntime, "not moving"},
		{"nobody there", nobody, "", exitRuntime, "refused"},
		{"silent", answer(200, "ok", 5*time.Second), "", exitRuntime, "deadline"},
		{"no address", "12399", "", exitRuntime, `"12399" is no host:port`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("RWANNOTATE_CONFIG", "")
			t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
			if tt.env != "" {
				t.Setenv("RWANNOTATE_WEB_LISTEN", tt.env)
			}
			args := []string{"healthcheck"}
			if tt.addr != "" {
				args = append(args, "--addr", tt.addr)
			}
			var out, diagnostics bytes.Buffer
			code := run(t.Context(), args, streams{strings.NewReader(""), &out, &diagnostics})
			said := out.String() + diagnostics.String()
			if code != tt.code || !strings.Contains(said, tt.say) || strings.Count(said, "\n") != 1 {
				t.Errorf("exit %d, %q; want %d, %q in one line", code, said, tt.code, tt.say)
			}
		})
	}
}
