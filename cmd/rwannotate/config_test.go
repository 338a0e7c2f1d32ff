package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// execute runs one command line in the process.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, streams{strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConfigValidateBad: every bad configuration of internal/config ends in
// exit code 78 and the sentence that stands beside it.
func TestConfigValidateBad(t *testing.T) {
	archives, err := filepath.Glob("../../internal/config/testdata/bad/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	n := 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		for name, text := range files {
			base, isConfig := strings.CutSuffix(name, ".yaml")
			if !isConfig {
				continue
			}
			n++
			t.Run(base, func(t *testing.T) {
				if env, ok := files[base+".env"]; ok {
					key, value, _ := strings.Cut(strings.TrimSuffix(env, "\n"), "=")
					t.Setenv(key, value)
				}
				file := writeFile(t, name, text)
				code, stdout, stderr := execute(t, "config", "validate", file)
				want := filepath.Dir(file) + "/" + files[base+".want"] + "rwannotate: the configuration has a fault\n"
				if code != exitConfig || stdout != "" || stderr != want {
					t.Errorf("exit %d, stdout %q, stderr\n%swant\n%s", code, stdout, stderr, want)
				}
			})
		}
	}
	if n < 200 {
		t.Errorf("%d bad configurations, want at least 200", n)
	}
}

func TestConfigValidate(t *testing.T) {
	good := writeFile(t, "good.yaml", "log: {level: warn}\n")
	two := writeFile(t, "two.yaml", "log: {level: w, format: x}\n")
	missing := writeFile(t, "missing.yaml", "state: {dir: /tmp}\ncatalog: {disable: [no-such-record]}\nloki: {endpoints: [{url: 'http://127.0.0.1:1', bearer_token_file: /nowhere/token}]}\n")
	for _, tc := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // parts
	}{
		{"shipped", []string{"../../configs/rwannotate.yaml"}, exitOK, "../../configs/rwannotate.yaml: ok\n", ""},
		{"good", []string{good}, exitOK, good + ": ok\n", ""},
		{"by flag", []string{"-c", good}, exitOK, good + ": ok\n", ""},
		{"absent", []string{"/nowhere/x.yaml"}, exitConfig, "", "/nowhere/x.yaml: there is no such file"},
		{"two faults", []string{two}, exitConfig, "", "the configuration has 2 faults"},
		{"missing files are warnings", []string{missing}, exitOK, ": ok\n", "warning: loki.endpoints[0].bearer_token_file: /nowhere/token does not exist"},
		{"unknown record", []string{missing}, exitOK, ": ok\n", `:2:21: warning: catalog.disable[0]: the catalogue has no record "no-such-record"`},
		{"missing files with --online", []string{"--online", missing}, exitConfig, "", "the configuration has 2 faults"},
		{"nobody to ask", []string{"--online", "../../configs/rwannotate.yaml"}, exitOK, "no Loki endpoint is configured: nothing was asked\n", ""},
		{"two files", []string{good, two}, exitUsage, "", "accepts at most 1 arg"},
		{"bad flag", []string{"--of-line"}, exitUsage, "", "unknown flag"},
		{"bad value of a flag", []string{"--log-level", "loud"}, exitConfig, "", `--log-level: log.level: "loud" is not known`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("RWANNOTATE_CONFIG", "")
			code, stdout, stderr := execute(t, append([]string{"config", "validate"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) || tc.stderr == "" && stderr != "" {
				t.Errorf("exit %d, want %d\nstdout %q, want %q\nstderr %q, want %q", code, tc.code, stdout, tc.stdout, stderr, tc.stderr)
			}
		})
	}
}

// TestConfigShow: each value comes from the highest that gives it, and says
// so.
func TestConfigShow(t *testing.T) {
	file := writeFile(t, "c.yaml", "log: {level: warn, format: text}\nweb: {listen: ':1'}\nloki: {repeat: all}\nstate: {dir: /s}\n")
	t.Setenv("RWANNOTATE_CONFIG", file)
	t.Setenv("RWANNOTATE_LOG_LEVEL", "debug")
	t.Setenv("RWANNOTATE_WEB_LISTEN", ":2")
	args := []string{
		"config", "show", "--web-listen", ":3", "--input", "/a", "--input", "-", "--start", "end", "--patterns", "/p", "--patterns", "/q",
		"--no-embedded", "--strict", "--loki-url", "http://user:hunter2@loki?token=hunter2",
	}
	code, stdout, stderr := execute(t, append(args, "-o", "json")...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var values []struct{ Key, Value, Origin string }
	if err := json.Unmarshal([]byte(stdout), &values); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range values {
		got[v.Key] = v.Value + " | " + v.Origin
	}
	for key, want := range map[string]string{
		"web.listen":             ":3 | flag --web-listen",
		"log.level":              "debug | env RWANNOTATE_LOG_LEVEL",
		"log.format":             "text | file " + file + ":1",
		"loki.repeat":            "all | file " + file + ":3",
		"loki.heartbeat":         "1m | default",
		"inputs[0].stdin":        "true | flag --input",
		"inputs[1].files[0]":     "/a | flag --input",
		"inputs[1].start":        "end | flag --start",
		"catalog.paths[1]":       "/q | flag --patterns",
		"catalog.embedded":       "false | flag --no-embedded",
		"catalog.strict":         "true | flag --strict",
		"loki.endpoints[0].url":  "http://***@loki?token=*** | flag --loki-url",
		"loki.endpoints[0].name": "loki | default",
	} {
		if got[key] != want {
			t.Errorf("%s: %s, want %s", key, got[key], want)
		}
	}
	_, text, _ := execute(t, args...)
	if !strings.Contains(text, "  listen: \":3\"") || !strings.Contains(text, "# flag --web-listen\n") || strings.Contains(text+stdout, "hunter") {
		t.Errorf("shown as\n%s", text)
	}
	if code, _, _ := execute(t, "config", "show", "-o", "xml"); code != exitUsage {
		t.Errorf("-o xml: exit %d", code)
	}
	if code, stdout, _ := execute(t, "config", "show", "-c", "/nowhere"); code != exitConfig || stdout != "" {
		t.Errorf("no file: exit %d, %q", code, stdout)
	}
}

func TestConfigSchema(t *testing.T) {
	want, err := os.ReadFile("../../configs/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := execute(t, "config", "schema"); code != exitOK || stdout != string(want) {
		t.Errorf("exit %d, %d bytes, want %d", code, len(stdout), len(want))
	}
}

func TestConfigAloneShowsHelp(t *testing.T) {
	if code, stdout, _ := execute(t, "config"); code != exitUsage || !strings.Contains(stdout, "validate") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// TestOnline: what each answer of a server means.
func TestOnline(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		code   int
		want   string
	}{
		{"204", status(204, ""), exitOK, "it answered 204 No Content: ready"},
		{"Loki", status(422, "error at least one valid stream is required for ingestion\n"), exitOK, `it answered 422 Unprocessable Entity ("error at least one valid stream is required for ingestion"), as Loki does to an empty push: ready`},
		{"old Loki", status(400, "error at least one valid stream is required for ingestion\n"), exitOK, "ready"},
		{"bad request", status(400, "mime: no media type\n"), exitConfig, `it answered 400 Bad Request ("mime: no media type")`},
		{"no tenant", status(401, "no org id\n"), exitConfig, `("no org id"); check basic_auth, bearer_token_file, headers and tenant_id`},
		{"forbidden", status(403, ""), exitConfig, "it answered 403 Forbidden; check basic_auth"},
		{"wrong path", status(404, "404 page not found"), exitConfig, "; check the path of url"},
		{"wrong server", page, exitConfig, "with a web page; this is no push endpoint"},
		{"moved", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://u:hunter2@other/push", http.StatusMovedPermanently)
		}, exitConfig, "write https://***@other/push into url"},
		{"starting", status(503, "Ingester not ready"), exitRuntime, "it is reached, but takes nothing now"},
		{"busy", status(429, ""), exitRuntime, "takes nothing now"},
		{"blocked", status(260, "ingestion blocked"), exitRuntime, "only 200 and 204 mean that events are taken"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			file := writeFile(t, "c.yaml", "state: {dir: /tmp}\nloki: {endpoints: [{url: "+server.URL+"}]}\n")
			code, stdout, stderr := execute(t, "config", "validate", "--online", file)
			if code != tc.code || !strings.Contains(stdout, "loki endpoint loki, "+server.URL+": ") || !strings.Contains(stdout, tc.want) {
				t.Errorf("exit %d, want %d\n%s%s", code, tc.code, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "hunter") {
				t.Errorf("a secret is shown:\n%s%s", stdout, stderr)
			}
		})
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html>")
}

// TestOnlineRequest: the probe is the push of the daemon, with nothing in it.
func TestOnlineRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	ca := writeFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	password := writeFile(t, "password", "hunter2\n")
	file := writeFile(t, "c.yaml", fmt.Sprintf(`
state: {dir: /tmp}
loki:
  endpoints:
    - url: %s/
      tenant_id: 7
      basic_auth: {username: me, password_file: %s}
      headers: {X-A: b, Host: loki.example}
      tls: {ca_file: %s}
    - name: token
      url: %s/insert/loki/api/v1/push?x=1
      bearer_token_file: %s
      tls: {ca_file: %s}
`, server.URL, password, ca, server.URL, password, ca))
	code, stdout, stderr := execute(t, "config", "validate", "--online", file)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if got.Header.Get("Authorization") != "Bearer hunter2" || got.RequestURI != "/insert/loki/api/v1/push?x=1" {
		t.Errorf("%s %s, %v", got.Method, got.RequestURI, got.Header)
	}

	single := strings.Split(mustRead(t, file), "    - name: token")[0]
	if code, stdout, stderr := execute(t, "config", "validate", "--online", writeFile(t, "one.yaml", single)); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	user, pass, _ := got.BasicAuth()
	if got.Method != "POST" || got.RequestURI != "/loki/api/v1/push" || user != "me" || pass != "hunter2" || string(body) != `{"streams":[]}` {
		t.Errorf("%s %s, user %q, body %s", got.Method, got.RequestURI, user, body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "X-Scope-Orgid": "7", "X-A": "b"} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if got.Host != "loki.example" {
		t.Errorf("host %q", got.Host)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOnlineUnreachable: nobody listens, or speaks TLS that we don't trust;
// and one endpoint's trouble does not hide another's answer.
func TestOnlineUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://user:hunter2@" + listener.Addr().String()
	listener.Close()
	server := httptest.NewTLSServer(status(204, ""))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	file := writeFile(t, "c.yaml", fmt.Sprintf("state: {dir: /tmp}\nloki: {endpoints: [{name: a, url: '%s'}, {name: b, url: '%s'}, {name: c, url: '%s', tls: {insecure_skip_verify: true}}]}\n", closed, server.URL, server.URL))
	code, stdout, stderr := execute(t, "config", "validate", "--online", file)
	if code != exitRuntime || !strings.Contains(stderr, "not every Loki endpoint is ready") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"endpoint a, http://***@", "connection refused", "endpoint b", "no answer: tls: failed to verify certificate", "endpoint c", ": ready"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout+stderr, "hunter") {
		t.Errorf("a secret is shown:\n%s%s", stdout, stderr)
	}
}

// An endpoint that echoes the request does not get our secrets onto the screen.
func TestOnlineEcho(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintln(w, "no access to ", r.RequestURI, " with ", r.Header)
	}))
	defer server.Close()
	secret := writeFile(t, "secret", "hunter22hunter22")
	file := writeFile(t, "c.yaml", fmt.Sprintf(`
state: {dir: /tmp}
loki:
  endpoints:
    - {name: a, url: "%s/push?token=hunter22", bearer_token_file: %s}
    - {name: b, url: "http://rw:hunter22@%s/push", headers: {X-Key: hunter22}}
`, server.URL, secret, strings.TrimPrefix(server.URL, "http://")))
	code, stdout, stderr := execute(t, "config", "validate", "--online", file)
	if text := stdout + stderr; code != exitConfig || strings.Contains(text, "hunter22") || strings.Contains(text, "cnc6aHVudGVyMjI") || strings.Count(text, "no access to") != 2 {
		t.Errorf("exit %d:\n%s", code, text)
	}
}
