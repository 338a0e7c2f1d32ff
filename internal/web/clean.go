package web

import (
	"strconv"
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
// most limit characters, with control characters, and those that hide or
// change direction, written out (\x1b, \u202e). What it returns shares no
// memory with s.
func clean(s string, limit int) string { return tidy(s, limit, false) }

// cleanBlock is clean for texts of several lines.
func cleanBlock(s string, limit int) string { return tidy(s, limit, true) }

func tidy(s string, limit int, lines bool) string {
	b := make([]byte, 0, min(len(s), limit+utf8.UTFMax))
	n, marks := 0, 0
	for _, r := range s { // an invalid byte is U+FFFD
		if unicode.Is(unicode.M, r) {
			if marks++; marks > maxMarks {
				continue
			}
		} else {
			marks = 0
		}
		if n++; n > limit {
			return string(append(b, "…"...))
		}
		switch {
		case r == '\n' && lines:
			b = append(b, '\n')
		case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029':
			b = append(b, ' ')
		case unicode.IsGraphic(r): // format characters are not
			b = utf8.AppendRune(b, r)
		default:
			quoted := strconv.AppendQuoteRuneToASCII(nil, r)
			b = append(b, quoted[1:len(quoted)-1]...)
			n += len(quoted) - 3
		}
	}
	return string(b)
}
