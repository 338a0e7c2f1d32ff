package annotate

import (
	"regexp"
	"slices"
	"strings"
)

// A Masker hides secrets: user info in URLs, values of keys such as password
// or secret_key, bearer tokens, and what further expressions match. The first
// group of an expression is the secret; without a group the whole match is.
type Masker struct {
	triggers []string
	exprs    []*regexp.Regexp
}

// secretKey matches names whose value is a secret, however they are written:
// password=x, "secret_key": "x", s3.access.key = 'x', password: Some("x").
const secretKey = `(?i)(?:pass(?:word|wd|phrase)|pwd|secret(?:[._-]?(?:access[._-]?)?key)?|(?:access|private|api|account|encryption|license|signing)[._-]?key(?:[._-]?id)?|(?:auth|access|session|security|refresh|bearer|api|sas|id)[._-]?token|client[._-]?secret|credentials?|sasl\.password|x-amz-signature)`

// secretValue is what may follow such a name.
const secretValue = `\\?["']?\s*(?:=>|[=:])\s*(?:Some\()?(?:\\?"((?:[^"\\]|\\[^"])*)\\?"|'((?:[^']|'')*)'|([^\s,;&"'(){}<>\\]+))`

// NewMasker makes a Masker; extra are the user's own expressions.
func NewMasker(extra ...*regexp.Regexp) *Masker {
	return &Masker{
		// Expressions run only on texts that hold one of these words.
		triggers: []string{"://", "pass", "pwd", "secret", "key", "token", "credential", "bearer ", "basic ", "signature"},
		exprs: append([]*regexp.Regexp{
			regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/"'<>?#]+)@`),
			regexp.MustCompile(secretKey + secretValue),
			regexp.MustCompile(`(?i)\btoken\\?"?=\\?["']?([^\s,;&"'(){}<>\\]+)`),
			regexp.MustCompile(`(?i)\b(?:bearer|basic) ([A-Za-z0-9+/_.=-]{8,})`),
		}, extra...),
	}
}

// masked is the set of secrets found in one record.
type masked []string

// of finds the secrets in a record's text. They are then hidden wherever they
// occur, in the arguments too.
func (m *Masker) of(text string) masked {
	if m == nil || len(m.exprs) == 4 && !m.triggered(text) {
		return nil
	}
	var found masked
	for _, re := range m.exprs {
		for _, groups := range re.FindAllStringSubmatch(text, -1) {
			secret := groups[0]
			if i := slices.IndexFunc(groups[1:], func(g string) bool { return g != "" }); i >= 0 {
				secret = groups[1+i]
			} else if len(groups) > 1 {
				continue
			}
			if secret != hidden && !slices.Contains(found, secret) {
				found = append(found, secret)
			}
			if user, password, ok := strings.Cut(secret, ":"); ok && user != "" && len(password) >= 3 {
				found = append(found, password)
			}
		}
	}
	// Longer ones first: one secret may contain another.
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	return found
}

func (m *Masker) triggered(text string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(m.triggers, func(t string) bool { return strings.Contains(lower, t) })
}

const hidden = "***"

// apply hides the secrets in s. Values of one or two letters are hidden only
// where they stand after their key, by the expressions' own reach: replacing
// them everywhere would garble the text.
func (m masked) apply(s string) string {
	for _, secret := range m {
		if len(secret) >= 3 {
			s = strings.ReplaceAll(s, secret, hidden)
			continue
		}
		for _, before := range [...]string{"=", "='", `="`, ": ", `: "`, ": '", "= ", "= '"} {
			s = strings.ReplaceAll(s, before+secret, before+hidden)
		}
	}
	return s
}
