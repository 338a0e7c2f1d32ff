package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// readJSON reads one JSON value and says with its place what is wrong with it.
// encoding/json judges the text; what it has passed is then cut up without
// further checks, at a fraction of the cost of a decoder's tokens.
func readJSON(text string) (node, []Problem) {
	if !json.Valid([]byte(text)) {
		return node{}, explainJSON(text)
	}
	j := jsonReader{text: text}
	n := j.value(0)
	if j.tooDeep {
		return node{}, jsonProblem(text, j.at, "lists and objects are nested too deep")
	}
	return n, nil
}

func explainJSON(text string) []Problem {
	var whole json.RawMessage
	err := json.Unmarshal([]byte(text), &whole)
	off, message := len(text), "not JSON: "+fmt.Sprint(err)
	if strings.HasSuffix(message, "after top-level value") {
		message = "something follows the record; a file holds one"
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		off = int(syntax.Offset) - 1
	}
	return jsonProblem(text, off, message)
}

func jsonProblem(text string, off int, message string) []Problem {
	p := Problem{Message: message}
	p.place(text, off, 1)
	return []Problem{p}
}

// jsonReader walks over a text that is known to be valid.
type jsonReader struct {
	text    string
	at      int
	tooDeep bool // where at is
}

// gap moves to the next token; commas and colons are where they must be.
func (j *jsonReader) gap() {
	for j.at < len(j.text) && strings.IndexByte(" \n\r\t,:", j.text[j.at]) >= 0 {
		j.at++
	}
}

func (j *jsonReader) value(depth int) node {
	j.gap()
	n := node{off: int32(j.at)}
	switch j.text[j.at] {
	case '{':
		n.kind = kindMapping
		j.members(&n, depth)
	case '[':
		n.kind = kindList
		j.members(&n, depth)
	case '"':
		n.kind, n.text = kindScalar, j.string()
		n.width = int32(j.at) - n.off
	default:
		n.text = j.word()
		if n.kind = kindScalar; n.text == "null" {
			n.kind, n.text = kindNull, ""
		}
		n.width = int32(j.at) - n.off
	}
	return n
}

// members reads what is between the brackets of a list or an object.
func (j *jsonReader) members(n *node, depth int) {
	if depth >= maxNesting {
		j.tooDeep = true
		return
	}
	j.at++
	for j.gap(); j.text[j.at] != ']' && j.text[j.at] != '}'; j.gap() {
		key, keyAt := "", j.at
		if n.kind == kindMapping {
			key = j.string()
		}
		item := j.value(depth + 1)
		if j.tooDeep {
			return
		}
		item.key, item.keyAt = key, int32(keyAt)
		n.items = append(n.items, item)
	}
	j.at++
}

// word reads a number, true, false or null.
func (j *jsonReader) word() string {
	from := j.at
	for j.at < len(j.text) && strings.IndexByte(" \n\r\t,:]}", j.text[j.at]) < 0 {
		j.at++
	}
	return j.text[from:j.at]
}

func (j *jsonReader) string() string {
	from := j.at
	for j.at++; j.text[j.at] != '"'; j.at++ {
		if j.text[j.at] == '\\' {
			j.at++
		}
	}
	j.at++
	inner := j.text[from+1 : j.at-1]
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var s string
	_ = json.Unmarshal([]byte(j.text[from:j.at]), &s) // valid, as the whole is
	return s
}
