// Package pipeline is one stream's path from bytes to events: lines out of
// reads, messages out of envelopes, records out of lines, and for the few
// records that may hold a known error the decision which one it is.
//
//	bytes ──► lines ──► Unwrap ──► records ──► Parse ──► Match ──► Event
//	     └─ Candidates: for 99.9 % of the lines it ends here
//
// Everything happens in the goroutine that calls ReadOnce; nothing is
// allocated for a line without a hit. However the bytes are split into reads,
// the events are the same.
package pipeline

import (
	"bytes"
	"io"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
)

// Options of a Stream. Zero values mean the defaults in brackets.
type Options struct {
	FlushAfter time.Duration    // silence after which an open record is complete [250 ms]
	MaxRecord  int              // bytes of one record that are looked at together [256 KiB]
	Echoes     bool             // report repetitions in spans too
	Unfiltered bool             // decode and match every record: for tests of the prefilter
	Now        func() time.Time // [time.Now]
	Mask       *annotate.Masker // [none]

	// Unmatched is called for each record of level WARN or higher, or panic, in
	// which no known error is, with its time and component. It makes the stream
	// look at every line. [none]
	Unmatched func(rec *logline.Record, at time.Time, component string)
}

// Info says where a stream comes from.
type Info struct {
	Input  string // file, stdin
	Path   string
	K8s    annotate.K8s
	Offset int64 // of the first byte that will be read
	Line   int64 // 1-based number of its line; 0 if unknown
}

// Stats counts what a Stream has seen.
type Stats struct {
	Bytes      int64
	Lines      int64
	Candidates int64 // records that the prefilter let through
	Rejected   int64 // … in which no known error was confirmed
	Events     int64
	Echoes     int64 // known errors in spans only, reported before
	Truncated  int64 // records longer than MaxRecord
	Nulls      int64 // journal entries without their text
	Malformed  int64 // damage in journal export data
}

const (
	startBuffer = 1 << 10   // thousands of quiet files are followed
	bulkBuffer  = 512 << 10 // what blocks are read at when there is much to read
	maxLine     = 1 << 20   // longest line held in one piece
)

// A Stream turns one stream's bytes into events. Not safe for concurrent use.
type Stream struct {
	info    Info
	opt     Options
	matcher func() *match.Matcher
	emit    func(*annotate.Event) error

	buf              []byte
	offset           int64 // of buf[0] in the stream
	line             int64 // number of the line that starts at buf[0]
	begun            bool
	export           bool  // journal export format
	entry, entryLine int64 // where the journal entry being read starts
	giant            *record

	unwrap     logline.Unwrapper
	scratch    []byte
	candidates []int
	next       int // index of the first candidate not yet passed
	bare       int // lines without an envelope in a row
	open       map[writer]*record
	last       *record // the record that took the last line
	free       [][]byte
	cursor     []byte // of the last journal entry read
	sweep      time.Time
	now        time.Time
	echoes     echoes
	stats      Stats
	err        error // of emit
}

// New makes a Stream. matcher is asked once per read, so that a catalogue can
// be replaced while the stream runs. emit is called for each event in the
// order of the records; its error stops the stream.
func New(info Info, matcher func() *match.Matcher, emit func(*annotate.Event) error, opt Options) *Stream {
	if opt.FlushAfter == 0 {
		opt.FlushAfter = 250 * time.Millisecond
	}
	if opt.MaxRecord == 0 {
		opt.MaxRecord = 256 << 10
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Stream{info: info, opt: opt, matcher: matcher, emit: emit, offset: info.Offset, line: info.Line, open: map[writer]*record{}}
}

// Stats returns the counters so far.
func (s *Stream) Stats() Stats {
	st := s.stats
	st.Nulls, st.Malformed = s.unwrap.NullMessages, s.unwrap.Malformed
	return st
}

// ReadOnce reads once from r and handles every record that is complete by
// then. It returns what Read returned, or the error of emit.
func (s *Stream) ReadOnce(r io.Reader) (int, error) {
	s.room()
	n, err := r.Read(s.buf[len(s.buf):cap(s.buf)])
	if n > 0 {
		s.buf = s.buf[:len(s.buf)+n]
		s.stats.Bytes += int64(n)
		s.now = s.opt.Now()
		s.process()
		s.sweepStale()
	}
	if s.err != nil {
		err = s.err
	}
	return n, err
}

// room makes space to read into. The buffer grows while reads fill it: a
// backlog is read in large blocks, a quiet file costs little.
func (s *Stream) room() {
	switch {
	case s.buf == nil:
		s.buf = make([]byte, 0, startBuffer)
	case len(s.buf) == cap(s.buf), cap(s.buf)-len(s.buf) < cap(s.buf)/4:
		s.grow()
	}
}

func (s *Stream) grow() {
	size := 2 * cap(s.buf)
	if cap(s.buf) < bulkBuffer {
		size = min(8*cap(s.buf), bulkBuffer)
	}
	s.buf = append(make([]byte, 0, size), s.buf...)
}

// process handles the complete lines in the buffer.
func (s *Stream) process() {
	if !s.begun {
		if logline.MayBecomeExport(s.buf) {
			return
		}
		s.begun = true
		s.export = logline.IsExport(s.buf)
		s.entry, s.entryLine = s.offset, s.line
	}
	if s.export {
		s.processExport()
		return
	}
	end := bytes.LastIndexByte(s.buf, '\n') + 1
	if end > 0 {
		s.block(s.buf[:end])
		s.consume(end)
	}
	if len(s.buf) >= maxLine {
		s.giantPiece(s.buf)
		s.consume(len(s.buf))
	}
}

// consume drops the first n bytes of the buffer.
func (s *Stream) consume(n int) {
	filled := n == cap(s.buf)
	s.offset += int64(n)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	if filled && cap(s.buf) < bulkBuffer {
		s.grow()
	}
}

// block handles a run of whole lines.
func (s *Stream) block(b []byte) {
	m := s.matcher()
	s.next = 0
	if !s.opt.Unfiltered {
		s.candidates = m.Candidates(s.candidates[:0], b)
	}
	w := walk{b: b, m: m, dirty: logline.Dirty(b), escaped: bytes.Contains(b, []byte(`\u`))}
	if w.dirty || w.escaped || s.opt.Unfiltered || s.opt.Unmatched != nil {
		s.walk(&w, len(b))
		return
	}
	s.sparse(&w)
}

// A walk goes over a block line by line.
type walk struct {
	b       []byte
	at      int // the next line's start
	m       *match.Matcher
	dirty   bool // control characters may be in the block
	escaped bool // \uXXXX escapes may be
}

// walk handles the lines up to offset to.
func (s *Stream) walk(w *walk, to int) {
	for w.at < to {
		s.walkLine(w)
	}
}

func (s *Stream) walkLine(w *walk) {
	end := w.at + bytes.IndexByte(w.b[w.at:], '\n')
	hit := false
	for s.next < len(s.candidates) && s.candidates[s.next] < end {
		hit = true
		s.next++
	}
	s.physicalLine(w, w.b[w.at:end], hit)
	s.stats.Lines++
	w.at = end + 1
	s.line += lineStep(s.line)
}

const (
	bareStreak = 64 // lines without an envelope after which the next are taken to have none
	bareProbe  = 8  // lines of each block that are looked at all the same
)

// sparse handles a block of which it only looks at the records around the
// candidates, if the stream's lines have no envelopes: in a healthy log that
// leaves next to nothing to do.
func (s *Stream) sparse(w *walk) {
	for n := 0; w.at < len(w.b) && (n < bareProbe || s.bare < bareStreak || s.last != nil && (s.last.hit || s.last.check)); n++ {
		s.walkLine(w)
	}
	for w.at < len(w.b) {
		target := len(w.b) - 1
		if s.next < len(s.candidates) {
			target = s.candidates[s.next]
		}
		s.skip(w, headerBefore(w.b, w.at, target))
		s.walk(w, target+1)
		for w.at < len(w.b) && (s.bare < bareStreak || s.last != nil && s.last.hit) {
			s.walkLine(w)
		}
	}
}

// headerBefore returns the start of the last line in b[from:] that starts
// a record and starts at or before target; from if there is none.
func headerBefore(b []byte, from, target int) int {
	for end := target; end > from; {
		start := bytes.LastIndexByte(b[from:end], '\n') + 1 + from
		if logline.IsHeader(b[start:]) {
			return withBlank(b, from, start)
		}
		end = start - 1
	}
	return from
}

// withBlank takes in the empty line that the panic hook prints first.
func withBlank(b []byte, from, start int) int {
	if start > max(1, from) && b[start-2] == '\n' && logline.IsPanic(b[start:]) {
		return start - 1
	}
	return start
}

// skip leaves out the lines up to offset to. None of them starts or continues
// a record that holds a candidate.
func (s *Stream) skip(w *walk, to int) {
	if to <= w.at {
		return
	}
	lines := int64(bytes.Count(w.b[w.at:to], []byte("\n")))
	s.stats.Lines += lines
	s.line += lines * lineStep(s.line)
	w.at = to
}

// lineStep counts lines only where the first one's number was known.
func lineStep(line int64) int64 {
	if line == 0 {
		return 0
	}
	return 1
}

// physicalLine handles one line, which starts at w.at.
func (s *Stream) physicalLine(w *walk, raw []byte, hit bool) {
	if s.giant != nil {
		s.giantPiece(raw)
		s.giant = nil
		return
	}
	l := s.unwrap.Unwrap(raw, w.dirty)
	if s.bare++; l.Enveloped {
		s.bare = 0
	}
	if !hit && !l.Skip {
		hit = s.opt.Unfiltered || l.Recheck && w.m.Contains(l.Payload) || w.escaped && s.hidden(l.Payload, w.m)
	}
	s.take(&l, s.offset+int64(w.at), s.line, hit)
}

// hidden reports whether a JSON record holds a literal behind escapes.
func (s *Stream) hidden(payload []byte, m *match.Matcher) bool {
	if len(payload) == 0 || payload[0] != '{' || !bytes.Contains(payload, []byte(`\u`)) {
		return false
	}
	s.scratch = logline.Unescape(s.scratch[:0], payload)
	return m.Contains(s.scratch)
}

// giantPiece handles a part of a line too long to be held. The record that
// takes it is cut by its own limit; what lies behind the cut is looked at as
// a record of its own, so a known error is found wherever it stands.
func (s *Stream) giantPiece(raw []byte) {
	if s.giant != nil {
		s.scratch = logline.Clean(s.scratch[:0], raw)
		s.add(s.giant, s.scratch)
		return
	}
	l := s.unwrap.Unwrap(raw, true)
	l.Partial = false
	s.take(&l, s.offset, s.line, true)
	if s.giant = s.last; s.giant != nil {
		s.giant.check, s.giant.truncated = true, true
	}
}

// processExport handles journal export data.
func (s *Stream) processExport() {
	m := s.matcher()
	prev, line := 0, s.line
	n := s.unwrap.Export(s.buf, func(l logline.Line, consumed int) {
		s.stats.Lines++
		s.take(&l, s.entry, s.entryLine, !l.Skip && (s.opt.Unfiltered || m.Contains(l.Payload)))
		line += int64(bytes.Count(s.buf[prev:consumed], []byte("\n"))) * lineStep(line)
		prev = consumed
		s.entry, s.entryLine = s.offset+int64(consumed), line
	})
	s.line = line + int64(bytes.Count(s.buf[prev:n], []byte("\n")))*lineStep(line)
	s.consume(n)
}

// Idle tells that nothing has come for a while: records that have been open
// for FlushAfter are complete.
func (s *Stream) Idle(now time.Time) {
	s.now = now
	for _, r := range s.byAge() {
		wait := s.opt.FlushAfter
		if r.partial || r == s.giant {
			wait = partialWait
		}
		if now.Sub(r.touched) >= wait {
			s.close(r)
		}
	}
	if len(s.buf) == 0 && len(s.open) == 0 && cap(s.buf) > startBuffer {
		s.buf = nil
	}
}

// partialWait is how long a message in pieces waits for its next piece.
const partialWait = 10 * time.Second

// sweepStale closes records of writers that have fallen silent in a stream
// that others keep busy.
func (s *Stream) sweepStale() {
	if len(s.open) < 2 || s.now.Sub(s.sweep) < time.Second {
		return
	}
	s.sweep = s.now
	for _, r := range s.byAge() {
		if r != s.last && !r.partial && s.now.Sub(r.touched) > max(time.Second, 4*s.opt.FlushAfter) {
			s.close(r)
		}
	}
}

// End tells that the stream has ended. All open records are complete; with
// partial the last line is too, though its newline is missing. Without, the
// stream goes on at a later start: a message that lacks its other pieces waits
// for them, unless what is there already tells an error.
func (s *Stream) End(partial bool) error {
	s.now = s.opt.Now()
	if s.export {
		s.unwrap.ExportEnd(func(l logline.Line) {
			s.take(&l, s.entry, s.entryLine, !l.Skip && (s.opt.Unfiltered || s.matcher().Contains(l.Payload)))
		})
	} else if partial && len(s.buf) > 0 {
		s.buf = append(s.buf, '\n')
		s.block(s.buf)
		s.consume(len(s.buf))
		s.offset-- // the newline was ours
	}
	for _, r := range s.byAge() {
		if partial || !r.partial || r.hit || r.check && s.matcher().Contains(r.text) {
			s.close(r)
		}
	}
	return s.err
}

// Resume returns where a later start has to read from so that nothing is lost:
// the first byte that is not finally handled, and the number of its line.
func (s *Stream) Resume() (offset, line int64) {
	offset, line = s.offset, s.line
	for _, r := range s.open {
		if r.resume < offset {
			offset, line = r.resume, r.resumeLine
		}
	}
	return offset, line
}

// Cursor returns the journal cursor up to which everything is handled, "" if
// the stream is no journal.
func (s *Stream) Cursor() string {
	cursor := s.cursor
	var oldest *record
	for _, r := range s.open {
		if oldest == nil || r.offset < oldest.offset {
			oldest = r
		}
	}
	if oldest != nil {
		cursor = oldest.before
	}
	return string(cursor)
}

// Minus takes off the counters of an earlier look at the same stream.
func (a Stats) Minus(b Stats) Stats {
	return Stats{a.Bytes - b.Bytes, a.Lines - b.Lines, a.Candidates - b.Candidates, a.Rejected - b.Rejected, a.Events - b.Events,
		a.Echoes - b.Echoes, a.Truncated - b.Truncated, a.Nulls - b.Nulls, a.Malformed - b.Malformed}
}

// Plus adds the counters of two streams.
func (a Stats) Plus(b Stats) Stats {
	return Stats{a.Bytes + b.Bytes, a.Lines + b.Lines, a.Candidates + b.Candidates, a.Rejected + b.Rejected, a.Events + b.Events,
		a.Echoes + b.Echoes, a.Truncated + b.Truncated, a.Nulls + b.Nulls, a.Malformed + b.Malformed}
}
