// Package loki delivers queued events to Grafana Loki, or to whatever speaks
// its push protocol: every one of them, in order, or with a reason counted and
// written down.
//
// The rules come from what Loki does, not from what its status codes say. One
// request carries one stream (label set), since Loki forgets the errors of one
// stream over the success of another. Only 204 and 200 acknowledge. A 400
// stores the entries that it does not complain about. Some 500s are for ever
// and must be searched for the entry that causes them. There is no limit on
// retries: what cannot be sent stays in the queue on disk, oldest first, until
// it can. facts and reasons stand beside the code that needs them; answer.go
// holds the table of answers.
//
// A Client has one goroutine that decides and a few that send. Everything it
// knows is rebuilt from the queue after a crash; an entry that is sent again
// is byte for byte the same, and Loki keeps one of the two.
package loki

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// QueueEntry is one stored event.
type QueueEntry struct {
	Seq  uint64
	Data []byte
}

// Queue is where events wait, oldest first; safe for concurrent use. Sequence
// numbers grow and are never used again.
type Queue interface {
	// Read returns entries with a sequence above after, at most maxEntries and
	// about maxBytes of them, but one if there is one.
	Read(after uint64, maxEntries, maxBytes int) ([]QueueEntry, error)
	// Ack removes entries; unknown ones are no error.
	Ack(seqs []uint64) error
	Size() (entries int, bytes int64)
}

// How much is in memory: of the queue's end that is being sent, of one stream,
// and of a stream that has to wait while others do not.
const (
	maxHeld       = 8 << 20
	heldBatches   = 2
	heldWhenStuck = 128 << 10
	readEntries   = 1000
	readBytes     = 1 << 20
)

// poll is how often the queue is looked at when nobody calls Wake.
const poll = time.Second

// Client sends the entries of one queue to one endpoint.
type Client struct {
	opts   Options
	queue  Queue
	render func(data []byte) (Entry, error)
	post   *poster
	log    zerolog.Logger
	tell   *teller
	drops  *drops
	stats  meter
	wake   chan struct{}

	// From here on everything belongs to the goroutine of Run.
	gate     gate
	streams  map[string]*stream
	seen     map[string]time.Time // label sets and when they were last used, to bound their number
	fewer    map[string]bool      // label sets that the server does not want: sent reduced
	held     map[uint64]struct{}  // entries in memory, so that none is taken twice
	unacked  []uint64             // done with, but the queue could not be told yet
	ahead    []QueueEntry         // read and not yet taken
	after    uint64               // everything up to here was taken or is in skipped
	skipped  map[string]*gap      // by lane: entries left in the queue while their stream is stuck
	pollAt   time.Time
	maxLine  int    // the server may want shorter ones than we send
	fold     bool   // the server wants no metadata
	okCount  uint64 // requests that stored something
	inFlight int
	made     int // streams, to tell their order
	beatAt   time.Time
	results  chan result
	packers  []*packer
	started  time.Time
}

// result is what came of one request.
type result struct {
	s       *stream
	b       *batch
	round   uint64
	answer  answer
	packer  *packer
	plain   int // bytes of the request
	packed  int // bytes on the wire
	aborted bool
}

// New checks the options, reporting everything that is wrong with them, and
// builds a Client. render turns the data of a queue entry into what is sent,
// always the same for the same data (Renderer.Render).
func New(o Options, q Queue, render func(data []byte) (Entry, error), log zerolog.Logger) (*Client, error) {
	o, u, err := o.withDefaults()
	var p *poster
	if u != nil {
		var perr error
		p, perr = newPoster(o, u)
		err = errors.Join(err, perr)
	}
	if err != nil {
		return nil, fmt.Errorf("loki: %w", err)
	}
	c := &Client{
		opts: o, queue: q, render: render, post: p, log: log,
		tell: newTeller(o.Name, p.shown, log), drops: newDrops(o, log), wake: make(chan struct{}, 1),
		streams: map[string]*stream{}, seen: map[string]time.Time{}, fewer: map[string]bool{},
		held: map[uint64]struct{}{}, skipped: map[string]*gap{}, maxLine: maxLine,
		results: make(chan result, o.Parallel), gate: gate{backoff: backoff{o.MinBackoff, max(o.MinBackoff, o.MaxBackoff)}},
	}
	for range o.Parallel {
		c.packers = append(c.packers, &packer{})
	}
	return c, nil
}

// Wake says that the queue has new entries. It never blocks.
func (c *Client) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Discard accounts for entries that the owner of the queue had to throw away.
func (c *Client) Discard(reason Reason, data [][]byte) {
	now := time.Now()
	for _, d := range data {
		e, err := c.render(d)
		if err != nil {
			e = Entry{Line: string(d)}
		}
		c.drops.add(reason, e, "", now)
	}
}

// Run sends until ctx ends, and then for as long as Options.Drain what can be
// sent at once. What is left stays in the queue. It returns nil.
func (c *Client) Run(ctx context.Context) error {
	// Requests outlive ctx: an answer that is on its way saves a duplicate.
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	c.started = time.Now()
	c.beatAt = c.started.Add(c.opts.Heartbeat)
	stop, deadline := ctx.Done(), time.Time{}
	for {
		now := time.Now()
		c.flushAcks()
		c.beat(now, stop == nil)
		c.fill(now)
		c.dispatch(requests, now, stop == nil)
		c.drops.tick(now)
		c.publish()
		wait := c.next(now, stop == nil)
		if stop == nil {
			if c.nothingLeft(now, wait, deadline) || !now.Before(deadline) {
				break
			}
			wait = earlier(wait, deadline)
		}
		timer := time.NewTimer(max(wait.Sub(now), 0))
		select {
		case r := <-c.results:
			c.settle(r)
		case <-c.wake:
			c.pollAt = time.Time{}
		case <-timer.C:
		case <-stop:
			stop, deadline = nil, time.Now().Add(c.opts.Drain)
			c.pollAt = time.Time{}
		}
		timer.Stop()
	}
	abort()
	for c.inFlight > 0 {
		c.settle(<-c.results)
	}
	c.flushAcks()
	c.drops.close(time.Now())
	c.publish()
	return nil
}

// nothingLeft ends a drain early: all is sent, or nothing could be sent
// before the deadline anyway.
func (c *Client) nothingLeft(now, next, deadline time.Time) bool {
	if c.inFlight > 0 {
		return false
	}
	if c.gate.failures > 0 && c.gate.until.After(deadline) {
		return true
	}
	for _, s := range c.streams {
		if !s.idle() && s.notBefore.Before(deadline) {
			return false
		}
	}
	return len(c.ahead) == 0 && c.pollAt.After(now) || next.After(deadline)
}

// next is when something is to be done without a result or a wake.
func (c *Client) next(now time.Time, draining bool) time.Time {
	at := now.Add(time.Minute)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	if c.hungry() && len(c.ahead) == 0 {
		sooner(c.pollAt)
	}
	if !draining && c.opts.Heartbeat > 0 {
		sooner(c.beatAt)
	}
	sooner(c.drops.next())
	if len(c.unacked) > 0 {
		sooner(now.Add(poll))
	}
	if c.inFlight == c.opts.Parallel || c.gate.probing {
		return at
	}
	for _, s := range c.streams {
		if due, ok := s.due(c.opts.BatchBytes, c.linger(draining)); ok {
			if c.gate.failures > 0 && due.Before(c.gate.until) {
				due = c.gate.until
			}
			sooner(due)
		}
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (c *Client) linger(draining bool) time.Duration {
	if draining {
		return 0
	}
	return c.opts.Linger
}

// dispatch starts requests for streams that are due, the one that was served
// longest ago first: a stream that fails never keeps the others waiting.
func (c *Client) dispatch(ctx context.Context, now time.Time, draining bool) {
	for c.inFlight < c.opts.Parallel && c.gate.open(now) {
		var best *stream
		for _, s := range c.streams {
			due, ok := s.due(c.opts.BatchBytes, c.linger(draining))
			if ok && !due.After(now) && (best == nil || s.before(best)) {
				best = s
			}
		}
		if best == nil {
			return
		}
		b := best.next(c.opts.BatchBytes)
		best.tried = now
		if c.weed(best, b, now); len(b.items) == 0 {
			c.forget(best)
			continue
		}
		c.start(ctx, best, b)
	}
}

func (c *Client) start(ctx context.Context, s *stream, b *batch) {
	s.busy = true
	c.inFlight++
	p := c.packers[len(c.packers)-1]
	c.packers = c.packers[:len(c.packers)-1]
	r := result{s: s, b: b, round: c.gate.enter(), packer: p}
	labels, items := s.labels, b.items
	go func() {
		body, plain := p.pack(labels, items)
		r.answer = c.post.post(ctx, body)
		r.plain, r.packed, r.aborted = plain, len(body), ctx.Err() != nil && r.answer.err != nil
		c.results <- r
	}()
}

// weed takes out of a batch what is too old to be stored, and gives a stamp
// that can be stored to what is ahead of its time.
func (c *Client) weed(s *stream, b *batch, now time.Time) {
	kept := b.items[:0:0]
	for _, it := range b.items {
		switch age := now.Sub(it.entry.Time); {
		case it.entry.Time.Year() < 1970 || c.opts.MaxAge > 0 && age > c.opts.MaxAge:
			c.drop(it, TooOld, "")
			continue
		case age < -maxAhead:
			it.entry = it.entry.at(now)
			it.moved = true
			c.stats.adjust("future")
		}
		kept = append(kept, it)
	}
	b.items = kept
}

// maxAhead is how far in the future Loki takes entries.
const maxAhead = 10 * time.Minute

// forget removes a stream that has nothing more to say.
func (c *Client) forget(s *stream) {
	if s.idle() {
		delete(c.streams, s.key)
	}
}
