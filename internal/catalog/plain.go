package catalog

import (
	"strconv"
	"strings"
)

// readPlain reads the plain part of YAML that records are written in: block
// mappings and lists, one-line quoted strings, one-line flow lists, plain and
// block scalars, whole-line comments. It is a fast path, nothing else: with a
// general YAML library, reading the records was the dearest step of a start
// (300 µs each, 1.5 s of CPU for 5,000; this takes a few µs). Whatever is not
// plainly inside that part is left to readYAML, which also explains what is wrong; ok
// is false then and the node's offset is where reading stopped. Tests hold both
// readers and a third library to the same values.
func readPlain(text string) (n node, ok bool) {
	if !plainBytes(text) {
		return node{}, false
	}
	r := plainReader{text: text}
	r.skipBlank()
	if r.at == len(text) || r.indent() != 0 {
		return node{off: int32(r.at)}, false
	}
	n, ok = r.mapping(0, r.at)
	if !ok || r.at != len(text) {
		return node{off: int32(r.at)}, false
	}
	return n, true
}

// plainBytes reports whether text has no byte that needs YAML's finer rules:
// control characters, CR, and the line breaks and the BOM of Unicode.
func plainBytes(text string) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			return false
		case c == 0xc2 && i+1 < len(text) && text[i+1] < 0xa0: // U+0080…U+009F
			return false
		case c == 0xe2 && strings.HasPrefix(text[i:], "\u2028"), c == 0xe2 && strings.HasPrefix(text[i:], "\u2029"),
			c == 0xef && strings.HasPrefix(text[i:], "\ufeff"):
			return false
		}
	}
	return true
}

// maxKey is far longer than any key; YAML itself ends at 1024.
const maxKey = 64

// plainReader's methods leave at on the line after what they read, or return
// false with at somewhere near what they could not read.
type plainReader struct {
	text string
	at   int // offset of a line's first byte
}

// lineEnd is the offset of the newline (or the end) after off.
func (r *plainReader) lineEnd(off int) int {
	if i := strings.IndexByte(r.text[off:], '\n'); i >= 0 {
		return off + i
	}
	return len(r.text)
}

// next moves to the line after the one that ends at end.
func (r *plainReader) next(end int) { r.at = min(end+1, len(r.text)) }

// skipBlank moves over blank lines and whole-line comments.
func (r *plainReader) skipBlank() {
	for r.at < len(r.text) {
		end := r.lineEnd(r.at)
		first := r.at + r.indent()
		if first < end && r.text[first] != '#' {
			return
		}
		r.next(end)
	}
}

// indent is the number of spaces the current line begins with.
func (r *plainReader) indent() int {
	i := r.at
	for i < len(r.text) && r.text[i] == ' ' {
		i++
	}
	return i - r.at
}

func (r *plainReader) spaces(off int) int {
	for off < len(r.text) && r.text[off] == ' ' {
		off++
	}
	return off
}

// key returns the length of a key that stands at off with its colon, or 0.
func (r *plainReader) key(off int) int {
	i := off
	for i < len(r.text) && (isLetter(r.text[i]) || isDigit(r.text[i]) || r.text[i] == '_') {
		i++
	}
	if i == off || i-off > maxKey || i == len(r.text) || r.text[i] != ':' {
		return 0
	}
	if i+1 < len(r.text) && r.text[i+1] != ' ' && r.text[i+1] != '\n' {
		return 0
	}
	return i - off
}

// mapping reads key lines indented by indent; the first key stands at off,
// which after "- " is not at its line's indentation.
func (r *plainReader) mapping(indent, off int) (node, bool) {
	n := node{kind: kindMapping, off: int32(off)}
	if indent == 0 {
		n.items = make([]node, 0, 24) // a record's usual number of keys
	}
	for {
		length := r.key(off)
		if length == 0 {
			return n, false
		}
		name := r.text[off : off+length]
		if isDigit(name[0]) || isNull(name) { // a number or null as key: not a text
			return n, false
		}
		value, ok := r.value(indent, off+length+1, true)
		if !ok {
			return n, false
		}
		value.key, value.keyAt = name, int32(off)
		n.items = append(n.items, value)

		r.skipBlank()
		if r.at == len(r.text) || r.indent() < indent {
			return n, true
		}
		if r.indent() > indent {
			return n, false
		}
		off = r.at + indent
		if r.text[off] == '-' { // the end of a mapping inside a list item, or an error
			return n, indent > 0
		}
	}
}

// list reads the items of a block list whose dashes are indented by indent.
func (r *plainReader) list(indent int) (node, bool) {
	n := node{kind: kindList, off: int32(r.at + indent)}
	for {
		dash := r.at + indent
		off := r.spaces(dash + 1)
		if off == dash+1 || off >= r.lineEnd(dash) {
			return n, false
		}
		var item node
		var ok bool
		if r.key(off) > 0 {
			item, ok = r.mapping(off-r.at, off)
		} else {
			item, ok = r.value(indent, off, false)
		}
		if !ok {
			return n, false
		}
		n.items = append(n.items, item)

		r.skipBlank()
		if r.at == len(r.text) || r.indent() < indent {
			return n, true
		}
		if r.indent() > indent {
			return n, false
		}
		if r.text[r.at+indent] != '-' {
			return n, true // the parent mapping goes on, or notices that it doesn't
		}
	}
}

// value reads what follows a "key:" or "- " whose parent is indented by
// parent. A key's value may be a block on the following lines.
func (r *plainReader) value(parent, off int, ofKey bool) (node, bool) {
	off = r.spaces(off)
	end := r.lineEnd(off)
	if off == end {
		if !ofKey {
			return node{}, false
		}
		return r.block(parent, off, end)
	}
	switch r.text[off] {
	case '\'', '"':
		n, after, ok := r.quoted(off, end)
		return n, ok && r.endOfValue(parent, after, end)
	case '[':
		n, after, ok := r.flow(off, end)
		return n, ok && r.endOfValue(parent, after, end)
	case '|', '>':
		return r.blockScalar(parent, off, end)
	}
	return r.plainScalar(parent, off, end)
}

// endOfValue checks that nothing but spaces follows a value on its line.
func (r *plainReader) endOfValue(parent, after, end int) bool {
	if r.spaces(after) != end {
		return false
	}
	r.next(end)
	return true
}

// block reads the value of a key with nothing behind its colon.
func (r *plainReader) block(parent, off, end int) (node, bool) {
	null := node{kind: kindNull, off: int32(off)}
	r.next(end)
	r.skipBlank()
	if r.at == len(r.text) {
		return null, true
	}
	indent := r.indent()
	switch first := r.at + indent; {
	case r.text[first] == '-' && indent >= parent && r.spaces(first+1) > first+1:
		return r.list(indent)
	case indent > parent:
		return r.mapping(indent, first)
	}
	return null, true
}

// quoted reads a quoted string that ends on its line and returns the offset
// behind it.
func (r *plainReader) quoted(off, end int) (node, int, bool) {
	n := node{kind: kindScalar, off: int32(off)}
	var i int
	var ok bool
	if r.text[off] == '\'' {
		n.text, i, ok = singleQuoted(r.text[:end], off+1)
	} else {
		n.text, i, ok = doubleQuoted(r.text[:end], off+1)
	}
	n.width = int32(i - off)
	return n, i, ok
}

// singleQuoted reads from behind the opening quote.
func singleQuoted(s string, from int) (text string, after int, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s[from:], '\'')
		if i < 0 {
			return "", from, false
		}
		part := s[from : from+i]
		from += i + 1
		if from == len(s) || s[from] != '\'' {
			if b.Len() == 0 {
				return part, from, true
			}
			return b.String() + part, from, true
		}
		b.WriteString(part + "'")
		from++
	}
}

// doubleQuoted reads from behind the opening quote.
func doubleQuoted(s string, from int) (text string, after int, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexAny(s[from:], `"\`)
		if i < 0 {
			return "", from, false
		}
		part := s[from : from+i]
		from += i + 1
		if s[from-1] == '"' {
			if b.Len() == 0 {
				return part, from, true
			}
			return b.String() + part, from, true
		}
		char, after, ok := unescape(s, from)
		if !ok {
			return "", from, false
		}
		b.WriteString(part + string(char))
		from = after
	}
}

// unescape reads the rest of an escape sequence.
func unescape(s string, i int) (char rune, after int, ok bool) {
	if i == len(s) {
		return 0, i, false
	}
	digits := 0
	switch s[i] {
	case 'n':
		return '\n', i + 1, true
	case 't':
		return '\t', i + 1, true
	case 'r':
		return '\r', i + 1, true
	case '"', '\\':
		return rune(s[i]), i + 1, true
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	default:
		return 0, i, false
	}
	i++
	if i+digits > len(s) {
		return 0, i, false
	}
	code, err := strconv.ParseUint(s[i:i+digits], 16, 16)
	if err != nil || code >= 0xd800 && code < 0xe000 {
		return 0, i, false
	}
	return rune(code), i + digits, true
}

// flow reads a one-line list of scalars: [a, 'b', "c"].
func (r *plainReader) flow(off, end int) (node, int, bool) {
	n := node{kind: kindList, off: int32(off)}
	i := r.spaces(off + 1)
	for i < end && r.text[i] != ']' {
		var item node
		var ok bool
		if c := r.text[i]; c == '\'' || c == '"' {
			item, i, ok = r.quoted(i, end)
		} else {
			item, i, ok = r.flowPlain(i, end)
		}
		if !ok {
			return n, i, false
		}
		n.items = append(n.items, item)
		i = r.spaces(i)
		if i < end && r.text[i] == ',' {
			i = r.spaces(i + 1)
		} else if i == end || r.text[i] != ']' {
			return n, i, false
		}
	}
	n.width = int32(i + 1 - off)
	return n, i + 1, i < end
}

func (r *plainReader) flowPlain(off, end int) (node, int, bool) {
	i := off
	for i < end && r.text[i] != ',' && r.text[i] != ']' {
		if strings.IndexByte("[{}#?'\"&*!|>%@`\t", r.text[i]) >= 0 ||
			r.text[i] == ':' && (i == off || i+1 == end || strings.IndexByte(" ,[]{}", r.text[i+1]) >= 0) {
			return node{}, i, false
		}
		i++
	}
	text := strings.TrimRight(r.text[off:i], " ")
	if text == "" || text[0] == '-' {
		return node{}, i, false
	}
	return plainNode(text, off), i, true
}

// plainFirst are the characters that an unquoted line begins with only at its peril.
const plainFirst = "-?:,[]{}#&*!|>'\"%@`"

// plainScalar reads an unquoted value and the more indented lines that
// continue it.
func (r *plainReader) plainScalar(parent, off, end int) (node, bool) {
	if strings.IndexByte(plainFirst, r.text[off]) >= 0 {
		return node{}, false
	}
	first := strings.TrimRight(r.text[off:end], " ")
	if !plainText(first) {
		return node{}, false
	}
	r.next(end)
	var b strings.Builder
	for r.at < len(r.text) {
		end, indent := r.lineEnd(r.at), r.indent()
		line := strings.TrimRight(r.text[r.at+indent:end], " ")
		if line == "" {
			// The scalar may go on after the blank line: paragraphs.
			r.skipBlank()
			if r.at < len(r.text) && r.indent() > parent {
				return node{}, false
			}
			break
		}
		if indent <= parent {
			break
		}
		if strings.IndexByte(plainFirst, line[0]) >= 0 || !plainText(line) {
			return node{}, false
		}
		if b.Len() == 0 {
			b.WriteString(first)
		}
		b.WriteString(" " + line)
		r.next(end)
	}
	if b.Len() > 0 {
		return node{kind: kindScalar, text: b.String(), off: int32(off), width: int32(len(first))}, true
	}
	return plainNode(first, off), true
}

// plainText reports whether a line of an unquoted scalar is only that.
func plainText(s string) bool {
	return !strings.HasSuffix(s, ":") && !strings.Contains(s, ": ") && !strings.Contains(s, " #") &&
		strings.IndexByte(s, '\t') < 0
}

func plainNode(text string, off int) node {
	if isNull(text) {
		return node{kind: kindNull, off: int32(off), width: int32(len(text))}
	}
	return node{kind: kindScalar, text: text, off: int32(off), width: int32(len(text))}
}

// blockScalar reads a literal (|) or folded (>) text with at most the
// indicator "-".
func (r *plainReader) blockScalar(parent, off, end int) (node, bool) {
	header := strings.TrimRight(r.text[off:end], " ")
	folded, strip := header[0] == '>', len(header) == 2 && header[1] == '-'
	if len(header) > 1 && !strip {
		return node{}, false
	}
	r.next(end)
	indent := r.indent()
	if indent <= parent || strings.HasPrefix(r.text[r.at+indent:], "\t") {
		return node{}, false
	}
	var b strings.Builder
	b.Grow(r.blockLength(indent))
	newlines := 0 // since the last line with text
	for r.at < len(r.text) {
		end, have := r.lineEnd(r.at), r.indent()
		if r.at+have == end { // blank
			if have > indent || b.Len() == 0 {
				return node{}, false
			}
			newlines++
			r.next(end)
			continue
		}
		if have < indent {
			if have > parent {
				return node{}, false
			}
			break
		}
		line := r.text[r.at+indent : end]
		if folded && !foldable(line) {
			return node{}, false
		}
		if b.Len() > 0 {
			b.WriteString(lineBreak(folded, newlines))
		}
		b.WriteString(line)
		newlines = 0
		if end == len(r.text) && !strip {
			return node{}, false // libraries disagree on a final newline that isn't there
		}
		r.next(end)
	}
	text := b.String()
	if text == "" || strings.IndexByte(" \t", text[len(text)-1]) >= 0 {
		return node{}, false
	}
	if !strip {
		text += "\n"
	}
	return node{kind: kindScalar, text: text, off: int32(off), width: int32(len(header))}, true
}

// blockLength is how many bytes the lines from here on have that are indented by
// indent or blank, but for what they are indented by.
func (r *plainReader) blockLength(indent int) (n int) {
	for at := r.at; at < len(r.text); {
		end := r.lineEnd(at)
		if first := r.spaces(at); first < end && first < at+indent {
			break
		}
		n += max(end-at-indent, 0) + 1
		at = end + 1
	}
	return n
}

// foldable reports whether a line of folded text follows the simple rule: one
// line break is a space, n+1 are n newlines.
func foldable(line string) bool {
	return line[0] != ' ' && line[0] != '\t' && !strings.HasSuffix(line, " ") && !strings.HasSuffix(line, "\t")
}

func lineBreak(folded bool, blank int) string {
	if folded && blank == 0 {
		return " "
	}
	if !folded {
		blank++
	}
	return strings.Repeat("\n", blank)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func isNull(s string) bool {
	return s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL"
}
