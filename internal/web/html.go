package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed pages
var files embed.FS

// pages renders views as HTML.
type pages struct {
	byName map[string]*template.Template
	style  []byte
	tag    string // of the style sheet's content
}

func newPages(now func() time.Time) *pages {
	p := &pages{byName: map[string]*template.Template{}}
	funcs := template.FuncMap{
		"clock": clock, "size": size, "number": number, "times": times, "prose": prose, "bars": bars, "severities": severities,
		"plural":     plural,
		"ago":        func(t time.Time) string { return ago(now(), t) },
		"up":         func(t time.Time) string { return span(now().Sub(t)) },
		"iso":        func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"clean":      func(s string) string { return clean(s, maxMessage) },
		"lines":      func(s string) string { return cleanBlock(s, maxLine) },
		"several":    several,
		"sum":        func(s Sink) string { return s.Summary(now()) },
		"paragraphs": func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n\n") },
		"web":        func(url string) bool { return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") },
	}
	for _, name := range []string{"status", "errors", "record", "sources", "catalog", "config", "failure"} {
		p.byName[name] = template.Must(template.New("layout.html").Funcs(funcs).ParseFS(files, "pages/layout.html", "pages/parts.html", "pages/"+name+".html"))
	}
	style, err := files.ReadFile("pages/style.css")
	if err != nil {
		panic("web: the style sheet is part of the program: " + err.Error())
	}
	sum := sha256.Sum256(style)
	p.style, p.tag = style, hex.EncodeToString(sum[:6])
	return p
}

// frame is what stands around every page.
type frame struct {
	Root    string // relative address of /, since a proxy may serve us below a path
	Style   string
	Title   string
	Name    string // of the page
	Version string
	Now     time.Time
	Refresh int    // seconds; 0: the page stays as it is
	Toggle  string // the address with or without refreshing
	Data    pageData
}

// frame puts a view into its page.
func (s *Server) frame(r *http.Request, v view) frame {
	root := strings.Repeat("../", strings.Count(strings.TrimPrefix(path.Clean(r.URL.Path), "/"), "/"))
	if strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/" {
		root += "../"
	}
	f := frame{Root: root, Style: s.pages.tag, Title: v.title, Name: v.name, Version: s.opt.Version, Now: s.opt.Now().UTC(), Data: v.data}
	if f.Root == "" {
		f.Root = "./"
	}
	q := r.URL.Query()
	if n, err := strconv.Atoi(q.Get("refresh")); err == nil && n >= 5 && n <= 600 && v.status == http.StatusOK {
		f.Refresh = n
		q.Del("refresh")
	} else {
		q.Set("refresh", "30")
	}
	f.Toggle = "?" + q.Encode()
	return f
}

func (p *pages) render(w io.Writer, f frame) error { return p.byName[f.Name].Execute(w, f) }

// serveStyle serves the style sheet; its address changes with its content.
func (p *pages) serveStyle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	if r.URL.RawQuery == p.tag {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(p.style)
}

// part is a piece of prose, or of code between backquotes.
type part struct {
	Code bool
	Text string
}

func prose(s string) []part {
	pieces := strings.Split(clean(s, 10*maxLine), "`")
	if len(pieces)%2 == 0 { // a backquote without its partner is one
		last := len(pieces) - 1
		pieces[last-1] += "`" + pieces[last]
		pieces = pieces[:last]
	}
	parts := make([]part, 0, len(pieces))
	for i, text := range pieces {
		if text != "" {
			parts = append(parts, part{i%2 == 1, text})
		}
	}
	return parts
}

// bar of a chart of minutes, in units of its view box.
type bar struct{ X, Y, H int }

const barHeight = 20

// bars makes a chart of counts. What is not zero can be seen.
func bars(counts []int64) []bar {
	var most int64
	for _, n := range counts {
		most = max(most, n)
	}
	var out []bar
	for i, n := range counts {
		if n > 0 {
			h := max(3, int(n*barHeight/most))
			out = append(out, bar{2 * i, barHeight - h, h})
		}
	}
	return out
}
