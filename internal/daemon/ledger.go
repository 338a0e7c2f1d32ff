package daemon

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/sink/stdout"
	"github.com/rwannotate/rwannotate/internal/source"
	"github.com/rwannotate/rwannotate/internal/spool"
)

// Output takes every event. After an error that is not stdout.ErrClosed, Flush
// goes on where it stopped.
type Output interface {
	Write(ev annotate.Event) error
	Flush() error
}

// State is where positions and queued events are durable.
type State interface {
	Positions(f func(key string, pos []byte))
	Commit(b spool.Batch) error
}

// Delivery decides what of the events is queued for delivery. Calls come one
// at a time, at least once a commit interval, also without events.
type Delivery interface {
	// Fold adds to b the queue entries that events call for, and whatever state
	// of its own has to be durable with them. It must not keep events. last is
	// the end: no further call comes.
	Fold(events []annotate.Event, now time.Time, last bool, b *spool.Batch)
}

const (
	commitEvents = 1000 // so many events are committed before the interval is over
	maxWaiting   = 4000 // so many may wait for a commit before the streams wait
	complainEach = time.Minute
)

// LedgerOptions of a Ledger. Zero values: nothing is written, remembered or
// delivered.
type LedgerOptions struct {
	Output    Output
	State     State
	Delivery  Delivery
	Full      func() bool   // whether the queues take no more: streams that can be read again wait
	Committed func()        // called after each commit that queued events
	Interval  time.Duration // of commits; default 200 ms
	Log       zerolog.Logger
}

// Ledger keeps each stream's events and position together until they are
// durable. It implements source.Positions.
type Ledger struct {
	opt      LedgerOptions
	fatal    chan error
	blocked  atomic.Int64 // streams that wait for the output
	early    chan struct{}
	complain time.Time

	mu        sync.Mutex
	room      *sync.Cond // of mu: a commit is over, or waiting is
	released  bool       // nobody waits any more
	positions map[string][]byte
	streams   map[string]*stream
	dirty     map[string][]byte // positions since the last commit; nil: deleted
	cursor    string            // likewise
	events    []annotate.Event  // likewise, only if there is a Delivery
	unsaved   int               // events that are not durable yet: these, and those of failed commits
	full      bool              // as of the last commit
	commits   int               // number of commits begun
	done      int               // the last one that succeeded

	batch spool.Batch // of the committer: what a failed commit left
}

// A stream has the events since its last position. They belong to its
// goroutine.
type stream struct {
	events []annotate.Event
	wrote  bool
	failed bool
}

// NewLedger builds a Ledger that knows the positions in the State.
func NewLedger(o LedgerOptions) *Ledger {
	if o.Interval == 0 {
		o.Interval = 200 * time.Millisecond
	}
	l := &Ledger{opt: o, fatal: make(chan error, 1), early: make(chan struct{}, 1),
		positions: map[string][]byte{}, streams: map[string]*stream{}, dirty: map[string][]byte{}}
	l.room = sync.NewCond(&l.mu)
	if o.State != nil {
		o.State.Positions(func(key string, pos []byte) { l.positions[key] = pos })
	}
	return l
}

// Fatal gives the error after which going on makes no sense, once.
func (l *Ledger) Fatal() <-chan error { return l.fatal }

// Blocked reports whether a stream waits for the output or the queue.
func (l *Ledger) Blocked() bool { return l.blocked.Load() > 0 }

// Open makes an opener for sources of one for consumers that emit events.
func (l *Ledger) Open(open func(source.StreamInfo, func(*annotate.Event) error) source.Consumer) source.Open {
	return func(info source.StreamInfo) source.Consumer {
		l.mu.Lock()
		s := l.streams[info.Key]
		if s == nil { // else the file goes on with new content
			s = &stream{}
			l.streams[info.Key] = s
		}
		l.mu.Unlock()
		return open(info, func(ev *annotate.Event) error { return l.emit(s, ev) })
	}
}

// emit writes an event and keeps it until its position is known.
func (l *Ledger) emit(s *stream, ev *annotate.Event) error {
	if l.opt.Output != nil {
		if err := l.output(func() error { return l.opt.Output.Write(*ev) }); err != nil {
			s.failed = true
			return err
		}
		s.wrote = true
	}
	if l.opt.Delivery != nil {
		s.events = append(s.events, *ev)
	}
	return nil
}

// output calls the output and, if that fails for a reason that may pass, tries
// again until it succeeds. It fails for good when nobody reads any more.
func (l *Ledger) output(call func() error) error {
	l.blocked.Add(1)
	defer l.blocked.Add(-1)
	for err := call(); err != nil; err = l.opt.Output.Flush() {
		if errors.Is(err, stdout.ErrClosed) {
			select {
			case l.fatal <- err:
			default:
			}
			return err
		}
		if l.pauseUnlessReleased(time.Second) {
			return err
		}
	}
	return nil
}

func (l *Ledger) pauseUnlessReleased(d time.Duration) (released bool) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		l.mu.Lock()
		released = l.released
		l.mu.Unlock()
		if released {
			return true
		}
	}
	return false
}

// Load implements source.Positions.
func (l *Ledger) Load(key string) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pos, ok := l.positions[key]
	return pos, ok
}

// Each implements source.Positions. f may call back.
func (l *Ledger) Each(f func(key string, pos []byte)) {
	l.mu.Lock()
	positions := maps.Clone(l.positions)
	l.mu.Unlock()
	for key, pos := range positions {
		f(key, pos)
	}
}

// Delete implements source.Positions.
func (l *Ledger) Delete(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.positions, key)
	l.dirty[key] = nil
	if s := l.streams[key]; s != nil && len(s.events) == 0 {
		delete(l.streams, key)
	}
}

// Store implements source.Positions: the events since the last call, and the
// position behind them, will be committed together. It waits while too much
// waits already. An empty position is none.
func (l *Ledger) Store(key string, pos []byte) {
	l.mu.Lock()
	s := l.streams[key]
	l.mu.Unlock()
	if s == nil {
		s = &stream{}
	}
	if s.failed || s.wrote && l.output(l.opt.Output.Flush) != nil {
		s.failed = true // an event did not get out: its position must not be saved
		return
	}
	s.wrote = false
	queued := len(s.events) > 0

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(pos) == 0, bytes.Equal(pos, l.positions[key]):
	case key == source.StdinKey:
		l.cursor = string(pos)
	default:
		l.positions[key], l.dirty[key] = pos, pos
	}
	l.events = append(l.events, s.events...)
	l.unsaved += len(s.events)
	clear(s.events)
	s.events = s.events[:0]
	if queued {
		l.wait(key == source.StdinKey)
	}
}

// wait holds a stream that has just added events. What was read from standard
// input is nowhere else: it is durable before more is read. l.mu is held.
func (l *Ledger) wait(stdin bool) {
	if len(l.events) >= commitEvents || stdin {
		l.hurry()
	}
	mine := l.commits + 1 // the next commit takes what was added
	for !l.released {
		switch {
		case stdin && l.opt.State != nil && l.done < mine:
		case l.unsaved >= maxWaiting:
		case !stdin && l.full:
		default:
			return
		}
		l.blocked.Add(1)
		l.room.Wait()
		l.blocked.Add(-1)
	}
}

func (l *Ledger) hurry() {
	select {
	case l.early <- struct{}{}:
	default:
	}
}

// letGo ends all waiting, for the stop.
func (l *Ledger) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	l.room.Broadcast()
}

// run commits until ctx is done.
func (l *Ledger) run(ctx context.Context) {
	tick := time.NewTicker(l.opt.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.early:
		}
		if err := l.commit(false); err != nil {
			if now := time.Now(); now.Sub(l.complain) >= complainEach {
				l.complain = now
				l.opt.Log.Warn().Err(err).Msg("positions and queued events cannot be saved; trying again (a crash now would repeat events)")
			}
		}
	}
}

// finish commits what is left when all streams have ended.
func (l *Ledger) finish() error { return l.commit(true) }

// commit makes everything durable that was stored so far. What a failed commit
// held is part of the next one.
func (l *Ledger) commit(last bool) error {
	number, events, unsaved := l.take()
	b := &l.batch
	if l.opt.Delivery != nil {
		l.opt.Delivery.Fold(events, time.Now(), last, b)
	}
	var err error
	if l.opt.State != nil && !b.Empty() {
		err = l.opt.State.Commit(*b)
	}
	full := l.opt.Full != nil && l.opt.Full()
	queued := len(b.Events) > 0
	if err == nil {
		*b = spool.Batch{}
	}

	l.mu.Lock()
	if l.full = full; err == nil {
		l.done = number
		l.unsaved -= unsaved
	}
	l.room.Broadcast()
	l.mu.Unlock()
	if err == nil && queued && l.opt.Committed != nil {
		l.opt.Committed()
	}
	return err
}

// take moves what was stored into the batch.
func (l *Ledger) take() (number int, events []annotate.Event, unsaved int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.batch
	if b.Positions == nil {
		b.Positions = map[string][]byte{}
	}
	maps.Copy(b.Positions, l.dirty)
	if l.cursor != "" {
		b.Cursor = l.cursor
	}
	events = l.events
	l.dirty, l.cursor, l.events = map[string][]byte{}, "", nil
	l.commits++
	return l.commits, events, l.unsaved
}
