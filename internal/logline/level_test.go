package logline

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestHeaderLevel(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"2026-08-21T14:06:38.556Z ERROR risingwave_meta::x: a":                               "ERROR",
		"2026-08-21T14:06:38.556+08:00  WARN rw-main risingwave_meta::x: a":                  "WARN",
		"  2026-08-21T14:06:38Z  INFO a: b\n    at src/x.rs:1":                               "INFO",
		"2024-07-13 07:11:02,396 WARN [thread] a.B - c":                                      "WARN",
		"2024-07-13T07:11:02Z [app] ERROR a":                                                 "ERROR",
		"ERROR risingwave_meta::x: no stamp":                                                 "ERROR",
		"2026-08-21T14:06:40.46Z rw-main ThreadId(07) handle_query{sql=SELECT 'ERROR'}: s=1": "",
		"thread 'rw-main' (7) panicked at src/x.rs:1:2:\nERROR":                              PanicLevel,
		"plain text about an ERROR":                                                          "",
		`{"timestamp":"2026-08-21T14:06:40Z","level":"ERROR","fields":{"message":"a"}}`:      "ERROR",
		`{"fields":{"message":"\"level\":\"ERROR\""},"level":"INFO","target":"x"}`:           "INFO",
		`{"level": "warn","ts":"2024-04-26T11:44:54.9Z","msg":"failed to apply request"}`:    "WARN",
		`{"level":3,"severity":"error","message":"x"}`:                                       "ERROR",
		`{"level":"nonsense","message":"x"}`:                                                 "",
		`{"message":"no level"}`:                                                             "",
		"\x1b[2m2026-08-21T14:06:38.688343859Z":                                              "",
	} {
		if got := HeaderLevel([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestHeaderLevelAgreesWithParse: the shortcut tells what parsing tells, for
// every record of the corpus.
func TestHeaderLevelAgreesWithParse(t *testing.T) {
	files, _ := filepath.Glob("../../test/corpus/*/*")
	n := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || filepath.Ext(file) == ".txt" {
			continue
		}
		var u Unwrapper
		for line := range bytes.Lines(data) {
			l := u.Unwrap(bytes.TrimRight(line, "\n"), true)
			if l.Skip || !IsHeader(l.Payload) {
				continue
			}
			n++
			if got, want := HeaderLevel(l.Payload), Parse(l.Payload).Level; got != want && LevelRank(want) >= LevelRank("WARN") {
				t.Errorf("%s: HeaderLevel says %q, Parse %q: %.200s", filepath.Base(file), got, want, l.Payload)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d records were looked at", n)
	}
}
