package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// A Problem is one thing wrong with the configuration.
type Problem struct {
	Source  string // file name, or the flag or variable that gave the value
	Line    int    // 1-based; 0 if the problem has no place in a file
	Column  int    // 1-based, in characters
	Key     string // such as loki.endpoints[0].url; "" if it is about the whole
	Message string // what is wrong and what to do, without the place
	Excerpt string // the source line and a caret below the place, secrets masked; "" without a line
	Warning bool   // the configuration works, but hardly as meant
}

// String prints the problem as compilers do.
func (p Problem) String() string {
	var b strings.Builder
	if p.Source != "" {
		b.WriteString(p.Source + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Key != "" {
		b.WriteString(shorten(p.Key, 200) + ": ")
	}
	b.WriteString(p.Message)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	return b.String()
}

// Failed reports whether any of the problems is more than a warning.
func Failed(problems []Problem) bool {
	for _, p := range problems {
		if !p.Warning {
			return true
		}
	}
	return false
}

// Kinds of Origin.
const (
	FromDefault = "default"
	FromFile    = "file"
	FromEnv     = "env"
	FromFlag    = "flag"
)

// Origin is where a value was given. The zero Origin is a default.
type Origin struct {
	Kind   string // FromFile, FromEnv, FromFlag; "" is a default
	Name   string // file name, variable, flag
	Line   int
	Column int
}

// String is such as `file config.yaml:3`, `flag --loki-url`, `default`.
func (o Origin) String() string {
	switch o.Kind {
	case "":
		return FromDefault
	case FromFile:
		return fmt.Sprintf("%s %s:%d", o.Kind, o.Name, o.Line)
	}
	return o.Kind + " " + o.Name
}

// Origins says where values were given, by key; a key that is missing has its
// default. Sections and lists that were written down have an entry too.
type Origins map[string]Origin

// nearest is the origin of the key or of the closest section above it.
func (o Origins) nearest(key string) (Origin, bool) {
	for {
		if origin, ok := o[key]; ok {
			return origin, true
		}
		if key == "" {
			return Origin{}, false
		}
		key = parentKey(key)
	}
}

// forget drops the key and all below it.
func (o Origins) forget(key string) {
	for k := range o {
		if within(k, key) {
			delete(o, k)
		}
	}
}

// parentKey of a.b[0] is a.b, of a.b it is a, of a it is "".
func parentKey(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// within reports whether key is parent or lies below it.
func within(key, parent string) bool {
	rest, ok := strings.CutPrefix(key, parent)
	return ok && (rest == "" || parent == "" || rest[0] == '.' || rest[0] == '[')
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// source is a text that keys are read from.
type source struct {
	kind   string // FromFile, FromEnv, FromFlag
	name   string
	lines  []string // of a file
	hidden map[int]int
}

// hide keeps a secret out of excerpts: of the given lines nothing from the
// column on is shown.
func (s *source) hide(line, column int, text string) {
	for i := range 1 + strings.Count(text, "\n") {
		if before, ok := s.hidden[line+i]; !ok || column < before {
			s.hidden[line+i] = column
		}
		column = 1
	}
}

// Settings whose value is likely to be a secret even where we have no such
// key: it was written by somebody who thought we had.
var secretWords = []string{"password", "passphrase", "secret", "token", "authorization", "apikey", "credentials"}

var (
	secretSetting = regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|token|authorization|cookie|key|credentials)["']?\s*[:=]\s*["']?)[^\s"'].*`)
	userinfo      = regexp.MustCompile(`(://)[^\s"']*@`)
)

// excerpt is the line with a caret below the column, and no secret in it.
func (s *source) excerpt(line, column int) string {
	if line < 1 || line > len(s.lines) {
		return ""
	}
	runes := []rune(strings.Map(visible, strings.TrimSuffix(s.lines[line-1], "\r")))
	column = min(max(column, 1), len(runes)+1)
	pad := make([]rune, column-1)
	for i := range pad {
		pad[i] = ' '
		if runes[i] == '\t' {
			pad[i] = '\t'
		}
	}
	shown := runes
	if from, ok := s.hidden[line]; ok && from <= len(runes) {
		shown = append(runes[:from-1:from-1], '*', '*', '*')
	}
	gutter := fmt.Sprintf("%5d | ", line)
	return gutter + shorten(maskText(string(shown)), max(160, column+20)) + "\n" + strings.Repeat(" ", len(gutter)-2) + "| " + string(pad) + "^"
}

// visible replaces what would drive a terminal or change the direction of
// writing in it; the caret stays where it belongs.
func visible(r rune) rune {
	if r == '\t' || unicode.IsGraphic(r) {
		return r
	}
	return unicode.ReplacementChar
}

// shorten cuts s after so many characters.
func shorten(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// maskText hides what looks like a secret in a line of the file.
func maskText(line string) string {
	line = userinfo.ReplaceAllString(line, "${1}***@")
	return secretSetting.ReplaceAllString(line, "${1}***")
}

// closest returns the candidate that a typing error may have turned into
// word, or "".
func closest(word string, candidates []string) string {
	best, bestDistance := "", 1+max(1, len(word)/3)
	for _, c := range candidates {
		if n := min(len(word), len(c)); n >= 3 && strings.EqualFold(word[:n], c[:n]) {
			return c // directory for dir, tenant for tenant_id
		}
		if d := distance(strings.ToLower(word), c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
