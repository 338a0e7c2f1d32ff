package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/sink/stdout"
	"github.com/rwannotate/rwannotate/internal/source"
	"github.com/rwannotate/rwannotate/internal/spool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output keeps what was written, with and without flush.
type output struct {
	mu      sync.Mutex
	buf     []string
	flushed []string
	err     error         // of Write and Flush
	gate    chan struct{} // Write waits while it is open
}

func (o *output) Write(ev annotate.Event) error {
	if o.gate != nil {
		<-o.gate
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, ev.Message)
	return o.err
}

func (o *output) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.flushed = append(o.flushed, o.buf...)
		o.buf = nil
	}
	return o.err
}

func (o *output) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *output) out() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.flushed...)
}

// state keeps what was committed.
type state struct {
	mu        sync.Mutex
	positions map[string]string
	queued    []string
	cursor    string
	commits   int
	err       error
	check     func(*state)
}

func newState() *state { return &state{positions: map[string]string{}} }

func (s *state) Positions(f func(string, []byte)) {
	for k, v := range s.positions {
		f(k, []byte(v))
	}
}

func (s *state) Commit(b spool.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.commits++
	for k, v := range b.Positions {
		if v == nil {
			delete(s.positions, k)
		} else {
			s.positions[k] = string(v)
		}
	}
	for _, data := range b.Events["q"] {
		s.queued = append(s.queued, string(data))
	}
	if b.Cursor != "" {
		s.cursor = b.Cursor
	}
	if s.check != nil {
		s.check(s)
	}
	return nil
}

func (s *state) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *state) get() (queued int, position string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queued), s.positions["k"]
}

// each queues every event.
type each struct{}

func (each) Fold(events []annotate.Event, _ time.Time, _ bool, b *spool.Batch) {
	for _, ev := range events {
		if b.Events == nil {
			b.Events = map[string][][]byte{}
		}
		b.Events["q"] = append(b.Events["q"], []byte(ev.Message))
	}
}

// script is a source that does what a test says.
type script struct {
	run     func(ctx context.Context) error
	stalled atomic.Pointer[string]
}

func (s *script) Run(ctx context.Context) error { return s.run(ctx) }

func (s *script) Stalled(time.Duration) []string {
	if name := s.stalled.Load(); name != nil {
		return []string{*name}
	}
	return nil
}

// emitter is a stream that emits numbered events.
type emitter struct {
	l    *Ledger
	key  string
	emit func(*annotate.Event) error
	n    int
}

func (l *Ledger) emitter(key string) *emitter {
	e := &emitter{l: l, key: key}
	l.Open(func(_ source.StreamInfo, emit func(*annotate.Event) error) source.Consumer {
		e.emit = emit
		return nil
	})(source.StreamInfo{Key: key})
	return e
}

// put emits n events and stores the position behind them.
func (e *emitter) put(n int) error {
	for range n {
		e.n++
		if err := e.emit(&annotate.Event{Message: fmt.Sprintf("%s:%d", e.key, e.n)}); err != nil {
			return err
		}
	}
	e.l.Store(e.key, []byte(strconv.Itoa(e.n)))
	return nil
}

// Whenever a commit is over, for each stream exactly the events before its
// position are queued, and all of them have been written.
func TestEventsAndPositionsAreOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, st := &output{}, newState()
		st.check = func(s *state) {
			queued, written := map[string]int{}, map[string]bool{}
			for _, w := range out.out() {
				written[w] = true
			}
			for _, q := range s.queued {
				key, _, _ := strings.Cut(q, ":")
				queued[key]++
				if !written[q] {
					t.Errorf("%s is queued and was not written", q)
				}
			}
			for key, pos := range s.positions {
				if n, _ := strconv.Atoi(pos); queued[key] != n {
					t.Errorf("%s: position %s, %d events queued", key, pos, queued[key])
				}
			}
		}
		l := NewLedger(LedgerOptions{Output: out, State: st, Delivery: each{}})
		var sources []Runner
		for i := range 4 {
			e := l.emitter(fmt.Sprintf("s%d", i))
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			sources = append(sources, &script{run: func(ctx context.Context) error {
				for range 200 {
					if err := e.put(rnd.IntN(40)); err != nil {
						return err
					}
					if rnd.IntN(4) == 0 {
						time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
					}
				}
				return nil
			}})
		}
		if err := New(Options{Ledger: l, Sources: sources}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st.commits < 5 || len(st.queued) != len(out.out()) {
			t.Errorf("%d commits, %d queued, %d written", st.commits, len(st.queued), len(out.out()))
		}
		for key, pos := range st.positions {
			if v, ok := l.Load(key); !ok || string(v) != pos {
				t.Errorf("Load(%s) = %s", key, v)
			}
		}
	})
}

func TestPositionsComeFromTheState(t *testing.T) {
	st := newState()
	st.positions["a"] = "1"
	l := NewLedger(LedgerOptions{State: st})
	if v, ok := l.Load("a"); !ok || string(v) != "1" {
		t.Errorf("%q", v)
	}
	l.Delete("a")
	l.Store("b", []byte("2"))
	l.Store("c", nil)
	got := map[string]string{}
	l.Each(func(k string, v []byte) { got[k] = string(v) })
	if diff := cmp.Diff(map[string]string{"b": "2"}, got); diff != "" {
		t.Error(diff)
	}
	if err := l.finish(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "2"}, st.positions); diff != "" {
		t.Error(diff)
	}
}

// loop runs a Daemon with one source that puts one event every 10 ms.
func loop(l *Ledger, tweak func(*Options)) (stop func() error, signals chan os.Signal, done chan error) {
	signals, done = make(chan os.Signal, 4), make(chan error, 1)
	e := l.emitter("k")
	o := Options{Ledger: l, Signals: signals, Sources: []Runner{&script{run: func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := e.put(1); err != nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}}}}
	if tweak != nil {
		tweak(&o)
	}
	go func() { done <- New(o).Run(context.Background()) }()
	return func() error { signals <- syscall.SIGTERM; return <-done }, signals, done
}

func TestFailedCommitsAreMadeUpFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, st := &output{}, newState()
		var log bytes.Buffer
		l := NewLedger(LedgerOptions{Output: out, State: st, Delivery: each{}, Log: zerolog.New(zerolog.SyncWriter(&log))})
		stop, _, _ := loop(l, nil)
		time.Sleep(time.Second)
		st.set(errors.New("no space left on device"))
		written := len(out.out())
		time.Sleep(30 * time.Second)
		if n := len(out.out()); n < written+2500 {
			t.Errorf("while the disk is full %d events were written, not 3000", n-written)
		}
		time.Sleep(10 * time.Minute) // now it waits, with 4000 in memory
		if n := len(out.out()); n > 4200 {
			t.Errorf("%d events wait in memory", n)
		}
		st.set(nil)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "cannot be saved"); n < 5 || n > 12 {
			t.Errorf("%d warnings in 10.5 minutes", n)
		}
		if n, pos := st.get(); pos != strconv.Itoa(n) || n != len(out.out()) {
			t.Errorf("%d queued, position %s, %d written", n, pos, len(out.out()))
		}
	})
}

func TestOutputThatIsNotReadHoldsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, st := &output{gate: make(chan struct{})}, newState()
		l := NewLedger(LedgerOptions{Output: out, State: st, Delivery: each{}})
		stop, _, _ := loop(l, nil)
		time.Sleep(time.Minute)
		if !l.Blocked() || len(out.out()) != 0 {
			t.Error("not held")
		}
		began := time.Now()
		err := stop()
		if err == nil || !strings.Contains(err.Error(), "standard output takes nothing") {
			t.Errorf("got %v", err)
		}
		if d := time.Since(began); d > 800*time.Millisecond {
			t.Errorf("stopping took %v", d)
		}
		if n, pos := st.get(); n != 0 || pos != "" {
			t.Errorf("saved %d events and position %q that nobody has seen", n, pos)
		}
		close(out.gate)
		time.Sleep(time.Minute) // let them end
	})
}

func TestOutputErrorsThatPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, st := &output{err: syscall.ENOSPC}, newState()
		l := NewLedger(LedgerOptions{Output: out, State: st})
		stop, _, _ := loop(l, nil)
		time.Sleep(time.Minute)
		if _, pos := st.get(); pos != "" {
			t.Errorf("position %s saved", pos)
		}
		out.set(nil)
		time.Sleep(5 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := out.out()
		if len(got) < 100 || got[0] != "k:1" || got[len(got)-1] != fmt.Sprintf("k:%d", len(got)) {
			t.Errorf("%d events: %q …", len(got), got[0])
		}
	})
}

func TestReaderOfOutputGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, st := &output{}, newState()
		l := NewLedger(LedgerOptions{Output: out, State: st})
		_, _, done := loop(l, nil)
		time.Sleep(time.Second)
		out.set(fmt.Errorf("%w: broken pipe", stdout.ErrClosed))
		if err := <-done; !errors.Is(err, stdout.ErrClosed) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
		if _, pos := st.get(); pos != strconv.Itoa(len(out.out())) {
			t.Errorf("position %s, %d written", pos, len(out.out()))
		}
	})
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l := NewLedger(LedgerOptions{})
		_, signals, done := loop(l, func(o *Options) {
			o.Sources = []Runner{&script{run: func(context.Context) error { <-gate; return nil }}}
		})
		signals <- syscall.SIGPIPE // is nothing
		signals <- syscall.SIGINT
		time.Sleep(time.Millisecond)
		signals <- syscall.SIGINT // as timeout(1) sends them
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("ended by one signal: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		signals <- syscall.SIGTERM
		if err := <-done; !errors.Is(err, ErrSecondSignal) {
			t.Errorf("got %v", err)
		}
		close(gate)
		time.Sleep(time.Minute) // let them end
	})
}

func TestSourceThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		stop, _, _ := loop(NewLedger(LedgerOptions{}), func(o *Options) {
			o.Sources = []Runner{&script{run: func(context.Context) error { <-gate; return nil }}}
		})
		if err := stop(); err == nil || !strings.Contains(err.Error(), "800ms") {
			t.Errorf("got %v", err)
		}
		close(gate)
		time.Sleep(time.Minute) // let them end
	})
}

func TestNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		ready := make(chan struct{})
		var log bytes.Buffer
		src := &script{run: func(ctx context.Context) error { <-ctx.Done(); return nil }}
		stop, signals, _ := loop(NewLedger(LedgerOptions{}), func(o *Options) {
			o.Sources, o.Ready, o.Log, o.WatchdogEvery = []Runner{src}, ready, zerolog.New(&log), 20*time.Second
			o.Notify = func(s string) {
				mu.Lock()
				defer mu.Unlock()
				s, _, _ = strings.Cut(s, "\nMONOTONIC_USEC=")
				told = append(told, s)
			}
			o.Reload = func() { time.Sleep(50 * time.Millisecond) }
		})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
			told = nil
		}
		expect()
		close(ready)
		expect("READY=1")
		signals <- syscall.SIGHUP
		time.Sleep(100 * time.Millisecond)
		expect("RELOADING=1", "READY=1")
		for range 3 { // two of them during the first one's reload: what they are about may not have been read
			signals <- syscall.SIGHUP
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		expect("RELOADING=1", "READY=1", "RELOADING=1", "READY=1")
		time.Sleep(20 * time.Second)
		expect("WATCHDOG=1", "WATCHDOG=1")
		name := "a.log"
		src.stalled.Store(&name)
		time.Sleep(20 * time.Second)
		expect()
		if !strings.Contains(log.String(), "a.log") {
			t.Errorf("log: %s", log.String())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		expect("STOPPING=1")
	})
}

func TestAllSourcesEndTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		l := NewLedger(LedgerOptions{State: newState()})
		d := New(Options{Ledger: l,
			Sources: []Runner{
				&script{run: func(context.Context) error { time.Sleep(time.Hour); return errors.New("cable was cut") }},
				&script{run: func(context.Context) error { return nil }},
			},
			Sinks: []Runner{&script{run: func(ctx context.Context) error {
				<-ctx.Done()
				order = append(order, "sink stopped")
				time.Sleep(100 * time.Millisecond)
				order = append(order, "sink drained")
				return nil
			}}},
		})
		if err := d.Run(t.Context()); err == nil || err.Error() != "cable was cut" {
			t.Errorf("got %v", err)
		}
		if len(order) != 2 {
			t.Errorf("sinks: %v", order)
		}
	})
}

func TestSinksMayDrainUntilTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		stop, _, _ := loop(NewLedger(LedgerOptions{}), func(o *Options) {
			o.Sinks = []Runner{&script{run: func(ctx context.Context) error { <-gate; return nil }}}
			o.DrainLimit = 5 * time.Second
		})
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("what a sink did not send is queued: %v", err)
		}
		if d := time.Since(began); d < 4*time.Second || d > 6*time.Second {
			t.Errorf("took %v", d)
		}
		close(gate)
		time.Sleep(time.Minute) // let them end
	})
}

func TestFullQueueHoldsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, st := &output{}, newState()
		full := false
		var mu sync.Mutex
		l := NewLedger(LedgerOptions{Output: out, State: st, Delivery: each{}, Full: func() bool { mu.Lock(); defer mu.Unlock(); return full }})
		set := func(v bool) { mu.Lock(); full = v; mu.Unlock() }
		stop, _, _ := loop(l, nil)
		time.Sleep(time.Second)
		set(true)
		time.Sleep(time.Second)
		n := len(out.out())
		time.Sleep(time.Minute)
		if got := len(out.out()); got != n || !l.Blocked() {
			t.Errorf("%d events passed a full queue", got-n)
		}
		set(false)
		time.Sleep(time.Second)
		if got := len(out.out()); got < n+50 {
			t.Errorf("does not go on: %d", got-n)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// What came from standard input is durable before more is read, and the
// journald cursor is committed with it.
func TestStdinIsDurableBeforeMoreIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newState()
		l := NewLedger(LedgerOptions{Output: &output{}, State: st, Delivery: each{}, Interval: time.Hour})
		e := l.emitter(source.StdinKey)
		d := New(Options{Ledger: l, Sources: []Runner{&script{run: func(context.Context) error {
			for i := 1; i <= 20; i++ {
				if err := e.put(1); err != nil {
					return err
				}
				if n, _ := st.get(); n != i {
					t.Errorf("%d of %d events are durable", n, i)
				}
			}
			return nil
		}}}})
		if err := d.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st.cursor != "20" || len(st.positions) != 0 {
			t.Errorf("cursor %q, positions %v", st.cursor, st.positions)
		}
	})
}

// Without any option a Ledger just forgets.
func TestLedgerAlone(t *testing.T) {
	l := NewLedger(LedgerOptions{})
	if err := l.emitter("x").put(3); err != nil {
		t.Fatal(err)
	}
	if err := l.finish(); err != nil {
		t.Fatal(err)
	}
}

// At the stop every file saves its position: thousands have not moved.
func TestAPositionThatIsKnownIsNotCommittedAgain(t *testing.T) {
	st := newState()
	st.positions["a"] = "1"
	l := NewLedger(LedgerOptions{State: st, Log: zerolog.Nop()})
	l.Store("a", []byte("1"))
	if err := l.finish(); err != nil || st.commits != 0 {
		t.Errorf("%d commits, %v", st.commits, err)
	}
	l.Store("a", []byte("2"))
	if err := l.finish(); err != nil || st.commits != 1 || st.positions["a"] != "2" {
		t.Errorf("%d commits, %v", st.commits, err)
	}
}
