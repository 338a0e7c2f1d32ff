package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Override is a value given by a flag or a variable, which outranks the file.
type Override struct {
	// Key is a key of Config outside lists (catalog.paths, web.listen), or one
	// of three short ones: "input" (the files, or - for standard input, to read
	// instead of inputs), "start" (for every input), "loki.url" (of the only
	// endpoint).
	Key    string
	Values []string // one, or several for a list
	Origin Origin   // the flag or variable
}

// The short keys of Override.
const (
	keyInput   = "input"
	keyStart   = "start"
	keyLokiURL = "loki.url"
)

// EnvPrefix begins the name of every variable that overrides a key:
// RWANNOTATE_WEB_LISTEN is web.listen.
const EnvPrefix = "RWANNOTATE_"

// maxFileBytes is far above any configuration and keeps a wrong path (a log,
// a device) from filling the memory.
const maxFileBytes = 256 << 10

// Load reads the file at path ("": none), the environment and the overrides
// of flags, in rising order of precedence, onto the defaults, and checks the
// result. It returns every problem found; unless Failed(problems) the Config
// can be used. Paths of secrets and certificates are not opened: see
// CheckFiles.
func Load(path string, env Env, flags []Override) (Config, Origins, []Problem) {
	if path == "" {
		return parse("", nil, env, flags)
	}
	src, err := readFile(path)
	if err != nil {
		c, origins, problems := parse("", nil, env, flags)
		return c, origins, append([]Problem{{Source: path, Message: err.Error()}}, problems...)
	}
	return parse(path, src, env, flags)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such file; check the path after -c, or RWANNOTATE_CONFIG")
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.New("the file may not be read by this user; check its owner and mode")
	}
	if err != nil {
		return nil, fmt.Errorf("the file cannot be opened: %w", cause(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("this is a directory; name the file in it")
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", cause(err))
	}
	if len(src) > maxFileBytes {
		return nil, errors.New("the file is larger than 256 KiB; this is hardly a configuration")
	}
	return src, nil
}

// cause drops the operation and the path, which the problem's own line names.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// parse is Load without the file system.
func parse(name string, src []byte, env Env, flags []Override) (Config, Origins, []Problem) {
	c := Default()
	origins := Origins{}
	found := &findings{broken: map[string]bool{}, odd: map[string]bool{}}
	file := &source{kind: FromFile, name: name, hidden: map[int]int{}}
	if !readYAML(&c, file, src, env, origins, found) {
		return c, origins, finish(found, file)
	}
	fromEnv, unknown := envOverrides(env)
	found.problems = append(found.problems, unknown...)
	for _, o := range slices.Concat(fromEnv, flags) {
		apply(&c, o, origins, found)
	}
	for _, p := range Validate(c) {
		place(&p, origins, found)
	}
	return c, origins, finish(found, file)
}

// readYAML binds the file's text. It reports false if the text is no YAML, so
// that nothing else can be said about it.
func readYAML(c *Config, file *source, text []byte, env Env, origins Origins, found *findings) bool {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	file.lines = strings.Split(string(text), "\n")
	if p, bad := unreadable(text); bad {
		p.Source = file.name
		found.problems = append(found.problems, p)
		return false
	}
	tree, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		found.problems = append(found.problems, syntaxProblem(file.name, err))
		return false
	}
	b := &binder{src: file, env: env, origins: origins, found: found, anchors: anchorsOf(tree)}
	bodies := documents(tree)
	if len(bodies) == 0 {
		return true // an empty file is a configuration: the default
	}
	if len(bodies) > 1 {
		b.fail(bodies[1], "", "the file holds a second YAML document; put everything into one and remove the --- between them")
	}
	b.bind(bodies[0], reflect.ValueOf(c).Elem(), "", "")
	return true
}

// documents leaves out empty documents and directives such as %YAML.
func documents(tree *ast.File) []ast.Node {
	var bodies []ast.Node
	for _, doc := range tree.Docs {
		switch doc.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
		default:
			bodies = append(bodies, doc.Body)
		}
	}
	return bodies
}

type visitor func(ast.Node)

func (v visitor) Visit(node ast.Node) ast.Visitor {
	v(node)
	return v
}

func anchorsOf(tree *ast.File) map[string]ast.Node {
	anchors := map[string]ast.Node{}
	collect := visitor(func(node ast.Node) {
		if a, ok := node.(*ast.AnchorNode); ok {
			anchors[a.Name.GetToken().Value] = a.Value
		}
	})
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			ast.Walk(collect, doc.Body)
		}
	}
	return anchors
}

// unreadable finds bytes that no YAML has, which the parser would take for
// text.
func unreadable(text []byte) (Problem, bool) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return Problem{Message: "the file is UTF-16; save it as UTF-8"}, true
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		for column := 1; len(line) > 0; column++ {
			r, size := utf8.DecodeRune(line)
			p := Problem{Line: i + 1, Column: column}
			switch {
			case r == utf8.RuneError && size == 1:
				p.Message = fmt.Sprintf("the byte 0x%02x is not UTF-8; save the file as UTF-8", line[0])
			case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
				p.Message = fmt.Sprintf("the control character 0x%02x is not allowed in YAML; remove it", r)
			}
			if p.Message != "" {
				return p, true
			}
			line = line[size:]
		}
	}
	return Problem{}, false
}

// syntaxProblem puts the parser's errors into words for somebody who does not
// know its states.
func syntaxProblem(name string, err error) Problem {
	p := Problem{Source: name, Message: err.Error()}
	var e yaml.Error
	if !errors.As(err, &e) {
		return p
	}
	p.Message = "this is not valid YAML: " + e.GetMessage()
	token := e.GetToken()
	if token == nil {
		return p
	}
	p.Line, p.Column = token.Position.Line, token.Position.Column
	for _, s := range syntaxSentences {
		if strings.Contains(e.GetMessage(), s.parser) {
			p.Message = s.ours
			break
		}
	}
	return p
}

var syntaxSentences = []struct{ parser, ours string }{
	{"tab character", "the line is indented with a tab; use spaces"},
	{"found character '\t'", "the line is indented with a tab; use spaces"},
	{"mapping value is not allowed", "a second `key: value` begins inside this value; give each key a line of its own, with the indentation of its neighbours, or quote a text that holds a colon and a space"},
	{"value is not allowed in this context. map key-value is pre-defined", "text follows after the closing quote; double a quote inside single quotes, or use double quotes"},
	{"value is not allowed in this context", "the line fits neither the indentation above nor any before it; align it with its neighbours"},
	{"non-map value is specified", "this line is not a `key: value` like its neighbours; write a key, a colon and a space before it"},
	{"unexpected key name", "a colon without a space after it does not end a key; write `key: value`"},
	{"sequence end token", "the list is not closed; add the missing ]"},
	{"flow mapping end token", "the braces are not closed; add the missing }"},
	{"',' or ']' must be specified", "a comma or ] is missing before this; put quotes around a text with braces, such as \"${VAR}\""},
	{"',' or '}' must be specified", "a comma or } is missing before this; put quotes around a text with braces, such as \"${VAR}\""},
	{"end character of double-quoted", "the text is not closed; add the missing \""},
	{"end character of single-quoted", "the text is not closed; add the missing '"},
	{"is a reserved character", "a text must not begin with @ or a backtick; put quotes around it"},
	{"unexpected directive value", "a text must not begin with %; put quotes around it"},
	{"unknown escape character", "a backslash begins an escape in double quotes; use single quotes, or double the backslash"},
	{"block sequence entries are not allowed", "a dash begins a list on a line of its own; begin a new line before it"},
	{"unexpected scalar value type", "a list entry is missing between commas; remove one comma"},
	{"undefined anchor value", "the anchor names nothing; write a value after it"},
	{"found an invalid key", "a key must be a plain word"},
}

// apply sets one override.
func apply(c *Config, o Override, origins Origins, found *findings) {
	src := &source{kind: o.Origin.Kind, name: o.Origin.Name, hidden: map[int]int{}}
	b := &binder{src: src, literal: true, origins: origins, found: found}
	switch o.Key {
	case keyInput:
		b.inputs(c, o)
	case keyStart:
		for i := range c.Inputs {
			if c.Inputs[i].Stdin {
				continue
			}
			b.override(reflect.ValueOf(&c.Inputs[i].Start).Elem(), fieldTags(reflect.TypeFor[Input](), "start"), fmt.Sprintf("inputs[%d].start", i), o)
		}
	case keyLokiURL:
		b.lokiURL(c, o)
	default:
		v, tags := lookup(reflect.ValueOf(c).Elem(), o.Key)
		b.override(v, tags, o.Key, o)
	}
}

// inputs replaces the inputs by those of --input, or of the variable, which may
// be a list in flow style.
func (b *binder) inputs(c *Config, o Override) {
	b.origins.forget("inputs")
	if o.Origin.Kind == FromEnv && firstByte(o.Values[0]) == "[" {
		text := o.Values[0]
		o.Values = nil
		b.flow(reflect.ValueOf(&o.Values).Elem(), "", "inputs", text)
	}
	b.origins["inputs"] = o.Origin
	c.Inputs = nil
	var files Input
	files.setDefaults()
	for _, v := range o.Values {
		if v != "-" {
			files.Files = append(files.Files, v)
			continue
		}
		stdin := Input{Stdin: true}
		stdin.Start = files.Start
		c.Inputs = append(c.Inputs, stdin)
	}
	if len(files.Files) > 0 {
		c.Inputs = append(c.Inputs, files)
	}
	for i, in := range c.Inputs {
		for _, given := range []string{"files", "stdin"} {
			if (given == "stdin") == in.Stdin {
				b.origins[fmt.Sprintf("inputs[%d].%s", i, given)] = o.Origin
			}
		}
	}
}

func (b *binder) lokiURL(c *Config, o Override) {
	if len(c.Loki.Endpoints) > 1 {
		b.found.problems = append(b.found.problems, Problem{
			Source: b.src.name, Message: "the file has several loki.endpoints, so it is not clear whose URL this is; set it in the file",
		})
		return
	}
	if len(c.Loki.Endpoints) == 0 {
		c.Loki.Endpoints = make([]Endpoint, 1)
		c.Loki.Endpoints[0].setDefaults()
		b.origins["loki.endpoints"] = o.Origin
	}
	b.override(reflect.ValueOf(&c.Loki.Endpoints[0].URL).Elem(), fieldTags(reflect.TypeFor[Endpoint](), "url"), "loki.endpoints[0].url", o)
}

// override sets v, the value of key. A list or pairs given by a variable are
// one value, or YAML in flow style: [a, b], {cluster: prod}.
func (b *binder) override(v reflect.Value, tags reflect.StructTag, key string, o Override) {
	b.origins.forget(key)
	delete(b.found.broken, key)
	b.origins[key] = o.Origin
	values := o.Values
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		if len(values) == 1 && strings.ContainsAny(firstByte(values[0]), "[{") {
			b.flow(v, tags, key, values[0])
			return
		}
		if v.Kind() == reflect.Slice {
			v.Set(reflect.ValueOf(slices.Clone(values)))
			return
		}
		b.reject(key, fmt.Sprintf("%q is no set of pairs; write {name: value}", values[0]))
		return
	}
	if err := setScalar(v, values[len(values)-1], tags.Get("enum")); err != nil {
		b.reject(key, err.Error())
	}
}

func (b *binder) flow(v reflect.Value, tags reflect.StructTag, key, text string) {
	tree, err := parser.ParseBytes([]byte(text), 0)
	if err != nil || len(documents(tree)) != 1 {
		b.reject(key, fmt.Sprintf("%q is neither a list [a, b] nor pairs {name: value}", text))
		return
	}
	b.bind(documents(tree)[0], v, tags, key)
}

func (b *binder) reject(key, message string) {
	b.found.broken[key] = true
	b.found.problems = append(b.found.problems, Problem{Source: b.src.name, Key: key, Message: message})
}

func firstByte(s string) string {
	s = strings.TrimSpace(s)
	return s[:min(1, len(s))]
}

// lookup finds the field of a key that Keys lists. A key that does not exist
// is a mistake of the program.
func lookup(v reflect.Value, key string) (reflect.Value, reflect.StructTag) {
	name, rest, deeper := strings.Cut(key, ".")
	for _, f := range fieldsOf(v.Type()) {
		if f.name == name && deeper {
			return lookup(v.Field(f.index), rest)
		}
		if f.name == name {
			return v.Field(f.index), f.tags
		}
	}
	panic("config: no key " + key)
}

func fieldTags(t reflect.Type, name string) reflect.StructTag {
	_, tags := lookup(reflect.New(t).Elem(), name)
	return tags
}

// Keys lists the keys that variables and flags can set, in the order of the
// file.
func Keys() []string {
	keys := []string{keyInput, keyStart}
	var walk func(t reflect.Type, key string)
	walk = func(t reflect.Type, key string) {
		for _, f := range fieldsOf(t) {
			full, ft := join(key, f.name), t.Field(f.index).Type
			switch {
			case ft.Kind() == reflect.Struct:
				walk(ft, full)
			case ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct:
				// its entries have no names
			default:
				keys = append(keys, full)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return append(keys, keyLokiURL)
}

// EnvName is the variable that sets a key of Keys.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// envOverrides finds the variables that set keys. One that is named like a
// section but sets nothing is most likely misspelt; others with our prefix
// are left alone, for Kubernetes makes up RWANNOTATE_PORT and the like for a
// service of that name.
func envOverrides(env Env) ([]Override, []Problem) {
	var overrides []Override
	known := map[string]bool{}
	sections := map[string][]string{} // RWANNOTATE_WEB_ → listen, page, …
	for _, key := range Keys() {
		name := EnvName(key)
		known[name] = true
		if section, rest, ok := strings.Cut(key, "."); ok {
			prefix := EnvName(section) + "_"
			sections[prefix] = append(sections[prefix], strings.ReplaceAll(rest, ".", "_"))
		}
		if value, ok := env[name]; ok {
			overrides = append(overrides, Override{key, []string{value}, Origin{Kind: FromEnv, Name: name}})
		}
	}
	var problems []Problem
	for name := range env {
		for prefix, keys := range sections {
			rest, ok := strings.CutPrefix(name+"_", prefix)
			if !ok || known[name] {
				continue
			}
			p := Problem{Source: name, Message: "this variable sets nothing", Warning: true}
			if near := closest(strings.TrimSuffix(rest, "_"), keys); near != "" {
				p.Message += fmt.Sprintf("; did you mean %s%s?", prefix, strings.ToUpper(near))
			}
			if rest == "" {
				p.Message += fmt.Sprintf("; did you mean %s%s?", prefix, strings.ToUpper(keys[0]))
			}
			problems = append(problems, p)
		}
	}
	sort.Slice(problems, func(i, j int) bool { return problems[i].Source < problems[j].Source })
	return overrides, problems
}

// place gives a problem of Validate its position, unless it only follows from
// another one.
func place(p *Problem, origins Origins, found *findings) {
	_, given := origins[p.Key]
	section := parentKey(p.Key)
	for broken := range found.broken {
		if broken == "" {
			continue
		}
		if within(p.Key, broken) || within(broken, p.Key) || !given && section != "" && within(broken, section) {
			return
		}
	}
	if !given && found.odd[section] {
		return // what is missing is probably the misspelt key
	}
	if origin, ok := origins.nearest(p.Key); ok {
		p.Source, p.Line, p.Column = origin.Name, origin.Line, origin.Column
	}
	found.problems = append(found.problems, *p)
}

// finish adds the excerpts, when everything that must not be shown is known,
// and sorts by place.
func finish(found *findings, file *source) []Problem {
	problems := found.problems
	for i := range problems {
		if p := &problems[i]; p.Source == file.name {
			p.Excerpt = file.excerpt(p.Line, p.Column)
		}
	}
	sort.SliceStable(problems, func(i, j int) bool {
		a, b := problems[i], problems[j]
		if (a.Source == file.name) != (b.Source == file.name) {
			return a.Source == file.name
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return problems
}
