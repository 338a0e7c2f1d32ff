package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// A line that is printed before its end has come reads as if it had been whole,
// wherever what has been read of it ends.
func TestInlineLongLine(t *testing.T) {
	const secret = " password=hunter22 größe "
	for _, before := range []string{strings.Repeat("x ", longLine/2-10), strings.Repeat("é", longLine/2-5)} {
		line := before + secret + "end\n"
		want := strings.ReplaceAll(line, "hunter22", "***")
		for at := longLine + 1; at < len(line)-1; at += 5 {
			var out bytes.Buffer
			p := newInline(bufio.NewWriter(&out), terminal{}, nil, annotate.NewMasker())
			p.read([]byte(line[:at]))
			p.read([]byte(line[at:]))
			if err := p.settled(int64(len(line))); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Fatalf("cut at %d: …%s", at, out.String()[len(before)-10:])
			}
		}
	}
	for text, want := range map[string]int{"a b c": 3, strings.Repeat("x", 9): 8, strings.Repeat("é", 9): 16, strings.Repeat("\x80", 9): 5} {
		if got := pieceEnd([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
