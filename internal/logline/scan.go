package logline

import "bytes"

// object walks the members of the JSON object that b starts with, in document
// order and with repeated keys, and calls fn with each key's body (without
// quotes, still escaped) and raw value. It allocates nothing, does not recurse
// and never fails: whole is false for a torn or faulty object, whose readable
// part has then been reported, a torn last string included.
func object(b []byte, fn func(key, value []byte)) (whole bool) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' {
		return false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for i < len(b) && b[i] == '"' {
		end := stringEnd(b, i)
		if end < 0 {
			return false
		}
		key := b[i+1 : end-1]
		i = skipSpace(b, end)
		if i == len(b) || b[i] != ':' {
			return false
		}
		i = skipSpace(b, i+1)
		end = valueEnd(b, i)
		if end < 0 {
			if i < len(b) && b[i] == '"' {
				fn(key, b[i:])
			}
			return false
		}
		fn(key, b[i:end])
		i = skipSpace(b, end)
		if i < len(b) && b[i] == '}' {
			return true
		}
		if i == len(b) || b[i] != ',' {
			return false
		}
		i = skipSpace(b, i+1)
	}
	return false
}

// array walks the values of the JSON array that b starts with.
func array(b []byte, fn func(value []byte)) (whole bool) {
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '[' {
		return false
	}
	i = skipSpace(b, i+1)
	for i < len(b) && b[i] != ']' {
		end := valueEnd(b, i)
		if end <= i {
			return false
		}
		fn(b[i:end])
		i = skipSpace(b, end)
		if i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
	}
	return i < len(b)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index behind the closing quote of the string that
// starts at b[i] (a quote), or -1.
func stringEnd(b []byte, i int) int {
	for j := i + 1; ; {
		k := bytes.IndexByte(b[j:], '"')
		if k < 0 {
			return -1
		}
		j += k + 1
		slashes := 0
		for s := j - 2; s > i && b[s] == '\\'; s-- {
			slashes++
		}
		if slashes%2 == 0 {
			return j
		}
	}
}

// valueEnd returns the index behind the value that starts at b[i], or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	if b[i] == '"' {
		return stringEnd(b, i)
	}
	if b[i] != '{' && b[i] != '[' {
		for i < len(b) && bytes.IndexByte([]byte(",}] \t\r\n"), b[i]) < 0 {
			i++
		}
		return i
	}
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// body returns the inside of a raw string value, a torn one included; ok is
// false if v is no string.
func body(v []byte) (inside []byte, ok bool) {
	if len(v) == 0 || v[0] != '"' {
		return nil, false
	}
	v = v[1:]
	if n := len(v); n > 0 && v[n-1] == '"' {
		v = v[:n-1]
	}
	return v, true
}

// text decodes a raw string value; other values give their raw text.
func text(v []byte) []byte {
	s, ok := body(v)
	if !ok {
		return v
	}
	out, _ := unescape(make([]byte, 0, len(s)), s)
	return out
}
