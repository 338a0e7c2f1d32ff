package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	yamlv4 "go.yaml.in/yaml/v4"
)

// value is a node without its place, to compare readers.
type value struct {
	Kind  string
	Text  string
	Keys  []string
	Items []value
}

func valueOf(n node) value {
	v := value{Kind: n.kind.String(), Text: n.text}
	for _, item := range n.items {
		if n.kind == kindMapping {
			v.Keys = append(v.Keys, item.key)
		}
		v.Items = append(v.Items, valueOf(item))
	}
	return v
}

// thirdParty is what another YAML library reads.
func thirdParty(t testing.TB, text string) (value, bool) {
	t.Helper()
	var doc yamlv4.Node
	if err := yamlv4.Unmarshal([]byte(text), &doc); err != nil {
		return value{Text: err.Error()}, false
	}
	if len(doc.Content) != 1 {
		return value{}, false
	}
	return valueOfV4(doc.Content[0]), true
}

func valueOfV4(n *yamlv4.Node) value {
	var v value
	switch n.Kind {
	case yamlv4.ScalarNode:
		v.Kind, v.Text = kindScalar.String(), n.Value
		if n.Tag == "!!null" {
			v = value{Kind: kindNull.String()}
		}
	case yamlv4.SequenceNode:
		v.Kind = kindList.String()
		for _, item := range n.Content {
			v.Items = append(v.Items, valueOfV4(item))
		}
	case yamlv4.MappingNode:
		v.Kind = kindMapping.String()
		for pair := range slices.Chunk(n.Content, 2) {
			v.Keys = append(v.Keys, pair[0].Value)
			v.Items = append(v.Items, valueOfV4(pair[1]))
		}
	}
	return v
}

// TestPlainAgrees holds the fast reader to what two YAML libraries read.
func TestPlainAgrees(t *testing.T) {
	for _, text := range plainSamples() {
		t.Run(firstLine(text), func(t *testing.T) { samePlain(t, text, true) })
	}
}

// TestPlainReadsTheCatalogue: the records of the tree go the fast way, but for
// a few whose author likes YAML's finer points.
func TestPlainReadsTheCatalogue(t *testing.T) {
	files, err := filepath.Glob("../../patterns/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no records found", err)
	}
	fast := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := readPlain(string(data)); ok {
			fast++
		}
		t.Run(filepath.Base(file), func(t *testing.T) { samePlain(t, string(data), false) })
	}
	if fast < len(files)*9/10 {
		t.Errorf("only %d of %d records are written plainly enough for the fast reader", fast, len(files))
	}
}

// samePlain checks that, if the fast reader reads text, the libraries read the same.
func samePlain(t *testing.T, text string, mustRead bool) {
	t.Helper()
	got, ok := readPlain(text)
	if !ok {
		if mustRead {
			p := Problem{}
			p.place(text, int(got.off), 1)
			t.Fatalf("not read the fast way\n%s", p.Excerpt)
		}
		return
	}
	general, problems := readYAML(text)
	if len(problems) > 0 {
		t.Fatalf("the general reader refuses it: %v", problems)
	}
	if diff := cmp.Diff(valueOf(general), valueOf(got)); diff != "" {
		t.Errorf("differs from the general reader (-general +fast):\n%s", diff)
	}
	third, ok := thirdParty(t, text)
	if !ok {
		t.Fatalf("the third library refuses it: %s", third.Text)
	}
	if diff := cmp.Diff(third, valueOf(got)); diff != "" {
		t.Errorf("differs from the third library (-third +fast):\n%s", diff)
	}
}

// plainSamples are texts that the fast reader must read.
func plainSamples() []string {
	return []string{
		"id: a\n",
		"id: a",
		"# comment\n\nid: a\n# comment\n   # another\nslug: b\n\n",
		"id: plain text, with (anything) in it\n",
		"id: 'it''s'\nslug: ''\nrepo: '\\n'\n",
		`id: "a\n\t\"\\\x41\u00e9"` + "\n",
		"id: ~\nslug: null\nrepo:\nseverity: true\nlineNumber: 12\n",
		"tags: [a, 'b, c', \"d\\n\", e f]\ntargets: []\nversions: [ ]\naliases: [x , ]\n",
		"tags:\n- a\n-   b\nslug: x\n",
		"targets: [a::b, c:d , http://e.f/g]\n",
		"tags:\n  - a\n  # comment\n  - 'b'\n\n  - \"c\"\nslug: x\n",
		"documentation: >-\n  one\n  two\n\n  three\n\n\n  four\nslug: x\n",
		"documentation: >\n  one\n  two\n",
		"documentation: |-\n  one\n    two\n\n  three  \n  \tfour\n\n\nslug: x\n",
		"documentation: |\n    one\n# not text\nslug: x\n",
		"documentation: one\n  two\n    three\nslug: x\n",
		"solutions:\n  - one\n    two\n  - >-\n    three\n    four\n  - |-\n    five\n     six\n  - |\n   seven\n",
		"examples:\n  match:\n    - text: 'a'\n      args: [\"b\"]\n    - text: |-\n        c\n          d\n      args:\n        - e\n        - f\n    - args: []\n      text: g\n  reject:\n    - h\n",
		"examples:\n  match:\n  - text: a\n    args: [b]\n  reject:\n  - h\nslug: x\n",
		"record:\n  id: a\n  tags:\n  - b\n  - c\n  slug: d\ndatasetVersion: e\n",
		"id: é→\nslug: 'ü'\n",
		"id: a  \nslug: 'b'  \ntags: [c]  \ndocumentation: >-  \n  d\n",
		"tags:\n\n  - a\n\nslug: x\n",
		"id: http://x/y#z\nslug: a:b\nrepo: x - y\n",
	}
}

func FuzzPlain(f *testing.F) {
	for _, text := range plainSamples() {
		f.Add(text)
	}
	for _, text := range []string{"a: [", "a: 'x", "- a", "a:\n- b: c\n  d: e\n", "a: \"\\ud800\"", "a: |\n\n  x", "a: >-\n  x\n y\n", "a: b: c", "a:\n  b", "a: &x", "1: 2\n", "a:\n - b\n- c\n", "---\na: b\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 || !utf8.ValidString(text) {
			return
		}
		samePlain(t, text, false)
	})
}
