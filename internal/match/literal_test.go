package match

import (
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/patterns"
	"github.com/rwannotate/rwannotate/test/bench/gen"
)

func TestRequiredRuns(t *testing.T) {
	for expr, want := range map[string][]string{
		`snapshot backfill epoch set again: (.+?) (.+?)`: {"snapshot backfill epoch set again: ", " "},
		`(.+?) is missing`:       {" is missing"},
		`abc`:                    {"abc"},
		`a(b)c`:                  {"abc"},
		`a(?:bc)+d`:              {"abc", "d"},
		`ab?c`:                   {"a", "c"},
		`ab*c`:                   {"a", "c"},
		`ab{2,}c`:                {"abb", "c"},
		`ab{0,3}c`:               {"a", "c"},
		`(?:abcdef|abcxyz) tail`: {"abc", " tail"},
		`(?:left|right)`:         nil,
		`(?i)failed`:             nil,
		`(?i)123-456`:            {"123-456"},
		`a\.b\[c\]`:              {"a.b[c]"},
		`^start$`:                {"start"},
		`\bword\b`:               {"word"},
		`[a]bc`:                  {"abc"},
		`[ab]c`:                  {"c"},
		`.*`:                     nil,
		``:                       nil,
		`x|`:                     nil,
	} {
		got := requiredOf(expr)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", expr, d)
		}
	}
}

func TestSearchable(t *testing.T) {
	for _, c := range []struct {
		runs []string
		want string
	}{
		{[]string{"short", "the longest one", "mid one"}, "the longest one"},
		{[]string{`say "hello there" now`}, "hello there"},
		{[]string{"path a/b/longest part"}, "longest part"},
		{[]string{"line one\nthe second line"}, "the second line"},
		{[]string{`back\slash`}, "slash"},
		{[]string{"caf\u00e9 au lait"}, " au lait"},
		{[]string{"tab\tstop"}, "stop"},
		{nil, ""},
	} {
		if got := searchable(c.runs); got != c.want {
			t.Errorf("%q: %q, want %q", c.runs, got, c.want)
		}
	}
}

// embedded is the catalogue that is shipped.
func embedded(t testing.TB) []catalog.Record {
	t.Helper()
	records, problems := catalog.Load(patterns.FS())
	for _, p := range problems {
		if !p.Warning {
			t.Error(p)
		}
	}
	return records
}

// values are what arguments can look like; n picks some.
func values(n, count int) []string {
	kinds := []string{"1", "a b", `Some("x")`, "{ a: [1, 2] }", "x\ny", "日本", "\"", `\`, "/", "", " ", "a: b, c=d"}
	var out []string
	for i := range count {
		out = append(out, kinds[(n+i*5)%len(kinds)]+"v")
	}
	return out
}

// TestMatchImpliesContains: whatever an expression of a catalogue matches, the
// prefilter lets through, raw and quoted as JSON; and the automaton's literal is in it.
func TestMatchImpliesContains(t *testing.T) {
	for name, records := range map[string][]catalog.Record{"embedded": embedded(t), "generated": gen.Catalog(2000)} {
		m := mustNew(t, records)
		for i, p := range m.patterns {
			for n := range 4 {
				text := "x" + catalog.Instantiate(p.template, values(i+n, catalog.Holes(p.template)))
				if !regexp.MustCompile("(?s:" + p.expr + ")").MatchString(text) {
					t.Errorf("%s: %q does not match its own message %q", name, p.expr, text)
				}
				if !m.Contains([]byte(text)) {
					t.Errorf("%s: the prefilter drops %q", name, text)
				}
				if quoted := quote(t, text); !m.Contains(quoted) {
					t.Errorf("%s: the prefilter drops %s", name, quoted)
				}
				if !strings.Contains(text, p.literal) {
					t.Errorf("%s: %q is not in %q", name, p.literal, text)
				}
			}
		}
	}
}

// FuzzShape: what is known of an expression without parsing it is what its tree
// says, and what matches without it is what it matches.
func FuzzShape(f *testing.F) {
	for _, r := range slices.Concat(embedded(f), gen.Catalog(500)) {
		f.Add(catalog.EscapedPattern(r.ErrorMessage), catalog.Instantiate(r.ErrorMessage, values(len(r.ID), catalog.Holes(r.ErrorMessage))))
	}
	for _, expr := range []string{"", "(.+?)", "(.+?)(.+?)", `a\.b`, `a\d(.+?)`, `a{2}(.+?)`, `a\`, "a(.+?)\nb", `\Qa.b\E`, "\xff(.+?)"} {
		f.Add(expr, "a.bb日本b")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		p := pattern{expr: expr, pieces: simplePieces(expr)}
		if p.pieces == nil {
			return
		}
		runs, err := p.shape()
		if err != nil {
			t.Fatal(err)
		}
		tree, err := syntax.Parse(expr, syntax.Perl|syntax.DotNL)
		if err != nil {
			t.Fatalf("%q is no expression: %v", expr, err)
		}
		if want := requiredRuns(tree); !slices.Equal(runs, want) || p.trailing != trailingGroup(tree) {
			t.Errorf("%q: %q, trailing %v; the tree says %q, %v", expr, runs, p.trailing, want, trailingGroup(tree))
		}
		text = strings.ToValidUTF8(text, "?") // as a record's text is
		if got, want := inOrder(text, p.pieces), regexp.MustCompile(`\A(?s:`+expr+`)`).FindStringSubmatchIndex(text); !slices.Equal(got, want) {
			t.Errorf("%q in %q: %v; the expression says %v", expr, text, got, want)
		}
	})
}

// quote writes a JSON string as serde does, without escapes for HTML.
func quote(t testing.TB, s string) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// FuzzMatchImpliesContains: an expression of any shape, a text of any bytes.
func FuzzMatchImpliesContains(f *testing.F) {
	f.Add(`snapshot (.+?) set`, "snapshot a set")
	f.Add(`(?:abcdef|abcxyz)+ tail`, "abcdefabcxyz tail")
	f.Add(`(?i)FAILED to (?-i:connect)`, "failed TO connect")
	f.Add(`a{3,5}bcdefg|x`, "aaabcdefg")
	f.Add(`\Qa.b\E[c]defghi\b`, "a.bcdefghi")
	f.Fuzz(func(t *testing.T, expr, text string) {
		m, problems := New([]catalog.Record{{ID: "a", MessagePattern: expr}})
		if len(problems) > 0 {
			return // refused, by name
		}
		re, err := regexp.Compile("(?s:" + expr + ")")
		if err != nil {
			t.Fatalf("%q was not refused: %v", expr, err)
		}
		if re.MatchString(text) && !m.Contains([]byte(text)) {
			t.Errorf("%q matches %q, which the prefilter drops (%q)", expr, text, m.patterns[0].literal)
		}
	})
}

// TestRefused: a record that cannot be matched is named and takes no other
// down.
func TestRefused(t *testing.T) {
	bad := []catalog.Record{
		{ID: "a", ErrorMessage: "{}"},
		{ID: "b", MessagePattern: "(unclosed group of a pattern"},
		{ID: "c", ErrorMessage: "short"},
		{ID: "d", MessagePattern: "(?i)failed to open"},
		{ID: "e", ErrorMessage: "日本語のエラー"},
		{ID: "f", ErrorMessage: "a good record: {}"},
		{ID: "g", ErrorMessage: "unescaped (x) text", MessagePattern: "unescaped (x) text"},
		{ID: "h", ErrorMessage: "stray [ bracket", MessagePattern: "stray [ bracket"},
		{ID: "i", ErrorMessage: "with an alias", Aliases: []string{"{}"}},
		{ID: "j"},
	}
	m, problems := New(bad)
	var refused, remarks []string
	for _, p := range problems {
		if p.Refused {
			refused = append(refused, bad[p.Record].ID)
		} else {
			remarks = append(remarks, bad[p.Record].ID)
		}
		if p.Message == "" {
			t.Errorf("%s is named without a word", bad[p.Record].ID)
		}
	}
	if d := cmp.Diff([]string{"a", "b", "c", "d", "e", "j"}, refused); d != "" {
		t.Errorf("refused: %s", d)
	}
	if d := cmp.Diff([]string{"g", "h", "i"}, remarks); d != "" {
		t.Errorf("remarks: %s", d)
	}
	for _, id := range []string{"f", "g", "h", "i"} {
		r, ok := m.Lookup(id)
		if !ok {
			t.Fatalf("%s is not looked for", id)
		}
		if res, ok := matchText(m, "ERROR", "", catalog.Instantiate(r.ErrorMessage, []string{"v"})); !ok || res.Record.ID != id {
			t.Errorf("%s is not found", id)
		}
	}
	if _, ok := m.Lookup("a"); ok {
		t.Error("a refused record is looked for")
	}
	if empty, _ := New(nil); empty.Contains([]byte("anything at all")) {
		t.Error("an empty catalogue finds something")
	}
}

// TestManyBytes: a catalogue whose literals hold every byte builds.
func TestManyBytes(t *testing.T) {
	var all []string
	for i := 0x20; i < 0x250; i += 8 {
		var b strings.Builder
		for j := range 8 {
			b.WriteRune(rune(i + j))
		}
		all = append(all, "known error "+b.String()+" tail: {}")
	}
	recs := records(all...)
	for i := range recs {
		recs[i].ID = string(rune(0x1000 + i))
	}
	m := mustNew(t, recs)
	for _, r := range recs {
		res, ok := matchText(m, "ERROR", "", catalog.Instantiate(r.ErrorMessage, []string{"v"}))
		if !ok || res.Record.ID != r.ID || !slices.Equal(res.Args, []string{"v"}) {
			t.Errorf("%q is not found", r.ErrorMessage)
		}
	}
}
