package catalog

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestAppendYAML is what the canonical form looks like.
func TestAppendYAML(t *testing.T) {
	r := Record{
		ID: "1f0c6a2b9d3e4f50", Slug: "x", Role: RoleRoot, Severity: SeverityError, LineNumber: 12,
		ErrorMessage: "a: {:?}", MessagePattern: `a: \((.+?)`, Aliases: []string{"plain {}", "it's [x], y"},
		Documentation:    "Short.",
		TriggerScenarios: strings.Repeat("Some words that are folded. ", 5) + "\nA second paragraph: here.",
		Solutions:        []string{"Do it.", "Run `RECOVER;`: " + strings.Repeat("word ", 30) + "end."},
		Tags:             []string{"a", "b"},
		Examples: Examples{
			Match: []Example{
				{Text: "2026-01-01T00:00:00Z ERROR x: a: (1", Args: []string{"1", "true", "x y"}},
				{Text: "first\n  second \"quoted\"\n\nlast"},
			},
			Reject: []string{"ends in space \nx\x1b[0m", "tab\there"},
		},
		AnalyzedSha: "6469eb736d691e8e9b8a419a57edd6429ca77417", AnalyzedAt: "2026-09-11",
	}
	const want = `id: 1f0c6a2b9d3e4f50
slug: x
errorMessage: 'a: {:?}'
messagePattern: 'a: \((.+?)'
aliases: ['plain {}', 'it''s [x], y']
severity: error
lineNumber: 12
documentation: Short.
triggerScenarios: >-
  Some words that are folded. Some words that are folded. Some words that are folded. Some words that are
  folded. Some words that are folded.

  A second paragraph: here.
solutions:
  - Do it.
  - >-
    Run ` + "`RECOVER;`" + `: word word word word word word word word word word word word word word word word word word
    word word word word word word word word word word word word end.
tags: [a, b]
examples:
  match:
    - text: '2026-01-01T00:00:00Z ERROR x: a: (1'
      args: ['1', 'true', x y]
    - text: |-
        first
          second "quoted"

        last
  reject:
    - "ends in space \nx\x1b[0m"
    - "tab\there"
analyzedSha: 6469eb736d691e8e9b8a419a57edd6429ca77417
analyzedAt: '2026-09-11'
`
	r.TriggerScenarios = strings.ReplaceAll(r.TriggerScenarios, " \n", "\n")
	if diff := cmp.Diff(want, string(r.AppendYAML(nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRoundTrip: the whole catalogue, written and read again, is the same.
func TestRoundTrip(t *testing.T) {
	records, _ := Load(os.DirFS("../../patterns"))
	for _, r := range records {
		roundTrip(t, r)
	}
}

// TestRoundTripRandom writes records of hostile texts and reads them with three
// readers.
func TestRoundTripRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var r Record
		for _, f := range r.fields() {
			switch v := f.ptr.(type) {
			case *string:
				*v = hostile(rnd)
			case *int:
				*v = rnd.IntN(3)
			case *[]string:
				*v = hostiles(rnd)
			case *Examples:
				v.Match = []Example{{Text: hostile(rnd) + "x", Args: hostiles(rnd)}, {Text: "a" + hostile(rnd)}}
				v.Reject = hostiles(rnd)
			}
		}
		r.ID, r.Slug, r.MessagePattern, r.ErrorMessage = "a1", "x", "p", "p"
		r.Severity, r.Role, r.MinLevel, r.ErrorType, r.Review = SeverityInfo, RoleSymptom, "WARN", "panic", ReviewImported
		r.AnalyzedAt, r.DatasetVersion = "2026-01-01", "2026-09-14T11:17:12.474Z"
		trimProse(&r)
		roundTrip(t, r)
		if t.Failed() {
			t.Logf("\n%s", r.AppendYAML(nil))
			return
		}
	}
}

func roundTrip(t *testing.T, r Record) {
	t.Helper()
	text := string(r.AppendYAML(nil))
	r.File, r.Component = r.Slug+".yaml", ""
	got, problems := Load(fstest.MapFS{r.File: {Data: []byte(text)}})
	if len(got) != 1 || len(problems) > 0 {
		t.Errorf("%s: %v\n%s", r.Slug, problems, text)
		return
	}
	got[0].Component = ""
	if diff := cmp.Diff(r, got[0], cmp.Transformer("nil", noEmptyLists)); diff != "" {
		t.Errorf("%s: read again it differs (-written +read):\n%s", r.Slug, diff)
	}
	general, problems := readYAML(text)
	third, ok := thirdParty(t, text)
	if len(problems) > 0 || !ok {
		t.Errorf("%s: other readers refuse it: %v %s", r.Slug, problems, third.Text)
		return
	}
	if diff := cmp.Diff(third, valueOf(general)); diff != "" {
		t.Errorf("%s: other readers disagree (-third +general):\n%s", r.Slug, diff)
	}
}

// noEmptyLists makes an absent list and an empty one look the same.
func noEmptyLists(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return append([]string(nil), list...)
}

func hostiles(rnd *rand.Rand) []string {
	list := make([]string, rnd.IntN(4))
	for i := range list {
		list[i] = hostile(rnd)
	}
	return list
}

// hostile strings together what YAML treats specially.
func hostile(rnd *rand.Rand) string {
	parts := []string{" ", " ", "a", "word", "é", "\n", "\n\n", ": ", ":", "#", " #", "'", `"`, "\\", "-", "- ", "? ", "{", "}", "[", "]", ",",
		"&", "*", "!", "|", ">", "%", "@", "`", "true", "null", "~", "12", "1e5", "0x1", "2026-01-01", "\t", "\x1b", "\u2028", "\ufeff", "\u0085", "\u202e", "\U000e0041",
		"---", "...", "<<", "=", "a long run of words that goes over the width at which prose is folded, which is quite some way to the right",
		"\r", "  ", ".", "+1", "yes", "日本"}
	var b strings.Builder
	for range rnd.IntN(5) {
		b.WriteString(parts[rnd.IntN(len(parts))])
	}
	return b.String()
}
