package stdout

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func encode(dst []byte, ev *annotate.Event) []byte { return append(dst, ev.Message...) }

func event(text string) annotate.Event { return annotate.Event{Message: text} }

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestLinesAreWholeAndInOrder(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, encode, zerolog.Nop())
	if err := w.Write(event("one")); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Error("written before anybody asked for it")
	}
	if err := w.Write(event("two\n")); err != nil { // the encoder may end the line itself
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
}

func TestFullBufferIsWrittenWithoutFlush(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, encode, zerolog.Nop())
	for range 3 {
		if err := w.Write(event(strings.Repeat("x", 30_000))); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() != 3*30_001 {
		t.Errorf("%d bytes written", out.Len())
	}
}

// TestShortWrites: whatever pieces the writer takes, with or without saying
// that it was short, every byte arrives once.
func TestShortWrites(t *testing.T) {
	for name, short := range map[string]error{"silent": nil, "io.ErrShortWrite": io.ErrShortWrite, "EAGAIN": syscall.EAGAIN, "EINTR": syscall.EINTR} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			calls := 0
			w := New(writerFunc(func(p []byte) (int, error) {
				calls++
				n := min(len(p), calls%7)
				if n == 0 && !errors.Is(short, syscall.EAGAIN) && !errors.Is(short, syscall.EINTR) {
					n = 1
				}
				out.Write(p[:n])
				if n < len(p) {
					return n, short
				}
				return n, nil
			}), encode, zerolog.Nop())
			want := ""
			for i := range 50 {
				text := fmt.Sprintf("event %d", i)
				want += text + "\n"
				if err := w.Write(event(text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("got %q", out.String())
			}
		})
	}
}

func TestAnErrorLosesNothing(t *testing.T) {
	var out bytes.Buffer
	full := true
	w := New(writerFunc(func(p []byte) (int, error) {
		if full {
			out.Write(p[:2])
			return 2, syscall.ENOSPC
		}
		return out.Write(p)
	}), encode, zerolog.Nop())
	w.Write(event("one"))
	if err := w.Flush(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrClosed) {
		t.Fatalf("error %v", err)
	}
	w.Write(event("two"))
	full = false
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if out.String() != "one\ntwo\n" {
		t.Errorf("%q", out.String())
	}
}

func TestComplainsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := New(writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC }), encode, zerolog.New(&log))
		w.Write(event("one"))
		for range 179 {
			if w.Flush() == nil {
				t.Fatal("no error")
			}
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("%d complaints in 3 minutes:\n%s", n, log.String())
		}
	})
}

func TestNothingWrittenIsAnError(t *testing.T) {
	w := New(writerFunc(func([]byte) (int, error) { return 0, nil }), encode, zerolog.Nop())
	w.Write(event("one"))
	if err := w.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
	w = New(writerFunc(func(p []byte) (int, error) { return len(p) + 1, nil }), encode, zerolog.Nop())
	w.Write(event("one"))
	if err := w.Flush(); err == nil {
		t.Error("more bytes than there are, and no error")
	}
}

func TestReaderGone(t *testing.T) {
	signal.Ignore(syscall.SIGPIPE) // as cmd does; only descriptors 1 and 2 would need it
	defer signal.Reset(syscall.SIGPIPE)
	r, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	r.Close()
	w := New(pipe, encode, zerolog.Nop())
	w.Write(event("one"))
	if err := w.Flush(); !errors.Is(err, ErrClosed) || !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("error %v", err)
	}
	if err := w.Write(event("two")); !errors.Is(err, ErrClosed) {
		t.Errorf("after that: %v", err)
	}
	if err := w.Flush(); !errors.Is(err, ErrClosed) {
		t.Errorf("after that: %v", err)
	}
}

func TestConcurrentWritersDoNotMixLines(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, encode, zerolog.Nop())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			text := strings.Repeat(fmt.Sprint(g), 500)
			for i := range 200 {
				if err := w.Write(event(text)); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					w.Flush()
				}
			}
		})
	}
	wg.Wait()
	w.Flush()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 1600 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		if l != strings.Repeat(l[:1], 500) {
			t.Fatalf("mixed line %q", l)
		}
	}
}
