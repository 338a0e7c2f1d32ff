package spool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// TestMain lets the test binary play the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SPOOL_TEST_CHILD"); dir != "" {
		os.Exit(commitForEver(dir))
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string, o Options) (*Spool, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := Open(dir, o, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, &log
}

func commit(t *testing.T, s *Spool, b Batch) {
	t.Helper()
	if err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
}

func data(entries []Entry) (out []string) {
	for _, e := range entries {
		out = append(out, string(e.Data))
	}
	return out
}

func collect(each func(func(string, []byte))) map[string]string {
	m := map[string]string{}
	each(func(k string, v []byte) { m[k] = string(v) })
	return m
}

func TestWhatIsCommittedIsThereAfterReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b") // made by Open
	s, _ := open(t, dir, Options{})
	commit(t, s, Batch{
		Positions: map[string][]byte{"a": []byte("1"), "b": []byte("2")},
		Episodes:  map[string][]byte{"e": []byte("x"), "gone": []byte("y")},
		Events:    map[string][][]byte{"loki": {[]byte("one"), []byte("two")}, "other": {[]byte("three")}},
		Cursor:    "s=1",
	})
	commit(t, s, Batch{Positions: map[string][]byte{"b": nil, "a": []byte("9")}, Episodes: map[string][]byte{"gone": nil}})
	check := func(s *Spool) {
		t.Helper()
		if diff := cmp.Diff(map[string]string{"a": "9"}, collect(s.Positions)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]string{"e": "x"}, collect(s.Episodes)); diff != "" {
			t.Error(diff)
		}
		if v, ok := s.Position("a"); !ok || string(v) != "9" {
			t.Errorf("position a = %q, %v", v, ok)
		}
		if _, ok := s.Position("b"); ok {
			t.Error("position b was deleted")
		}
		if s.Cursor() != "s=1" {
			t.Errorf("cursor %q", s.Cursor())
		}
		if n, bytes := s.Size("loki"); n != 2 || bytes != 6 {
			t.Errorf("size %d, %d", n, bytes)
		}
		got, err := s.Read("loki", 0, 10, 1<<20)
		if diff := cmp.Diff([]string{"one", "two"}, data(got)); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, log := open(t, dir, Options{})
	check(s)
	if log.Len() > 0 {
		t.Errorf("a clean start says %s", log)
	}
}

func TestQueue(t *testing.T) {
	s, _ := open(t, t.TempDir(), Options{MaxBytes: 30})
	if got, err := s.Read("q", 0, 10, 100); err != nil || got != nil {
		t.Errorf("unknown queue: %v, %v", got, err)
	}
	var entries [][]byte
	for i := range 6 {
		entries = append(entries, []byte(fmt.Sprintf("entry%d", i)))
	}
	commit(t, s, Batch{Events: map[string][][]byte{"q": entries}})
	if !s.Full("q") || s.Full("r") {
		t.Error("36 of 30 bytes are full; an unknown queue is not")
	}
	got, _ := s.Read("q", 0, 2, 100)
	if diff := cmp.Diff([]string{"entry0", "entry1"}, data(got)); diff != "" {
		t.Error("by count", diff)
	}
	rest, _ := s.Read("q", got[1].Seq, 10, 13)
	if diff := cmp.Diff([]string{"entry2", "entry3"}, data(rest)); diff != "" {
		t.Error("by bytes", diff)
	}
	if one, _ := s.Read("q", 0, 10, 1); len(one) != 1 {
		t.Errorf("an entry above the limit still comes, alone: %v", data(one))
	}
	if err := s.Ack("q", []uint64{got[0].Seq, rest[0].Seq, 999}); err != nil {
		t.Fatal(err)
	}
	if n, bytes := s.Size("q"); n != 4 || bytes != 24 {
		t.Errorf("after ack %d, %d", n, bytes)
	}
	dropped, err := s.DropOldest("q", 2)
	if err != nil || string(bytes.Join(dropped, []byte(" "))) != "entry1 entry3" {
		t.Errorf("dropped %q, %v", dropped, err)
	}
	commit(t, s, Batch{Events: map[string][][]byte{"q": {[]byte("new")}}})
	left, _ := s.Read("q", 0, 10, 100)
	if diff := cmp.Diff([]string{"entry4", "entry5", "new"}, data(left)); diff != "" {
		t.Error(diff)
	}
	if left[2].Seq != 7 {
		t.Errorf("sequence %d was used before or skipped", left[2].Seq)
	}
}

func TestSecondProcessIsToldSo(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir, Options{})
	if _, err := Open(dir, Options{LockTimeout: 30 * time.Millisecond}, zerolog.Nop()); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v", err)
	}
	// A predecessor that is about to stop is waited for.
	time.AfterFunc(100*time.Millisecond, func() { s.Close() })
	second, err := Open(dir, Options{LockTimeout: 5 * time.Second}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if _, err := Open(file, Options{}, zerolog.Nop()); err == nil {
		t.Error("a file is no directory")
	}
}

// fill makes a state file of some size with a position, and closes it.
func fill(t *testing.T, dir string) string {
	s, _ := open(t, dir, Options{})
	for i := range 20 {
		commit(t, s, Batch{Positions: map[string][]byte{"p": []byte(strconv.Itoa(i))}, Cursor: "c",
			Events: map[string][][]byte{"q": {bytes.Repeat([]byte("x"), 9000)}}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "state.db")
}

func TestDamagedFileIsSetAside(t *testing.T) {
	cases := map[string]func(content []byte) []byte{
		"NULs":    func(c []byte) []byte { return make([]byte, len(c)) },
		"half":    func(c []byte) []byte { return c[:len(c)/2] },
		"quarter": func(c []byte) []byte { return c[:len(c)/4] },
		"page":    func(c []byte) []byte { return c[:4096] },
		"garbage": func(c []byte) []byte { return bytes.Repeat([]byte("garbage!"), 40) },
		"foreign": func(c []byte) []byte { return []byte("{\"positions\":{}}\n") },
		"metas":   func(c []byte) []byte { clear(c[:8192]); return c },
		"body":    func(c []byte) []byte { clear(c[8192:]); return c },
		"version": func(c []byte) []byte { c[20], c[4096+20] = 9, 9; return c },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := fill(t, dir)
			content, _ := os.ReadFile(path)
			os.WriteFile(path, damage(content), 0o600)
			s, log := open(t, dir, Options{})
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "set aside") {
				t.Errorf("one warning expected, got %s", log)
			}
			if kept, _ := filepath.Glob(path + ".damaged-*"); len(kept) != 1 {
				t.Errorf("kept: %v", kept)
			}
			commit(t, s, Batch{Positions: map[string][]byte{"new": []byte("1")}})
			s.Close()
			s, log = open(t, dir, Options{})
			if _, ok := s.Position("new"); !ok || log.Len() > 0 {
				t.Errorf("second start: position there: %v, said: %s", ok, log)
			}
		})
	}
}

func TestEmptyFileIsSaid(t *testing.T) {
	dir := t.TempDir()
	os.Truncate(fill(t, dir), 0)
	if _, log := open(t, dir, Options{}); strings.Count(log.String(), "\n") != 1 {
		t.Errorf("one warning expected: %s", log)
	}
}

func TestOnlyTheNewestDamagedFilesAreKept(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	for i := range 5 {
		os.WriteFile(filepath.Join(dir, "state.db"), []byte("garbage"), 0o600)
		s, _ := open(t, dir, Options{Now: func() time.Time { return now.Add(time.Duration(i) * time.Second) }})
		s.Close()
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "state.db.damaged-*"))
	if len(kept) != 3 || !strings.HasSuffix(kept[0], "100002.000") {
		t.Errorf("kept %v", kept)
	}
}

// Whatever bytes change in the file: opening it and committing to it works, or
// says why; nothing panics or faults.
func TestRandomDamageNeverEndsTheProcess(t *testing.T) {
	base := t.TempDir()
	content, _ := os.ReadFile(fill(t, base))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 60 {
		dir := t.TempDir()
		c := append([]byte{}, content...)
		for range 1 + rnd.IntN(30) {
			at := rnd.IntN(len(c))
			n := min(1<<rnd.IntN(13), len(c)-at)
			for i := range n {
				c[at+i] = byte(rnd.Uint32())
			}
		}
		if rnd.IntN(3) == 0 {
			c = c[:rnd.IntN(len(c))]
		}
		os.WriteFile(filepath.Join(dir, "state.db"), c, 0o600)
		s, _ := open(t, dir, Options{})
		for i := range 5 {
			if err := s.Commit(Batch{Positions: map[string][]byte{"p": []byte("ok")}, Events: map[string][][]byte{"q": {make([]byte, 5000)}}}); err != nil {
				t.Fatalf("commit %d: %v", i, err)
			}
		}
		if v, _ := s.Position("p"); string(v) != "ok" {
			t.Fatalf("position %q", v)
		}
		s.Read("q", 0, 100, 1<<20)
		s.DropOldest("q", 3)
		s.Close()
	}
}

func TestDamageWhileRunningKeepsPositions(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	s, log := open(t, dir, Options{})
	if err := os.Truncate(filepath.Join(dir, "state.db"), 0); err != nil {
		t.Fatal(err)
	}
	commit(t, s, Batch{Positions: map[string][]byte{"q": []byte("new")}})
	if diff := cmp.Diff(map[string]string{"p": "19", "q": "new"}, collect(s.Positions)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(log.String(), "set aside") {
		t.Errorf("said %s", log)
	}
	s.Close()
	s, _ = open(t, dir, Options{})
	if diff := cmp.Diff(map[string]string{"p": "19", "q": "new"}, collect(s.Positions)); diff != "" || s.Cursor() != "c" {
		t.Error("after reopening", diff, s.Cursor())
	}
}

func TestSpaceIsGivenBackAtStart(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir, Options{})
	var entries [][]byte
	for range 40 {
		entries = append(entries, make([]byte, 1<<20))
	}
	commit(t, s, Batch{Events: map[string][][]byte{"q": entries}, Positions: map[string][]byte{"p": []byte("1")}, Cursor: "c"})
	if _, err := s.DropOldest("q", 39); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s, _ = open(t, dir, Options{})
	info, _ := os.Stat(filepath.Join(dir, "state.db"))
	if info.Size() > 8<<20 {
		t.Errorf("file has still %d bytes", info.Size())
	}
	if n, _ := s.Size("q"); n != 1 || s.Cursor() != "c" {
		t.Errorf("%d entries, cursor %q", n, s.Cursor())
	}
	commit(t, s, Batch{Events: map[string][][]byte{"q": {[]byte("x")}}})
	if got, _ := s.Read("q", 0, 5, 5<<20); len(got) != 2 || got[1].Seq != 41 {
		t.Errorf("sequence went back: %d entries", len(got))
	}
}

func TestPeekCursorWhileLocked(t *testing.T) {
	dir := t.TempDir()
	if c, err := PeekCursor(dir); c != "" || err != nil {
		t.Errorf("no state yet: %q, %v", c, err)
	}
	s, _ := open(t, dir, Options{})
	if c, err := PeekCursor(dir); c != "" || err != nil {
		t.Errorf("no cursor yet: %q, %v", c, err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				s.Commit(Batch{Cursor: fmt.Sprintf("c%d", i), Events: map[string][][]byte{"q": {make([]byte, 3000)}}})
			}
		}
	}()
	for s.Cursor() == "" {
		time.Sleep(time.Millisecond)
	}
	for range 30 {
		if c, err := PeekCursor(dir); err != nil || !strings.HasPrefix(c, "c") {
			t.Fatalf("%q, %v", c, err)
		}
	}
	close(stop)
	<-stopped
	os.WriteFile(filepath.Join(dir, "state.db"), []byte("garbage"), 0o600)
	if _, err := PeekCursor(dir); err == nil {
		t.Error("garbage gave a cursor")
	}
}

func TestFullDiskIsAnErrorAndPasses(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("rwannotate-test", dir, "tmpfs", 0, "size=512k"); err != nil {
		if os.Getenv("RWANNOTATE_REQUIRE_ALL") == "1" {
			t.Fatal(err)
		}
		t.Skipf("mounting a small file system needs root: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	s, _ := open(t, dir, Options{})
	commit(t, s, Batch{Positions: map[string][]byte{"p": []byte("1")}})
	ballast := filepath.Join(dir, "ballast")
	f, _ := os.Create(ballast)
	io.Copy(f, zeros{})
	f.Close()
	big := Batch{Positions: map[string][]byte{"p": []byte("2")}, Events: map[string][][]byte{"q": {make([]byte, 150_000)}}}
	for range 3 {
		if err := s.Commit(big); err == nil || errors.Is(err, errDamaged) {
			t.Fatalf("a full disk gives %v", err)
		}
	}
	if v, _ := s.Position("p"); string(v) != "1" {
		t.Errorf("position %q after a failed commit", v)
	}
	os.Remove(ballast)
	commit(t, s, big)
	s.Close()
	s, _ = open(t, dir, Options{})
	if v, _ := s.Position("p"); string(v) != "2" {
		t.Errorf("position %q", v)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// commitForEver is the child: batch i holds position i and one entry i; it
// prints i once the commit is done, and acknowledges old entries now and then.
func commitForEver(dir string) int {
	s, err := Open(dir, Options{}, zerolog.New(os.Stderr))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	i := 0
	if v, ok := s.Position("p"); ok {
		i, _ = strconv.Atoi(string(v))
	}
	for i++; ; i++ {
		n := []byte(strconv.Itoa(i))
		err := s.Commit(Batch{Positions: map[string][]byte{"p": n}, Cursor: "c" + string(n),
			Episodes: map[string][]byte{"e": n}, Events: map[string][][]byte{"q": {n, bytes.Repeat(n, 200)}}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if i%50 == 0 {
			if _, err := s.DropOldest("q", 80); err != nil {
				return 1
			}
		}
		fmt.Println(i)
	}
}

// A process that is killed at any moment loses no batch that it was told was
// committed, and never leaves half of one.
func TestKillLosesNoCommittedBatch(t *testing.T) {
	dir := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	last := 0
	for round := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SPOOL_TEST_CHILD="+dir)
		cmd.Stderr = os.Stderr
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 1 + rnd.IntN(60); n > 0 && lines.Scan(); n-- {
			last, _ = strconv.Atoi(lines.Text())
		}
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
		cmd.Process.Kill()
		for lines.Scan() {
			last, _ = strconv.Atoi(lines.Text())
		}
		cmd.Wait()

		s, log := open(t, dir, Options{})
		if log.Len() > 0 {
			t.Fatalf("round %d: %s", round, log)
		}
		p, _ := s.Position("p")
		at, _ := strconv.Atoi(string(p))
		if at < last {
			t.Fatalf("round %d: batch %d was committed, file has %d", round, last, at)
		}
		if s.Cursor() != "c"+string(p) || collect(s.Episodes)["e"] != string(p) {
			t.Fatalf("round %d: position %s, cursor %s, episode %s", round, p, s.Cursor(), collect(s.Episodes)["e"])
		}
		entries, err := s.Read("q", 0, 1<<20, 1<<30)
		if err != nil || len(entries) < 2 || string(entries[len(entries)-2].Data) != string(p) {
			t.Fatalf("round %d: %d entries, %v; newest should be %s", round, len(entries), err, p)
		}
		for i := 1; i < len(entries); i++ {
			if entries[i].Seq != entries[i-1].Seq+1 {
				t.Fatalf("round %d: gap in the queue after %d", round, entries[i-1].Seq)
			}
		}
		s.Close()
	}
}
