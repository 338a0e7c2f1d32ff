package logline

import "bytes"

// HeaderLevel returns the level of a record as Parse would, but from its header
// alone: it is there to pass over most of a log without parsing it. "" if the
// record prints none.
func HeaderLevel(b []byte) string {
	b = bytes.TrimLeft(skipSGR(b), " ")
	switch {
	case len(b) == 0:
		return ""
	case b[0] == '{':
		return jsonLevel(b)
	case b[0] == 't' && IsPanic(b):
		return PanicLevel
	case !isStamp(b):
		return leadingLevel(b)
	}
	n := stampLen(b[:min(len(b), 48)])
	if n == 0 {
		for n = 19; n < len(b) && (b[n] == ',' || b[n] == '.' || b[n] >= '0' && b[n] <= '9'); n++ {
		}
	}
	rest := bytes.TrimLeft(b[n:], " ")
	if level := leadingLevel(rest); level != "" {
		return level
	}
	if word, after, ok := bytes.Cut(rest[:min(len(rest), 64)], []byte(" ")); ok && bytes.HasPrefix(word, []byte("[")) {
		return leadingLevel(after)
	}
	return ""
}

// jsonLevel looks for the member that holds the level. Quotes inside values are
// escaped, so a value cannot be taken for it.
func jsonLevel(b []byte) string {
	for _, key := range [...]string{`"level":`, `"severity":`} {
		i := bytes.Index(b, []byte(key))
		if i < 0 {
			continue
		}
		v, quoted := bytes.CutPrefix(bytes.TrimLeft(b[i+len(key):], " "), []byte(`"`))
		end := bytes.IndexByte(v[:min(len(v), 16)], '"')
		if quoted && end > 0 {
			if level := string(bytes.ToUpper(v[:end])); LevelRank(level) >= 0 {
				return level
			}
		}
	}
	return ""
}
