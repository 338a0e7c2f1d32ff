package logline

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse reads one record: a header with its continuation lines, envelopes and
// (for text) line ends already removed.
func Parse(b []byte) Record {
	if dirty(b) {
		b = Clean(make([]byte, 0, len(b)), b)
	}
	s := Valid(b)
	rec := Record{Text: s}
	trimmed := strings.TrimLeft(s, " ")
	switch {
	case strings.HasPrefix(trimmed, `{`):
		if !rec.parseJSON([]byte(trimmed)) {
			rec.plain(s)
		}
	case eventLogType(b) > 0:
		n := eventLogType(b)
		if !rec.parseJSON([]byte(s[n+1:])) {
			rec.plain(s)
		}
		rec.Event, rec.Component = s[:n], Meta
	case strings.HasPrefix(trimmed, "thread '") && strings.Contains(trimmed, "panicked at "):
		rec.parsePanic(trimmed)
	case !rec.parseText(s):
		rec.plain(s)
	}
	rec.identify()
	return rec
}

// plain makes the whole text one segment: no known form.
func (r *Record) plain(s string) {
	r.Segments = append(r.Segments, Segment{Kind: Message, Text: s})
	r.Event = firstLine(s)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// parseText reads the forms with a header line: full, compact, pretty, query
// log, log4j; and records that print a level but no stamp.
func (r *Record) parseText(s string) bool {
	rest := strings.TrimLeft(s, " ")
	indented := len(s) - len(rest)
	if isStamp([]byte(rest[:min(len(rest), 19)])) {
		var stamp string
		stamp, rest = cutStamp(rest)
		r.Time, _ = ParseTime(stamp)
	} else if leadingLevel([]byte(rest)) == "" {
		return false
	}
	rest = strings.TrimLeft(rest, " ")
	r.Level = leadingLevel([]byte(rest))
	if r.Level == "" {
		return r.parseNoLevel(rest)
	}
	rest = strings.TrimLeft(rest[len(r.Level):], " ")
	r.Pretty = indented == 2 && (prettyLocation(rest) >= 0 || fieldStart(firstLine(rest)) < 0)
	rest = r.cutThread(rest)
	r.body(rest)
	return true
}

// cutStamp splits off the time, with a log4j fraction ("07:11:02,396") too.
func cutStamp(s string) (stamp, rest string) {
	n := stampLen([]byte(s[:min(len(s), 48)]))
	if n == 0 {
		n = 19
		for n < len(s) && (s[n] == ',' || s[n] == '.' || s[n] >= '0' && s[n] <= '9') {
			n++
		}
	}
	return s[:n], s[n:]
}

// parseNoLevel reads query log lines, "THREAD ThreadId(07) span{…}: message",
// and foreign lines that put words before the level, "[app] ERROR text".
func (r *Record) parseNoLevel(rest string) bool {
	if i := strings.Index(rest, " ThreadId("); i > 0 && i < 64 {
		if j := strings.Index(rest[i:], ") "); j > 0 {
			r.Thread = rest[:i]
			r.body(rest[i+j+2:])
			return true
		}
	}
	word, after, ok := strings.Cut(rest, " ")
	if level := leadingLevel([]byte(after)); ok && strings.HasPrefix(word, "[") && level != "" {
		r.Level = level
		rest = strings.TrimLeft(after[len(level):], " ")
	}
	r.event(rest, "")
	return true
}

// cutThread takes the thread name off, which standalone mode prints between
// level and target: the one word there that does not end in a colon and opens
// no span.
func (r *Record) cutThread(s string) string {
	i := strings.IndexByte(s, ' ')
	if i <= 0 || strings.ContainsAny(s[:i], ":{=\n") {
		return s
	}
	after := strings.TrimLeft(s[i:], " ")
	if !startsPath(after) {
		return s
	}
	r.Thread = s[:i]
	return after
}

// startsPath reports whether s starts with a target or a span: a word followed
// by a colon or a brace.
func startsPath(s string) bool {
	i := pathEnd(s)
	return i > 0 && i < len(s) && (s[i] == ':' || s[i] == '{')
}

// pathEnd returns the end of a Rust path ("risingwave_meta::barrier") or word
// at the start of s.
func pathEnd(s string) int {
	i := 0
	for i < len(s) {
		c := s[i]
		switch {
		case c == '_' || c == '.' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			i++
		case c == ':' && i+2 < len(s) && s[i+1] == ':' && s[i+2] != ' ':
			i += 2
		default:
			return i
		}
	}
	return i
}

// body reads "[spans: ]target: event".
func (r *Record) body(s string) {
	rest, spans := r.cutSpans(s)
	if n := pathEnd(rest); n > 0 && strings.HasPrefix(rest[n:], ":") && (len(rest) == n+1 || rest[n+1] == ' ' || rest[n+1] == '\n') {
		r.Target = rest[:n]
		rest = strings.TrimPrefix(rest[n+1:], " ")
	}
	r.event(rest, spans)
}

// cutSpans takes the list of tracing spans off, "a{f=v}:b: ", and adds their
// fields as segments. names are the spans' names, for compact lines.
func (r *Record) cutSpans(s string) (rest, names string) {
	i := 0
	for {
		n := pathEnd(s[i:])
		if n == 0 || i+n >= len(s) {
			return s[i:], names
		}
		name, j := s[i:i+n], i+n
		fields := s[j] == '{'
		if fields {
			end := spanEnd(s, j)
			if end < 0 {
				return s[i:], names
			}
			r.spanFields(s[j+1 : end-1])
			j = end
		}
		if j >= len(s) || s[j] != ':' {
			return s[i:], names
		}
		j++
		switch {
		case j < len(s) && s[j] != ' ' && s[j] != '\n' && (fields || pathEnd(s[j:]) > 0):
			names += name + " " // another span follows at once
			i = j
		case j < len(s) && s[j] == ' ' && (fields || spanBeforeTarget(name, s[j+1:])):
			return s[j+1:], names + name // ": " ends the list
		default:
			return s[i:], names
		}
	}
}

// spanBeforeTarget reports whether the word before a colon is a span without
// fields, which only what follows tells: a target.
func spanBeforeTarget(name, after string) bool {
	if strings.Contains(name, "::") {
		return false
	}
	n := pathEnd(after)
	return n > 0 && strings.HasPrefix(after[n:], ": ") && (strings.Contains(after[:n], "::") || knownCrate(after[:n]))
}

func knownCrate(s string) bool {
	crate, _, _ := strings.Cut(s, "::")
	return strings.HasPrefix(crate, "risingwave_") || strings.HasPrefix(crate, "pgwire")
}

// spanEnd returns the index behind the brace that closes the span fields which
// open at s[i], or -1. Values are printed raw, so brackets are balanced first;
// if SQL or a cut text has spoilt the balance, the end is where a target of
// RisingWave follows.
func spanEnd(s string, i int) int {
	if end := closing(s, i); end > 0 && end < len(s) && s[end] == ':' {
		return end
	}
	for j := i; ; {
		k := strings.Index(s[j:], "}:")
		if k < 0 {
			return -1
		}
		j += k + 2
		rest := strings.TrimPrefix(s[j:], " ")
		if n := pathEnd(rest); n > 0 && strings.HasPrefix(rest[n:], ": ") && knownCrate(rest) && strings.Contains(rest[:n], "::") {
			return j - 1
		}
	}
}

// closing returns the index behind the bracket that closes the one at s[i],
// counting brackets outside of quoted strings, or -1. Inside a sql field
// single quotes count too.
func closing(s string, i int) int {
	var stack []byte
	sql := false
	for ; i < len(s); i++ {
		switch c := s[i]; c {
		case '{', '(', '[':
			stack = append(stack, c)
		case '}', ')', ']':
			if len(stack) == 0 || stack[len(stack)-1] != opener(c) {
				return -1
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return i + 1
			}
		case '"':
			if i = quoteEnd(s, i, '"'); i < 0 {
				return -1
			}
		case '\'':
			if sql {
				if i = quoteEnd(s, i, '\''); i < 0 {
					return -1
				}
			}
		case 's':
			sql = sql || strings.HasPrefix(s[i:], "sql=") && i > 0 && (s[i-1] == ' ' || s[i-1] == '{')
		}
	}
	return -1
}

func opener(c byte) byte {
	switch c {
	case '}':
		return '{'
	case ')':
		return '('
	}
	return '['
}

// quoteEnd returns the index of the quote that closes the one at s[i], or -1.
func quoteEnd(s string, i int, quote byte) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i
		}
	}
	return -1
}

// spanFields adds the fields of one span.
func (r *Record) spanFields(s string) {
	s, _ = cutBacktrace(s)
	r.Segments = append(r.Segments, Segment{Kind: Span, Text: r.cutSQL(s)})
}

// cutSQL moves a SQL statement out of s into a segment of its own.
func (r *Record) cutSQL(s string) string {
	start, value := sqlField(s)
	if start < 0 {
		return s
	}
	end := sqlEnd(s, value)
	r.Segments = append(r.Segments, Segment{Kind: SQL, Name: "sql", Text: s[value:end]})
	return s[:start] + s[end:]
}

// sqlFields are the fields that hold a user's statement.
var sqlFields = [...]string{"sql", "definition", "stmt"}

func holdsSQL(field string) bool { return slices.Contains(sqlFields[:], field) }

// sqlField returns where a field with a statement and its value start, or -1.
func sqlField(s string) (start, value int) {
	for _, name := range sqlFields {
		if strings.HasPrefix(s, name+"=") {
			return 0, len(name) + 1
		}
		for _, form := range [...]string{" " + name + "=", ", " + name + ": "} {
			if i := strings.Index(s, form); i >= 0 {
				return i, i + len(form)
			}
		}
	}
	return -1, -1
}

// sqlEnd returns where the statement that starts at s[i] ends. It is printed
// raw or quoted; raw, it ends where one of the fields follows that stand behind
// it. Such a name inside of a SQL string does not count.
func sqlEnd(s string, i int) int {
	if strings.HasPrefix(s[i:], `"`) {
		if end := quoteEnd(s, i, '"'); end > 0 {
			return end + 1
		}
		return len(s)
	}
	for ; i < len(s); i++ {
		switch s[i] {
		case '\'':
			end := quoteEnd(s, i, '\'')
			if end < 0 {
				return len(s)
			}
			i = end
		case ' ':
			for _, next := range [...]string{" user=\"", " error=", " err=", " session_id=", " mode=\"", " elapsed=", " query_id="} {
				if strings.HasPrefix(s[i:], next) {
					return i
				}
			}
		}
	}
	return len(s)
}

// event adds message, fields and continuation lines. In the compact form the
// fields of the spans come behind the event's own; of these the statement and
// the error of a recovery are no part of the event.
func (r *Record) event(s, spans string) {
	if r.Pretty {
		s = r.cutPrettySpans(s)
	}
	s, _ = cutBacktrace(s)
	r.Event = eventMessage(s, r.Pretty)
	s = r.cutSQL(s)
	if strings.Contains(spans, "recovery") && LevelRank(r.Level) < LevelRank("WARN") {
		if i := strings.Index(s, " error="); i >= 0 {
			r.Segments = append(r.Segments, Segment{Kind: Span, Text: s[i+1:]})
			s = s[:i]
		}
	}
	r.Segments = append(r.Segments, Segment{Kind: Message, Text: s})
}

// cutPrettySpans moves what the pretty form prints behind an event, the line
// "    at file:line" and for each span "    in span with field: value", into
// segments. Values may go on over lines.
func (r *Record) cutPrettySpans(s string) string {
	end := prettyLocation(s)
	if end < 0 {
		return s
	}
	for _, span := range strings.Split(s[end:], "\n    in ")[1:] {
		r.spanFields(strings.TrimRight(span, "\n"))
	}
	return strings.TrimRight(s[:end], "\n")
}

// prettyLocation returns where the line starts that names the source file of
// an event in the pretty form, at the newline before it; -1 if there is none.
func prettyLocation(s string) int {
	const at = "\n    at "
	for from := 0; ; {
		i := strings.Index(s[from:], at)
		if i < 0 {
			return -1
		}
		i += from
		from = i + len(at)
		file, _, _ := strings.Cut(firstLine(s[from:]), " ")
		if strings.Contains(file, ".rs:") {
			return i
		}
	}
}

// eventMessage is the statement's own text: up to the first field.
func eventMessage(s string, pretty bool) string {
	s = firstLine(s)
	if pretty {
		for i := 0; i < len(s); i++ {
			if s[i] == ',' && strings.HasPrefix(s[i:], ", ") {
				if n := pathEnd(s[i+2:]); n > 0 && strings.HasPrefix(s[i+2+n:], ": ") {
					return s[:i]
				}
			}
		}
		return s
	}
	if i := fieldStart(s); i >= 0 {
		return strings.TrimRight(s[:i], " ")
	}
	return s
}

// fieldStart returns the index of the first "name=" that starts a word, or -1.
func fieldStart(s string) int {
	for i := 0; i < len(s); {
		n := pathEnd(s[i:])
		if n > 0 && i+n < len(s) && s[i+n] == '=' && !strings.HasPrefix(s[i+n:], "==") {
			return i
		}
		k := strings.IndexByte(s[i:], ' ')
		if k < 0 {
			return -1
		}
		i += k + 1
	}
	return -1
}

// backtraces are the lines from which a record lists stack frames.
var backtraces = [...]string{"\nBacktrace:", "\nStack backtrace:", "\nstack backtrace:", "\n  backtrace of `"}

// cutBacktrace splits off the stack frames: no error message is in them.
func cutBacktrace(s string) (text, frames string) {
	end := -1
	for _, b := range backtraces {
		if i := strings.Index(s, b); i >= 0 && (end < 0 || i < end) {
			end = i
		}
	}
	if end < 0 {
		return s, ""
	}
	return strings.TrimRight(s[:end], "\n"), s[end:]
}

// parsePanic reads what Rust's panic hook prints: since 1.73 the location and
// then the message on lines of its own, before that the quoted message and
// then the location.
func (r *Record) parsePanic(s string) {
	r.Level = PanicLevel
	r.Thread, _, _ = strings.Cut(s[len("thread '"):], "'")
	_, rest, _ := strings.Cut(s, "panicked at ")
	if strings.HasPrefix(rest, "'") {
		rest = rest[1:]
		if i := strings.LastIndex(firstLineOrAll(rest), "', "); i >= 0 {
			r.File, _, _ = strings.Cut(rest[i+3:], "\n")
			rest = rest[:i]
		}
	} else {
		location, message, _ := strings.Cut(rest, "\n")
		r.File = strings.TrimSuffix(location, ":")
		rest = message
	}
	rest, _ = cutBacktrace("\n" + rest)
	rest = strings.TrimPrefix(rest, "\n")
	if i := strings.Index(rest, "\nnote: "); i >= 0 {
		rest = rest[:i]
	}
	rest = strings.TrimRight(rest, "\n")
	r.Event = firstLine(rest)
	r.Segments = append(r.Segments, Segment{Kind: Message, Name: "panic", Text: rest, Exact: true})
}

// firstLineOrAll is the part of an old-style panic in which its location is
// looked for: up to the stack.
func firstLineOrAll(s string) string {
	text, _ := cutBacktrace(s)
	return text
}

// parseJSON reads RisingWave's JSON record, and other JSON objects as a set of
// fields. A torn record gives what was readable; false means nothing was.
func (r *Record) parseJSON(b []byte) bool {
	whole := object(b, func(key, value []byte) {
		switch string(key) {
		case "timestamp", "time", "ts":
			if s, ok := body(value); ok && r.Time.IsZero() {
				r.Time, _ = ParseTime(string(s))
			}
		case "level", "severity":
			if s, ok := body(value); ok && r.Level == "" && LevelRank(string(s)) >= 0 {
				r.Level = strings.ToUpper(string(s))
			}
		case "target":
			r.Target = decoded(value)
		case "threadName":
			r.Thread = decoded(value)
		case "fields":
			if !object(value, r.jsonField) && value[0] != '{' {
				r.jsonField(key, value)
			}
		case "spans":
			array(value, func(span []byte) { object(span, r.jsonSpan) })
		case "span":
			object(value, r.jsonSpan)
		default:
			r.jsonField(key, value)
		}
	})
	if !whole && (len(r.Segments) > 0 || bytes.HasPrefix(b, []byte(`{"`))) {
		r.tornJSON(b)
	}
	return len(r.Segments) > 0
}

// tornJSON adds the whole text of a record that was cut: the members behind
// the damage, or a fields object without its end, are only there.
func (r *Record) tornJSON(b []byte) {
	r.Segments = append(r.Segments, Segment{Kind: Message, Text: readable(b)})
}

// readable unescapes the body of a JSON string. Escapes may bring terminal
// control, which the record's raw text was clean of.
func readable(b []byte) string {
	s, _ := unescape(make([]byte, 0, len(b)), b)
	if dirty(s) {
		s = Clean(make([]byte, 0, len(s)), s)
	}
	return Valid(s)
}

// decoded is readable of a raw value; what is no string stays as it is.
func decoded(value []byte) string {
	s, ok := body(value)
	if !ok {
		return Valid(value)
	}
	return readable(s)
}

func (r *Record) jsonField(key, value []byte) { r.jsonMember(key, value, 0) }

func (r *Record) jsonMember(key, value []byte, depth int) {
	s, ok := body(value)
	if !ok {
		r.jsonOther(readable(key), value, depth)
		return
	}
	txt, _ := cutBacktrace(readable(s))
	seg := Segment{Kind: Field, Name: readable(key), Text: txt, Exact: true}
	switch {
	case seg.Name == "message", seg.Name == "msg":
		seg.Kind, seg.Name = Message, ""
		if r.Event == "" {
			r.Event = firstLine(txt)
		}
	case holdsSQL(seg.Name):
		seg.Kind = SQL
	default:
		r.known(seg.Name, txt)
	}
	r.Segments = append(r.Segments, seg)
}

// known keeps the fields that mean something to us.
func (r *Record) known(name, value string) {
	switch name {
	case "actor_id":
		r.ActorID = value
	case suppressed:
		r.Unlogged = count(value)
	}
}

// maxNesting is how deep objects are taken apart. Each level is read once for
// its own sake and once as part of the one around it.
const maxNesting = 8

// jsonOther keeps what a member that is no string tells: an object's members,
// and the text of an array or of what is too deep.
func (r *Record) jsonOther(key string, value []byte, depth int) {
	switch {
	case digits(value):
		r.known(key, string(value))
	case len(value) == 0:
	case value[0] == '{' && depth < maxNesting:
		object(value, func(k, v []byte) { r.jsonMember(k, v, depth+1) })
	case value[0] == '{', value[0] == '[':
		r.Segments = append(r.Segments, Segment{Kind: Field, Name: key, Text: readable(value)})
	}
}

func (r *Record) jsonSpan(key, value []byte) {
	name := readable(key)
	if name == "actor_id" && r.ActorID == "" {
		r.ActorID = decoded(value)
	}
	s, ok := body(value)
	if !ok || name == "name" {
		return
	}
	txt, _ := cutBacktrace(strings.TrimSpace(readable(s)))
	kind := Span
	if holdsSQL(name) {
		kind = SQL
	}
	r.Segments = append(r.Segments, Segment{Kind: kind, Name: name, Text: txt, Exact: true})
}

// SplitGlued splits a text in which a further record starts in the middle of a
// line: the newline between them was lost. The parts alias b.
func SplitGlued(b []byte) [][]byte {
	var parts [][]byte
	start := 0
	for i := 1; i+25 < len(b); i++ {
		k := bytes.IndexByte(b[i:], 'T')
		if k < 0 {
			break
		}
		i += k
		at := i - len("2006-01-02")
		if at <= start || at > 1 && b[at-2] == '\\' || !isWordByte(b[at-1]) && b[at-1] < utf8.RuneSelf && bytes.IndexByte([]byte(")]}.;"), b[at-1]) < 0 || !gluedHeader(b[at:]) {
			continue
		}
		parts = append(parts, b[start:at])
		start = at
	}
	return append(parts, b[start:])
}

// gluedHeader reports whether b starts with a stamp, a level and a target.
func gluedHeader(b []byte) bool {
	n := stampLen(b)
	if n == 0 || n == len(b) || b[n] != ' ' {
		return false
	}
	rest := bytes.TrimLeft(b[n:], " ")
	level := leadingLevel(rest)
	if level == "" {
		return false
	}
	return startsPath(string(bytes.TrimLeft(rest[len(level):min(len(rest), len(level)+200)], " ")))
}

// HeaderLen returns the length of a text record's header up to its message:
// stamp, level, thread, spans and target. 0 if b starts with no such header.
func HeaderLen(b []byte) int {
	s := Valid(b)
	var r Record
	if len(s) != len(b) || !r.parseText(s) || len(r.Segments) == 0 {
		return 0
	}
	message := r.Segments[len(r.Segments)-1].Text
	if i := len(s) - len(message); strings.HasSuffix(s, message) && i <= 1<<10 {
		return i
	}
	return 0
}
