package loki

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// valueOverhead bounds what an entry costs in a request beside its strings:
// brackets, quotes, commas and 19 digits.
const valueOverhead = 32

// size bounds the entry's bytes in a request. Escapes can double a line of
// JSON at most (control characters have been escaped once already); what they
// really cost is counted.
func (e Entry) size() int {
	n := valueOverhead + escaped(e.Line)
	for _, p := range e.Metadata {
		n += escaped(p.Name) + escaped(p.Value) + 6
	}
	return n
}

// appendRequest appends the body of a push: one stream, its entries in order.
func appendRequest(dst []byte, labels []Pair, items []item) []byte {
	dst = append(dst, `{"streams":[{"stream":`...)
	dst = appendObject(dst, labels)
	dst = append(dst, `,"values":[`...)
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, &items[i].entry)
	}
	return append(dst, `]}]}`...)
}

func appendValue(dst []byte, e *Entry) []byte {
	dst = append(dst, `["`...)
	dst = strconv.AppendInt(dst, e.Time.UnixNano(), 10)
	dst = append(dst, `",`...)
	dst = appendString(dst, e.Line)
	if len(e.Metadata) > 0 {
		dst = append(dst, ',')
		dst = appendObject(dst, e.Metadata)
	}
	return append(dst, ']')
}

func appendObject(dst []byte, pairs []Pair) []byte {
	dst = append(dst, '{')
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, p.Name)
		dst = append(dst, ':')
		dst = appendString(dst, p.Value)
	}
	return append(dst, '}')
}

// appendString appends s, which is valid UTF-8, as a JSON string. Nothing but
// what JSON demands is escaped: log lines are long and full of quotes, and
// encoding/json would blow up < > & as well.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// escaped is how many bytes appendString makes of s, without the quotes.
func escaped(s string) int {
	n := len(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\t', c == '\r':
			n++
		case c < ' ':
			n += 5
		}
	}
	return n
}

// packer compresses request bodies and keeps its buffers. It belongs to one
// goroutine at a time.
type packer struct {
	plain []byte
	gz    *gzip.Writer
}

// pack returns the compressed request and its size before compression. The
// result is a copy: the transport may read a body after it has answered.
func (p *packer) pack(labels []Pair, items []item) (body []byte, plain int) {
	p.plain = appendRequest(p.plain[:0], labels, items)
	var out bytes.Buffer
	if p.gz == nil {
		p.gz, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	}
	p.gz.Reset(&out)
	_, err := p.gz.Write(p.plain)
	if err == nil {
		err = p.gz.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("loki: compress into memory: %v", err)) // a bytes.Buffer takes everything
	}
	return out.Bytes(), len(p.plain)
}
