package gen

import (
	_ "embed"
	"path"
	"strconv"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

//go:embed templates.tsv
var templatesTSV string

// A Template is one message as RisingWave's source has it.
type Template struct {
	Level string // info, debug, warn; log: an error! statement's own text; error, panic: an error's text
	File  string // src/stream/src/executor/…
	Line  int
	Text  string // with Rust placeholders

	parsed []catalog.Piece // set by LoadTemplates, which makes pieces cheap
}

// Templates are sorted by what they are good for.
type Templates struct {
	Info, Debug, Warn []Template // healthy lines
	Log               []Template // texts under which errors are logged
	Errors            []Template // the errors themselves

	known []Template // those that Write puts into logs
}

// LoadTemplates reads the embedded table: level, file, line, template.
func LoadTemplates() Templates {
	var ts Templates
	for row := range strings.Lines(templatesTSV) {
		col := strings.SplitN(strings.TrimSuffix(row, "\n"), "\t", 4)
		line, _ := strconv.Atoi(col[2])
		t := Template{Level: col[0], File: col[1], Line: line, Text: col[3]}
		t.parsed = catalog.ParseTemplate(t.Text)
		switch t.Level {
		case "info":
			ts.Info = append(ts.Info, t)
		case "debug":
			ts.Debug = append(ts.Debug, t)
		case "warn":
			ts.Warn = append(ts.Warn, t)
		case "log":
			ts.Log = append(ts.Log, t)
		case "error", "panic":
			ts.Errors = append(ts.Errors, t)
		}
	}
	ts.known = knownErrors(ts, knownCount)
	return ts
}

// Target is the log target of the template's file: the Rust module path.
func (t Template) Target() string {
	crate, module, ok := strings.Cut(strings.TrimPrefix(t.File, "src/"), "/src/")
	if !ok {
		return "risingwave_common"
	}
	crate = "risingwave_" + strings.ReplaceAll(crate, "/", "_")
	module = strings.TrimSuffix(strings.TrimSuffix(module, path.Ext(module)), "/mod")
	if module == "lib" || module == "mod" {
		return crate
	}
	return crate + "::" + strings.ReplaceAll(module, "/", "::")
}

// pieces is the template cut at its placeholders.
func (t Template) pieces() []catalog.Piece {
	if t.parsed == nil {
		return catalog.ParseTemplate(t.Text)
	}
	return t.parsed
}

// Literal is the longest run of the template that looks the same in every log
// form: no quotes, backslashes or control characters.
func (t Template) Literal() string {
	longest := ""
	for _, p := range t.pieces() {
		for _, run := range strings.FieldsFunc(p.Literal, func(r rune) bool { return r == '"' || r == '\\' || r < ' ' }) {
			if len(run) > len(longest) {
				longest = run
			}
		}
	}
	return longest
}
