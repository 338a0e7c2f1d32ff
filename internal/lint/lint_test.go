package lint

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// good is a record without a fault.
func good(id, slug, message string) catalog.Record {
	return catalog.Record{ID: id, Slug: slug, Repo: "risingwavelabs/risingwave", ErrorMessage: message, MessagePattern: catalog.EscapedPattern(message), ErrorType: "exception",
		Severity: catalog.SeverityError, Role: catalog.RoleRoot, Documentation: "It means this.", Solutions: []string{"Do this first."}, File: slug + ".yaml"}
}

// has fails unless a problem of the file and field says what is asked for.
func has(t *testing.T, problems []catalog.Problem, file, field string, warning bool, text string) {
	t.Helper()
	var all strings.Builder
	for _, p := range problems {
		if p.File == file && p.Field == field && p.Warning == warning && strings.Contains(p.Message, text) {
			return
		}
		all.WriteString("\n  " + p.String())
	}
	t.Errorf("%s: %s: nothing says %q; all that is said:%s", file, field, text, all.String())
}

func TestLint(t *testing.T) {
	const id1, id2 = "0123456789abcdef", "fedcba9876543210"
	broken := func(change func(*catalog.Record)) []catalog.Record {
		r := good(id1, "a", "the first message of all: {}")
		change(&r)
		return []catalog.Record{r}
	}
	pair := func(one, other string) []catalog.Record {
		return []catalog.Record{good(id1, "a", one), good(id2, "b", other)}
	}
	for _, c := range []struct {
		name, field, text string
		warning           bool
		records           []catalog.Record
	}{
		{"does not compile", "messagePattern", "does not compile", false, broken(func(r *catalog.Record) { r.MessagePattern = "the (first" })},
		{"no literal", "messagePattern", "no literal text", false, broken(func(r *catalog.Record) { r.ErrorMessage, r.MessagePattern = "{}: {}", "(.+?): (.+?)" })},
		{"short literal", "messagePattern", "has 10 bytes", true, broken(func(r *catalog.Record) { r.ErrorMessage, r.MessagePattern = "no entry: {}", `no entry: (.+?)` })},
		{"lazy group at the end", "messagePattern", "ends in the lazy group", true, broken(func(*catalog.Record) {})},
		{"does not match its message", "messagePattern", "does not match its own errorMessage", true, broken(func(r *catalog.Record) {
			r.ErrorMessage, r.MessagePattern = "the call f(x) of all: {}", "the call f(x) of all: (.+?)"
		})},
		{"no solutions", "solutions", "are missing", false, broken(func(r *catalog.Record) { r.Solutions = nil })},
		{"shared literal", "messagePattern", "looks for the same text", true, pair("the very same text: {}", "the very same text: {} and {}")},
		{"contained literal", "messagePattern", "is part of what b.yaml looks for", true, pair("failed to build executor", "failed to build executors and run")},
		{"short alias", "aliases[0]", "has 9 bytes", true, broken(func(r *catalog.Record) { r.Aliases = []string{"no table {}"} })},
	} {
		t.Run(c.name, func(t *testing.T) { has(t, Lint(c.records), "a.yaml", c.field, c.warning, c.text) })
	}
	twice := pair("one message of it", "another message of it")
	twice[1].ID = id1
	has(t, Lint(twice), "b.yaml", "id", false, "a.yaml already")
	twice = pair("one message of it", "another message of it")
	twice[1].Slug = "a"
	has(t, Lint(twice), "b.yaml", "slug", false, "a.yaml already")
	for _, p := range Lint([]catalog.Record{good(id1, "a", "a message without any fault")}) {
		t.Errorf("a good record is faulted: %v", p)
	}
}

func TestExamples(t *testing.T) {
	records := []catalog.Record{good("0123456789abcdef", "a", "the first message of all: {}"), good("fedcba9876543210", "b", "quite another message")}
	r := &records[0]
	r.Examples.Match = []catalog.Example{
		{Text: "the first message of all: x", Args: []string{"x"}},
		{Text: "the first message of all: x", Args: []string{"y"}},
		{Text: "quite another message"},
		{Text: "nothing at all"},
	}
	r.Examples.Reject = []string{"all is well", "the first message of all: z"}
	problems := Test(records)
	has(t, problems, "a.yaml", "examples.match[1]", false, `gives the arguments ["x"], not ["y"]`)
	has(t, problems, "a.yaml", "examples.match[2]", false, "hits b.yaml first")
	has(t, problems, "a.yaml", "examples.match[3]", false, "is not recognised at all")
	has(t, problems, "a.yaml", "examples.reject[1]", false, "is recognised as this record")
	if len(problems) != 4 {
		t.Errorf("%d problems, not 4: %v", len(problems), problems)
	}
}

// TestWordings: a wording that another record swallows is named with the form in
// which it is lost.
func TestWordings(t *testing.T) {
	records := []catalog.Record{good("0123456789abcdef", "a", "the first message of all: {}")}
	records[0].Aliases = []string{"an older wording of it: {}"}
	if problems := Test(records); len(problems) > 0 {
		t.Error(problems)
	}
	records[0].Targets = []string{"risingwave_meta::"}
	records[0].MinLevel = "error"
	if problems := Test(records); len(problems) > 0 {
		t.Errorf("with targets and a level: %v", problems)
	}
	swallowed := append(records, good("fedcba9876543210", "b", "something failed actor_id=17 error=the first message of all"))
	has(t, Test(swallowed), "a.yaml", "errorMessage", false, "its own message is not found in the form")
}

// TestForms: each form differs, holds the message in some spelling, and is what
// it says.
func TestForms(t *testing.T) {
	seen := map[string]string{}
	for _, f := range forms() {
		log := f.write("ERROR", "a::b", `say "this" <now>`)
		if other := seen[log]; other != "" {
			t.Errorf("%s is the same as %s", f.name, other)
		}
		seen[log] = f.name
		if !strings.Contains(log, "this") || !strings.HasSuffix(log, "\n") {
			t.Errorf("%s: %q", f.name, log)
		}
		if strings.Contains(f.name, "JSON") || f.name == "docker" {
			for line := range strings.Lines(log) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: %q is not JSON", f.name, line)
				}
			}
		}
	}
}
