package loki

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// drops accounts for every entry that was given up: a counter for each reason,
// one log line a minute with a sample, and the entry itself in the dead-letter
// file. Safe for concurrent use.
type drops struct {
	endpoint string
	log      zerolog.Logger
	letters  *letters

	mu     sync.Mutex
	counts map[Reason]uint64
	told   map[Reason]uint64 // what the last log lines said
	sample map[Reason]deadLetter
	last   time.Time
}

// deadLetter is one line of the dead-letter file: what was to be sent, and why
// it was not.
type deadLetter struct {
	Time     time.Time         `json:"time"`
	Endpoint string            `json:"endpoint"`
	Reason   Reason            `json:"reason"`
	Answer   string            `json:"answer,omitempty"` // the server's
	Labels   map[string]string `json:"labels,omitempty"`
	Stamp    time.Time         `json:"timestamp"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Line     string            `json:"line"`
}

func newDrops(o Options, log zerolog.Logger) *drops {
	d := &drops{endpoint: o.Name, log: log, letters: &letters{path: o.DeadLetter, max: o.DeadLetterBytes},
		counts: map[Reason]uint64{}, told: map[Reason]uint64{}, sample: map[Reason]deadLetter{}}
	for _, r := range Reasons() {
		d.counts[r] = 0
	}
	return d
}

// add gives an entry up.
func (d *drops) add(reason Reason, e Entry, said string, now time.Time) {
	letter := deadLetter{Time: now.UTC(), Endpoint: d.endpoint, Reason: reason, Answer: shorten(said, 1<<10),
		Labels: toMap(e.Labels), Stamp: printable(e.Time), Metadata: toMap(e.Metadata), Line: strings.ToValidUTF8(e.Line, "\uFFFD")}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts[reason]++
	if d.counts[reason] == d.told[reason]+1 {
		d.sample[reason] = letter
	}
	if err := d.letters.write(letter); err != nil && !d.letters.complained {
		d.letters.complained = true
		d.log.Warn().Err(err).Msg("dead-letter file cannot be written; entries given up are only counted")
	}
	d.report(now)
}

// report logs what was dropped since the last time, at most once a minute.
func (d *drops) report(now time.Time) {
	if !d.last.IsZero() && now.Sub(d.last) < time.Minute {
		return
	}
	for _, r := range Reasons() {
		n := d.counts[r] - d.told[r]
		if n == 0 {
			continue
		}
		s := d.sample[r]
		d.log.Error().Str("endpoint", d.endpoint).Str("reason", string(r)).Uint64("entries", n).Uint64("total", d.counts[r]).
			Str("answer", shorten(s.Answer, 300)).Time("sample_time", s.Stamp).Str("sample_line", shorten(s.Line, 300)).
			Msg("entries dropped: " + r.because())
		d.told[r] = d.counts[r]
		d.last = now
	}
}

// because says why an entry is given up.
func (r Reason) because() string {
	if r == QueueFull {
		return "the queue was full, and the input cannot wait"
	}
	return "the endpoint will never take them"
}

// tick is report for times when nothing is dropped.
func (d *drops) tick(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.report(now)
}

// next is when report has something to say; zero if never.
func (d *drops) next() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	for r, n := range d.counts {
		if n > d.told[r] {
			return d.last.Add(time.Minute)
		}
	}
	return time.Time{}
}

func (d *drops) close(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Time{}
	d.report(now)
	d.letters.close()
}

func (d *drops) snapshot() map[Reason]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[Reason]uint64, len(d.counts))
	for r, n := range d.counts {
		out[r] = n
	}
	return out
}

// letters is the dead-letter file: NDJSON, renamed to .1 when it is full, so
// that the newest half or more of two files is kept.
type letters struct {
	path       string
	max        int64
	file       *os.File
	size       int64
	complained bool
}

func (l *letters) write(d deadLetter) error {
	if l.path == "" {
		return nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode dead letter: %w", err)
	}
	b = append(b, '\n')
	if l.file != nil && l.size+int64(len(b)) > l.max {
		l.close()
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return err
		}
	}
	if l.file == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	return err
}

// open continues an existing file. Log lines may hold what is nobody else's
// business: it is ours to read only.
func (l *letters) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

func (l *letters) close() {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

func toMap(pairs []Pair) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		out[p.Name] = p.Value
	}
	return out
}

// printable is t, or zero if JSON has no form for it.
func printable(t time.Time) time.Time {
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}
	}
	return t.UTC()
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:runeBorder(s, n)] + "…"
}
