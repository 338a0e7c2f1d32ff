package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/goccy/go-yaml"

	"github.com/rwannotate/rwannotate/internal/config"
)

// service is what we use of the compose specification; another key is an
// error.
type service struct {
	Image       string            `yaml:"image"`
	Build       string            `yaml:"build"`
	Command     []string          `yaml:"command"`
	User        string            `yaml:"user"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	CapDrop     []string          `yaml:"cap_drop"`
	SecurityOpt []string          `yaml:"security_opt"`
	ReadOnly    bool              `yaml:"read_only"`
	Logging     struct {
		Driver  string            `yaml:"driver"`
		Options map[string]string `yaml:"options"`
	} `yaml:"logging"`
}

func TestCompose(t *testing.T) {
	text, err := os.ReadFile(shipped + "/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Name     string             `yaml:"name"`
		Services map[string]service `yaml:"services"`
		Volumes  map[string]any     `yaml:"volumes"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for name, s := range file.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			switch {
			case strings.HasPrefix(from, "."):
				if _, err := os.Stat(filepath.Join(shipped, "compose", from)); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
			case !strings.HasPrefix(from, "/"):
				if _, ok := file.Volumes[from]; !ok {
					t.Errorf("%s mounts volume %s, which is not declared", name, from)
				}
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, p)
			}
		}
		// What we or Loki print holds lines of RisingWave, which would be found again.
		if jsonFile := s.Logging.Driver == "json-file"; jsonFile != (name == "risingwave") {
			t.Errorf("%s logs through driver %q", name, s.Logging.Driver)
		}
	}
	c := load(t, "compose/config.yaml", config.Env{})
	ours := file.Services["rwannotate"]
	if mounts := strings.Join(ours.Volumes, " "); !strings.Contains(mounts, ":"+c.State.Dir) || !strings.Contains(mounts, "config.yaml:/etc/rwannotate/config.yaml:ro") {
		t.Errorf("mounts %s", mounts)
	}
	// A volume takes over the owner of a directory of the image, 65532; where
	// the image has none it is root's.
	if ours.User == "0:0" && slices.Equal(ours.CapDrop, []string{"ALL"}) && c.State.Dir == "/var/lib/rwannotate" {
		t.Error("root without capabilities cannot write into the state directory of the image")
	}
	if !doublestar.MatchUnvalidated(c.Inputs[0].Files[0], "/var/lib/docker/containers/0a1b/0a1b-json.log") {
		t.Errorf("does not read %v", c.Inputs[0].Files)
	}
	if doublestar.MatchUnvalidated(c.Inputs[0].Files[0], "/var/lib/docker/containers/0a1b/local-logs/container.log") {
		t.Error("reads its own output")
	}
}
