package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// policy lets a page load its own style sheet and nothing else: should a text
// ever get through unescaped, it still can't run, load or send anything.
const policy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", s.probe(s.alive))
	mux.HandleFunc("GET /-/ready", s.probe(s.ready))
	reload := s.reloadHandler()
	mux.HandleFunc("POST /-/reload", reload)
	mux.HandleFunc("GET /-/reload", reload) // to say how it is done
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /style.css", s.pages.serveStyle)
	if s.opt.Page {
		s.pageRoutes(mux)
	}
	if s.opt.Pprof { // without cmdline: flags may hold a URL with a password
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	}
	mux.Handle("GET /", s.page(func(*http.Request) view { return s.notFound() }))
	return headers(deadline(mux))
}

func (s *Server) pageRoutes(mux *http.ServeMux) {
	free := make(chan struct{}, maxPages)
	limited := func(f func(*http.Request) view) http.Handler { return limit(free, s.page(f)) }
	for at, f := range map[string]func(*http.Request) view{
		"/{$}": s.statusView, "/errors": s.errorsView, "/errors/{name}": s.recordView,
		"/sources": s.sourcesView, "/catalog": s.catalogView, "/config": s.configView,
	} {
		mux.Handle("GET "+at, limited(f))
	}
	for at, f := range map[string]func(*http.Request) view{
		"status": s.statusView, "errors": s.errorsView, "errors/{name}": s.recordView, "sources": s.sourcesView,
		"catalog": s.catalogView, "catalog/{name}": s.recordView, "config": s.configView,
	} {
		mux.Handle("GET /api/v1/"+at, limited(f))
	}
}

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// deadline bounds the time for an answer, but not that of profiles, which
// collect for as long as they are asked to.
func deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // recorders of tests have none
		}
		next.ServeHTTP(w, r)
	})
}

// limit answers 503 where too many pages are being rendered; health and
// metrics are not behind it.
func limit(free chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many pages at a time; try again in a second", http.StatusServiceUnavailable)
		}
	})
}

func (s *Server) alive() error {
	return call(s.opt.Alive)
}

var errNoCatalog = errors.New("the catalogue is not compiled yet")

func (s *Server) ready() error {
	if len(s.catalog.Load().Records) == 0 {
		return errNoCatalog
	}
	return nil
}

// probe answers an orchestrator: 200, or 503 and the reason.
func (s *Server) probe(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err := check(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintln(w, clean(err.Error(), maxMessage))
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	}
}

// reloadHandler loads configuration and catalogue again. A page of another
// origin that a browser happens to show must not be able to.
func (s *Server) reloadHandler() http.HandlerFunc {
	var running sync.Mutex
	protection := http.NewCrossOriginProtection()
	say := func(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			say(w, http.StatusMethodNotAllowed, "reload with POST")
		case s.opt.Reload == nil:
			say(w, http.StatusForbidden, "reloading over HTTP is off: set web.enable_reload, or send SIGHUP")
		case protection.Check(r) != nil:
			say(w, http.StatusForbidden, "refused: the request comes from a page of another origin")
		case !running.TryLock():
			say(w, http.StatusConflict, "a reload is running")
		default:
			defer running.Unlock()
			if err := s.opt.Reload(); err != nil {
				say(w, http.StatusInternalServerError, "not reloaded, the old state stays in force: "+cleanBlock(err.Error(), maxLine))
				return
			}
			_, _ = fmt.Fprintln(w, "reloaded")
		}
	}
}

// form is how an answer is written.
type form int

const (
	asText form = iota
	asHTML
	asJSON
)

// formOf takes HTML where a browser asks, JSON under /api/ and where nothing
// else is wanted, else plain text: curl sends Accept: */*.
func formOf(r *http.Request) form {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/"):
		return asJSON
	case accepts(accept, "text/html"):
		return asHTML
	case accepts(accept, "application/json"):
		return asJSON
	}
	return asText
}

// accepts reports whether an Accept header names the media type itself.
func accepts(header, media string) bool {
	for item := range strings.SplitSeq(header, ",") {
		kind, params, _ := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(kind), media) {
			continue
		}
		refused := false
		for p := range strings.SplitSeq(params, ";") {
			if name, value, ok := strings.Cut(strings.TrimSpace(p), "="); ok && strings.EqualFold(name, "q") {
				q, err := strconv.ParseFloat(value, 64)
				refused = err == nil && q == 0
			}
		}
		return !refused
	}
	return false
}

// view is what a page says, in whatever form.
type view struct {
	status int    // HTTP
	name   string // of the template
	title  string
	data   pageData
}

// pageData can also be read by machines (as JSON) and on a terminal.
type pageData interface{ text(p *paper) }

// page answers with a view in the form that the client wants. Nothing is
// written before everything is rendered.
func (s *Server) page(f func(*http.Request) view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := f(r)
		var b bytes.Buffer
		contentType, err := "text/plain; charset=utf-8", error(nil)
		switch formOf(r) {
		case asJSON:
			contentType = "application/json"
			err = writeJSON(&b, v.data)
		case asHTML:
			contentType = "text/html; charset=utf-8"
			err = s.pages.render(&b, s.frame(r, v))
		case asText:
			v.data.text(&paper{w: &b, now: s.opt.Now()})
		}
		if err != nil {
			s.opt.Log.Error().Err(err).Str("page", v.name).Msg("cannot render")
			http.Error(w, "this page cannot be rendered; the log says why", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
		w.WriteHeader(v.status)
		if r.Method != http.MethodHead {
			_, _ = w.Write(b.Bytes())
		}
	})
}

// writeJSON writes v with everything escaped that is not to be seen: the
// answer may be looked at in a terminal.
func writeJSON(b *bytes.Buffer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	b.Write(annotate.AppendVisible(nil, text))
	return b.WriteByte('\n')
}
