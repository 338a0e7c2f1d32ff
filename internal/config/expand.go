package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Env is an environment. It is data, not the process's, so that tests and
// `config validate` decide what it holds.
type Env map[string]string

// EnvOf reads the form of os.Environ.
func EnvOf(environ []string) Env {
	env := make(Env, len(environ))
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	return env
}

var (
	varName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	bareVar   = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*`)
	dollarPar = regexp.MustCompile(`^\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)
)

// expand replaces ${VAR}, ${VAR:-default}, ${VAR:?message} and $$ in one
// scalar. What a variable holds is never looked at again: it cannot bring in
// structure or further variables. Every fault is returned.
func expand(s string, env Env) (string, []error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var out strings.Builder
	var errs []error
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 {
			break
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "$$"):
			out.WriteByte('$')
			s = s[2:]
		case strings.HasPrefix(s, "${"):
			end := closingBrace(s)
			if end < 0 {
				return "", append(errs, fmt.Errorf("%q has no closing brace; write ${VAR}, or $$ for a dollar sign", s))
			}
			value, err := variable(s[2:end], env)
			if err != nil {
				errs = append(errs, err)
			}
			out.WriteString(value)
			s = s[end+1:]
		default:
			// A dollar sign alone is fine: it ends many a regular expression.
			if err := misspelt(s); err != nil {
				errs = append(errs, err)
			}
			out.WriteByte('$')
			s = s[1:]
		}
	}
	out.WriteString(s)
	return out.String(), errs
}

// closingBrace finds the brace that closes the one in s[1]; a default may
// hold pairs of its own, as in ${GLOB:-/var/log/{a,b}/*.log}.
func closingBrace(s string) int {
	depth := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// variable evaluates what stands between the braces.
func variable(ref string, env Env) (string, error) {
	name := varName.FindString(ref)
	rest := ref[len(name):]
	value := env[name]
	switch {
	case name == "":
		return "", fmt.Errorf("${%s} names no environment variable; write ${VAR}, or $$ for a dollar sign", ref)
	case strings.Contains(rest, "${"):
		return "", fmt.Errorf("${%s} holds another ${…}; one variable cannot stand inside another", ref)
	case rest == "":
		if _, set := env[name]; !set {
			return "", fmt.Errorf("environment variable %s is not set; set it, or give a default with ${%s:-…}", name, name)
		}
		return value, nil
	case strings.HasPrefix(rest, ":-"):
		if value == "" {
			return rest[2:], nil
		}
		return value, nil
	case strings.HasPrefix(rest, ":?"):
		if value != "" {
			return value, nil
		}
		if rest[2:] == "" {
			return "", fmt.Errorf("environment variable %s is not set or empty", name)
		}
		return "", fmt.Errorf("environment variable %s is not set or empty: %s", name, rest[2:])
	}
	return "", fmt.Errorf("${%s} is not understood; write ${VAR}, ${VAR:-default} or ${VAR:?message}", ref)
}

// misspelt recognises the notations of shells and of Kubernetes manifests,
// which would otherwise silently stand for themselves.
func misspelt(s string) error {
	if name := bareVar.FindString(s); name != "" {
		return fmt.Errorf("%s is not replaced; write ${%s} for the variable, or $%s for the text", name, name[1:], name)
	}
	if m := dollarPar.FindStringSubmatch(s); m != nil {
		return fmt.Errorf("%s is not replaced; write ${%s} for the variable, or $%s for the text", m[0], m[1], m[0])
	}
	return nil
}
