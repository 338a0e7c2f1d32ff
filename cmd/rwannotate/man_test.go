package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMan: each command has a page, with its flags, and nothing in it is taken
// for a request of roff that is not one.
func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	code, stdout, stderr := execute(t, "man", dir)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	request := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|BR|nf|fi)( |$)`)
	for _, page := range []string{"rwannotate", "rwannotate-run", "rwannotate-scan", "rwannotate-patterns-lint", "rwannotate-config-validate"} {
		file := filepath.Join(dir, page+".1")
		if !strings.Contains(stdout, file+"\n") {
			t.Errorf("%s is not printed", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, ".") && !request.MatchString(line) || strings.HasPrefix(line, "'") {
				t.Errorf("%s:%d: %q", file, i+1, line)
			}
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "rwannotate-config.1")); !strings.Contains(string(text), ".B rwannotate config COMMAND\n") {
		t.Errorf("the page of config:\n%s", text)
	}
	scan, _ := os.ReadFile(filepath.Join(dir, "rwannotate-scan.1"))
	for _, want := range []string{".SH NAME\nrwannotate\\-scan \\- Read logs", `.B \-\-fail\-on`, ".SH EXAMPLES\n.nf\n", ".BR rwannotate (1)"} {
		if !strings.Contains(string(scan), want) {
			t.Errorf("the page of scan lacks %q:\n%s", want, scan)
		}
	}
	if strings.Contains(string(scan), "no\\-prefilter") {
		t.Error("hidden flags are shown")
	}
	if code, _, _ := execute(t, "man"); code != exitUsage {
		t.Errorf("without a directory: exit %d", code)
	}
	if code, _, _ := execute(t, "man", "/dev/null/x"); code != exitRuntime {
		t.Errorf("a directory that cannot be: exit %d", code)
	}
}
