package unknown

import (
	"strings"

	"github.com/rwannotate/rwannotate/internal/logline"
)

// Bounds of what is looked at of one text, and of the template it gives.
const (
	maxText     = 4 << 10
	maxTemplate = 512
)

const hole = "{}"

// A folder reduces the text of a record to its template: what varies from one
// occurrence to the next becomes {}.
//
// Folded are numbers and words with digits (ids, epochs, hex, UUIDs, addresses,
// durations), quoted texts, lists and structures, paths and URLs, and the
// values of fields. What stands literally in one of RisingWave's messages, such
// as s3, Utf8 or `interval`, is kept: it tells two messages apart. Fields
// between a message and its error, and behind it, are left out: each statement
// has its own, and JSON records do not print them as text.
type folder struct {
	keep map[string]bool // words and quoted texts that are part of a message
}

// record appends the template of a record's message and error to dst.
func (f *folder) record(dst []byte, rec *logline.Record) []byte {
	w := writer{folder: f, buf: dst, limit: len(dst) + maxTemplate, run: -1, pretty: rec.Pretty}
	for i := range rec.Segments {
		seg := &rec.Segments[i]
		switch {
		case seg.Kind == logline.Message && seg.Name == "panic":
			w.literal(rec.File + ": ")
			w.text(seg.Text)
		case seg.Kind == logline.Message:
			w.space()
			w.text(seg.Text)
		case seg.Kind == logline.Field && isErrorField(seg.Name):
			w.space()
			w.literal(seg.Name + "=")
			w.text(seg.Text)
		}
	}
	w.endRun(len(w.buf))
	return w.buf
}

// isErrorField names the fields that hold an error's text.
func isErrorField(name string) bool {
	switch name {
	case "error", "err", "e", "reason", "cause", "error.sources":
		return true
	}
	return false
}

// A writer folds one text.
type writer struct {
	*folder
	buf    []byte
	limit  int
	run    int // where a run of fields began that may be left out, -1 if none
	pretty bool
}

func (w *writer) space() {
	if n := len(w.buf); n > 0 && w.buf[n-1] != ' ' {
		w.buf = append(w.buf, ' ')
	}
}

// literal adds text that is kept. It ends a run of fields: they stand in the
// middle of a sentence.
func (w *writer) literal(s string) {
	w.buf = append(w.buf, s...)
	w.run = -1
}

// hole adds a placeholder; lists and sequences of them become one.
func (w *writer) hole() {
	w.run = -1
	n := len(w.buf)
	if n > 1 && w.buf[n-1] == ' ' && w.buf[n-2] == ',' {
		n -= 2
	} else if n > 0 && (w.buf[n-1] == ',' || w.buf[n-1] == '-' || w.buf[n-1] == ':') {
		n--
	}
	if n > 1 && w.buf[n-2] == '{' && w.buf[n-1] == '}' {
		w.buf = w.buf[:n]
		return
	}
	w.buf = append(w.buf, hole...)
}

// endRun leaves the run of fields before offset end out.
func (w *writer) endRun(end int) {
	if w.run >= 0 {
		w.buf = append(w.buf[:w.run], w.buf[end:]...)
	}
	w.run = -1
}

func (w *writer) text(s string) {
	s = strings.TrimRight(s[:min(len(s), maxText)], " \n")
	for i := 0; i < len(s) && len(w.buf) < w.limit; {
		i += w.next(s, i)
	}
}

// next folds what s[i] begins and returns its length.
func (w *writer) next(s string, i int) int {
	switch c := s[i]; c {
	case ' ', '\n', '\t':
		w.space()
		return 1
	case '"', '`':
		return w.quoted(s, i, quoteEnd(s, i))
	case '\'':
		if i > 0 && isWord(s[i-1]) {
			break // don't
		}
		return w.quoted(s, i, singleEnd(s, i))
	case '[', '{':
		return w.bracket(s, i)
	case ',':
		if w.pretty && w.run >= 0 { // between two fields
			w.buf = append(w.buf, c)
			return 1
		}
	default:
		if n := wordEnd(s[i:]); n > 0 {
			return w.word(s, i, n)
		}
	}
	w.literal(s[i : i+1])
	return 1
}

// quoted folds a quoted text that ends at s[end], -1 if it has no end.
func (w *writer) quoted(s string, i, end int) int {
	switch {
	case end < 0:
		w.literal(s[i : i+1])
		return 1
	case w.keep[s[i+1:end]]:
		w.literal(s[i : end+1])
	default:
		w.literal(s[i : i+1])
		w.buf = append(append(w.buf, hole...), s[end])
	}
	return end + 1 - i
}

// quoteEnd returns the index of the quote that closes the one at s[i].
func quoteEnd(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case s[i]:
			return j
		}
	}
	return -1
}

// maxSingle is how long a text in single quotes may be: an apostrophe is no
// quote.
const maxSingle = 200

func singleEnd(s string, i int) int {
	for j := i + 1; j < len(s) && j < i+maxSingle && s[j] != '\n'; j++ {
		if s[j] == '\'' && (j+1 == len(s) || !isWord(s[j+1])) {
			return j
		}
	}
	return -1
}

// bracket folds a list or structure. A word in brackets is kept: "[Schema
// history] putObject timed out".
func (w *writer) bracket(s string, i int) int {
	end := closing(s, i)
	if end < 0 || s[i] == '[' && isPlain(s[i+1:end-1]) {
		w.literal(s[i : i+1])
		return 1
	}
	w.hole()
	return end - i
}

func isPlain(s string) bool {
	return s != "" && !strings.ContainsAny(s, "0123456789,\"'{}[]()=:")
}

// closing returns the index behind the bracket that closes the one at s[i],
// outside of double quotes, or -1.
func closing(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if i = quoteEnd(s, i); i < 0 {
				return -1
			}
		}
	}
	return -1
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// wordEnd returns the length of the word that s begins with: up to white space,
// a quote, bracket, comma, semicolon or =, without the punctuation that ends a
// clause.
func wordEnd(s string) int {
	n := 0
	for n < len(s) && !endsWord(s[n]) {
		n++
	}
	for n > 0 && (s[n-1] == ':' || s[n-1] == '.' || s[n-1] == '!' || s[n-1] == '?') {
		n--
	}
	return n
}

func endsWord(c byte) bool {
	switch c {
	case ' ', '\n', '\t', '"', '\'', '`', '[', ']', '{', '}', '(', ')', ',', ';', '=', '|', '<', '>':
		return true
	}
	return false
}

// word folds the word s[i:i+n], and a field's value with its name.
func (w *writer) word(s string, i, n int) int {
	value := s[i : i+n]
	if field := w.fieldAt(s, i, n); field > 0 {
		return w.field(s, i, n, field)
	}
	if w.varies(value) {
		w.hole()
	} else {
		w.literal(value)
	}
	return n
}

// fieldAt returns the length of what separates a field's name s[i:i+n] from its
// value, 0 if it is no name.
func (w *writer) fieldAt(s string, i, n int) int {
	if i > 0 && s[i-1] != ' ' && s[i-1] != '\n' && s[i-1] != '(' || !isName(s[i:i+n]) {
		return 0
	}
	if i+n+1 < len(s) && s[i+n] == '=' && s[i+n+1] != '=' && s[i+n+1] != ' ' && s[i+n+1] != '>' {
		return 1
	}
	if w.pretty && i > 1 && s[i-2] == ',' && strings.HasPrefix(s[i+n:], ": ") {
		return 2
	}
	return 0
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '_' && c != '.' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// field folds a field whose name ends at s[i+n] and whose value begins sep
// bytes behind.
func (w *writer) field(s string, i, n, sep int) int {
	start := len(w.buf)
	for start > 0 && (w.buf[start-1] == ' ' || w.pretty && w.buf[start-1] == ',') {
		start--
	}
	if isErrorField(s[i : i+n]) {
		w.buf = w.buf[:start]
		w.endRun(start)
		w.space()
		w.literal(s[i:i+n] + "=")
		return n + sep
	}
	run := w.run
	w.literal(s[i:i+n] + "=" + hole)
	if w.run = run; run < 0 && start > 0 {
		w.run = start
	}
	return n + sep + valueEnd(s[i+n+sep:])
}

// valueEnd returns the length of a field's value: up to white space or a comma
// outside of brackets and quotes.
func valueEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ' && i > 0 && isWord(s[i-1]) && strings.HasPrefix(s[i:], " {"): // Struct { field: 1 }
		case c == ' ' || c == '\n' || c == ',' || c == ')' || c == ';':
			return i
		case c == '[' || c == '{' || c == '(':
			if end := closing(s, i); end > 0 {
				i = end - 1
			}
		case c == '"':
			if end := quoteEnd(s, i); end > 0 {
				i = end
			}
		}
	}
	return len(s)
}

// minHex is the length from which a word of hexadecimal letters is no English.
const minHex = 8

// varies reports whether a word is a value rather than a part of a message.
func (w *writer) varies(s string) bool {
	digits, letters, slashes, hex := false, false, 0, true
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c == '/':
			slashes++
		case c == '@':
			return true
		case isWord(c):
			letters = true
			hex = hex && (c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')
		}
	}
	switch {
	case digits:
		return !letters || !w.keep[s]
	case slashes > 1 || s[0] == '/' && len(s) > 1 || strings.Contains(s, "://"):
		return !w.keep[s]
	}
	return hex && len(s) >= minHex
}
