package match

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// Closest returns up to n records whose wordings share the most words with a
// text, for the text that none matches. Rare words count more than common
// ones; a record needs two of them in common.
func (m *Matcher) Closest(text string, n int) []*catalog.Record {
	asked := words(text)
	frequency := map[string]int{}
	for _, p := range m.patterns {
		for w := range words(p.template) {
			frequency[w]++
		}
	}
	type scored struct {
		record int
		score  float64
	}
	best := map[int]float64{}
	for _, p := range m.patterns {
		own, shared, score, whole := words(p.template), 0, 0.0, 0.0
		for w := range own {
			weight := 1 / float64(frequency[w])
			whole += weight
			if asked[w] {
				shared++
				score += weight
			}
		}
		if shared >= min(2, len(asked)) && shared > 0 {
			best[p.record] = max(best[p.record], score*score/whole)
		}
	}
	ranked := make([]scored, 0, len(best))
	for record, score := range best {
		ranked = append(ranked, scored{record, score})
	}
	slices.SortFunc(ranked, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(m.records[a.record].ID, m.records[b.record].ID))
	})
	var out []*catalog.Record
	for _, s := range ranked[:min(n, len(ranked))] {
		out = append(out, &m.records[s.record])
	}
	return out
}

// words splits a text into its words of three letters and more, in lower case.
func words(s string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' && r < 0x80 }) {
		if len(w) >= 3 {
			out[w] = true
		}
	}
	return out
}
