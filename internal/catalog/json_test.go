package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzJSON holds readJSON to what encoding/json reads.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"a": "b\\n\u00e9\ud83d\ude00", "c": [1, -2.5e3, true, false, null, {}, []], "": {"d": "e\"\\"}}`,
		` [ 1 , "x" , { "a" : 1 , "b" : 2 } ] `, `"x"`, `1`, `null`, `{"a":1}x`, `{"a"`, `["\ud800"]`, `{"a":[{"b":[[]]}]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // refused before
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var want any
		valid := json.Valid([]byte(text)) && dec.Decode(&want) == nil
		n, problems := readJSON(text)
		if len(problems) > 0 {
			if valid && !strings.Contains(problems[0].Message, "too deep") {
				t.Fatalf("%q is refused: %v", text, problems)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is accepted", text)
		}
		if diff := cmp.Diff(asText(want), anyOf(n)); diff != "" {
			t.Fatalf("%q (-encoding/json +ours):\n%s", text, diff)
		}
	})
}

// asText turns numbers and truth values into text, which is what they are to us.
func asText(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = asText(v[key])
		}
	case []any:
		for i := range v {
			v[i] = asText(v[i])
		}
	case json.Number, bool:
		return fmt.Sprint(v)
	}
	return v
}

// anyOf makes of a node what encoding/json makes of its text; a later member
// wins over an earlier one of the same key, as there.
func anyOf(n node) any {
	switch n.kind {
	case kindMapping:
		m := map[string]any{}
		for _, item := range n.items {
			m[item.key] = anyOf(item)
		}
		return m
	case kindList:
		list := []any{}
		for _, item := range n.items {
			list = append(list, anyOf(item))
		}
		return list
	case kindNull:
		return nil
	}
	return n.text
}
