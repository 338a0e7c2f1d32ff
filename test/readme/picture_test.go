package readme

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "draw the picture in README.md anew")

// TestPicture draws the picture in README.md from what the program prints.
func TestPicture(t *testing.T) {
	p := newPlace(t)
	cmd := exec.Command(p.bin+"/rwannotate", "scan", "-o", "inline", "--color", "always", "test/corpus/logs/"+bundled)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := svg("rwannotate scan -o inline compute-0.log", string(out))
	const file = "pictures/inline.svg"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the picture does not show what the program prints: go test ./test/readme -run Picture -update")
	}
}

const (
	columns    = 92
	cellWidth  = 8.43 // of a monospaced font of 14 pixels
	cellHeight = 20
	margin     = 16
)

// colours of a dark terminal, by the SGR codes that the program uses.
var colours = map[string]string{"31": "#ff7b72", "33": "#e3b341", "36": "#79c0ff"}

// svg draws text with SGR codes as a terminal would show it.
func svg(command, text string) []byte {
	rows := append([]string{"\x1b[2m$\x1b[0m " + command, ""}, wrapped(text)...)
	var b bytes.Buffer
	width, height := columns*cellWidth+2*margin, len(rows)*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="Output of %s">`+"\n",
		width, height, width, height, html.EscapeString(command))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n")
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14" fill="#e6edf3">`+"\n")
	for i, row := range rows {
		if row != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", margin, margin+14+i*cellHeight, spans(row))
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// spans turns one row into pieces of one style each.
func spans(row string) string {
	var b strings.Builder
	style := ""
	for row != "" {
		at := sgr.FindStringSubmatchIndex(row)
		if at == nil {
			at = []int{len(row), len(row), len(row), len(row)}
		}
		if piece := html.EscapeString(row[:at[0]]); style == "" || piece == "" {
			b.WriteString(piece)
		} else {
			fmt.Fprintf(&b, "<tspan%s>%s</tspan>", style, piece)
		}
		if at[0] < at[1] {
			style = styleOf(row[at[2]:at[3]])
		}
		row = row[at[1]:]
	}
	return b.String()
}

func styleOf(codes string) (style string) {
	for code := range strings.SplitSeq(codes, ";") {
		switch {
		case code == "1":
			style += ` font-weight="bold"`
		case code == "2":
			style += ` fill-opacity="0.6"`
		case colours[code] != "":
			style += ` fill="` + colours[code] + `"`
		}
	}
	return style
}

// wrapped breaks rows at the edge of the terminal. No row that is too long has
// colours here.
func wrapped(text string) []string {
	var rows []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for utf8.RuneCountInString(sgr.ReplaceAllString(line, "")) > columns {
			r := []rune(line)
			rows = append(rows, string(r[:columns]))
			line = string(r[columns:])
		}
		rows = append(rows, line)
	}
	return rows
}
