// Package daemon runs the sources, makes what they found durable and stops
// everything in the right order.
//
//	source ──ReadOnce──► consumer ──emit──► output (standard output)
//	   │                    └────────────► the stream's own list
//	   └─Store(position)──► flush output ► Ledger ──commit──► state directory
//
// A stream's events and the position behind them reach the Ledger together,
// after the output has taken the events, and are committed in one transaction:
// a kill at any moment loses nothing, and repeats on the output at most what
// one commit interval holds.
//
// Nothing waits in memory without bound: an output that is not read, and a
// queue that is full, make the streams wait, and their bytes wait on disk.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// ErrSecondSignal says that a second signal asked for an end at once.
var ErrSecondSignal = errors.New("stopped at once by a second signal: what was not saved is read again at the next start")

// Runner is a part that runs until ctx is done, or until it has nothing left
// to do.
type Runner interface {
	Run(ctx context.Context) error
}

// staller is a Runner that can tell which of its streams do not move.
type staller interface {
	Stalled(limit time.Duration) []string
}

// Options of a Daemon. Everything but Ledger and Sources may be left out.
type Options struct {
	Ledger  *Ledger
	Sources []Runner // the daemon ends when all of them have
	Sinks   []Runner // stopped after the last commit, to send what they can until DrainLimit

	Signals <-chan os.Signal // SIGTERM, SIGINT: stop, the second one at once; SIGHUP: Reload; all others are ignored
	Ready   <-chan struct{}  // closed when the sources have begun
	Reload  func()           // keeps the old state if it fails, and says so
	Notify  func(state string)

	WatchdogEvery time.Duration // how often the service manager wants to hear from us; 0: never
	StopLimit     time.Duration // for the sources and the last commit; default 800 ms
	DrainLimit    time.Duration // for the sinks, from the signal on; default StopLimit
	Log           zerolog.Logger
}

// Daemon is one run of the program.
type Daemon struct{ Options }

// New builds a Daemon.
func New(o Options) *Daemon {
	if o.StopLimit == 0 {
		o.StopLimit = 800 * time.Millisecond
	}
	if o.DrainLimit == 0 {
		o.DrainLimit = o.StopLimit
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if o.Reload == nil {
		o.Reload = func() {}
	}
	return &Daemon{o}
}

// Run runs everything. It returns nil when the sources have come to their end
// or a signal has asked for it, and everything is saved.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sinks, stopSinks := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSinks()

	drained := start(sinks, d.Sinks)
	saved := make(chan error, 1)
	go func() { saved <- d.work(ctx) }()

	s := &stopping{d: d, stop: stop, stopSinks: stopSinks, saved: saved, drained: drained}
	return s.wait(ctx)
}

// start runs the runners and returns what they returned, once all have.
func start(ctx context.Context, runners []Runner) <-chan error {
	var wg sync.WaitGroup
	errs := make([]error, len(runners))
	for i, r := range runners {
		wg.Go(func() { errs[i] = r.Run(ctx) })
	}
	done := make(chan error, 1)
	go func() {
		wg.Wait()
		done <- errors.Join(errs...)
	}()
	return done
}

// work reads until the sources end, committing as it goes, and commits what is
// left.
func (d *Daemon) work(ctx context.Context) error {
	ended := start(ctx, d.Sources)
	commit, stop := context.WithCancel(context.Background())
	committed := make(chan struct{})
	go func() { defer close(committed); d.Ledger.run(commit) }()
	go func() { // streams that wait for room would never end
		select {
		case <-ctx.Done():
		case <-commit.Done():
		}
		d.Ledger.letGo()
	}()
	err := <-ended
	stop()
	<-committed
	return errors.Join(err, d.Ledger.finish())
}

// sameSignal is how soon a signal may follow another and mean the same: timeout(1)
// signals its child and then the child's group, in one breath.
const sameSignal = 50 * time.Millisecond

// stopping is the loop that hears signals and sees to an orderly end.
type stopping struct {
	d               *Daemon
	stop, stopSinks func()
	saved, drained  <-chan error

	asked    bool      // it is time to stop
	signaled time.Time // when a signal asked for it
	limit    <-chan time.Time
	reason   error
	began    time.Time
}

func (s *stopping) wait(ctx context.Context) error {
	var watchdog <-chan time.Time
	if s.d.WatchdogEvery > 0 {
		t := time.NewTicker(s.d.WatchdogEvery / 2)
		defer t.Stop()
		watchdog = t.C
	}
	ready, fatal, done := s.d.Ready, s.d.Ledger.Fatal(), ctx.Done()
	reloaded := make(chan struct{}, 1)
	reloading, again := false, false
	reload := func() {
		reloading, again = true, false
		s.d.Notify(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic()))
		go func() { s.d.Reload(); reloaded <- struct{}{} }()
	}
	for {
		select {
		case <-ready:
			ready = nil
			s.d.Notify("READY=1")
		case sig := <-s.d.Signals:
			switch {
			case sig == syscall.SIGHUP && reloading:
				again = true // what has changed may have been read before
			case sig == syscall.SIGHUP && !s.asked:
				reload()
			case sig != syscall.SIGTERM && sig != syscall.SIGINT:
			case !s.signaled.IsZero():
				if time.Since(s.signaled) > sameSignal {
					return ErrSecondSignal
				}
			default:
				s.signaled = time.Now()
				s.d.Log.Info().Stringer("signal", sig).Msg("stopping")
				s.begin(nil)
			}
		case <-reloaded:
			reloading = false
			s.d.Notify("READY=1")
			if again && !s.asked {
				reload()
			}
		case err := <-fatal:
			fatal = nil
			s.begin(err)
		case <-done:
			done = nil
			s.begin(nil)
		case <-watchdog:
			s.d.feed()
		case err := <-s.saved:
			s.saved = nil
			s.reason = errors.Join(s.reason, err)
			s.begin(nil)
			s.drain()
		case err := <-s.drained:
			if s.saved != nil { // a sink that ended early; the others go on
				s.drained = nil
				s.reason = errors.Join(s.reason, err)
				continue
			}
			return errors.Join(s.reason, err)
		case <-s.limit:
			return errors.Join(s.reason, s.late())
		}
		if s.saved == nil && s.drained == nil {
			return s.reason
		}
	}
}

// begin starts stopping, once.
func (s *stopping) begin(reason error) {
	s.reason = errors.Join(s.reason, reason)
	if s.asked {
		return
	}
	s.asked, s.began = true, time.Now()
	s.d.Notify("STOPPING=1")
	s.stop()
	if s.saved != nil {
		s.limit = time.After(s.d.StopLimit)
	}
}

// drain lets the sinks send what they can.
func (s *stopping) drain() {
	s.stopSinks()
	s.limit = time.After(max(s.d.DrainLimit-time.Since(s.began), 50*time.Millisecond))
}

// late says what has not stopped in time.
func (s *stopping) late() error {
	if s.saved == nil {
		return nil // sinks: what they did not send is queued
	}
	if s.d.Ledger.Blocked() {
		return fmt.Errorf("standard output takes nothing: stopped after %v without writing what was read; it is read again at the next start", s.d.StopLimit)
	}
	return fmt.Errorf("reading did not stop within %v: what was not saved is read again at the next start", s.d.StopLimit)
}

// feed tells the service manager that we are alive, which we are if every
// stream moves, or waits for somebody outside.
func (d *Daemon) feed() {
	var stalled []string
	for _, r := range d.Sources {
		if s, ok := r.(staller); ok {
			stalled = append(stalled, s.Stalled(max(10*time.Second, d.WatchdogEvery))...)
		}
	}
	if len(stalled) > 0 && !d.Ledger.Blocked() {
		d.Log.Error().Str("streams", strings.Join(stalled, ", ")).Msg("not moving: the service manager is not told that all is well")
		return
	}
	d.Notify("WATCHDOG=1")
}

// monotonic is the clock that the service manager compares reloads by, in µs.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano() / 1000
}
