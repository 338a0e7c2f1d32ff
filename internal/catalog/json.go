package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// readJSON reads one JSON value, in one pass, and says with its place what is
// wrong with it.
func readJSON(text string) (node, []Problem) {
	j := jsonReader{dec: json.NewDecoder(strings.NewReader(text)), text: text}
	j.dec.UseNumber()
	n, err := j.value(0)
	if err == nil {
		if j.offset() == len(text) {
			return n, nil
		}
		err = errors.New("something follows the record; a file holds one")
	}
	p := Problem{Message: "not JSON: " + err.Error()}
	p.place(text, j.errorOffset(err), 1)
	return node{}, []Problem{p}
}

// errorOffset is where reading failed. A decoder reports syntax errors at
// places of its buffer, so the whole text is checked again for the true one.
func (j *jsonReader) errorOffset(err error) int {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return j.offset()
	}
	var whole json.RawMessage
	if errors.As(json.Unmarshal([]byte(j.text), &whole), &syntax) {
		return int(syntax.Offset) - 1
	}
	return len(j.text)
}

type jsonReader struct {
	dec  *json.Decoder
	text string
}

// offset is where the next token begins.
func (j *jsonReader) offset() int {
	off := int(j.dec.InputOffset())
	for off < len(j.text) && isJSONGap(j.text[off]) {
		off++
	}
	return off
}

func isJSONGap(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':'
}

func (j *jsonReader) value(depth int) (node, error) {
	if depth > maxNesting {
		return node{}, errors.New("lists and objects are nested too deep")
	}
	n := node{off: int32(j.offset())}
	tk, err := j.dec.Token()
	if err != nil {
		return n, err
	}
	switch tk := tk.(type) {
	case nil:
		n.kind = kindNull
	case json.Delim:
		if tk == '{' {
			n.kind = kindMapping
		} else {
			n.kind = kindList
		}
		return n, j.fill(&n, depth)
	case string:
		n.kind, n.text = kindScalar, tk
	default: // a number or a boolean, as text
		n.kind, n.text = kindScalar, fmt.Sprint(tk)
	}
	n.width = int32(j.dec.InputOffset()) - n.off
	return n, nil
}

// fill reads the members of a list or an object.
func (j *jsonReader) fill(n *node, depth int) error {
	for j.dec.More() {
		var key node
		var err error
		if n.kind == kindMapping {
			if key, err = j.value(depth + 1); err != nil {
				return err
			}
		}
		item, err := j.value(depth + 1)
		if err != nil {
			return err
		}
		item.key, item.keyAt = key.text, key.off
		n.items = append(n.items, item)
	}
	_, err := j.dec.Token()
	return err
}
