package logline

import (
	"bytes"
	"encoding/binary"
)

// The journal export format is a stream of fields, not of lines: text fields
// "NAME=value\n", binary fields "NAME\n", a little-endian 64-bit length, the
// bytes, "\n"; an empty line ends an entry.

// maxExportField is the longest binary field believed. A larger length is a
// lie or damage: the entry is given up and the next one looked for.
const maxExportField = 64 << 20

// keptMessage bounds what is kept of one field; the rest is read past.
const keptMessage = 256 << 10

// exportState is the decoder's place inside an entry; a read may end anywhere.
type exportState struct {
	field   int // unit… index or fieldMessage, fieldTime, fieldOther: the field being read in pieces
	length  [8]byte
	have    int    // bytes of length read
	left    uint64 // bytes of the field still to come
	binary  bool
	newline bool // the newline behind a binary field is due
	text    bool // inside a text field longer than longText
	resync  bool
	message []byte
	written bool // the entry has a MESSAGE
	values  [numUnitKeys][]byte
	time    []byte
	fields  int
}

const (
	fieldOther = -1 - iota
	fieldMessage
	fieldTime
	fieldSourceTime
)

// exportStarts are the fields that an entry of the export format begins with.
var exportStarts = [...][]byte{[]byte("__CURSOR="), []byte("__REALTIME_TIMESTAMP=")}

// IsExport reports whether a stream that starts with b is in journal export
// format.
func IsExport(b []byte) bool {
	return bytes.HasPrefix(b, exportStarts[0]) || bytes.HasPrefix(b, exportStarts[1])
}

// MayBecomeExport reports whether b is too short to tell.
func MayBecomeExport(b []byte) bool {
	for _, start := range exportStarts {
		if len(b) < len(start) && bytes.HasPrefix(start, b) {
			return true
		}
	}
	return false
}

// Export consumes journal export data from b as far as it is complete and calls
// fn with each entry that has a message and the number of bytes consumed so
// far. It returns the number of bytes consumed; the caller presents the rest
// again, with more behind it. Memory is bounded whatever lengths the data
// claims.
func (u *Unwrapper) Export(b []byte, fn func(l Line, consumed int)) int {
	x := &u.export
	at := 0
	for at < len(b) {
		switch {
		case x.binary:
			at += u.exportBinary(b[at:])
		case x.newline:
			x.newline = false
			if b[at] == '\n' {
				at++
			}
		case x.text:
			at += x.textPiece(b[at:])
		default:
			n := u.exportLine(b[at:], func(l Line, n int) { fn(l, at+n) })
			if n == 0 {
				return at
			}
			at += n
		}
	}
	return at
}

// longText is the length from which a text field is read in pieces, so that no
// buffer has to hold it.
const longText = 64 << 10

// ExportEnd gives the entry that was being read at the end of the stream.
func (u *Unwrapper) ExportEnd(fn func(Line)) { u.exportEntry(fn) }

// exportLine consumes one text field or the empty line that ends an entry; 0
// if its newline is not there yet.
func (u *Unwrapper) exportLine(b []byte, fn func(Line, int)) int {
	x := &u.export
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return u.exportLong(b)
	}
	line := b[:end]
	switch {
	case x.resync:
		x.resync = !IsExport(line)
		if x.resync {
			return end + 1
		}
	case end == 0:
		u.exportEntry(func(l Line) { fn(l, end+1) })
		return end + 1
	}
	name, value, isText := bytes.Cut(line, []byte("="))
	switch {
	case len(name) > maxName:
		u.exportDamage()
	case isText:
		x.store(fieldIndex(name), value, true)
	default:
		x.field, x.binary, x.have, x.left = fieldIndex(name), true, 0, 0
	}
	return end + 1
}

// maxName is the longest field name believed; journald's own bound is 64.
const maxName = 256

// exportLong begins to read a line in pieces once longText bytes of it are
// there, so that no end has to come.
func (u *Unwrapper) exportLong(b []byte) int {
	x := &u.export
	if len(b) <= longText {
		return 0
	}
	name, _, isText := bytes.Cut(b[:maxName+1], []byte("="))
	if x.resync || !isText {
		if !x.resync {
			u.exportDamage()
		}
		x.field, x.text = fieldOther, true
		return len(b)
	}
	x.field, x.text = fieldIndex(name), true
	x.store(x.field, nil, true)
	return len(name) + 1
}

// exportDamage gives the entry up and looks for the next one.
func (u *Unwrapper) exportDamage() {
	u.Malformed++
	u.export.reset()
	u.export.resync = true
}

// textPiece consumes what is there of a long text field.
func (x *exportState) textPiece(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		x.store(x.field, b, false)
		return len(b)
	}
	x.store(x.field, b[:end], false)
	x.text = false
	return end + 1
}

// exportBinary consumes what is there of a binary field.
func (u *Unwrapper) exportBinary(b []byte) int {
	x := &u.export
	if x.have < 8 {
		n := copy(x.length[x.have:], b)
		if x.have += n; x.have == 8 {
			x.left = binary.LittleEndian.Uint64(x.length[:])
			if x.left > maxExportField {
				u.exportDamage()
			} else {
				x.store(x.field, nil, true)
				x.binary, x.newline = x.left > 0, x.left == 0
			}
		}
		return n
	}
	n := int(min(uint64(len(b)), x.left))
	x.store(x.field, b[:n], false)
	if x.left -= uint64(n); x.left == 0 {
		x.binary, x.newline = false, true
	}
	return n
}

// store keeps a value, or appends a further piece of it. A repeated MESSAGE
// gets a line of its own.
func (x *exportState) store(field int, value []byte, first bool) {
	if field == fieldOther {
		return
	}
	x.fields++
	var dst *[]byte
	switch field {
	case fieldMessage:
		if first && x.written {
			x.message = append(x.message, '\n')
		}
		x.written = true
		x.message = append(x.message, value[:min(len(value), max(0, keptMessage-len(x.message)))]...)
		return
	case fieldTime:
		if len(x.time) > 0 {
			return
		}
		dst = &x.time
	case fieldSourceTime:
		dst = &x.time
	default:
		dst = &x.values[field]
	}
	if first {
		*dst = (*dst)[:0]
	}
	*dst = append(*dst, value[:min(len(value), max(0, 4096-len(*dst)))]...)
}

func fieldIndex(name []byte) int {
	switch string(name) {
	case "MESSAGE":
		return fieldMessage
	case "__REALTIME_TIMESTAMP":
		return fieldTime
	case "_SOURCE_REALTIME_TIMESTAMP":
		return fieldSourceTime
	case "__CURSOR":
		return unitCursor
	case "_STREAM_ID":
		return unitStream
	case "_SYSTEMD_UNIT":
		return unitUnit
	case "CONTAINER_NAME":
		return unitContainer
	case "SYSLOG_IDENTIFIER":
		return unitIdentifier
	case "_PID":
		return unitPID
	case "_HOSTNAME":
		return unitHost
	case "_LINE_BREAK":
		return unitBreak
	}
	return fieldOther
}

func (u *Unwrapper) exportEntry(fn func(Line)) {
	x := &u.export
	if x.fields == 0 {
		return
	}
	l := Line{Recheck: true, Stamp: Stamp{x.time, stampMicros}}
	u.journalSource(&l, &x.values)
	l.Payload = trimCR(bytes.TrimSuffix(x.message, []byte("\n")))
	l.Skip = l.Skip || !x.written
	u.clean(&l)
	fn(l)
	x.reset()
}

func (x *exportState) reset() {
	*x = exportState{values: x.values, message: x.message[:0], time: x.time[:0]}
	for i := range x.values {
		x.values[i] = x.values[i][:0]
	}
}
