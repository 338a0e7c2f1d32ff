package match

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// A pattern is one wording of a record: its message or an alias.
type pattern struct {
	record   int    // index into Matcher.records
	template string // the wording as published
	expr     string

	literal  string // what the prefilter looks for: a part of every match
	offset   int    // of literal from the start of a match; -1 if that varies
	literals int    // literal bytes in all: how specific the wording is
	longest  int    // bytes of the longest literal run
	pieces   []string
	trailing bool // the expression ends in a placeholder, which as written takes one character
	prose    bool // …after a colon or so: free text to the end of the message, not one value

	compile func() *regexp.Regexp // nil if there are pieces
}

// placeholder is what stands in a messagePattern for each Rust placeholder.
const placeholder = "(.+?)"

// compilePatterns makes the patterns of a record. notes are remarks for lint.
func compilePatterns(index int, r *catalog.Record) (patterns []*pattern, notes []string, err error) {
	expr, note, err := chooseExpression(r)
	if err != nil {
		return nil, nil, err
	}
	if note != "" {
		notes = append(notes, note)
	}
	template := r.ErrorMessage
	if template == "" {
		template = r.MessagePattern
	}
	p, err := newPattern(index, template, expr)
	if err != nil {
		return nil, nil, err
	}
	patterns = append(patterns, p)
	for _, alias := range r.Aliases {
		p, err := newPattern(index, alias, catalog.EscapedPattern(alias))
		if err != nil {
			notes = append(notes, fmt.Sprintf("alias %q is not matched: %v", alias, err))
			continue
		}
		patterns = append(patterns, p)
	}
	return patterns, notes, nil
}

// chooseExpression decides between the published messagePattern and one made
// from errorMessage. Whether published patterns escape their literal text is
// unknown, so each is tried on the message itself.
func chooseExpression(r *catalog.Record) (expr, note string, err error) {
	if r.ErrorMessage == "" {
		if _, err := syntax.Parse(r.MessagePattern, syntax.Perl); err != nil {
			return "", "", fmt.Errorf("does not compile: %w", err)
		}
		return r.MessagePattern, "", nil
	}
	escaped := catalog.EscapedPattern(r.ErrorMessage)
	if r.MessagePattern == "" || r.MessagePattern == escaped {
		return escaped, "", nil
	}
	re, err := regexp.Compile("(?s)" + r.MessagePattern)
	if err != nil {
		return escaped, fmt.Sprintf("does not compile (%v); the pattern made from errorMessage is used", err), nil
	}
	if !re.MatchString(catalog.Instantiate(r.ErrorMessage, nil)) {
		return escaped, "does not match its own errorMessage (is its literal text escaped?); the pattern made from errorMessage is used", nil
	}
	return r.MessagePattern, "", nil
}

var errNoLiteral = errors.New("no literal text of 6 bytes or more that every match contains (outside of quotes, slashes and other than ASCII): it cannot be looked for")

func newPattern(record int, template, expr string) (*pattern, error) {
	p := &pattern{record: record, template: template, expr: expr, offset: -1, pieces: simplePieces(expr)}
	runs, err := p.shape()
	if err != nil {
		return nil, fmt.Errorf("does not compile: %w", err)
	}
	if p.literal = searchable(runs); len(p.literal) < minLiteral {
		return nil, errNoLiteral
	}
	for _, run := range runs {
		p.literals += len(run)
		p.longest = max(p.longest, len(run))
	}
	first := runs[0]
	startsLiteral := p.pieces == nil && strings.HasPrefix(expr, regexp.QuoteMeta(first)) || p.pieces != nil && p.pieces[0] != ""
	if i := strings.Index(first, p.literal); i >= 0 && startsLiteral {
		p.offset = i
	}
	before := strings.TrimRight(runs[len(runs)-1], " ")
	p.prose = p.trailing && (strings.HasSuffix(before, ":") || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, "="))
	if p.pieces == nil {
		anchor := ""
		if p.offset >= 0 {
			anchor = `\A`
		}
		p.compile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(anchor + "(?s:" + expr + ")") })
	}
	return p, nil
}

// shape sets how the expression ends and returns its required runs. Nearly every
// expression consists of pieces, and then need not be parsed for that.
func (p *pattern) shape() (runs []string, err error) {
	if p.pieces != nil {
		p.trailing = len(p.pieces) > 1 && p.pieces[len(p.pieces)-1] == ""
		return slices.DeleteFunc(slices.Clone(p.pieces), func(s string) bool { return s == "" }), nil
	}
	tree, err := syntax.Parse(p.expr, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil, err
	}
	p.trailing = trailingGroup(tree)
	return requiredRuns(tree), nil
}

// simplePieces splits an expression that consists of literal text and plain
// placeholders into its literal texts: one more than placeholders. nil if the
// expression is anything else.
func simplePieces(expr string) []string {
	parts := strings.Split(expr, placeholder)
	for i, part := range parts {
		text, ok := unquoted(part)
		if !ok {
			return nil
		}
		parts[i] = text
	}
	return parts
}

// unquoted undoes regexp.QuoteMeta; ok is false for what is not of its making.
func unquoted(expr string) (text string, ok bool) {
	const meta = `\.+*?()|[]{}^$`
	if !utf8.ValidString(expr) {
		return "", false
	}
	var b strings.Builder
	for {
		i := strings.IndexAny(expr, meta)
		if i < 0 {
			return b.String() + expr, true
		}
		if expr[i] != '\\' || i+1 == len(expr) || strings.IndexByte(meta, expr[i+1]) < 0 {
			return "", false
		}
		b.WriteString(expr[:i])
		b.WriteByte(expr[i+1])
		expr = expr[i+2:]
	}
}

// trailingGroup reports whether the expression ends in a group that takes any text.
func trailingGroup(tree *syntax.Regexp) bool {
	last := tree
	for last.Op == syntax.OpConcat && len(last.Sub) > 0 {
		last = last.Sub[len(last.Sub)-1]
	}
	if last.Op != syntax.OpCapture {
		return false
	}
	switch sub := last.Sub[0]; sub.Op {
	case syntax.OpPlus, syntax.OpStar:
		return sub.Sub[0].Op == syntax.OpAnyChar || sub.Sub[0].Op == syntax.OpAnyCharNotNL
	}
	return false
}
