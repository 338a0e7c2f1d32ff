package harvest

import (
	"regexp"
	"strings"
)

// Java finds the messages of one Java source; File is left empty.
func Java(src string) []Message {
	j := java{rust{tokens: lex(src, true)}}
	for i := range j.tokens {
		j.look(i)
	}
	return j.found
}

type java struct{ rust }

// look tells whether a message begins at a token.
func (j *java) look(i int) {
	t := j.tokens[i]
	if t.kind != word {
		return
	}
	switch {
	case isLogger(t.value) && j.at(i+1).is(".") && j.at(i+3).is("("):
		switch level := j.at(i + 2).value; level {
		case "error", "warn", "info", "debug", "trace":
			j.text(i, t.value+"."+level, level, i+4)
		}
	case t.value == "new" && isException(j.at(i+1).value) && j.at(i+2).is("("):
		j.text(i, "new "+j.at(i+1).value, "error", i+3)
	case isStatus(t.value) && j.at(i+1).is("("), t.value == "withDescription" && j.at(i-4).named("Status"):
		j.text(i, t.value, "error", i+2)
	}
}

func isLogger(name string) bool {
	return strings.EqualFold(name, "log") || strings.EqualFold(name, "logger")
}

func isException(name string) bool {
	return strings.HasSuffix(name, "Exception") || strings.HasSuffix(name, "Error")
}

// isStatus names the calls by which the connector node makes a gRPC status, as
// in ValidatorUtils.invalidArgument("…").
func isStatus(name string) bool {
	switch name {
	case "invalidArgument", "internalError", "failedPrecondition", "unimplemented", "checkState", "checkArgument":
		return true
	}
	return false
}

// verb matches Java's format specifiers.
var verb = regexp.MustCompile(`%(?:\d+\$)?[-#+ 0,(]*\d*(?:\.\d+)?[bBhHsScCdoxXeEfgGaA]|%n|%%`)

// text adds the message that the expression from token i on makes.
func (j *java) text(at int, kind, level string, i int) {
	if s := j.expression(i, 0); strings.Trim(s, " :.,'{}") != "" {
		j.add(at, kind, level, s)
	}
}

// maxNested bounds format calls in format calls.
const maxNested = 4

// expression reads one argument: literals joined with +, anything else is a
// placeholder. String.format and "…".formatted have their verbs replaced.
func (j *java) expression(i, nested int) string {
	var b strings.Builder
	var lastText string
	inHole := false
	hole := func() {
		if !inHole {
			b.WriteString("{}")
		}
		inHole = true
	}
	for i < len(j.tokens) {
		t := j.tokens[i]
		switch {
		case t.is(",") || t.is(")") || t.is(";") || t.is("}"):
			return b.String()
		case t.is("+"):
			inHole = false
			i++
		case t.kind == text && !inHole:
			lastText = t.value
			b.WriteString(t.value)
			i++
		case t.is(".") && j.at(i+1).named("formatted") && lastText != "":
			whole := b.String()
			b.Reset()
			b.WriteString(strings.TrimSuffix(whole, lastText) + fromVerbs(lastText))
			i = closing(j.tokens, i+2)
		case t.named("String") && j.at(i+2).named("format") && j.at(i+3).is("(") && nested < maxNested && !inHole:
			b.WriteString(fromVerbs(j.expression(i+4, nested+1)))
			i = closing(j.tokens, i+3)
		case isOpen(t):
			hole()
			i = closing(j.tokens, i)
		default:
			hole()
			i++
		}
	}
	return b.String()
}

// fromVerbs turns the verbs of a format into placeholders.
func fromVerbs(format string) string {
	return verb.ReplaceAllStringFunc(format, func(v string) string {
		switch v {
		case "%n":
			return "\n"
		case "%%":
			return "%"
		}
		return "{}"
	})
}
