package harvest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// Repository is where RisingWave's source is published.
const Repository = "risingwavelabs/risingwave"

// Drafts makes a catalogue record of each wording among messages that can mean
// an error: those of level panic, error and warn. Sites with the same wording
// in the same component share a record, which names the first. commit is the
// source's full commit id, or "". What the error means and what to do is left
// for a person to write.
func Drafts(messages []Message, commit string) []catalog.Record {
	var drafts []catalog.Record
	seen := map[[2]string]bool{}
	slugs := map[string]string{} // to the wording
	for _, m := range messages {
		severity := Severity(m.Level)
		wording := [2]string{Component(m.File), Wording(m.Text)}
		if severity == "" || seen[wording] {
			continue
		}
		seen[wording] = true
		r := draft(m, severity)
		if first, taken := slugs[r.Slug]; taken && first != wording[1] || r.Slug == "" {
			r.Slug = strings.TrimPrefix(r.Slug+"-"+hash(wording[0] + "/" + wording[1])[:6], "-")
		} else if taken {
			r.Slug += "-" + wording[0]
		}
		slugs[r.Slug] = wording[1]
		r.ID = hash(r.Component + "/" + r.Slug)[:16]
		if commit != "" && m.File != "" {
			r.AnalyzedSha = commit
			r.GithubURL = fmt.Sprintf("https://github.com/%s/blob/%s/%s#L%d", Repository, commit, m.File, m.Line)
		}
		drafts = append(drafts, r)
	}
	slices.SortStableFunc(drafts, func(a, b catalog.Record) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Slug, b.Slug))
	})
	return drafts
}

// Distinct drops the drafts whose text stands in a message of level info, debug
// or trace too: they would fire on healthy logs, and often.
func Distinct(drafts []catalog.Record, messages []Message) []catalog.Record {
	var healthy []string
	for _, m := range messages {
		if m.Level == "info" || m.Level == "debug" || m.Level == "trace" {
			healthy = append(healthy, Wording(m.Text))
		}
	}
	slices.Sort(healthy)
	all := strings.Join(slices.Compact(healthy), "\x00")
	return slices.DeleteFunc(drafts, func(r catalog.Record) bool { return strings.Contains(all, longestLiteral(r.ErrorMessage)) })
}

func longestLiteral(template string) string {
	longest := ""
	for _, p := range catalog.ParseTemplate(template) {
		if s := strings.TrimSpace(p.Literal); len(s) > len(longest) {
			longest = s
		}
	}
	return longest
}

func draft(m Message, severity string) catalog.Record {
	return catalog.Record{
		Repo:           Repository,
		Slug:           catalog.Slug(m.Text),
		ErrorMessage:   m.Text,
		MessagePattern: catalog.EscapedPattern(m.Text),
		ErrorType:      errorType(m),
		Severity:       severity,
		Role:           catalog.RoleRoot,
		FilePath:       m.File,
		LineNumber:     m.Line,
		Review:         catalog.ReviewImported,
		Component:      Component(m.File),
	}
}

// Severity is what a message's level suggests before anyone has judged its
// consequence; "" for levels that are no error. A panic ends the process.
func Severity(level string) string {
	switch level {
	case "panic":
		return catalog.SeverityCritical
	case "error":
		return catalog.SeverityError
	case "warn":
		return catalog.SeverityWarning
	}
	return ""
}

func errorType(m Message) string {
	switch {
	case m.Level == "panic":
		return "panic"
	case m.Kind == "error" || m.Kind == "warn" || m.Kind == "event" || strings.EqualFold(m.Kind, "log."+m.Level) || strings.EqualFold(m.Kind, "logger."+m.Level):
		return "log"
	}
	return "exception"
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// components maps source directories to the directories of the catalogue, the
// first that fits.
var components = [...][2]string{
	{"src/connector/src/sink", "sink"},
	{"src/connector", "connector"},
	{"src/meta", "meta"},
	{"src/stream", "stream"},
	{"src/storage", "storage"},
	{"src/object_store", "storage"},
	{"src/frontend", "frontend"},
	{"src/sqlparser", "frontend"},
	{"src/utils/pgwire", "frontend"},
	{"src/batch", "batch"},
	{"src/rpc_client", "rpc"},
	{"src/license", "licence"},
	{"src/jni_core", "connector-node"},
	{"java", "connector-node"},
}

// Component is the part of the catalogue that a source file's messages belong
// to; where there is none yet, the name of the crate, and "other" for no file.
func Component(file string) string {
	if file == "" {
		return "other"
	}
	for _, c := range components {
		if strings.HasPrefix(file, c[0]) {
			return c[1]
		}
	}
	dir, _, _ := strings.Cut(strings.TrimPrefix(file, "src/"), "/")
	return strings.ReplaceAll(strings.TrimSuffix(dir, ".rs"), "_", "-")
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}\s*$`)

// Commit returns the commit that is checked out in a source tree, "" if that
// cannot be told from the files.
func Commit(fsys fs.FS) string {
	head, _ := fs.ReadFile(fsys, ".git/HEAD")
	if ref, ok := strings.CutPrefix(string(head), "ref: "); ok {
		ref = strings.TrimSpace(ref)
		head, _ = fs.ReadFile(fsys, ".git/"+ref)
		if head == nil {
			head = packedRef(fsys, ref)
		}
	}
	if !commitID.Match(head) {
		return ""
	}
	return strings.TrimSpace(string(head))
}

func packedRef(fsys fs.FS, ref string) []byte {
	packed, _ := fs.ReadFile(fsys, ".git/packed-refs")
	for line := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return []byte(id)
		}
	}
	return nil
}
