package annotate

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// AppendVisible appends JSON with all characters escaped that cannot be seen,
// such as C1 controls and those that change the direction of writing: it may
// be looked at in a terminal, and paths and pods can have any name.
func AppendVisible(dst, text []byte) []byte {
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] < 0x7f { // outside strings JSON is ASCII, and JSON escapes the lower controls
			n++
		}
		dst, text = append(dst, text[:n]...), text[n:]
		if len(text) == 0 {
			break
		}
		r, size := utf8.DecodeRune(text)
		switch {
		case unicode.IsGraphic(r):
			dst = append(dst, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		text = text[size:]
	}
	return dst
}
