package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/token"
)

// Line is one line of a configuration written out.
type Line struct {
	Text   string // YAML, indented
	Key    string // such as web.listen
	Value  string // as text, secrets masked; "" for the head of a section
	Origin string // such as `file config.yaml:3`; "" for the head of a section
}

// Show writes the configuration out as YAML, key by key in the order of the
// file, with the origin of every value and with secrets as ***. Without
// secrets, reading the text gives the same configuration.
func Show(c Config, origins Origins) []Line {
	s := &shower{origins: origins}
	s.section(reflect.ValueOf(c), "", "")
	return s.lines
}

type shower struct {
	origins Origins
	lines   []Line
}

func (s *shower) head(indent, text, key string) {
	s.lines = append(s.lines, Line{Text: indent + text, Key: key})
}

func (s *shower) leaf(indent, label, value, key string) {
	origin, ok := s.origins[key]
	if !ok && elementKey(key) {
		origin, _ = s.origins.nearest(key)
	}
	s.lines = append(s.lines, Line{Text: indent + label + scalarYAML(value), Key: key, Value: value, Origin: origin.String()})
}

// elementKey tells an entry of a list, whose origin is that of the list
// unless it has one of its own.
func elementKey(key string) bool { return strings.HasSuffix(key, "]") }

func (s *shower) section(v reflect.Value, indent, key string) {
	for _, f := range fieldsOf(v.Type()) {
		s.value(v.Field(f.index), f, indent, join(key, f.name))
	}
}

func (s *shower) value(v reflect.Value, f field, indent, key string) {
	label, below := f.name+":", indent+"  "
	switch {
	case v.Kind() == reflect.Struct:
		s.head(indent, label, key)
		s.section(v, below, key)
	case v.Kind() == reflect.Map && v.Len() > 0:
		s.head(indent, label, key)
		for _, name := range slices.Sorted(maps.Keys(v.Interface().(map[string]string))) {
			value := v.MapIndex(reflect.ValueOf(name)).String()
			if f.tags.Get("secret") == "values" {
				value = "***"
			}
			s.pair(below, name, value, join(key, name), key)
		}
	case v.Kind() == reflect.Slice && v.Len() > 0:
		s.head(indent, label, key)
		s.list(v, below, key)
	case v.Kind() == reflect.Map:
		s.empty(indent, label, "{}", key)
	case v.Kind() == reflect.Slice:
		s.empty(indent, label, "[]", key)
	default:
		value := scalarText(v)
		if f.tags.Get("secret") == "url" {
			value = MaskURL(value)
		}
		s.leaf(indent, label+" ", value, key)
	}
}

func (s *shower) empty(indent, label, text, key string) {
	s.lines = append(s.lines, Line{Text: indent + label + " " + text, Key: key, Value: text, Origin: s.origins[key].String()})
}

func (s *shower) pair(indent, name, value, key, parent string) {
	origin, ok := s.origins[key]
	if !ok {
		origin = s.origins[parent]
	}
	s.lines = append(s.lines, Line{Text: indent + scalarYAML(name) + ": " + scalarYAML(value), Key: key, Value: value, Origin: origin.String()})
}

func (s *shower) list(v reflect.Value, indent, key string) {
	for i := range v.Len() {
		at, item := fmt.Sprintf("%s[%d]", key, i), v.Index(i)
		if item.Kind() != reflect.Struct {
			s.leaf(indent, "- ", scalarText(item), at)
			continue
		}
		first := len(s.lines)
		s.section(item, indent+"  ", at)
		s.lines[first].Text = indent + "- " + strings.TrimLeft(s.lines[first].Text, " ")
	}
}

func scalarText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case Size:
		return x.String()
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case int:
		return strconv.Itoa(x)
	case float64:
		return formatFloat(x)
	}
	panic("config: a field of type " + v.Type().String())
}

// plainText needs no quotes in any YAML; bare numbers and booleans are safe
// too, as keys take the text of a scalar.
var plainText = regexp.MustCompile(`^[A-Za-z0-9/_][A-Za-z0-9/_.+-]*(:[A-Za-z0-9/_.+-]+)*$`)

// scalarYAML quotes the text where YAML needs it, and protects dollar signs.
func scalarYAML(s string) string {
	if plainText.MatchString(s) && (!token.IsNeedQuoted(s) || s == "true" || s == "false" || isNumber(s)) {
		return s
	}
	return strconv.Quote(strings.ReplaceAll(s, "$", "$$"))
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// secretParameter is a URL parameter whose value is not for every eye.
var secretParameter = regexp.MustCompile(`(?i)token|secret|password|passwd|key|auth|sig`)

// MaskURL shows a URL without its user, password and secret-looking
// parameters. What is no URL is shown only if it holds no @.
func MaskURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.User == nil && strings.Contains(u.Host+u.Path, "@") {
		if strings.Contains(s, "@") {
			return "***"
		}
		return s
	}
	masked := u.User != nil
	if masked {
		u.User = url.User("***")
	}
	query := u.Query()
	for name := range query {
		if secretParameter.MatchString(name) {
			query[name] = []string{"***"}
			u.RawQuery = query.Encode()
			masked = true
		}
	}
	if !masked {
		return s
	}
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", "***")
}
