package gen

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A formatter appends one record as RisingWave's log layer prints it: whole
// lines, each ended by a newline.
type formatter func(dst []byte, rec *record) []byte

// text prints the default form, with the thread's name in standalone mode.
func text(thread bool) formatter {
	return func(dst []byte, rec *record) []byte {
		dst = header(dst, rec, thread)
		for _, s := range rec.spans {
			dst = append(dst, s.name...)
			dst = append(dst, '{')
			for i, f := range s.fields {
				if i > 0 {
					dst = append(dst, ' ')
				}
				dst = textField(dst, f)
			}
			dst = append(dst, "}:"...)
		}
		if len(rec.spans) > 0 {
			dst = append(dst, ' ')
		}
		dst = textEvent(dst, rec)
		return append(dst, '\n')
	}
}

// compact is the CI's form: span fields stand at the end.
func compact(dst []byte, rec *record) []byte {
	dst = header(dst, rec, false)
	for _, s := range rec.spans {
		dst = append(append(dst, s.name...), ':')
	}
	if len(rec.spans) > 0 {
		dst = append(dst, ' ')
	}
	dst = textEvent(dst, rec)
	for _, s := range rec.spans {
		for _, f := range s.fields {
			dst = textField(append(dst, ' '), f)
		}
	}
	return append(dst, '\n')
}

func header(dst []byte, rec *record, thread bool) []byte {
	dst = rec.time.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, "     "[:6-len(rec.level)]...)
	dst = append(append(dst, rec.level...), ' ')
	if thread {
		dst = append(append(dst, rec.thread...), ' ')
	}
	return dst
}

func textEvent(dst []byte, rec *record) []byte {
	dst = append(append(dst, rec.target...), ": "...)
	dst = append(dst, rec.message...)
	for _, f := range rec.fields {
		dst = textField(append(dst, ' '), f)
	}
	return dst
}

// textField prints name=value; a field called message prints bare.
func textField(dst []byte, f field) []byte {
	if f.name != "message" {
		dst = append(append(dst, f.name...), '=')
	}
	return textValue(dst, f)
}

func textValue(dst []byte, f field) []byte {
	if f.kind == str {
		return strconv.AppendQuote(dst, f.value)
	}
	return append(dst, f.value...)
}

// Terminal codes of the formatter.
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	italic = "\x1b[3m"
)

var levelColour = map[string]string{"ERROR": "\x1b[31m", "WARN": "\x1b[33m", "INFO": "\x1b[32m", "DEBUG": "\x1b[34m"}

// ansi is the text form on a terminal.
func ansi(dst []byte, rec *record) []byte {
	style := func(code, s string) { dst = append(append(append(dst, code...), s...), reset...) }
	fields := func(fs []field, first bool) {
		for _, f := range fs {
			if !first {
				dst = append(dst, ' ')
			}
			first = false
			if f.name != "message" {
				style(italic, f.name)
				style(dim, "=")
			}
			dst = textValue(dst, f)
		}
	}
	style(dim, rec.time.Format(time.RFC3339Nano))
	dst = append(dst, ' ')
	style(levelColour[rec.level], "     "[:5-len(rec.level)]+rec.level)
	dst = append(append(append(dst, ' '), rec.thread...), ' ')
	for _, s := range rec.spans {
		style(bold, s.name)
		style(bold, "{")
		fields(s.fields, true)
		style(bold, "}")
		style(dim, ":")
	}
	if len(rec.spans) > 0 {
		dst = append(dst, ' ')
	}
	style(dim, rec.target)
	style(dim, ":")
	dst = append(append(dst, ' '), rec.message...)
	fields(rec.fields, false)
	return append(dst, '\n')
}

// pretty takes several lines for each event.
func pretty(dst []byte, rec *record) []byte {
	dst = header(append(dst, "  "...), rec, false)
	dst = append(append(append(dst, rec.target...), ": "...), rec.message...)
	for _, f := range rec.fields {
		dst = prettyField(append(dst, ", "...), f)
	}
	dst = append(append(append(dst, "\n    at "...), rec.file...), ':')
	dst = append(strconv.AppendInt(dst, int64(rec.line), 10), '\n')
	for _, s := range slices.Backward(rec.spans) {
		dst = append(append(append(append(append(dst, "    in "...), rec.target...), "::"...), s.name...), " with "...)
		for i, f := range s.fields {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = prettyField(dst, f)
		}
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

func prettyField(dst []byte, f field) []byte {
	if f.name != "message" {
		dst = append(append(dst, f.name...), ": "...)
	}
	return textValue(dst, f)
}

// cloud is the JSON form of RisingWave Cloud.
func cloud(dst []byte, rec *record) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = rec.time.AppendFormat(dst, time.RFC3339Nano)
	dst = append(append(append(dst, `","level":"`...), rec.level...), `","fields":{"message":`...)
	dst = appendJSON(dst, rec.message)
	for _, f := range rec.fields {
		dst = jsonField(append(dst, ','), f)
	}
	dst = append(append(append(dst, `},"target":"`...), rec.target...), '"')
	for i, s := range rec.spans {
		if i == 0 {
			dst = append(dst, `,"spans":[`...)
		} else {
			dst = append(dst, ',')
		}
		sorted := slices.SortedFunc(slices.Values(s.fields), func(a, b field) int { return strings.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for _, f := range sorted {
			dst = append(jsonField(dst, f), ',')
		}
		dst = append(append(append(dst, `"name":"`...), s.name...), `"}`...)
		if i == len(rec.spans)-1 {
			dst = append(dst, ']')
		}
	}
	return append(dst, "}\n"...)
}

func jsonField(dst []byte, f field) []byte {
	dst = append(append(append(dst, '"'), f.name...), `":`...)
	if f.kind == number {
		return append(dst, f.value...)
	}
	return appendJSON(dst, f.value)
}

// panicked is what Rust's own hook writes to stderr, whatever the log form.
func panicked(dst []byte, rec *record) []byte {
	dst = append(append(append(dst, "\nthread '"...), rec.thread...), "' (20062) panicked at "...)
	dst = append(append(append(dst, rec.panicAt...), ":\n"...), rec.message...)
	return append(dst, "\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"...)
}

// appendJSON appends s as a JSON string. The common case needs no escape.
func appendJSON[T string | []byte](dst []byte, s T) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return append(append(append(dst, '"'), s...), '"')
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(string(s)) // a string always encodes
	return append(dst, strings.TrimSuffix(b.String(), "\n")...)
}
