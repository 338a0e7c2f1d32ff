package catalog

import (
	"cmp"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what lint lets pass without a word.
const (
	maxProse    = 1500 // characters of one text: it is read at night
	maxSolution = 500  // characters of one solution
	minWords    = 2    // of a solution
)

// Lint says what a set of records lacks beyond what Load demands: whatever
// makes a record less useful or less trustworthy than it should be. It looks at records
// and their relations only; what needs a matcher (literals, examples that hit) is
// linted there. Problems have file and field; Locate adds the line.
func Lint(records []Record) []Problem {
	l := linter{slugs: map[string]string{}, ids: map[string]string{}}
	for i := range records {
		l.index(&records[i])
	}
	for i := range records {
		l.record = &records[i]
		l.identity()
		l.message()
		l.prose()
		l.source()
		l.filters()
		l.examples()
	}
	SortProblems(l.problems)
	return l.problems
}

type linter struct {
	ids, slugs map[string]string // to the file they came first in
	record     *Record           // being looked at
	problems   []Problem
}

func (l *linter) index(r *Record) {
	for _, e := range []struct {
		seen       map[string]string
		key, value string
	}{{l.ids, "id", r.ID}, {l.slugs, "slug", r.Slug}} {
		l.record = r
		if first, ok := e.seen[e.value]; ok {
			if e.key == "slug" && (isPublished(first) || isPublished(r.File)) {
				continue // the knowledge base cuts them short; Load has said so
			}
			l.add(e.key, "%q is the %s of %s already", e.value, e.key, first)
			continue
		}
		e.seen[e.value] = r.File
	}
}

func (l *linter) add(field, format string, args ...any) {
	l.problems = append(l.problems, Problem{File: l.record.File, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (l *linter) warn(field, format string, args ...any) {
	l.add(field, format, args...)
	l.problems[len(l.problems)-1].Warning = true
}

func (l *linter) identity() {
	r := l.record
	for i, tag := range r.Tags {
		if !validSlug(tag) {
			l.add(at("tags", i), "%q is not a tag: a-z, 0-9 and dashes", tag)
		}
	}
	l.distinct("tags", r.Tags)
	if r.BackgroundTag != "" && !validSlug(r.BackgroundTag) {
		l.add("backgroundTag", "%q is not a tag: a-z, 0-9 and dashes", r.BackgroundTag)
	}
}

// message checks the wordings against each other.
func (l *linter) message() {
	r := l.record
	re, err := syntax.Parse(r.MessagePattern, syntax.Perl)
	if err != nil {
		l.add("messagePattern", "does not compile: %v", err)
	} else if groups, holes := re.MaxCap(), Holes(r.ErrorMessage); groups != holes {
		l.add("messagePattern", "has %s, but errorMessage has %s", counted(groups, "group"), counted(holes, "placeholder"))
	}
	wordings := []string{EscapedPattern(r.ErrorMessage)}
	for i, alias := range r.Aliases {
		pattern := EscapedPattern(alias)
		switch {
		case strings.TrimSpace(alias) == "":
			l.add(at("aliases", i), "is empty")
		case slices.Contains(wordings, pattern):
			l.add(at("aliases", i), "matches what errorMessage or another alias matches already")
		}
		wordings = append(wordings, pattern)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (l *linter) prose() {
	r := l.record
	if r.Documentation == "" {
		l.add("documentation", "is missing: say what the error means and whether RisingWave recovers by itself")
	}
	for _, f := range r.fields() {
		if text, ok := f.ptr.(*string); ok && isProse(f.key) {
			l.text(f.key, *text, maxProse)
		}
	}
	if len(r.Solutions) == 0 {
		l.add("solutions", "are missing: say what to do")
	}
	for i, s := range r.Solutions {
		l.text(at("solutions", i), s, maxSolution)
		if !isSentence(s) {
			l.add(at("solutions", i), "is not a sentence: begin with a capital letter and say what to do in %d words or more", minWords)
		}
	}
	l.distinct("solutions", r.Solutions)
	for i, s := range r.PreventionTips {
		l.text(at("preventionTips", i), s, maxSolution)
		if !isSentence(s) {
			l.add(at("preventionTips", i), "is not a sentence: begin with a capital letter and use %d words or more", minWords)
		}
	}
}

func (l *linter) text(field, s string, limit int) {
	if n := utf8.RuneCountInString(s); n > limit {
		l.warn(field, "has %d characters; more than %d are not read at night", n, limit)
	}
	if strings.Contains(s, "\t") || strings.ContainsFunc(s, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }) {
		l.add(field, "has tabs or control characters")
	}
}

// isSentence accepts what begins like one: with a capital, or with code or a
// number, which has none.
func isSentence(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	return len(strings.Fields(s)) >= minWords && !unicode.IsLower(first) &&
		(unicode.IsLetter(first) || unicode.IsDigit(first) || strings.ContainsRune("`\"'“(", first))
}

// source checks where the error comes from and what is said about it elsewhere.
func (l *linter) source() {
	r := l.record
	if strings.HasPrefix(r.FilePath, "/") || strings.Contains(r.FilePath, "..") || strings.Contains(r.FilePath, `\`) {
		l.add("filePath", "%q is not a path within the repository", r.FilePath)
	}
	if r.LineNumber > 0 && r.FilePath == "" {
		l.add("lineNumber", "is there without a filePath")
	}
	if r.GithubURL != "" && !l.blobURL(r.GithubURL) {
		l.add("githubUrl", "does not link the source: https://github.com/%s/blob/<commit>/%s#L%d", r.Repo, cmp.Or(r.FilePath, "<file>"), r.LineNumber)
	}
	if sha := r.AnalyzedSha; sha != "" && (len(sha) != 40 || strings.Trim(sha, "0123456789abcdef") != "") {
		l.add("analyzedSha", "%q is not a full commit id of 40 hex digits", sha)
	}
	if r.AnalyzedSha != "" && r.GithubURL != "" && r.FilePath != "" && !strings.Contains(r.GithubURL, r.AnalyzedSha) {
		l.add("githubUrl", "links another commit than analyzedSha")
	}
	for i, ref := range r.References {
		_, slug := l.slugs[ref]
		_, id := l.ids[ref]
		if !slug && !id && !isURL(ref) {
			l.add(at("references", i), "%q is neither an https URL nor the slug or id of a record", ref)
		}
	}
	l.distinct("references", r.References)
}

func isURL(s string) bool {
	host, ok := strings.CutPrefix(s, "https://")
	return ok && len(host) > 3 && strings.Contains(host, ".") && !strings.ContainsAny(s, " \t\n<>\"")
}

// blobURL checks a link to the source. A record of an older release's text has no
// filePath, but may link the release.
func (l *linter) blobURL(url string) bool {
	rest, ok := strings.CutPrefix(url, "https://github.com/"+l.record.Repo+"/blob/")
	_, rest, found := strings.Cut(rest, "/")
	return ok && found && (l.record.FilePath == "" || rest == l.record.FilePath || strings.HasPrefix(rest, l.record.FilePath+"#L"))
}

func (l *linter) filters() {
	r := l.record
	for i, target := range r.Targets {
		if target == "" || strings.ContainsFunc(target, func(c rune) bool {
			return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_:.$-", c)
		}) {
			l.add(at("targets", i), "%q is not the beginning of a log target such as risingwave_meta::barrier", target)
		}
	}
	l.distinct("targets", r.Targets)
	l.distinct("versions", r.Versions)
}

func (l *linter) examples() {
	r := l.record
	if r.Review == ReviewReviewed && len(r.Examples.Match) == 0 {
		l.add("examples.match", "is missing: a reviewed record proves itself with log records that it matches")
	}
	for i, e := range r.Examples.Match {
		if !l.argsFit(len(e.Args)) {
			l.add(at("examples.match", i)+".args", "has %s, but the message has %s", counted(len(e.Args), "value"), counted(Holes(r.ErrorMessage), "placeholder"))
		}
		for j, arg := range e.Args {
			if !strings.Contains(unescaped(e.Text), unescaped(arg)) {
				l.add(fmt.Sprintf("examples.match[%d].args[%d]", i, j), "%q does not occur in the example's text", arg)
			}
		}
	}
	var texts []string
	for _, e := range r.Examples.Match {
		texts = append(texts, e.Text)
	}
	l.distinct("examples.match", texts)
	for i, text := range r.Examples.Reject {
		if slices.Contains(texts, text) {
			l.add(at("examples.reject", i), "is among the examples to match too")
		}
	}
}

// argsFit reports whether some wording has n placeholders.
func (l *linter) argsFit(n int) bool {
	for _, template := range append([]string{l.record.ErrorMessage}, l.record.Aliases...) {
		if Holes(template) == n {
			return true
		}
	}
	return false
}

// unescaped drops what envelopes add to or take from a value: backslashes,
// white space, prefixes of lines. It is enough to find a value that was never there.
func unescaped(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\\' || unicode.IsSpace(c) {
			return -1
		}
		return c
	}, strings.NewReplacer(`\n`, "", `\t`, "", `\r`, "").Replace(s))
}

func (l *linter) distinct(field string, list []string) {
	for i, s := range list {
		if slices.Index(list, s) < i {
			l.add(at(field, i), "is there twice")
		}
	}
}

func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
