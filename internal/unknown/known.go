package unknown

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/harvest"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
)

// table lists the messages of RisingWave's source: a line "# " and the commit,
// then level, file, line and template. To renew it:
//
//	(echo "# $(git -C SRC rev-parse HEAD)"; rwannotate patterns harvest SRC --format tsv) | gzip -9n > messages.tsv.gz
//
//go:embed messages.tsv.gz
var table []byte

// Known are the messages that RisingWave's source has, to tell where a text
// comes from.
type Known struct {
	Commit string

	matcher *match.Matcher
	sites   map[string][]harvest.Message // of each wording, by the record's id
	keep    map[string]bool
}

// rustTexts are parts of panics of Rust's standard library, which are in no
// source of RisingWave's.
var rustTexts = [...]string{"`Option::unwrap()`", "`Option::expect()`", "`Result::unwrap()`", "`Result::unwrap_err()`", "`left == right`", "`left != right`"}

// minLiteral is how much literal text a message needs to be told in a log: a
// shorter one is found in others.
const minLiteral = 12

// LoadKnown reads the embedded table. It takes about as long as loading a
// catalogue of its size.
func LoadKnown() (*Known, error) {
	messages, commit, err := readTable(table)
	if err != nil {
		return nil, fmt.Errorf("read the table of messages: %w", err)
	}
	return newKnown(messages, commit), nil
}

func readTable(data []byte) (messages []harvest.Message, commit string, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, "", err
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r")
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		row := lines.Text()
		if id, ok := strings.CutPrefix(row, "# "); ok {
			commit = id
			continue
		}
		col := strings.SplitN(row, "\t", 4)
		if len(col) < 4 {
			return nil, "", fmt.Errorf("line %q has %d columns", row, len(col))
		}
		n, err := strconv.Atoi(col[2])
		if err != nil {
			return nil, "", err
		}
		messages = append(messages, harvest.Message{Level: col[0], File: col[1], Line: n, Text: unescape.Replace(col[3])})
	}
	return messages, commit, lines.Err()
}

func newKnown(messages []harvest.Message, commit string) *Known {
	k := &Known{Commit: commit, sites: map[string][]harvest.Message{}, keep: map[string]bool{}}
	for _, text := range rustTexts {
		k.keepWords(text)
	}
	var records []catalog.Record
	for _, m := range messages {
		k.keepWords(m.Text)
		wording := harvest.Wording(m.Text)
		if !telling(m.Text) {
			continue
		}
		if _, seen := k.sites[wording]; !seen {
			records = append(records, catalog.Record{ID: wording, ErrorMessage: m.Text, FilePath: m.File})
		}
		k.sites[wording] = append(k.sites[wording], m)
	}
	k.matcher, _ = match.New(records)
	return k
}

// telling reports whether a template can be recognised: two words, enough
// letters.
func telling(template string) bool {
	letters, words := 0, 0
	for _, p := range catalog.ParseTemplate(template) {
		letters += len(strings.TrimSpace(p.Literal))
		words += len(strings.Fields(p.Literal))
	}
	return letters >= minLiteral && words >= 2
}

// keepWords notes what folding must leave alone: words with digits or slashes,
// and quoted texts, that are part of a message.
func (k *Known) keepWords(template string) {
	for _, p := range catalog.ParseTemplate(template) {
		s := p.Literal
		for i := 0; i < len(s); {
			end := -1
			switch s[i] {
			case '"', '`':
				end = quoteEnd(s, i)
			case '\'':
				if i == 0 || !isWord(s[i-1]) {
					end = singleEnd(s, i)
				}
			}
			if end > 0 {
				k.keep[s[i+1:end]] = true
			}
			if n := wordEnd(s[i:]); n > 0 {
				if strings.ContainsAny(s[i:i+n], "0123456789/") {
					k.keep[s[i:i+n]] = true
				}
				i += n
				continue
			}
			i++
		}
	}
}

// A Site is where in RisingWave's source a text is made.
type Site struct {
	Template string `json:"template,omitempty"` // "" if only the place is known
	File     string `json:"file"`
	Line     int    `json:"line"`
	Others   int    `json:"others"` // further places with the same text
	URL      string `json:"url,omitempty"`
}

// find looks for a known message in a record and tells where it is made; res
// has its arguments. A panic prints its own place.
func (k *Known) find(rec *logline.Record) (site *Site, res match.Result) {
	panicAt := panicSite(rec.File)
	if panicAt == nil && !strings.HasPrefix(rec.Target, "risingwave") && !strings.HasPrefix(rec.Target, "pgwire") {
		return nil, res
	}
	res, ok := k.matcher.Match(rec, 0)
	if !ok || res.Via == "span" {
		return k.linked(panicAt), res
	}
	sites := k.sites[res.Record.ID]
	if panicAt != nil {
		if slices.ContainsFunc(sites, func(s harvest.Message) bool { return s.File == panicAt.File }) {
			panicAt.Template = res.Template
		}
		return k.linked(panicAt), res
	}
	best := sites[0]
	for _, s := range sites[1:] {
		if closer(s, best, rec.Target) {
			best = s
		}
	}
	return k.linked(&Site{Template: res.Template, File: best.File, Line: best.Line, Others: len(sites) - 1}), res
}

// panicSite reads "src/meta/src/x.rs:12:3"; nil if it is no file of
// RisingWave's. The line is that of the release that runs.
func panicSite(at string) *Site {
	file, position, ok := strings.Cut(at, ":")
	if !ok || !strings.HasPrefix(file, "src/") {
		return nil
	}
	line, _, _ := strings.Cut(position, ":")
	n, _ := strconv.Atoi(line)
	return &Site{File: file, Line: n}
}

// linked adds the address of a place that is known from the table.
func (k *Known) linked(s *Site) *Site {
	if s != nil && s.Template != "" && k.Commit != "" {
		s.URL = fmt.Sprintf("https://github.com/%s/blob/%s/%s#L%d", harvest.Repository, k.Commit, s.File, s.Line)
	}
	return s
}

// closer reports whether a file is nearer to a log target than another.
func closer(a, b harvest.Message, target string) bool {
	return common(targetOf(a.File), target) > common(targetOf(b.File), target)
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// targetOf is the log target of statements in a Rust file: its module path.
func targetOf(file string) string {
	crate, module, _ := strings.Cut(strings.TrimPrefix(file, "src/"), "/src/")
	module = strings.TrimSuffix(strings.TrimSuffix(module, path.Ext(module)), "/mod")
	return strings.NewReplacer("/", "_").Replace("risingwave_"+crate) + "::" + strings.ReplaceAll(module, "/", "::")
}
