package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// said collects what the daemon writes.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A reloadRig is a daemon with a catalogue behind a link, as a mounted
// repository has it, and its page.
type reloadRig struct {
	t      *testing.T
	dir    string
	base   string
	stderr said
}

func newReloadRig(t *testing.T) *reloadRig {
	t.Helper()
	r := &reloadRig{t: t, dir: t.TempDir()}
	r.write("a.log", "")
	r.record("v1", "one-error")
	r.link("v1")
	r.configure("")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"run", "-c", filepath.Join(r.dir, "c.yaml"), "--web-listen", "127.0.0.1:0"}, streams{nil, io.Discard, &r.stderr})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	r.eventually("the start", func() bool {
		_, rest, found := strings.Cut(r.stderr.String(), `"address":"`)
		address, _, _ := strings.Cut(rest, `"`)
		r.base = "http://" + address
		return found
	})
	return r
}

func (r *reloadRig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloadRig) record(version, slug string) {
	r.write(version+"/own.yaml", fmt.Sprintf("id: '00000000000000ff'\nslug: %s\nerrorMessage: 'an error text of our own: {}'\nsolutions: [Look it up.]\n", slug))
}

func (r *reloadRig) link(version string) {
	link := filepath.Join(r.dir, "catalog")
	_ = os.Remove(link)
	if err := os.Symlink(version, link); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reloadRig) configure(more string) {
	r.write("c.yaml", fmt.Sprintf("inputs: [{files: [%s/a.log]}]\nweb: {enable_reload: true}\nreload: {interval: 1s}\ncatalog:\n  embedded: false\n  paths: [%s/catalog]\n%s", r.dir, r.dir, more))
}

// ask is the plain text of an address, "" if it is not 200.
func (r *reloadRig) ask(at string) string {
	res, err := http.Get(r.base + at)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

func (r *reloadRig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for range 600 { // half a minute: the machine may have other things to do
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("not seen: %s\n%s", what, r.stderr.String())
}

// A reload that fails says what is wrong to whoever asked, in the log and on
// the page.
func TestReloadSaysWhatIsWrong(t *testing.T) {
	r := newReloadRig(t)
	r.write("v1/faulty.yaml", "id: '00000000000000fe'\nslug: faulty\nerrorMessage: 'some other error text: {}'\nserverity: error\n")
	res, err := http.Post(r.base+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	for where, text := range map[string]string{"answer": string(body), "log": r.stderr.String(), "page": r.ask("/catalog")} {
		if !strings.Contains(text, "faulty.yaml") || !strings.Contains(text, "serverity") {
			t.Errorf("%s: %s", where, text)
		}
	}
	for line := range strings.Lines(r.stderr.String()) {
		if !strings.HasPrefix(line, "{") {
			t.Errorf("not one of our messages: %s", line)
		}
	}
	if !strings.Contains(r.ask("/metrics"), "rwannotate_catalog_last_reload_successful 0") || r.ask("/errors/one-error") == "" {
		t.Error("the metric does not tell, or the old catalogue is gone")
	}
}

// A catalogue behind a link is loaded when the link is switched.
func TestReloadFollowsLink(t *testing.T) {
	r := newReloadRig(t)
	r.record("v2", "another-error")
	r.link("v2")
	r.eventually("the other catalogue", func() bool { return r.ask("/errors/another-error") != "" })
}

// What a changed configuration says of the catalogue is in force after a
// reload, and shown; what needs a restart is named.
func TestReloadOfConfiguration(t *testing.T) {
	r := newReloadRig(t)
	r.write("v3/other.yaml", "id: '00000000000000fd'\nslug: third-error\nerrorMessage: 'a third error text of ours: {}'\nsolutions: [Look it up.]\n")
	r.configure("  disable: [one-error, no-such-error]\nlog: {level: debug}\nloki: {labels: {cluster: prod}}\n")
	c, err := os.ReadFile(filepath.Join(r.dir, "c.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.write("c.yaml", strings.Replace(string(c), "/catalog]", "/catalog, "+r.dir+"/v3]", 1))
	r.eventually("the reload", func() bool { return r.ask("/errors/third-error") != "" })
	r.eventually("its end", func() bool { return strings.Contains(r.stderr.String(), `"message":"reloaded"`) })
	if got := r.ask("/config"); !strings.Contains(got, "- one-error") || !strings.Contains(got, "level: info") {
		t.Errorf("not what is in force:\n%s", got)
	}
	for where, text := range map[string]string{"page": r.ask("/"), "log": r.stderr.String()} {
		if !strings.Contains(text, "log.level") || !strings.Contains(text, "loki.labels.cluster") || strings.Contains(text, "catalog.disable[0]") {
			t.Errorf("%s: %s", where, text)
		}
	}
	for where, text := range map[string]string{"page": strings.Join(strings.Fields(r.ask("/")), " "), "log": strings.ReplaceAll(r.stderr.String(), `\"`, `"`)} {
		if !strings.Contains(text, `the catalogue has no record "no-such-error"`) {
			t.Errorf("%s: %s", where, text)
		}
	}
	// The new directory is watched, too.
	r.write("v3/fourth.yaml", "id: '00000000000000fc'\nslug: fourth-error\nerrorMessage: 'a fourth error text of ours: {}'\nsolutions: [Look it up.]\n")
	r.eventually("the record in the new directory", func() bool { return r.ask("/errors/fourth-error") != "" })
}
