package harvest

import (
	"cmp"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// What has become of a record's text in a source tree.
const (
	Same     = "same"     // in its file, maybe on another line
	Moved    = "moved"    // in another file
	Alias    = "alias"    // the source has one of the record's other wordings
	Reworded = "reworded" // gone, and the source has a message that is much like it
	Gone     = "gone"     // gone, and nothing is like it
	Foreign  = "foreign"  // not in the source, and the record names no file of its own: the text of a library, a server or Rust itself
)

// A Drift tells what a source tree has of a record's text.
type Drift struct {
	Record   *catalog.Record
	Status   string
	Found    Message // where the text is, or the likely new wording; zero for Gone and Foreign
	Likeness float64 // for Reworded: how much the two texts share, up to 1
}

// Limits of likeness for a message to pass as the new wording, in the record's
// own file and elsewhere. Wording with fewer words than minWords is alike too
// easily.
const (
	likeInFile    = 0.45
	likeElsewhere = 0.7
	minWords      = 3
)

// Drifts compares a catalogue with the messages of a source tree. The order is
// that of records.
func Drifts(fsys fs.FS, messages []Message, records []catalog.Record) []Drift {
	d := newDrifter(fsys, messages, records)
	out := make([]Drift, len(records))
	for i := range records {
		out[i] = d.record(&records[i])
	}
	return out
}

type drifter struct {
	fsys     fs.FS
	messages []Message
	wordings map[string][]int // to the messages
	files    map[string][]int
	claimed  map[string]bool // wordings that belong to a record
	words    [][]string      // of each message
	spread   map[string]int  // in how many messages a word occurs
	strings  map[string]string
}

func newDrifter(fsys fs.FS, messages []Message, records []catalog.Record) *drifter {
	d := &drifter{fsys: fsys, messages: messages, wordings: map[string][]int{}, files: map[string][]int{}, claimed: map[string]bool{},
		words: make([][]string, len(messages)), spread: map[string]int{}, strings: map[string]string{}}
	for i, m := range messages {
		w := Wording(m.Text)
		d.wordings[w] = append(d.wordings[w], i)
		d.files[m.File] = append(d.files[m.File], i)
		d.words[i] = stems(w)
		for _, s := range d.words[i] {
			d.spread[s]++
		}
	}
	for i := range records {
		for _, t := range templates(&records[i]) {
			d.claimed[Wording(t)] = true
		}
	}
	return d
}

// panicHook is the file that records of Rust's own panics name: it prints their
// texts, which are the standard library's.
const panicHook = "panic_hook.rs"

func templates(r *catalog.Record) []string { return append([]string{r.ErrorMessage}, r.Aliases...) }

func (d *drifter) record(r *catalog.Record) Drift {
	out := Drift{Record: r, Status: Gone}
	for i, t := range templates(r) {
		m, ok := d.find(r, t)
		if !ok {
			continue
		}
		out.Found = m
		switch {
		case i > 0:
			out.Status = Alias
		case r.FilePath == "" || m.File == r.FilePath:
			out.Status = Same
		default:
			out.Status = Moved
		}
		return out
	}
	if r.FilePath == "" || path.Base(r.FilePath) == panicHook {
		out.Status = Foreign
		return out
	}
	if m, like := d.likely(r); like > 0 {
		out.Status, out.Found, out.Likeness = Reworded, m, like
	}
	return out
}

// find looks for a wording: among the messages, in the record's file first,
// then in the file's strings, for texts that are put together from several.
func (d *drifter) find(r *catalog.Record, template string) (Message, bool) {
	template = withoutPanicPrefix(template)
	places := d.wordings[Wording(template)]
	for _, i := range places {
		if d.messages[i].File == r.FilePath {
			return d.messages[i], true
		}
	}
	if r.FilePath != "" && d.written(r.FilePath, template) {
		return Message{Text: template, File: r.FilePath}, true
	}
	if len(places) > 0 {
		return d.messages[places[0]], true
	}
	return Message{}, false
}

// withoutPanicPrefix drops what unimplemented!, todo! and unreachable! print
// before the text in the source.
func withoutPanicPrefix(template string) string {
	for _, p := range [...]string{"not implemented: ", "not yet implemented: ", "internal error: entered unreachable code: "} {
		if rest, ok := strings.CutPrefix(template, p); ok && rest != "{}" {
			return rest
		}
	}
	return template
}

// written reports whether every literal stretch of a template stands in the
// strings of a file, in order.
func (d *drifter) written(file, template string) bool {
	all, ok := d.strings[file]
	if !ok {
		data, err := fs.ReadFile(d.fsys, file)
		if err == nil {
			var b strings.Builder
			for _, t := range lex(string(data), path.Ext(file) == ".java") {
				if t.kind == text {
					b.WriteString(t.value)
					b.WriteByte(0)
				}
			}
			all = b.String()
		}
		d.strings[file] = all
	}
	found := false
	for _, p := range catalog.ParseTemplate(template) {
		literal := strings.TrimSpace(p.Literal)
		if len(literal) < 4 {
			continue
		}
		i := strings.Index(all, literal)
		if i < 0 {
			return false
		}
		all, found = all[i+len(literal):], true
	}
	return found
}

// likely finds the message that a record's text has probably become.
func (d *drifter) likely(r *catalog.Record) (best Message, like float64) {
	for _, t := range templates(r) {
		own := stems(Wording(t))
		if len(own) < minWords {
			continue
		}
		for i := range d.messages {
			m := &d.messages[i]
			limit := likeElsewhere
			if m.File == r.FilePath {
				limit = likeInFile
			}
			l := d.like(own, d.words[i])
			if l < limit || d.claimed[Wording(m.Text)] {
				continue
			}
			if m.File == r.FilePath {
				l += 1 - likeInFile // before any elsewhere
			}
			if l > like || l == like && near(m, r) < near(&best, r) {
				best, like = *m, l
			}
		}
	}
	if like > 0 && best.File == r.FilePath {
		like -= 1 - likeInFile
	}
	return best, like
}

func near(m *Message, r *catalog.Record) int {
	n := m.Line - r.LineNumber
	return max(n, -n)
}

// like weighs the words that two texts share against all their words. Rare
// words count more.
func (d *drifter) like(a, b []string) float64 {
	shared, all := 0.0, 0.0
	for _, w := range a {
		weight := d.weight(w)
		all += weight
		if slices.Contains(b, w) {
			shared += weight
		}
	}
	for _, w := range b {
		if !slices.Contains(a, w) {
			all += d.weight(w)
		}
	}
	if all == 0 {
		return 0
	}
	return shared / all
}

func (d *drifter) weight(w string) float64 { return 1 / (1 + math.Log(1+float64(d.spread[w]))) }

// stemLength makes fail, failed and failure one word.
const stemLength = 4

// stems lists the distinct words of a wording, cut to their beginnings.
func stems(wording string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(wording), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
		if len(w) > stemLength {
			w = w[:stemLength]
		}
		if len(w) > 1 && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// SortDrifts puts what needs work first: gone, reworded, moved, …, then by
// component and slug.
func SortDrifts(drifts []Drift) {
	order := []string{Gone, Reworded, Moved, Alias, Same, Foreign}
	slices.SortStableFunc(drifts, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status)),
			cmp.Compare(a.Record.Component, b.Record.Component), cmp.Compare(a.Record.Slug, b.Record.Slug))
	})
}
