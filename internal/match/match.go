// Package match finds the known errors of a catalogue in log records.
//
// It works in two steps. Candidates looks over a block of raw bytes, envelopes
// and all, and names the few lines that may hold a known error. Match takes a
// decoded record and decides: which errors are in it, which of them is the
// cause, what their arguments are. Every text that Match can recognise is let
// through by Candidates; see the tests.
//
// A Matcher does not change after New and is safe for concurrent use. The
// package does no I/O, knows no clock and writes no logs.
package match

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/coregx/ahocorasick"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// A Matcher recognises the errors of one catalogue.
type Matcher struct {
	records  []catalog.Record
	patterns []*pattern
	filters  []*filter
	auto     *ahocorasick.Automaton
	byID     [][]int32 // automaton's pattern id → patterns with that literal
	bySlug   map[string]int
}

// A Problem is a record or wording that cannot be matched, or a remark on one
// that can.
type Problem struct {
	Record  int // index into the records given to New
	Refused bool
	Message string
}

// New builds a Matcher. Records that cannot be matched are left out and named;
// they never take others down.
func New(records []catalog.Record) (*Matcher, []Problem) {
	m := &Matcher{records: records, bySlug: make(map[string]int, 2*len(records))}
	var problems []Problem
	for i, c := range compileAll(records) {
		for _, n := range c.notes {
			problems = append(problems, Problem{i, false, n})
		}
		if c.err != nil {
			problems = append(problems, Problem{i, true, c.err.Error()})
			continue
		}
		m.patterns = append(m.patterns, c.patterns...)
		m.bySlug[records[i].ID] = i
		if records[i].Slug != "" {
			m.bySlug[records[i].Slug] = i
		}
	}
	if err := m.build(); err != nil {
		problems = append(problems, Problem{-1, true, err.Error()})
	}
	return m, problems
}

// compiled is what became of a record.
type compiled struct {
	patterns []*pattern
	notes    []string
	err      error
}

// compileAll compiles the records, on all cores: it is a good part of what a
// start takes.
func compileAll(records []catalog.Record) []compiled {
	out := make([]compiled, len(records))
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(records); i += workers {
				c := &out[i]
				c.patterns, c.notes, c.err = compilePatterns(i, &records[i])
			}
		})
	}
	wg.Wait()
	return out
}

// automatonLiteral caps the literals in the automaton, which only runs over
// lines that the filters let through: longer ones cost memory and the time to
// build it, find no less, and spare few expressions a try.
const automatonLiteral = 5

func (m *Matcher) build() (err error) {
	// The library panics on sets with more than 254 different bytes; ours are
	// ASCII, so this is for what is not known.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("building the automaton: %v", r)
		}
	}()
	unique := map[string]bool{}
	for _, p := range m.patterns {
		unique[p.literal] = true
	}
	literals := make([]string, 0, len(unique))
	for l := range unique {
		literals = append(literals, l)
	}
	slices.Sort(literals)
	common := commonGrams(literals)
	var filters sync.WaitGroup
	filters.Go(func() { m.buildFilters(literals, common) })
	defer filters.Wait()
	return m.buildAutomaton(common)
}

func (m *Matcher) buildFilters(literals []string, common *gramCounts) {
	longest := 1 << 30
	for _, c := range filterClasses {
		var class []string
		for _, l := range literals {
			if len(l) >= c.width && len(l) < longest {
				class = append(class, l)
			}
		}
		if len(class) > 0 {
			m.filters = append(m.filters, newFilter(c.width, c.q, class, common))
		}
		longest = c.width
	}
}

func (m *Matcher) buildAutomaton(common *gramCounts) error {
	ids := map[string]int32{}
	builder := ahocorasick.NewBuilder()
	for i, p := range m.patterns {
		if len(p.literal) > automatonLiteral {
			at := rarestWindow(p.literal, automatonLiteral, common)
			if p.offset >= 0 {
				p.offset += at
			}
			p.literal = p.literal[at : at+automatonLiteral]
		}
		id, ok := ids[p.literal]
		if !ok {
			id = int32(len(m.byID))
			ids[p.literal] = id
			m.byID = append(m.byID, nil)
			builder.AddPattern([]byte(p.literal))
		}
		m.byID[id] = append(m.byID[id], int32(i))
	}
	if len(ids) == 0 {
		return nil
	}
	auto, err := builder.Build()
	if err != nil {
		return fmt.Errorf("building the automaton: %w", err)
	}
	m.auto = auto
	return nil
}

// Records returns the catalogue, in the order given to New.
func (m *Matcher) Records() []catalog.Record { return m.records }

// Lookup finds a record by id or slug.
func (m *Matcher) Lookup(name string) (*catalog.Record, bool) {
	i, ok := m.bySlug[name]
	if !ok {
		return nil, false
	}
	return &m.records[i], true
}

// Candidates appends to dst the offset of a literal of the catalogue for each
// line of block that holds one, ascending. It allocates nothing if there is
// none.
func (m *Matcher) Candidates(dst []int, block []byte) []int {
	from := len(dst)
	for i, f := range m.filters {
		dst = f.scan(dst, block)
		if i > 0 && len(dst) > from {
			slices.Sort(dst[from:])
		}
	}
	return dst
}

// Contains reports whether a literal of the catalogue is in one text.
func (m *Matcher) Contains(text []byte) bool {
	var found [4]int
	for _, f := range m.filters {
		if len(f.scan(found[:0], text)) > 0 {
			return true
		}
	}
	return false
}

// Literals tells for each wording what the prefilter looks for, for lint and
// statistics. LongestRun is the longest literal text, before it is cut to what
// is written alike in every envelope.
func (m *Matcher) Literals() []Literal {
	out := make([]Literal, len(m.patterns))
	for i, p := range m.patterns {
		tree := requiredOf(p.expr)
		out[i] = Literal{p.record, p.template, searchable(tree), p.longest, p.trailing}
	}
	return out
}

// A Literal describes one wording; see Matcher.Literals.
type Literal struct {
	Record     int
	Template   string
	Text       string
	LongestRun int
	Trailing   bool // ends in a placeholder
}

func hasRole(r *catalog.Record, role string) bool {
	return r.Role == role || r.Role == "" && role == catalog.RoleRoot
}

// fitsCrate reports whether a log target lies in the crate that a source file
// of RisingWave belongs to. A record without a file fits none.
func fitsCrate(file, target string) bool {
	dir, _, ok := strings.Cut(strings.TrimPrefix(file, "src/"), "/")
	return ok && strings.HasPrefix(target, "risingwave_"+dir)
}
