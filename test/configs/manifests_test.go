package configs

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rwannotate/rwannotate/internal/config"
)

// container is our container in a manifest, as far as the configuration
// depends on it.
type container struct {
	where  string
	env    config.Env
	mounts []string
}

// containers finds ours in all manifests and values.
func containers(t *testing.T) []container {
	t.Helper()
	var found []container
	for _, dir := range []string{"kubernetes", "helm-values"} {
		err := filepath.WalkDir(filepath.Join(shipped, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" || filepath.Base(path) == "config.yaml" {
				return err
			}
			for _, doc := range documents(t, path) {
				walk(doc, func(m map[string]any) {
					if args, ok := m["args"].([]any); ok && len(args) > 0 && args[0] == "run" {
						found = append(found, parseContainer(path, m))
					}
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 9 { // daemon set, six components of the chart, two of the operator
		t.Fatalf("%d containers found", len(found))
	}
	return found
}

func parseContainer(path string, m map[string]any) container {
	c := container{where: path, env: config.Env{}}
	for _, e := range m["env"].([]any) {
		e := e.(map[string]any)
		name := e["name"].(string)
		if value, ok := e["value"].(string); ok {
			c.env[name] = value
		} else {
			c.env[name] = "the-" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) // from the downward API
		}
	}
	for _, v := range m["volumeMounts"].([]any) {
		c.mounts = append(c.mounts, v.(map[string]any)["mountPath"].(string))
	}
	return c
}

// TestManifestsFitConfiguration loads base/config.yaml with the environment of
// each container.
func TestManifestsFitConfiguration(t *testing.T) {
	for _, c := range containers(t) {
		cfg := load(t, "kubernetes/base/config.yaml", c.env)
		if t.Failed() {
			t.Fatalf("in the environment of %s: %v", c.where, c.env)
		}
		root := strings.TrimSuffix(c.env["LOG_ROOT"], "/*_*_*")
		for _, dir := range []string{root, cfg.State.Dir, "/etc/rwannotate"} {
			if !slices.Contains(c.mounts, dir) {
				t.Errorf("%s: nothing is mounted at %s, only at %v", c.where, dir, c.mounts)
			}
		}
		if cfg.Loki.Endpoints[0].URL != c.env["LOKI_URL"] || cfg.Loki.Labels["cluster"] != c.env["CLUSTER"] {
			t.Errorf("%s: pushes to %q with %v", c.where, cfg.Loki.Endpoints[0].URL, cfg.Loki.Labels)
		}
		if cfg.Web.Listen != ":12399" {
			t.Errorf("%s: listens on %s, where neither probes nor Prometheus reach it", c.where, cfg.Web.Listen)
		}
		if cfg.Output.Stdout {
			t.Errorf("%s: events to Loki and to standard output, which an agent may ship to Loki too", c.where)
		}
		if 4*cfg.State.QueueMaxBytes > 512*config.MiB {
			t.Errorf("%s: a queue of %d bytes may fill the volume, and the pod is evicted", c.where, cfg.State.QueueMaxBytes)
		}
		checkGlobs(t, c, cfg)
	}
}

// checkGlobs: RisingWave's logs are read, ours and others' are not.
func checkGlobs(t *testing.T, c container, cfg config.Config) {
	t.Helper()
	root := c.env["LOG_ROOT"]
	pod := func(ns, name string) string {
		return strings.Replace(root, "*_*_*", ns+"_"+name+"_0b1c", 1)
	}
	for path, want := range map[string]bool{
		pod("risingwave", "rw-meta-0") + "/meta/0.log":             true,
		pod("risingwave", "rw-compute-0") + "/compute/12.log":      true,
		pod("risingwave", "rw-compute-0") + "/frontend/0.log":      true, // compactMode
		pod("risingwave", "rw-compactor-x") + "/compactor/0.log":   true,
		pod("risingwave", "rw-standalone-0") + "/standalone/1.log": true,
		pod("risingwave", "rw-compute-0") + "/rwannotate/0.log":    false,
		pod("rwannotate", "rwannotate-x") + "/rwannotate/0.log":    false,
		pod("loki", "loki-0") + "/loki/0.log":                      false,
	} {
		if got := doublestar.MatchUnvalidated(cfg.Inputs[0].Files[0], path); got != want {
			t.Errorf("%s: %s is read: %v", c.where, path, got)
		}
	}
}

func TestWithoutLokiURL(t *testing.T) {
	_, _, problems := config.Load(filepath.Join(shipped, "kubernetes/base/config.yaml"), config.Env{}, nil)
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "set LOKI_URL") {
		t.Errorf("without LOKI_URL: %v", problems)
	}
}

// TestContainersAgree: the chart's values and the operator's sample have the
// same container, but for what a native sidecar adds.
func TestContainersAgree(t *testing.T) {
	var chart config.Env
	for _, c := range containers(t) {
		if strings.Contains(c.where, "daemonset") {
			continue
		}
		if chart == nil {
			chart = c.env
		}
		if !maps.Equal(c.env, chart) {
			t.Errorf("%s: environment %v, elsewhere %v", c.where, c.env, chart)
		}
	}
}
