package main

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// A terminal is where text for people goes: its width, and whether it shows
// colours.
type terminal struct {
	w     io.Writer
	width int  // columns; 80 where it cannot be told
	tty   bool // a person is looking
	color bool
}

const (
	minWidth = 40
	maxWidth = 100 // longer lines are hard to read
)

// newTerminal looks at w. color is auto, always or never; auto honours
// NO_COLOR, CLICOLOR_FORCE and TERM=dumb.
func newTerminal(w io.Writer, color string) terminal {
	t := terminal{w: w, width: 80}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		t.tty = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			t.width = min(max(width, minWidth), maxWidth)
		}
	}
	switch color {
	case "always":
		t.color = true
	case "never":
	default:
		t.color = os.Getenv("NO_COLOR") == "" && (t.tty && os.Getenv("TERM") != "dumb" || os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("CLICOLOR_FORCE") != "0")
	}
	return t
}

// Colours by meaning.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	yellow = "33"
	cyan   = "36"
)

// paint colours s for a terminal that shows colours.
func (t terminal) paint(code, s string) string {
	if !t.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// severityColor is the colour of a severity or level.
func severityColor(s string) string {
	switch s {
	case "critical", "fatal":
		return bold + ";" + red
	case "error":
		return red
	case "warning", "warn":
		return yellow
	}
	return cyan
}

// wrap breaks text into lines of at most width columns. Words longer than
// that stand alone.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// cutWidth shortens s to width columns.
func cutWidth(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(0, width-1)]) + "…"
}

// printable replaces what would drive a terminal, or change the direction of
// writing in it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// visible writes JSON with nothing in it that a terminal obeys: log texts and
// paths are in it.
type visible struct{ w io.Writer }

func (v visible) Write(p []byte) (int, error) {
	if _, err := v.w.Write(annotate.AppendVisible(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
