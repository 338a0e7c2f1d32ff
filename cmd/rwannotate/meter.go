package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A meter shows the progress of a long scan on a terminal: bytes, rate, time
// left and matches. It is silent elsewhere.
type meter struct {
	w      io.Writer
	on     bool
	in     *input
	bar    *progressbar.ProgressBar
	begun  time.Time
	events int64
}

// meterAfter is how long a scan runs before its progress is worth a line.
const meterAfter = 500 * time.Millisecond

func newMeter(w io.Writer, quiet bool) *meter {
	f, ok := w.(*os.File)
	return &meter{w: w, on: !quiet && ok && term.IsTerminal(int(f.Fd()))}
}

func (m *meter) begin(in *input) {
	m.in, m.begun, m.bar = in, time.Now(), nil
}

// add notes one read. The compressed bytes count where a file is compressed:
// only their sum is known beforehand.
func (m *meter) add(n int, events int64) {
	if !m.on || time.Since(m.begun) < meterAfter {
		return
	}
	if m.bar == nil {
		size := m.in.size
		if size == 0 {
			size = -1
		}
		m.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(m.w), progressbar.OptionShowBytes(true),
			progressbar.OptionSetWidth(20), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	if events != m.events {
		m.events = events
		m.bar.Describe(fmt.Sprintf("%s: %d known errors", m.in.name, events))
	}
	_ = m.bar.Set64(m.in.raw.n) // progress is a courtesy; a broken terminal must not end the scan
}

// clear takes the progress off the terminal.
func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
		m.bar = nil
	}
}
