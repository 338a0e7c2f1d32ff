package catalog

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Review states.
const (
	ReviewReviewed = "reviewed" // read and tested by a person
	ReviewImported = "imported" // taken over from the published knowledge base
)

// Severities returns the closed list of severities in rising order.
func Severities() []string {
	return []string{SeverityInfo, SeverityWarning, SeverityError, SeverityCritical}
}

// Roles returns the closed list of roles.
func Roles() []string { return []string{RoleRoot, RoleWrapper, RoleSymptom} }

// Levels returns the closed list of minLevel, in rising order.
func Levels() []string { return []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR"} }

// ErrorTypes returns the closed list of errorType.
func ErrorTypes() []string { return []string{"exception", "error_code", "panic", "log"} }

// Reviews returns the closed list of review.
func Reviews() []string { return []string{ReviewReviewed, ReviewImported} }

// complete fills in what a record may leave out.
func (d *decoder) complete() {
	r := &d.record
	trimProse(r)
	if r.Severity == "" {
		r.Severity = SeverityError
	}
	if r.Role == "" {
		r.Role = RoleRoot
	}
	if r.ErrorMessage == "" {
		r.ErrorMessage = templateOf(r.MessagePattern)
	}
	if r.MessagePattern == "" {
		r.MessagePattern = EscapedPattern(r.ErrorMessage)
	}
	if r.Slug == "" {
		r.Slug = Slug(r.ErrorMessage)
		if base := baseName(d.file); !d.published && validSlug(base) {
			r.Slug = base
		}
	}
	if r.Slug == "" { // a message without a word
		r.Slug = Slug(r.ID)
	}
	r.Component = component(d.file, r.FilePath)
}

// trimProse takes the white space off that a folded text ends with.
func trimProse(r *Record) {
	for _, f := range r.fields() {
		if !isProse(f.key) {
			continue
		}
		switch v := f.ptr.(type) {
		case *string:
			*v = strings.TrimSpace(*v)
		case *[]string:
			for i := range *v {
				(*v)[i] = strings.TrimSpace((*v)[i])
			}
		}
	}
}

// validate checks the values of one record.
func (d *decoder) validate() {
	r := &d.record
	switch {
	case r.ID == "":
		d.missing("id", "is missing")
	case !validID(r.ID):
		d.field("id", "%q is not an id: letters, digits, dots, dashes and underscores, at most 64", r.ID)
	}
	if strings.TrimSpace(r.MessagePattern) == "" {
		d.missing("errorMessage", "is missing, and messagePattern too; one of them must be there")
	}
	switch base := baseName(d.file); {
	case r.ID == "" && r.Slug == "":
	case !validSlug(r.Slug) && d.published:
		d.warnIf(true, d.root.at("slug"), "slug", "%q is not a slug; %q is used", r.Slug, Slug(r.Slug))
		r.Slug = Slug(r.Slug)
	case !validSlug(r.Slug):
		d.field("slug", "%q is not a slug: a-z, 0-9 and single dashes, at most 80 characters", r.Slug)
	case !d.published && r.Slug != base:
		d.warnIf(true, d.root.at("slug"), "slug", "%q is not the file's name %q", r.Slug, base)
	}
	d.severity()
	d.oneOf("role", r.Role, Roles(), false)
	d.oneOf("minLevel", r.MinLevel, Levels(), false)
	d.oneOf("errorType", r.ErrorType, ErrorTypes(), d.published)
	d.oneOf("review", r.Review, Reviews(), false)
	d.instant("analyzedAt", r.AnalyzedAt)
	d.instant("datasetVersion", r.DatasetVersion)
}

// missing reports a key that has no value, unless its value was refused before.
func (d *decoder) missing(key, message string) {
	if !slices.ContainsFunc(d.problems, func(p Problem) bool { return p.Field == key }) {
		d.problem(&d.root, key, "%s", message)
	}
}

// severity must be known; a published record with another one counts as an
// error, since somebody thought it worth publishing.
func (d *decoder) severity() {
	if d.oneOf("severity", d.record.Severity, Severities(), d.published); !slices.Contains(Severities(), d.record.Severity) {
		d.record.Severity = SeverityError
	}
}

func (d *decoder) oneOf(key, value string, list []string, warning bool) {
	if value == "" || slices.Contains(list, value) {
		return
	}
	hint := ""
	if near := nearest(value, list); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	d.warnIf(warning, d.root.at(key), key, "%q is none of %s%s", value, strings.Join(list, ", "), hint)
}

func (d *decoder) instant(key, value string) {
	if _, ok := parseInstant(value); value != "" && !ok {
		d.warnIf(true, d.root.at(key), key, "%q is not a time such as 2026-09-11T21:06:21Z or a date", value)
	}
}

func (d *decoder) field(key, format string, args ...any) {
	d.problem(d.root.at(key), key, format, args...)
}

func parseInstant(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func baseName(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file))
}

func validID(s string) bool {
	return len(s) <= 64 && strings.IndexFunc(s, func(c rune) bool {
		return c > 0x7f || !isLetter(byte(c)) && !isDigit(byte(c)) && !strings.ContainsRune("._-", c)
	}) < 0
}

func validSlug(s string) bool {
	if s == "" || len(s) > 80 || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	return strings.IndexFunc(s, func(c rune) bool { return c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') }) < 0
}
