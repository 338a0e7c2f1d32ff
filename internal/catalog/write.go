package catalog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineWidth is where prose is folded and lists are broken up, in characters.
const lineWidth = 110

// AppendYAML appends the record as a file of the catalogue reads: keys in
// canonical order, empty ones and defaults left out, prose folded, quotes only
// where needed. Reading it gives the same record again.
func (r *Record) AppendYAML(dst []byte) []byte {
	w := yamlWriter{buf: dst}
	for _, f := range r.fields() {
		switch v := f.ptr.(type) {
		case *string:
			if *v != "" && !(f.key == "role" && *v == RoleRoot) {
				w.key(0, f.key)
				w.text(0, utf8.RuneCountInString(f.key)+2, *v, isProse(f.key))
			}
		case *int:
			if *v != 0 {
				w.key(0, f.key)
				w.line(" " + strconv.Itoa(*v))
			}
		case *[]string:
			w.list(0, f.key, *v, isProse(f.key))
		case *Examples:
			w.examples(v)
		}
	}
	return w.buf
}

// isProse reports whether a key holds sentences, which may be folded and whose
// outer white space means nothing.
func isProse(key string) bool {
	switch key {
	case "documentation", "triggerScenarios", "commonSituations", "solutions", "preventionTips":
		return true
	}
	return false
}

type yamlWriter struct{ buf []byte }

func (w *yamlWriter) line(s string) { w.buf = append(append(w.buf, s...), '\n') }

func (w *yamlWriter) indent(n int) {
	for range n {
		w.buf = append(w.buf, ' ')
	}
}

func (w *yamlWriter) key(indent int, name string) {
	w.indent(indent)
	w.buf = append(append(w.buf, name...), ':')
}

func (w *yamlWriter) examples(e *Examples) {
	if len(e.Match) == 0 && len(e.Reject) == 0 {
		return
	}
	w.key(0, "examples")
	w.line("")
	if len(e.Match) > 0 {
		w.key(2, "match")
		w.line("")
	}
	for _, m := range e.Match {
		w.indent(4)
		w.buf = append(w.buf, "- text:"...)
		w.text(6, 0, m.Text, false)
		w.list(6, "args", m.Args, false)
	}
	w.list(2, "reject", e.Reject, false)
}

// list writes a key with its list, on the key's line if that is short and
// neither sentences nor log records.
func (w *yamlWriter) list(indent int, key string, items []string, prose bool) {
	if len(items) == 0 {
		return
	}
	w.key(indent, key)
	if flow := flowList(items); !prose && key != "reject" && indent+len(key)+2+utf8.RuneCountInString(flow) <= lineWidth {
		w.line(" " + flow)
		return
	}
	w.line("")
	for _, item := range items {
		w.indent(indent + 2)
		w.buf = append(w.buf, '-')
		w.text(indent+2, indent+4, item, prose)
	}
}

func flowList(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = item
		if !isPlain(item) || strings.ContainsAny(item, "[]{},#?'\"&*!|>%@`") {
			quoted[i] = quote(item)
		}
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// text writes a scalar behind a colon or a dash of the given indentation;
// column is where it would begin.
func (w *yamlWriter) text(indent, column int, s string, prose bool) {
	long := column+utf8.RuneCountInString(s) > lineWidth || strings.Contains(s, "\n")
	switch {
	case prose && long && canFold(s):
		w.line(" >-")
		w.fold(indent+2, s)
	case strings.Contains(s, "\n") && canLiteral(s):
		w.literal(indent+2, s)
	case isPlain(s):
		w.line(" " + s)
	default:
		w.line(" " + quote(s))
	}
}

func (w *yamlWriter) literal(indent int, s string) {
	if body, clipped := strings.CutSuffix(s, "\n"); clipped {
		w.line(" |")
		s = body
	} else {
		w.line(" |-")
	}
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" {
			w.indent(indent)
		}
		w.line(line)
	}
}

// fold writes s in lines of lineWidth; a newline of s becomes an empty line.
func (w *yamlWriter) fold(indent int, s string) {
	for i, paragraph := range strings.Split(s, "\n") {
		if i > 0 {
			w.line("")
		}
		for paragraph != "" {
			var line string
			line, paragraph = foldAt(paragraph, lineWidth-indent)
			w.indent(indent)
			w.line(line)
		}
	}
}

// foldAt cuts s at the last single space within width characters, or at the
// first one after that.
func foldAt(s string, width int) (line, rest string) {
	cut, n := -1, 0
	for i, r := range s {
		if n > width && cut >= 0 {
			break
		}
		n++
		if r == ' ' && i > 0 && s[i-1] != ' ' && i+1 < len(s) && s[i+1] != ' ' {
			cut = i
		}
	}
	if cut < 0 || n <= width {
		return s, ""
	}
	return s[:cut], s[cut+1:]
}

// canFold reports whether folding keeps s: no line may begin or end with a
// space, and a line that begins with a tab is not folded at all.
func canFold(s string) bool {
	if hasControl(s) || strings.Contains(s, "\t") {
		return false
	}
	for i, line := range strings.Split(s, "\n") {
		if line != strings.Trim(line, " ") || line == "" && i == 0 {
			return false
		}
	}
	return !strings.HasSuffix(s, "\n")
}

func canLiteral(s string) bool {
	s = strings.TrimSuffix(s, "\n")
	if s == "" || hasControl(s) || strings.IndexByte(" \n\t", s[0]) >= 0 || strings.IndexByte(" \n\t", s[len(s)-1]) >= 0 {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" && strings.Trim(line, " \t") == "" {
			return false
		}
	}
	return true
}

// hasControl reports characters that only a double-quoted string can hold.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && mustEscape(r) })
}

// mustEscape reports what YAML does not allow, or reads as a line break, and
// what cannot be seen: a draft is made from a log.
func mustEscape(r rune) bool { return !unicode.IsGraphic(r) }

// isPlain reports whether s needs no quotes.
func isPlain(s string) bool {
	return s != "" && s == strings.TrimSpace(s) && strings.IndexByte(plainFirst+".<=", s[0]) < 0 &&
		plainText(s) && !strings.Contains(s, "\n") && !hasControl(s) && !looksTyped(s)
}

// looksTyped reports whether some YAML reader may take s for something else
// than text: a number, a truth value, null, a time.
func looksTyped(s string) bool {
	switch strings.ToLower(s) {
	case "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return true
	}
	if !isDigit(s[0]) && s[0] != '+' {
		return false
	}
	if len(s) >= 8 && isDigit(s[3]) && s[4] == '-' || strings.Trim(s, "0123456789:._+") == "" {
		return true
	}
	_, err := strconv.ParseInt(s, 0, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return true
	}
	_, err = strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// quote writes s in single quotes, which leave backslashes alone, or in double
// quotes if it holds what only these can.
func quote(s string) string {
	if !strings.ContainsAny(s, "\n\t") && !hasControl(s) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case mustEscape(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case mustEscape(r) && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case mustEscape(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
