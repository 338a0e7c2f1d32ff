package main

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
)

// An inline report prints the log itself, with the explanation under the first
// line of each record that holds a known error, as compilers do. Lines wait
// until it is decided whether they do.
type inline struct {
	w       *bufio.Writer
	term    terminal
	matcher *match.Matcher
	mask    *annotate.Masker
	pending []byte // read, not yet printed
	offset  int64  // of pending[0] in the input
	events  []annotate.Event
	clean   []byte
}

func newInline(w *bufio.Writer, term terminal, m *match.Matcher, mask *annotate.Masker) *inline {
	return &inline{w: w, term: term, matcher: m, mask: mask}
}

// longLine is the length from which a line is printed before its end has come.
const longLine = 256 << 10

func (p *inline) read(b []byte) {
	p.pending = append(p.pending, b...)
	if len(p.pending) > longLine && bytes.IndexByte(p.pending, '\n') < 0 {
		p.piece(pieceEnd(p.pending)) // the rest is printed as the line's end
	}
}

// pieceEnd is where a long line is cut: between words, as no half of a secret or
// of a letter is recognised.
func pieceEnd(b []byte) int {
	if i := bytes.LastIndexByte(b, ' '); i > 0 {
		return i
	}
	end := len(b) - 1
	for end > len(b)-utf8.UTFMax && !utf8.RuneStart(b[end]) {
		end--
	}
	return end
}

// piece prints the first n bytes of a line. Its explanations come later, under
// the whole line, so that nothing has to be decided yet.
func (p *inline) piece(n int) {
	p.print(p.pending[:n])
	p.offset += int64(n)
	p.pending = append(p.pending[:0], p.pending[n:]...)
}

func (p *inline) event(ev *annotate.Event) error {
	p.events = append(p.events, *ev)
	return nil
}

func (p *inline) settled(offset int64) error {
	for p.offset < offset && len(p.pending) > 0 {
		end := bytes.IndexByte(p.pending, '\n') + 1
		if end == 0 {
			end = len(p.pending)
		}
		p.line(p.pending[:end])
		p.offset += int64(end)
		p.pending = p.pending[end:]
	}
	if len(p.pending) == 0 {
		p.pending = nil
	}
	return p.w.Flush()
}

// print writes a part of the log, its secrets masked as in events. What is in it
// must not drive the terminal.
func (p *inline) print(b []byte) {
	p.clean = logline.Clean(p.clean[:0], b)
	p.w.WriteString(p.mask.Mask(printable(string(p.clean))))
}

// line prints one line and the explanations that belong under it.
func (p *inline) line(b []byte) {
	p.print(bytes.TrimRight(b, "\r\n"))
	p.w.WriteByte('\n')
	kept := p.events[:0]
	for i := range p.events {
		if ev := p.events[i]; ev.Origin.Offset < p.offset+int64(len(b)) {
			p.explain(&ev)
		} else {
			kept = append(kept, ev)
		}
	}
	p.events = kept
}

func (p *inline) explain(ev *annotate.Event) {
	r, ok := p.matcher.Lookup(ev.Error.ID)
	if !ok {
		return
	}
	margin := "  " + p.term.paint(severityColor(ev.Level), "│") + " "
	fmt.Fprintf(p.w, "  %s %s  %s\n", p.term.paint(severityColor(ev.Level), "╰─"), p.term.paint(severityColor(r.Severity), r.Severity), p.term.paint(bold, name(r)))
	for _, line := range wrap(r.Documentation, p.term.width-4) {
		fmt.Fprintf(p.w, "%s%s\n", margin, line)
	}
	for i, solution := range r.Solutions {
		for j, line := range wrap(solution, p.term.width-8) {
			lead := fmt.Sprintf("%d. ", i+1)
			if j > 0 {
				lead = strings.Repeat(" ", len(lead))
			}
			fmt.Fprintf(p.w, "%s %s%s\n", margin, lead, line)
		}
	}
}

func (p *inline) finish(totals) error { return p.w.Flush() }
