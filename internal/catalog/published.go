package catalog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ParsePublished reads a record as the knowledge base publishes it: the JSON of
// its API, wrapped or bare, or the text of its page. What the page does not say
// is derived (messagePattern, slug) or left empty; it names its commit in short only
// (see CompleteLinks). The record comes with review "imported" and without the
// code excerpts.
func ParsePublished(data []byte) (Record, []Problem) {
	var r Record
	var problems []Problem
	if trimmed := bytes.TrimLeft(data, "\ufeff \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		r, problems = decode("record.json", data)
	} else {
		r, problems = parsePage(data)
	}
	for i := range problems {
		problems[i].File = ""
	}
	r.File = ""
	r.Review = ReviewImported
	return r, problems
}

// parsePage reads the text of a record's page. Its parts stand under fixed
// headings; those with source code may be missing or stand at the end.
func parsePage(data []byte) (Record, []Problem) {
	d := decoder{file: "page.txt", published: true}
	data, ok := d.bytes(data)
	if !ok {
		return d.record, d.problems
	}
	d.text = strings.ReplaceAll(string(data), "\r\n", "\n")
	p := splitPage(d.text)
	p.fill(&d.record)
	if len(p.sections["Error message"]) == 0 && d.record.ErrorMessage != "" && d.record.ID != "" {
		d.fileProblem(true, `the page has no "Error message"; the headline is taken, which may be cut short`)
	}
	if d.record.ID == "" {
		d.fileProblem(false, `this is neither JSON nor a record's page: "Data as JSON: /api/errors/<id>" is missing`)
	}
	if d.record.ErrorMessage == "" {
		d.fileProblem(false, `the page has neither "Error message" nor a headline`)
	}
	d.complete()
	return d.record, d.problems
}

// page is a record's page cut at its headings.
type page struct {
	head     []string            // lines before the first heading
	sections map[string][]string // lines by heading
	text     string
}

func splitPage(text string) page {
	p := page{sections: map[string][]string{}, text: text}
	heading := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t")
		switch {
		case isHeading(line):
			heading = line
		case heading == "":
			p.head = append(p.head, line)
		default:
			p.sections[heading] = append(p.sections[heading], line)
		}
	}
	return p
}

func isHeading(line string) bool {
	switch line {
	case "Error message", "What it means", "Source", "Solutions", "When it happens", "Understand the failure class",
		"Related errors", "Appendix: source":
		return true
	}
	return false
}

func (p *page) fill(r *Record) {
	p.fillHead(r)
	if message := strings.Join(p.sections["Error message"], "\n"); strings.TrimSpace(message) != "" {
		r.ErrorMessage = strings.Trim(message, "\n")
	}
	r.Documentation = prose(p.sections["What it means"])
	if at := p.find(`(?m)^Thrown at (\S+):(\d+)$`); at != nil {
		r.FilePath = at[1]
		_, _ = fmt.Sscan(at[2], &r.LineNumber)
	}
	r.Solutions = numbered(p.sections["Solutions"])
	r.TriggerScenarios = labelled(p.sections["When it happens"], "Trigger:")
	r.CommonSituations = labelled(p.sections["When it happens"], "Common situations:")
	if class := p.find(`(?m)^Background: ["“]([^"”]+)["”]`); class != nil {
		r.BackgroundTag = Slug(class[1])
	}
	if by := p.find(`analysis of (\S+)@([0-9a-f]{7,40}) \((\d{4}-\d\d-\d\d)\)`); by != nil {
		r.Repo, r.AnalyzedSha, r.AnalyzedAt = by[1], by[2], by[3]
	}
	if id := p.find(`/api/errors/([0-9a-f]{8,64})\b`); id != nil {
		r.ID = id[1]
	}
}

// fillHead reads "owner/name · severity" and the headline. The headline may be
// cut, so it serves only where the message itself is missing.
func (p *page) fillHead(r *Record) {
	for _, line := range p.head {
		repo, severity, ok := strings.Cut(line, " · ")
		switch {
		case ok && r.Repo == "" && strings.Count(repo, "/") == 1 && !strings.Contains(repo, " "):
			r.Repo = repo
			if slices.Contains(Severities(), severity) {
				r.Severity = severity
			}
		case line != "" && r.ErrorMessage == "" && !strings.HasSuffix(line, "…"):
			r.ErrorMessage = line
		}
	}
}

func (p *page) find(pattern string) []string {
	return regexp.MustCompile(pattern).FindStringSubmatch(p.text)
}

// numbered returns the items "1. …", "2. …" at the start of a section. The
// first blank line after them ends it: code follows.
func numbered(lines []string) []string {
	var items []string
	for _, line := range lines {
		number, text, ok := strings.Cut(line, ". ")
		switch {
		case ok && number == fmt.Sprint(len(items)+1):
			items = append(items, text)
		case line != "" && len(items) > 0:
			items[len(items)-1] += " " + strings.TrimSpace(line)
		case len(items) > 0:
			return items
		}
	}
	return items
}

// labelled returns the paragraph that begins with label.
func labelled(lines []string, label string) string {
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, label); ok {
			paragraph := []string{rest}
			for _, more := range lines[i+1:] {
				if more == "" {
					break
				}
				paragraph = append(paragraph, more)
			}
			return prose(paragraph)
		}
	}
	return ""
}

// prose joins lines; blank ones separate paragraphs.
func prose(lines []string) string {
	var paragraphs []string
	for paragraph := range strings.SplitSeq(strings.Join(lines, "\n"), "\n\n") {
		if words := strings.Join(strings.Fields(paragraph), " "); words != "" {
			paragraphs = append(paragraphs, words)
		}
	}
	return strings.Join(paragraphs, "\n")
}

// CompleteLinks gives records that name their commit in short the full one and
// the link to their source, if a record of known comes from the same commit.
func CompleteLinks(records, known []Record) {
	for i := range records {
		r := &records[i]
		if n := len(r.AnalyzedSha); n < 7 || n >= 40 {
			continue
		}
		for _, k := range known {
			if len(k.AnalyzedSha) == 40 && k.Repo == r.Repo && strings.HasPrefix(k.AnalyzedSha, r.AnalyzedSha) {
				r.AnalyzedSha = k.AnalyzedSha
				break
			}
		}
		if len(r.AnalyzedSha) == 40 && r.GithubURL == "" && r.FilePath != "" {
			r.GithubURL = fmt.Sprintf("https://github.com/%s/blob/%s/%s#L%d", r.Repo, r.AnalyzedSha, r.FilePath, r.LineNumber)
		}
	}
}

// component is the part of the catalogue a record belongs to: the top directory
// it lies in, else the crate of its source file ("connector-node" for Java).
func component(file, filePath string) string {
	if dir, _, ok := strings.Cut(file, "/"); ok {
		return dir
	}
	parts := strings.Split(filePath, "/")
	switch {
	case parts[0] == "java":
		return "connector-node"
	case parts[0] == "src" && len(parts) > 2:
		return parts[1]
	}
	return ""
}
