// Package configs checks what is shipped under configs/: that the
// configurations load, that manifests, unit and compose file fit them, that
// dashboards and alerts use names that exist, and that the image runs. The
// types of Kubernetes are in the module below (k8s), to keep them out of
// go.mod.
package configs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rwannotate/rwannotate/internal/config"
)

// shipped is the directory under test.
const shipped = "../../configs"

// need finds a tool, also among those that `make tools` has put into .tools.
func need(t *testing.T, tool string) string {
	t.Helper()
	if path, err := exec.LookPath(tool); err == nil {
		return path
	}
	if path, err := filepath.Abs("../../.tools/" + tool); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	missing(t, tool+" is not installed ('make tools' as root on Debian installs it)")
	return ""
}

// missing skips a test whose tool is not there; under RWANNOTATE_REQUIRE_ALL=1
// it fails instead.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// load loads a shipped configuration in an environment, as `run` would.
func load(t *testing.T, file string, env config.Env) config.Config {
	t.Helper()
	c, _, problems := config.Load(filepath.Join(shipped, file), env, nil)
	for _, p := range problems {
		t.Errorf("%s: %v", file, p)
	}
	return c
}

// documents decodes the YAML documents of a file into maps and lists.
func documents(t *testing.T, file string) []any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var docs []any
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	for {
		var doc any
		if err := dec.Decode(&doc); err != nil {
			break
		}
		docs = append(docs, doc)
	}
	if len(docs) == 0 {
		t.Fatalf("%s holds no document", file)
	}
	return docs
}

// walk calls f with every map in v.
func walk(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, x := range v {
			walk(x, f)
		}
	case []any:
		for _, x := range v {
			walk(x, f)
		}
	}
}

// binary builds the program as it is installed.
func binary(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rwannotate")
	if out, err := exec.Command("make", "-C", "../..", "build", "OUT="+file).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return file
}
