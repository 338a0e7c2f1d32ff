package torture

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// known is the text of a record of the embedded catalogue; no arguments.
const known = "snapshot backfill paused, but received snapshot chunk"

// errorLine is the n-th known error of a writer; its end proves it whole. There
// is none in its beginning: a stop between the pieces of a message reports what
// the first pieces tell.
func errorLine(writer string, n int) string {
	fill := ""
	if n%37 == 5 {
		fill = strings.Repeat("x", 17_000) + " " // split by docker and CRI
	}
	return fmt.Sprintf("2026-11-30T10:00:00.%06dZ ERROR risingwave_stream::executor::actor: seq=%s-%07d fill=%serror=%s end=%s-%07d",
		n%1_000_000, writer, n, fill, known, writer, n)
}

// A form is what surrounds a line in the file.
type form func(rnd *rand.Rand, line string) string

func plain(_ *rand.Rand, line string) string { return line + "\n" }

// cri splits some lines into pieces, between which the other stream may write.
func cri(rnd *rand.Rand, line string) string {
	var b strings.Builder
	for len(line) > 16_000 || len(line) > 150 && rnd.IntN(20) == 0 {
		n := min(150+rnd.IntN(len(line)-149), 16_000) // not within the header: runtimes split at 16 KiB
		fmt.Fprintf(&b, "2026-11-30T10:00:00.000000001Z stdout P %s\n", line[:n])
		if rnd.IntN(3) == 0 {
			b.WriteString("2026-11-30T10:00:00.000000001Z stderr F something else\n")
		}
		line = line[n:]
	}
	fmt.Fprintf(&b, "2026-11-30T10:00:00.000000001Z stdout F %s\n", line)
	return b.String()
}

// docker splits at 16 KiB.
func docker(_ *rand.Rand, line string) string {
	var b strings.Builder
	for line += "\n"; line != ""; {
		n := min(len(line), 16<<10)
		j, _ := json.Marshal(map[string]string{"log": line[:n], "stream": "stdout", "time": "2026-11-30T10:00:00.123456789Z"})
		b.Write(append(j, '\n'))
		line = line[n:]
	}
	return b.String()
}

var forms = map[string]form{"text": plain, "cri": cri, "docker": docker}

// A writer writes one log and rotates it in one way.
type writer struct {
	name   string
	form   form
	rotate func(w *writer)
	path   string // by which the daemon knows it
	t      *testing.T
	rnd    *rand.Rand
	calm   *sync.RWMutex // held for reading while bytes are taken away that the daemon must have seen
	seen   func(id string) bool

	f       *os.File
	n       int          // errors written
	written atomic.Int64 // n, for others
	rotated int
	history []string // by rotation: when, and the next error's number
	from    []int
	target  int // number of the link's target
}

func (w *writer) check(err error) {
	if err != nil {
		w.t.Errorf("writer %s: %v", w.name, err)
	}
}

func (w *writer) open() {
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	w.check(err)
	w.f = f
}

// put writes to f, in pieces that end anywhere.
func (w *writer) put(f *os.File, s string) {
	for s != "" {
		n := len(s)
		if w.rnd.IntN(6) == 0 {
			n = 1 + w.rnd.IntN(n)
		}
		_, err := f.WriteString(s[:n])
		w.check(err)
		if s = s[n:]; s != "" && w.rnd.IntN(3) == 0 {
			time.Sleep(time.Duration(w.rnd.IntN(30)) * time.Millisecond)
		}
	}
}

// burst writes some records to f.
func (w *writer) burst(f *os.File, errors int) {
	var b strings.Builder
	for range errors {
		for range w.rnd.IntN(4) {
			b.WriteString(w.form(w.rnd, "2026-11-30T10:00:00.000001Z  INFO risingwave_meta::barrier: checkpoint is complete epoch="+fmt.Sprint(w.rnd.Uint64())))
		}
		b.WriteString(w.form(w.rnd, errorLine(w.name, w.n)))
		w.n++
		for i := range w.rnd.IntN(3) {
			b.WriteString(w.form(w.rnd, fmt.Sprintf("   %d: some::frame", i)))
		}
	}
	w.put(f, b.String())
	w.written.Store(int64(w.n))
}

// run writes until stop is closed.
func (w *writer) run(stop <-chan struct{}) {
	defer func() { w.check(w.f.Close()) }()
	w.burst(w.f, 1)
	w.waitSeen() // what was rotated away before the daemon first came is not its business
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(w.rnd.IntN(60)) * time.Millisecond):
		}
		w.burst(w.f, w.rnd.IntN(12))
		if w.rnd.IntN(25) == 0 {
			w.rotated++
			w.note("rotation begins")
			w.rotate(w)
			w.note("rotation is over")
		}
	}
}

// note keeps what happens for the report of a failure.
func (w *writer) note(what string) {
	w.history = append(w.history, fmt.Sprintf("%s %s %d", time.Now().UTC().Format("15:04:05.000"), what, w.rotated))
	w.from = append(w.from, w.n)
}

// when tells between what the n-th error was written.
func (w *writer) when(n int) string {
	i := 0
	for i < len(w.from) && w.from[i] <= n {
		i++
	}
	return "between [" + strings.Join(w.history[max(0, i-2):min(len(w.history), i+2)], ", ") + "]"
}

// waitSeen waits until the daemon has reported what was written so far: only
// then may bytes be destroyed that it could not get anywhere else.
func (w *writer) waitSeen() {
	if w.n == 0 {
		return
	}
	id := fmt.Sprintf("%s-%07d", w.name, w.n-1)
	for end := time.Now().Add(20 * time.Second); !w.seen(id) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// The ways to rotate.

// rename shifts generations, as logrotate does; the writer is late to notice.
func rename(w *writer) {
	const keep = 8
	if _, err := os.Stat(fmt.Sprintf("%s.%d", w.path, keep)); err == nil {
		w.calm.RLock() // the oldest goes away for good
		w.waitSeen()
		w.check(os.Remove(fmt.Sprintf("%s.%d", w.path, keep)))
		w.calm.RUnlock()
	}
	for i := keep - 1; i > 0; i-- {
		_ = os.Rename(fmt.Sprintf("%s.%d", w.path, i), fmt.Sprintf("%s.%d", w.path, i+1)) // there may be none yet
	}
	w.check(os.Rename(w.path, w.path+".1"))
	old := w.f
	if w.rnd.IntN(2) == 0 {
		w.burst(old, 3) // before the new file is there
	}
	if w.rnd.IntN(3) > 0 {
		time.Sleep(time.Duration(w.rnd.IntN(400)) * time.Millisecond)
	}
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	w.check(err)
	for range w.rnd.IntN(4) {
		w.burst(old, 5)
		time.Sleep(time.Duration(w.rnd.IntN(50)) * time.Millisecond)
	}
	w.check(old.Close())
	w.f = f
}

// pack is kubelet's way: rename to a time stamp, gzip soon.
func pack(w *writer) {
	old := fmt.Sprintf("%s.20261130-%06d", w.path, w.rotated)
	w.check(os.Rename(w.path, old))
	w.burst(w.f, 2)
	w.check(w.f.Close())
	w.open()
	w.calm.RLock()
	defer w.calm.RUnlock()
	w.waitSeen()
	w.check(os.WriteFile(old+".tmp", []byte("packed "+known+"\n"), 0o644))
	w.check(os.Rename(old+".tmp", old+".gz"))
	w.check(os.Remove(old))
}

// copyTruncate copies and truncates. No bytes are written in between, but the
// daemon need not have read what is copied.
func copyTruncate(w *writer) {
	w.calm.RLock()
	defer w.calm.RUnlock()
	b, err := os.ReadFile(w.path)
	w.check(err)
	w.check(os.WriteFile(fmt.Sprintf("%s.%d", w.path, w.rotated), b, 0o644))
	w.check(os.Truncate(w.path, 0))
	if w.rnd.IntN(2) == 0 {
		w.burst(w.f, 20)
	}
	w.waitSeen() // a second truncation before the first was seen loses bytes, with any reader
	if w.rotated > 4 {
		w.check(os.Remove(fmt.Sprintf("%s.%d", w.path, w.rotated-4)))
	}
}

// relink points the link to the next file, as a restarted container's; the
// old one may still be written to.
func relink(w *writer) {
	old := w.f
	w.target++
	w.link()
	for range w.rnd.IntN(4) {
		w.burst(old, 3)
		time.Sleep(time.Duration(w.rnd.IntN(200)) * time.Millisecond)
	}
	w.check(old.Close())
	if w.target > 3 {
		w.calm.RLock()
		defer w.calm.RUnlock()
		w.waitSeen()
		w.check(os.Remove(w.targetPath(w.target - 3)))
	}
}

func (w *writer) targetPath(n int) string {
	return filepath.Join(filepath.Dir(w.path), w.name+"-pods", fmt.Sprintf("%d.log", n))
}

func (w *writer) link() {
	w.check(os.MkdirAll(filepath.Dir(w.targetPath(0)), 0o755))
	f, err := os.OpenFile(w.targetPath(w.target), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	w.check(err)
	w.f = f
	w.check(os.Symlink(w.targetPath(w.target), w.path+".new"))
	w.check(os.Rename(w.path+".new", w.path))
}

// remove deletes the log and begins a new one, often with the same inode.
func remove(w *writer) {
	w.calm.RLock()
	defer w.calm.RUnlock()
	w.waitSeen()
	w.check(os.Remove(w.path))
	w.burst(w.f, 3) // it is open
	w.check(w.f.Close())
	if w.rnd.IntN(2) == 0 {
		time.Sleep(time.Duration(w.rnd.IntN(600)) * time.Millisecond)
	}
	w.open()
	w.burst(w.f, 1)
	w.waitSeen() // before anything else happens to a file that nobody may have opened yet
}

var rotations = map[string]func(*writer){"rename": rename, "pack": pack, "copytruncate": copyTruncate, "relink": relink, "remove": remove}
