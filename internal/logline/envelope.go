package logline

import (
	"bytes"
	"time"
)

// A Source is one writer among several multiplexed in a stream: a container of
// a compose project, a systemd unit, a pod. Sources are interned per stream,
// so they compare by pointer.
type Source struct {
	Container string
	Pod       string
	Namespace string
	Unit      string
	Host      string
}

// A Line is one physical line (or journal entry) without its envelope.
type Line struct {
	Payload []byte  // decoded; valid until the next call
	Source  *Source // nil where the stream has one writer
	Stream  string  // stdout, stderr or ""
	Stamp   Stamp   // the envelope's time
	Cursor  []byte  // journald
	Partial bool    // the message goes on in the next line of the same source and stream
	Recheck bool    // letters of the payload may be written differently in the raw bytes
	Skip    bool    // envelope only: no message in it

	Enveloped bool // there was an envelope
}

// A Stamp is an envelope's time as written; it is parsed only when needed.
type Stamp struct {
	raw  []byte
	form stampForm
}

type stampForm uint8

const (
	stampNone stampForm = iota
	stampRFC3339
	stampMicros // microseconds since 1970 (journald)
	stampMillis // milliseconds since 1970 (CloudWatch)
	stampSeconds
	stampNoYear // "Nov 30 12:00:00"
	stampFull   // "2025-11-30 12:00:00[.000000] UTC"
)

// AppendTo copies the stamp into *buf, so that it outlives its line.
func (s Stamp) AppendTo(buf *[]byte) Stamp {
	*buf = append((*buf)[:0], s.raw...)
	return Stamp{*buf, s.form}
}

// Time parses the stamp. now supplies the year where none is written: the
// newest that is not in the future.
func (s Stamp) Time(now time.Time) (time.Time, bool) {
	switch s.form {
	case stampRFC3339:
		return ParseTime(string(s.raw))
	case stampMicros:
		return epoch(s.raw, 1000)
	case stampMillis:
		return epoch(s.raw, 1000*1000)
	case stampSeconds:
		whole, frac, _ := bytes.Cut(s.raw, []byte("."))
		frac = append(append([]byte(nil), frac...), "000000000"...)[:9]
		return epoch(append(append([]byte(nil), whole...), frac...), 1)
	case stampNoYear:
		return guessYear(string(s.raw), now)
	case stampFull:
		if t, err := time.Parse("2006-01-02 15:04:05.999999999 MST", string(s.raw)); err == nil {
			return plausible(t.UTC())
		}
	}
	return time.Time{}, false
}

func epoch(digits []byte, unit int64) (time.Time, bool) {
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' || n > 1<<59 {
			return time.Time{}, false
		}
		n = n*10 + int64(c-'0')
	}
	if n > (1<<62)/unit {
		return time.Time{}, false
	}
	return plausible(time.Unix(0, n*unit).UTC())
}

func guessYear(s string, now time.Time) (time.Time, bool) {
	t, err := time.Parse("Jan _2 15:04:05.999999999", s)
	if err != nil {
		return time.Time{}, false
	}
	t = t.AddDate(now.Year(), 0, 0)
	if t.After(now.Add(24 * time.Hour)) {
		t = t.AddDate(-1, 0, 0)
	}
	return t.UTC(), true
}

// An Unwrapper takes the envelopes off the lines of one stream. It remembers
// what it has recognised there (prefixes, journal state), so each stream needs
// its own. The zero value is ready.
type Unwrapper struct {
	NullMessages int64 // journal entries whose MESSAGE journalctl left out for its size
	Malformed    int64 // faulty journal export data skipped

	sources   map[string]*Source
	scratch   [2][]byte // the two last decoded payloads: an envelope inside an envelope
	turn      int
	keyBuf    []byte
	kubectl   bool    // lines carry kubectl's --timestamps
	jsonKey   string  // the member that holds the line in a JSON wrapper seen before
	shortLen  int     // width of journald's short prefix, for continuation lines
	lastShort *Source // writer of the last short line
	verbose   bool    // journalctl -o verbose
	inMessage bool    // verbose: the last field was MESSAGE
	entry     Stamp   // verbose: time of the entry
	entryBuf  []byte
	export    exportState
}

// maxLayers bounds how deep envelopes nest: CloudWatch around CRI around
// docker is three.
const maxLayers = 4

// Unwrap removes every envelope around one line (without its newline). dirty
// tells whether the block that the line comes from may hold control
// characters at all, see Dirty.
func (u *Unwrapper) Unwrap(raw []byte, dirty bool) Line {
	l := Line{Payload: trimCR(raw)}
	for range maxLayers {
		if len(l.Payload) == 0 || l.Skip || !u.peel(&l) {
			break
		}
		l.Enveloped = true
	}
	if dirty || l.Recheck {
		u.clean(&l)
	}
	return l
}

// Dirty reports whether a block holds bytes that may hide letters from a search
// in the raw bytes: escape sequences, NUL, C1 controls. One look at the block
// spares a look at each of its lines.
func Dirty(block []byte) bool {
	return bytes.IndexByte(block, 0x1b) >= 0 || bytes.IndexByte(block, 0) >= 0 || bytes.IndexByte(block, 0xc2) >= 0
}

func trimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}

// clean removes control characters from a payload. What arrives in pieces is
// left as it is: an escape sequence may go on in the next one.
func (u *Unwrapper) clean(l *Line) {
	if l.Partial || !Dirty(l.Payload) {
		return
	}
	l.Payload = Clean(u.buffer(len(l.Payload)), l.Payload)
	u.keep(l.Payload)
	l.Recheck = true
}

// buffer hands out the scratch buffer that the current payload does not use.
func (u *Unwrapper) buffer(n int) []byte {
	u.turn ^= 1
	if cap(u.scratch[u.turn]) < n {
		u.scratch[u.turn] = make([]byte, 0, n+n/4)
	}
	return u.scratch[u.turn][:0]
}

func (u *Unwrapper) keep(b []byte) { u.scratch[u.turn] = b[:0] }

// source interns a writer by key; fill is called for a new one.
func (u *Unwrapper) source(key []byte, fill func(*Source)) *Source {
	if s := u.sources[string(key)]; s != nil {
		return s
	}
	if u.sources == nil || len(u.sources) >= maxSources {
		u.sources = map[string]*Source{}
	}
	s := &Source{}
	fill(s)
	u.sources[string(key)] = s
	return s
}

// maxSources bounds the writers remembered per stream: an input that invents a
// name a line costs no memory.
const maxSources = 4096

// peel takes one envelope off l.Payload and reports whether there was one.
func (u *Unwrapper) peel(l *Line) bool {
	b := l.Payload
	switch c := b[0]; {
	case c == '{':
		return u.peelJSON(l)
	case c >= '0' && c <= '9':
		return u.peelStamp(l)
	case c == ' ':
		return u.peelIndent(l)
	case c == '[':
		return u.peelBracket(l)
	case c == '-':
		l.Skip = isJournalNotice(b)
		return l.Skip
	case c == 0x1e: // json-seq
		l.Payload = b[1:]
		return true
	case c == 0xef && bytes.HasPrefix(b, []byte("\ufeff")):
		l.Payload = b[3:]
		return true
	case c == 0x1b, c == 0:
		// A coloured prefix, or the hole that a truncated file begins with.
		u.clean(l)
		return !l.Partial && len(l.Payload) > 0 && u.peel(l)
	case isWordByte(c):
		return u.peelWord(l)
	}
	return false
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// isJournalNotice recognises what journalctl prints between entries.
func isJournalNotice(b []byte) bool {
	for _, p := range [...]string{"-- Boot ", "-- No entries --", "-- cursor: ", "-- Journal begins at ", "-- Logs begin at ", "-- Reboot --"} {
		if bytes.HasPrefix(b, []byte(p)) {
			return true
		}
	}
	return false
}

// peelStamp handles lines that start with a stamp: CRI, kubectl --timestamps,
// logcli, journald's short-iso and short-unix. RisingWave's own header starts
// with one too; a level or thread id behind it tells.
func (u *Unwrapper) peelStamp(l *Line) bool {
	b := l.Payload
	n := stampLen(b)
	if n == 0 {
		return u.peelUnixStamp(l)
	}
	if n == len(b) {
		if u.kubectl {
			l.Payload = b[n:]
		}
		return u.kubectl
	}
	rest := b[n:]
	if rest[0] != ' ' {
		return false
	}
	if isCRI(rest) {
		l.Stamp = Stamp{b[:n], stampRFC3339}
		l.Stream = "stdout"
		if rest[4] == 'e' {
			l.Stream = "stderr"
		}
		l.Partial = rest[8] == 'P'
		l.Payload = nil
		if i := bytes.IndexByte(rest[8:], ' '); i >= 0 {
			l.Payload = rest[8+i+1:]
		}
		return true
	}
	inner := rest[1:]
	if leadingLevel(bytes.TrimLeft(inner, " ")) != "" {
		return false
	}
	switch {
	case IsHeader(inner):
		u.kubectl = true
	case len(inner) > 1 && inner[0] == '{' && isWordByte(inner[1]):
		return u.peelLabels(l, b[:n], inner)
	case u.peelShort(l, n+1, Stamp{b[:n], stampRFC3339}, true):
		return true
	case !u.kubectl || bytes.Contains(inner[:min(len(inner), 64)], []byte(" ThreadId(")):
		return false
	}
	l.Stamp = Stamp{b[:n], stampRFC3339}
	l.Payload = inner
	return true
}

// isCRI checks the part behind the stamp: " stdout F message".
func isCRI(rest []byte) bool {
	return len(rest) >= 9 && rest[7] == ' ' && (rest[8] == 'F' || rest[8] == 'P') && (len(rest) == 9 || rest[9] == ' ' || rest[9] == ':') &&
		(string(rest[1:7]) == "stdout" || string(rest[1:7]) == "stderr")
}

// peelLabels handles logcli's default output: stamp, {label="value", …}, line.
func (u *Unwrapper) peelLabels(l *Line, stamp, b []byte) bool {
	end := bytes.Index(b, []byte("} "))
	if end < 0 || !bytes.Contains(b[:end], []byte(`="`)) {
		return false
	}
	l.Source = u.source(b[:end], func(s *Source) { s.fromLabels(string(b[1:end])) })
	l.Stamp = Stamp{stamp, stampRFC3339}
	l.Payload = bytes.TrimLeft(b[end+2:], " ")
	return true
}

// peelUnixStamp handles journald's short-unix: "1764504000.250001 host id[1]: ".
func (u *Unwrapper) peelUnixStamp(l *Line) bool {
	b := l.Payload
	if len(b) < 18 || b[10] != '.' || b[17] != ' ' || !digits(b[:10]) || !digits(b[11:17]) {
		return false
	}
	return u.peelShort(l, 18, Stamp{b[:17], stampSeconds}, true)
}

// peelShort handles the rest of journald's short forms from b[at:]:
// "HOST IDENT[PID]: message". strict demands the pid, for forms whose stamp
// other programs write too, until the stream has shown to be of such a form:
// the kernel's lines have none.
func (u *Unwrapper) peelShort(l *Line, at int, stamp Stamp, strict bool) bool {
	b := l.Payload
	colon := bytes.Index(b[at:min(len(b), at+256)], []byte(": "))
	skip := 2
	if colon < 0 { // an empty message
		if b[len(b)-1] != ':' || len(b)-at > 256 {
			return false
		}
		colon, skip = len(b)-1-at, 1
	}
	head := b[at : at+colon]
	words := bytes.Count(head, []byte(" "))
	known := u.shortLen > 0 && l.Source == nil
	if words > 1 || strict && !known && (len(head) == 0 || head[len(head)-1] != ']') {
		return false
	}
	host, ident, found := bytes.Cut(head, []byte(" "))
	if !found {
		host, ident = nil, head
	}
	name, _, _ := bytes.Cut(ident, []byte("["))
	l.Source = u.source(head, func(s *Source) {
		s.Host, s.Unit = string(host), string(name)
	})
	l.Skip = string(name) == ownName
	l.Stamp = stamp
	l.Payload = b[at+colon+skip:]
	u.shortLen, u.lastShort = at+colon+2, l.Source
	return true
}

// ownName is our identifier in the journal: reading our own output back would
// never end.
const ownName = "rwannotate"

// peelIndent handles continuation lines of journald's short forms and the
// fields of its verbose form.
func (u *Unwrapper) peelIndent(l *Line) bool {
	b := l.Payload
	if u.verbose {
		return !l.Enveloped && u.peelVerbose(l)
	}
	if u.shortLen == 0 || len(b) < u.shortLen || len(bytes.TrimLeft(b[:u.shortLen], " ")) > 0 {
		return false
	}
	l.Source = u.lastShort
	l.Payload = b[u.shortLen:]
	// The indentation is removed once; the message may start with blanks.
	u.clean(l)
	return false
}

// peelVerbose handles "    NAME=value" and the deeper indented continuation
// lines of MESSAGE.
func (u *Unwrapper) peelVerbose(l *Line) bool {
	b := l.Payload
	const field, cont = 4, 12
	if len(b) > field && b[field] != ' ' && b[field-1] == ' ' {
		name, value, ok := bytes.Cut(b[field:], []byte("="))
		u.inMessage = ok && string(name) == "MESSAGE"
		if u.inMessage {
			l.Payload, l.Stamp = value, u.entry
			return true
		}
	} else if u.inMessage && len(b) >= cont {
		l.Payload = b[cont:]
		return false
	}
	l.Skip = true
	return true
}

// peelBracket handles kubectl --prefix, "[pod/rw-compute-0/compute] line", and
// journald's short-monotonic, "[    0.250001] host id[1]: line".
func (u *Unwrapper) peelBracket(l *Line) bool {
	b := l.Payload
	end := bytes.Index(b[:min(len(b), 300)], []byte("] "))
	if end < 0 {
		return false
	}
	if inside := b[1:end]; bytes.HasPrefix(inside, []byte("pod/")) {
		l.Source = u.source(inside, func(s *Source) {
			pod, container, _ := bytes.Cut(inside[4:], []byte("/"))
			s.Pod, s.Container = string(pod), string(container)
		})
		l.Payload = b[end+2:]
		return true
	}
	if !digits(bytes.ReplaceAll(bytes.TrimLeft(b[1:end], " "), []byte("."), nil)) {
		return false
	}
	return u.peelShort(l, end+2, Stamp{}, true)
}

// peelWord handles lines that start with a word: journald's short and
// short-full, compose and stern prefixes, server-sent events, and the first
// line of the export form (which Unwrapper.Export takes over).
func (u *Unwrapper) peelWord(l *Line) bool {
	b := l.Payload
	if len(b) > 16 && b[3] == ' ' {
		if isMonth(b) && b[9] == ':' && b[12] == ':' {
			if i := bytes.IndexByte(b[7:], ' '); i > 0 {
				return u.peelShort(l, 7+i+1, Stamp{b[:7+i], stampNoYear}, false)
			}
		}
		if isStamp(b[4:]) {
			return u.peelFull(l)
		}
	}
	if bytes.HasPrefix(b, []byte("data: {")) {
		l.Payload = b[len("data: "):]
		return true
	}
	return u.peelPrefix(l)
}

func isMonth(b []byte) bool {
	return bytes.Contains([]byte("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"), b[:3])
}

// peelFull handles "Sun 2025-11-30 12:00:00 UTC host id[1]: line" (short-full)
// and the header of a verbose entry, "… UTC [s=…]".
func (u *Unwrapper) peelFull(l *Line) bool {
	b := l.Payload
	const clock = len("Sun 2025-11-30 ")
	i := clock + bytes.IndexByte(b[clock:], ' ')
	zone := bytes.IndexByte(b[i+1:], ' ')
	if i < clock || zone < 0 {
		return false
	}
	at := i + 1 + zone + 1
	if at < len(b) && b[at] == '[' {
		u.verbose, u.inMessage = true, false
		u.entry = Stamp{b[4 : at-1], stampFull}.AppendTo(&u.entryBuf)
		l.Skip = true
		return true
	}
	return u.peelShort(l, at, Stamp{b[4 : at-1], stampFull}, false)
}

// peelPrefix handles "name  | line" (compose) and "pod container line"
// (stern). Text may look like that by chance, so a prefix counts only once it
// has stood before the start of a record in this stream.
func (u *Unwrapper) peelPrefix(l *Line) bool {
	b := l.Payload
	i := wordEnd(b, 0)
	if i == 0 || i == len(b) || b[i] != ' ' {
		return false
	}
	j := i
	for j < len(b) && b[j] == ' ' {
		j++
	}
	var rest []byte
	stern := false
	if j < len(b) && b[j] == '|' {
		if rest = b[j+1:]; len(rest) > 0 {
			if rest = skipSGR(rest); len(rest) == 0 || rest[0] != ' ' {
				return false
			}
			rest = rest[1:]
		}
	} else {
		k := wordEnd(b, j)
		if j != i+1 || k == j || k >= len(b) || b[k] != ' ' {
			return false
		}
		rest, stern = b[k+1:], true
		j = k
	}
	known := u.sources[string(b[:j])]
	if known == nil {
		if len(rest) == 0 || !u.startsRecord(rest) || leadingLevel(b) != "" {
			return false
		}
		known = u.source(b[:j], func(s *Source) {
			if s.Container = string(b[:i]); stern {
				s.Pod, s.Container = string(b[:i]), string(b[i+1:j])
			}
		})
	}
	l.Source = known
	l.Payload = rest
	return true
}

// startsRecord reports whether b is a record header, perhaps in an envelope of
// its own. A JSON value behind two words is none: a record names its level.
func (u *Unwrapper) startsRecord(b []byte) bool {
	return IsHeader(b) && (isStamp(bytes.TrimLeft(skipSGR(b), " ")) || b[0] == '{' && jsonLevel(b) != "" || b[0] == 't')
}

// wordEnd returns the end of the container or pod name at b[i:].
func wordEnd(b []byte, i int) int {
	for i < len(b) && (isWordByte(b[i]) || b[i] == '-' || b[i] == '.') {
		i++
	}
	return i
}
