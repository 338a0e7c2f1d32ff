package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// Whatever is in a log, or in the name of a file, nothing we print drives a
// terminal or changes the direction of writing in it.
func TestNothingInvisibleIsPrinted(t *testing.T) {
	const evil = "\x1b[2J\x1b]8;;http://x\x07\u009b31m\u202egol\u2066\u2028\ufeff\xff\x9b\x08\rover"
	dir := filepath.Join(t.TempDir(), "a\u202e\u009b31m\x1b[31m")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "a\u2066.log")
	line := "2026-11-30T10:00:00.000001Z ERROR x: " + evil + " error=Redis error: " + evil + "\n"
	strange := "2026-11-30T10:00:00.000002Z ERROR x: what no record knows " + evil + "\n"
	record := "id: '00000000000000ff'\nslug: own\nerrorMessage: \"of our \\u202e\\u2028\\u009b own: {}\"\ndocumentation: \"\\u202e\\u009b\"\nsolutions: [\"\\u202e\\u009b\"]\n"
	for name, text := range map[string]string{log: line + strange, filepath.Join(dir, "\u202e.log.zst"): "(\xb5/\xfd", filepath.Join(dir, "own.yaml"): record, filepath.Join(dir, "\u202e.yaml"): "serverity: x\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"scan", log}, {"scan", "-o", "text", log}, {"scan", "-o", "inline", log}, {"scan", "-o", "json", log}, {"scan", dir},
		{"scan", "--unknown", log}, {"scan", "--unknown", "-o", "text", log}, {"scan", "--unknown", "-o", "yaml", log}, {"patterns", "coverage", log}, {"patterns", "coverage", "-o", "json", log},
		{"patterns", "lint", dir}, {"patterns", "test", dir}, {"patterns", "list", "--no-embedded", "--patterns", dir}, {"patterns", "import", filepath.Join(dir, "\u202e.yaml")},
		{"explain", "--patterns", dir, "own"}, {"explain", "--patterns", dir, "-o", "markdown", "own"}, {"explain", "--patterns", dir, "-o", "json", "own"},
		{"explain", line}, {"explain", evil}, {"scan", "/no/such/" + evil}, {"run", "--" + evil}, {"run", "--input", evil + "["}, {"run", "--patterns", evil},
		{"config", "validate", log}, {"config", "show", "--state", evil}, {evil},
	} {
		_, out, errs := execute(t, args...)
		checkVisible(t, args, out+errs)
	}
	for _, format := range []string{"json", "text"} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		args := []string{"run", "--web-listen", "", "--log-level", "debug", "--log-format", format, "--input", log, "--state", dir}
		run(ctx, args, streams{nil, &out, &errs})
		checkVisible(t, args, out.String()+errs.String())
	}
}

func checkVisible(t *testing.T, args []string, text string) {
	t.Helper()
	for i, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%.60q: %U in %q", args, r, text[max(0, i-30):min(len(text), i+30)])
			return
		}
	}
	if strings.ToValidUTF8(text, "") != text {
		t.Errorf("%.60q: invalid UTF-8", args)
	}
}
