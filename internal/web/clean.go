package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths in characters of what is shown of a text from a log.
const (
	maxMessage = 600
	maxArg     = 200
	maxArgs    = 8
	maxName    = 200 // paths, pods, targets
	maxLine    = 4000
	maxMarks   = 3 // combining marks on one letter
)

// clean makes a foreign text harmless for terminals and readers: one line, at
// most limit characters, control characters as symbols, and nothing that
// changes direction or hides. What it returns shares no memory with s.
func clean(s string, limit int) string { return tidy(s, limit, false) }

// cleanBlock is clean for texts of several lines.
func cleanBlock(s string, limit int) string { return tidy(s, limit, true) }

func tidy(s string, limit int, lines bool) string {
	var b strings.Builder
	b.Grow(min(len(s), limit+8))
	n, marks := 0, 0
	for _, r := range s {
		if unicode.Is(unicode.M, r) {
			if marks++; marks > maxMarks {
				continue
			}
		} else {
			marks = 0
		}
		if n++; n > limit {
			b.WriteRune('…')
			break
		}
		if r == '\n' && lines {
			b.WriteByte('\n')
			continue
		}
		b.WriteRune(harmless(r))
	}
	return b.String()
}

// harmless replaces what drives a terminal or misleads a reader. Format
// characters (bidirectional overrides, zero width) are not graphic.
func harmless(r rune) rune {
	switch {
	case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029':
		return ' '
	case r < 0x20:
		return 0x2400 + r // control pictures: ␛
	case r == 0x7f:
		return '␡'
	case !unicode.IsGraphic(r):
		return utf8.RuneError
	}
	return r
}
