package logline

import (
	"bytes"
	"unicode/utf8"
)

// skipSGR drops colour codes at the start of b.
func skipSGR(b []byte) []byte {
	for len(b) > 2 && b[0] == 0x1b && b[1] == '[' {
		i := 2
		for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] == ';') {
			i++
		}
		if i == len(b) || b[i] != 'm' {
			break
		}
		b = b[i+1:]
	}
	return b
}

// dirty reports whether Clean would change b.
func dirty(b []byte) bool {
	return Dirty(b) || bytes.ContainsAny(b, otherControls)
}

// otherControls are what Clean drops besides what Dirty looks for.
const otherControls = "\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1c\x1d\x1e\x1f\x7f"

// Clean appends b to dst without terminal control (CSI, OSC, DCS and the like,
// C1 controls), NUL, carriage returns and other control characters except tab
// and newline. A terminal that shows the result cannot be driven by it.
func Clean(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c == 0x1b:
			i += escapeLen(b[i:])
		case c == 0xc2 && i+1 < len(b) && b[i+1] >= 0x80 && b[i+1] <= 0x9f:
			i += 2 // a C1 control in UTF-8: U+009B starts a sequence like ESC [
			if b[i-1] == 0x9b {
				i += csiLen(b[i:])
			}
		case c < 0x20 && c != '\t' && c != '\n', c == 0x7f:
			i++
		case c >= 0x80 && c <= 0x9f && len(dst) > 0 && dst[len(dst)-1] == 0xc2:
			i++ // what stood between two invalid bytes is gone: together they would be a C1 control
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// escapeLen returns the length of the escape sequence at the start of b (b[0]
// is ESC). An unfinished string sequence is cut to its introducer so that the
// text behind it is not swallowed.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 1
	}
	switch b[1] {
	case '[':
		return 2 + csiLen(b[2:])
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: up to BEL or ST
		for i := 2; i < len(b) && i < 4096; i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
			if b[i] == '\n' {
				break
			}
		}
		return 2
	}
	if b[1] >= 0x20 && b[1] <= 0x7e {
		return 2
	}
	return 1
}

// csiLen returns the length of the parameters and the final byte of a CSI
// sequence.
func csiLen(b []byte) int {
	i := 0
	for i < len(b) && b[i] >= 0x20 && b[i] <= 0x3f {
		i++
	}
	if i < len(b) && b[i] >= 0x40 && b[i] <= 0x7e {
		i++
	}
	return i
}

// Valid returns b as a string of valid UTF-8; each invalid byte becomes U+FFFD.
func Valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(bytes.ToValidUTF8(b, []byte("\uFFFD")))
}

// unescape appends the value of a JSON string body (without its quotes) to
// dst. unusual reports escapes that can hide ordinary letters (\uXXXX): a
// search in the raw bytes says nothing about such a text. Faulty escapes are
// kept as they stand.
func unescape(dst, b []byte) (_ []byte, unusual bool) {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 == len(b) {
			return append(dst, b...), unusual
		}
		dst = append(dst, b[:i]...)
		c := b[i+1]
		b = b[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'u':
			unusual = true
			r, n := unicodeEscape(b)
			if n == 0 {
				dst = append(dst, '\\', 'u')
				continue
			}
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
		default:
			dst = append(dst, '\\', c)
		}
	}
}

// Unescape appends b to dst with its JSON escapes decoded, also outside of
// strings: good enough to look for text in it.
func Unescape(dst, b []byte) []byte {
	dst, _ = unescape(dst, b)
	return dst
}

// unicodeEscape decodes what follows `\u`: four hex digits, or a surrogate
// pair. n is the number of bytes used, 0 if b has no such digits.
func unicodeEscape(b []byte) (r rune, n int) {
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if r < 0xd800 || r > 0xdfff {
		return r, 4
	}
	if r < 0xdc00 && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, ok := hex4(b[6:]); ok && low >= 0xdc00 && low <= 0xdfff {
			return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), 10
		}
	}
	return utf8.RuneError, 4
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
