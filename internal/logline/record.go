// Package logline knows what a log line is: how RisingWave's own formatter
// writes a record (text, compact, pretty, JSON, query log, panic, Java
// connector) and in which envelopes collectors wrap its lines (CRI, docker,
// journald, compose, kubectl, stern, JSON loggers).
//
// Everything here is total: bytes of an unknown form are plain text, never an
// error. The package imports nothing of ours and does no I/O.
package logline

import (
	"bytes"
	"strings"
	"time"
)

// Kind says in which part of a record a text sits.
type Kind uint8

// Kinds of segments. A text that occurs only in a Span repeats an error that
// was reported elsewhere; one that occurs only in SQL is a user's own text.
const (
	Message Kind = iota // the log statement's message, with fields and continuation lines in text forms
	Field               // one field of a JSON record
	Span                // fields of the tracing spans around the event
	SQL                 // a SQL statement
)

// A Segment is one searchable part of a record.
type Segment struct {
	Kind  Kind
	Name  string // field name; "" where the form does not separate fields
	Text  string // decoded: no escapes, no colour codes, valid UTF-8
	Exact bool   // the text ends where the value ends (JSON string, panic message)
}

// PanicLevel is the level of a panic, which prints none.
const PanicLevel = "PANIC"

// A Record is one log record: a header with its continuation lines.
type Record struct {
	Time      time.Time // UTC; zero if the record prints none or an impossible one
	Level     string    // as printed; PanicLevel; "" if none
	Thread    string
	Target    string // Rust module path of the log statement
	Event     string // the log statement's message without fields
	ActorID   string
	Unlogged  int64  // occurrences before this one that RisingWave counted instead of logging them
	Component string // as far as the record itself tells; see Component
	File      string // source file of a panic
	Pretty    bool   // fields are written ", name: value"
	Segments  []Segment
	Text      string // the whole record, cleaned
}

// levels in rising order; index is the rank.
var levels = [...]string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR"}

// LevelRank orders levels as printed: TRACE 0 … ERROR 4, PANIC 5. Unknown
// words and "" give -1.
func LevelRank(level string) int {
	switch strings.ToUpper(level) {
	case "TRACE":
		return 0
	case "DEBUG":
		return 1
	case "INFO", "NOTICE":
		return 2
	case "WARN", "WARNING":
		return 3
	case "ERROR", "ERR":
		return 4
	case "FATAL", "CRITICAL", PanicLevel:
		return 5
	}
	return -1
}

// leadingLevel returns the level word that b starts with, or "".
func leadingLevel(b []byte) string {
	if len(b) < 4 {
		return ""
	}
	for _, l := range levels {
		if len(b) >= len(l) && string(b[:len(l)]) == l && (len(b) == len(l) || b[len(l)] == ' ') {
			return l
		}
	}
	return ""
}

// IsHeader reports whether a line without its envelope starts a record. All
// other lines continue the one before: causes, backtraces, pretty fields.
func IsHeader(b []byte) bool {
	b = skipSGR(b)
	if len(b) == 0 {
		return false
	}
	switch c := b[0]; {
	case c >= '0' && c <= '9':
		return isStamp(b)
	case c == ' ':
		// The pretty form indents its header by two spaces.
		if len(b) > 2 && b[1] == ' ' && b[2] != ' ' {
			return isStamp(skipSGR(b[2:]))
		}
		return leadingLevel(b[1:]) != "" && hasTarget(b[1:])
	case c == '{':
		return len(b) > 1 && b[1] == '"'
	case c == 't':
		return IsPanic(b)
	case c >= 'A' && c <= 'Z':
		return leadingLevel(b) != "" && hasTarget(b) || eventLogType(b) > 0
	}
	return false
}

// IsPanic reports whether a line without its envelope starts a panic.
func IsPanic(b []byte) bool {
	return bytes.HasPrefix(b, []byte("thread '")) && bytes.Contains(b, []byte("panicked at "))
}

// eventLogType returns the length of the event type that a row of
// rw_event_logs starts with: "COLLECT_BARRIER_FAIL", a tab and a JSON object.
func eventLogType(b []byte) int {
	i := 0
	for i < len(b) && (b[i] == '_' || b[i] >= 'A' && b[i] <= 'Z') {
		i++
	}
	if i > 3 && bytes.HasPrefix(b[i:], []byte("\t{\"")) {
		return i
	}
	return 0
}

// hasTarget reports whether the word after the level ends in a colon, as a log
// target does.
func hasTarget(b []byte) bool {
	rest := bytes.TrimLeft(b[bytes.IndexByte(b, ' ')+1:], " ")
	i := bytes.IndexByte(rest, ' ')
	return i > 1 && rest[i-1] == ':'
}

// isStamp reports whether b starts like "2026-08-21T14:06:38" or with a blank
// between date and time (log4j, Python).
func isStamp(b []byte) bool {
	if len(b) < 19 {
		return false
	}
	return b[4] == '-' && b[7] == '-' && b[13] == ':' && b[16] == ':' && (b[10] == 'T' || b[10] == ' ') &&
		digits(b[0:4]) && digits(b[5:7]) && digits(b[8:10]) && digits(b[11:13]) && digits(b[14:16]) && digits(b[17:19])
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// stampLen returns the length of the RFC 3339 stamp that b starts with, with
// its zone ("Z", "+08:00", "+0000"), or 0.
func stampLen(b []byte) int {
	if !isStamp(b) || b[10] != 'T' {
		return 0
	}
	i := 19
	if i < len(b) && (b[i] == '.' || b[i] == ',') {
		for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		}
	}
	if i < len(b) && b[i] == 'Z' {
		return i + 1
	}
	if i+5 <= len(b) && (b[i] == '+' || b[i] == '-') && digits(b[i+1:i+3]) {
		if b[i+3] == ':' && i+6 <= len(b) && digits(b[i+4:i+6]) {
			return i + 6
		}
		if digits(b[i+3 : i+5]) {
			return i + 5
		}
	}
	return 0
}

// ParseTime reads an RFC 3339 stamp with any fraction and either form of zone,
// and the zoneless "2024-07-13 07:11:02,396" of other loggers, as UTC. Years
// outside of 2015…2200 are refused: they are never real.
func ParseTime(s string) (time.Time, bool) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return plausible(t.UTC())
		}
	}
	return time.Time{}, false
}

func plausible(t time.Time) (time.Time, bool) {
	if y := t.Year(); y < 2015 || y > 2200 {
		return time.Time{}, false
	}
	return t, true
}
