// Package stdout writes events as NDJSON: one JSON object a line, whole lines
// only, in the order in which they come.
package stdout

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// ErrClosed says that nobody reads any more (EPIPE). It stays; the program
// should end.
var ErrClosed = errors.New("standard output: its reader is gone")

// flushAt is how many bytes are collected before they are written without
// being asked for.
const flushAt = 64 << 10

// Writer writes events to standard output, or wherever. Safe for concurrent
// use. A reader that is slow makes Write wait; nothing is dropped.
type Writer struct {
	out    io.Writer
	encode func(dst []byte, ev *annotate.Event) []byte
	log    zerolog.Logger
	now    func() time.Time

	mu         sync.Mutex
	buf        []byte
	closed     bool
	complained time.Time
}

// New builds a Writer. encode appends an event's line (annotate.Encoder.Append);
// a newline is added where it adds none.
func New(out io.Writer, encode func(dst []byte, ev *annotate.Event) []byte, log zerolog.Logger) *Writer {
	return &Writer{out: out, encode: encode, log: log, now: time.Now}
}

// Write takes one event. It is written at the next Flush, or before if enough
// has come together. After an error the event is not lost: it stays in the
// buffer, and the next Flush goes on with the very byte that was next.
func (w *Writer) Write(ev annotate.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	w.buf = w.encode(w.buf, &ev)
	if n := len(w.buf); n > 0 && w.buf[n-1] != '\n' {
		w.buf = append(w.buf, '\n')
	}
	if len(w.buf) < flushAt {
		return nil
	}
	return w.flush()
}

// Flush writes everything. Call it when there is nothing else to do, and
// before the positions behind the events are committed.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	return w.flush()
}

func (w *Writer) flush() error {
	for len(w.buf) > 0 {
		n, err := w.out.Write(w.buf)
		if n < 0 || n > len(w.buf) {
			return fmt.Errorf("standard output: writer says it wrote %d of %d bytes", n, len(w.buf))
		}
		w.buf = w.buf[:copy(w.buf, w.buf[n:])]
		switch {
		case err == nil && n == 0:
			return w.failed(io.ErrShortWrite)
		case err == nil, errors.Is(err, io.ErrShortWrite) && n > 0:
			continue // some writers take what they like
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
			// Whoever shares the pipe with us has made it non-blocking.
			time.Sleep(time.Millisecond)
		default:
			return w.failed(err)
		}
	}
	return nil
}

// failed makes the error that is returned, and complains once a minute: the
// caller may try again several times a second.
func (w *Writer) failed(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		w.closed, w.buf = true, nil
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if now := w.now(); w.complained.IsZero() || now.Sub(w.complained) >= time.Minute {
		w.complained = now
		w.log.Warn().Err(err).Int("waiting_bytes", len(w.buf)).Msg("events cannot be written to standard output; trying again")
	}
	return fmt.Errorf("standard output: %w", err)
}
