package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Problem is one thing wrong with a record, as a sentence a person can act on.
type Problem struct {
	File    string // path as given to Load; "" if the problem is not about one file
	Line    int    // 1-based; 0 unknown
	Column  int    // 1-based, in runes; 0 unknown
	Field   string // key path, e.g. "solutions[1]"; "" for the file as a whole
	Message string // what is wrong and what to do
	Excerpt string // the source line and a caret line, without a final newline
	Warning bool   // the record is usable all the same
}

// String prints the problem as compilers do.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
			if p.Column > 0 {
				fmt.Fprintf(&b, ":%d", p.Column)
			}
		}
		b.WriteString(": ")
	}
	if p.Warning {
		b.WriteString("warning: ")
	} else {
		b.WriteString("error: ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	return b.String()
}

// HasErrors reports whether any of the problems is more than a warning.
func HasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// SortProblems orders problems by file and place.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// excerptWidth bounds the source text shown; published records are one line of
// several kilobytes.
const excerptWidth = 100

// place fills in line, column and excerpt for the byte offset off of text. The
// caret line marks width bytes, at least one column.
func (p *Problem) place(text string, off, width int) {
	off = min(max(off, 0), len(text))
	start := strings.LastIndexByte(text[:off], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[off:], '\n'); i >= 0 {
		end = off + i
	}
	p.Line = strings.Count(text[:start], "\n") + 1
	p.Column = utf8.RuneCountInString(text[start:off]) + 1
	p.Excerpt = excerpt(text[start:end], p.Line, p.Column, utf8.RuneCountInString(text[off:min(off+width, end)]))
}

func excerpt(line string, number, column, width int) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD"))
	for i, r := range runes {
		runes[i] = visible(r)
	}
	from := 0
	if column > excerptWidth-20 {
		from = min(column-1-excerptWidth/2, len(runes))
	}
	to := min(from+excerptWidth, len(runes))
	shown, before, after := string(runes[from:to]), "", ""
	if from > 0 {
		before = "…"
	}
	if to < len(runes) {
		after = "…"
	}
	gutter := fmt.Sprintf("%5d | ", number)
	pad := strings.Repeat(" ", utf8.RuneCountInString(before)+max(column-1-from, 0))
	carets := "^" + strings.Repeat("~", max(0, min(width, to-column+1)-1))
	return gutter + before + shown + after + "\n" + strings.Repeat(" ", 5) + " | " + pad + carets
}

// visible keeps a hostile file from driving the terminal, and shows tabs.
func visible(r rune) rune {
	switch {
	case r == '\t':
		return '→'
	case !unicode.IsPrint(r) && r != ' ':
		return '\uFFFD'
	}
	return r
}
