package loki

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Stats is a snapshot of what a Client has done and holds.
type Stats struct {
	SentEntries uint64
	SentBytes   uint64 // before compression
	Retries     uint64 // requests whose bytes have to be sent again
	Dropped     map[Reason]uint64
	// Adjusted counts entries that could only be sent changed: "replay" and
	// "restamped" (too far behind), "future" (stamp moved back), "cut",
	// "folded" (metadata into the line), "reduced" (fewer labels).
	Adjusted map[string]uint64

	QueueEntries int
	QueueBytes   int64
	OldestTime   time.Time // of the oldest entry in the queue, by its own stamp; zero: empty
	InFlight     int       // requests
	Streams      int       // with entries on their way
	HeldBytes    int       // in memory
	LastSuccess  time.Time // zero: none yet
	Failing      bool      // the endpoint as a whole, since FailingSince
	FailingSince time.Time
	LastError    string // of the last request that failed, no secrets in it; ""
}

// adjustments have counters from the start.
var adjustments = []string{"replay", "restamped", "future", "cut", "folded", "reduced"}

// meter counts. Safe for concurrent use.
type meter struct {
	mu sync.Mutex
	s  Stats
}

func (m *meter) sent(items []item, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.SentBytes += uint64(bytes)
	for i := range items {
		if items[i].seq != 0 { // heartbeats are not counted
			m.s.SentEntries++
		}
	}
}

func (m *meter) retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.Retries++
}

func (m *meter) failed(a answer) {
	said := fmt.Sprintf("status %d: %s", a.status, shorten(a.body, 300))
	if a.err != nil {
		said = a.err.Error()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.LastError = said
}

func (m *meter) success(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.LastSuccess = now
}

func (m *meter) adjust(how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.s.Adjusted == nil {
		m.s.Adjusted = map[string]uint64{}
	}
	m.s.Adjusted[how]++
}

// publish copies what only the goroutine of Run knows.
func (c *Client) publish() {
	m := &c.stats
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s.InFlight, m.s.Streams, m.s.HeldBytes = c.inFlight, len(c.streams), 0
	for _, s := range c.streams {
		m.s.HeldBytes += s.bytes
	}
	m.s.Failing, m.s.FailingSince = c.gate.failures > 0, time.Time{}
	if m.s.Failing {
		m.s.FailingSince = c.gate.since
	}
}

// Stats may be called at any time.
func (c *Client) Stats() Stats {
	c.stats.mu.Lock()
	out := c.stats.s
	out.Adjusted = map[string]uint64{}
	for _, how := range adjustments {
		out.Adjusted[how] = 0
	}
	maps.Copy(out.Adjusted, c.stats.s.Adjusted)
	c.stats.mu.Unlock()
	out.Dropped = c.drops.snapshot()
	out.QueueEntries, out.QueueBytes = c.queue.Size()
	if head, err := c.queue.Read(0, 1, readBytes); err == nil && len(head) > 0 {
		if e, err := c.render(head[0].Data); err == nil {
			out.OldestTime = e.Time
		}
	}
	return out
}

// Name is the endpoint's name in logs and metrics.
func (c *Client) Name() string { return c.opts.Name }

// heartbeat is the line that says we are alive, so that an alert can be made
// of its absence.
type heartbeat struct {
	Level    string            `json:"level"`
	Time     time.Time         `json:"time"`
	Message  string            `json:"message"`
	Version  string            `json:"version"`
	Instance string            `json:"instance"`
	Endpoint string            `json:"endpoint"`
	Uptime   int64             `json:"uptime_seconds"`
	Sent     uint64            `json:"sent"`
	Retries  uint64            `json:"retries"`
	Dropped  map[Reason]uint64 `json:"dropped"`
	Queue    int               `json:"queue_entries"`
	Bytes    int64             `json:"queue_bytes"`
}

// beat puts a heartbeat on its way. It goes past the queue: an old one is of
// no use, so the newest replaces those that could not be sent.
func (c *Client) beat(now time.Time, draining bool) {
	if draining || c.opts.Heartbeat < 0 || now.Before(c.beatAt) {
		return
	}
	c.beatAt = now.Add(c.opts.Heartbeat)
	c.publish()
	s := c.Stats()
	line, err := json.Marshal(heartbeat{"info", now.UTC(), "heartbeat", c.opts.Version, c.opts.Instance, c.opts.Name,
		int64(now.Sub(c.started).Seconds()), s.SentEntries, s.Retries, s.Dropped, s.QueueEntries, s.QueueBytes})
	if err != nil {
		panic(fmt.Sprintf("loki: encode heartbeat: %v", err)) // numbers and strings only
	}
	labels := []Pair{{labelService, ServiceHeartbeat}, {LabelKind, KindHeartbeat}, {LabelLevel, "info"}}
	for name, value := range c.opts.HeartbeatLabels {
		labels = append(labels, Pair{name, value})
	}
	e := Entry{Labels: labels, Metadata: []Pair{{"node", c.opts.Instance}}, Time: now, Line: string(line)}.tidy(c.maxLine)
	it := item{entry: e, lane: key(e.Labels), size: e.size()}
	if c.fold {
		it.folded, it.entry = true, e.folded(c.maxLine)
	}
	to := c.place(&it, now)
	to.take()
	to.push(it, now)
}
