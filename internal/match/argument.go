package match

import "strings"

// argumentEnd returns where the last argument, which starts at s[start], ends.
// RisingWave prints values raw, so what follows tells: the end of the line or
// of the field, the next field, a bracket or quote that a wrapper opened
// before the message (at), the next cause of a report. Brackets and strings
// that the value opens itself stay whole.
//
// exact: s ends where the value ends. pretty: fields are written ", name: ".
// prose: the value is free text; otherwise it is one value, and a colon starts
// the next cause.
func argumentEnd(s string, at, start int, pretty, exact, prose bool) int {
	outer := openBefore(s[max(0, at-leadingInput):at])
	i, unclosed := start, 0
	for i < len(s) {
		switch c := s[i]; c {
		case '\n':
			if !exact || !prose || startsCauses(s[i:]) {
				return trimEnd(s, start, i)
			}
		case '\r':
			return trimEnd(s, start, i)
		case '"':
			if outer.quote {
				return trimEnd(s, start, i)
			}
			if end := quoteEnd(s, i); end > 0 && (exact || !strings.Contains(s[i:end], "\n")) {
				i = end
			}
		case '\\':
			if outer.quote && strings.HasPrefix(s[i:], `\n`) {
				return trimEnd(s, start, i) // a line end inside of the quoted text
			}
			if outer.quote && strings.HasPrefix(s[i:], `\"`) && unclosed < maxUnclosed {
				if end := escapedQuoteEnd(s, i); end > 0 {
					i = end
					break
				}
				unclosed++
			}
			i++
		case '(', '[', '{':
			if unclosed < maxUnclosed {
				if end := groupEnd(s, i, outer.quote, exact); end > 0 {
					i = end
				} else {
					unclosed++
				}
			}
		case ')', ']', '}':
			if outer.has(c) {
				return trimEnd(s, start, i)
			}
		case ' ':
			if !exact && !outer.quote && startsField(s[i+1:]) || strings.HasPrefix(s[i:], " Backtrace:") || strings.HasPrefix(s[i:], " Caused by") {
				return trimEnd(s, start, i)
			}
		case ',':
			if pretty && startsPrettyField(s[i+1:]) {
				return trimEnd(s, start, i)
			}
		case ':', ';':
			if !prose && i > start && strings.HasPrefix(s[i+1:], " ") {
				return trimEnd(s, start, i)
			}
		}
		i++
	}
	return trimEnd(s, start, min(i, len(s)))
}

// maxUnclosed is how many brackets and quotes without their closing one are put
// up with in one value before all further ones are taken as text.
const maxUnclosed = 16

// trimEnd drops blanks at the end of s[start:end], but never all of it.
func trimEnd(s string, start, end int) int {
	trimmed := start + len(strings.TrimRight(s[start:end], " \t\n"))
	if trimmed == start {
		return end
	}
	return trimmed
}

// startsCauses reports whether the lines from s, which starts with a newline,
// list causes or frames, of Rust or of Java.
func startsCauses(s string) bool {
	s = strings.TrimLeft(s, "\n")
	return strings.HasPrefix(s, "Caused by") || strings.HasPrefix(s, "\tat ") || strings.HasPrefix(s, "Backtrace:") || strings.HasPrefix(s, "Stack backtrace:")
}

// open is what stands open before the message.
type open struct {
	quote    bool
	brackets string
}

func (o open) has(closer byte) bool {
	for i := range len(o.brackets) {
		if closes(closer, o.brackets[i]) {
			return true
		}
	}
	return false
}

func closes(closer, opener byte) bool {
	return closer == ')' && opener == '(' || closer == ']' && opener == '[' || closer == '}' && opener == '{'
}

// openBefore looks for brackets and a string that are still open at the end of
// s, on its last line.
func openBefore(s string) open {
	s = s[strings.LastIndexByte(s, '\n')+1:]
	var o open
	var stack []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
		case '"':
			end := quoteEnd(s, i)
			if end < 0 {
				o.quote = true
				stack = stack[:0]
				continue
			}
			i = end
		case '(', '[', '{':
			stack = append(stack, c)
		case ')', ']', '}':
			if n := len(stack); n > 0 && closes(c, stack[n-1]) {
				stack = stack[:n-1]
			}
		}
	}
	o.brackets = string(stack)
	return o
}

// groupEnd returns the index of the bracket that closes the one at s[i], or -1
// if it is not closed (in text: not on this line).
func groupEnd(s string, i int, escaped, exact bool) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		case '\\':
			if !escaped || !strings.HasPrefix(s[i:], `\"`) {
				i++
			} else if i = escapedQuoteEnd(s, i); i < 0 {
				return -1
			}
		case '"':
			if escaped {
				return -1
			}
			if end := quoteEnd(s, i); end > 0 {
				i = end
			}
		case '\n':
			if !exact {
				return -1
			}
		}
	}
	return -1
}

// quoteEnd returns the index of the double quote that closes the one at s[i],
// or -1.
func quoteEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// escapedQuoteEnd is quoteEnd for a string inside of a quoted text, whose quotes
// are escaped: s[i:] starts with `\"`. -1 if the text around ends first.
func escapedQuoteEnd(s string, i int) int {
	for i += 2; i+1 < len(s) && s[i] != '"'; i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		switch s[i] {
		case '"':
			return i
		case '\\': // the string's own escape: of a quote if that is escaped too
			if strings.HasPrefix(s[i+1:], `\`) {
				i += 2
			}
		}
	}
	return -1
}

// startsField reports whether s starts with "name=value".
func startsField(s string) bool {
	n := nameEnd(s)
	return n > 0 && n < len(s) && s[n] == '=' && !strings.HasPrefix(s[n:], "==") && !strings.HasPrefix(s[n:], "=>")
}

// startsPrettyField reports whether s starts with " name: value".
func startsPrettyField(s string) bool {
	if !strings.HasPrefix(s, " ") {
		return false
	}
	n := nameEnd(s[1:])
	return n > 0 && strings.HasPrefix(s[1+n:], ": ")
}

// nameEnd returns the length of the field name that s starts with.
func nameEnd(s string) int {
	i := 0
	for i < len(s) {
		c := s[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '.' && (c < '0' || c > '9')) {
			break
		}
		i++
	}
	return i
}
