package web

import (
	"cmp"
	"container/list"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
)

const (
	maxFingerprints = 100 // newest ones, on the page
	maxErrorLabels  = 200 // values of label error; what comes later counts as otherError
	otherError      = "_other"
)

// seen remembers which errors there were: the newest fingerprints for the
// page, counts of everything for the metrics.
type seen struct {
	lines bool

	mu      sync.Mutex
	entries map[fingerprint]*list.Element
	order   *list.List // of *entry, the newest in front
	tallies map[tally]*tallied
	labels  map[string]bool
	hours   map[string]*hour // by severity
	total   int64
}

// fingerprint is what belongs together, as in the folding for Loki.
type fingerprint struct{ id, component, pod string }

// tally is a set of metric labels.
type tally struct{ component, severity, name string }

type tallied struct {
	count   int64
	last    time.Time // newest occurrence, by the log's clock
	created time.Time // first occurrence, by ours
}

// entry is one fingerprint.
type entry struct {
	Occurrence
	hour hour
}

// Occurrence is a known error in one component of one pod, with its newest
// text.
type Occurrence struct {
	ID        string    `json:"id"`
	Slug      string    `json:"slug"`
	Severity  string    `json:"severity"`
	Role      string    `json:"role"`
	Template  string    `json:"template"`
	Component string    `json:"component"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Container string    `json:"container"`
	Node      string    `json:"node"`
	Count     int64     `json:"count"`     // since rwannotate started
	LastHour  int64     `json:"last_hour"` // by the log's clock
	Minutes   []int64   `json:"minutes"`   // the last hour, a minute each, the newest last
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Message   string    `json:"message"` // of the newest
	Args      []string  `json:"args"`
	ActorID   string    `json:"actor_id"`
	Chain     []string  `json:"chain"`  // texts around it, outermost first
	Origin    string    `json:"origin"` // path:line, unit or stdin
	Line      string    `json:"line,omitempty"`
	DoFirst   string    `json:"do_first"` // the first solution
}

// Name is what the error is called in links.
func (o Occurrence) Name() string { return cmp.Or(o.Slug, o.ID) }

// Where is the component and the pod.
func (o Occurrence) Where() string {
	return strings.Join(slices.DeleteFunc([]string{o.Component, o.Pod}, func(s string) bool { return s == "" }), " · ")
}

func newSeen(lines bool) *seen {
	s := &seen{lines: lines, entries: map[fingerprint]*list.Element{}, order: list.New(),
		tallies: map[tally]*tallied{}, labels: map[string]bool{}, hours: map[string]*hour{}}
	for _, severity := range catalog.Severities() {
		s.hours[severity] = &hour{}
		s.tallies[tally{"", severity, otherError}] = &tallied{} // the metric exists from the start
	}
	return s
}

// observe counts ev and keeps what the page shows of it.
func (s *seen) observe(ev *annotate.Event, x *index, now time.Time) {
	o := describe(ev, x)
	if s.lines {
		o.Line = cleanBlock(ev.Origin.Line, maxLine)
	}
	n := max(1, ev.Seen.New)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += n
	s.count(&o, n, now)
	if h := s.hours[o.Severity]; h != nil {
		h.add(earlier(o.Last, now), n)
	}
	e := s.entry(fingerprint{o.ID, o.Component, o.Pod})
	o.Count = e.Count + n
	if e.Count > 0 && e.First.Before(o.First) {
		o.First = e.First
	}
	if o.Last.Before(e.Last) { // several files of one pod are read side by side
		o.Last = e.Last
	}
	e.hour.add(earlier(ev.Time, now), n)
	e.Occurrence = o
}

// earlier keeps a clock that runs ahead out of the last hour's future.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

func describe(ev *annotate.Event, x *index) Occurrence {
	o := Occurrence{ID: clean(ev.Error.ID, 40), Severity: catalog.SeverityError, Role: catalog.RoleRoot, Template: clean(ev.Error.Template, maxMessage),
		Component: clean(ev.RW.Component, 40), Namespace: clean(ev.K8s.Namespace, maxName), Pod: clean(ev.K8s.Pod, maxName),
		Container: clean(ev.K8s.Container, maxName), Node: clean(ev.K8s.Node, maxName),
		First: ev.Time, Last: ev.Time, Message: clean(ev.Message, maxMessage), ActorID: clean(ev.RW.ActorID, 40), Origin: originOf(&ev.Origin)}
	if o.Pod == "" {
		o.Pod = clean(ev.Origin.Host, maxName) // journald: the machine
	}
	if !ev.Seen.First.IsZero() {
		o.First, o.Last = ev.Seen.First, ev.Seen.Last
	}
	for _, a := range ev.Error.Args[:min(len(ev.Error.Args), maxArgs)] {
		o.Args = append(o.Args, clean(a, maxArg))
	}
	for _, c := range ev.RW.Chain[:min(len(ev.RW.Chain), maxArgs)] {
		o.Chain = append(o.Chain, clean(c, maxArg))
	}
	if r := x.find(ev.Error.ID); r != nil {
		o.Slug, o.Severity, o.Role = clean(r.Slug, maxName), cmp.Or(r.Severity, o.Severity), cmp.Or(r.Role, o.Role)
		if len(r.Solutions) > 0 {
			o.DoFirst = clean(r.Solutions[0], maxMessage)
		}
	}
	return o
}

func originOf(o *annotate.Origin) string {
	at := clean(cmp.Or(o.Path, o.Unit, o.Input), maxName)
	if o.LineNumber > 0 && o.Path != "" {
		at += ":" + strconv.FormatInt(o.LineNumber, 10)
	}
	return at
}

// count adds to the metrics, whose label values are bounded.
func (s *seen) count(o *Occurrence, n int64, now time.Time) {
	name, component := o.Name(), o.Component
	if !s.labels[name] {
		if len(s.labels) < maxErrorLabels {
			s.labels[name] = true
		} else {
			name = otherError
		}
	}
	if !slices.Contains(components, component) {
		component = ""
	}
	key := tally{component, o.Severity, name}
	t := s.tallies[key]
	if t == nil {
		t = &tallied{}
		s.tallies[key] = t
	}
	if t.created.IsZero() {
		t.created = now
	}
	t.count += n
	if o.Last.After(t.last) {
		t.last = o.Last
	}
}

// entry returns the entry of fp as the newest, at the cost of the oldest.
func (s *seen) entry(fp fingerprint) *entry {
	if el := s.entries[fp]; el != nil {
		s.order.MoveToFront(el)
		return el.Value.(*entry)
	}
	if s.order.Len() >= maxFingerprints {
		oldest := s.order.Remove(s.order.Back()).(*entry)
		delete(s.entries, fingerprint{oldest.ID, oldest.Component, oldest.Pod})
	}
	e := &entry{}
	s.entries[fp] = s.order.PushFront(e)
	return e
}

// newest returns the fingerprints, that with the newest occurrence first.
func (s *seen) newest(now time.Time) []Occurrence {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Occurrence, 0, s.order.Len())
	for el := s.order.Front(); el != nil; el = el.Next() {
		e := el.Value.(*entry)
		o := e.Occurrence
		o.Minutes = e.hour.minutes(now)
		for _, n := range o.Minutes {
			o.LastHour += n
		}
		out = append(out, o)
	}
	slices.SortStableFunc(out, func(a, b Occurrence) int { return b.Last.Compare(a.Last) })
	return out
}

// lastHour returns the occurrences by severity, of all fingerprints.
func (s *seen) lastHour(now time.Time) map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int64{}
	for severity, h := range s.hours {
		for _, n := range h.minutes(now) {
			out[severity] += n
		}
	}
	return out
}

func (s *seen) snapshot() (map[tally]tallied, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[tally]tallied, len(s.tallies))
	for key, t := range s.tallies {
		out[key] = *t
	}
	return out, s.total
}

// hour counts the minutes of the last hour.
type hour [60]struct{ minute, n int64 }

func (h *hour) add(t time.Time, n int64) {
	m := t.Unix() / 60
	if m <= 0 {
		return
	}
	slot := &h[m%60]
	switch {
	case m < slot.minute: // more than an hour older than the newest
	case m > slot.minute:
		slot.minute, slot.n = m, n
	default:
		slot.n += n
	}
}

func (h *hour) minutes(now time.Time) []int64 {
	out := make([]int64, len(h))
	m := now.Unix() / 60
	for i := range out {
		at := m - int64(len(h)-1-i)
		if at > 0 && h[at%60].minute == at {
			out[i] = h[at%60].n
		}
	}
	return out
}
