package episode

import (
	"container/list"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// episode is what is known of one fingerprint. Times of occurrences (first,
// last) are the log's, the others are when this process read them: windows
// must close in real time even if old logs are being read.
type episode struct {
	key      string
	reported bool // its "first" event is out
	window   int  // number of the open window, from 0
	closes   time.Time
	lastSeen time.Time
	count    int64 // occurrences since the episode began
	new      int64 // of these, not reported yet
	first    time.Time
	last     time.Time
	sample   annotate.Event // the newest occurrence not reported yet

	due   time.Time // when the heap brings it up
	index int       // in the heap
	place *list.Element
}

func (e *episode) add(ev annotate.Event, n int64, now time.Time) {
	seen := single(ev, n)
	if e.count == 0 {
		e.first, e.last = seen.First, seen.Last
		e.closes = now.Add(window(0))
	}
	if seen.First.Before(e.first) {
		e.first = seen.First
	}
	if seen.Last.After(e.last) {
		e.last = seen.Last
	}
	if e.new == 0 || !ev.Time.Before(e.sample.Time) {
		e.sample = ev
	}
	e.count += n
	e.new += n
	e.lastSeen = now
}

// report turns what was counted into an event and counts from 0 again. The
// windows of an episode start with its first event.
func (e *episode) report(now time.Time) annotate.Event {
	ev := e.sample
	ev.Kind = annotate.KindRepeat
	if !e.reported {
		ev.Kind = annotate.KindFirst
		e.reported, e.window, e.closes = true, 0, now.Add(window(0))
	}
	ev.Seen = annotate.Seen{New: e.new, Count: e.count, First: e.first, Last: e.last}
	e.new, e.sample = 0, annotate.Event{}
	return ev
}

// over says whether the silence has lasted long enough. Everything has been
// reported then.
func (e *episode) over(now time.Time) bool { return now.Sub(e.lastSeen) >= Silence }

// advance opens the window that contains now. The windows follow one another
// without gaps even if nobody called for a while.
func (e *episode) advance(now time.Time) {
	for !e.closes.After(now) {
		e.window++
		e.closes = e.closes.Add(window(e.window))
	}
}

// nextDue is when the episode needs attention: at once for a first event that
// had no token, else when the window closes, or when the silence is long
// enough.
func (e *episode) nextDue() time.Time {
	switch silent := e.lastSeen.Add(Silence); {
	case !e.reported:
		return e.due
	case e.new == 0 && silent.Before(e.closes):
		return silent
	}
	return e.closes
}

// state is an episode at rest.
type state struct {
	Reported bool            `json:"r,omitempty"`
	Window   int             `json:"w"`
	Closes   time.Time       `json:"e"`
	LastSeen time.Time       `json:"s"`
	Count    int64           `json:"c"`
	New      int64           `json:"n,omitempty"`
	First    time.Time       `json:"f"`
	Last     time.Time       `json:"l"`
	Sample   *annotate.Event `json:"ev,omitempty"` // only if New > 0
}

// Changed calls save for each episode that has changed since the last call,
// with its fingerprint and its state; nil says that it has ended. The caller
// commits them in one transaction with the events that Add, Tick and Flush
// returned meanwhile: then no crash can make the counts wrong.
func (f *Folder) Changed(save func(key string, state []byte)) {
	for key := range f.changed {
		e := f.episodes[key]
		if e == nil {
			save(key, nil)
			continue
		}
		save(key, e.marshal())
	}
	clear(f.changed)
}

func (e *episode) marshal() []byte {
	s := state{Reported: e.reported, Window: e.window, Closes: e.closes, LastSeen: e.lastSeen,
		Count: e.count, New: e.new, First: e.first, Last: e.last}
	if e.new > 0 {
		s.Sample = &e.sample
	}
	b, err := json.Marshal(s)
	if err != nil {
		// Only a year beyond 9999 can do this, and storable lets none in.
		panic(fmt.Sprintf("episode: encode state: %v", err))
	}
	return b
}

// Restore loads an episode that Changed has saved, before the first Add. A
// state that cannot be read is an error and changes nothing. If the clock was
// set back since, no window stays open for longer than it may.
func (f *Folder) Restore(key string, saved []byte, now time.Time) error {
	var s state
	if err := json.Unmarshal(saved, &s); err != nil {
		return fmt.Errorf("episode %q: %w", key, err)
	}
	if s.Count <= 0 || s.New < 0 || s.New > s.Count || (s.New > 0) != (s.Sample != nil) || s.Window < 0 ||
		!s.Reported && s.New < s.Count {
		return fmt.Errorf("episode %q: state makes no sense", key)
	}
	if f.episodes[key] != nil {
		return fmt.Errorf("episode %q: is there already", key)
	}
	e := &episode{key: key, reported: s.Reported, window: s.Window, closes: s.Closes, lastSeen: s.LastSeen,
		count: s.Count, new: s.New, first: s.First, last: s.Last}
	if s.Sample != nil {
		e.sample = *s.Sample
	}
	if e.lastSeen.After(now) {
		e.lastSeen = now
	}
	if e.closes.Before(e.lastSeen) {
		e.closes = e.lastSeen // never saved like this, and advance would count from year 1
	}
	if latest := now.Add(window(e.window)); e.closes.After(latest) {
		e.closes = latest
	}
	e.due = now
	f.insert(e)
	f.reschedule(e)
	return nil
}
