package catalog

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseTemplate(t *testing.T) {
	literal := func(s string) Piece { return Piece{Literal: s} }
	hole := func(s string) Piece { return Piece{Hole: s} }
	for _, c := range []struct {
		template string
		want     []Piece
	}{
		{"", nil},
		{"plain", []Piece{literal("plain")}},
		{"{}", []Piece{hole("{}")}},
		{"a {} b {:?}", []Piece{literal("a "), hole("{}"), literal(" b "), hole("{:?}")}},
		{"{name}{0}{name:?}{:#?}", []Piece{hole("{name}"), hole("{0}"), hole("{name:?}"), hole("{:#?}")}},
		{"{0:?} {:x} {:#x} {:x?} {0:b} {:08.3} {:>8} {:*^+#010x}", []Piece{
			hole("{0:?}"), literal(" "), hole("{:x}"), literal(" "), hole("{:#x}"), literal(" "), hole("{:x?}"), literal(" "),
			hole("{0:b}"), literal(" "), hole("{:08.3}"), literal(" "), hole("{:>8}"), literal(" "), hole("{:*^+#010x}"),
		}},
		{"{:é>8} {:width$.prec$} {:.*} {:1$}", []Piece{
			hole("{:é>8}"), literal(" "), hole("{:width$.prec$}"), literal(" "), hole("{:.*}"), literal(" "), hole("{:1$}"),
		}},
		{"a {{}} b", []Piece{literal("a {} b")}},
		{"{{{}}}", []Piece{literal("{"), hole("{}"), literal("}")}},
		{`{"a": {}, "b": 1}`, []Piece{literal(`{"a": `), hole("{}"), literal(`, "b": 1}`)}},
		{"{a b} {a.b} {a: 1} {", []Piece{literal("{a b} {a.b} {a: 1} {")}},
		{"open { and } close", []Piece{literal("open { and } close")}},
		{"{_x1}", []Piece{hole("{_x1}")}},
		{"{1x}", []Piece{literal("{1x}")}},
	} {
		if diff := cmp.Diff(c.want, ParseTemplate(c.template)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.template, diff)
		}
	}
}

func TestEscapedPattern(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{"mismatch initial vnode bitmap: {:?}, expect: {:?}", "mismatch initial vnode bitmap: (.+?), expect: (.+?)"},
		{"Expected a (table_id={})", `Expected a \(table_id=(.+?)\)`},
		{"{{}} {0} {0}", `\{\} (.+?) (.+?)`},
		{"line\n{}", "line\n(.+?)"},
	} {
		if got := EscapedPattern(c.template); got != c.want {
			t.Errorf("EscapedPattern(%q) = %q, want %q", c.template, got, c.want)
		}
	}
}

func TestInstantiate(t *testing.T) {
	for _, c := range []struct {
		template string
		values   []string
		want     string
	}{
		{"a {} {b:?}, {{c}}", []string{"1", "{2}"}, "a 1 {2}, {c}"},
		{"a {} {}", []string{"1"}, "a 1 x"},
		{"a", []string{"1"}, "a"},
	} {
		if got := Instantiate(c.template, c.values); got != c.want {
			t.Errorf("Instantiate(%q, %q) = %q, want %q", c.template, c.values, got, c.want)
		}
	}
}

func TestTemplateOf(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{`a \(b\) (.+?), c (.+?)`, "a (b) {}, c {}"},
		{`plain text`, "plain text"},
		{`(.+?)`, "{}"},
		{`^id \d+ of (\w+)$`, "id {} of {}"},
		{`a. b`, "a. b"},
		{`brace \{\}`, "brace {{}}"},
		{`broken (`, ""},
	} {
		if got := templateOf(c.pattern); got != c.want {
			t.Errorf("templateOf(%q) = %q, want %q", c.pattern, got, c.want)
		}
	}
}

// FuzzTemplate: pieces keep every character, and a message made from a template is
// matched by the template's pattern, with as many groups as placeholders.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"a {} {:?}", "{{}}", "{a", "{:>", "{:é<}", "{:{}}", "}{", "{0:08.3$}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, template string) {
		if !utf8.ValidString(template) {
			return // no record's
		}
		var b strings.Builder
		holes := 0
		for _, p := range ParseTemplate(template) {
			if (p.Hole == "") == (p.Literal == "") {
				t.Fatalf("%q: piece %+v is not one thing", template, p)
			}
			if p.Hole != "" {
				holes++
			}
			b.WriteString(p.Hole + p.Literal)
		}
		if undoubled(b.String()) != undoubled(template) {
			t.Fatalf("%q: pieces lose text: %q", template, b.String())
		}
		re, err := regexp.Compile("(?s)^" + EscapedPattern(template) + "$")
		if err != nil {
			t.Fatalf("%q: %v", template, err)
		}
		m := re.FindStringSubmatch(Instantiate(template, nil))
		if m == nil || len(m)-1 != holes {
			t.Fatalf("%q: its pattern %s does not match its message: %q", template, re, m)
		}
	})
}

func undoubled(s string) string { return strings.NewReplacer("{", "", "}", "").Replace(s) }

func TestSlug(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		// As published.
		{"snapshot backfill epoch set again: {} {} {}", "snapshot-backfill-epoch-set-again"},
		{"mismatch initial vnode bitmap: {:?}, expect: {:?}", "mismatch-initial-vnode-bitmap-expect"},
		{"snapshot backfill paused, but received snapshot chunk", "snapshot-backfill-paused-but-received-snapshot-ch"},
		// By the same rule.
		{"should not update vnode bitmap during consuming log store", "should-not-update-vnode-bitmap-during-consuming-lo"},
		{"Unexpected backfill state: {:?}", "unexpected-backfill-state"},
		{"`{}` must be {}, or {}", "must-be-or"},
		{"Über {}", "ber"},
		{"{}", ""},
	} {
		if got := Slug(c.message); got != c.want {
			t.Errorf("Slug(%q) = %q, want %q", c.message, got, c.want)
		}
		if got := Slug(c.message); got != "" && !validSlug(got) {
			t.Errorf("Slug(%q) = %q is not valid", c.message, got)
		}
	}
}
