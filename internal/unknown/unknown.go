// Package unknown groups the log records that no record of the catalogue
// explains, so that the next record to write is easy to see. A storm of a
// million lines becomes the few messages it consists of; memory is bounded
// however many there are.
//
// Records whose texts differ only in what varies from one occurrence to the
// next (numbers, ids, quoted texts, …) are one group. What RisingWave writes
// as different messages stays apart: see folder.
package unknown

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/harvest"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
)

// Options of a Grouper. Zero values mean the defaults in brackets.
type Options struct {
	MaxGroups int                 // [10,000]
	Known     *Known              // what RisingWave's source has [none]
	Mask      func(string) string // hides secrets in samples and templates [none]
}

// A Group is what records with one template have in common.
type Group struct {
	Template   string
	Count      int64
	Levels     []Count // most frequent first once returned by Groups
	Targets    []Count // at most maxNames
	Components []Count
	First      time.Time
	Last       time.Time
	Sample     string // the first record, without stack frames, cut to maxSample bytes
	Site       *Site  // nil if the text is not in RisingWave's source
}

// A Count is how often a name occurred.
type Count struct {
	Name string
	N    int64
}

const (
	maxSample = 1 << 10
	maxNames  = 8 // targets and components of one group
)

// A Grouper sorts records into groups. Not safe for concurrent use.
type Grouper struct {
	opt     Options
	fold    folder
	groups  map[string]*Group // by template
	aliases map[string]*Group // what a text folded to → the group it was found to belong to
	key     []byte
	rest    Group
}

// New makes a Grouper.
func New(opt Options) *Grouper {
	if opt.MaxGroups == 0 {
		opt.MaxGroups = 10_000
	}
	if opt.Mask == nil {
		opt.Mask = func(s string) string { return s }
	}
	g := &Grouper{opt: opt, groups: map[string]*Group{}, aliases: map[string]*Group{}}
	if opt.Known != nil {
		g.fold.keep = opt.Known.keep
	}
	return g
}

// Add counts a record.
func (g *Grouper) Add(rec *logline.Record, at time.Time, component string) {
	g.key = g.fold.record(g.key[:0], rec)
	group := g.aliases[string(g.key)]
	if group == nil {
		group = g.place(rec)
	}
	group.add(rec, at, component)
}

// place finds the group of a record whose text folds to what was not seen
// before: a new one, or one that differs in the values of a known message only.
func (g *Grouper) place(rec *logline.Record) *Group {
	key := string(g.key)
	if len(g.groups) >= g.opt.MaxGroups {
		return &g.rest
	}
	template := key
	var site *Site
	if g.opt.Known != nil {
		var res match.Result
		if site, res = g.opt.Known.find(rec); res.Record != nil {
			template = string(g.fold.record(nil, withoutValues(rec, &res)))
		}
	}
	group := g.groups[template]
	if group == nil {
		group = &Group{Template: g.opt.Mask(template), Site: site, Sample: g.sample(rec)}
		g.groups[template] = group
	}
	if len(g.aliases) >= 2*g.opt.MaxGroups {
		clear(g.aliases)
	}
	g.aliases[key] = group
	return group
}

// withoutValues is a record in which the arguments of a known message that
// are single words are replaced by a number, which folds. Longer ones may be
// another error, which tells records apart.
func withoutValues(rec *logline.Record, res *match.Result) *logline.Record {
	args := slices.Clone(res.Args)
	for i, a := range args {
		if !strings.ContainsAny(a, " \n") {
			args[i] = "0"
		}
	}
	text := catalog.Instantiate(res.Template, args)
	out := *rec
	out.Segments = slices.Clone(rec.Segments)
	for i := range out.Segments {
		if s := &out.Segments[i]; strings.Contains(s.Text, res.Text) {
			s.Text = strings.Replace(s.Text, res.Text, text, 1)
			break
		}
	}
	return &out
}

// sample is the text shown of a record: without frames, masked, then cut, so
// that no half of a secret is left.
func (g *Grouper) sample(rec *logline.Record) string {
	text := rec.Text[:min(len(rec.Text), 16*maxSample)]
	for _, frames := range [...]string{"\nBacktrace:", "\nStack backtrace:", "\nstack backtrace:"} {
		text, _, _ = strings.Cut(text, frames)
	}
	return cut(g.opt.Mask(strings.TrimSpace(text)), maxSample)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return strings.Clone(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + "…"
}

func (g *Group) add(rec *logline.Record, at time.Time, component string) {
	if g.Count == 0 || at.Before(g.First) {
		g.First = at
	}
	if at.After(g.Last) {
		g.Last = at
	}
	g.Count++
	g.Levels = count(g.Levels, rec.Level)
	g.Targets = count(g.Targets, rec.Target)
	g.Components = count(g.Components, component)
}

// count adds one to a name; names beyond maxNames are not kept.
func count(list []Count, name string) []Count {
	if name == "" {
		return list
	}
	for i := range list {
		if list[i].Name == name {
			list[i].N++
			return list
		}
	}
	if len(list) < maxNames {
		list = append(list, Count{strings.Clone(name), 1})
	}
	return list
}

// Groups returns the groups, the most frequent first. They are the Grouper's
// own.
func (g *Grouper) Groups() []*Group {
	out := make([]*Group, 0, len(g.groups))
	for _, group := range g.groups {
		group.sort()
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Template, b.Template))
	})
	return out
}

func (g *Group) sort() {
	for _, list := range [][]Count{g.Levels, g.Targets, g.Components} {
		slices.SortStableFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	}
}

// Rest counts the records that found no place because there were MaxGroups
// groups already. It has no template and no sample.
func (g *Grouper) Rest() *Group {
	g.rest.sort()
	return &g.rest
}

// Level is the highest level of the group's records, as harvest names it.
func (g *Group) Level() string {
	best := ""
	for _, l := range g.Levels {
		if logline.LevelRank(l.Name) > logline.LevelRank(best) {
			best = l.Name
		}
	}
	switch rank := logline.LevelRank(best); {
	case rank > logline.LevelRank("ERROR"):
		return "panic"
	case rank == logline.LevelRank("ERROR"):
		return "error"
	}
	return "warn"
}

// Drafts makes a catalogue record of each group: of the message that
// RisingWave's source has, or of what the records have in common. Each has its
// sample as an example, if it matches that.
func Drafts(groups []*Group, commit string) []catalog.Record {
	var drafts []catalog.Record
	samples := map[string]string{}
	var messages []harvest.Message
	for _, g := range groups {
		m := harvest.Message{Level: g.Level()}
		if g.Site != nil {
			m.Text, m.File, m.Line = g.Site.Template, g.Site.File, g.Site.Line
		}
		if m.Text == "" {
			m.Text = g.wording()
		}
		if _, ok := samples[harvest.Wording(m.Text)]; !ok {
			samples[harvest.Wording(m.Text)] = g.Sample
			messages = append(messages, m)
		}
	}
	for _, r := range harvest.Drafts(messages, commit) {
		withExample(&r, samples[harvest.Wording(r.ErrorMessage)])
		drafts = append(drafts, r)
	}
	return drafts
}

// wording guesses a message's template from the group's: the error's text if
// there is one, else the statement's.
func (g *Group) wording() string {
	text := g.Template
	for _, field := range [...]string{" error=", " err=", " e="} {
		if _, after, ok := strings.Cut(text, field); ok {
			text = after
			break
		}
	}
	m, _ := match.New([]catalog.Record{{ID: "draft", ErrorMessage: text}})
	rec := logline.Parse([]byte(g.Sample))
	if _, ok := m.Match(&rec, 0); ok {
		return text
	}
	longest := ""
	for _, p := range catalog.ParseTemplate(text) {
		if literal := occurring(strings.Trim(p.Literal, " '\"`:;,.()"), g.Sample); len(literal) > len(longest) {
			longest = literal
		}
	}
	return longest
}

// occurring is the part of a folded text, from its first word on, that stands
// in the sample as it is: folding joins lines and leaves fields out.
func occurring(text, sample string) string {
	for !strings.Contains(sample, text) {
		text = text[:max(0, strings.LastIndexByte(text, ' '))]
	}
	return text
}

func withExample(r *catalog.Record, sample string) {
	m, _ := match.New([]catalog.Record{*r})
	rec := logline.Parse([]byte(sample))
	if res, ok := m.Match(&rec, 0); ok {
		r.Examples.Match = []catalog.Example{{Text: sample, Args: res.Args}}
	}
}
