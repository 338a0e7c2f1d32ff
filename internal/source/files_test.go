package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// both runs a test with file events and with looking only.
func both(t *testing.T, test func(t *testing.T, w *world, start func(inputs ...string) *run)) {
	for name, try := range map[string]func() error{"events": startInotify, "looking": func() error { return errors.New("none today") }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test(t, w, func(inputs ...string) *run {
				return w.startWith(inputsOf(inputs...), func(m *Files) { m.tryNotify = try })
			})
		})
	}
}

func TestBacklogThenLive(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		w.write("a.log", text(0, 3000))
		r := start("a.log")
		w.want(0, 3000)
		for i := range 20 {
			w.append("a.log", text(3000+i, 3001+i))
			time.Sleep(3 * time.Millisecond)
		}
		w.want(0, 3020)
		for i, g := range w.all() {
			if g.line != int64(i+1) || g.offset != int64(i*len(numbered(0)+"\n")) {
				t.Fatalf("line %d says it is line %d at %d", i, g.line, g.offset)
			}
		}
		r.stop()
		w.append("a.log", text(3020, 3030))
		start("a.log")
		w.want(0, 3030)
		w.never(400 * time.Millisecond)
	})
}

func TestRenameWithLateWriter(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		start("a.log")
		n := 0
		for round := range 6 {
			old, err := os.OpenFile(w.path("a.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			w.check(err)
			put := func(k int) {
				_, err := old.WriteString(text(n, n+k))
				w.check(err)
				n += k
			}
			put(50)
			time.Sleep(time.Duration(round*60) * time.Millisecond)
			put(50) // just before
			w.rename("a.log", fmt.Sprintf("a.log.%d", round))
			w.write("a.log", "")
			for range 5 {
				put(20)
				time.Sleep(20 * time.Millisecond)
			}
			old.Close()
		}
		w.want(0, n)
		w.never(time.Second)
	})
}

func TestWriterThatWasNeverToldOfTheRotation(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 10))
	r := w.start("a.log")
	w.want(0, 10)
	w.rename("a.log", "a.log.1")
	w.write("a.log", text(10, 20))
	w.want(0, 20)
	for i := range 2 {
		w.until("the old one is finished", func() bool { return len(r.Stats()) == 1 })
		w.append("a.log.1", text(20+5*i, 25+5*i))
		w.want(0, 25+5*i)
	}
}

// While the reader is stuck the file is rotated twice, and the old ones are packed.
func TestTwoRotationsWhileBehind(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		w.write("a.log.7", "from before our time\n")
		gate := make(chan struct{})
		w.new = func(c *lineConsumer) { c.block = gate }
		w.write("a.log", text(0, 40000)) // several reads
		start("a.log")
		gate <- struct{}{}
		w.rename("a.log", "a.log.1")
		w.write("a.log", text(40000, 40100))
		time.Sleep(600 * time.Millisecond) // seen
		w.rename("a.log", "a.log.2")
		w.write("a.log", text(40100, 40200))
		time.Sleep(600 * time.Millisecond)
		w.check(os.Remove(w.path("a.log.1")))
		w.check(os.Remove(w.path("a.log.2")))
		w.write("a.log.1.gz", "packed\n")
		close(gate)
		w.want(0, 40200)
		if got := w.lines(); got[len(got)-1] != numbered(40199) || got[40000] != numbered(40000) {
			t.Error("the newer file was read before the older one's end")
		}
		w.never(time.Second)
	})
}

// Two rotations happen between two looks: nobody opened the middle generation.
func TestGenerationThatCameAndWentBetweenLooks(t *testing.T) {
	w := newWorld(t)
	w.write("a.log.9", "from before our time\n")
	w.write("a.log", text(0, 10))
	w.start("a.log")
	w.want(0, 10)
	w.rename("a.log", "a.log.2")
	w.write("a.log", text(10, 20))
	w.rename("a.log", "a.log.1")
	w.write("a.log", text(20, 30))
	w.want(0, 30)
	w.never(time.Second)
}

func TestRotationsWhileDown(t *testing.T) {
	w := newWorld(t)
	w.write("a.log.9", "from before our time\n")
	w.write("a.log", text(0, 10))
	r := w.start("a.log")
	w.want(0, 10)
	r.stop()
	time.Sleep(20 * time.Millisecond)
	w.append("a.log", text(10, 20))
	w.rename("a.log", "a.log.2")
	time.Sleep(20 * time.Millisecond)
	w.write("a.log", text(20, 30))
	w.rename("a.log", "a.log.1")
	time.Sleep(20 * time.Millisecond)
	w.write("a.log", text(30, 40))
	r = w.start("a.log")
	w.want(0, 40)
	if got := w.lines(); got[len(got)-1] != numbered(39) || got[10] != numbered(10) {
		t.Errorf("order of generations: %q … %q", got[10], got[len(got)-1])
	}
	r.stop()
	w.start("a.log")
	w.never(time.Second)
}

// Down across two rotations, the older generation is packed: it can't be read
// on, but that is said once and counted.
func TestGenerationPackedWhileDown(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 10))
	r := w.start("a.log")
	w.want(0, 10)
	r.stop()
	time.Sleep(20 * time.Millisecond)
	w.append("a.log", text(10, 20))
	w.rename("a.log", "a.log.2")
	w.write("a.log.1", text(20, 30))
	time.Sleep(20 * time.Millisecond)
	w.write("a.log", text(30, 40))
	if out, err := exec.Command("gzip", w.path("a.log.2")).CombinedOutput(); err != nil {
		t.Fatalf("gzip: %v %s", err, out)
	}
	r = w.start("a.log")
	w.until("the other generations", func() bool { return w.count() == 30 })
	if got := r.Totals().LostBytes; got != int64(len(text(10, 20))) {
		t.Errorf("%d bytes are counted as lost", got)
	}
	r.stop()
	w.start("a.log")
	w.never(time.Second)
	if n := strings.Count(w.log.String(), "lines are missed"); n != 1 {
		t.Errorf("%d warnings: %s", n, w.log.String())
	}
}

func TestCopyTruncate(t *testing.T) {
	for name, input := range map[string]string{"path": "a.log", "glob that matches the copies": "a.log*", "directory": "."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start(input)
			n := 0
			for round := range 5 {
				w.append("a.log", text(n, n+300))
				n += 300
				time.Sleep(time.Duration(round) * 150 * time.Millisecond) // sometimes it is read by then
				b, _ := os.ReadFile(w.path("a.log"))
				w.write(fmt.Sprintf("a.log.%d", round), string(b))
				w.check(os.Truncate(w.path("a.log"), 0))
				if round%2 == 0 {
					w.append("a.log", text(n, n+500)) // outgrows at once
					n += 500
				}
				time.Sleep(300 * time.Millisecond)
			}
			w.append("a.log", text(n, n+5))
			w.want(0, n+5)
			w.never(1500 * time.Millisecond)
		})
	}
}

// While the reader is stuck the log is copied and truncated three times.
func TestCopyTruncateWhileBehind(t *testing.T) {
	w := newWorld(t)
	gate := make(chan struct{})
	w.new = func(c *lineConsumer) { c.block = gate }
	w.write("a.log", text(0, 5000)) // several reads
	w.start("a.log")
	gate <- struct{}{}
	n := 5000
	for i := range 3 {
		b, _ := os.ReadFile(w.path("a.log"))
		w.write(fmt.Sprintf("a.log.%d", i), string(b))
		w.check(os.Truncate(w.path("a.log"), 0))
		w.append("a.log", text(n, n+3000))
		n += 3000
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(6 * time.Second) // the search for late writers must leave the copies alone
	close(gate)
	w.want(0, n)
	w.never(time.Second)
}

// A copy is no copy if it only begins alike.
func TestEqualBeginningsAreTwoFiles(t *testing.T) {
	w := newWorld(t)
	banner := strings.Repeat("=", 2048) + "\n"
	w.write("a.log", banner+text(0, 10))
	w.write("a.log.x", banner+text(10, 20))
	w.write("b.log", banner+text(20, 30))
	w.start("*.log*")
	w.until("all lines", func() bool { return w.count() == 33 })
	w.write("a.log.y", banner+text(30, 40))
	w.until("the fourth file", func() bool { return w.count() == 44 })
	for i := range 5 { // equal for now
		w.write(fmt.Sprintf("%d.log", i), text(100, 101))
	}
	w.until("the numbered ones", func() bool { return w.count() == 49 })
}

func TestCopyTruncateWhileDown(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 100))
	r := w.start("a.log")
	w.want(0, 100)
	r.stop()
	w.append("a.log", text(100, 200))
	b, _ := os.ReadFile(w.path("a.log"))
	w.write("a.log.1", string(b))
	w.check(os.Truncate(w.path("a.log"), 0))
	w.append("a.log", text(200, 700))
	r = w.start("a.log")
	w.want(0, 700)
	r.stop()
	w.start("a.log")
	w.never(time.Second)
}

func TestTruncateWithoutCopyIsCounted(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		w.write("a.log", text(0, 20))
		r := start("a.log")
		w.want(0, 20)
		w.write("a.log", text(20, 40)) // same size
		w.want(0, 40)
		w.write("a.log", text(40, 100)) // larger
		w.want(0, 100)
		w.write("a.log", text(100, 101)) // smaller
		w.want(0, 101)
		if n := r.Totals().Truncations; n != 3 {
			t.Errorf("%d truncations counted", n)
		}
		if n := r.Totals().LostBytes; n != 0 {
			t.Errorf("%d bytes said to be lost, all were read", n)
		}
	})
}

func TestUnreadBytesAtTruncationAreCounted(t *testing.T) {
	w := newWorld(t)
	gate := make(chan struct{})
	w.new = func(c *lineConsumer) { c.block = gate }
	w.write("a.log", text(0, 10000))
	r := w.start("a.log")
	gate <- struct{}{} // 64 KiB of it
	time.Sleep(50 * time.Millisecond)
	w.write("a.log", text(10000, 10010))
	close(gate)
	w.until("the new content", func() bool { l := w.lines(); return len(l) > 0 && l[len(l)-1] == numbered(10009) })
	lost := int64(len(text(0, 10000))) - 64<<10
	if got := r.Totals().LostBytes; got != lost {
		t.Errorf("%d bytes counted as lost, want %d", got, lost)
	}
	if n := strings.Count(w.log.String(), "may be lost"); n != 1 {
		t.Errorf("%d warnings: %s", n, w.log.String())
	}
}

// A writer that does not append leaves a hole when the file is cut under it.
func TestHoleAfterTruncation(t *testing.T) {
	w := newWorld(t)
	f, err := os.Create(w.path("a.log"))
	w.check(err)
	defer f.Close()
	f.WriteString(text(0, 1000))
	w.start("a.log")
	w.want(0, 1000)
	w.check(os.Truncate(w.path("a.log"), 0))
	time.Sleep(300 * time.Millisecond)
	f.WriteString(text(1000, 1010))
	w.until("lines after the hole", func() bool { return w.count() >= 1010 })
	for i, g := range w.all()[1000:] {
		if strings.Trim(g.text, "\x00") != numbered(1000+i) {
			t.Errorf("got %.80q", g.text)
		}
		if n := strings.Count(g.text, "\x00"); n > 4096 {
			t.Errorf("%d NULs were read", n)
		}
	}
}

// Behind a hole in the middle lines come at once, with their offsets.
func TestHoleInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		const behind = 4 << 30
		f, err := os.Create(w.path("a.log"))
		w.check(err)
		defer f.Close()
		f.WriteString(text(0, 10))
		r := start("a.log")
		w.want(0, 10)
		r.stop()
		_, err = f.WriteAt([]byte(text(10, 11)), behind)
		w.check(err)
		start("a.log")
		w.until("the line behind the hole", func() bool { return strings.Contains(strings.Join(w.lines(), ""), numbered(10)) })
		for _, g := range w.all()[10:] {
			if n := strings.Count(g.text, "\x00"); n > 4096 {
				t.Errorf("%d NULs were read", n)
			}
		}
		if g := w.all()[w.count()-1]; g.text != numbered(10) || g.offset != behind {
			t.Errorf("got %.80q at %d", g.text, g.offset)
		}
	})
}

// Only some of many files are followed by events; all are read on, and the
// stop does not wait for each.
func TestManyFilesShareTails(t *testing.T) {
	w := newWorld(t)
	const n = maxTails + 50
	for i := range n {
		w.write(fmt.Sprintf("%d.txt", i), text(i, i+1))
	}
	r := w.start("*.txt")
	w.want(0, n)
	time.Sleep(600 * time.Millisecond)
	if got := r.tails.Load(); got > maxTails || got == 0 && r.notify {
		t.Errorf("%d tails", got)
	}
	for i := range n {
		w.append(fmt.Sprintf("%d.txt", i), text(n+i, n+i+1))
	}
	w.want(0, 2*n)
	r.stop()
	if got := r.tails.Load(); got != 0 {
		t.Errorf("%d tails are left", got)
	}
}

// More files than descriptors: that is said once, descriptors stay for others,
// and files whose turn has come are read.
func TestMoreFilesThanDescriptors(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		w.write(fmt.Sprintf("%d.txt", i), text(i, i+1))
	}
	r := w.startWith(inputsOf("*.txt"), func(m *Files) { m.limit(16) }) // 8 stay, 2 for tails
	w.want(0, 6)
	w.never(600 * time.Millisecond)
	if n := strings.Count(w.log.String(), "files are not read"); n != 1 || !strings.Contains(w.log.String(), `"files":4,`) {
		t.Errorf("%d warnings: %s", n, w.log.String())
	}
	for i := range 4 {
		w.check(os.Remove(w.path(fmt.Sprintf("%d.txt", i))))
	}
	w.want(0, 10)
	r.stop()
}

func TestPartialLines(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		half := numbered(0)[:20]
		w.write("a.log", half)
		r := start("a.log")
		w.never(600 * time.Millisecond)
		w.append("a.log", numbered(0)[20:]+"\n"+half)
		w.until("the line", func() bool { return w.count() == 1 })
		r.stop() // keeps its place before the half line
		w.want(0, 1)
		r = start("a.log")
		w.append("a.log", strings.TrimPrefix(numbered(0), half)+"\n")
		w.until("the second", func() bool { return w.count() == 2 })
		w.append("a.log", numbered(2))
		w.never(400 * time.Millisecond)
		w.rename("a.log", "a.log.1") // now nobody will end it
		w.until("the unfinished line of a finished file", func() bool { return w.count() == 3 })
		if g := w.all()[2]; g.text != numbered(2) || g.line != 3 {
			t.Errorf("got %+v", g)
		}
		r.stop()
		start("a.log", "a.log.1")
		w.never(800 * time.Millisecond)
	})
}

func TestSymlinkSwitch(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		w.write("pods/0.log", text(0, 5))
		w.check(os.Symlink(w.path("pods/0.log"), w.path("link.log")))
		start("link.log")
		w.want(0, 5)
		w.write("pods/1.log", text(5, 10))
		w.check(os.Symlink(w.path("pods/1.log"), w.path("new")))
		w.rename("new", "link.log")
		time.Sleep(400 * time.Millisecond)
		w.append("pods/1.log", text(10, 15))
		w.append("pods/0.log", text(15, 20)) // late
		w.want(0, 20)
		time.Sleep(time.Second) // by now it is finished
		w.append("pods/0.log", text(20, 25))
		w.want(0, 25)
		w.never(800 * time.Millisecond)
	})
}

func TestSymlinkSwitchWhileDown(t *testing.T) {
	w := newWorld(t)
	w.write("pods/0.log", text(0, 5))
	w.check(os.Symlink(w.path("pods/0.log"), w.path("link.log")))
	r := w.start("link.log")
	w.want(0, 5)
	r.stop()
	w.append("pods/0.log", text(5, 10))
	w.write("pods/1.log", text(10, 15))
	w.check(os.Symlink(w.path("pods/1.log"), w.path("new")))
	w.rename("new", "link.log")
	w.start("link.log")
	w.want(0, 15)
	w.never(800 * time.Millisecond)
}

// Several containers came and went while nobody looked.
func TestRestartsWhileDown(t *testing.T) {
	w := newWorld(t)
	w.write("pods/0.log", "from before our time\n")
	w.write("pods/1.log", text(0, 5))
	relink := func(n int) {
		w.check(os.Symlink(w.path(fmt.Sprintf("pods/%d.log", n)), w.path("new")))
		w.rename("new", "link.log")
	}
	relink(1)
	r := w.start("link.log")
	w.want(0, 5)
	r.stop()
	w.append("pods/1.log", text(5, 10))
	for i := range 3 {
		time.Sleep(20 * time.Millisecond)
		w.write(fmt.Sprintf("pods/%d.log", 2+i), text(10+5*i, 15+5*i))
	}
	relink(4)
	w.start("link.log")
	w.want(0, 25)
	w.never(800 * time.Millisecond)
}

// The next container's file is there before the link leads to it.
func TestLinkIsLate(t *testing.T) {
	w := newWorld(t)
	w.write("pods/0.log", text(0, 5))
	w.check(os.Symlink(w.path("pods/0.log"), w.path("link.log")))
	r := w.start("link.log")
	w.want(0, 5)
	r.stop()
	w.write("pods/1.log", "")
	w.start("link.log")
	w.append("pods/1.log", text(5, 10)) // linked, and the next one too, between two looks
	w.write("pods/2.log", text(10, 15))
	w.check(os.Symlink(w.path("pods/2.log"), w.path("new")))
	w.rename("new", "link.log")
	w.want(0, 15)
}

// rotatedOnce is a world in which a.log has been rotated, and both files are
// read to the end.
func rotatedOnce(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.write("a.log", text(0, 50))
	r := w.start("a.log")
	w.want(0, 50)
	w.rename("a.log", "a.log.1")
	w.write("a.log", text(50, 60))
	w.want(0, 60)
	w.until("the first one is finished", func() bool { return len(r.Stats()) == 1 })
	return w
}

// A generation that we never saw has the inode number of a file that we read
// and that is gone.
func TestGenerationWithAReusedInode(t *testing.T) {
	w := rotatedOnce(t)
	w.rename("a.log", "a.log.2")
	w.write("a.log.1", text(60, 65)) // the same inode for certain
	w.write("a.log", text(65, 70))
	w.want(0, 70)
}

// The log itself has the number of a file that is gone, and there was one in
// between that nobody saw.
func TestLogWithAReusedInode(t *testing.T) {
	w := rotatedOnce(t)
	w.rename("a.log", "a.log.3")
	w.write("a.log.2", text(60, 65))
	w.rename("a.log.1", "a.log")
	w.write("a.log", text(65, 70)) // the same inode for certain
	w.want(0, 70)
	w.never(time.Second)
}

// The log was empty when we looked last; since then it was filled, copied and
// truncated.
func TestCopyOfWhatNobodySaw(t *testing.T) {
	w := newWorld(t)
	w.write("a.log.7", "from before our time\n")
	w.write("a.log", "")
	r := w.start("a.log")
	r.stop()
	for i := range 2 {
		time.Sleep(20 * time.Millisecond)
		w.append("a.log", text(5*i, 5*i+5))
		w.write(fmt.Sprintf("a.log.%d", i), text(5*i, 5*i+5))
		w.check(os.Truncate(w.path("a.log"), 0))
	}
	w.append("a.log", text(10, 15))
	w.start("a.log")
	w.want(0, 15)
	w.never(800 * time.Millisecond)
}

func TestDeletedAndRecreated(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		w.write("a.log", text(0, 10))
		r := start("a.log")
		w.want(0, 10)
		w.check(os.Remove(w.path("a.log")))
		w.write("a.log", text(10, 20))
		w.want(0, 20)
		w.until("one file open", func() bool { return len(r.Stats()) == 1 })
		r.stop()
		if len(w.pos.m) != 1 {
			t.Errorf("positions of files that are gone are kept: %v", w.pos.m)
		}
		w.check(os.Remove(w.path("a.log"))) // often gets the same inode
		w.write("a.log", text(20, 60))
		start("a.log")
		w.want(0, 60)
	})
}

func TestInodeReusedByALongerFile(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 10))
	r := w.start("a.log")
	w.want(0, 10)
	r.stop()
	w.write("a.log", text(10, 60)) // the same inode for certain
	w.start("a.log")
	w.want(0, 60)
}

func TestDeletedFileIsClosedInTheEnd(t *testing.T) {
	w := newWorld(t)
	f, err := os.Create(w.path("a.log"))
	w.check(err)
	defer f.Close()
	r := w.startWith(inputsOf("a.log"), func(m *Files) { m.holdLimit = 500 * time.Millisecond })
	f.WriteString(text(0, 1))
	w.want(0, 1)
	w.check(os.Remove(w.path("a.log")))
	w.until("it is closed though it is written to", func() bool {
		f.WriteString("more\n")
		return len(r.Stats()) == 0
	})
}

func TestDirectoryThatAppearsLater(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		start("pods/uid/compute/0.log", "other", "glob/**/*.log")
		time.Sleep(100 * time.Millisecond)
		w.write("pods/uid/compute/0.log", text(0, 5))
		w.write("other/deep/down/x.log", text(5, 10))
		w.write("other/deep/down/x.log.gz", "packed\n")
		w.write("other/.x.log.swp", "editor\n")
		w.write("glob/a/b/c.log", text(10, 15))
		w.write("glob/a/b/c.txt", "not asked for\n")
		w.want(0, 15)
		w.never(1200 * time.Millisecond)
	})
}

func TestStartChoices(t *testing.T) {
	for start, want := range map[Start][]string{
		FromCheckpoint: {"c", "d"},
		FromBeginning:  {"a", "b", "c", "d"},
		FromEnd:        {"cd"},
	} {
		t.Run(string(start), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write("x.log", "a\nb\n")
			r := w.start("x.log")
			w.until("a, b", func() bool { return w.count() == 2 })
			r.stop()
			w.append("x.log", "c")
			if start != FromEnd {
				w.append("x.log", "\n")
			}
			w.got = nil
			w.startWith(Options{Inputs: []Input{{Path: "x.log", Start: start}}}, nil)
			time.Sleep(50 * time.Millisecond)
			w.append("x.log", "d\n")
			w.until("lines", func() bool { return w.count() >= len(want) })
			if got := w.lines(); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("got %q, want %q", got, want)
			}
			w.write("later.log", "")
		})
	}
}

// Thousands of files come with thousands of positions: to go through all of
// them for each new file takes minutes.
func TestPositionsAreGoneThroughOnceAScan(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.write(fmt.Sprintf("%d.txt", i), text(i, i+1))
	}
	r := w.start("*.txt")
	w.want(0, 100)
	r.stop()
	if w.pos.walked > 5 {
		t.Errorf("%d times", w.pos.walked)
	}
}

func TestFilesAfterStartAreReadFromTheirBeginning(t *testing.T) {
	w := newWorld(t)
	w.startWith(Options{Inputs: []Input{{Path: "*.log", Start: FromEnd}}}, nil)
	w.write("a.log", text(0, 3))
	w.want(0, 3)
}

func TestOwnOutputIsNotRead(t *testing.T) {
	w := newWorld(t)
	w.write("daemon.log", "our own\n")
	w.write("state/state.log", "ours too\n")
	w.write("x.log", "excluded\n")
	info, err := os.Stat(w.path("daemon.log"))
	w.check(err)
	w.startWith(Options{Inputs: []Input{{Path: "**/*.log", Exclude: []string{"x*"}}}, Own: []os.FileInfo{info}, Avoid: []string{w.path("state")}}, nil)
	w.write("a.log", text(0, 3))
	w.want(0, 3)
	w.never(300 * time.Millisecond)
	if w.log.String() != "" {
		t.Errorf("nothing to complain of: %s", w.log.String())
	}
}

func TestTwoNamesOfOneFileAreOneStream(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 10))
	w.check(os.Symlink(w.path("a.log"), w.path("b.log")))
	w.check(os.Link(w.path("a.log"), w.path("c.log")))
	w.start("*.log", "a.log", w.dir)
	w.want(0, 10)
	w.never(time.Second)
}

func TestWhatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.write("good.log", text(0, 5))
	w.check(os.Symlink("loop.log", w.path("loop.log")))
	w.check(os.Symlink("/etc/shadow", w.path("shadow.log")))
	w.check(os.Symlink("/dev/zero", w.path("zero.log")))
	w.check(os.Symlink("/nowhere/at/all", w.path("dangling.log")))
	w.check(unix.Mkfifo(w.path("fifo.log"), 0o644))
	w.check(os.Mkdir(w.path("dir.log"), 0o755))
	w.write("file", "")
	r := w.start("*.log", "loop.log", w.path("file")+"/under.log")
	w.want(0, 5)
	time.Sleep(2500 * time.Millisecond) // several looks
	w.append("good.log", text(5, 10))
	w.want(0, 10)
	log := w.log.String()
	for name, reason := range map[string]string{"loop.log": "too many levels", "shadow.log": "outside of the input", "zero.log": "outside of the input",
		"fifo.log": "not a regular file", "dir.log": "is a directory", "under.log": "not a directory"} {
		n := 0
		for line := range strings.Lines(log) {
			if strings.Contains(line, name) && strings.Contains(line, reason) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d warnings with %q\n%s", name, n, reason, log)
		}
	}
	if strings.Contains(log, "dangling") {
		t.Errorf("a link that leads nowhere is waited for in silence: %s", log)
	}
	if len(r.Stats()) != 1 {
		t.Errorf("open: %+v", r.Stats())
	}
}

func TestUnreadableForAMoment(t *testing.T) {
	if os.Geteuid() == 0 {
		// root reads everything: let the test binary be somebody else
		cmd := exec.Command(os.Args[0], "-test.run=^TestUnreadableForAMoment$", "-test.v")
		exe := filepath.Join(t.TempDir(), "source.test")
		b, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(exe, b, 0o755)
		os.Chmod(filepath.Dir(exe), 0o755)
		os.Chmod(filepath.Dir(filepath.Dir(exe)), 0o755)
		cmd.Path, cmd.Dir = exe, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	w := newWorld(t)
	w.write("a.log", text(0, 5))
	w.check(os.Chmod(w.path("a.log"), 0))
	w.start("a.log")
	time.Sleep(700 * time.Millisecond)
	w.check(os.Chmod(w.path("a.log"), 0o644))
	w.want(0, 5)
	if n := strings.Count(w.log.String(), "permission denied"); n != 1 {
		t.Errorf("%d warnings: %s", n, w.log.String())
	}
}

func TestFifo(t *testing.T) {
	w := newWorld(t)
	w.check(unix.Mkfifo(w.path("p"), 0o644))
	r := w.start("p")
	for i := range 3 { // writers come and go
		f, err := os.OpenFile(w.path("p"), os.O_WRONLY, 0)
		w.check(err)
		f.WriteString(text(3*i, 3*i+2) + numbered(3*i+2)) // the last line has no end
		f.Close()
		w.want(0, 3*i+3)
	}
	r.stop()
}

// What a writer left behind just before the stop is nowhere but in the pipe.
func TestFifoIsEmptiedAtTheStop(t *testing.T) {
	w := newWorld(t)
	w.check(unix.Mkfifo(w.path("p"), 0o644))
	in, err := os.OpenFile(w.path("p"), os.O_RDWR, 0) // keeps what is written until somebody reads
	w.check(err)
	defer in.Close()
	in.WriteString(text(0, 3))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := fifo{w.path("p"), w.open, w.pos, StreamInfo{Key: "fifo", Line: 1}}
	w.check(f.run(ctx))
	w.want(0, 3)
}

// A line of 20 MB while the tail is on the file: it must not gather it.
func TestGiantLine(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 3))
	r := w.start("a.log")
	w.want(0, 3)
	f, err := os.OpenFile(w.path("a.log"), os.O_WRONLY|os.O_APPEND, 0)
	w.check(err)
	for range 20 {
		f.Write(make([]byte, 1<<20))
		time.Sleep(10 * time.Millisecond)
	}
	f.WriteString("\n" + text(3, 5))
	f.Close()
	w.until("the lines behind it", func() bool { l := w.lines(); return len(l) > 0 && l[len(l)-1] == numbered(4) })
	r.stop()
}

func TestBurstsAreRead(t *testing.T) {
	both(t, func(t *testing.T, w *world, start func(...string) *run) {
		start("a.log")
		n := 0
		for range 10 {
			w.append("a.log", text(n, n+8000)) // 0.4 MB
			n += 8000
			time.Sleep(15 * time.Millisecond)
		}
		w.want(0, n)
	})
}

// What is there when we are told to stop is read; the rest waits for the next start.
func TestStopReadsWhatIsThere(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 10))
	r := w.start("*.log")
	w.want(0, 10)
	w.append("a.log", text(10, 500))
	w.write("b.log", text(500, 600)) // nobody has seen it yet
	r.stop()
	w.want(0, 600)
}

func TestStopInABacklogKeepsThePlace(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 50000))
	slow := func(c *lineConsumer) {
		gate := make(chan struct{})
		c.block = gate
		go func() {
			for range 8 {
				gate <- struct{}{}
				time.Sleep(30 * time.Millisecond)
			}
			close(gate)
		}()
	}
	w.new = slow
	r := w.start("a.log")
	r.stop()
	w.new = nil
	w.start("a.log")
	w.want(0, 50000)
	w.never(300 * time.Millisecond)
}

func TestConsumerThatFailsKeepsThePosition(t *testing.T) {
	w := newWorld(t)
	w.write("a.log", text(0, 10))
	w.new = func(c *lineConsumer) { c.fail = errors.New("standard output is gone") }
	r := w.start("a.log")
	w.until("it was called", func() bool { return w.count() == 9 })
	r.stop()
	w.got, w.new = nil, nil
	w.start("a.log")
	w.want(0, 10)
}

func TestStalledNamesWhoHangs(t *testing.T) {
	w := newWorld(t)
	gate := make(chan struct{})
	w.write("a.log", text(0, 1))
	w.write("b.log", text(1, 2))
	w.new = func(c *lineConsumer) {
		if strings.HasSuffix(c.info.Path, "a.log") {
			c.block = gate
		}
	}
	r := w.start("*.log")
	w.until("b", func() bool { return w.count() == 1 })
	gate <- struct{}{} // its first turn, then it hangs
	w.until("a hangs", func() bool {
		s := r.Stalled(600 * time.Millisecond)
		return len(s) == 1 && strings.HasSuffix(s[0], "a.log")
	})
	close(gate)
	w.until("a goes on", func() bool { return len(r.Stalled(600*time.Millisecond)) == 0 })
}

func TestStats(t *testing.T) {
	w := newWorld(t)
	w.write("ns_pod_uid/compute/0.log", text(0, 10))
	r := w.start(".")
	w.want(0, 10)
	w.until("stats", func() bool { s := r.Stats(); return len(s) == 1 && s[0].Offset == s[0].Size && s[0].Size > 0 })
	if s := r.Stats()[0]; s.K8s.Pod != "pod" || s.LastRead.IsZero() || s.Retired {
		t.Errorf("%+v", s)
	}
	if n := r.Totals(); n.Opened != 1 || n.Bytes != int64(len(text(0, 10))) {
		t.Errorf("%+v", n)
	}
}

// Descriptors and goroutines stay as few as they were. RWANNOTATE_ROTATIONS
// sets another number.
func TestRotationsLeakNothing(t *testing.T) {
	rotations := 120
	if s := os.Getenv("RWANNOTATE_ROTATIONS"); s != "" {
		fmt.Sscan(s, &rotations)
	}
	w := newWorld(t)
	r := w.startWith(inputsOf("a.log"), func(m *Files) { m.lateWait = 50 * time.Millisecond })
	fds := func() int {
		e, _ := os.ReadDir("/proc/self/fd")
		return len(e)
	}
	w.write("a.log", text(0, 1))
	w.want(0, 1)
	before := fds()
	for i := 1; i <= rotations; i++ {
		w.rename("a.log", "a.log.1")
		w.write("a.log", text(i, i+1))
		if i%3 != 0 { // sometimes two within a look
			w.until("line", func() bool { return w.count() == i+1 })
		}
	}
	w.want(0, rotations+1)
	w.until("old ones are closed", func() bool { return len(r.Stats()) == 1 })
	if after := fds(); after > before+3 {
		t.Errorf("%d descriptors before, %d after %d rotations", before, after, rotations)
	}
	r.stop()
	r.sweep()
	if len(w.pos.m) > 3 {
		t.Errorf("%d positions kept", len(w.pos.m))
	}
}

func TestBadGlobsAreAllNamed(t *testing.T) {
	_, err := NewFiles(inputsOf("/a/[", "/b/{x", "", "/good/*.log"), nil, nil, zerologNop)
	for _, want := range []string{`"/a/["`, `"/b/{x"`, "empty path"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestStdin(t *testing.T) {
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := newWorld(t)
	var c *lineConsumer
	w.new = func(made *lineConsumer) { c = made }
	done := make(chan error, 1)
	go func() { done <- NewStdin(r, w.open, w.pos).Run(context.Background()) }()
	wr.WriteString(text(0, 3) + numbered(3)[:10])
	w.want(0, 3)
	wr.WriteString(numbered(3)[10:]) // no end of line before the end
	time.Sleep(150 * time.Millisecond)
	wr.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.want(0, 4)
	if c.idles == 0 {
		t.Error("the pause was not noticed")
	}
	if c.info.Input != "stdin" || c.info.Path != "" || c.info.Line != 1 {
		t.Errorf("%+v", c.info)
	}
}

func TestStdinThatIsNoFile(t *testing.T) {
	w := newWorld(t)
	if err := NewStdin(strings.NewReader(text(0, 2)+numbered(2)), w.open, w.pos).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.want(0, 3)
	bad := io.MultiReader(strings.NewReader(text(3, 4)), errReader{})
	if err := NewStdin(bad, w.open, w.pos).Run(context.Background()); err == nil || !strings.Contains(err.Error(), "cable was cut") {
		t.Errorf("got %v", err)
	}
	w.want(0, 4)
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("cable was cut") }

func TestStdinStops(t *testing.T) {
	r, wr, _ := os.Pipe()
	defer r.Close()
	defer wr.Close()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	wr.WriteString(text(0, 2000)[:60000])
	cancel()
	began := time.Now()
	go func() { done <- NewStdin(r, w.open, w.pos).Run(ctx) }()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
	if n := len(strings.Join(w.lines(), "\n")); n != 60000 {
		t.Errorf("%d of 60000 bytes read", n)
	}
}

type cursorConsumer struct{ *lineConsumer }

func (c cursorConsumer) Cursor() string { return fmt.Sprintf("s=%d", c.line-1) }

func TestStdinStoresTheCursor(t *testing.T) {
	w := newWorld(t)
	open := func(info StreamInfo) Consumer { return cursorConsumer{w.open(info).(*lineConsumer)} }
	if err := NewStdin(strings.NewReader(text(0, 7)), open, w.pos).Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.pos.Load(StdinKey); string(v) != "s=7" {
		t.Errorf("stored %q", v)
	}
}
