package source

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

var zerologNop = zerolog.Nop()

func TestPodOf(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	own := annotate.K8s{Namespace: "own", Pod: "me", UID: "u0", Node: "n1"}
	cases := []struct {
		path, real string
		env, want  annotate.K8s
	}{
		{"/var/log/pods/rw_compute-0_4f0e/compute/3.log", "", annotate.K8s{}, annotate.K8s{Namespace: "rw", Pod: "compute-0", UID: "4f0e", Container: "compute", Restart: 3}},
		{"/var/log/pods/rw_compute-0_4f0e/compute/3.log.20261130-101500", "", own, annotate.K8s{Namespace: "rw", Pod: "compute-0", UID: "4f0e", Container: "compute", Restart: 3, Node: "n1"}},
		{"/var/log/containers/compute-0_rw_compute-" + id + ".log", "/var/log/pods/rw_compute-0_4f0e/compute/2.log", annotate.K8s{},
			annotate.K8s{Namespace: "rw", Pod: "compute-0", UID: "4f0e", Container: "compute", Restart: 2}},
		{"/var/log/containers/compute-0_rw_my-app-" + id + ".log", "/var/lib/docker/containers/x/x-json.log", annotate.K8s{}, annotate.K8s{Namespace: "rw", Pod: "compute-0", Container: "my-app"}},
		{"/var/log/self/compute/0.log", "", own, annotate.K8s{Namespace: "own", Pod: "me", UID: "u0", Container: "compute", Node: "n1"}},
		{"/var/log/self/compute/12.log", "", own, annotate.K8s{Namespace: "own", Pod: "me", UID: "u0", Container: "compute", Restart: 12, Node: "n1"}},
		{"/data/risingwave.log", "", own, own},
		{"/data/compute/0.log", "", annotate.K8s{}, annotate.K8s{}},
		{"/data/risingwave.log", "", annotate.K8s{}, annotate.K8s{}},
		{"/var/log/pods/a_b/c/0.log", "", annotate.K8s{}, annotate.K8s{}},
		{"/var/log/pods/a_b_c_d/c/0.log", "", annotate.K8s{}, annotate.K8s{}},
		{"/var/log/pods/a_b_c/c/x.log", "", annotate.K8s{}, annotate.K8s{}},
		{"/var/log/containers/a_b_c-123.log", "", annotate.K8s{}, annotate.K8s{}},
		{"0.log", "", own, own},
	}
	for _, c := range cases {
		if c.real == "" {
			c.real = c.path
		}
		if diff := cmp.Diff(c.want, podOf(c.path, c.real, c.env)); diff != "" {
			t.Errorf("%s: %s", c.path, diff)
		}
	}
}

func TestPositionSurvivesEncoding(t *testing.T) {
	p := position{Path: "/x", Head: fingerprint{256, 1<<64 - 1}, Mark: fingerprint{64, 7}, Offset: 1 << 40, Line: 3, Mtime: -1, Size: 9}
	got, ok := decodePosition(p.encode())
	if diff := cmp.Diff(p, got); !ok || diff != "" {
		t.Error(ok, diff)
	}
}

func TestPositionOfOthersIsRefused(t *testing.T) {
	for _, s := range []string{"", "null x", "[]", `{"offset":-1}`, `{"head":{"n":-5,"h":"1"}}`, `{"mark":{"n":1000000000,"h":"1"},"offset":1}`, `{"mark":{"n":9,"h":"1"},"offset":1}`} {
		if p, ok := decodePosition([]byte(s)); ok {
			t.Errorf("%s is taken for %+v", s, p)
		}
	}
}

func TestRelation(t *testing.T) {
	cases := []struct {
		name, base       string
		related, rotated bool
	}{
		{"a.log", "a.log", false, false},
		{"a.log.1", "a.log", true, true},
		{"a.log-20261130", "a.log", true, true},
		{"a.log.20261130-101500", "a.log", true, true},
		{"a.log.2026-11-30T10:15:00Z", "a.log", true, true},
		{"a.log.old", "a.log", true, true},
		{"a.log.bak", "a.log", true, false},
		{"a.log.1.txt", "a.log", true, false},
		{"a.log.", "a.log", false, false},
		{"a.logx", "a.log", false, false},
		{"b.log.1", "a.log", false, false},
		{"1.log", "0.log", false, false},
		{"0.log", "0.log", false, false},
		{"0.log.20261130-101500", "0.log", true, true},
		{"1.log.20261130-101500", "0.log", false, false},
	}
	for _, c := range cases {
		if related, rotated := relation(c.name, c.base); related != c.related || rotated != c.rotated {
			t.Errorf("%s beside %s: %v, %v", c.name, c.base, related, rotated)
		}
	}
}

func TestSiblingsLieBeside(t *testing.T) {
	for path, want := range map[string]bool{"/l/a.log.1": true, "/l/a.log-2/b": false, "/l/a.log": false, "/l/b.log.1": false, "/m/a.log.1": false} {
		if isSibling(path, "/l/a.log") != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// Between the truncation and the moment at which the file's goroutine sees it,
// only what was read of it tells that a file beside it is its copy.
func TestCopyOfWhatWasJustTruncated(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 30))
	w.write("a.log.1", text(0, 30))
	w.write("a.log.2", text(0, 31))
	original, err := os.Open(w.path("a.log"))
	w.check(err)
	defer original.Close()
	r, err := newReader(original, 0)
	w.check(err)
	_, err = r.Read(make([]byte, 64<<10))
	w.check(err)
	m := &Files{files: map[string]*file{"a": {real: w.path("a.log"), fd: original, now: r.position("", "", r.off, 0)}}}
	isCopy := func(name string) bool {
		fd, err := os.Open(w.path(name))
		w.check(err)
		defer fd.Close()
		info, err := fd.Stat()
		w.check(err)
		return m.isCopy(fd, w.path(name), info.Size())
	}
	if isCopy("a.log.2") {
		t.Error("has more than the original")
	}
	w.check(os.Truncate(w.path("a.log"), 0))
	w.append("a.log", text(30, 60))
	if !isCopy("a.log.1") {
		t.Error("the copy was not recognised")
	}
}

func TestIsRestart(t *testing.T) {
	for name, want := range map[string]bool{"1.log": true, "0.log": false, "12.log": true, "1.log.2": false, "a.log": false} {
		if got := isRestart(name, "0.log"); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLinksMayOnlyLeadToPlacesWatched(t *testing.T) {
	glob := input{pattern: "/logs/*.log", base: "/logs"}
	for path, want := range map[string]bool{"/logs/x": true, "/logs2/x": false, "/etc/shadow": false, "/var/log/pods/a/b": true, "/more/x": true, "/": false} {
		if got := glob.allows(path, []string{"/more"}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !(input{pattern: "/a", literal: true}).allows("/etc/x", nil) {
		t.Error("a path written out may lead anywhere")
	}
}
