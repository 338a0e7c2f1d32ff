package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// One watcher for the whole process, which the library never stops.
		goleak.IgnoreTopFunction("github.com/nxadm/tail/watch.(*InotifyTracker).run"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*Watcher).readEvents"))
}

// lineConsumer takes each line for a record, which is open until the next line
// or a pause, and keeps an unfinished line.
type lineConsumer struct {
	w      *world
	info   StreamInfo
	buf    []byte
	offset int64
	line   int64
	open   *gotLine
	block  <-chan struct{} // ReadOnce waits for it
	fail   error
	idles  int
}

func (c *lineConsumer) ReadOnce(r io.Reader) (int, error) {
	if c.block != nil {
		<-c.block
	}
	p := make([]byte, 64<<10)
	n, err := r.Read(p)
	c.buf = append(c.buf, p[:n]...)
	for {
		i := bytes.IndexByte(c.buf, '\n')
		if i < 0 {
			break
		}
		c.out(string(c.buf[:i]), i+1)
	}
	if c.fail != nil {
		return n, c.fail
	}
	if len(c.buf) > 1<<20 { // as the real one does
		c.out(string(c.buf[:100]), len(c.buf))
	}
	return n, err
}

func (c *lineConsumer) close() {
	if c.open != nil {
		c.w.mu.Lock()
		c.w.got = append(c.w.got, *c.open)
		c.w.mu.Unlock()
		c.open = nil
	}
}

func (c *lineConsumer) out(line string, n int) {
	c.close()
	c.open = &gotLine{line, c.info.Path, c.info.Key, c.offset, c.line}
	c.buf = c.buf[n:]
	c.offset += int64(n)
	if c.line > 0 {
		c.line++
	}
}

func (c *lineConsumer) Idle(time.Time) {
	c.close()
	c.idles++
}

func (c *lineConsumer) End(partial bool) error {
	if partial && len(c.buf) > 0 {
		c.out(string(c.buf), len(c.buf))
	}
	c.close()
	return nil
}

func (c *lineConsumer) Resume() (int64, int64) {
	if c.open != nil {
		return c.open.offset, c.open.line
	}
	return c.offset, c.line
}

type gotLine struct {
	text, path, key string
	offset, line    int64
}

// memory is Positions in memory, shared by the runs of a test.
type memory struct {
	mu     sync.Mutex
	m      map[string][]byte
	walked int // calls of Each
}

func (p *memory) Load(key string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.m[key]
	return v, ok
}

func (p *memory) Store(key string, v []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m[key] = v
}

func (p *memory) Delete(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.m, key)
}

func (p *memory) Each(f func(string, []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.walked++
	for k, v := range p.m {
		f(k, v)
	}
}

// A world is a directory, a daemon's memory, and what came out so far.
type world struct {
	t   *testing.T
	dir string
	pos *memory

	mu  sync.Mutex
	got []gotLine
	log lockedBuffer
	new func(*lineConsumer)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newWorld(t *testing.T) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, dir: dir, pos: &memory{m: map[string][]byte{}}}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) open(info StreamInfo) Consumer {
	c := &lineConsumer{w: w, info: info, offset: info.Offset, line: info.Line}
	if w.new != nil {
		w.new(c)
	}
	return c
}

func inputsOf(paths ...string) Options {
	var o Options
	for _, p := range paths {
		o.Inputs = append(o.Inputs, Input{Path: p})
	}
	return o
}

// A run is one life of the daemon.
type run struct {
	*Files
	w      *world
	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once
}

func (w *world) start(inputs ...string) *run {
	w.t.Helper()
	return w.startWith(inputsOf(inputs...), nil)
}

func (w *world) startWith(opt Options, tweak func(*Files)) *run {
	w.t.Helper()
	for i, in := range opt.Inputs {
		if !filepath.IsAbs(in.Path) {
			opt.Inputs[i].Path = w.path(in.Path)
		}
	}
	m, err := NewFiles(opt, w.open, w.pos, zerolog.New(&w.log))
	if err != nil {
		w.t.Fatal(err)
	}
	m.lateWait = 600 * time.Millisecond
	if tweak != nil {
		tweak(m)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{Files: m, w: w, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		if err := m.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	<-m.Ready()
	w.t.Cleanup(r.stop)
	return r
}

func (r *run) stop() {
	r.once.Do(func() {
		began := time.Now()
		r.cancel()
		<-r.done
		if d := time.Since(began); d > 2*time.Second { // 0.6 s; this machine is shared
			r.w.t.Errorf("stopping took %v", d)
		}
	})
}

// lines is what came out, in order of arrival.
func (w *world) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, g := range w.got {
		out = append(out, g.text)
	}
	return out
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got)
}

func (w *world) all() []gotLine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.got)
}

// until waits for something that has to become true.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: did not happen; got %d lines, the last %q\nlog: %s", what, len(w.lines()), tailOf(w.lines(), 3), w.log.String())
		}
	}
}

func tailOf(s []string, n int) []string { return s[max(0, len(s)-n):] }

// want waits for lines numbered from..to-1, each once, and nothing else.
func (w *world) want(from, to int) {
	w.t.Helper()
	w.until(fmt.Sprintf("lines %d to %d", from, to-1), func() bool { return w.count() >= to-from })
	seen := map[string]int{}
	for _, l := range w.lines() {
		seen[l]++
	}
	for i := from; i < to; i++ {
		if seen[numbered(i)] != 1 {
			w.t.Errorf("line %d came %d times", i, seen[numbered(i)])
		}
		delete(seen, numbered(i))
	}
	for l, n := range seen {
		w.t.Errorf("%d times something else: %.100q", n, l)
	}
	if w.t.Failed() {
		w.t.Fatalf("log: %s", w.log.String())
	}
}

// never makes sure that nothing more comes.
func (w *world) never(d time.Duration) {
	w.t.Helper()
	before := len(w.lines())
	time.Sleep(d)
	if got := w.lines(); len(got) != before {
		w.t.Fatalf("came twice, or unasked: %q", got[before:])
	}
}

func numbered(i int) string {
	return fmt.Sprintf("%06d the quick brown fox jumps over the lazy dog", i)
}

func text(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(numbered(i) + "\n")
	}
	return b.String()
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, content string) {
	w.t.Helper()
	w.check(os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	w.check(os.WriteFile(w.path(name), []byte(content), 0o644))
}

func (w *world) append(name, content string) {
	w.t.Helper()
	f, err := os.OpenFile(w.path(name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	w.check(err)
	_, err = f.WriteString(content)
	w.check(errors.Join(err, f.Close()))
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	w.check(os.Rename(w.path(from), w.path(to)))
}
