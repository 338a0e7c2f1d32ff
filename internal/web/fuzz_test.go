package web

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzClean: whatever comes in, what comes out is short, valid and shows
// itself; and cleaning twice is cleaning once.
func FuzzClean(f *testing.F) {
	f.Add(hostile, 20, true)
	f.Add("日本語\u0301\u0301\u0301\u0301\u0301", 3, false)
	f.Add("\xff\xfe\u2028", 1, false)
	f.Fuzz(func(t *testing.T, s string, limit int, lines bool) {
		limit = max(1, min(limit, 1000))
		got := tidy(s, limit, lines)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		letters := 0
		for _, r := range got {
			if !unicode.IsGraphic(r) && !(lines && r == '\n') {
				t.Fatalf("%q holds %U", got, r)
			}
			if !unicode.Is(unicode.M, r) {
				letters++
			}
		}
		if letters > limit+len(`\U0010ffff…`) {
			t.Fatalf("%d characters, limit %d", letters, limit)
		}
		if again := tidy(got, 2*limit+20, lines); again != got {
			t.Fatalf("%q becomes %q", got, again)
		}
	})
}

// FuzzAccepts: no header makes the negotiation fail.
func FuzzAccepts(f *testing.F) {
	f.Add("text/html;q=0.5, */*;q")
	f.Fuzz(func(t *testing.T, header string) {
		if accepts(header, "text/html") && !strings.Contains(strings.ToLower(header), "text/html") {
			t.Fatalf("%q", header)
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	s := New(Options{})
	s.SetCatalog(Catalog{Records: records()})
	ev := event("aaaaaaaaaaaaaaa1", "compute", "c-0", "mismatch initial vnode bitmap: Bitmap { num_bits: 256 }, expect: Bitmap { num_bits: 256 }", noon)
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(ev)
	}
}
