// Package episode folds repeats of one known error into few events, so that
// a storm costs Loki two events and not a thousand. It is pure: the time is
// passed in, there are no goroutines and no locks (a Folder belongs to one
// goroutine, or to whoever holds the caller's lock).
//
// Occurrences belong to one episode if they share a fingerprint: catalogue
// record, component and pod. Neither arguments nor actor ids are part of it,
// they differ in every line of a storm. The first occurrence is reported at
// once, with kind "first". Then windows follow one another: 1, 5, 15 minutes,
// and hours from there on. A window that closes with new occurrences in it is
// reported as one event of kind "repeat", stamped with its last occurrence.
// An hour without any occurrence ends the episode; the next one is "first"
// again.
//
// Nothing is ever taken from the counts: the sum of seen.new over all events
// out of a Folder plus what it still holds equals the occurrences put in. What
// it still holds can be saved (Changed) and loaded (Restore), meant to be
// committed together with the events and the input positions behind them.
package episode

import (
	"container/heap"
	"container/list"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// Silence is how long nothing must happen for an episode to end. No window is
// longer, so an episode never ends with occurrences that nobody was told of.
const Silence = time.Hour

// window returns the length of the n-th window of an episode, counted from 0.
func window(n int) time.Duration {
	switch n {
	case 0:
		return time.Minute
	case 1:
		return 5 * time.Minute
	case 2:
		return 15 * time.Minute
	}
	return time.Hour
}

// Options of a Folder. The zero value folds with the usual bounds.
type Options struct {
	All         bool    // pass every occurrence through as kind "match" instead of folding
	MaxEpisodes int     // open at a time; 0 means 10,000. Beyond it the stalest one is reported and ended
	Rate        float64 // events a second for the whole Folder; 0 means 20, negative means no limit
	Burst       int     // events at once; 0 means 100
}

// Folder folds occurrences into events.
type Folder struct {
	all      bool
	max      int
	limiter  *rate.Limiter
	episodes map[string]*episode
	due      dueHeap    // by the time at which something has to be done
	stale    *list.List // of *episode, the one silent for longest in front
	changed  map[string]struct{}
	retry    time.Time // no token before this; zero: not waiting for one
}

// New builds a Folder.
func New(o Options) *Folder {
	if o.MaxEpisodes <= 0 {
		o.MaxEpisodes = 10_000
	}
	if o.Burst <= 0 {
		o.Burst = 100
	}
	limit := rate.Limit(o.Rate)
	switch {
	case o.Rate == 0:
		limit = 20
	case o.Rate < 0:
		limit = rate.Inf
	}
	return &Folder{
		all:      o.All,
		max:      o.MaxEpisodes,
		limiter:  rate.NewLimiter(limit, o.Burst),
		episodes: map[string]*episode{},
		stale:    list.New(),
		changed:  map[string]struct{}{},
	}
}

// Add takes one occurrence that was read at now and returns the events to
// send, those that other episodes owe by then included. An occurrence that
// stands for several (Seen.New > 1, because RisingWave itself suppressed some)
// counts as that many.
func (f *Folder) Add(ev annotate.Event, now time.Time) []annotate.Event {
	n := max(ev.Seen.New, 1)
	ev.Time = storable(ev.Time, now)
	if f.all {
		ev.Kind, ev.Seen = annotate.KindMatch, single(ev, n)
		return []annotate.Event{ev}
	}
	// A window that has closed meanwhile must not take this occurrence in.
	out := f.Tick(now)
	key := fingerprint(&ev)
	e := f.episodes[key]
	if e == nil {
		out = f.makeRoom(out)
		e = &episode{key: key, due: now, lastSeen: now}
		f.insert(e)
	}
	e.add(ev, n, now)
	f.stale.MoveToBack(e.place)
	f.touch(e)
	if !e.reported && f.allow(now) {
		out = append(out, e.report(now))
	}
	f.reschedule(e)
	return out
}

// Tick returns the events that are due at now. Call it at Next, or more often.
func (f *Folder) Tick(now time.Time) []annotate.Event {
	var out []annotate.Event
	for len(f.due) > 0 && !f.due[0].due.After(now) {
		e := f.due[0]
		if e.new > 0 {
			if !f.allow(now) {
				break // it keeps counting until there is a token
			}
			out = append(out, e.report(now))
		}
		if e.over(now) {
			f.remove(e)
			continue
		}
		e.advance(now)
		f.touch(e)
		f.reschedule(e)
	}
	return out
}

// Next is when Tick will next have something to do; zero if never.
func (f *Folder) Next() time.Time {
	if len(f.due) == 0 {
		return time.Time{}
	}
	due := f.due[0].due
	if f.due[0].new > 0 && due.Before(f.retry) {
		return f.retry
	}
	return due
}

// Flush reports everything that was counted and not yet reported, whatever
// the windows and the rate limit say. For a stop; the episodes go on.
func (f *Folder) Flush(now time.Time) []annotate.Event {
	var out []annotate.Event
	for p := f.stale.Front(); p != nil; p = p.Next() {
		e := p.Value.(*episode)
		if e.new == 0 {
			continue
		}
		out = append(out, e.report(now))
		f.touch(e)
		f.reschedule(e)
	}
	return out
}

// Len is the number of open episodes.
func (f *Folder) Len() int { return len(f.episodes) }

// makeRoom ends the stalest episode if there are as many as there may be. It
// is reported without asking for a token: dropping it would lose its count.
func (f *Folder) makeRoom(out []annotate.Event) []annotate.Event {
	if len(f.episodes) < f.max {
		return out
	}
	e := f.stale.Front().Value.(*episode)
	if e.new > 0 {
		out = append(out, e.report(e.lastSeen))
	}
	f.remove(e)
	return out
}

// allow takes a token, or notes when there will be one.
func (f *Folder) allow(now time.Time) bool {
	if f.limiter.AllowN(now, 1) {
		f.retry = time.Time{}
		return true
	}
	missing := 1 - f.limiter.TokensAt(now)
	// Rounded up, so that Tick at Next finds the token there.
	wait := time.Duration(math.Ceil(missing/float64(f.limiter.Limit())*1e9)) + time.Microsecond
	f.retry = now.Add(wait)
	return false
}

// insert keeps stale in order; a new episode goes to the back at once, only
// restored ones have to look for their place.
func (f *Folder) insert(e *episode) {
	f.episodes[e.key] = e
	after := f.stale.Back()
	for after != nil && after.Value.(*episode).lastSeen.After(e.lastSeen) {
		after = after.Prev()
	}
	if after == nil {
		e.place = f.stale.PushFront(e)
	} else {
		e.place = f.stale.InsertAfter(e, after)
	}
	heap.Push(&f.due, e)
}

func (f *Folder) remove(e *episode) {
	delete(f.episodes, e.key)
	f.stale.Remove(e.place)
	heap.Remove(&f.due, e.index)
	f.touch(e)
}

func (f *Folder) touch(e *episode) { f.changed[e.key] = struct{}{} }

func (f *Folder) reschedule(e *episode) {
	e.due = e.nextDue()
	heap.Fix(&f.due, e.index)
}

// fingerprint says which episode an occurrence belongs to. A pod is named by
// its namespace too; without Kubernetes the host takes the pod's place. NUL
// occurs in none of the parts.
func fingerprint(ev *annotate.Event) string {
	where := ev.K8s.Namespace + "/" + ev.K8s.Pod
	if ev.K8s.Pod == "" {
		where = ev.Origin.Host
	}
	return ev.Error.ID + "\x00" + ev.RW.Component + "\x00" + where
}

// single is the Seen of an occurrence that is reported by itself.
func single(ev annotate.Event, n int64) annotate.Seen {
	return annotate.Seen{New: n, Count: n, First: storable(ev.Seen.First, ev.Time), Last: storable(ev.Seen.Last, ev.Time)}
}

// storable is t, or the other one if t is missing or beyond the years that
// RFC 3339 can write. A log may hold any stamp, and the state must be saved.
func storable(t, otherwise time.Time) time.Time {
	if y := t.UTC().Year(); t.IsZero() || y < 0 || y > 9999 {
		return otherwise
	}
	return t
}

// dueHeap orders episodes by due, and those of one instant by key, so that
// the same input always gives the same output.
type dueHeap []*episode

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].key < h[j].key
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *dueHeap) Push(x any) {
	e := x.(*episode)
	e.index = len(*h)
	*h = append(*h, e)
}
func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
