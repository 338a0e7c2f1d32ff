package web

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// width of plain text, in columns.
const width = 80

// paper is plain text for a terminal. All that is written on it is cleaned
// once more: catalogues come from files, too.
type paper struct {
	w   io.Writer
	now time.Time
}

// line writes what fits on one line as it is.
func (p *paper) line(format string, args ...any) {
	_, _ = fmt.Fprintln(p.w, strings.TrimRight(clean(fmt.Sprintf(format, args...), 400), " "))
}

func (p *paper) gap() { _, _ = fmt.Fprintln(p.w) }

// block writes wrapped text; lead stands before its first line, and as many
// spaces before the others.
func (p *paper) block(lead, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	for _, l := range wrap(clean(text, 10*maxLine), width-len(indent)) {
		_, _ = fmt.Fprintln(p.w, lead+l)
		lead = indent
	}
}

func (p *paper) section(title, text string) {
	if text == "" {
		return
	}
	p.gap()
	p.line("%s", title)
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		p.block("  ", paragraph)
	}
}

func (p *paper) numbered(title string, items []string) {
	if len(items) == 0 {
		return
	}
	p.gap()
	p.line("%s", title)
	for i, item := range items {
		p.block(fmt.Sprintf("  %d. ", i+1), item)
	}
}

// wrap breaks text into lines of at most columns characters. Words that are
// longer are broken too, but for addresses, which are there to be copied.
func wrap(text string, columns int) (lines []string) {
	line := ""
	flush := func() {
		if line != "" {
			lines = append(lines, line)
		}
		line = ""
	}
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= columns {
			line += " " + word
			continue
		}
		flush()
		address := strings.HasPrefix(word, "https://") && len(word) < 300
		for runes := []rune(word); len(runes) > columns && !address; runes = runes[columns:] {
			lines = append(lines, string(runes[:columns]))
			word = string(runes[columns:])
		}
		line = word
	}
	flush()
	return lines
}

func (d *statusPage) text(p *paper) {
	p.line("rwannotate %s   %s   up %s", d.Version, clock(d.Now), span(d.Now.Sub(d.Started)))
	p.gap()
	p.line("%s", strings.ToUpper(d.Summary)+d.levels())
	for _, e := range d.Errors {
		p.gap()
		p.incident(e)
	}
	p.gap()
	p.line("RWANNOTATE ITSELF: %s", d.Health)
	for _, f := range d.Findings {
		p.block(fmt.Sprintf("  %-8s  ", f.Severity), f.What)
		p.block("            ", f.Do)
	}
	p.line("  reading   %s, %s to go, last %s", plural(d.OpenSources, "source"), size(d.LagBytes), ago(p.now, d.LastRead))
	p.line("  read      %s, %s lines", size(d.BytesRead), number(d.LinesRead))
	p.line("  found     %s of known errors since the start", plural(int(d.Occurrences), "occurrence"))
	for _, s := range d.Sinks {
		p.line("  %-8s  %s", s.Name, s.Summary(d.Now))
	}
	p.line("  catalogue %s, %d disabled, %d refused, %s", plural(d.Catalog.Records, "record"), d.Catalog.Disabled, d.Catalog.Refused, d.Catalog.Digest)
	p.gap()
	p.line("More: /errors /errors/SLUG /sources /catalog /config   JSON: /api/v1/status")
}

// levels are the counts by severity, in brackets.
func (d *statusPage) levels() string {
	var parts []string
	for _, l := range d.Hour {
		parts = append(parts, l.Severity+" × "+number(l.Count))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (p *paper) incident(e incident) {
	p.line("%-8s  %s", strings.ToUpper(e.Severity), e.Name())
	p.block("          ", fmt.Sprintf("%s in the last hour, last %s: %s", times(e.LastHour), ago(p.now, e.Last), e.Place()))
	p.block("          ", e.Message)
	if e.DoFirst != "" {
		p.block("      Do: ", e.DoFirst)
	}
	p.line("    More: /errors/%s", e.Name())
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return number(n) + " times"
}

// Summary is one line on how a sink fares.
func (s Sink) Summary(now time.Time) string {
	state := "works, last success " + ago(now, s.LastSuccess)
	switch {
	case !s.FailingSince.IsZero():
		state = "failing for " + span(now.Sub(s.FailingSince))
	case s.LastSuccess.IsZero() && s.URL == "":
		state = "works"
	case s.LastSuccess.IsZero():
		state = "nothing sent yet"
	}
	state += fmt.Sprintf(", %s sent", number(s.SentEntries))
	if s.QueueMaxBytes > 0 || s.QueueEntries > 0 {
		state += fmt.Sprintf(", %s waiting (%s)", number(s.QueueEntries), size(s.QueueBytes))
	}
	if n := s.dropped(); n > 0 {
		state += fmt.Sprintf(", %s given up", number(n))
	}
	return state
}

func (d *errorsPage) text(p *paper) {
	if len(d.Errors) == 0 {
		p.line("%s", d.Empty())
		return
	}
	for i, o := range d.Errors {
		if i > 0 {
			p.gap()
		}
		p.occurrence(o)
	}
	p.gap()
	p.line("Filter: /errors?q=WORDS&severity=critical   JSON: /api/v1/errors")
}

// Empty says why nothing is listed.
func (d *errorsPage) Empty() string {
	if d.Known > 0 {
		return "No error here fits the filter."
	}
	return "No known error has been seen since rwannotate started."
}

func (p *paper) occurrence(o Occurrence) {
	p.line("%-8s  %s", strings.ToUpper(o.Severity), o.Name())
	p.block("          ", fmt.Sprintf("%s, first %s, last %s (%s)", times(o.Count), clock(o.First), clock(o.Last), ago(p.now, o.Last)))
	p.block("    From  ", strings.TrimSpace(o.Where()+" "+o.Origin))
	p.block("          ", o.Message)
	for l := range strings.SplitSeq(o.Line, "\n") {
		p.block("    | ", l)
	}
	p.line("    More  /errors/%s", o.Name())
}

func (d *recordPage) text(p *paper) {
	r := &d.Record
	p.line("%s  %s   %s", r.Severity, cmp.Or(r.Slug, r.ID), r.ID)
	p.block("       ", r.ErrorMessage)
	if d.Disabled != "" {
		p.section("Disabled", d.Disabled)
	}
	p.section("Note", d.Role())
	p.numbered("Do this", r.Solutions)
	p.section("What it means", r.Documentation)
	p.section("When it happens", strings.TrimSpace(r.TriggerScenarios+"\n\n"+r.CommonSituations))
	p.numbered("Prevent it", r.PreventionTips)
	p.gap()
	if len(d.Seen) == 0 {
		p.line("Not seen here since rwannotate started.")
	} else {
		p.line("Seen here")
	}
	for _, o := range d.Seen {
		p.block("  ", fmt.Sprintf("%s: %s, first %s, last %s (%s)", cmp.Or(o.Where(), o.Origin), times(o.Count), clock(o.First), clock(o.Last), ago(p.now, o.Last)))
		p.block("    ", o.Message)
		for l := range strings.SplitSeq(o.Line, "\n") {
			p.block("    | ", l)
		}
	}
	p.gap()
	if at := d.Location(); at != "" {
		p.line("Thrown at  %s", at)
	}
	for i, url := range append([]string{r.GithubURL}, r.References...) {
		lead := "           "
		if i > 0 {
			lead = "See also   "
		}
		if url != "" {
			p.line("%s%s", lead, url)
		}
	}
	p.block("", d.Provenance())
}

func (d *sourcesPage) text(p *paper) {
	for _, s := range d.Sources {
		p.line("%s", cmp.Or(s.Path, s.Input))
		state := fmt.Sprintf("at byte %s, %s to go, last read %s", number(s.Offset), size(s.Lag()), ago(p.now, s.LastRead))
		p.block("  ", state+s.Remarks())
		p.block("  error: ", s.LastError)
	}
	if len(d.Sources) == 0 {
		p.line("Nothing is being read.")
	}
	if d.More > 0 {
		p.line("… and %d more", d.More)
	}
	p.gap()
	p.block("", d.Summary())
}

// Summary is what happened since the start.
func (d *sourcesPage) Summary() string {
	return fmt.Sprintf("Since the start: %s opened, %s, %s, %s lost before they could be read, %s.", plural(int(d.Opened), "file"),
		plural(int(d.Rotations), "rotation"), plural(int(d.Truncations), "truncation"), size(d.LostBytes), plural(int(d.Errors), "error"))
}

// Remarks are what is out of the ordinary about a source.
func (s Source) Remarks() string {
	text := ""
	if s.Retired {
		text += ", rotated away or deleted: being read to its end"
	}
	if s.Truncated > 0 {
		text += fmt.Sprintf(", truncated %s", times(s.Truncated))
	}
	if s.LostBytes > 0 {
		text += fmt.Sprintf(", %s lost", size(s.LostBytes))
	}
	return text
}

func (d *catalogPage) text(p *paper) {
	p.line("%s, version %s, %s", plural(d.Records, "record"), d.Version, d.Digest)
	p.line("loaded %s", clock(d.Loaded))
	if d.ReloadError != "" {
		p.gap()
		p.line("THE LAST RELOAD FAILED (%s); the old catalogue stays in force:", clock(d.ReloadAt))
		for l := range strings.SplitSeq(d.ReloadError, "\n") {
			p.block("  ", l)
		}
	}
	p.list("Refused", d.RefusedList)
	var off []string
	for _, r := range d.DisabledOn {
		off = append(off, r.Slug+": "+r.Why)
	}
	p.list("Disabled", off)
	p.list("Warnings", d.WarningList)
	p.gap()
	for _, r := range d.List {
		p.line("%-8s  %-50s  %s", r.Severity, r.Name(), r.Component)
	}
	if d.More > 0 {
		p.line("… and %d more: /catalog?q=WORDS&severity=critical", d.More)
	}
}

func (p *paper) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	p.gap()
	p.line("%s", title)
	for _, item := range items {
		p.block("  - ", item)
	}
}

func (d *configPage) text(p *paper) {
	if len(d.Lines) == 0 {
		p.line("No configuration is known.")
	}
	for _, l := range d.Lines {
		if l.Origin == "" {
			p.line("%s", l.Text)
			continue
		}
		p.line("%-50s  # %s", l.Text, l.Origin)
	}
}

func (d *failure) text(p *paper) {
	p.block("", d.Error)
	p.block("", d.Do)
	if len(d.Near) > 0 {
		p.line("Close to it:")
	}
	for _, name := range d.Near {
		p.line("  /errors/%s", name)
	}
}
