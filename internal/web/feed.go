package web

import (
	"path"
	"slices"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
)

// Catalog is the catalogue in force and what is to be said of it.
type Catalog struct {
	Records  []catalog.Record // matched
	Disabled []Disabled       // not matched, by configuration
	Refused  []catalog.Problem
	Warnings []catalog.Problem // of loading and lint
	Version  string
	Digest   string
	At       time.Time // of loading; zero: now
}

// Disabled is a record that is not matched, and why.
type Disabled struct {
	Record catalog.Record
	Why    string
}

// Totals counts since the start, over open and closed streams.
type Totals struct {
	Bytes      int64 // read
	Lines      int64
	Candidates int64 // records that the prefilter let through
	Rejected   int64 // … in which nothing was confirmed
	Events     int64

	Echoes      int64 // known errors in spans only, reported before
	Folded      int64 // occurrences that went into the counts of a later event
	RateLimited int64 // collapsed events that waited because of loki.rate

	Malformed int64 // journal entries that are damaged
	Nulls     int64 // journal entries without their text
	Truncated int64 // records longer than multiline.max_bytes

	Opened       int64 // files
	Rotations    int64
	Truncations  int64
	LostBytes    int64 // that may have held lines nobody has seen
	SourceErrors int64
}

// Source is one open file or pipe.
type Source struct {
	Input     string `json:"input"` // file, stdin
	Path      string `json:"path"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`

	Offset    int64     `json:"offset"`     // bytes handled
	Size      int64     `json:"size"`       // bytes there; 0 for a pipe
	Retired   bool      `json:"retired"`    // rotated away or deleted, being read to its end
	Truncated int64     `json:"truncated"`  // times it was cut or rewritten
	LostBytes int64     `json:"lost_bytes"` // gone before they could be read
	LastRead  time.Time `json:"last_read,omitzero"`
	LastError string    `json:"last_error"`
}

// Lag is how many bytes are still to be read.
func (s Source) Lag() int64 { return max(0, s.Size-s.Offset) }

// components are the values of label component; a path or a container name
// must not make series.
var components = []string{"meta", "compute", "compactor", "frontend", "standalone", "connector-node"}

// component is what the place of a file says of who writes it, or "".
func (s Source) component() string {
	for _, name := range []string{s.Container, path.Base(path.Dir(s.Path))} {
		if slices.Contains(components, name) {
			return name
		}
	}
	return ""
}

// Sink is one place where events go.
type Sink struct {
	Name    string           `json:"name"`
	URL     string           `json:"url,omitempty"`     // secrets masked; "" for standard output
	Emitted map[string]int64 `json:"emitted,omitempty"` // events given to it, by kind: match, first, repeat

	SentEntries int64            `json:"sent_entries"`
	SentBytes   int64            `json:"sent_bytes"`
	Retries     int64            `json:"retries"`
	Dropped     map[string]int64 `json:"dropped,omitempty"`  // by reason, all reasons from the start
	Adjusted    map[string]int64 `json:"adjusted,omitempty"` // sent, but changed, by how

	QueueEntries  int64     `json:"queue_entries"`
	QueueBytes    int64     `json:"queue_bytes"`
	QueueMaxBytes int64     `json:"queue_max_bytes,omitempty"` // 0: no queue
	Oldest        time.Time `json:"oldest,omitzero"`           // stamp of the oldest entry waiting
	LastSuccess   time.Time `json:"last_success,omitzero"`
	FailingSince  time.Time `json:"failing_since,omitzero"` // zero: works
	LastError     string    `json:"last_error,omitempty"`
}

func (s Sink) dropped() (n int64) {
	for _, d := range s.Dropped {
		n += d
	}
	return n
}

// ConfigLine is one line of the configuration in force, secrets masked.
type ConfigLine struct {
	Text   string `json:"text"`   // YAML, indented
	Origin string `json:"origin"` // flag, variable, file or default
}

// SourceOf fills in what K8s tells.
func SourceOf(input, file string, k annotate.K8s) Source {
	return Source{Input: input, Path: file, Namespace: k.Namespace, Pod: k.Pod, Container: k.Container}
}

// index finds records of a Catalog.
type index struct {
	Catalog
	byID, bySlug map[string]*catalog.Record
	disabled     map[string]string // id → why
}

func newIndex(c Catalog) *index {
	x := &index{c, map[string]*catalog.Record{}, map[string]*catalog.Record{}, map[string]string{}}
	for i := range c.Disabled {
		x.add(&c.Disabled[i].Record)
		x.disabled[c.Disabled[i].Record.ID] = c.Disabled[i].Why
	}
	for i := range c.Records {
		x.add(&c.Records[i])
	}
	return x
}

func (x *index) add(r *catalog.Record) {
	x.byID[r.ID] = r
	if r.Slug != "" {
		x.bySlug[r.Slug] = r
	}
}

func (x *index) find(name string) *catalog.Record {
	if r := x.byID[name]; r != nil {
		return r
	}
	return x.bySlug[name]
}
