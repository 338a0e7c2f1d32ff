package annotate

import (
	"cmp"
	"maps"
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
const secretKey = `(?i)(?:pass(?:word|wd|phrase)|pwd|secret(?:[._-]?(?:access[._-]?)?key)?|(?:access|private|api|account|encryption|license|signing)[._-]?key(?:[._-]?id)?|(?:auth|access|session|security|refresh|bearer|api|sas|id)[._-]?token|client[._-]?secret|credentials?|sasl\.password|x-amz-signature|jwt|nkey|ssl[._]key[._]pem)`

// secretValue is what may follow such a name: a string whose quotes are escaped,
// as inside of JSON, a quoted string, a SQL literal, a word. A string may be cut.
const secretValue = `\\?["']?\s*(?:=>|[=:])\s*(?:Some\()?(?:` +
	`\\"((?:[^"\\]|\\\\\\"|\\[^"])*)(?:\\"|$)|"((?:[^"\\]|\\.)*)(?:"|$)|'((?:[^']|'')*)(?:'|$)|([^\s,;&"'(){}<>\\]+))`

// sqlSecret is a literal that SQL writes without = or : after its keyword:
// PASSWORD 'x', CREATE SECRET s WITH (…) AS 'x'.
const sqlSecret = `(?is)\b(?:password|secret\s+[^\s']+\s+(?:with\s*\((?:[^()']|'[^']*')*\)\s*)?as)\s+'((?:[^']|'')*)(?:'|$)`

// ownExprs is how many of a Masker's expressions are not the user's.
const ownExprs = 6

// NewMasker makes a Masker; extra are the user's own expressions.
func NewMasker(extra ...*regexp.Regexp) *Masker {
	return &Masker{
		// Expressions run only on texts that hold one of these words.
		triggers: []string{"://", "pass", "pwd", "secret", "key", "token", "credential", "bearer ", "basic ", "signature", "jwt", "akia", "asia", "sig="},
		exprs: append([]*regexp.Regexp{
			regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/"'<>?#]+)@`),
			regexp.MustCompile(secretKey + secretValue),
			regexp.MustCompile(`(?i)\btoken\\?"?=\\?["']?([^\s,;&"'(){}<>\\]+)`),
			regexp.MustCompile(`(?i)\b(?:bearer|basic) ([A-Za-z0-9+/_.=-]{8,})`),
			regexp.MustCompile(sqlSecret),
			regexp.MustCompile(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b|[?&]sig=([^\s&"'<>]+)`), // AWS keys, Azure's signed URLs
		}, extra...),
	}
}

// masked hides the secrets found in one record; nil hides nothing.
type masked struct{ replacer *strings.Replacer }

// Mask hides the secrets in a text.
func (m *Masker) Mask(text string) string { return m.of(text).apply(text) }

// of finds the secrets in the texts of a record, as it was written and as it
// was decoded. They are then hidden wherever they occur, in the arguments too.
func (m *Masker) of(texts ...string) masked {
	if m == nil {
		return masked{}
	}
	found := map[string]bool{}
	for _, text := range texts {
		m.find(found, text)
	}
	delete(found, hidden)
	return hide(slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		// Longer ones first: one secret may contain another.
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	}))
}

// find adds the secrets of one text.
func (m *Masker) find(found map[string]bool, text string) {
	if len(m.exprs) == ownExprs && !m.triggered(text) {
		return
	}
	for _, re := range m.exprs {
		for _, groups := range re.FindAllStringSubmatch(text, -1) {
			secret := groups[0]
			if i := slices.IndexFunc(groups[1:], func(g string) bool { return g != "" }); i >= 0 {
				secret = groups[1+i]
			} else if len(groups) > 1 {
				continue
			}
			found[secret] = true
			if user, password, ok := strings.Cut(secret, ":"); ok && user != "" && len(password) >= shortSecret {
				found[password] = true
			}
		}
	}
}

func (m *Masker) triggered(text string) bool {
	lower := strings.ToLower(text)
	return slices.ContainsFunc(m.triggers, func(t string) bool { return strings.Contains(lower, t) })
}

const hidden = "***"

// shortSecret is the length below which a secret is hidden only where it stands
// after its key: replacing one or two letters everywhere would garble the text.
const shortSecret = 3

// hide makes one pass over a text replace all secrets.
func hide(secrets []string) masked {
	var pairs []string
	for _, secret := range secrets {
		switch {
		case len(secret) >= shortSecret:
			pairs = append(pairs, secret, hidden)
		case secret != "":
			for _, before := range [...]string{"=", "='", `="`, ": ", `: "`, ": '", "= ", "= '"} {
				pairs = append(pairs, before+secret, before+hidden)
			}
		}
	}
	if pairs == nil {
		return masked{}
	}
	return masked{strings.NewReplacer(pairs...)}
}

// apply hides the secrets in s.
func (m masked) apply(s string) string {
	if m.replacer == nil {
		return s
	}
	return m.replacer.Replace(s)
}
