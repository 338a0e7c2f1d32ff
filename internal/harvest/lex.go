package harvest

import (
	"strings"
	"unicode/utf8"
)

type kind uint8

const (
	word  kind = iota // identifier, keyword, number
	text              // string literal
	mark              // one character of punctuation; "::" is one mark
	other             // character or byte literal, lifetime
)

// A token of Rust or Java.
type token struct {
	kind  kind
	value string // text: decoded
	line  int
}

func (t token) is(m string) bool       { return t.kind == mark && t.value == m }
func (t token) named(name string) bool { return t.kind == word && t.value == name }

// A lexer cuts a source into tokens. It never fails: what it does not know is
// a mark.
type lexer struct {
	src    string
	at     int
	line   int
	java   bool
	tokens []token
}

func lex(src string, java bool) []token {
	l := lexer{src: src, line: 1, java: java, tokens: make([]token, 0, len(src)/5)}
	for l.at < len(l.src) {
		l.next()
	}
	return l.tokens
}

// skip moves on by n bytes and counts their lines.
func (l *lexer) skip(n int) {
	n = min(n, len(l.src)-l.at)
	l.line += strings.Count(l.src[l.at:l.at+n], "\n")
	l.at += n
}

func (l *lexer) emit(k kind, value string, line int) {
	l.tokens = append(l.tokens, token{k, value, line})
}

func (l *lexer) next() {
	rest := l.src[l.at:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		l.skip(1)
	case strings.HasPrefix(rest, "//"):
		l.skip(lineEnd(rest))
	case strings.HasPrefix(rest, "/*"):
		l.skip(l.commentEnd(rest))
	case l.java && strings.HasPrefix(rest, `"""`):
		l.textBlock(rest)
	case c == '"':
		l.quoted(rest)
	case c == '\'':
		l.character(rest)
	case !l.java && rawHashes(rest) >= 0:
		l.raw(rest)
	case !l.java && c == 'b' && len(rest) > 1 && (rest[1] == '"' || rest[1] == '\'' || rawHashes(rest[1:]) >= 0):
		l.bytes()
	case !l.java && c == 'c' && len(rest) > 1 && rest[1] == '"':
		l.bytes()
	case isIdent(c):
		n := identEnd(rest)
		l.emit(word, rest[:n], l.line)
		l.skip(n)
	case strings.HasPrefix(rest, "::"):
		l.emit(mark, "::", l.line)
		l.skip(2)
	default:
		_, n := utf8.DecodeRuneInString(rest)
		l.emit(mark, rest[:n], l.line)
		l.skip(n)
	}
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// commentEnd returns the length of a block comment; Rust's nest.
func (l *lexer) commentEnd(s string) int {
	depth := 1
	for i := 2; i < len(s)-1; i++ {
		switch s[i : i+2] {
		case "/*":
			if !l.java {
				depth++
				i++
			}
		case "*/":
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		}
	}
	return len(s)
}

func isIdent(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func identEnd(s string) int {
	i := 0
	for i < len(s) && isIdent(s[i]) {
		i++
	}
	return i
}

// quoted reads a string with escapes.
func (l *lexer) quoted(s string) {
	n := 1
	for n < len(s) && s[n] != '"' {
		if s[n] == '\\' {
			n++
		}
		n++
	}
	l.emit(text, l.unescape(s[1:min(n, len(s))]), l.line)
	l.skip(n + 1)
}

// character reads 'x', '\n' or, in Rust, a lifetime.
func (l *lexer) character(s string) {
	n := 1
	switch {
	case len(s) > 2 && s[1] == '\\':
		if i := strings.IndexByte(s[3:], '\''); i >= 0 {
			n = i + 4
		}
	default:
		_, size := utf8.DecodeRuneInString(s[1:])
		if 1+size < len(s) && s[1+size] == '\'' {
			n = size + 2
		} else {
			n = 1 + identEnd(s[1:])
		}
	}
	l.emit(other, "", l.line)
	l.skip(n)
}

// rawHashes returns the number of # of the raw string that s begins with, -1
// if it begins with none.
func rawHashes(s string) int {
	if s == "" || s[0] != 'r' {
		return -1
	}
	n := 1
	for n < len(s) && s[n] == '#' {
		n++
	}
	if n < len(s) && s[n] == '"' {
		return n - 1
	}
	return -1
}

func (l *lexer) raw(s string) {
	hashes := rawHashes(s)
	open := hashes + 2
	n := strings.Index(s[open:], `"`+strings.Repeat("#", hashes))
	if n < 0 {
		n = len(s) - open
	}
	l.emit(text, s[open:open+n], l.line)
	l.skip(open + n + 1 + hashes)
}

// bytes reads what begins with b or c like the string or character after it,
// which is no text.
func (l *lexer) bytes() {
	l.skip(1)
	from := len(l.tokens)
	l.next()
	l.tokens[from].kind = other
}

// textBlock reads a Java text block: the common indentation is dropped.
func (l *lexer) textBlock(s string) {
	end := strings.Index(s[3:], `"""`)
	if end < 0 {
		end = len(s) - 3
	}
	lines := strings.Split(s[3:3+end], "\n")[1:]
	indent := -1
	for _, line := range lines {
		if trimmed := strings.TrimLeft(line, " \t"); trimmed != "" && (indent < 0 || len(line)-len(trimmed) < indent) {
			indent = len(line) - len(trimmed)
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(indent, 0), len(line)):], " \t\r")
	}
	l.emit(text, l.unescape(strings.Join(lines, "\n")), l.line)
	l.skip(3 + end + 3)
}

// unescape decodes a string's escapes. A backslash at the end of a line joins
// it with the next one.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 >= len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '0':
			b.WriteByte(0)
		case '\n':
			if l.java {
				continue
			}
			s = strings.TrimLeft(s, " \t\r\n")
		case 'x', 'u':
			s = codePoint(&b, c, s)
		default:
			b.WriteByte(c)
		}
	}
}

// codePoint decodes \x41, \u{1f600} and Java's \u0041.
func codePoint(b *strings.Builder, form byte, s string) (rest string) {
	digits := 2
	if form == 'u' {
		digits = 4
		if strings.HasPrefix(s, "{") {
			s = s[1:]
			digits = max(0, strings.IndexByte(s, '}'))
			defer func() { rest = strings.TrimPrefix(rest, "}") }()
		}
	}
	r := rune(0)
	n := 0
	for ; n < digits && n < len(s); n++ {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] == '_' {
			continue
		}
		if d < 0 {
			break
		}
		r = r<<4 | rune(d)
	}
	b.WriteRune(r)
	return s[n:]
}
