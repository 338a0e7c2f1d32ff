package match

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/test/bench/gen"
)

// mustNew builds a Matcher of which no record is refused.
func mustNew(t testing.TB, records []catalog.Record) *Matcher {
	t.Helper()
	m, problems := New(records)
	for _, p := range problems {
		if p.Refused {
			t.Fatalf("record %d: %s", p.Record, p.Message)
		}
	}
	return m
}

// records makes a catalogue of messages, whose ids are a, b, c…
func records(messages ...string) []catalog.Record {
	var out []catalog.Record
	for i, m := range messages {
		out = append(out, catalog.Record{ID: string(rune('a' + i)), ErrorMessage: m})
	}
	return out
}

// lines returns the indices of the lines in which the offsets lie.
func lines(block []byte, offsets []int) (out []int) {
	for _, o := range offsets {
		out = append(out, bytes.Count(block[:o], []byte("\n")))
	}
	return out
}

// naive returns the indices of the lines that hold a literal.
func naive(block []byte, literals []string) (out []int) {
	for i, line := range bytes.Split(block, []byte("\n")) {
		if slices.ContainsFunc(literals, func(l string) bool { return bytes.Contains(line, []byte(l)) }) {
			out = append(out, i)
		}
	}
	return out
}

// randomText draws from few letters, so that literals and their parts are
// common.
func randomText(r *rand.Rand, n int, letters string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// TestFilterFindsWhatIsThere compares each class of filter with a search for
// each literal: random literals, random blocks, literals at their very ends.
func TestFilterFindsWhatIsThere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		class := filterClasses[r.IntN(len(filterClasses))]
		letters := "abcdef ghij"[:2+r.IntN(9)]
		var literals []string
		for range 1 + r.IntN(8) {
			if l := randomText(r, class.width+r.IntN(12), letters); !slices.Contains(literals, l) {
				literals = append(literals, l)
			}
		}
		f := newFilter(class.width, class.q, literals, commonGrams(literals))
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(randomText(r, r.IntN(40), letters))
			if r.IntN(3) == 0 {
				b.WriteString(literals[r.IntN(len(literals))])
			}
			if r.IntN(3) == 0 {
				b.WriteByte('\n')
			}
		}
		if r.IntN(2) == 0 {
			b.WriteString(literals[r.IntN(len(literals))])
		}
		block := []byte(b.String())
		got, want := lines(block, f.scan(nil, block)), naive(block, literals)
		if !slices.Equal(got, want) {
			t.Fatalf("class %d, literals %q, block %q: lines %v, want %v", class.width, literals, block, got, want)
		}
	}
}

// TestCandidates is the same for the three classes together; a line may be
// named once for each.
func TestCandidates(t *testing.T) {
	literals := []string{"sixsix", "seveneve", "nineninen", "twelve_twelv", "a longer literal than these"}
	m := mustNew(t, records(literals...))
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var b strings.Builder
		for range r.IntN(20) {
			b.WriteString(randomText(r, r.IntN(15), "sixev ntwl_\n"))
			b.WriteString(literals[r.IntN(len(literals))][:r.IntN(6)])
			if r.IntN(4) == 0 {
				b.WriteString(literals[r.IntN(len(literals))])
			}
		}
		block := []byte(b.String())
		got := m.Candidates(nil, block)
		if !slices.IsSorted(got) {
			t.Fatalf("%q: %v is not ascending", block, got)
		}
		if found, want := slices.Compact(lines(block, got)), naive(block, literals); !slices.Equal(found, want) {
			t.Fatalf("%q: lines %v, want %v", block, found, want)
		}
		if m.Contains(block) != (len(got) > 0) {
			t.Fatalf("%q: Contains disagrees with Candidates", block)
		}
	}
}

// FuzzCandidates: the lines named are those that hold a literal, whatever the
// bytes around it.
func FuzzCandidates(f *testing.F) {
	m := mustNew(f, gen.Catalog(500))
	var literals []string
	for _, l := range m.Literals() {
		literals = append(literals, l.Text)
	}
	f.Add([]byte("x"), uint(1), []byte("y\n"))
	f.Add([]byte("\n\xff"), uint(70), []byte(""))
	f.Fuzz(func(t *testing.T, before []byte, n uint, after []byte) {
		block := slices.Concat(before, []byte(literals[n%uint(len(literals))]), after)
		if got, want := slices.Compact(lines(block, m.Candidates(nil, block))), naive(block, literals); !slices.Equal(got, want) {
			t.Errorf("%q: lines %v, want %v", block, got, want)
		}
	})
}

// healthyBlock is a block of typical lines without a known error.
func healthyBlock(t testing.TB, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := gen.Write(&b, gen.Options{Size: size, Seed: 11}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCandidatesAllocateNothingOnAMiss(t *testing.T) {
	m := mustNew(t, gen.Catalog(500))
	block := healthyBlock(t, 256<<10)
	var dst []int
	if dst = m.Candidates(dst, block); len(dst) > 0 {
		t.Fatalf("%d candidates in a healthy log", len(dst))
	}
	if n := testing.AllocsPerRun(20, func() { dst = m.Candidates(dst[:0], block) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(20, func() { m.Contains(block) }); n != 0 {
		t.Errorf("Contains: %v allocations", n)
	}
}

func BenchmarkMissCandidates(b *testing.B) {
	for _, n := range []int{500, 5000} {
		m := mustNew(b, gen.Catalog(n))
		for _, rate := range []float64{0, 0.001, 0.1} {
			var log bytes.Buffer
			if _, err := gen.Write(&log, gen.Options{Size: 512 << 10, Seed: 11, HitRate: rate}); err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%d records/%g hits", n, rate), func(b *testing.B) {
				var dst []int
				b.SetBytes(int64(log.Len()))
				b.ReportAllocs()
				for b.Loop() {
					dst = m.Candidates(dst[:0], log.Bytes())
				}
			})
		}
	}
}
