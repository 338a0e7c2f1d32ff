package web

import (
	"bytes"
	"context"
	"flag"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write test/web/pictures")

// browser is a Chromium that is started anew for each page.
type browser struct {
	t    *testing.T
	path string
	base string // address of the pages
}

// newBrowser serves the demonstration; state is a text in it. Without a Chromium the test is left out,
// which is a failure where everything is required.
func newBrowser(t *testing.T, state string) *browser {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			srv := httptest.NewServer(demo(t, state).Handler())
			t.Cleanup(srv.Close)
			return &browser{t, path, srv.URL}
		}
	}
	if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
		t.Fatal("there is no chromium to look at the pages with")
	}
	t.Skip("left out: there is no chromium to look at the pages with (Debian: apt-get install chromium)")
	return nil
}

// run starts the browser once. It knows no network but the demonstration's.
func (b *browser) run(args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--user-data-dir=" + b.t.TempDir()}, args...)
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.WaitDelay = 5 * time.Second
	var out, diagnostics bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("%s %q: %v\n%s", b.path, args, err, &diagnostics)
	}
	return out.String()
}

// dom is a page as the browser understood it.
func (b *browser) dom(page string) string {
	b.t.Helper()
	return b.run("--dump-dom", page)
}

var link = regexp.MustCompile(`href="([^"]*)"`)

// TestNavigation follows each kind of link that a reader would, from the
// address that the browser resolves it against.
func TestNavigation(t *testing.T) {
	b := newBrowser(t, hostile)
	at, err := url.Parse(b.base + "/")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ follow, see string }{
		{"", "4 known errors in the last hour"},
		{"errors/failed-to-acquire-connection-from-pool", "Check the SQL database"},
		{"../errors", "risingwave-compute-2"},
		{"./catalog", "own.yaml"},
	} {
		if step.follow != "" {
			to, err := at.Parse(step.follow)
			if err != nil {
				t.Fatal(err)
			}
			at = to
		}
		page := b.dom(at.String())
		if !strings.Contains(page, step.see) {
			t.Fatalf("%s does not show %q:\n%s", at, step.see, page)
		}
		b.checkLinks(at, page)
	}
}

// checkLinks: all links of a page that lead to us lead somewhere.
func (b *browser) checkLinks(at *url.URL, page string) {
	b.t.Helper()
	seen := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		to, err := at.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
		if err != nil {
			b.t.Errorf("%s: link %q: %v", at, m[1], err)
			continue
		}
		to.Fragment = ""
		if to.Host != at.Host || seen[to.String()] {
			continue
		}
		seen[to.String()] = true
		res, err := http.Get(to.String())
		if err != nil {
			b.t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			b.t.Errorf("%s: link to %s: %s", at, to, res.Status)
		}
	}
	if len(seen) < 6 {
		b.t.Errorf("%s has %d links", at, len(seen))
	}
}

// TestHostileLine: a log line with markup, scripts, styles and terminal
// sequences is text for the browser, and nothing else.
func TestHostileLine(t *testing.T) {
	b := newBrowser(t, hostile)
	for _, page := range []string{"/", "/errors", "/errors/unexpected-backfill-state"} {
		dom := b.dom(b.base + page)
		if !strings.Contains(dom, "&lt;script&gt;document.title='owned'") {
			t.Errorf("%s does not show the hostile text at all:\n%s", page, dom)
		}
		for _, bad := range []string{"<script", "<img", "<style", "<b id", "<title>owned", "\x1b", "\x07", "\u202e", "\u2066", `href="http://evil`} {
			if strings.Contains(dom, bad) {
				t.Errorf("%s: %q got through", page, bad)
			}
		}
	}
}

// TestPolicyHolds: were a text ever to get through unescaped, the policy that
// we send keeps the browser from running it.
func TestPolicyHolds(t *testing.T) {
	b := newBrowser(t, hostile)
	page := func(policy string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<title>safe</title><p>` + hostile))
		}))
		defer srv.Close()
		return b.dom(srv.URL)
	}
	res, err := http.Get(b.base)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := page(res.Header.Get("Content-Security-Policy")); !strings.Contains(got, "<title>safe") {
		t.Errorf("the script ran:\n%s", got)
	}
	if got := page("default-src 'unsafe-inline'"); !strings.Contains(got, "<title>owned") {
		t.Errorf("the script does not run without the policy, so this test says nothing:\n%s", got)
	}
}

// pictures of the pages, in both themes and on a phone.
var pictures = []struct {
	name, page    string
	width, height int
	dark          bool
}{
	{"status-light", "/", 1100, 1000, false},
	{"status-dark", "/", 1100, 1000, true},
	{"status-phone", "/", 390, 1200, false},
	{"record-phone-dark", "/errors/mismatch-initial-vnode-bitmap-expect", 390, 1200, true},
}

// TestPictures: the pages fill the window and no more, and follow the theme.
// With -update the pictures are kept for the README.
func TestPictures(t *testing.T) {
	b := newBrowser(t, `BackfillStateWithProgress { state: SourceCachingUp("72"), target_offset: Some("118") }`)
	dir := t.TempDir()
	if *update {
		dir = "pictures"
	}
	for _, p := range pictures {
		t.Run(p.name, func(t *testing.T) {
			b := &browser{t, b.path, b.base}
			file, scheme := filepath.Join(dir, p.name+".png"), "1"
			if p.dark {
				scheme = "0"
			}
			b.run("--window-size="+strconv.Itoa(p.width)+","+strconv.Itoa(p.height), "--blink-settings=preferredColorScheme="+scheme, "--screenshot="+file, b.base+p.page)
			checkPicture(t, file, p.width, p.dark)
		})
	}
}

// checkPicture looks at the margins: they have the theme's background, and
// nothing sticks out to the right.
func checkPicture(t *testing.T, file string, width int, dark bool) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Dx(); got != width {
		t.Fatalf("%d pixels wide, not %d", got, width)
	}
	background := color.GrayModel.Convert(img.At(1, 1)).(color.Gray).Y
	if isDark := background < 64; isDark != dark {
		t.Errorf("background %d in dark theme %v", background, dark)
	}
	painted := 0
	for y := range img.Bounds().Dy() {
		for x := range width {
			if img.At(x, y) != img.At(1, 1) {
				painted++
			}
		}
		if img.At(width-4, y) != img.At(1, 1) {
			t.Fatalf("line %d: something sticks out to the right", y)
		}
	}
	if total := width * img.Bounds().Dy(); painted < total/10 {
		t.Errorf("only %d of %d pixels are painted", painted, total)
	}
}
