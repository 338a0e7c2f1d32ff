package harvest

import (
	"slices"
	"strings"
)

// Rust finds the messages of one Rust source; File is left empty.
func Rust(src string) []Message {
	r := rust{tokens: lex(src, false)}
	r.tokens = withoutTests(r.tokens)
	for i := range r.tokens {
		r.look(i)
	}
	return r.found
}

// rust walks the tokens of a file.
type rust struct {
	tokens []token
	found  []Message
}

// at returns a token, or nothing behind the end.
func (r *rust) at(i int) token {
	if i < 0 || i >= len(r.tokens) {
		return token{kind: other}
	}
	return r.tokens[i]
}

func (r *rust) add(i int, kind, level, template string) {
	if template != "" {
		r.found = append(r.found, Message{Text: template, Kind: kind, Level: level, Line: r.tokens[i].line})
	}
}

// look tells whether a message begins at a token.
func (r *rust) look(i int) {
	t := r.tokens[i]
	switch {
	case t.is("#") && r.at(i+1).is("["):
		r.attribute(i)
	case t.kind != word:
	case r.at(i+1).is("!") && isOpen(r.at(i+2)):
		r.macro(i)
	case r.at(i-1).is(".") && r.at(i+1).is("("):
		r.method(i)
	case r.at(i+1).is("::") && isErrorType(t.value) && !r.at(i-1).named("use"):
		r.constructor(i)
	case r.at(i+1).is("(") && (t.value == "Err" || isErrorFunc(t.value)) && !r.at(i-1).named("fn") && !r.at(i-1).is("::"):
		if s, ok := r.argument(i + 2); ok {
			r.add(i, t.value, "error", s)
		}
	}
}

func isOpen(t token) bool { return t.is("(") || t.is("[") || t.is("{") }

// attribute reads #[error("…")].
func (r *rust) attribute(i int) {
	if r.at(i+2).named("error") && r.at(i+3).is("(") && r.at(i+4).kind == text {
		r.add(i, "#[error]", "error", r.at(i+4).value)
	}
}

// macroLevel tells what a macro's text becomes; "" if it has none that anyone
// reads. args is the number of arguments before the text.
func macroLevel(name string) (level string, args int) {
	switch name {
	case "error", "warn", "info", "debug", "trace":
		return name, 0
	case "event":
		return "event", 1
	case "anyhow", "bail", "format_err":
		return "error", 0
	case "ensure":
		return "error", 1
	case "panic", "unreachable", "todo", "unimplemented":
		return "panic", 0
	case "assert", "debug_assert":
		return "panic", 1
	case "assert_eq", "assert_ne", "debug_assert_eq", "debug_assert_ne", "assert_matches", "debug_assert_matches", "ensure_eq":
		return "panic", 2
	case "println", "print":
		return "stdout", 0
	case "eprintln", "eprint":
		return "stderr", 0
	}
	if name == "compile_error" {
		return "", 0
	}
	for _, part := range [...]string{"bail", "panic", "reject", "not_implemented", "unsupported", "ensure"} {
		if strings.Contains(name, part) {
			return "error", 0
		}
	}
	if strings.HasSuffix(name, "err") || strings.HasSuffix(name, "error") {
		return "error", 0
	}
	return "", 0
}

// macro reads name!(…, "text", …). The text is the first string that is an
// argument of its own, so the values of fields and of nested calls are not
// taken for it.
func (r *rust) macro(i int) {
	name := r.tokens[i].value
	level, skip := macroLevel(name)
	if level == "" {
		return
	}
	if level == "event" {
		level = r.eventLevel(i + 3)
	}
	depth, arg, begins := 0, 0, true
	for j := i + 3; j < len(r.tokens); j++ {
		t := r.tokens[j]
		if begins && depth == 0 && arg >= skip {
			if s, ok := r.format(j); ok && !r.at(j+1).is("=") {
				r.add(i, name, level, s)
				return
			}
		}
		begins = false
		switch {
		case isOpen(t):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			if depth--; depth < 0 {
				return
			}
		case t.is(",") && depth == 0:
			arg++
			begins = true
		}
	}
}

// eventLevel reads the level of tracing::event!(Level::WARN, …).
func (r *rust) eventLevel(i int) string {
	for ; i < len(r.tokens) && !r.tokens[i].is(","); i++ {
		if level := strings.ToLower(r.tokens[i].value); r.tokens[i].kind == word && slices.Contains(Levels(), level) {
			return level
		}
	}
	return "info"
}

// format reads a format string: a literal, concat! of literals, or format! of
// either.
func (r *rust) format(i int) (string, bool) {
	if r.at(i).kind == text {
		return r.at(i).value, true
	}
	if r.at(i).named("format") && r.at(i+1).is("!") {
		return r.format(i + 3)
	}
	if !r.at(i).named("concat") || !r.at(i+1).is("!") {
		return "", false
	}
	var b strings.Builder
	for i += 3; i < len(r.tokens) && !r.tokens[i].is(")"); i++ {
		if r.tokens[i].kind == text {
			b.WriteString(r.tokens[i].value)
		}
	}
	return b.String(), true
}

// argument reads the text that an argument consists of: a literal, a format!,
// or what a closure returns of these.
func (r *rust) argument(i int) (string, bool) {
	for ; i < len(r.tokens); i++ {
		t := r.tokens[i]
		switch {
		case t.kind == text:
			return literal(t.value), true
		case (t.named("format") || t.named("format_args")) && r.at(i+1).is("!"):
			return r.format(i + 3)
		case t.named("concat"):
			s, ok := r.format(i)
			return literal(s), ok
		case t.is("|"):
			for i++; i < len(r.tokens) && !r.tokens[i].is("|"); i++ {
			}
		case t.is("&"), t.is("{"), t.named("move"):
		default:
			return "", false
		}
	}
	return "", false
}

// literal turns a text that is printed as it stands into a template.
func literal(s string) string {
	return strings.NewReplacer("{", "{{", "}", "}}").Replace(s)
}

// method reads .context("…"), .expect("…") and the like.
func (r *rust) method(i int) {
	level := "error"
	switch r.tokens[i].value {
	case "expect", "expect_err":
		level = "panic"
	case "context", "with_context", "map_err", "ok_or", "ok_or_else":
	default:
		return
	}
	if s, ok := r.argument(i + 2); ok {
		r.add(i, "."+r.tokens[i].value, level, s)
	}
}

func isErrorType(name string) bool {
	return strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "ErrorCode") || strings.HasSuffix(name, "Err") || name == "Status" || name == "ErrorKind"
}

func isErrorFunc(name string) bool {
	return strings.HasSuffix(name, "_err") || strings.HasSuffix(name, "_error")
}

// constructor reads XxxError::ctor(…, "text", …), with format! too, and
// XxxError::Variant { field: format!("…") }.
func (r *rust) constructor(i int) {
	name, j := r.tokens[i].value, i+1
	for r.at(j).is("::") && r.at(j+1).kind == word {
		name += "::" + r.at(j+1).value
		j += 2
	}
	open := r.at(j)
	if !open.is("(") && !open.is("{") {
		return
	}
	depth, begins := 0, true
	for j++; j < len(r.tokens) && depth >= 0; j++ {
		t := r.tokens[j]
		if begins && depth == 0 {
			if s, ok := r.argument(j); ok && strings.Contains(s, " ") { // else the name of a thing
				r.add(i, name, "error", s)
				return
			}
		}
		begins = t.is(",") && open.is("(") || t.is(":") && open.is("{")
		switch {
		case isOpen(t):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		}
	}
}

// withoutTests drops what is compiled for tests only.
func withoutTests(tokens []token) []token {
	kept := make([]token, 0, len(tokens))
	for i := 0; i < len(tokens); {
		inner := i+2 < len(tokens) && tokens[i].is("#") && tokens[i+1].is("!") && tokens[i+2].is("[")
		if !tokens[i].is("#") || i+1 >= len(tokens) || !tokens[i+1].is("[") && !inner {
			kept = append(kept, tokens[i])
			i++
			continue
		}
		open := i + 1
		if inner {
			open++
		}
		end := closing(tokens, open)
		if !isTest(tokens[open+1 : max(open+1, end-1)]) {
			kept = append(kept, tokens[i])
			i++
			continue
		}
		if inner {
			return nil
		}
		i = itemEnd(tokens, end)
	}
	return kept
}

// isTest tells attributes such as test, tokio::test, cfg(test) and cfg(any(test, …)).
func isTest(attr []token) bool {
	negated := false
	for i, t := range attr {
		switch {
		case t.named("not"):
			negated = true
		case t.named("test") && !negated:
			return i == 0 || attr[i-1].is("::") || attr[0].named("cfg")
		}
	}
	return false
}

// closing returns the index behind the bracket that closes tokens[i].
func closing(tokens []token, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch t := tokens[i]; {
		case isOpen(t):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// itemEnd returns the index behind the item, statement, field or variant that
// follows an attribute.
func itemEnd(tokens []token, i int) int {
	for i+1 < len(tokens) && tokens[i].is("#") && tokens[i+1].is("[") {
		i = closing(tokens, i+1)
	}
	item := false
	for first := true; i < len(tokens); {
		t := tokens[i]
		if first && !t.named("pub") && !t.is("(") {
			item = t.kind == word && slices.Contains([]string{"fn", "mod", "struct", "enum", "impl", "trait", "use", "const", "static", "type", "async", "unsafe", "extern", "macro_rules", "let", "union"}, t.value)
			first = false
		}
		switch {
		case t.is("{") && !(i > 0 && tokens[i-1].is("::")): // use a::{b} goes on
			return closing(tokens, i)
		case t.is(";"), t.is(",") && !item:
			return i + 1
		case t.is(")") || t.is("]") || t.is("}"):
			return i
		case isOpen(t):
			i = closing(tokens, i)
		default:
			i++
		}
	}
	return i
}
