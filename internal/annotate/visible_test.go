package annotate

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAppendVisible(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"plain \u001b"}`:       `{"a":"plain \u001b"}`,
		`"größe 数 🙂 – a\u0301"`:      `"größe 数 🙂 – a\u0301"`,
		"\"c1 \u009b31m\"":           `"c1 \u009b31m"`,
		"\"\u202eright to left\"":    `"\u202eright to left"`,
		"\"\u2028\ufeff\u200b\x7f\"": `"\u2028\ufeff\u200b\u007f"`,
		"\"\U000e0041\"":             `"\udb40\udc41"`,
		"":                           "",
	} {
		got := string(AppendVisible(nil, []byte(in)))
		if got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
		if in == "" {
			continue
		}
		var before, after any
		if err := errors.Join(json.Unmarshal([]byte(in), &before), json.Unmarshal([]byte(got), &after)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%q: another meaning: %s", in, diff)
		}
	}
}
