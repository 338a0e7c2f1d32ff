package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// Input is one thing to follow.
type Input struct {
	Path    string   // a path, a directory (everything below it), or a glob (doublestar: ** crosses directories)
	Exclude []string // globs on the name or the path; packed and temporary files are always left out
	Start   Start    // where files that exist at the start are read from; default FromCheckpoint
}

// Options of Files.
type Options struct {
	Inputs []Input
	Roots  []string      // where links found by a glob may lead besides the glob's own directory
	Own    []os.FileInfo // files never read: where our own output goes
	Avoid  []string      // directories never read: our own state
	K8s    annotate.K8s  // the pod we run in, for files whose path names none
}

// Files finds the files of the inputs and follows each to its end.
type Files struct {
	opt    Options
	inputs []input
	open   Open
	pos    Positions
	log    zerolog.Logger

	lateWait  time.Duration // a file that was rotated away is finished when nothing came for so long
	holdLimit time.Duration // a deleted file is closed by then whatever comes: it holds the disk's space
	notify    bool          // inotify can be had
	maxFiles  int           // so many may be open, as descriptors are limited
	maxTails  int64         // so many of them may be followed by events
	tryNotify func() error

	ready    chan struct{}
	ended    chan *file
	wg       sync.WaitGroup
	slots    map[string]*slot         // by path
	started  bool                     // the first scan is over
	before   time.Time                // when the inputs were searched the time before last
	globbed  time.Time                // when the inputs were last searched
	looked   time.Time                // when finished generations were last looked at
	swept    time.Time                // when positions of files that are gone were last dropped
	listings map[string][]os.DirEntry // directories read during this scan
	newest   map[string]time.Time     // what is known of each path, gathered during this scan: when its newest file was written
	warned   map[string]string        // by path: the last complaint, not to be repeated
	left     int                      // files that were not opened in the last scan, for want of descriptors
	fifos    map[string]bool
	finished map[string]*file // rotated away and read to the end, by key, as long as they are where they were
	lastScan atomic.Int64

	mu    sync.Mutex
	files map[string]*file // open ones, by key
	busy  map[string]bool  // copies that a file is reading, by key

	tails  atomic.Int64 // files followed by events
	totals struct{ bytes, opened, rotations, truncations, lost, errors atomic.Int64 }
}

// A slot is a path that an input names: a place where one file after the other
// appears.
type slot struct {
	path  string
	in    input
	key   string          // of the file there; "" if none
	last  *file           // the newest one opened for it
	old   map[string]bool // siblings that were there before we came: not ours to read
	again time.Time       // not to be opened before
}

const (
	globEvery  = time.Second
	lateEvery  = 5 * time.Second
	sweepEvery = 10 * time.Minute
	retryEvery = 2 * time.Second
)

// NewFiles checks the inputs. The error names every one that is malformed.
func NewFiles(opt Options, open Open, pos Positions, log zerolog.Logger) (*Files, error) {
	inputs, err := parseInputs(opt.Inputs)
	if err != nil {
		return nil, err
	}
	m := &Files{
		opt: opt, inputs: inputs, open: open, pos: pos, log: log,
		lateWait: 5 * time.Second, holdLimit: 50 * time.Second, tryNotify: startInotify,
		ready: make(chan struct{}), ended: make(chan *file),
		slots: map[string]*slot{}, files: map[string]*file{}, busy: map[string]bool{}, warned: map[string]string{}, fifos: map[string]bool{}, finished: map[string]*file{}, listings: map[string][]os.DirEntry{},
		swept: time.Now(), // not at once: a volume may not be mounted yet
	}
	m.limit(descriptors())
	return m, nil
}

// limit shares out the descriptors that a process may have: some stay for
// others, such as connections to where events go.
func (m *Files) limit(descriptors uint64) {
	n := int(min(descriptors, 1<<30))
	m.maxTails = int64(min(maxTails, n/8))
	m.maxFiles = n - int(m.maxTails) - min(64, n/2)
}

// descriptors is how many this process may have.
func descriptors() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return l.Cur
}

// Ready is closed when all files that exist at the start have been opened.
func (m *Files) Ready() <-chan struct{} { return m.ready }

// Run follows files until ctx is done. Then what is on disk is read for up to
// half a second, and the positions are saved.
func (m *Files) Run(ctx context.Context) error {
	m.prepare()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	m.scan(ctx)
	close(m.ready)
	for {
		select {
		case f := <-m.ended:
			m.forget(f)
		case <-tick.C:
			m.scan(ctx)
		case <-ctx.Done():
			m.globbed = time.Time{}
			m.scan(ctx) // what appeared in the last moment is read too
			m.drain()
			return nil
		}
	}
}

func (m *Files) prepare() {
	if err := m.tryNotify(); err != nil {
		m.log.Warn().Err(err).Msg("no file events to be had: looking at each file every 250 ms")
	} else {
		m.notify = true
	}
	for _, path := range mountPoints(m.inputs) {
		m.log.Warn().Str("path", path).Msg("this file is mounted by itself: after a rotation the mount still shows the old file; mount its directory")
	}
}

// drain waits for all goroutines.
func (m *Files) drain() {
	done := make(chan struct{})
	go func() { m.wg.Wait(); close(done) }()
	for {
		select {
		case f := <-m.ended:
			m.forget(f)
		case <-done:
			return
		}
	}
}

func (m *Files) forget(f *file) {
	m.mu.Lock()
	delete(m.files, f.key)
	m.mu.Unlock()
	if f.retired.Load() {
		m.finished[f.key] = f
	}
	if err := f.failure; err != nil {
		m.totals.errors.Add(1)
		m.complain(f.path, fmt.Errorf("read: %w", err))
		if s := m.slots[f.path]; s != nil {
			s.again = time.Now().Add(retryEvery)
		}
	}
}

// scan looks at all paths once: opens what is new, retires what is gone.
func (m *Files) scan(ctx context.Context) {
	now := time.Now()
	m.lastScan.Store(now.UnixNano())
	clear(m.listings)
	m.newest = nil
	if now.Sub(m.globbed) >= globEvery {
		m.before, m.globbed = m.globbed, now
		m.discover()
	}
	live, open := map[string]bool{}, map[string]*file{}
	for _, f := range m.openFiles() {
		open[f.key] = f
	}
	var found []*slot
	infos := map[*slot]fs.FileInfo{}
	for _, path := range slices.Sorted(maps.Keys(m.slots)) {
		s := m.slots[path]
		info := m.look(s)
		if info == nil {
			continue
		}
		live[s.key] = true
		switch f := open[s.key]; {
		case f != nil && f.changed(info):
			f.look()
		case f == nil && !m.isOpen(s.key) && !now.Before(s.again):
			found, infos[s] = append(found, s), info
		}
	}
	for _, f := range open {
		if f.setRetired(!live[f.key]) && !live[f.key] {
			m.totals.rotations.Add(1)
		}
	}
	// Files that we know come first: what lies beside them may be their copies.
	slices.SortStableFunc(found, func(a, b *slot) int {
		_, ka := m.load(a.key)
		_, kb := m.load(b.key)
		switch {
		case ka == kb:
			return 0
		case ka:
			return -1
		}
		return 1
	})
	left := 0
	for _, s := range found {
		if m.countOpen() >= m.maxFiles {
			left++
			continue
		}
		m.take(ctx, s, infos[s])
	}
	m.tellLeft(left)
	if !m.started {
		m.recall()
	}
	if now.Sub(m.looked) >= lateEvery {
		m.looked = now
		m.takeLate(ctx)
	}
	m.started = true
	if now.Sub(m.swept) >= sweepEvery {
		m.swept = now
		m.sweep()
	}
}

// tellLeft tells how many files wait until others are finished, when that has changed.
func (m *Files) tellLeft(files int) {
	if files == m.left {
		return
	}
	m.left = files
	if files == 0 {
		m.log.Info().Msg("all files are read now")
		return
	}
	m.totals.errors.Add(1)
	m.log.Warn().Int("files", files).Int("open", m.maxFiles).
		Msg("files are not read: the limit of open descriptors allows no more; raise it (ulimit -n, LimitNOFILE= in a unit)")
}

// discover makes slots of what the inputs name now.
func (m *Files) discover() {
	for _, in := range m.inputs {
		paths, as, err := in.paths()
		if err != nil {
			m.complain(in.pattern, err)
			continue
		}
		for _, path := range paths {
			if m.slots[path] == nil && (as.literal || !excluded(path, as.exclude)) {
				m.slots[path] = &slot{path: path, in: as}
			}
		}
	}
}

// look finds out what is at the slot's path now. It returns nil if nothing
// that we read is.
func (m *Files) look(s *slot) fs.FileInfo {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.key = ""
		if !s.in.literal && (s.last == nil || !m.isOpen(s.last.key)) {
			delete(m.slots, s.path) // the glob will name it again
		}
		return nil
	case err != nil:
		m.complain(s.path, err)
		return nil
	case info.IsDir() && s.in.literal:
		delete(m.slots, s.path) // a directory input that has appeared
		return nil
	}
	s.key = identityOf(info).key()
	return info
}

// take opens the file at the slot, and before it what the slot's earlier file
// and its generations still have to give.
func (m *Files) take(ctx context.Context, s *slot, info fs.FileInfo) {
	if m.isOpen(s.key) { // by another path of this scan
		return
	}
	real, err := filepath.EvalSymlinks(s.path)
	if err == nil {
		err = m.refuse(s, real, info)
	}
	if err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		m.startFifo(ctx, s.path)
		return
	}
	var fd *os.File
	if err == nil {
		fd, err = openRegular(real)
	}
	if err != nil {
		s.again = time.Now().Add(retryEvery)
		if !errors.Is(err, errOwn) && !errors.Is(err, fs.ErrNotExist) {
			m.complain(s.path, err)
		}
		return
	}
	if now, err := fd.Stat(); err != nil || identityOf(now).key() != s.key || m.setAside(s, fd, real, now) {
		fd.Close() // changed since we looked, or not to be read: the next scan sees
		return
	}
	delete(m.warned, s.path)
	if !m.started && s.in.start == FromCheckpoint {
		m.tellPacked(s, real)
	}
	for _, g := range m.generations(s, real, fd) {
		if gfd, err := openRegular(g.path); err == nil {
			m.spawn(ctx, s, gfd, g.key, g.path, FromCheckpoint).setRetired(true)
		}
	}
	start := FromCheckpoint
	if !m.started {
		start = s.in.start
	}
	m.spawn(ctx, s, fd, s.key, real, start)
}

// spawn starts following an open file. It begins when the file before it in
// the slot has been read to its end.
func (m *Files) spawn(ctx context.Context, s *slot, fd *os.File, key, real string, start Start) *file {
	f := &file{
		key: key, path: s.path, real: real, k8s: podOf(s.path, real, m.opt.K8s), fd: fd, start: start, env: m,
		drained: make(chan struct{}), wake: make(chan struct{}, 1),
		log: m.log.With().Str("path", s.path).Logger(),
	}
	f.now, _ = m.load(key) // until it has read: what it is known to hold
	if s.last != nil && s.last.retired.Load() {
		f.after = s.last.drained
	}
	s.last = f
	m.totals.opened.Add(1)
	m.mu.Lock()
	m.files[key] = f
	m.mu.Unlock()
	m.wg.Go(func() {
		f.failure = f.run(ctx)
		m.ended <- f
	})
	return f
}

// errOwn says that a file is our own output.
var errOwn = errors.New("is our own output")

// refuse says why a path is not read.
func (m *Files) refuse(s *slot, real string, info fs.FileInfo) error {
	for _, own := range m.opt.Own {
		if os.SameFile(own, info) {
			return errOwn
		}
	}
	for _, dir := range m.opt.Avoid {
		if under(real, dir) {
			return errOwn
		}
	}
	switch {
	case !s.in.allows(real, m.opt.Roots):
		return fmt.Errorf("refused: link leads to %s, outside of the input's directory", real)
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return errors.New("refused: is a directory")
	case info.Mode()&fs.ModeNamedPipe != 0 && s.in.literal:
		return nil
	}
	return fmt.Errorf("refused: not a regular file (%s)", info.Mode().Type())
}

// openRegular opens a file without waiting, following no link at its end, and
// makes sure that it is a regular one.
func openRegular(path string) (*os.File, error) {
	fd, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := fd.Stat(); err != nil || !info.Mode().IsRegular() {
		fd.Close()
		return nil, errors.Join(err, fmt.Errorf("open %s: not a regular file any more", path))
	}
	return fd, nil
}

// setAside reports whether a new file beside a log that we read is not to be
// read, or not yet: copies are, and while a copy is being made nobody can tell.
func (m *Files) setAside(s *slot, fd *os.File, real string, info fs.FileInfo) bool {
	if pos, known := m.load(s.key); known && pos.fits(fd, info.Size()) {
		return false
	}
	if m.isCopy(fd, real, info.Size()) {
		return true
	}
	return m.started && info.Size() < headSize && time.Since(info.ModTime()) < time.Second && m.besideOpen(real)
}

func (m *Files) besideOpen(path string) bool {
	return slices.ContainsFunc(m.openFiles(), func(f *file) bool {
		return isSibling(path, f.real)
	})
}

// generations returns what has to be read before the file at the slot, oldest
// first: files of earlier runs with a rest, and files that came and went
// between two looks, or while we were not running.
func (m *Files) generations(s *slot, real string, fd *os.File) []sibling {
	all := m.siblings(real, m.list(real))
	since, news := m.newsSince(s, real, fd)
	read, _ := m.load(s.key)
	skip := !m.started && s.in.start == FromEnd
	var out []sibling
	for _, g := range all {
		switch {
		case skip, g.key == s.key, m.isOpen(g.key), s.old[g.key], m.slots[g.path] != nil:
		case m.unread(g), news && g.rotated && m.isNew(g) && g.mtime.After(since) && !m.copyAt(g, read, fd):
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b sibling) int { return a.mtime.Compare(b.mtime) })
	s.old = map[string]bool{}
	for _, g := range all {
		if !m.isOpen(g.key) && !slices.Contains(out, g) && m.isNew(g) && !later(g.path, real) {
			s.old[g.key] = true
		}
	}
	return out
}

// newsSince says from when on a file that we have never seen, beside the one
// at the slot, must have been in the slot before it.
func (m *Files) newsSince(s *slot, real string, fd *os.File) (since time.Time, news bool) {
	switch {
	case s.last != nil:
		return since, s.last.key != s.key // whatever was not there when we opened that one
	case m.same(s, fd):
		return since, false // nothing was rotated away
	}
	if since, news = m.lastOf(s, real); !news && m.started {
		return m.before, true // it came after the last search
	}
	return since, news
}

// same reports whether the file at the slot is the one that we know by its
// number. An empty one has no content to tell by, but it had a place.
func (m *Files) same(s *slot, fd *os.File) bool {
	pos, known := m.load(s.key)
	info, err := fd.Stat()
	return known && err == nil && pos.fits(fd, info.Size()) && (pos.Head.Len > 0 || pos.Input == s.path)
}

// takeLate opens files again that were rotated away and read, and then
// written to: by a program that was never told of the rotation, or slow.
func (m *Files) takeLate(ctx context.Context) {
	for _, s := range m.slots {
		if s.last == nil {
			continue
		}
		for _, g := range m.siblings(s.last.real, m.list(s.last.real)) {
			if g.key != s.key && m.slots[g.path] == nil {
				m.reopen(ctx, s, g)
			}
		}
	}
	for key, f := range m.finished { // old targets of links have names of any kind
		info, err := os.Stat(f.real)
		if err != nil || identityOf(info).key() != key {
			delete(m.finished, key)
			continue
		}
		s := m.slots[f.path]
		if s == nil {
			s = &slot{path: f.path}
		}
		m.reopen(ctx, s, sibling{path: f.real, key: key, size: info.Size(), mtime: info.ModTime()})
	}
}

// recall remembers the files that an earlier run had not read to the end.
func (m *Files) recall() {
	m.pos.Each(func(key string, v []byte) {
		p, ok := decodePosition(v)
		if s := m.slots[p.Input]; ok && s != nil && s.in.start == FromCheckpoint && !m.isOpen(key) {
			m.finished[key] = &file{key: key, path: p.Input, real: p.Path}
		}
	})
}

// reopen follows a finished file again if there is more in it. It does not
// stand between the slot's file and the next.
func (m *Files) reopen(ctx context.Context, s *slot, g sibling) {
	if m.isOpen(g.key) || !m.unread(g) {
		return
	}
	if fd, err := openRegular(g.path); err == nil {
		last := s.last
		s.last = nil
		m.spawn(ctx, s, fd, g.key, g.path, FromCheckpoint).setRetired(true)
		s.last = last
	}
}

// list returns what lies in the directory of the path. Many logs may lie in
// one directory: it is read once a scan.
func (m *Files) list(path string) []os.DirEntry {
	dir := filepath.Dir(path)
	if _, ok := m.listings[dir]; !ok {
		entries, _ := os.ReadDir(dir) // can't be read: has no siblings
		for i, e := range entries {
			entries[i] = &seenEntry{DirEntry: e}
		}
		m.listings[dir] = entries
	}
	return m.listings[dir]
}

// seenEntry is a directory entry that is looked at once.
type seenEntry struct {
	os.DirEntry
	seen bool
	info fs.FileInfo
	err  error
}

func (e *seenEntry) Info() (fs.FileInfo, error) {
	if !e.seen {
		e.seen = true
		e.info, e.err = e.DirEntry.Info()
	}
	return e.info, e.err
}

// knows returns the position of a file that was read before. Numbers of files
// are used again: what is known of a number with other content is dropped.
func (m *Files) knows(g sibling) (pos position, known bool) {
	pos, known = m.load(g.key)
	if !known || g.size == pos.Offset && g.mtime.UnixNano() == pos.Mtime {
		return pos, known
	}
	fd, err := openRegular(g.path)
	if err != nil {
		return pos, true
	}
	defer fd.Close()
	if !pos.fits(fd, g.size) {
		m.pos.Delete(g.key)
		return position{}, false
	}
	return pos, true
}

// unread reports whether a file that we know has more than we read.
func (m *Files) unread(g sibling) bool {
	pos, known := m.knows(g)
	return known && g.size > pos.Offset
}

func (m *Files) isNew(g sibling) bool {
	_, known := m.knows(g)
	return !known
}

// copyAt reports whether the sibling is a copy of the file beside it, as it is
// or as it was when it was read, or of one that is open.
func (m *Files) copyAt(g sibling, read position, beside *os.File) bool {
	if g.restart {
		return false
	}
	fd, err := openRegular(g.path)
	if err != nil {
		return false
	}
	defer fd.Close()
	info, err := fd.Stat() // it may be in the making: its size as of now
	if err != nil || info.Size() == 0 {
		return true
	}
	return read.Head.Len > 0 && read.fits(fd, info.Size()) || sameContent(fd, info.Size(), beside) || m.isCopy(fd, g.path, info.Size())
}

// lastOf returns when the newest file that we read in the slot was written.
// With thousands of files there are thousands of positions: they are gone
// through once a scan.
func (m *Files) lastOf(s *slot, real string) (mtime time.Time, found bool) {
	if m.newest == nil {
		m.newest = map[string]time.Time{}
		m.pos.Each(func(_ string, v []byte) {
			p, ok := decodePosition(v)
			for _, path := range []string{p.Path, p.Input} {
				if t := time.Unix(0, p.Mtime); ok && t.After(m.newest[path]) {
					m.newest[path] = t
				}
			}
		})
	}
	for _, path := range []string{real, s.path} {
		if t, ok := m.newest[path]; ok && t.After(mtime) {
			mtime, found = t, true
		}
	}
	return mtime, found
}

// sweep drops the positions of files that are gone.
func (m *Files) sweep() {
	known := map[string]position{}
	m.pos.Each(func(key string, v []byte) {
		if p, ok := decodePosition(v); ok && strings.HasPrefix(key, "file:") && !m.isOpen(key) {
			known[key] = p
		}
	})
	there := map[string]map[string]bool{} // by directory
	for key, p := range known {
		dir := filepath.Dir(p.Path)
		if _, listed := there[dir]; !listed {
			there[dir] = keysIn(dir)
		}
		if there[dir] == nil || there[dir][key] {
			continue
		}
		m.pos.Delete(key)
		if rest := p.Size - p.Offset; rest > 0 {
			m.totals.lost.Add(rest)
			m.log.Warn().Str("path", p.Path).Int64("bytes", rest).Msg("bytes may be lost: the file was deleted before its end was read")
		}
	}
}

// keysIn lists the identities of what is in a directory; nil if that can't be told.
func keysIn(dir string) map[string]bool {
	keys := map[string]bool{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			keys[identityOf(info).key()] = true
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return keys
}

func (m *Files) startFifo(ctx context.Context, path string) {
	if m.fifos[path] {
		return
	}
	m.fifos[path] = true
	f := fifo{path, m.open, m.pos, StreamInfo{Key: "fifo:" + path, Input: "file", Path: path, K8s: m.opt.K8s, Line: 1}}
	m.wg.Go(func() {
		if err := f.run(ctx); err != nil {
			m.log.Warn().Err(err).Str("path", path).Msg("named pipe is not read any more")
		}
	})
}

// complain warns of a path, once for each new reason.
func (m *Files) complain(path string, err error) {
	if m.warned[path] != err.Error() {
		m.warned[path] = err.Error()
		m.totals.errors.Add(1)
		m.log.Warn().Err(err).Str("path", path).Msg("input is not read; looking again")
	}
}

func (m *Files) load(key string) (position, bool) {
	v, ok := m.pos.Load(key)
	if !ok {
		return position{}, false
	}
	return decodePosition(v)
}

func (m *Files) isOpen(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[key] != nil || m.busy[key]
}

// claim keeps everybody else from opening the file with the key.
func (m *Files) claim(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files[key] != nil || m.busy[key] {
		return false
	}
	m.busy[key] = true
	return true
}

func (m *Files) unclaim(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, key)
}

func (m *Files) openFiles() []*file {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.files))
}

func (m *Files) countOpen() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.files)
}

// Stats returns what can be told of the open files, by path.
func (m *Files) Stats() []Stat {
	var out []Stat
	for _, f := range m.openFiles() {
		out = append(out, f.snapshot())
	}
	slices.SortFunc(out, func(a, b Stat) int { return strings.Compare(a.Path+a.Real, b.Path+b.Real) })
	return out
}

// Totals returns the counters since the start.
func (m *Files) Totals() Totals {
	t := &m.totals
	return Totals{t.bytes.Load(), t.opened.Load(), t.rotations.Load(), t.truncations.Load(), t.lost.Load(), t.errors.Load()}
}

// Stalled names what has not taken a turn for longer than limit: the search
// for files, or a file whose Consumer does not return.
func (m *Files) Stalled(limit time.Duration) []string {
	now := time.Now()
	var out []string
	if at := m.lastScan.Load(); at != 0 && now.Sub(time.Unix(0, at)) > limit {
		out = append(out, "the search for files")
	}
	for _, f := range m.openFiles() {
		if at := f.active.Load(); at != 0 && now.Sub(time.Unix(0, at)) > limit {
			out = append(out, f.path)
		}
	}
	return out
}
