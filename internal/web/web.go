// Package web shows what the daemon sees and how it fares, over HTTP: health
// for orchestrators, metrics for Prometheus, and pages for a person who was
// woken up. The pages work without JavaScript, and as plain text for curl.
//
// It is fed from outside and reaches for nothing: Observe is told of every
// event, SetCatalog of every catalogue, and the functions in Options are asked
// when somebody looks. Texts from logs are hostile until proven otherwise;
// they are cut and freed of control characters where they enter (clean.go) and
// escaped where they leave.
package web

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// Options of a Server. Functions may be nil; they are called from several
// goroutines and must not wait for anything that may hang.
type Options struct {
	Listen    string // host:port
	Page      bool   // serve the pages and their JSON besides health and metrics
	ShowLines bool   // show original log lines
	Pprof     bool   // serve /debug/pprof

	Version  string // of rwannotate
	Revision string // commit it was built from

	// Alive returns why the pipeline does not move, or nil. It must not look
	// at Loki or at whether there is anything to read.
	Alive func() error
	// Reload loads configuration and catalogue again; nil: POST /-/reload is
	// refused. It must keep the old state if it fails.
	Reload func() error

	Totals  func() Totals
	Sources func() []Source
	Sinks   func() []Sink
	Config  func() []ConfigLine
	// Notices are sentences that a person who looks at the page should read,
	// such as that positions are kept in memory only.
	Notices func() []string

	Log zerolog.Logger
	Now func() time.Time // nil: time.Now
}

// Limits of the listener. A probe must get through while pages are slow.
const (
	maxConnections = 256
	maxPages       = 16 // being rendered at a time
	maxHeader      = 16 << 10
	readTimeout    = 5 * time.Second
	writeTimeout   = 15 * time.Second
	idleTimeout    = time.Minute
	stopTimeout    = 200 * time.Millisecond
)

// Server is the listener and all that it tells. Safe for concurrent use.
type Server struct {
	opt      Options
	started  time.Time
	seen     *seen
	catalog  atomic.Pointer[index]
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	pages    *pages
	handler  http.Handler

	mu     sync.Mutex
	reload reload
}

// reload is how the last attempt to load a catalogue went.
type reload struct {
	at  time.Time
	err error
}

// New builds a Server that knows no catalogue yet: it is not ready until
// SetCatalog.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{opt: o, started: o.Now(), seen: newSeen(o.ShowLines), pages: newPages(o.Now)}
	s.catalog.Store(newIndex(Catalog{}))
	s.registry, s.requests = newRegistry(s)
	s.handler = s.routes()
	return s
}

// Observe takes note of an event. Call it once per occurrence (kind match), or
// for folded events: what counts is seen.new.
func (s *Server) Observe(ev *annotate.Event) {
	s.seen.observe(ev, s.catalog.Load(), s.opt.Now())
}

// SetCatalog replaces the catalogue that the pages show, after it has been
// compiled and is in force. It also is the good end of a reload.
func (s *Server) SetCatalog(c Catalog) {
	if c.At.IsZero() {
		c.At = s.opt.Now()
	}
	s.catalog.Store(newIndex(c))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reload = reload{at: c.At}
}

// ReloadFailed tells that configuration or catalogue could not be loaded again
// and the old ones stay in force.
func (s *Server) ReloadFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reload = reload{s.opt.Now(), err}
}

func (s *Server) lastReload() reload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reload
}

// Requests returns an observer of a sink's HTTP requests: duration, status (0:
// no answer) and bytes on the wire.
func (s *Server) Requests(sink string) func(d time.Duration, status, bytes int) {
	for _, code := range []string{"2xx", "4xx", "5xx", "none"} {
		s.requests.WithLabelValues(sink, code)
	}
	return func(d time.Duration, status, _ int) {
		s.requests.WithLabelValues(sink, codeClass(status)).Observe(d.Seconds())
	}
}

func codeClass(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return fmt.Sprintf("%dxx", status/100)
}

// Registry has all metrics, so that others may add theirs.
func (s *Server) Registry() *prometheus.Registry { return s.registry }

// Handler serves everything.
func (s *Server) Handler() http.Handler { return s.handler }

// Run listens at Options.Listen until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.opt.Listen)
	if err != nil {
		return fmt.Errorf("listen for health, metrics and status page (web.listen): %w", err)
	}
	return s.Serve(ctx, l)
}

// Serve serves l until ctx is done, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout, // writes: see deadline, since profiles take long
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(s.opt.Log.With().Str("from", "net/http").Logger(), "", 0),
	}
	s.opt.Log.Info().Stringer("address", l.Addr()).Bool("page", s.opt.Page).Msg("health and metrics are served")
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(&bounded{Listener: l, most: maxConnections}) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %v: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if srv.Shutdown(stop) != nil {
		_ = srv.Close() // whoever still reads a page can ask the next process
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// bounded closes the oldest connection where there are too many: the
// descriptors belong to the log files, and connections that never ask for
// anything must not keep a probe out.
type bounded struct {
	net.Listener
	most int

	mu   sync.Mutex
	open []*counted // the oldest first
}

func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &counted{conn, b}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open = append(b.open, c); len(b.open) > b.most {
		_ = b.open[0].Conn.Close()
		b.open = slices.Delete(b.open, 0, 1)
	}
	return c, nil
}

type counted struct {
	net.Conn
	among *bounded
}

func (c *counted) Close() error {
	b := c.among
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = slices.DeleteFunc(b.open, func(o *counted) bool { return o == c })
	return c.Conn.Close()
}
