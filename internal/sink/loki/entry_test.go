package loki

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	for in, want := range map[string][2]string{
		"app.kubernetes.io/name": {"app_kubernetes_io_name", "app_kubernetes_io_name"},
		"Component":              {"Component", "component"},
		"9lives":                 {"_9lives", "key_9lives"},
		"__name__":               {"_name__", "_name__"},
		"":                       {"", ""},
		"-":                      {"", ""},
		"___":                    {"", ""},
		"é":                      {"", ""},
		"éa":                     {"_a", "_a"},
		"a b\x00":                {"a_b_", "a_b_"},
	} {
		if got := [2]string{labelName(in), metadataName(in)}; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCutLine(t *testing.T) {
	for _, tc := range []struct {
		in    string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{strings.Repeat("x", 100), 50, strings.Repeat("x", 50-27) + " … [100 bytes in all]"},
		{strings.Repeat("ü", 50), 30, "üü" + " … [100 bytes in all]"},
		{strings.Repeat("ü", 50), 5, "üü"},
		{"üü", 0, ""},
	} {
		got := cutLine(tc.in, tc.limit)
		if len(got) > tc.limit || !utf8.ValidString(got) || !strings.HasSuffix(tc.want, "all]") && got != tc.want {
			t.Errorf("%q to %d: %q (%d bytes)", tc.in, tc.limit, got, len(got))
		}
		if strings.HasSuffix(tc.want, "all]") && !strings.HasSuffix(got, " … [100 bytes in all]") {
			t.Errorf("%q to %d: %q", tc.in, tc.limit, got)
		}
	}
}

func TestReducedKeepsEverything(t *testing.T) {
	e := Entry{
		Labels:   []Pair{{"service_name", "risingwave"}, {"namespace", "a"}, {"component", "meta"}, {"level", "error"}, {"log_kind", "known_error"}, {"pod", "p"}},
		Metadata: []Pair{{"error_id", "1"}}, Line: "x", Time: time.Unix(1, 2),
	}.tidy(maxLine)
	got := e.reduced()
	want := Entry{
		Labels:   []Pair{{"component", "meta"}, {"level", "error"}, {"log_kind", "known_error"}, {"service_name", "risingwave"}},
		Metadata: []Pair{{"namespace", "a"}, {"pod", "p"}, {"error_id", "1"}}, Line: "x", Time: time.Unix(1, 2),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

var (
	labelRule = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	metaRule  = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	solidRule = regexp.MustCompile(`[a-zA-Z0-9]`)
)

// FuzzTidy: whatever an entry holds, what is sent keeps all of Loki's rules,
// is the same each time, and survives the way there as JSON.
func FuzzTidy(f *testing.F) {
	f.Add("namespace", "a", "error_id", "x", "line")
	f.Add("k8s.pod", strings.Repeat("ü", 2000), "é", "\xff\xfe", "\x00\x1b[31m\n\"\\\u2028")
	f.Add("__", "", "9", "\ud7ff", strings.Repeat("x", 70_000))
	f.Fuzz(func(t *testing.T, ln, lv, mn, mv, line string) {
		in := Entry{Labels: []Pair{{ln, lv}, {"service_name", "x"}, {ln, lv}}, Metadata: []Pair{{mn, mv}, {ln, mv}, {mn + "_", mv}}, Line: line, Time: time.Unix(1, 1)}
		e := in.tidy(maxLine)
		if d := cmp.Diff(e, in.tidy(maxLine)); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(e, e.tidy(maxLine)); d != "" && !has(e.Metadata, metaTruncated) {
			t.Fatalf("not stable: %s", d)
		}
		for _, e := range []Entry{e, e.reduced(), e.folded(maxLine), e.at(time.Unix(5, 5))} {
			checkRules(t, e)
		}
	})
}

func checkRules(t *testing.T, e Entry) {
	seen := map[string]bool{}
	if len(e.Labels) == 0 || len(e.Labels) > maxLabels || len(e.Metadata) > maxMetadata+1 {
		t.Errorf("%d labels, %d metadata", len(e.Labels), len(e.Metadata))
	}
	for _, p := range e.Labels {
		if !labelRule.MatchString(p.Name) || !solidRule.MatchString(p.Name) || p.Value == "" || len(p.Value) > maxValue || !utf8.ValidString(p.Value) || seen[p.Name] {
			t.Errorf("label %q=%q", p.Name, p.Value)
		}
		seen[p.Name] = true
	}
	for _, p := range e.Metadata {
		if !metaRule.MatchString(p.Name) || !solidRule.MatchString(p.Name) || p.Value == "" || len(p.Value) > maxValue || !utf8.ValidString(p.Value) || seen[p.Name] {
			t.Errorf("metadata %q=%q", p.Name, p.Value)
		}
		seen[p.Name] = true
	}
	if e.Line == "" || len(e.Line) > maxLine || !utf8.ValidString(e.Line) {
		t.Errorf("line of %d bytes", len(e.Line))
	}
	body := appendRequest(nil, e.Labels, []item{{entry: e}, {entry: e}})
	streams, err := decodePush(body)
	if err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	for _, v := range streams[0].values {
		if v.line != e.Line || v.ts != e.Time.UnixNano() || len(v.meta) != len(e.Metadata) {
			t.Errorf("%q came back as %q, metadata %v as %v", e.Line, v.line, e.Metadata, v.meta)
		}
		for _, p := range e.Metadata {
			if v.meta[p.Name] != p.Value {
				t.Errorf("%q came back as %q", p.Value, v.meta[p.Name])
			}
		}
	}
	if n := len(appendValue(nil, &e)); n > e.size() {
		t.Errorf("%d bytes, size says %d", n, e.size())
	}
}

func TestStringsAsEncodingJSONReadsThem(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x3000; r++ {
		if utf8.ValidRune(r) {
			all.WriteRune(r)
		}
	}
	b := appendString(nil, all.String())
	var back string
	if err := json.Unmarshal(b, &back); err != nil || back != all.String() {
		t.Error(err)
	}
	if len(b) != escaped(all.String())+2 {
		t.Errorf("%d bytes, counted %d", len(b), escaped(all.String())+2)
	}
}

func BenchmarkPack(b *testing.B) {
	var items []item
	line := strings.Repeat(`{"level":"error","message":"mismatch initial vnode bitmap: 1110, expect: 1100"},`, 30)
	for range 300 {
		e := Entry{Metadata: []Pair{{"error_id", "d35cdfb22a5e48fe"}, {"pod", "compute-0"}}, Time: time.Unix(1, 1), Line: line}
		items = append(items, item{entry: e})
	}
	var p packer
	_, n := p.pack([]Pair{{"a", "b"}}, items)
	b.SetBytes(int64(n))
	for b.Loop() {
		p.pack([]Pair{{"a", "b"}}, items)
	}
}
