package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Times of stopping, for all sources: what is there is read until nothing came
// for stopQuiet, for at most stopLimit.
const (
	stopQuiet = 100 * time.Millisecond
	stopLimit = 400 * time.Millisecond
)

// Stdin is a stream that can't be read twice: standard input.
type Stdin struct {
	in   io.Reader
	open Open
	pos  Positions
}

// NewStdin reads in. If it is an *os.File, pauses in it are noticed.
func NewStdin(in io.Reader, open Open, pos Positions) *Stdin { return &Stdin{in, open, pos} }

// Run reads to the end of the stream, or until ctx is done. It returns the
// error that ended reading; the end of the stream is none.
func (s *Stdin) Run(ctx context.Context) error {
	p := pipe{in: s.in, open: s.open, pos: s.pos, info: StreamInfo{Key: StdinKey, Input: "stdin", Line: 1}}
	if err := p.run(ctx); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}

// A pipe reads one stream from its begin to its end.
type pipe struct {
	in   io.Reader
	open Open
	pos  Positions
	info StreamInfo

	c    Consumer
	read int64
}

// Read implements io.Reader for the Consumer; it keeps reading's errors apart
// from the Consumer's own.
type lastError struct {
	io.Reader
	err error
}

func (r *lastError) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.err = err
	return n, err
}

func (p *pipe) run(ctx context.Context) error {
	p.c = p.open(p.info)
	in := &lastError{Reader: p.in}
	last, stop := time.Now(), time.Time{}
	for {
		now := time.Now()
		if stop.IsZero() && ctx.Err() != nil {
			last, stop = now, now.Add(stopLimit)
		}
		if !stop.IsZero() && (now.After(stop) || now.Sub(last) >= stopQuiet) {
			// What came last in full silence is no piece of something: a
			// line that nobody can read again.
			return p.end(!now.After(stop))
		}
		ready, err := p.wait(now.Sub(last))
		if err != nil {
			return errors.Join(err, p.end(true))
		}
		if !ready {
			p.c.Idle(time.Now())
			p.save()
			continue
		}
		n, err := p.c.ReadOnce(in)
		if err != nil && in.err == nil {
			return err // the Consumer's
		}
		if p.read += int64(n); n > 0 {
			last = time.Now()
		}
		p.save()
		switch {
		case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case errors.Is(err, io.EOF):
			return p.end(true)
		default:
			return errors.Join(err, p.end(true))
		}
	}
}

func (p *pipe) end(partial bool) error {
	err := p.c.End(partial)
	if err == nil {
		p.save()
	}
	return err
}

// save hands over the events of the last call, and the journald cursor.
func (p *pipe) save() {
	var pos []byte
	if c, ok := p.c.(cursored); ok {
		pos = []byte(c.Cursor())
	}
	p.pos.Store(p.info.Key, pos)
}

// wait waits for input, for a moment only.
func (p *pipe) wait(quiet time.Duration) (ready bool, err error) {
	f, ok := p.in.(*os.File)
	if !ok {
		return true, nil
	}
	limit := 50 * time.Millisecond
	if quiet > time.Second {
		limit = 100 * time.Millisecond
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(limit.Milliseconds()))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("poll: %w", err)
	}
	return n > 0, nil
}

// A fifo is a named pipe: writers come and go, and each time the last one has
// gone is the end of a stream.
type fifo struct {
	path string
	open Open
	pos  Positions
	info StreamInfo
}

// run reads until ctx is done.
func (f *fifo) run(ctx context.Context) error {
	// Without O_NONBLOCK, open would wait for the first writer.
	in, err := os.OpenFile(f.path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}
	for stopping := false; !stopping; {
		stopping = ctx.Err() != nil // then one last look: what is in the pipe goes when we close it
		n, _ := unix.Poll(fds, 100)
		switch {
		case n > 0 && fds[0].Revents&unix.POLLIN != 0:
			p := pipe{in: in, open: f.open, pos: f.pos, info: f.info}
			if err := p.run(ctx); err != nil {
				return err
			}
			stopping = ctx.Err() != nil
		case n > 0: // hung up: no writer, poll would not wait
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}
