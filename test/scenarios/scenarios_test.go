// Package scenarios drives the built daemon through what happens to logs in
// the real world: rotation, truncation, a kill in full flight, a Loki that is
// down. Each tNN_*.sh is a subtest; README.md has the contract that the
// scripts rely on.
package scenarios

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// alone lists the scripts that are about timing: they run before the others
// and one at a time.
var alone = []string{
	"t01_rename_under_load", "t02_rename_late_writer", "t03_copytruncate_under_load",
	"t05_rotate_while_reader_is_behind", "t14_prefilter_hostile_lines", "t27_sigterm_flush", "t28_kill9_restart",
}

// skipped is the exit status by which a script says that it cannot run here.
const skipped = 77

func TestScenarios(t *testing.T) {
	for _, tool := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			unavailable(t, "the scenarios need "+tool+", which is not installed")
		}
	}
	scripts, err := filepath.Glob("t[0-9]*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range alone {
		if !slices.Contains(scripts, name+".sh") {
			t.Errorf("%s.sh is not there", name)
		}
	}
	bin := build(t)
	for _, script := range scripts {
		name := strings.TrimSuffix(script, ".sh")
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(alone, name) {
				t.Parallel()
			}
			run(t, script, bin)
		})
	}
}

// run runs one script. Its own temporary files go where the test's go.
func run(t *testing.T, script, bin string) {
	cmd := exec.Command("timeout", "300", "bash", "./"+script)
	// Patience for a loaded machine, unless the caller knows better.
	cmd.Env = append([]string{"SETTLE=30", "BUDGET=10"}, os.Environ()...)
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir(), "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"),
		"DAEMON="+daemon(script, bin), "DAEMON_STDIN="+bin+" run --input - --state {state}")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		t.Logf("%s", out)
	case errors.As(err, &exit) && exit.ExitCode() == skipped:
		unavailable(t, string(out))
	default:
		t.Errorf("%v\n%s", err, out)
	}
}

// build compiles the program as it is released. Beside it stands the Python
// interpreter itself: the scripts start it hundreds of times, and what is
// called python3 may be a slow wrapper that looks for one.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "rwannotate")
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(strings.TrimSpace(string(python)), filepath.Join(filepath.Dir(bin), "python3")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "-C", "../..", "build", "OUT="+bin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// daemon is the command line a script fills in and starts. Those with a Loki
// expect it to get every match.
func daemon(script, bin string) string {
	cmd := bin + " run --input {files} --state {state}"
	if strings.Contains(script, "_loki_") {
		cmd += " --loki-url {loki} --loki-repeat all"
	}
	return cmd
}

// unavailable leaves a test out, except where everything must be there.
func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
