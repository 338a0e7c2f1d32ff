package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/patterns"
)

// builder runs buildah with a storage of its own.
type builder struct {
	tool, storage string
}

func newBuilder(t *testing.T) builder {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "building an image needs root")
	}
	b := builder{need(t, "buildah"), t.TempDir()}
	t.Cleanup(func() { _ = exec.Command(b.tool, b.args("umount", "--all")...).Run() })
	return b
}

func (b builder) args(args ...string) []string {
	return append([]string{"--storage-driver", "vfs", "--root", b.storage + "/root", "--runroot", b.storage + "/run"}, args...)
}

// run returns what buildah prints, in lines.
func (b builder) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(b.tool, b.args(args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("buildah %v: %v\n%s%s", args, err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// TestBinary: small enough to be put on every node, and with the whole catalogue.
func TestBinary(t *testing.T) {
	file := binary(t)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 16_000_000 {
		t.Errorf("%d bytes, more than 16 MB: see BUILD in the Makefile", info.Size())
	}
	records, _ := catalog.Load(patterns.FS())
	want := fmt.Sprintf("%s, %d records\n", catalog.Digest(records), len(records))
	if out, err := exec.Command(file, "version").Output(); err != nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("version: %s %v, want …%s", out, err, want)
	}
}

// TestImage builds the image on scratch from a binary made here, since no
// image can be pulled in CI, and runs it as its user.
func TestImage(t *testing.T) {
	b := newBuilder(t)
	context := t.TempDir()
	for from, to := range map[string]string{"../../Dockerfile": "Dockerfile", "../../.dockerignore": ".dockerignore", "../../LICENSE": "LICENSE", binary(t): "bin/rwannotate"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(context, to)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(context, to), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.run(t, "bud", "--isolation", "chroot", "--format", "docker", "--target", "prebuilt", "--build-arg", "VERSION=1.2.3", "-t", "rwannotate", context)
	checkImageConfig(t, b.run(t, "inspect", "--type", "image", "rwannotate"))

	box := b.run(t, "from", "rwannotate")
	if got := b.run(t, "run", "--isolation", "chroot", box, "/usr/bin/rwannotate", "version"); !strings.HasPrefix(got, "rwannotate ") {
		t.Errorf("version: %s", got)
	}
	root := b.run(t, "mount", box)
	scan := exec.Command("/usr/bin/rwannotate", "scan", "-o", "json")
	scan.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 0}}
	scan.Dir = "/"
	log, err := os.Open("../corpus/seed-logs/3b-compute-full.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	scan.Stdin = log
	if out, err := scan.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(`"solutions":["`)) {
		t.Errorf("scan in the image: %v\n%s", err, out)
	}
	checkFiles(t, root)
}

// TestBuildStage copies the context as .dockerignore leaves it and plays there
// what the Dockerfile does to compile.
func TestBuildStage(t *testing.T) {
	b := newBuilder(t)
	recipe, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^RUN (GOOS=.*)$`).FindSubmatch(recipe)
	if command == nil {
		t.Fatal("the Dockerfile compiles nothing")
	}
	copied := filepath.Join(t.TempDir(), "Containerfile")
	if err := os.WriteFile(copied, []byte("FROM scratch\nCOPY . /src/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(t, "bud", "--isolation", "chroot", "--file", copied, "--ignorefile", "../../.dockerignore", "-t", "context", "../..")
	root := b.run(t, "mount", b.run(t, "from", "context"))
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(string(command[1]), "=/out/", "="+root+"/out/"))
	cmd.Dir = root + "/src"
	cmd.Env = append(os.Environ(), "VERSION=1.2.3", "REVISION=0123456789abcdef", "TARGETOS="+runtime.GOOS, "TARGETARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command[1], err, out)
	}
	if out, err := exec.Command(root+"/out/rwannotate", "version").Output(); err != nil || !strings.HasPrefix(string(out), "rwannotate 1.2.3 (0123456789, ") {
		t.Errorf("version: %s %v", out, err)
	}
}

// checkFiles: there is the program, and nothing that could be a shell; and
// the directory for the state belongs to the user.
func checkFiles(t *testing.T, root string) {
	t.Helper()
	var programs []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && info.Size() > 0 {
			programs = append(programs, strings.TrimPrefix(path, root))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(programs, "/usr/bin/rwannotate") || len(programs) > 2 { // and the licence, which was copied with the mode of a program
		t.Errorf("programs in the image: %v", programs)
	}
	state, err := os.Stat(root + "/var/lib/rwannotate")
	if err != nil {
		t.Fatal(err)
	}
	if owner := state.Sys().(*syscall.Stat_t).Uid; owner != 65532 {
		t.Errorf("the state directory belongs to %d", owner)
	}
}

func checkImageConfig(t *testing.T, text string) {
	t.Helper()
	var image struct {
		Docker struct {
			Config struct {
				User        string
				Entrypoint  []string
				Cmd         []string
				Labels      map[string]string
				Healthcheck struct{ Test []string }
			} `json:"config"`
		}
	}
	if err := json.Unmarshal([]byte(text), &image); err != nil {
		t.Fatal(err)
	}
	c := image.Docker.Config
	if c.User != "65532:0" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/rwannotate"}) || !slices.Equal(c.Cmd, []string{"run"}) {
		t.Errorf("runs %v %v as %s", c.Entrypoint, c.Cmd, c.User)
	}
	if !slices.Equal(c.Healthcheck.Test, []string{"CMD", "/usr/bin/rwannotate", "healthcheck"}) {
		t.Errorf("health check %v", c.Healthcheck.Test)
	}
	for label, want := range map[string]string{"version": "1.2.3", "licenses": "Apache-2.0", "title": "rwannotate", "source": "https://github.com/rwannotate/rwannotate"} {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}
