package catalog

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxGeneralYAML bounds what the YAML library gets to see: it is slow. A
	// record of that size that is written plainly is read by readPlain.
	maxGeneralYAML = 128 << 10
	// maxNesting is far more than a record needs (examples.match[].args[]).
	maxNesting = 32
)

// readYAML reads one YAML document of any form and says, with its place, what
// is wrong with it.
func readYAML(text string) (node, []Problem) {
	y := yamlReader{text: text, lines: lineStarts(text)}
	if len(text) > maxGeneralYAML {
		at, _ := readPlain(text)
		return node{}, y.fail(int(at.off), 1, "the file is larger than %d KiB and from here on not written plainly enough to be read", maxGeneralYAML>>10)
	}
	root := y.read()
	return root, y.problems
}

type yamlReader struct {
	text     string
	lines    []int // offset of each line
	problems []Problem
}

func (y *yamlReader) read() (root node) {
	text := y.text
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // the library doesn't fold a last line without one
	}
	tokens := lexer.Tokenize(text)
	if deep := tooDeep(tokens); deep != nil {
		y.failAt(deep, "lists and mappings are nested too deep")
		return node{}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		y.syntax(err)
		return node{}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			y.failAt(doc.Start, "a second YAML document begins here; a file holds one record")
			return node{}
		default:
			body = doc.Body
		}
	}
	if body == nil {
		y.fail(0, 1, "the file is empty")
		return node{}
	}
	return y.convert(body)
}

// tooDeep returns the token that nests one level too many, or nil: the library
// takes quadratic time on these. Levels of indentation are bounded by the file's size.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, dashes, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			dashes, line = 0, tk.Position.Line
		}
		switch tk.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++
		}
		if flow > maxNesting || dashes > maxNesting {
			return tk
		}
	}
	return nil
}

func (y *yamlReader) convert(in ast.Node) node {
	switch in := in.(type) {
	case *ast.MappingNode:
		n := node{kind: kindMapping, off: y.at(in.GetToken())}
		for _, pair := range in.Values {
			y.pair(&n, pair)
		}
		if len(n.items) > 0 {
			n.off = n.items[0].keyAt
		}
		return n
	case *ast.MappingValueNode:
		n := node{kind: kindMapping}
		y.pair(&n, in)
		n.off = n.items[0].keyAt
		return n
	case *ast.SequenceNode:
		n := node{kind: kindList, off: y.at(in.GetToken())}
		for _, item := range in.Values {
			n.items = append(n.items, y.convert(item))
		}
		return n
	case *ast.NullNode:
		return node{kind: kindNull, off: y.at(in.GetToken())}
	case *ast.StringNode:
		return y.scalar(in.Value, in.GetToken())
	case *ast.LiteralNode:
		return y.scalar(in.Value.Value, in.Start)
	case *ast.TagNode:
		if in.Start.Value == "!!str" {
			return y.convert(in.Value)
		}
		y.failAt(in.Start, "YAML tags are not used in records; write the value in quotes")
	case *ast.AnchorNode, *ast.AliasNode:
		y.failAt(in.GetToken(), "YAML anchors and aliases are not used in records; write the value out, or in quotes if it begins with & or *")
	case ast.ScalarNode: // numbers, booleans: records hold text, so as written
		return y.scalar(in.GetToken().Value, in.GetToken())
	default:
		y.failAt(in.GetToken(), "this YAML is not used in records")
	}
	return node{}
}

func (y *yamlReader) pair(n *node, pair *ast.MappingValueNode) {
	tk := pair.Key.GetToken()
	if _, ok := pair.Key.(*ast.MappingKeyNode); ok {
		y.failAt(tk, `the form "? key" is not used in records; write "key: value"`)
	}
	value := y.convert(pair.Value)
	value.key, value.keyAt = tk.Value, y.at(tk)
	n.items = append(n.items, value)
}

func (y *yamlReader) scalar(text string, tk *token.Token) node {
	return node{kind: kindScalar, text: text, off: y.at(tk), width: int32(len(strings.TrimSpace(firstLine(tk.Value))))}
}

func (y *yamlReader) failAt(tk *token.Token, format string, args ...any) {
	y.fail(y.offset(tk), 1, format, args...)
}

func (y *yamlReader) fail(off, width int, format string, args ...any) []Problem {
	p := Problem{Message: fmt.Sprintf(format, args...)}
	p.place(y.text, off, width)
	y.problems = append(y.problems, p)
	return y.problems
}

// syntax reports an error of the YAML library, in the user's terms where the
// cause is one of the usual ones.
func (y *yamlReader) syntax(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		y.fail(0, 1, "not YAML: %v", err)
		return
	}
	off, message := y.offset(e.GetToken()), e.GetMessage()
	line := y.text[:min(len(y.text), off+1)]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	switch {
	case strings.Contains(message, "tab character"), strings.Contains(message, `'	'`), strings.HasPrefix(line, "\t"):
		message = "the line is indented with a tab; YAML indents with spaces"
	case strings.HasPrefix(message, "mapping value is not allowed"):
		message = `not YAML: a value that contains ": " must be in quotes (or a line near this one is indented too far)`
	case strings.HasPrefix(message, "value is not allowed in this context") && strings.ContainsAny(line, `'"`):
		message = "not YAML: something follows the closing quote (inside single quotes, a quote is written '')"
	case strings.Contains(message, "end token"):
		message = "not YAML: the list or mapping that begins here is not closed"
	case strings.Contains(message, "reserved character"), strings.Contains(message, "unexpected directive"):
		message = "not YAML: a value that begins with ` or @ or % must be in quotes"
	case strings.HasPrefix(message, "could not find end character"):
		message = "not YAML: the closing quote is missing (inside single quotes, a quote is written '')"
	case strings.HasPrefix(message, "found unknown escape"):
		message = `not YAML: unknown escape in double quotes (write a backslash as \\, or use single quotes)`
	default:
		message = "not YAML: " + message
	}
	y.fail(off, 1, "%s", message)
}

// offset is the byte offset of a token. The library counts its own offsets in
// ways that vary; its line and column (in runes) can be relied on.
func (y *yamlReader) offset(tk *token.Token) int {
	if tk == nil || tk.Position == nil || tk.Position.Line < 1 || tk.Position.Line > len(y.lines) {
		return 0
	}
	off := y.lines[tk.Position.Line-1]
	for range tk.Position.Column - 1 {
		if off == len(y.text) || y.text[off] == '\n' {
			break
		}
		_, size := utf8.DecodeRuneInString(y.text[off:])
		off += size
	}
	return off
}

func (y *yamlReader) at(tk *token.Token) int32 { return int32(y.offset(tk)) }

func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
