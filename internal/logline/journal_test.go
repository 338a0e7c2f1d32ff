package logline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func journalFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "test", "corpus", "journal", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// entry is a journal entry as a decoder of the test's own reads it.
type entry struct{ messages [][]byte }

// entries decodes export data that is known to be well formed.
func entries(t testing.TB, b []byte) (out []entry) {
	t.Helper()
	var e entry
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		if len(line) == 0 {
			out, e = append(out, e), entry{}
			continue
		}
		name, value, isText := bytes.Cut(line, []byte("="))
		if !isText {
			n := binary.LittleEndian.Uint64(b)
			value, b = b[8:8+n], b[8+n+1:]
		}
		if string(name) == "MESSAGE" {
			e.messages = append(e.messages, value)
		}
	}
	return out
}

// clean is what is left of a message when it is read without loss.
func clean(message []byte) string {
	s := string(Clean(nil, bytes.TrimSuffix(message, []byte("\n"))))
	return strings.TrimSuffix(s, "\n")
}

// blob reports whether the forms for people print a message as "[19B blob
// data]": it holds CR, NUL or invalid UTF-8. Colours are dropped first.
func blob(m []byte) bool {
	return bytes.ContainsAny(m, "\r\x00") || !utf8.Valid(m)
}

// TestJournalForms: the same journal through each of journalctl's forms gives
// the same messages. What a form itself loses is stated here, and nothing else.
func TestJournalForms(t *testing.T) {
	all := entries(t, journalFile(t, "out.export"))
	lossless := func(e entry) (string, bool) {
		var texts []string
		for _, m := range e.messages {
			texts = append(texts, clean(m))
		}
		return strings.Join(texts, "\n"), len(texts) > 0
	}
	// Without --all, JSON has null for messages of 4,088 bytes and more.
	short := func(e entry) (string, bool) {
		var texts []string
		for _, m := range e.messages {
			if len(m) < 4088 {
				texts = append(texts, clean(m))
			}
		}
		return strings.Join(texts, "\n"), len(texts) > 0
	}
	// The forms for people: of a repeated MESSAGE the last, tabs as blanks, what
	// is no text as a note of its size.
	forPeople := func(e entry) (string, bool) {
		if len(e.messages) == 0 {
			return "", false
		}
		m := e.messages[len(e.messages)-1]
		if blob(m) {
			return fmt.Sprintf("[%dB blob data]", len(m)), true
		}
		return strings.ReplaceAll(clean(m), "\t", "        "), true
	}
	// … with --all: raw, tabs too, but cut at NUL.
	forPeopleAll := func(e entry) (string, bool) {
		if len(e.messages) == 0 {
			return "", false
		}
		m, _, _ := bytes.Cut(e.messages[len(e.messages)-1], []byte{0})
		return clean(m), true
	}
	for _, c := range []struct {
		file string
		want func(entry) (string, bool)
		read func(testing.TB, []byte) []string
	}{
		{"out.export", lossless, readExport},
		{"out.json.all", lossless, readLines},
		{"out.json", short, readLines},
		{"out.json-seq", short, readLines},
		{"out.json-sse", short, readLines},
		{"out.short", forPeople, readLines},
		{"out.short-full", forPeople, readLines},
		{"out.short-iso", forPeople, readLines},
		{"out.short-iso-precise", forPeople, readLines},
		{"out.short-unix", forPeople, readLines},
		{"out.short.all", forPeopleAll, readLines},
		{"out.verbose", forPeopleVerbose, readVerbose},
	} {
		t.Run(c.file, func(t *testing.T) {
			var want []string
			for _, e := range all {
				if m, ok := c.want(e); ok {
					want = append(want, m)
				}
			}
			if d := cmp.Diff(want, c.read(t, journalFile(t, c.file))); d != "" {
				t.Error(d)
			}
		})
	}
}

// forPeopleVerbose is what -o verbose leaves of an entry: every value of a
// repeated MESSAGE, tabs kept; a coloured one is no text to it.
func forPeopleVerbose(e entry) (string, bool) {
	var texts []string
	for _, m := range e.messages {
		if blob(m) || bytes.Contains(m, []byte("\x1b")) {
			texts = append(texts, fmt.Sprintf("[%dB blob data]", len(m)))
		} else {
			texts = append(texts, clean(m))
		}
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// readExport gives the messages of export data.
func readExport(_ testing.TB, b []byte) (out []string) {
	var u Unwrapper
	take := func(l Line) {
		if !l.Skip {
			out = append(out, string(Clean(nil, l.Payload)))
		}
	}
	u.Export(b, func(l Line, _ int) { take(l) })
	u.ExportEnd(take)
	return out
}

// readLines gives the messages of a form of lines. A line without an envelope's
// time goes on with the message before it.
func readLines(t testing.TB, b []byte) (out []string) {
	var u Unwrapper
	for line := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		l := u.Unwrap(line, true)
		text := string(Clean(nil, l.Payload))
		switch {
		case l.Skip, len(line) == 0:
		case l.Stamp.form != stampNone:
			out = append(out, text)
		case len(out) == 0:
			t.Fatalf("%q continues nothing", line)
		default:
			out[len(out)-1] += "\n" + text
		}
	}
	return out
}

// readVerbose gives the messages of -o verbose.
func readVerbose(_ testing.TB, b []byte) (out []string) {
	var u Unwrapper
	fresh := false
	for line := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		l := u.Unwrap(line, true)
		text := string(Clean(nil, l.Payload))
		switch {
		case !bytes.HasPrefix(line, []byte(" ")):
			fresh = true // the header of an entry
		case l.Skip:
		case fresh:
			out, fresh = append(out, text), false
		default:
			out[len(out)-1] += "\n" + text
		}
	}
	return out
}

// TestJournalCat: -o cat has neither ends of entries nor times; its lines are
// those of the messages, of a repeated MESSAGE the first.
func TestJournalCat(t *testing.T) {
	var want, got []string
	for _, e := range entries(t, journalFile(t, "out.export")) {
		if len(e.messages) > 0 {
			for line := range strings.SplitSeq(string(e.messages[0]), "\n") {
				want = append(want, clean([]byte(line)))
			}
		}
	}
	var u Unwrapper
	for line := range bytes.SplitSeq(bytes.TrimSuffix(journalFile(t, "out.cat"), []byte("\n")), []byte("\n")) {
		got = append(got, string(Clean(nil, u.Unwrap(line, true).Payload)))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestJournalCursors: export and JSON give the same cursor for each entry.
func TestJournalCursors(t *testing.T) {
	var u, v Unwrapper
	var fromExport, fromJSON []string
	u.Export(journalFile(t, "out.export"), func(l Line, _ int) { fromExport = append(fromExport, string(l.Cursor)) })
	for line := range bytes.SplitSeq(bytes.TrimSuffix(journalFile(t, "out.json"), []byte("\n")), []byte("\n")) {
		fromJSON = append(fromJSON, string(v.Unwrap(line, true).Cursor))
	}
	if d := cmp.Diff(fromExport, fromJSON); d != "" || len(fromJSON) == 0 || fromJSON[0] == "" {
		t.Errorf("%d cursors: %s", len(fromJSON), d)
	}
}

func exported(name string, value string) string {
	return name + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

// TestExport: what is faulty costs the entry it stands in and is counted; the
// entries behind it are read.
func TestExport(t *testing.T) {
	const head = "__CURSOR=c\n__REALTIME_TIMESTAMP=1796030047482913\n"
	good := head + "MESSAGE=good\n\n"
	lie := func(n uint64) string {
		return "MESSAGE\n" + string(binary.LittleEndian.AppendUint64(nil, n)) + "x\n\n"
	}
	for _, c := range []struct {
		name, in  string
		want      []string
		malformed int64
	}{
		{"text", good, []string{"good"}, 0},
		{"binary", head + exported("MESSAGE", "two\nlines") + "\n", []string{"two\nlines"}, 0},
		{"empty binary", head + exported("MESSAGE", "") + "\n" + good, []string{"", "good"}, 0},
		{"repeated", head + "MESSAGE=a\nMESSAGE=b\n\n", []string{"a\nb"}, 0},
		{"no message", head + "\n" + good, []string{"good"}, 0},
		{"end without the empty line", head + "MESSAGE=last\n", []string{"last"}, 0},
		{"several empty lines", good + "\n\n" + good, []string{"good", "good"}, 0},
		{"ours", head + "SYSLOG_IDENTIFIER=rwannotate\nMESSAGE=x\n\n" + good, []string{"good"}, 0},
		{"length of 2^63", head + lie(1<<63) + good, []string{"good"}, 1},
		{"length of 65 MiB", head + lie(65<<20) + good, []string{"good"}, 1},
		{"length of all ones, twice", head + lie(^uint64(0)) + head + lie(^uint64(0)) + good, []string{"good"}, 2},
		{"name of 300 bytes", head + strings.Repeat("N", 300) + "=x\nMESSAGE=x\n\n" + good, []string{"good"}, 1},
		{"value with an equals sign", head + "MESSAGE=a=b\n\n", []string{"a=b"}, 0},
		{"truncated inside a binary field", good + head + "MESSAGE\n" + string(binary.LittleEndian.AppendUint64(nil, 100)) + "only this", []string{"good", "only this"}, 0},
		{"truncated inside a length", good + head + "MESSAGE\n\x05\x00", []string{"good"}, 0},
	} {
		var u Unwrapper
		var got []string
		take := func(l Line) {
			if !l.Skip {
				got = append(got, string(l.Payload))
			}
		}
		u.Export([]byte(c.in), func(l Line, _ int) { take(l) })
		u.ExportEnd(take)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if u.Malformed != c.malformed {
			t.Errorf("%s: %d faults counted, not %d", c.name, u.Malformed, c.malformed)
		}
	}
}

// TestExportSource: who wrote an entry does not spill into the next.
func TestExportSource(t *testing.T) {
	var u Unwrapper
	var got []Source
	u.Export([]byte("__CURSOR=a\n_HOSTNAME=h1\n_SYSTEMD_UNIT=rw.service\nMESSAGE=x\n\n__CURSOR=b\nSYSLOG_IDENTIFIER=kernel\nMESSAGE=y\n\n"),
		func(l Line, _ int) { got = append(got, *l.Source) })
	if d := cmp.Diff([]Source{{Host: "h1", Unit: "rw.service"}, {Unit: "kernel"}}, got); d != "" {
		t.Error(d)
	}
}

// TestExportMemory: a message of 60 MiB, binary or text, is read past in pieces
// and leaves no more than keptMessage behind.
func TestExportMemory(t *testing.T) {
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for name, start := range map[string][]byte{
		"binary": append([]byte("__CURSOR=c\nMESSAGE\n"), binary.LittleEndian.AppendUint64(nil, 60<<20)...),
		"text":   []byte("__CURSOR=c\nMESSAGE="),
		"other":  []byte("__CURSOR=c\nCOREDUMP="),
		"name":   []byte("__CURSOR=c\n"),
	} {
		var u Unwrapper
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		n := u.Export(start, func(Line, int) {})
		carry := append([]byte(nil), start[n:]...)
		largest := 0
		for range 60 {
			b := append(carry, piece...)
			n := u.Export(b, func(Line, int) { t.Errorf("%s: an entry before its end", name) })
			carry = append(carry[:0:0], b[n:]...)
			if largest = max(largest, len(carry)); largest > 4<<20 {
				break
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 || largest > 2<<20 {
			t.Errorf("%s: %d bytes are kept, %d are asked for again", name, grown, largest)
		}
	}
}

// split feeds b to u in pieces of random sizes, as reads do, and returns the
// entries.
func split(u *Unwrapper, b []byte, r *rand.Rand) (out []string) {
	take := func(l Line) {
		out = append(out, fmt.Sprintf("%v %v %s %s %s", l.Skip, l.Partial, l.Cursor, l.Stamp.raw, l.Payload))
	}
	var carry []byte
	for len(b) > 0 {
		n := min(len(b), 1+r.IntN(1<<r.IntN(12)))
		carry = append(carry, b[:n]...)
		b = b[n:]
		carry = carry[u.Export(carry, func(l Line, _ int) { take(l) }):]
	}
	u.ExportEnd(take)
	return out
}

// FuzzExport: however the bytes are split into reads, the entries are the same,
// and what is kept is bounded.
func FuzzExport(f *testing.F) {
	f.Add(journalFile(f, "out.export")[:4096], uint64(1))
	f.Add([]byte("__CURSOR=a\nMESSAGE=x\n\n"+exported("MESSAGE", "a\nb")+"\n"), uint64(2))
	f.Add([]byte("__CURSOR=a\nMESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xff\n\n__CURSOR=b\nMESSAGE=y\n\n"), uint64(3))
	f.Add([]byte("\n\nMESSAGE\n\x00\x00\x00\x00\x00\x00\x00\x00x"), uint64(4))
	f.Add(append([]byte("__CURSOR=a\n"), bytes.Repeat([]byte("n"), longText+10)...), uint64(6))
	f.Add(append([]byte("__CURSOR=a\nMESSAGE="), bytes.Repeat([]byte("x"), longText+10)...), uint64(5))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		var whole, pieces Unwrapper
		var want []string
		take := func(l Line) {
			want = append(want, fmt.Sprintf("%v %v %s %s %s", l.Skip, l.Partial, l.Cursor, l.Stamp.raw, l.Payload))
		}
		whole.Export(b, func(l Line, _ int) { take(l) })
		whole.ExportEnd(take)
		got := split(&pieces, b, rand.New(rand.NewPCG(seed, 1)))
		if !slices.Equal(want, got) {
			t.Errorf("%q: %s", b, cmp.Diff(want, got))
		}
		if n := cap(pieces.export.message); n > 2*keptMessage {
			t.Errorf("%d bytes are kept", n)
		}
		if whole.Malformed != pieces.Malformed {
			t.Errorf("%d faults in one piece, %d in many", whole.Malformed, pieces.Malformed)
		}
	})
}
