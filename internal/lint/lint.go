// Package lint judges a catalogue the way it will be used: through the real
// matcher and the real path from bytes to events. What can be said of a record
// alone is package catalog's to say.
package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
)

// shortLiteral is the length below which a literal hits too much other text.
const shortLiteral = 12

// Lint says in sentences what is wrong with the records, or deserves a second
// look: all at once, by file and field.
func Lint(records []catalog.Record) []catalog.Problem {
	problems := catalog.Lint(records)
	matcher, found := match.New(records)
	for _, p := range found {
		problems = append(problems, of(records, p.Record, "messagePattern", !p.Refused, p.Message))
	}
	literals := matcher.Literals()
	problems = append(problems, weak(records, literals)...)
	problems = append(problems, shared(records, literals)...)
	catalog.SortProblems(problems)
	return problems
}

// of is a problem of one record; -1 is the catalogue as a whole.
func of(records []catalog.Record, record int, field string, warning bool, message string) catalog.Problem {
	p := catalog.Problem{Field: field, Warning: warning, Message: message}
	if record >= 0 {
		p.File = records[record].File
	}
	return p
}

// weak names wordings that are hard to tell from other text, and those whose
// last placeholder takes one character as written.
func weak(records []catalog.Record, literals []match.Literal) (problems []catalog.Problem) {
	for _, l := range literals {
		if len(l.Text) < shortLiteral {
			problems = append(problems, of(records, l.Record, field(records, l), true, fmt.Sprintf(
				"the longest text that can be looked for, %q, has %d bytes; below %d a record hits much that it does not mean: give it minLevel or targets, or a longer wording", l.Text, len(l.Text), shortLiteral)))
		}
		if l.Trailing && strings.HasSuffix(records[l.Record].MessagePattern, "(.+?)") && field(records, l) == "messagePattern" {
			problems = append(problems, of(records, l.Record, "messagePattern", true,
				"ends in the lazy group (.+?), which as written takes one character; rwannotate takes the whole value, other readers of the pattern will not"))
		}
	}
	return problems
}

// field names the key that a wording comes from.
func field(records []catalog.Record, l match.Literal) string {
	if i := slices.Index(records[l.Record].Aliases, l.Template); i >= 0 {
		return fmt.Sprintf("aliases[%d]", i)
	}
	return "messagePattern"
}

// shared names texts that two records look for, and texts that are part of
// another record's: where one is found, so may be the other.
func shared(records []catalog.Record, literals []match.Literal) (problems []catalog.Problem) {
	byText := map[string][]match.Literal{}
	for _, l := range literals {
		byText[l.Text] = append(byText[l.Text], l)
	}
	for _, l := range literals {
		for _, other := range byText[l.Text] {
			if other.Record > l.Record {
				problems = append(problems, of(records, l.Record, field(records, l), true, fmt.Sprintf(
					"looks for the same text, %q, as %s; the longer wording wins, and equal ones are told apart by targets and filePath only", l.Text, records[other.Record].File)))
			}
		}
	}
	for _, c := range contained(literals, byText) {
		problems = append(problems, of(records, c.inner.Record, field(records, c.inner), true, fmt.Sprintf(
			"looks for %q, which is part of what %s looks for; where both match, the longer wording wins", c.inner.Text, records[c.outer.Record].File)))
	}
	return problems
}

type containment struct{ inner, outer match.Literal }

// contained finds the literals inside others, one outer for each inner, by
// looking up every part of each literal that is as long as some other.
func contained(literals []match.Literal, byText map[string][]match.Literal) (found []containment) {
	lengths := map[int]bool{}
	for text := range byText {
		lengths[len(text)] = true
	}
	seen := map[string]bool{}
	for _, outer := range literals {
		for n := range lengths {
			for i := 0; n < len(outer.Text) && i+n <= len(outer.Text); i++ {
				part := outer.Text[i : i+n]
				if inner := byText[part]; inner != nil && inner[0].Record != outer.Record && !seen[part] {
					seen[part] = true
					found = append(found, containment{inner[0], outer})
				}
			}
		}
	}
	return found
}
