package loki

import (
	"time"
)

// fill takes entries from the queue into memory, as far as there is room.
func (c *Client) fill(now time.Time) {
	if !c.hungry() {
		return
	}
	c.catchUp(now)
	for c.hungry() {
		if len(c.ahead) == 0 && !c.readOn(now) {
			return
		}
		if !c.take(c.ahead[0], now) {
			return
		}
		c.after = c.ahead[0].Seq
		c.ahead = c.ahead[1:]
	}
}

// hungry says whether there is room for more entries in memory. While the
// endpoint fails only a few are taken: enough to find out whether it fails for
// every stream.
func (c *Client) hungry() bool {
	limit := maxHeld
	if c.gate.failures > 0 {
		limit = heldWhenStuck
	}
	return c.heldBytes() < limit
}

// readOn reads the next piece of the queue.
func (c *Client) readOn(now time.Time) bool {
	if now.Before(c.pollAt) {
		return false
	}
	entries, err := c.queue.Read(c.after, readEntries, readBytes)
	if err != nil {
		c.tell.queue(err, now)
	}
	if len(entries) == 0 {
		c.pollAt = now.Add(poll)
		// A queue that was set aside as damaged begins again with low numbers.
		if n, _ := c.queue.Size(); n > 0 && len(c.held) == 0 && len(c.skipped) == 0 {
			c.after = 0
		}
		return false
	}
	c.ahead = entries
	return true
}

// take brings one entry to its stream. False means that it has to wait in the
// queue, and everything behind it: the stream is full and being emptied. If it
// is stuck instead, its entries are left behind and the others go on.
func (c *Client) take(q QueueEntry, now time.Time) bool {
	if _, ok := c.held[q.Seq]; ok {
		return true
	}
	it, ok := c.itemOf(q)
	if !ok {
		return true
	}
	if _, ok := c.skipped[it.lane]; ok {
		return true // behind others of its lane
	}
	s := c.place(&it, now)
	if s.bytes >= c.room(s) {
		if !s.stuck {
			return false
		}
		c.skipped[it.lane] = &gap{q.Seq, s.key}
		return true
	}
	c.hold(s, it, now)
	return true
}

// room is how many bytes of a stream may be in memory.
func (c *Client) room(s *stream) int {
	if s.stuck {
		return heldWhenStuck
	}
	return heldBatches * c.opts.BatchBytes
}

func (c *Client) hold(s *stream, it item, now time.Time) {
	if it.seq != 0 {
		c.held[it.seq] = struct{}{}
	}
	s.push(it, now)
}

// itemOf renders an entry. One that cannot be rendered never will be.
func (c *Client) itemOf(q QueueEntry) (item, bool) {
	e, err := c.render(q.Data)
	if err != nil {
		c.drop(item{seq: q.Seq, entry: Entry{Line: string(q.Data)}}, Malformed, err.Error())
		return item{}, false
	}
	it := item{seq: q.Seq, entry: e.tidy(c.maxLine)}
	if c.fold {
		it.folded, it.entry = true, it.entry.folded(c.maxLine)
	}
	it.lane = key(it.entry.Labels)
	it.size = it.entry.size()
	return it, true
}

// place finds the item's stream. Its labels are reduced where the server does
// not want them, or if there would be too many streams.
func (c *Client) place(it *item, now time.Time) *stream {
	k := key(it.entry.Labels)
	if !it.reduced && (c.fewer[k] || c.tooMany(k, now)) {
		it.reduced, it.entry = true, it.entry.reduced()
		it.size = it.entry.size()
		k = key(it.entry.Labels)
		c.stats.adjust("reduced")
	}
	if !it.reduced {
		c.seen[k] = now
	}
	labels := it.entry.Labels
	switch it.late {
	case 1:
		labels = labelled(labels, labelReplay, replayLate)
	case 2:
		labels = labelled(labels, labelReplay, replayRestamped)
	}
	if it.late > 0 {
		k = key(labels)
	}
	s := c.streams[k]
	if s == nil {
		s = &stream{key: k, labels: labels, least: it.reduced || len(it.entry.reduced().Labels) == len(it.entry.Labels)}
		c.streams[k] = s
		c.made++
		s.number = c.made
	}
	return s
}

// tooMany says whether one more label set is more than we allow ourselves.
// Those of pods that are long gone do not count.
func (c *Client) tooMany(k string, now time.Time) bool {
	if _, ok := c.seen[k]; ok || len(c.seen) < c.opts.MaxStreams {
		return false
	}
	for old, used := range c.seen {
		if now.Sub(used) > time.Hour {
			delete(c.seen, old)
		}
	}
	return len(c.seen) >= c.opts.MaxStreams
}

// gap says that a lane's entries from some sequence on were left in the queue.
type gap struct {
	from   uint64
	stream string // key of the stream that had no room for them
}

// catchUp takes what was left behind in the queue by streams that move again.
func (c *Client) catchUp(now time.Time) {
	for lane, g := range c.skipped {
		if s := c.streams[g.stream]; s != nil && s.bytes > c.room(s)/2 {
			continue
		}
		for more := true; more; {
			entries, err := c.queue.Read(g.from-1, readEntries, readBytes)
			if err != nil {
				c.tell.queue(err, now)
				return
			}
			if len(entries) == 0 {
				delete(c.skipped, lane)
				break
			}
			more = c.takeLane(lane, g, entries, now)
			if g.from > c.after {
				delete(c.skipped, lane)
				break
			}
		}
	}
}

// takeLane takes the entries of one lane and moves its gap on. False means
// that the lane's stream has no room for more.
func (c *Client) takeLane(lane string, g *gap, entries []QueueEntry, now time.Time) bool {
	for _, q := range entries {
		if g.from = q.Seq; q.Seq > c.after {
			return true // from there on entries are taken as they come
		}
		if _, ok := c.held[q.Seq]; ok {
			continue
		}
		it, ok := c.itemOf(q)
		if !ok || it.lane != lane {
			continue
		}
		s := c.place(&it, now)
		if s.bytes >= c.room(s) {
			g.stream = s.key
			return false
		}
		c.hold(s, it, now)
	}
	g.from++
	return true
}

// park sends all but the head of a stuck stream back to the queue, so that
// streams that have to wait cost no memory.
func (c *Client) park(s *stream) {
	todo, size := s.todo, 0
	s.todo = nil
	for len(todo) > 0 && len(s.todo) == 0 || len(todo) > 0 && size+sizeOf(todo[0].items) <= heldWhenStuck {
		size += sizeOf(todo[0].items)
		s.todo, todo = append(s.todo, todo[0]), todo[1:]
	}
	var back []item
	for _, b := range todo {
		back = append(back, b.items...)
	}
	back = append(back, s.pending...)
	if first := s.todo[0]; size > heldWhenStuck {
		n := max(1, len(first.items)*heldWhenStuck/size)
		back = append(back, first.items[n:]...)
		first.items = first.items[:n]
	}
	s.pending = nil
	s.count()
	for _, it := range back {
		if it.seq == 0 {
			continue
		}
		delete(c.held, it.seq)
		if g := c.skipped[it.lane]; g == nil {
			c.skipped[it.lane] = &gap{it.seq, s.key}
		} else if it.seq < g.from {
			g.from = it.seq
		}
	}
}

func (c *Client) heldBytes() (n int) {
	for _, s := range c.streams {
		if !s.stuck {
			n += s.bytes
		}
	}
	return n
}
