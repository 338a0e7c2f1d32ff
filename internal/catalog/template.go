package catalog

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A Piece is a stretch of a message template: literal text or one placeholder.
type Piece struct {
	Literal string // text as it appears in a message, {{ and }} undone; "" for a placeholder
	Hole    string // placeholder as written, e.g. "{name:?}"; "" for literal text
}

// ParseTemplate splits a Rust format string ({}, {:?}, {name}, {0:#?}, {:>8.2},
// {{ and }}) or an SLF4J message ({}) into its pieces. Literals between
// placeholders are one piece each and never empty. A brace that belongs to no
// placeholder is literal text.
func ParseTemplate(s string) []Piece {
	var pieces []Piece
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			pieces = append(pieces, Piece{Literal: literal.String()})
			literal.Reset()
		}
	}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		literal.WriteString(s[:i])
		s = s[i:]
		if len(s) > 1 && s[1] == s[0] {
			literal.WriteByte(s[0])
			s = s[2:]
		} else if n := holeLength(s); n > 0 {
			flush()
			pieces = append(pieces, Piece{Hole: s[:n]})
			s = s[n:]
		} else {
			literal.WriteByte(s[0])
			s = s[1:]
		}
	}
	literal.WriteString(s)
	flush()
	return pieces
}

// Holes returns the number of placeholders of a template.
func Holes(template string) int {
	n := 0
	for _, p := range ParseTemplate(template) {
		if p.Hole != "" {
			n++
		}
	}
	return n
}

// EscapedPattern is the regular expression that matches a template's messages:
// literal text quoted, (.+?) for each placeholder. The groups are in the
// template's order, also where it names an argument twice.
func EscapedPattern(template string) string {
	var b strings.Builder
	for _, p := range ParseTemplate(template) {
		if p.Hole != "" {
			b.WriteString("(.+?)")
		} else {
			b.WriteString(regexp.QuoteMeta(p.Literal))
		}
	}
	return b.String()
}

// templateOf is the template that a pattern stands for, to show a record that
// was published with its pattern only; "" if the pattern does not compile.
func templateOf(pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	var b strings.Builder
	for _, part := range parts {
		switch part.Op {
		case syntax.OpLiteral:
			b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(string(part.Rune)))
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL: // a dot that nobody escaped
			b.WriteByte('.')
		case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		default:
			b.WriteString("{}")
		}
	}
	return b.String()
}

// Instantiate fills a template's placeholders in order; where values run out,
// with "x".
func Instantiate(template string, values []string) string {
	var b strings.Builder
	i := 0
	for _, p := range ParseTemplate(template) {
		switch {
		case p.Hole == "":
			b.WriteString(p.Literal)
		case i < len(values):
			b.WriteString(values[i])
			i++
		default:
			b.WriteByte('x')
		}
	}
	return b.String()
}

// holeLength returns the length of the placeholder s begins with, or 0. The
// grammar is that of std::fmt, so that braces of JSON or SQL in a message stay text:
//
//	{ [name|number] [: [[fill]<^>] [+-] [#] [0] [width] [.precision] [type] ] }
func holeLength(s string) int {
	if s[0] != '{' {
		return 0
	}
	i := argument(s, 1)
	if i < len(s) && s[i] == ':' {
		i = spec(s, i+1)
	}
	if i < len(s) && s[i] == '}' {
		return i + 1
	}
	return 0
}

func argument(s string, i int) int {
	if i < len(s) && isDigit(s[i]) {
		return digits(s, i)
	}
	return word(s, i)
}

func spec(s string, i int) int {
	i = alignment(s, i)
	i = oneOfBytes(s, i, "+-")
	i = oneOfBytes(s, i, "#")
	i = oneOfBytes(s, i, "0")
	i = count(s, i)
	if i < len(s) && s[i] == '.' {
		if after := oneOfBytes(s, i+1, "*"); after > i+1 {
			i = after
		} else {
			i = count(s, i+1)
		}
	}
	return kindOfHole(s, i)
}

// alignment skips "<", "^" or ">" with the fill character before it.
func alignment(s string, i int) int {
	if c := byteAt(s, i); c == '{' || c == '}' {
		return i
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	if after := oneOfBytes(s, i+size, "<^>"); after > i+size {
		return after
	}
	return oneOfBytes(s, i, "<^>")
}

// count skips a width or precision: digits, or an argument followed by $.
func count(s string, i int) int {
	if after := argument(s, i); after < len(s) && s[after] == '$' && after > i {
		return after + 1
	}
	return digits(s, i)
}

// kindOfHole skips the type: ?, x?, X?, or one of the letters of std::fmt.
func kindOfHole(s string, i int) int {
	if after := oneOfBytes(s, i, "xX"); byteAt(s, after) == '?' {
		return after + 1
	}
	return oneOfBytes(s, i, "?xXobpeE")
}

// oneOfBytes skips one byte of the set.
func oneOfBytes(s string, i int, set string) int {
	if i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
		return i + 1
	}
	return i
}

func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func digits(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func word(s string, i int) int {
	for k := i; ; k++ {
		if k == len(s) || !isLetter(s[k]) && s[k] != '_' && (k == i || !isDigit(s[k])) {
			return k
		}
	}
}
