package logline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// control names the first character of s that could drive a terminal, "" if
// there is none.
func control(s string) string {
	for _, r := range s {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f {
			return fmt.Sprintf("U+%04X", r)
		}
	}
	return ""
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":          "plain\ttext\n",
		"é 中 😀":                  "é 中 😀",
		"\x1b[31mred\x1b[0m":     "red",
		"back\x1b[1mfill\x1b[0m": "backfill",
		"\x1b[38;5;185mx\x1b[m":  "x",
		"\x1b[?25lx\x1b[2K":      "x",
		"a\x1b[\x1b[31mb":        "ab",
		"a\x1b":                  "a",
		"a\x1b[":                 "a",
		"a\x1b[31":               "a",
		"\x1b]0;title\x07x":      "x",
		"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1bPq#0\x1b\\x":                          "x",
		"\x1b]0;never closed":                      "0;never closed",
		"\x1b]0;never closed\nnext\x07":            "0;never closed\nnext",
		"\x1bcx\x1b7y":                             "xy",
		"\u009b31mred\u009b0m":                     "red",
		"a\u0085b\u0090c":                          "abc",
		"a\x00b\rc\x07d\x7fe\x08":                  "abcde",
		"\x9b31m":                                  "\x9b31m", // a lone byte is invalid UTF-8, not C1
		"\xc2":                                     "\xc2",
		"\xc2\xa0":                                 "\xc2\xa0",
		"":                                         "",
	} {
		if got := string(Clean(nil, []byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzClean: nothing that drives a terminal is left, nothing else is added,
// and what is not dirty would not change.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07x", "\xc2\x9b1mx", "\xc2\x1b[0m\x9b", "a\x00\r\x7f", "\x1b\x1b[[0m0m"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Clean([]byte("x"), b)[1:]
		if bytes.ContainsAny(got, "\x00\x07\x08\r\x1b\x7f") {
			t.Errorf("%q: %q holds controls", b, got)
		}
		if c := control(Valid(got)); c != "" {
			t.Errorf("%q: %q holds %s", b, got, c)
		}
		if !dirty(b) && !bytes.Equal(got, b) {
			t.Errorf("%q is clean but becomes %q", b, got)
		}
		if len(got) > len(b) {
			t.Errorf("%q grows to %q", b, got)
		}
	})
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		`a\n\t\"\\\/\r\b\fb`:        "a\n\t\"\\/\r\b\fb",
		`\u0063hunk`:                "chunk",
		`\ud83d\ude00`:              "😀",
		`\ud83d alone`:              "\ufffd alone",
		`\ude00\ud83d`:              "\ufffd\ufffd",
		`\u12`:                      `\u12`,
		`\uzzzz`:                    `\uzzzz`,
		`\x41`:                      `\x41`,
		`ends in \`:                 `ends in \`,
		"":                          "",
		strings.Repeat(`\\`, 1000):  strings.Repeat(`\`, 1000),
		`\u00e9\u4e2d\u001b\u0000x`: "é中\x1b\x00x",
	} {
		got, unusual := unescape(nil, []byte(in))
		if string(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if unusual != strings.Contains(in, `\u`) {
			t.Errorf("%q: unusual is %v", in, unusual)
		}
	}
}

// FuzzObject compares the scanner with encoding/json on whatever that accepts,
// and lets it see everything else.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{ "a" : "b\"\\" , "c":[1,{"d":"}"}], "e":{"f":null} }`, `{"a":"b`, `{"a`, `{"a":`, `{"a":tru`, `[1,2]`, `{"a":"\u00e9\ud83d\ude00\/"}`, `{"a":1 , "a":2}`, "{\"a\":1\t}", "{\"a\":\"x\"\r\n,\"b\":-1e5}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := map[string]any{}
		whole := object(b, func(key, value []byte) {
			k, _ := unescape(nil, key)
			got[Valid(k)] = member(value)
			array(value, func(e []byte) {
				if len(e) == 0 {
					t.Errorf("%q: an empty value in an array", b)
				}
			})
		})
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil || !utf8.Valid(b) {
			return
		}
		if !whole {
			t.Fatalf("%q is whole but was not read whole", b)
		}
		if len(got) != len(want) {
			t.Errorf("%q: %d members, want %d", b, len(got), len(want))
		}
		for k, raw := range want {
			var s string
			expected := any(string(raw))
			if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
				expected = s
			}
			if got[k] != expected {
				t.Errorf("%q: member %q is %q, want %q", b, k, got[k], expected)
			}
		}
	})
}

// member is a raw value as FuzzObject compares it: strings decoded.
func member(value []byte) any {
	if s, ok := body(value); ok {
		out, _ := unescape(nil, s)
		return Valid(out)
	}
	return string(value)
}

// FuzzUnwrap: any lines in any order. Nothing panics, what is dirty comes out
// clean, and the payload never grows.
func FuzzUnwrap(f *testing.F) {
	for _, lines := range []string{
		header, stamp + " stdout F x\n" + stamp + " stderr P y", `{"log":"x\n","stream":"stdout","time":"` + stamp + `"}`, `{"MESSAGE":[27,[1,2],null,"x"],"__CURSOR":"c"}`,
		"Nov 30 09:14:07 n rw[42]: x\n" + strings.Repeat(" ", 24) + "y\n-- Boot x --", "Mon 2026-11-30 09:14:07 UTC [s=1]\n    MESSAGE=x\n            y\n    A=b",
		"a-0  | " + header + "\na-0  | ", "[pod/a/b] " + stamp + " x", stamp + ` {a="b"} x`, "\x1e{\"MESSAGE\":null}", "1796030047.482913 n rw[4]: ", "[   1.2] n rw[4]: x", "data: {\"line\":\"" + header + "\"}\n{\"line\":\"x\"}", "\x00\x1b[36ma |\x1b[0m " + header,
	} {
		f.Add([]byte(lines))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var u Unwrapper
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			l := u.Unwrap(line, Dirty(line))
			if bytes.ContainsAny(l.Payload, "\x00\x1b") && !l.Skip {
				t.Errorf("%q: %q holds controls", line, l.Payload)
			}
			if len(l.Payload) > len(line) {
				t.Errorf("%q grows to %q", line, l.Payload)
			}
		}
		if len(u.sources) > maxSources {
			t.Errorf("%d writers", len(u.sources))
		}
	})
}
