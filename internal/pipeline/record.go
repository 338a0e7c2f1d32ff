package pipeline

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/logline"
)

// A writer is one of those whose lines share a stream: its records are put
// together apart from the others'.
type writer struct {
	source *logline.Source
	stream string
}

// A record is being put together from lines.
type record struct {
	writer   writer
	text     []byte // payloads, joined
	stamp    logline.Stamp
	stampBuf []byte
	offset   int64 // of its first line
	line     int64
	touched  time.Time

	// Where a later start would read this record from: before the messages
	// that were in pieces when it began, since it lies between their pieces.
	resume     int64
	resumeLine int64

	before    []byte // journal cursor of the entry before
	hit       bool   // a literal of the catalogue is in it
	check     bool   // whether one is must be looked up in the joined text
	partial   bool   // its last line goes on
	headless  bool   // does not start with a header
	truncated bool
	goesOn    bool // a part of it was looked at before
	from      int  // the text before was looked at with the record before

	blank             bool // its last line is empty
	blankAt, blankNum int64

	lineAt int     // where its last line starts in text
	pieces *pieces // that line, if it came in pieces and starts as no header does
}

// pieces is a line of which more is to come: only then can be said whether it
// continues its record or starts one of its own.
type pieces struct {
	offset, line int64
	stamp        logline.Stamp
	before       []byte // journal cursor of the entry before
}

// take adds one line without its envelope to the record it belongs to.
func (s *Stream) take(l *logline.Line, offset, line int64, hit bool) {
	if l.Skip {
		s.keepCursor(l)
		return
	}
	r := s.find(l)
	switch {
	case r != nil && r.partial:
		r.check = true
	case r == nil || s.starts(r, l):
		at, num := offset, line
		if r != nil {
			if r.blank && logline.IsPanic(l.Payload) {
				at, num = r.blankAt, r.blankNum // the hook prints an empty line first
			}
			s.report(r)
		}
		r = s.begin(r, l, at, num)
	default:
		r.text = append(r.text, '\n')
		r.lineAt = len(r.text)
		if l.Partial {
			r.pieces = &pieces{offset, line, l.Stamp.AppendTo(new([]byte)), slices.Clone(s.cursor)}
		}
	}
	if r.blank = len(l.Payload) == 0; r.blank {
		r.blankAt, r.blankNum = offset, line
	}
	r.partial = l.Partial
	r.hit = r.hit || hit
	r.touched = s.now
	s.last = r
	s.add(r, l.Payload)
	s.joined(r)
	s.keepCursor(l)
}

// maxHeader is how much of a line is waited for to say whether it is a header.
const maxHeader = 1 << 10

// joined looks at a line in pieces each time that one was added.
func (s *Stream) joined(r *record) {
	if !r.partial && r.check && logline.Dirty(r.text[r.lineAt:]) {
		r.text = logline.Clean(r.text[:r.lineAt], r.text[r.lineAt:])
	}
	line := r.text[r.lineAt:]
	switch {
	case r.pieces != nil && logline.IsHeader(line):
		s.detach(r)
	case r.lineAt == 0 && r.headless && r.check:
		r.headless = !logline.IsHeader(line)
	}
	if !r.partial || len(line) > maxHeader {
		r.pieces = nil
	}
}

// detach ends a record before its last line, which starts the next.
func (s *Stream) detach(r *record) {
	p, partial := r.pieces, r.partial
	l := logline.Line{Payload: bytes.Clone(r.text[r.lineAt:]), Stamp: p.stamp}
	r.text = r.text[:r.lineAt-1]
	s.report(r)
	s.begin(r, &l, p.offset, p.line)
	r.text = append(r.text, l.Payload...)
	r.before = append(r.before[:0], p.before...)
	r.partial, r.check, r.touched = partial, true, s.now
}

func (s *Stream) keepCursor(l *logline.Line) {
	if len(l.Cursor) > 0 {
		s.cursor = append(s.cursor[:0], l.Cursor...)
	}
}

// find returns the open record of a line's writer.
func (s *Stream) find(l *logline.Line) *record {
	w := writer{l.Source, l.Stream}
	if s.last != nil && s.last.writer == w {
		return s.last
	}
	return s.open[w]
}

// starts reports whether a line starts a record of its own rather than
// continuing r. Text without any header has no structure to go by: there each
// line stands alone unless it is indented or empty.
func (s *Stream) starts(r *record, l *logline.Line) bool {
	if logline.IsHeader(l.Payload) {
		return true
	}
	return r.headless && len(l.Payload) > 0 && l.Payload[0] != ' ' && l.Payload[0] != '\t'
}

const (
	maxOpen = 1024 // writers with an open record
	maxFree = 16   // texts kept for records to come
)

// begin starts a record; r is the one before of the same writer, whose memory
// it takes over, or nil.
func (s *Stream) begin(r *record, l *logline.Line, offset, line int64) *record {
	if r == nil {
		if len(s.open) >= maxOpen {
			s.close(s.byAge()[0])
		}
		r = &record{writer: writer{l.Source, l.Stream}}
		if n := len(s.free); n > 0 {
			r.text, s.free = s.free[n-1], s.free[:n-1]
		}
		s.open[r.writer] = r
	}
	*r = record{writer: r.writer, text: r.text[:0], stampBuf: r.stampBuf, before: append(r.before[:0], s.cursor...)}
	r.stamp = l.Stamp.AppendTo(&r.stampBuf)
	r.offset, r.line = offset, line
	r.resume, r.resumeLine = offset, line
	for _, o := range s.open {
		if o.partial && o.resume < r.resume {
			r.resume, r.resumeLine = o.resume, o.resumeLine
		}
	}
	r.headless = !logline.IsHeader(l.Payload)
	return r
}

// add appends a payload within the record's limit.
func (s *Stream) add(r *record, payload []byte) {
	for len(r.text)+len(payload) > s.opt.MaxRecord {
		n := max(0, s.opt.MaxRecord-len(r.text))
		r.text = append(r.text, payload[:n]...)
		payload = payload[n:]
		s.limit(r, len(payload) > 0)
	}
	r.text = append(r.text, payload...)
}

// overlap is what a record that goes on behind its limit repeats, so that a
// message across the cut is seen whole. It exceeds any wording's literal text.
const overlap = 1 << 10

// limit looks at a record that has reached its limit and lets it go on as a
// further record with the same header. midLine tells that the cut is inside a
// line.
func (s *Stream) limit(r *record, midLine bool) {
	if len(r.text) < s.opt.MaxRecord {
		return
	}
	r.truncated = true
	s.stats.Truncated++
	s.report(r)
	r.goesOn = true
	head := logline.HeaderLen(r.text[:min(len(r.text), 2<<10)])
	keep := 0
	if midLine {
		keep = overlap
	}
	tail := r.text[len(r.text)-keep:]
	r.text = append(r.text[:head], tail...)
	r.from = keep
	r.hit, r.check = false, midLine
	r.lineAt, r.pieces = head, nil
}

// close reports a record and takes it out of the open ones.
func (s *Stream) close(r *record) {
	delete(s.open, r.writer)
	if s.last == r {
		s.last = nil
	}
	if s.giant == r {
		s.giant = nil
	}
	s.report(r)
	if cap(r.text) <= startBuffer && len(s.free) < maxFree {
		s.free = append(s.free, r.text)
	}
}

// byAge lists the open records, oldest first.
func (s *Stream) byAge() []*record {
	if len(s.open) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(s.open), func(a, b *record) int { return cmp.Compare(a.offset, b.offset) })
}

// report decides what a complete record reports and emits it.
func (s *Stream) report(r *record) {
	m := s.matcher()
	if s.err != nil {
		return
	}
	if r.partial { // its other pieces did not come
		r.partial, r.check = false, true
		s.joined(r)
	}
	if !r.hit && !(r.check && m.Contains(r.text)) {
		s.unmatched(r, r.text)
		return
	}
	s.stats.Candidates++
	reported := false
	at := r.offset
	for _, part := range logline.SplitGlued(r.text) {
		if s.reportPart(r, part, at) {
			reported = true
		} else {
			s.unmatched(r, part)
		}
		at += int64(len(part))
	}
	if !reported {
		s.stats.Rejected++
	}
}

func (s *Stream) reportPart(r *record, text []byte, offset int64) bool {
	rec := logline.Parse(text)
	res, ok := s.matcher().Match(&rec, r.from)
	if !ok {
		return false
	}
	at, from := s.time(&rec, r)
	if s.echoes.repeated(&res, at) {
		s.stats.Echoes++
		if !s.opt.Echoes {
			return true
		}
	}
	origin := annotate.Origin{Input: s.info.Input, Path: s.info.Path, Offset: offset, LineNumber: r.line,
		Stream: r.writer.stream, Truncated: r.truncated, TimeFrom: from}
	k8s := s.info.K8s
	src := r.writer.source
	if src == nil {
		src = &logline.Source{}
	}
	origin.Unit, origin.Host = src.Unit, src.Host
	fill(&k8s.Pod, src.Pod)
	fill(&k8s.Namespace, src.Namespace)
	if src.Pod != "" {
		fill(&k8s.Container, src.Container)
	}
	component := logline.ComponentOf(&rec, k8s.Container, src.Container, src.Unit, k8s.Pod, s.info.Path)
	if component == "" {
		component = logline.FileComponent(res.Outermost.FilePath)
	}
	ev := annotate.New(&rec, &res, component, at, k8s, origin, s.opt.Mask)
	s.stats.Events++
	if err := s.emit(&ev); err != nil {
		s.err = err
	}
	return true
}

// unmatched hands records in which no known error is to who wants them.
func (s *Stream) unmatched(r *record, text []byte) {
	if s.opt.Unmatched == nil || r.goesOn {
		return
	}
	for _, part := range logline.SplitGlued(text) {
		if logline.LevelRank(logline.HeaderLevel(part)) < logline.LevelRank("WARN") {
			continue
		}
		rec := logline.Parse(part)
		at, _ := s.time(&rec, r)
		s.opt.Unmatched(&rec, at, s.component(r, &rec))
	}
}

func (s *Stream) component(r *record, rec *logline.Record) string {
	src := r.writer.source
	if src == nil {
		src = &logline.Source{}
	}
	return logline.ComponentOf(rec, s.info.K8s.Container, src.Container, src.Unit, s.info.K8s.Pod, src.Pod, s.info.Path)
}

func fill(dst *string, value string) {
	if *dst == "" {
		*dst = value
	}
}

// time is the record's own, else the envelope's, else now.
func (s *Stream) time(rec *logline.Record, r *record) (at time.Time, from string) {
	if !rec.Time.IsZero() {
		return rec.Time, "record"
	}
	if t, ok := r.stamp.Time(s.now); ok {
		return t, "envelope"
	}
	return s.now.UTC(), "receive"
}
