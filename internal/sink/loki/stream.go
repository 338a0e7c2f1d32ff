package loki

import (
	"slices"
	"time"
)

// item is an entry on its way.
type item struct {
	seq   uint64 // in the queue; 0: a heartbeat, which is in none
	lane  string // label set it was rendered with: within one the order is kept
	entry Entry
	size  int
	late  int // 0; 1: goes to the replay stream; 2: has got a new stamp too

	// What was tried already to get it accepted.
	cut, moved, folded, reduced bool
}

// batch is what one request carries: items of one stream, by time.
type batch struct {
	items []item

	refused     bool   // at least once, by itself or as part of a larger one
	proof       uint64 // pushes the endpoint had accepted by then: if it has accepted one since, the fault is ours
	streamProof uint64 // likewise, pushes of this stream
	said        string // the last 500's text, without numbers
	same        int    // how often in a row it said so
	suspect     bool   // a larger one was split to find the entry that causes 500s
}

// stream is one label set: its entries go out one request at a time.
type stream struct {
	key    string
	labels []Pair
	least  bool // the labels are already as few as can be

	todo    []*batch // tried before, or split: they go first
	pending []item   // in the order of the queue
	bytes   int      // of todo and pending
	since   time.Time

	busy      bool // a request is under way
	failures  int  // in a row
	notBefore time.Time
	stuck     bool // it is this stream that is refused, not all
	okCount   uint64
	maxBatch  int // 0: no own limit
	tried     time.Time
	number    int
}

// before says whether s is served before other.
func (s *stream) before(other *stream) bool {
	if !s.tried.Equal(other.tried) {
		return s.tried.Before(other.tried)
	}
	return s.number < other.number
}

func (s *stream) idle() bool { return !s.busy && len(s.todo) == 0 && len(s.pending) == 0 }

// push takes an item in. Entries that wait since are sent after the linger.
func (s *stream) push(it item, now time.Time) {
	if len(s.pending) == 0 {
		s.since = now
	}
	s.pending = append(s.pending, it)
	s.bytes += it.size
}

// requeue puts batches before everything else, in order.
func (s *stream) requeue(bs ...*batch) {
	s.todo = append(bs, s.todo...)
	s.count()
}

// requeueLast puts a batch behind everything else that is in memory: what it
// is followed by may prove that the fault is in it.
func (s *stream) requeueLast(b *batch, batchBytes int) {
	for len(s.pending) > 0 {
		s.todo = append(s.todo, s.fromPending(batchBytes))
	}
	s.todo = append(s.todo, b)
	s.count()
}

func (s *stream) count() {
	s.bytes = 0
	for _, b := range s.todo {
		s.bytes += sizeOf(b.items)
	}
	s.bytes += sizeOf(s.pending)
}

// due is when the stream has something to send; false if nothing is waiting.
func (s *stream) due(batchBytes int, linger time.Duration) (time.Time, bool) {
	var at time.Time
	switch {
	case s.busy || len(s.todo) == 0 && len(s.pending) == 0:
		return at, false
	case len(s.todo) > 0 || s.bytes >= s.limit(batchBytes):
		at = s.notBefore
	default:
		at = s.since.Add(linger)
	}
	if at.Before(s.notBefore) {
		at = s.notBefore
	}
	return at, true
}

func (s *stream) limit(batchBytes int) int {
	if s.maxBatch > 0 && s.maxBatch < batchBytes {
		return s.maxBatch
	}
	return batchBytes
}

// next takes the batch to send out of the stream.
func (s *stream) next(batchBytes int) *batch {
	if len(s.todo) > 0 {
		b := s.todo[0]
		s.todo = s.todo[1:]
		s.bytes -= sizeOf(b.items)
		return b
	}
	return s.fromPending(batchBytes)
}

func (s *stream) fromPending(batchBytes int) *batch {
	n, size := 0, 0
	for n < len(s.pending) && (n == 0 || size+s.pending[n].size <= s.limit(batchBytes)) {
		size += s.pending[n].size
		n++
	}
	b := &batch{items: byTime(s.pending[:n])}
	s.pending = s.pending[n:]
	s.bytes -= size
	return b
}

// take empties the stream and returns what was in it, in order.
func (s *stream) take() []item {
	var out []item
	for _, b := range s.todo {
		out = append(out, b.items...)
	}
	out = append(out, s.pending...)
	s.todo, s.pending, s.bytes = nil, nil, 0
	return out
}

// halves splits a batch. The halves are under the same suspicion.
func (b *batch) halves() []*batch {
	m := len(b.items) / 2
	one, two := *b, *b
	one.items, two.items = b.items[:m], b.items[m:]
	return []*batch{&one, &two}
}

// byTime copies items and sorts them by time; those of one instant stay in
// order. Loki takes an old entry only before a newer one has come.
func byTime(items []item) []item {
	out := slices.Clone(items)
	slices.SortStableFunc(out, func(a, b item) int { return a.entry.Time.Compare(b.entry.Time) })
	return out
}

func sizeOf(items []item) (n int) {
	for i := range items {
		n += items[i].size
	}
	return n
}
