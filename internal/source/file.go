package source

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// lookEvery is how often a file is looked at that nothing is told of.
const lookEvery = 250 * time.Millisecond

// A file follows one open file to its end. Its fields are set before run; what
// others may see while it runs is in the atomics and under mu.
type file struct {
	key   string
	path  string // as the input named it
	real  string // links resolved
	k8s   annotate.K8s
	fd    *os.File
	start Start
	after <-chan struct{} // begin reading when this is closed; nil: at once
	env   *Files

	drained chan struct{} // closed when read to the end after it was retired, or ended
	wake    chan struct{} // retired has changed, or the file has
	retired atomic.Bool   // no path of the inputs leads here any more
	active  atomic.Int64  // time of the last turn of the loop, ns; 0: waiting for its turn
	size    atomic.Int64  // at the last look
	mtime   atomic.Int64  // likewise, ns

	mu   sync.Mutex
	now  position   // as of the last save
	past []position // contents that were truncated or rewritten here, newest last
	stat Stat

	// Of the goroutine:
	log       zerolog.Logger
	c         Consumer
	r         *reader
	growth    *growth
	empty     time.Time // since when nothing was in it, until something is
	growAfter time.Time // not to be followed before
	timer     *time.Timer
	faults    int
	failure   error // of run
}

// run reads the file until it is finished or ctx is done. Then what is on disk
// is read for a moment longer.
// The error is one of reading; the file may be opened again after it.
func (f *file) run(ctx context.Context) error {
	defer f.fd.Close()
	defer f.markDrained()
	if !f.turn(ctx) {
		return nil
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	f.timer = time.NewTimer(lookEvery)
	defer f.timer.Stop()
	defer f.unfollow()
	return f.loop(ctx)
}

// turn waits for the predecessor.
func (f *file) turn(ctx context.Context) bool {
	if f.after == nil {
		return true
	}
	select {
	case <-f.after:
		return true
	case <-ctx.Done():
	}
	select {
	case <-f.after:
		return true
	case <-time.After(stopLimit):
		return false // its bytes are read at the next start
	}
}

// begin finds out where to start reading.
func (f *file) begin(ctx context.Context) error {
	var err error
	if f.r, err = newReader(f.fd, 0); err != nil {
		return err
	}
	offset, line := int64(0), int64(1)
	pos, known := f.env.load(f.key)
	switch {
	case f.start == FromEnd:
		if offset = lineStart(f.fd, f.r.size); offset > 0 {
			line = 0
		}
	case f.start == FromBeginning, !known:
	case pos.fits(f.fd, f.r.size):
		offset, line = pos.Offset, pos.Line
		if pos.Head.Len == 0 && pos.Input == f.path { // was empty, and everything is its continuation
			f.empty = time.Unix(0, pos.Mtime)
		}
	default:
		f.replaced(ctx, pos, max(0, pos.Size-pos.Offset))
		return f.openAt(0, 1)
	}
	return f.openAt(offset, line)
}

// openAt starts a new stream of the file's content.
func (f *file) openAt(offset, line int64) error {
	r, err := newReader(f.fd, offset)
	if err != nil {
		return err
	}
	f.r = r
	if r.size == 0 && f.empty.IsZero() {
		f.empty = r.mtime
	}
	f.c = f.env.open(StreamInfo{Key: f.key, Input: "file", Path: f.path, K8s: f.k8s, Offset: offset, Line: line})
	f.save()
	return nil
}

// loop reads until there is a reason to end.
func (f *file) loop(ctx context.Context) error {
	last := time.Now()          // when something came, or the reason to wait began
	var stop, retired time.Time // when stopping has to be over; when it was retired
	var deleted time.Time
	for {
		gone := f.retired.Load()
		n, err := f.step(ctx)
		now := time.Now()
		f.active.Store(now.UnixNano())
		f.size.Store(f.r.size)
		f.mtime.Store(f.r.mtime.UnixNano())
		if n > 0 {
			last = now
		}
		if stop.IsZero() && ctx.Err() != nil {
			stop, last = now.Add(stopLimit), now
		}
		switch {
		case !gone:
			retired = time.Time{}
		case retired.IsZero():
			retired, last = now, now
		}
		if f.r.links > 0 {
			deleted = time.Time{}
		} else if deleted.IsZero() {
			deleted = now
		}

		switch {
		case !stop.IsZero() && now.After(stop):
			return f.end(false)
		case !deleted.IsZero() && now.Sub(deleted) >= f.env.holdLimit:
			f.lose(f.r.size - f.r.off)
			return f.end(true)
		case errors.Is(err, errRewritten):
			if err := f.rewritten(ctx); err != nil {
				return err
			}
			last = now
			continue
		case errors.Is(err, errHole):
			if err := f.skipHole(); err != nil {
				return err
			}
			last = now
			continue
		case err != nil && f.r.err == nil && err != io.EOF:
			return nil // the Consumer's, who knows
		case err != nil && err != io.EOF:
			if f.faults++; f.faults > 3 {
				return errors.Join(err, f.end(false))
			}
		case n > 0:
			f.faults = 0
			continue
		}

		if gone && err == io.EOF {
			f.markDrained()
		}
		if !stop.IsZero() && now.Sub(last) >= stopQuiet {
			return f.end(false)
		}
		if !retired.IsZero() && now.Sub(last) >= f.env.lateWait {
			return f.end(true)
		}
		f.idle(now)
		f.wait(ctx, now, last, gone, !stop.IsZero())
	}
}

// step reads once. Rewriting is noticed before anything of the new content is
// handed over.
func (f *file) step(ctx context.Context) (int, error) {
	n, err := f.c.ReadOnce(f.r)
	if n > 0 && err == nil {
		f.whileEmpty(ctx)
		f.empty = time.Time{}
		f.save()
		f.env.totals.bytes.Add(int64(n))
		f.mu.Lock()
		f.stat.LastRead, f.stat.LastError = time.Now(), ""
		f.mu.Unlock()
	}
	if n == 0 && !f.empty.Equal(f.r.mtime) {
		f.whileEmpty(ctx)
	}
	return n, err
}

// whileEmpty reads the copies of what came and went while we thought that the
// file was empty.
func (f *file) whileEmpty(ctx context.Context) {
	if !f.empty.IsZero() {
		f.readCopiesSince(ctx, f.empty)
		f.empty = f.r.mtime
	}
}

// idle tells the Consumer that nothing came, and saves what it makes of that.
func (f *file) idle(now time.Time) {
	f.c.Idle(now)
	if offset, _ := f.c.Resume(); offset != f.now.Offset { // f.now is written by this goroutine only
		f.save()
	}
}

// save hands the position over, with the events before it.
func (f *file) save() {
	offset, line := f.c.Resume()
	pos := f.r.position(f.real, f.path, offset, line)
	f.mu.Lock()
	f.now = pos
	f.stat.Offset, f.stat.Size = f.r.off, f.r.size
	f.mu.Unlock()
	f.env.pos.Store(f.key, pos.encode())
}

// end closes the stream. The last line without an end is complete when the
// file will not be written any more.
func (f *file) end(partial bool) error {
	if err := f.c.End(partial); err != nil {
		return nil // the Consumer's: what it did not handle is not saved
	}
	f.save()
	if f.r.links == 0 {
		f.env.pos.Delete(f.key)
	}
	return nil
}

// lose counts bytes that nobody can read any more.
func (f *file) lose(n int64) {
	if n <= 0 {
		return
	}
	f.env.totals.lost.Add(n)
	f.mu.Lock()
	f.stat.Lost += n
	f.mu.Unlock()
	f.log.Warn().Int64("bytes", n).Msg("bytes may be lost: they were gone before they could be read")
}

func (f *file) markDrained() {
	select {
	case <-f.drained:
	default:
		close(f.drained)
	}
}

// skipHole goes on behind the hole that comes next. It ends the line before it.
func (f *file) skipHole() error {
	if err := f.c.End(true); err != nil {
		return nil // the next ReadOnce says so too
	}
	_, line := f.c.Resume()
	return f.openAt(f.r.behind, line)
}

// rewritten ends the old content and begins the new one.
func (f *file) rewritten(ctx context.Context) error {
	f.mu.Lock()
	unread := max(0, f.stat.Size-f.r.off)
	f.mu.Unlock()
	old := f.r.position(f.real, f.path, f.r.off, 0)
	cp := f.env.findCopy(f, old)
	if err := f.c.End(cp == nil); err != nil {
		return nil // the next ReadOnce says so too
	}
	offset, line := f.c.Resume() // a last line without an end goes on in the copy
	f.settle(ctx, old, unread, cp, offset, line)
	return f.openAt(0, 1)
}

// replaced is rewritten for content that was replaced while nobody looked.
func (f *file) replaced(ctx context.Context, old position, unread int64) {
	f.settle(ctx, old, unread, f.env.findCopy(f, old), old.Offset, old.Line)
}

// settle accounts for content that is gone from this file: "copytruncate"
// copies a log before it truncates it, and a copy has what we could not read,
// from offset on.
func (f *file) settle(ctx context.Context, old position, unread int64, cp *copied, offset, line int64) {
	f.env.totals.truncations.Add(1)
	f.mu.Lock()
	f.stat.Truncated++
	f.past = append(f.past, old)
	if len(f.past) > 4 {
		f.past = f.past[1:]
	}
	f.mu.Unlock()
	if cp == nil {
		f.log.Info().Msg("file was truncated or rewritten: reading it from the beginning")
		f.lose(unread)
		return
	}
	f.log.Info().Str("copy", cp.path).Msg("file was copied and truncated: reading the rest of the copy, then the file from the beginning")
	f.readCopy(ctx, cp, offset, line)
	f.readCopiesSince(ctx, cp.mtime)
}

// readCopiesSince reads whole copies of content that was never looked at.
func (f *file) readCopiesSince(ctx context.Context, since time.Time) {
	for _, s := range f.env.copiesSince(f, since) {
		if c := f.env.openCopy(s); c != nil {
			f.readCopy(ctx, c, 0, 1)
		}
	}
}

// readCopy reads what the copy has from the offset on.
func (f *file) readCopy(ctx context.Context, cp *copied, offset, line int64) {
	defer cp.close()
	r, err := newReader(cp.fd, offset)
	if err != nil {
		f.log.Warn().Err(err).Str("copy", cp.path).Msg("copy cannot be read")
		return
	}
	c := f.env.open(StreamInfo{Key: cp.key, Input: "file", Path: f.path, K8s: f.k8s, Offset: offset, Line: line})
	save := func() {
		offset, line := c.Resume()
		f.env.pos.Store(cp.key, r.position(cp.path, f.path, offset, line).encode())
	}
	save()
	var stop time.Time
	for {
		if stop.IsZero() && ctx.Err() != nil {
			stop = time.Now().Add(stopLimit)
		}
		over := !stop.IsZero() && time.Now().After(stop)
		n, err := 0, io.EOF
		if !over {
			n, err = c.ReadOnce(r)
		}
		if err == nil && n > 0 {
			f.env.totals.bytes.Add(int64(n))
			f.active.Store(time.Now().UnixNano())
			save()
			continue
		}
		if err != nil && err != io.EOF && r.err == nil {
			return // the Consumer's
		}
		if c.End(!over) == nil {
			save()
		}
		return
	}
}

// wait waits for more: until the tail says so, or the next look is due.
func (f *file) wait(ctx context.Context, now, last time.Time, gone, stopping bool) {
	f.follow(now, last, gone || stopping)
	f.timer.Reset(f.pause(now.Sub(last), gone, stopping))
	done := ctx.Done()
	if stopping {
		done = nil
	}
	for {
		select {
		case l, ok := <-f.growth.lines():
			if !ok { // it does when the file is renamed; the looks go on
				f.unfollow()
				f.growAfter = now.Add(time.Second)
				return
			}
			before := f.growth.off
			if f.growth.off = l.SeekInfo.Offset; f.growth.off > f.r.off || f.growth.off <= before {
				return // it has grown, or begun again
			}
		case <-f.timer.C:
			return
		case <-f.wake:
			return
		case <-done:
			return
		}
	}
}

// pause returns how long to wait without being told. Files.scan tells within
// lookEvery that a file has changed which is not followed.
func (f *file) pause(quiet time.Duration, gone, stopping bool) time.Duration {
	switch {
	case stopping:
		return stopQuiet
	case f.growth == nil && !gone && quiet < lookEvery:
		return 10 * time.Millisecond
	case quiet < time.Second: // the Consumer closes open records when Idle says so
		return 50 * time.Millisecond
	case gone:
		return 100 * time.Millisecond
	case quiet < quietAfter:
		return time.Second // waking up is what following a quiet file costs
	}
	return 5 * time.Second
}

// follow has a tail on the file while it is live and we keep up with it.
func (f *file) follow(now, last time.Time, ended bool) {
	quiet := now.Sub(last) >= quietAfter
	if f.growth != nil && (ended || f.r.off-f.growth.off > maxLead || quiet && f.env.tails.Load() >= f.env.maxTails) {
		f.unfollow()
		f.growAfter = now.Add(time.Second)
	}
	if f.growth != nil || ended || quiet || now.Before(f.growAfter) || !f.env.notify || !local(f.fd) {
		return
	}
	if f.env.tails.Add(1) > f.env.maxTails {
		f.env.tails.Add(-1)
		f.growAfter = now.Add(time.Second)
		return
	}
	g, err := follow(f.fd, f.r.off)
	if err != nil {
		f.env.tails.Add(-1)
		f.growAfter = now.Add(30 * time.Second)
		f.log.Debug().Err(err).Msg("file cannot be followed by events; looking every 250 ms")
		return
	}
	f.growth = g
}

func (f *file) unfollow() {
	if f.growth != nil {
		f.growth.stop()
		f.growth = nil
		f.env.tails.Add(-1)
	}
}

// setRetired tells that no path leads here any more, or one does again.
func (f *file) setRetired(retired bool) bool {
	if f.retired.Swap(retired) == retired {
		return false
	}
	f.look()
	return true
}

// changed reports whether the file is not as it was when it was last looked at.
func (f *file) changed(info os.FileInfo) bool {
	return info.Size() != f.size.Load() || info.ModTime().UnixNano() != f.mtime.Load()
}

// look has the file looked at now.
func (f *file) look() {
	select {
	case f.wake <- struct{}{}:
	default: // about to
	}
}

func (f *file) snapshot() Stat {
	f.mu.Lock()
	s := f.stat
	f.mu.Unlock()
	s.Path, s.Real, s.K8s, s.Retired = f.path, f.real, f.k8s, f.retired.Load()
	if at := f.active.Load(); at != 0 {
		s.LastActive = time.Unix(0, at)
	}
	return s
}
