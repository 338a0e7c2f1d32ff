package match

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// minLiteral is the shortest literal that the prefilter can look for.
const minLiteral = 6

// requiredRuns returns the literal texts that stand in every string the
// expression matches, in order. Only what no alternative, option or repetition
// can leave out counts. They are derived from the syntax tree and never stored,
// so they cannot drift from the pattern.
func requiredRuns(re *syntax.Regexp) []string {
	var c collector
	c.walk(re.Simplify())
	c.flush()
	return c.runs
}

type collector struct {
	runs []string
	run  strings.Builder
}

func (c *collector) flush() {
	if c.run.Len() > 0 {
		c.runs = append(c.runs, c.run.String())
		c.run.Reset()
	}
}

func (c *collector) walk(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 && hasCase(re.Rune) {
			c.flush()
			return
		}
		c.run.WriteString(string(re.Rune))
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			c.walk(sub)
		}
	case syntax.OpCapture:
		c.walk(re.Sub[0])
	case syntax.OpPlus:
		// The first repetition is required, but what follows it is not adjacent.
		c.walk(re.Sub[0])
		c.flush()
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
	default:
		c.flush()
	}
}

func hasCase(runes []rune) bool {
	for _, r := range runes {
		if unicode.SimpleFold(r) != r {
			return true
		}
	}
	return false
}

// searchable returns the longest part of the runs that is written alike in
// every envelope: without quotes, backslashes, slashes and control characters,
// which JSON escapes, and without other than ASCII, which some encoders write
// as \uXXXX. It is what the prefilter looks for in the raw bytes.
func searchable(runs []string) string {
	best := ""
	for _, run := range runs {
		for part := range strings.FieldsFuncSeq(run, unsafeRune) {
			if len(part) > len(best) {
				best = part
			}
		}
	}
	return best
}

func unsafeRune(r rune) bool {
	return r < 0x20 || r >= 0x7f || r == '"' || r == '\\' || r == '/'
}

// requiredOf is requiredRuns of an expression known to compile.
func requiredOf(expr string) []string {
	tree, err := syntax.Parse(expr, syntax.Perl|syntax.DotNL)
	if err != nil {
		return nil
	}
	return requiredRuns(tree)
}
