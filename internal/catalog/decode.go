package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFile bounds a record's file; the largest ones published are some 10 KB.
const maxFile = 1 << 20

// maxLine bounds lineNumber against slips; no source file is that long.
const maxLine = 1_000_000

// field binds a key of the record format to the place of its value:
// *string, *int, *[]string or *Examples.
type field struct {
	key string
	ptr any
}

// fields lists the keys in canonical order: the one table that reading,
// writing and digesting a record share.
func (r *Record) fields() [29]field {
	return [...]field{
		{"id", &r.ID},
		{"repo", &r.Repo},
		{"slug", &r.Slug},
		{"errorMessage", &r.ErrorMessage},
		{"messagePattern", &r.MessagePattern},
		{"aliases", &r.Aliases},
		{"errorType", &r.ErrorType},
		{"severity", &r.Severity},
		{"role", &r.Role},
		{"minLevel", &r.MinLevel},
		{"targets", &r.Targets},
		{"versions", &r.Versions},
		{"filePath", &r.FilePath},
		{"lineNumber", &r.LineNumber},
		{"githubUrl", &r.GithubURL},
		{"documentation", &r.Documentation},
		{"triggerScenarios", &r.TriggerScenarios},
		{"commonSituations", &r.CommonSituations},
		{"solutions", &r.Solutions},
		{"handlingStrategy", &r.HandlingStrategy},
		{"preventionTips", &r.PreventionTips},
		{"tags", &r.Tags},
		{"backgroundTag", &r.BackgroundTag},
		{"references", &r.References},
		{"examples", &r.Examples},
		{"review", &r.Review},
		{"analyzedSha", &r.AnalyzedSha},
		{"analyzedAt", &r.AnalyzedAt},
		{"datasetVersion", &r.DatasetVersion},
	}
}

// ignored reports whether a published key is accepted and not kept: code
// excerpts (the link stays) and what nothing of ours uses.
func ignored(key string) bool {
	switch key {
	case "errorCode", "errorClass", "httpStatus", "sourceCode", "sourceCodeStart", "sourceCodeEnd", "exampleFix",
		"validationCode", "tryCatchPattern", "typeGuard", "contentChangedAt", "schemaVersion":
		return true
	}
	return false
}

// decoder reads one file into a record and collects what is wrong with it.
type decoder struct {
	file      string
	text      string
	published bool // JSON, somebody else's: more is forgiven
	root      node // the record's mapping
	record    Record
	problems  []Problem
}

// decode reads, completes and checks one file. The record is usable if it has
// an id and no problem is more than a warning.
func decode(file string, data []byte) (Record, []Problem) {
	d := decoder{file: file, published: isPublished(file), record: Record{File: file}}
	data, ok := d.bytes(data)
	if !ok {
		return d.record, d.problems
	}
	d.text = string(data)
	if !d.parse() {
		return d.record, d.problems
	}
	d.unwrap()
	d.assign()
	d.complete()
	d.validate()
	return d.record, d.problems
}

// bytes refuses what is no text file of a sane size.
func (d *decoder) bytes(data []byte) ([]byte, bool) {
	switch {
	case len(data) > maxFile:
		d.fileProblem(false, "the file is too large; a record has at most %d bytes", maxFile)
		return nil, false
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		d.fileProblem(false, "the file is UTF-16; save it as UTF-8")
		return nil, false
	case bytes.HasPrefix(data, []byte("\ufeff")):
		d.fileProblem(true, "the file begins with a byte order mark; save it as UTF-8 without BOM")
		data = data[len("\ufeff"):]
	}
	if len(bytes.TrimSpace(data)) == 0 {
		d.fileProblem(false, "the file is empty")
		return nil, false
	}
	if utf8.Valid(data) {
		return data, true
	}
	p := Problem{File: d.file, Message: "the file is not UTF-8 from here on"}
	p.place(string(data), invalidUTF8(data), 1)
	d.problems = append(d.problems, p)
	return nil, false
}

func invalidUTF8(data []byte) (off int) {
	for off < len(data) {
		r, size := utf8.DecodeRune(data[off:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		off += size
	}
	return off
}

func (d *decoder) parse() bool {
	root, problems := parse(d.text, d.published)
	for _, p := range problems {
		p.File = d.file
		d.problems = append(d.problems, p)
	}
	d.root = root
	if _, schema := root.get("$schema"); schema && d.published {
		return false // a JSON schema beside the records, such as ours
	}
	if len(problems) == 0 && root.kind != kindMapping {
		d.problem(&d.root, "", `a record is a mapping of keys to values; this is %s`, root.kind)
		return false
	}
	return len(problems) == 0
}

func parse(text string, isJSON bool) (node, []Problem) {
	if isJSON {
		return readJSON(text)
	}
	if n, ok := readPlain(text); ok {
		return n, nil
	}
	return readYAML(text)
}

// unwrap takes the record out of {"record": {…}, "datasetVersion": …}.
func (d *decoder) unwrap() {
	inner, ok := d.root.get("record")
	if !ok || inner.kind != kindMapping {
		return
	}
	for i := range d.root.items {
		switch member := &d.root.items[i]; member.key {
		case "record":
		case "datasetVersion":
			d.text1(member, member.key, &d.record.DatasetVersion)
		default:
			d.unknown(member)
		}
	}
	d.root = *inner
}

// assign copies every value into the record.
func (d *decoder) assign() {
	fields := d.record.fields()
	for i := range d.root.items {
		member := &d.root.items[i]
		if d.duplicate(&d.root, i) {
			continue
		}
		f := slices.IndexFunc(fields[:], func(f field) bool { return f.key == member.key })
		switch {
		case f >= 0:
			d.set(member, member.key, fields[f].ptr)
		case !ignored(member.key):
			d.unknown(member)
		}
	}
}

// duplicate reports a key that its mapping had before.
func (d *decoder) duplicate(n *node, i int) bool {
	key := n.items[i].key
	for j := range i {
		if n.items[j].key == key {
			first := Problem{}
			first.place(d.text, int(n.items[j].keyAt), 1)
			d.keyProblem(d.published, &n.items[i], key, "the key is there twice; the first one is on line %d", first.Line)
			return true
		}
	}
	return false
}

func (d *decoder) set(n *node, path string, ptr any) {
	switch ptr := ptr.(type) {
	case *string:
		d.text1(n, path, ptr)
	case *int:
		d.number(n, path, ptr)
	case *[]string:
		d.texts(n, path, ptr)
	case *Examples:
		d.examples(n, path, ptr)
	}
}

func (d *decoder) text1(n *node, path string, to *string) {
	switch n.kind {
	case kindNull:
	case kindScalar:
		*to = n.text
	case kindMapping:
		d.problem(n, path, `must be text, is a mapping; a value that contains ": " must be in quotes`)
	default:
		d.problem(n, path, "must be text, is %s", n.kind)
	}
}

func (d *decoder) number(n *node, path string, to *int) {
	if n.kind == kindNull {
		return
	}
	v, err := strconv.Atoi(n.text)
	if n.kind != kindScalar || err != nil || v < 0 || v > maxLine {
		d.problem(n, path, "must be a whole number from 0 to %d", maxLine)
		return
	}
	*to = v
}

func (d *decoder) texts(n *node, path string, to *[]string) {
	switch n.kind {
	case kindNull:
	case kindList:
		list := make([]string, len(n.items))
		for i := range n.items {
			d.text1(&n.items[i], fmt.Sprintf("%s[%d]", path, i), &list[i])
		}
		*to = list
	default:
		d.problem(n, path, `must be a list ("- …" lines or [a, b]), is %s`, n.kind)
	}
}

// examples reads {match: [{text, args}], reject: [text]}. A bare text among
// the matches stands for one without arguments.
func (d *decoder) examples(n *node, path string, to *Examples) {
	d.members(n, path, func(value *node, path string) {
		switch value.key {
		case "match":
			if value.kind == kindNull {
				return
			}
			if value.kind != kindList {
				d.problem(value, path, "must be a list, is %s", value.kind)
				return
			}
			to.Match = make([]Example, len(value.items))
			for i := range value.items {
				d.example(&value.items[i], fmt.Sprintf("%s[%d]", path, i), &to.Match[i])
			}
		case "reject":
			d.texts(value, path, &to.Reject)
		default:
			d.unknown(value, "match", "reject")
		}
	})
}

func (d *decoder) example(n *node, path string, to *Example) {
	d.members(n, path, func(value *node, path string) {
		switch value.key {
		case "text":
			d.text1(value, path, &to.Text)
		case "args":
			d.texts(value, path, &to.Args)
		default:
			d.unknown(value, "text", "args")
		}
	})
	if n.kind == kindMapping && to.Text == "" {
		d.problem(n, path, "has no text")
	}
}

// members calls f for each member of a mapping.
func (d *decoder) members(n *node, path string, f func(value *node, path string)) {
	switch n.kind {
	case kindNull:
	case kindMapping:
		for i := range n.items {
			if !d.duplicate(n, i) {
				f(&n.items[i], path+"."+n.items[i].key)
			}
		}
	default:
		d.problem(n, path, "must be a mapping of keys to values, is %s", n.kind)
	}
}

// unknown reports a member whose key we don't know; known are the keys it may
// be a slip for, by default the record's.
func (d *decoder) unknown(member *node, known ...string) {
	if len(known) == 0 {
		for _, f := range (&Record{}).fields() {
			known = append(known, f.key)
		}
	}
	hint := ""
	if near := nearest(member.key, known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	d.keyProblem(d.published, member, "", "unknown key %q%s", member.key, hint)
}

func (d *decoder) problem(n *node, path, format string, args ...any) {
	d.warnIf(false, n, path, format, args...)
}

func (d *decoder) warnIf(warning bool, n *node, path, format string, args ...any) {
	p := Problem{File: d.file, Field: path, Message: fmt.Sprintf(format, args...), Warning: warning}
	p.place(d.text, int(n.off), int(n.width))
	d.problems = append(d.problems, p)
}

// keyProblem is one of a mapping's member as such, not of its value.
func (d *decoder) keyProblem(warning bool, member *node, path, format string, args ...any) {
	key := node{off: member.keyAt, width: int32(len(member.key))}
	d.warnIf(warning, &key, path, format, args...)
}

// fileProblem is one of the file as a whole.
func (d *decoder) fileProblem(warning bool, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Message: fmt.Sprintf(format, args...), Warning: warning})
}

// nearest returns the candidate that word is most likely a slip for, or "".
func nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	best, bestDistance := "", min(max(2, len(word)/3)+1, len(word))
	for _, c := range candidates {
		if d := distance(word, strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best != "" || len(word) < 4 {
		return best
	}
	for _, c := range candidates {
		if strings.Contains(strings.ToLower(c), word) {
			return c
		}
	}
	return ""
}

// distance is the number of single-byte edits between two words.
func distance(a, b string) int {
	if len(a) > 40 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
