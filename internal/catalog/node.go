package catalog

import (
	"strconv"
	"strings"
)

// A node is a value of a YAML or JSON file with its place, which is all that
// checking a record needs to know of either.
type node struct {
	key   string // in a mapping
	text  string // scalar: its value
	items []node // list, mapping
	kind  kind
	off   int32 // byte offset in the file
	width int32 // bytes to mark when it is shown; 0 = one column
	keyAt int32 // byte offset of the key
}

type kind uint8

const (
	kindNull kind = iota
	kindScalar
	kindList
	kindMapping
)

func (k kind) String() string {
	return [...]string{"empty", "text", "a list", "a mapping"}[k]
}

// get returns the value of a mapping's key.
func (n *node) get(key string) (*node, bool) {
	for i := range n.items {
		if n.kind == kindMapping && n.items[i].key == key {
			return &n.items[i], true
		}
	}
	return nil, false
}

// at follows a field path such as "examples.match[0].text" as far as it leads.
func (n *node) at(path string) *node {
	for part := range strings.SplitSeq(path, ".") {
		name, index, indexed := strings.Cut(part, "[")
		child, ok := n.get(name)
		if !ok {
			return n
		}
		n = child
		if indexed {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || i >= len(n.items) || n.kind != kindList {
				return n
			}
			n = &n.items[i]
		}
	}
	return n
}
