package match

import (
	"strings"
	"unicode/utf8"

	"github.com/rwannotate/rwannotate/internal/logline"
)

// maxInput caps the text that one confirmation looks at. An expression is
// linear in it, so a hostile text costs little.
const maxInput = 64 << 10

// leadingInput is how far before the literal a match may begin where the
// wording starts with a placeholder.
const leadingInput = 8 << 10

// A found is one confirmed wording in one segment.
type found struct {
	p       *pattern
	segment int
	start   int      // of the match in the segment's text
	end     int      // behind the last argument
	spans   [][2]int // where its literal texts stand
	args    []string
}

// A text may repeat what a wording starts with, without end and without ever
// going on as the wording does. So that it costs no more than its length, one
// segment gives a bounded number of matches, and each wording gets a bounded
// number of tries there.
const (
	maxFound = 256
	maxTried = 1024
)

// find returns the confirmed wordings in a segment, in the order of their
// literals.
func (m *Matcher) find(dst []found, rec *logline.Record, segment int) []found {
	if m.auto == nil {
		return dst
	}
	seg := &rec.Segments[segment]
	from := len(dst)
	tried := map[int32]int{}
	for _, hit := range m.auto.FindAllOverlapping([]byte(seg.Text)) {
		for _, id := range m.byID[hit.PatternID] {
			p := m.patterns[id]
			if len(dst)-from >= maxFound || tried[id] >= maxTried || covered(dst[from:], p, hit.Start) {
				continue
			}
			tried[id]++
			if f, ok := p.confirm(rec, seg, hit.Start); ok {
				f.segment = segment
				dst = append(dst, f)
			}
		}
	}
	return dst
}

// covered reports whether a literal at that place belongs to a match of the
// same wording found before.
func covered(before []found, p *pattern, at int) bool {
	for i := range before {
		if f := &before[i]; f.p == p && at >= f.start && at < f.end {
			return true
		}
	}
	return false
}

// confirm runs the expression over the text around the literal at seg.Text[at]
// and captures the arguments.
func (p *pattern) confirm(rec *logline.Record, seg *logline.Segment, at int) (found, bool) {
	text := seg.Text
	for _, from := range p.starts(text, at) {
		window := text[from:min(len(text), from+maxInput)]
		caps := p.submatch(window)
		if caps == nil {
			continue
		}
		f := found{p: p, start: from + caps[0], end: from + caps[1]}
		groups := caps[2:]
		if better, end := p.balanced(window); better != nil {
			groups, f.end = better, from+end
		}
		p.arguments(&f, rec, seg, from, groups)
		return f, true
	}
	return found{}, false
}

// submatch returns where the expression and its groups match in the text, which
// begins with the wording, as regexp.FindStringSubmatchIndex does.
func (p *pattern) submatch(text string) []int {
	if p.pieces == nil {
		return p.compile().FindStringSubmatchIndex(text)
	}
	return inOrder(text, p.pieces)
}

// inOrder does for literal pieces with (.+?) between them what their expression
// does, a hundred times faster and without the memory of a compiled one: each
// group takes a character and then as few more as it can, so each piece matches
// where it first stands.
func inOrder(s string, pieces []string) []int {
	if !strings.HasPrefix(s, pieces[0]) {
		return nil
	}
	pos := len(pieces[0])
	caps := make([]int, 2, 2*len(pieces))
	for _, piece := range pieces[1:] {
		_, char := utf8.DecodeRuneInString(s[pos:])
		i := strings.Index(s[pos+char:], piece)
		if char == 0 || i < 0 {
			return nil
		}
		end := pos + char + i
		caps = append(caps, pos, end)
		pos = end + len(piece)
	}
	caps[1] = pos
	return caps
}

// maxStarts bounds the places tried for the start of one match.
const maxStarts = 8

// starts lists where a match with the literal at text[at] may begin, best
// first. If the literal's place in the wording is fixed there is one. If the
// wording starts with other literal text, it is the nearest occurrences of
// that before: an earlier one would take what stands between into the first
// argument.
func (p *pattern) starts(text string, at int) []int {
	switch {
	case p.offset >= 0:
		if from := at - p.offset; from >= 0 && !insideWord(text, from) {
			return []int{from}
		}
		return nil
	case p.pieces == nil:
		return []int{max(0, at-leadingInput)}
	case p.pieces[0] == "":
		line := max(strings.LastIndexByte(text[:at], '\n')+1, at-leadingInput)
		return []int{leadingStart(text, at), line}
	}
	var starts []int
	low := max(0, at-leadingInput)
	for end := at; len(starts) < maxStarts; {
		i := strings.LastIndex(text[low:end], p.pieces[0])
		if i < 0 {
			break
		}
		if end = low + i + len(p.pieces[0]) - 1; !insideWord(text, low+i) {
			starts = append(starts, low+i)
		}
	}
	return starts
}

// insideWord reports whether the text at from goes on with a word that starts
// before: "Storage error: " inside "BackupStorage error: " is another wording.
// An escaped line end ("\\n") before is no part of a word.
func insideWord(text string, from int) bool {
	return from > 0 && isWord(text[from]) && isWord(text[from-1]) && (from < 2 || text[from-2] != '\\')
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// leadingStart is where a leading placeholder's value begins: behind the last
// colon, equals sign or line end before the literal.
func leadingStart(text string, at int) int {
	from := max(0, at-leadingInput)
	before := text[from:at]
	start := strings.LastIndexByte(before, '\n') + 1
	if i := strings.LastIndex(strings.TrimRight(before, ": "), ": "); i+2 > start && i >= 0 {
		start = i + 2
	}
	for i := len(before) - 1; i > start; i-- {
		if before[i] == '=' && isWord(before[i-1]) && i+1 < len(before) && before[i+1] != '=' {
			start = i + 1
		}
	}
	return from + start
}

// arguments fills in the arguments and where the literal texts stand. groups
// are index pairs relative to from.
func (p *pattern) arguments(f *found, rec *logline.Record, seg *logline.Segment, from int, groups []int) {
	pos := f.start
	for i := 0; i+1 < len(groups); i += 2 {
		if groups[i] < 0 {
			f.args = append(f.args, "")
			continue
		}
		a, b := from+groups[i], from+groups[i+1]
		if p.trailing && i+2 == len(groups) {
			b = a + argumentEnd(seg.Text[:min(len(seg.Text), from+maxInput)], f.start, a, rec.Pretty, seg.Exact, p.prose) - a
			f.end = b
		} else {
			f.end = max(f.end, b)
		}
		if a > pos {
			f.spans = append(f.spans, [2]int{pos, a})
		}
		pos = b
		f.args = append(f.args, seg.Text[a:b])
	}
	if f.end > pos {
		f.spans = append(f.spans, [2]int{pos, f.end})
	}
}

// maxTries bounds the search for a balanced end of one argument.
const maxTries = 64

// balanced finds the literal texts of a simple wording in order so that each
// argument before one of them has balanced brackets and quotes: a Debug value
// may contain the very text that follows it. nil if the expression's own groups
// are as good. end is where the wording ends, but for a trailing argument.
func (p *pattern) balanced(window string) (groups []int, end int) {
	if len(p.pieces) < 2 || p.pieces[0] == "" || !strings.HasPrefix(window, p.pieces[0]) {
		return nil, 0
	}
	pos := len(p.pieces[0])
	for i, next := range p.pieces[1:] {
		last := i == len(p.pieces)-2
		if next == "" && last {
			if pos == len(window) {
				return nil, 0
			}
			return append(groups, pos, pos+1), pos + 1
		}
		end := balancedEnd(window, pos, next, last)
		if next == "" || end < 0 {
			return nil, 0
		}
		groups = append(groups, pos, end)
		pos = end + len(next)
	}
	return groups, pos
}

// balancedEnd returns where the text next first stands behind a balanced,
// non-empty value that starts at pos; else where it first stands; else -1. A
// blank before a brace is inside of a struct, and a dot before a letter or
// digit is no end of a sentence.
func balancedEnd(s string, pos int, next string, last bool) int {
	first := -1
	for at, tries := pos+1, 0; tries < maxTries && at <= len(s); tries++ {
		i := strings.Index(s[at:], next)
		if i < 0 {
			break
		}
		at += i
		if first < 0 {
			first = at
		}
		inside := next == " " && strings.HasPrefix(s[at:], " { ") || last && dotInWord(s, at+len(next))
		if !inside && isBalanced(s[pos:at]) {
			return at
		}
		at++
	}
	return first
}

// dotInWord reports whether s[:end] ends in a dot and a word goes on there.
func dotInWord(s string, end int) bool {
	return end < len(s) && s[end-1] == '.' && isWord(s[end])
}

func isBalanced(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '\\':
			if !strings.HasPrefix(s[i:], `\"`) {
				i++
			} else if i = escapedQuoteEnd(s, i); i < 0 {
				return false
			}
		case '"':
			if i = quoteEnd(s, i); i < 0 {
				return false
			}
		}
	}
	return depth == 0
}
