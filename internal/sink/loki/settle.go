package loki

import (
	"fmt"
	"regexp"
	"time"
)

// settle draws the consequences of one answer.
func (c *Client) settle(r result) {
	s, b := r.s, r.b
	c.inFlight--
	c.packers = append(c.packers, r.packer)
	s.busy = false
	if r.aborted {
		return // the process ends; everything is still in the queue
	}
	now := r.answer.when
	v := judge(r.answer)
	if v.do != later {
		c.gate.pass()
	}
	c.tell.answer(v, r.answer, c.gate, now)
	switch v.do {
	case accepted:
		c.stats.sent(b.items, r.plain)
		c.stored(s, now)
		c.done(b.items)
	case later:
		c.stats.failed(r.answer)
		c.retryLater(s, b, v, r, now)
	case slower:
		c.retrySlower(s, b, v, now)
	case fewer:
		c.useFewerLabels(s, b, v, r.answer, now)
	case halves:
		c.split(s, b, v, r, now)
	case inspect:
		c.inspect(s, b, v, r, now)
	}
	c.forget(s)
}

// stored notes that the endpoint has taken something from this stream.
func (c *Client) stored(s *stream, now time.Time) {
	c.okCount++
	s.okCount++
	c.stats.success(now)
	s.failures, s.stuck, s.notBefore = 0, false, time.Time{}
	if s.maxBatch *= 2; s.maxBatch >= c.opts.BatchBytes {
		s.maxBatch = 0
	}
}

// pause keeps a stream from sending for a while.
func (c *Client) pause(s *stream, asked time.Duration, now time.Time) {
	s.failures++
	s.notBefore = now.Add(max(asked, c.gate.backoff.after(s.failures)))
}

// retryLater sends the same bytes again once the endpoint works.
func (c *Client) retryLater(s *stream, b *batch, v verdict, r result, now time.Time) {
	c.stats.retry()
	if v.poison && c.poisoned(s, b, v, r, now) {
		return
	}
	c.pause(s, v.wait, now)
	c.gate.fail(r.round, v.wait, now)
	switch {
	case len(b.items) > 1 && v.total > v.limit: // a batch above the burst allowance never passes
		s.maxBatch = max(r.plain/2, 1)
		s.requeue(b.halves()...)
	case len(b.items) > 1 && b.same >= 10: // poison, and nothing else is sent that would prove it
		b.same, b.suspect = 0, true
		s.requeue(b.halves()...)
	default:
		s.requeue(b)
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// poisoned looks for an entry that makes the server fail, for ever: the same
// 500 three times for one batch, while the endpoint takes others. The batch is
// split until it is found. By itself it gets another three tries, and it is
// dropped only if others of its own stream get through meanwhile: it may be
// the stream's ingester that is down. Only this stream has to wait for all that.
// False: it looks like a failure of the endpoint.
func (c *Client) poisoned(s *stream, b *batch, v verdict, r result, now time.Time) bool {
	if said := digits.ReplaceAllString(r.answer.body, ""); said != b.said || b.same == 0 {
		b.said, b.same, b.proof, b.streamProof = said, 0, c.okCount, s.okCount
	}
	b.same++
	switch {
	case len(b.items) > 1 && c.okCount > b.proof && (b.same >= 3 || b.suspect):
		parts := b.halves()
		for _, p := range parts {
			p.suspect = true
			if len(p.items) == 1 {
				p.same = 0 // judged anew
			}
		}
		s.requeue(parts...)
	case len(b.items) == 1 && s.okCount > b.streamProof && b.same >= 3:
		c.drop(b.items[0], Unknown, r.answer.body)
	case b.suspect:
		c.pause(s, v.wait, now)
		s.requeueLast(b, c.opts.BatchBytes)
	default:
		return false
	}
	c.gate.pass()
	return true
}

// retrySlower makes one stream wait. What it holds goes back to the queue.
func (c *Client) retrySlower(s *stream, b *batch, v verdict, now time.Time) {
	c.stats.retry()
	c.pause(s, v.wait, now)
	s.stuck = true
	if s.failures >= 3 && len(b.items) > 1 {
		s.maxBatch = max(sizeOf(b.items)/2, 1) // a burst allowance may be smaller than the batch
		s.requeue(b.halves()...)
	} else {
		s.requeue(b)
	}
	c.park(s)
}

// useFewerLabels moves a stream's entries to a stream with the labels that
// every event shares. If those are refused as well there is nothing left but
// to wait.
func (c *Client) useFewerLabels(s *stream, b *batch, v verdict, a answer, now time.Time) {
	if !s.least {
		c.fewer[key(b.items[0].entry.Labels)] = true
		s.requeue(b)
		c.move(s.take(), now)
		return
	}
	if v.reason == InvalidLabels && b.refuse(c.okCount) {
		for _, it := range b.items {
			c.drop(it, InvalidLabels, a.body)
		}
		return
	}
	v.wait = max(v.wait, c.opts.MaxBackoff) // the limit is on active streams: they stay so for minutes
	c.retrySlower(s, b, v, now)
}

// move places items anew.
func (c *Client) move(items []item, now time.Time) {
	for _, it := range items {
		c.hold(c.place(&it, now), it, now)
	}
}

// refuse notes a refusal. It is true if the endpoint has accepted something
// since the first one, so that the fault is in the entries and not in how the
// endpoint is set up. Without that nothing is dropped.
func (b *batch) refuse(okCount uint64) (proven bool) {
	if !b.refused {
		b.refused, b.proof = true, okCount
	}
	return okCount > b.proof
}

// split sends a batch in two parts; what is refused by itself is dropped.
func (c *Client) split(s *stream, b *batch, v verdict, r result, now time.Time) {
	proven := b.refuse(c.okCount)
	if v.reason == TooLarge {
		s.maxBatch = max(r.plain/2, 1)
	}
	switch {
	case len(b.items) > 1:
		s.requeue(b.halves()...)
	case proven:
		c.drop(b.items[0], v.reason, r.answer.body)
	default:
		c.stats.retry()
		c.pause(s, v.wait, now)
		s.requeueLast(b, c.opts.BatchBytes)
	}
}

// inspect handles a 400 that stores all entries but those it complains about.
func (c *Client) inspect(s *stream, b *batch, v verdict, r result, now time.Time) {
	faults, whole := explain(r.answer.body, b.items)
	if len(faults) == 0 {
		c.split(s, b, v, r, now)
		return
	}
	var fine, again []item
	for i, it := range b.items {
		f, bad := faults[i]
		switch {
		case !bad:
			fine = append(fine, it)
		case c.mend(&it, f, r.answer):
			again = append(again, it)
		default:
			c.drop(it, f.reason, r.answer.body)
		}
	}
	if !whole {
		// Stored or not, sending them again does no harm: they are the same bytes.
		c.again(s, append(again, fine...), now)
		return
	}
	if len(fine) > 0 {
		c.stats.sent(fine, sizeOf(fine))
		c.stored(s, now)
		c.done(fine)
	}
	c.again(s, again, now)
}

// again sends mended entries, those of the same stream before everything else.
func (c *Client) again(s *stream, items []item, now time.Time) {
	var same []item
	for _, it := range items {
		if to := c.place(&it, now); to != s {
			to.push(it, now)
			continue
		}
		same = append(same, it)
	}
	if len(same) > 0 {
		s.requeue(&batch{items: byTime(same)})
	}
}

// mend changes what an entry was refused for. False if that was tried before,
// or if nothing can be done.
func (c *Client) mend(it *item, f fault, a answer) bool {
	switch f.reason {
	case TooFarBehind:
		return c.mendLate(it, a.when)
	case TooNew:
		if it.moved {
			return false
		}
		it.moved, it.entry = true, it.entry.at(serverTime(a))
		c.stats.adjust("future")
	case LineTooLong:
		if it.cut || f.limit < 256 {
			return false
		}
		c.maxLine = min(c.maxLine, f.limit)
		short := cutLine(it.entry.Line, c.maxLine)
		it.entry = it.entry.with(metaTruncated, fmt.Sprint(len(it.entry.Line)-len(short)))
		it.cut, it.entry.Line = true, short
		c.stats.adjust("cut")
	case MetadataTooLarge:
		if it.folded {
			return false
		}
		// A limit on its size is about this entry, a ban is about all.
		if f.limit == 0 {
			c.fold = true
		}
		it.folded, it.entry = true, it.entry.folded(c.maxLine)
		c.stats.adjust("folded")
	default:
		return false
	}
	it.size = it.entry.size()
	return true
}

// mendLate: what is more than an hour behind its stream goes into one that
// holds late entries only, ordered like them. What is behind even that keeps
// its place in time only in the metadata.
func (c *Client) mendLate(it *item, now time.Time) bool {
	switch it.late {
	case 0:
		c.stats.adjust("replay")
	case 1:
		it.entry = it.entry.at(now)
		c.stats.adjust("restamped")
	default:
		return false
	}
	it.late++
	it.size = it.entry.size()
	return true
}

// serverTime is the server's clock, where its answer shows it.
func serverTime(a answer) time.Time {
	if t, err := time.Parse(time.RFC1123, a.header.Get("Date")); err == nil && t.Before(a.when) {
		return t
	}
	return a.when
}

// drop gives an entry up.
func (c *Client) drop(it item, reason Reason, said string) {
	if it.seq != 0 { // nobody misses a heartbeat
		c.drops.add(reason, it.entry, said, time.Now())
	}
	c.done([]item{it})
}

// done removes entries from the queue.
func (c *Client) done(items []item) {
	for _, it := range items {
		if it.seq != 0 {
			c.held[it.seq] = struct{}{} // until the queue has forgotten it too
			c.unacked = append(c.unacked, it.seq)
		}
	}
	c.flushAcks()
}

// flushAcks tells the queue. While it cannot take it (a full disk) the entries
// are remembered, so that none is sent twice by this process.
func (c *Client) flushAcks() {
	if len(c.unacked) == 0 {
		return
	}
	if err := c.queue.Ack(c.unacked); err != nil {
		c.tell.queue(err, time.Now())
		return
	}
	for _, seq := range c.unacked {
		delete(c.held, seq)
	}
	c.unacked = nil
}
