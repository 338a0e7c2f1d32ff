package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// findings collects problems and remembers which keys have one, so that a
// fault is told once and not again as its consequences.
type findings struct {
	problems []Problem
	broken   map[string]bool // keys whose value could not be read
	odd      map[string]bool // sections with a key that we don't know
}

// binder writes a YAML tree onto the configuration, key by key, and goes on
// after every fault. goccy's own decoder stops at the first, names Go types in
// its sentences and loses the positions that the later checks need.
type binder struct {
	src     *source
	env     Env
	literal bool // ${…} stands for itself: the text comes from a flag or variable
	origins Origins
	found   *findings
	anchors map[string]ast.Node
}

// Anchors may refer to themselves; no honest file nests this deep.
const maxDepth = 32

func (b *binder) fail(node ast.Node, key, format string, args ...any) {
	line, column := b.position(node)
	b.found.broken[key] = true
	b.found.problems = append(b.found.problems, Problem{
		Source: b.src.name, Line: line, Column: column, Key: key, Message: fmt.Sprintf(format, args...),
	})
}

// position in the file; the values of variables have none.
func (b *binder) position(node ast.Node) (line, column int) {
	if b.src.kind != FromFile {
		return 0, 0
	}
	return position(node)
}

// position of a node's first character.
func position(node ast.Node) (line, column int) {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		node = m.Values[0].Key // the token of a block mapping is its first colon
	}
	p := node.GetToken().Position
	return p.Line, p.Column
}

func (b *binder) hide(node ast.Node) {
	line, column := position(node)
	b.src.hide(line, column, node.String())
}

func (b *binder) note(key string, node ast.Node) {
	line, column := b.position(node)
	b.origins[key] = Origin{Kind: b.src.kind, Name: b.src.name, Line: line, Column: column}
}

// bind sets v, the value of key, from node. The tags are those of the field.
func (b *binder) bind(node ast.Node, v reflect.Value, tags reflect.StructTag, key string) {
	node, ok := b.resolve(node, key)
	if !ok {
		return
	}
	if _, null := node.(*ast.NullNode); null {
		return // a key without a value keeps its default
	}
	b.note(key, node)
	if _, ok := node.(*ast.MappingNode); tags.Get("secret") == "values" && (!ok || v.Kind() == reflect.String) {
		b.hide(node) // whatever it is, it was meant as a secret
	}
	switch {
	case v.Kind() == reflect.Struct:
		b.section(node, v, key)
	case v.Kind() == reflect.Map:
		b.pairs(node, v, tags, key)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		b.sections(node, v, key)
	case v.Kind() == reflect.Slice:
		b.list(node, v, tags, key)
	default:
		b.scalar(node, v, tags, key)
	}
}

// resolve follows anchors, aliases and the standard tags.
func (b *binder) resolve(node ast.Node, key string) (ast.Node, bool) {
	for range maxDepth {
		switch n := node.(type) {
		case *ast.AnchorNode:
			node = n.Value
		case *ast.TagNode:
			if !strings.HasPrefix(n.Start.Value, "!!") {
				b.fail(n, key, "the YAML tag %s has no meaning here; remove it", n.Start.Value)
				return nil, false
			}
			node = n.Value
		case *ast.AliasNode:
			name := n.Value.GetToken().Value
			target, ok := b.anchors[name]
			if !ok {
				b.fail(n, key, "*%s refers to an anchor &%s that does not exist; put quotes around a value that begins with *", name, name)
				return nil, false
			}
			node = target
		case nil:
			return ast.Null(nil), true
		default:
			return node, true
		}
	}
	b.fail(node, key, "the alias refers to itself")
	return nil, false
}

// tightColon recognises `key:value`, which YAML takes for a text.
func tightColon(node ast.Node, fields []field) bool {
	text, ok := node.(*ast.StringNode)
	if !ok {
		return false
	}
	name, _, colon := strings.Cut(text.Value, ":")
	return colon && slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
}

// section binds a mapping to a struct.
func (b *binder) section(node ast.Node, v reflect.Value, key string) {
	fields := fieldsOf(v.Type())
	m, ok := node.(*ast.MappingNode)
	if !ok {
		if key == "" {
			b.fail(node, key, "the file must consist of keys and values, such as `web:` with `  listen: 127.0.0.1:12399` below it; this is %s", describe(node))
			return
		}
		if tightColon(node, fields) {
			b.fail(node, key, "a colon without a space after it does not end a key; write `key: value`")
			return
		}
		b.fail(node, key, "a section is expected, with keys such as %q indented below it; this is %s", fields[0].name, describe(node))
		return
	}
	for _, e := range b.entries(m, key, 0) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.name })
		if i < 0 {
			b.unknown(e, v.Type(), key)
			continue
		}
		b.bind(e.value, v.Field(fields[i].index), fields[i].tags, join(key, e.name))
	}
}

// entry is one key of a mapping with its value.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// entries lists a mapping's keys in order, merged ones (`<<: *anchor`) last
// and only where the mapping has none of its own.
func (b *binder) entries(m *ast.MappingNode, key string, depth int) []entry {
	var own, merged []entry
	seen := map[string]int{}
	for _, mv := range m.Values {
		if _, ok := mv.Key.(*ast.MergeKeyNode); ok {
			merged = append(merged, b.merged(mv.Value, key, depth+1)...)
			continue
		}
		name, ok := keyText(mv.Key)
		line, _ := position(mv.Key)
		if !ok {
			b.fail(mv.Key, key, "a key must be a plain word; this is %s", describe(mv.Key))
			continue
		}
		if first, twice := seen[name]; twice {
			b.fail(mv.Key, join(key, name), "the key is given twice, here and on line %d; remove one", first)
			continue
		}
		seen[name] = line
		own = append(own, entry{name, mv.Key, mv.Value})
	}
	for _, e := range merged {
		if _, ok := seen[e.name]; !ok {
			seen[e.name] = 0
			own = append(own, e)
		}
	}
	return own
}

func (b *binder) merged(node ast.Node, key string, depth int) []entry {
	if depth > maxDepth {
		b.fail(node, key, "the merge with << refers to itself")
		return nil
	}
	node, ok := b.resolve(node, key)
	if !ok {
		return nil
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return b.entries(n, key, depth)
	case *ast.SequenceNode:
		var all []entry
		for _, item := range n.Values {
			all = append(all, b.merged(item, key, depth+1)...)
		}
		return all
	}
	b.fail(node, key, "<< must be given a mapping, such as *anchor; this is %s", describe(node))
	return nil
}

// keyText is the text of a mapping's key.
func keyText(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.MappingKeyNode: // `? key`
		return keyText(n.Value)
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// hints answer keys that other tools or earlier habits suggest.
var hints = map[string]string{
	"password":        "a password is not written here; put it into a file and name that with password_file",
	"bearer_token":    "a token is not written here; put it into a file and name that with bearer_token_file",
	"passwd":          "a password is not written here; put it into a file and name that with password_file",
	"credentials":     "a token is not written here; put it into a file and name that with bearer_token_file",
	"format":          "the form of a log is recognised by itself; remove this line",
	"external_labels": "the key is loki.labels",
	"clients":         "the key is loki.endpoints",
	"batchwait":       "the key is batch.linger",
	"batchsize":       "the key is batch.max_bytes",
}

// unknown reports a key that the section does not have, and what was
// probably meant.
func (b *binder) unknown(e entry, section reflect.Type, key string) {
	b.found.odd[key] = true
	full := join(key, e.name)
	if closest(e.name, secretWords) != "" {
		b.hide(e.value)
	}
	var names []string
	for _, f := range fieldsOf(section) {
		names = append(names, f.name)
	}
	if hint := hints[e.name]; hint != "" {
		b.fail(e.key, full, "unknown key; %s", hint)
		return
	}
	if near := closest(e.name, names); near != "" {
		b.fail(e.key, full, "unknown key; did you mean %q?", near)
		return
	}
	if places := placesOf(e.name); len(places) == 1 {
		b.fail(e.key, full, "unknown key; did you mean %s?", places[0])
		return
	}
	where := key
	if where == "" {
		where = "the file"
	}
	b.fail(e.key, full, "unknown key; %s may have: %s", where, strings.Join(names, ", "))
}

// pairs binds a mapping with free keys, such as labels.
func (b *binder) pairs(node ast.Node, v reflect.Value, tags reflect.StructTag, key string) {
	m, ok := node.(*ast.MappingNode)
	if !ok {
		b.fail(node, key, "pairs such as `name: value` are expected, indented below it; this is %s", describe(node))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range b.entries(m, key, 0) {
		value := reflect.New(v.Type().Elem()).Elem()
		if b.item(e.value, value, tags, join(key, e.name)) {
			v.SetMapIndex(reflect.ValueOf(e.name), value)
		}
	}
}

// item binds a value that must be there, an entry of a list or of pairs.
func (b *binder) item(node ast.Node, v reflect.Value, tags reflect.StructTag, key string) bool {
	node, ok := b.resolve(node, key)
	if !ok {
		return false
	}
	if _, null := node.(*ast.NullNode); null {
		b.fail(node, key, "there is no value; give one or remove the entry")
		return false
	}
	b.bind(node, v, tags, key)
	return !b.found.broken[key]
}

// list binds a sequence of scalars; a single one may stand without dashes.
func (b *binder) list(node ast.Node, v reflect.Value, tags reflect.StructTag, key string) {
	items := []ast.Node{node}
	switch n := node.(type) {
	case *ast.SequenceNode:
		items = n.Values
	case *ast.MappingNode:
		b.fail(node, key, "a list is expected, such as [a, b]; this is %s", describe(node))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		b.item(item, v.Index(i), tags, fmt.Sprintf("%s[%d]", key, i))
	}
}

// sections binds a sequence of mappings.
func (b *binder) sections(node ast.Node, v reflect.Value, key string) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		b.fail(node, key, "a list is expected; begin each of its entries with a dash (`- %s: …`); this is %s", fieldsOf(v.Type().Elem())[0].name, describe(node))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		if d, ok := v.Index(i).Addr().Interface().(defaulter); ok {
			d.setDefaults()
		}
		b.item(item, v.Index(i), "", fmt.Sprintf("%s[%d]", key, i))
	}
}

func (b *binder) scalar(node ast.Node, v reflect.Value, tags reflect.StructTag, key string) {
	text, ok := b.text(node, key)
	if !ok {
		return
	}
	if tags.Get("secret") == "url" && MaskURL(text) == "***" {
		b.hide(node) // not even a URL, but with an @
	}
	if err := setScalar(v, text, tags.Get("enum")); err != nil {
		b.fail(node, key, "%v", err)
	}
}

// text of a scalar, as written (a tenant 007 stays 007), with variables
// replaced in strings.
func (b *binder) text(node ast.Node, key string) (string, bool) {
	var s string
	switch n := node.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	default:
		b.fail(node, key, "a single value is expected; this is %s", describe(node))
		return "", false
	}
	if b.literal {
		return s, true
	}
	s, errs := expand(s, b.env)
	for _, err := range errs {
		b.fail(node, key, "%v", err)
	}
	return s, len(errs) == 0
}

// setScalar parses text into v.
func setScalar(v reflect.Value, text, enum string) error {
	switch v.Interface().(type) {
	case time.Duration:
		d, err := parseDuration(text)
		if err != nil {
			return fmt.Errorf("%q %w", shorten(text, 80), err)
		}
		v.SetInt(int64(d))
		return nil
	case Size:
		n, err := parseSize(text)
		if err != nil {
			return fmt.Errorf("%q %w", shorten(text, 80), err)
		}
		v.SetInt(int64(n))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if choices := strings.Split(enum, ","); enum != "" && !slices.Contains(choices, text) {
			return notOneOf(text, choices)
		}
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false; write one of these", shorten(text, 80))
		}
		v.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number; write for example 100", shorten(text, 80))
		}
		v.SetInt(int64(n))
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f-f != 0 { // infinities and NaN differ from themselves so
			return fmt.Errorf("%q is not a number; write for example 20 or 0.5", shorten(text, 80))
		}
		v.SetFloat(f)
	default:
		panic("config: a field of type " + v.Type().String()) // a test binds every field
	}
	return nil
}

func notOneOf(text string, choices []string) error {
	if near := closest(text, choices); near != "" {
		return fmt.Errorf("%q is not known; did you mean %q?", text, near)
	}
	last := len(choices) - 1
	return fmt.Errorf("%q is not known; write %s or %s", shorten(text, 80), strings.Join(choices[:last], ", "), choices[last])
}

// describe names what was found where something else was expected.
func describe(node ast.Node) string {
	switch n := node.(type) {
	case *ast.MappingNode:
		return "a section with keys"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "a single text"
	case ast.ScalarNode:
		return "the single value " + n.GetToken().Value
	}
	return "something else"
}

// field is one key of a section.
type field struct {
	name  string
	index int
	tags  reflect.StructTag
}

func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		tag := t.Field(i).Tag
		fields[i] = field{tag.Get("yaml"), i, tag}
	}
	return fields
}

// placesOf lists where in the configuration a key of this name exists, as
// loki.endpoints[].url.
func placesOf(name string) []string {
	var places []string
	var walk func(t reflect.Type, key string)
	walk = func(t reflect.Type, key string) {
		if t.Kind() == reflect.Slice {
			t, key = t.Elem(), key+"[]"
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for _, f := range fieldsOf(t) {
			full := join(key, f.name)
			if f.name == name {
				places = append(places, full)
			}
			walk(t.Field(f.index).Type, full)
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return places
}
