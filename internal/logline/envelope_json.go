package logline

import (
	"bytes"
	"strings"
)

// peelJSON handles every envelope that is a JSON object: docker's json-file,
// journald's json, CloudWatch, Fluent Bit, slog, logcli. RisingWave's own JSON
// record is not an envelope: it has an object called fields.
func (u *Unwrapper) peelJSON(l *Line) bool {
	b := l.Payload
	if bytes.HasPrefix(b, []byte(`{"log":"`)) && u.peelDocker(l) {
		return true
	}
	if bytes.HasPrefix(b, []byte(`{"timestamp":"`)) && bytes.Contains(b[:min(len(b), 160)], []byte(`"fields":{`)) {
		return false
	}
	var w wrapper
	object(b, w.member)
	switch {
	case w.record:
		return false
	case w.journal:
		return u.peelJournal(l, &w)
	case w.line == nil:
		return false
	}
	return u.peelWrapper(l, &w)
}

// peelDocker is the fast path for exactly what docker's json-file driver
// writes: {"log":"…","stream":"stdout","time":"…"}.
func (u *Unwrapper) peelDocker(l *Line) bool {
	b := l.Payload
	const head, mid, clock = `{"log":"`, `","stream":"`, `","time":"`
	tail := max(len(head), len(b)-120)
	i := bytes.LastIndex(b[tail:], []byte(mid))
	if i < 0 {
		return false
	}
	i += tail
	rest := b[i+len(mid):]
	j := bytes.Index(rest, []byte(clock))
	if j != 6 || !bytes.HasSuffix(rest, []byte(`"}`)) {
		return false
	}
	l.Stream = "stdout"
	if rest[3] == 'e' {
		l.Stream = "stderr"
	}
	l.Stamp = Stamp{rest[j+len(clock) : len(rest)-2], stampRFC3339}
	u.setPayload(l, b[len(head):i])
	l.Partial = !endLine(l)
	return true
}

// endLine takes the newline off a payload that has one.
func endLine(l *Line) bool {
	n := len(l.Payload)
	if n == 0 || l.Payload[n-1] != '\n' {
		return false
	}
	l.Payload = trimCR(l.Payload[:n-1])
	return true
}

// setPayload decodes the body of a JSON string into l.Payload.
func (u *Unwrapper) setPayload(l *Line, s []byte) {
	if bytes.IndexByte(s, '\\') < 0 {
		l.Payload = s
		return
	}
	var unusual bool
	l.Payload, unusual = unescape(u.buffer(len(s)), s)
	u.keep(l.Payload)
	l.Recheck = l.Recheck || unusual
}

// wrapper is what one look over the members of a JSON object tells.
type wrapper struct {
	record  bool   // RisingWave's own
	journal bool   // from journalctl
	key     string // the member that holds the line
	line    []byte // raw value of that member
	others  int    // members besides log, stream, time
	stream  []byte
	stamp   Stamp
	labels  []byte // raw object of names: kubernetes, labels
	unit    [numUnitKeys][]byte
}

// The members of a journal entry that name its writer.
const (
	unitStream = iota
	unitUnit
	unitContainer
	unitIdentifier
	unitPID
	unitHost
	unitCursor
	unitBreak
	numUnitKeys
)

// lineKeys are the members that may hold the line, best first.
var lineKeys = [...]string{"MESSAGE", "log", "line", "message", "msg", "_msg"}

func (w *wrapper) member(key, value []byte) {
	switch string(key) {
	case "fields":
		w.record = w.record || len(value) > 0 && value[0] == '{'
	case "MESSAGE", "__CURSOR", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP":
		w.journal = true
		w.journalMember(string(key), value)
	case "log", "line", "message", "msg", "_msg":
		if w.line == nil || rank(string(key)) < rank(w.key) {
			w.key, w.line = string(key), value
		}
		if string(key) != "log" {
			w.others++
		}
	case "stream":
		w.stream = value
	case "time", "timestamp", "ts":
		if s, ok := body(value); ok {
			w.stamp = Stamp{s, stampRFC3339}
		} else {
			w.stamp = Stamp{value, stampMillis}
		}
		if string(key) != "time" {
			w.others++
		}
	case "kubernetes", "labels":
		w.labels = value
		w.others++
	case "attrs": // docker's own, with --log-opt labels
	default:
		w.others++
		w.journalMember(string(key), value)
	}
}

func rank(key string) int {
	for i, k := range lineKeys {
		if k == key {
			return i
		}
	}
	return len(lineKeys)
}

func (w *wrapper) journalMember(key string, value []byte) {
	i := -1
	switch key {
	case "MESSAGE":
		w.key, w.line = key, value
		return
	case "__REALTIME_TIMESTAMP":
		if w.stamp.form != stampMicros {
			w.stamp = Stamp{text(value), stampMicros}
		}
		return
	case "_SOURCE_REALTIME_TIMESTAMP":
		w.stamp = Stamp{text(value), stampMicros}
		return
	case "__CURSOR":
		i = unitCursor
	case "_STREAM_ID":
		i = unitStream
	case "_SYSTEMD_UNIT":
		i = unitUnit
	case "CONTAINER_NAME":
		i = unitContainer
	case "SYSLOG_IDENTIFIER":
		i = unitIdentifier
	case "_PID":
		i = unitPID
	case "_HOSTNAME":
		i = unitHost
	case "_LINE_BREAK":
		i = unitBreak
	default:
		return
	}
	if s, ok := body(value); ok {
		value = s
	}
	w.unit[i] = value
}

// peelJournal handles one entry of journalctl -o json.
func (u *Unwrapper) peelJournal(l *Line, w *wrapper) bool {
	l.Stamp = w.stamp
	l.Recheck = true
	u.journalSource(l, &w.unit)
	if l.Skip {
		return true
	}
	switch v := w.line; {
	case len(v) == 0:
		l.Skip = true
	case v[0] == '"':
		s, _ := body(v)
		u.setPayload(l, s)
	case v[0] == '[':
		l.Payload = messageArray(u.buffer(len(v)/3), v, true)
		u.keep(l.Payload)
	default: // null: journalctl leaves out values of 4096 bytes and more without --all
		u.NullMessages++
		l.Skip = true
	}
	l.Payload = trimCR(bytes.TrimSuffix(l.Payload, []byte("\n")))
	return true
}

// journalSource sets the writer of a journal entry from its members.
func (u *Unwrapper) journalSource(l *Line, unit *[numUnitKeys][]byte) {
	l.Cursor = unit[unitCursor]
	l.Partial = string(unit[unitBreak]) == "line-max"
	l.Skip = string(unit[unitIdentifier]) == ownName
	key := append(u.keyBuf[:0], unit[unitHost]...)
	for _, i := range [...]int{unitStream, unitUnit, unitContainer, unitPID} {
		key = append(append(key, 0), unit[i]...)
	}
	u.keyBuf = key
	l.Source = u.source(key, func(s *Source) {
		s.Unit, s.Host, s.Container = string(unit[unitUnit]), string(unit[unitHost]), string(unit[unitContainer])
		if s.Unit == "" {
			s.Unit = string(unit[unitIdentifier])
		}
	})
}

// messageArray decodes a MESSAGE that is an array: of byte values, or of
// several values of a repeated field, which are put on lines of their own and
// may be arrays of byte values themselves.
func messageArray(dst, v []byte, outer bool) []byte {
	first := true
	array(v, func(e []byte) {
		switch {
		case e[0] >= '0' && e[0] <= '9':
			n := 0
			for _, c := range e {
				n = n*10 + int(c-'0')
			}
			dst = append(dst, byte(n))
			return
		case e[0] == 'n', e[0] == '[' && !outer:
			return
		}
		if !first {
			dst = append(dst, '\n')
		}
		first = false
		if e[0] == '[' {
			dst = messageArray(dst, e, false)
			return
		}
		dst = append(dst, text(e)...)
	})
	return dst
}

// peelWrapper handles any other object with a member that holds a log line.
// Programs that log JSON of their own have such members too, so the object
// counts as an envelope only if a record starts in it, or did earlier here.
func (u *Unwrapper) peelWrapper(l *Line, w *wrapper) bool {
	s, ok := body(w.line)
	if !ok {
		return false
	}
	docker := w.key == "log" && w.stream != nil && w.others == 0
	probe := Line{Recheck: true}
	u.setPayload(&probe, s)
	ended := endLine(&probe)
	if !docker && u.jsonKey != w.key && !u.holdsRecord(probe.Payload) {
		return false
	}
	u.jsonKey = w.key
	l.Payload, l.Recheck, l.Stamp = probe.Payload, true, w.stamp
	l.Partial = docker && !ended
	if st, ok := body(w.stream); ok {
		l.Stream = "stdout"
		if string(st) == "stderr" {
			l.Stream = "stderr"
		}
	}
	if w.labels != nil {
		l.Source = u.source(w.labels, func(src *Source) {
			object(w.labels, func(k, v []byte) { src.label(string(k), string(text(v))) })
		})
	}
	return true
}

// holdsRecord reports whether b is a record's header, bare or in CRI or JSON.
func (u *Unwrapper) holdsRecord(b []byte) bool {
	if n := stampLen(b); n > 0 && isCRI(b[n:]) {
		return true
	}
	return IsHeader(b)
}

// label sets what a Kubernetes or Loki label says about the writer.
func (s *Source) label(name, value string) {
	switch name {
	case "pod_name", "pod":
		s.Pod = value
	case "namespace_name", "namespace":
		s.Namespace = value
	case "container_name", "container":
		s.Container = value
	case "host", "node_name", "node":
		s.Host = value
	case "unit", "systemd_unit":
		s.Unit = value
	}
}

// fromLabels reads `a="b", c="d"`.
func (s *Source) fromLabels(labels string) {
	for _, pair := range strings.Split(labels, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if ok {
			s.label(name, strings.Trim(value, `"`))
		}
	}
}
