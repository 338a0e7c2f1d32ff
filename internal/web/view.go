package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// severities from the worst to the least.
func severities() []string {
	list := slices.Clone(catalog.Severities())
	slices.Reverse(list)
	return list
}

func severityRank(s string) int { return slices.Index(catalog.Severities(), s) }

// statusPage is what a person sees first.
type statusPage struct {
	Health   string     `json:"health"`  // ok, attention, failing
	Summary  string     `json:"summary"` // of the last hour, one sentence
	Worst    string     `json:"worst"`   // severity in the last hour, "" for none
	Findings []Finding  `json:"findings"`
	Hour     []perLevel `json:"last_hour"`
	Errors   []incident `json:"errors"` // of the last hour

	Version string    `json:"version"`
	Now     time.Time `json:"now"`
	Started time.Time `json:"started"`

	BytesRead    int64     `json:"bytes_read"`
	LinesRead    int64     `json:"lines_read"`
	OpenSources  int       `json:"open_sources"`
	LagBytes     int64     `json:"lag_bytes"`
	LastRead     time.Time `json:"last_read,omitzero"`
	Occurrences  int64     `json:"occurrences"` // since the start
	Fingerprints int       `json:"fingerprints"`

	Sinks   []Sink       `json:"sinks"`
	Catalog catalogBrief `json:"catalog"`
}

type perLevel struct {
	Severity string `json:"severity"`
	Count    int64  `json:"count"`
}

type catalogBrief struct {
	Version  string    `json:"version"`
	Digest   string    `json:"digest"`
	Loaded   time.Time `json:"loaded,omitzero"`
	Records  int       `json:"records"`
	Disabled int       `json:"disabled"`
	Refused  int       `json:"refused"`
	Warnings int       `json:"warnings"`
}

// incident is one record's occurrences in the last hour, of all pods.
type incident struct {
	Occurrence                     // of the newest
	Places     []string            `json:"places"` // component and pod
	pods       map[string][]string // by component
}

// Place sums the places up in one line.
func (i incident) Place() string {
	var out []string
	for _, component := range slices.Sorted(maps.Keys(i.pods)) {
		slices.Sort(i.pods[component])
		pods := several(i.pods[component])
		if n := len(i.pods[component]); n > 3 {
			pods = fmt.Sprintf("%d pods: %s", n, pods)
		}
		out = append(out, Occurrence{Component: component, Pod: pods}.Where())
	}
	return strings.Join(out, "; ")
}

func (s *Server) statusView(*http.Request) view {
	now := s.opt.Now()
	totals, sources, sinks := call(s.opt.Totals), call(s.opt.Sources), call(s.opt.Sinks)
	newest := s.seen.newest(now)
	_, occurrences := s.seen.snapshot()
	d := &statusPage{Version: s.opt.Version, Now: now.UTC(), Started: s.started.UTC(), BytesRead: totals.Bytes, LinesRead: totals.Lines,
		OpenSources: len(sources), Occurrences: occurrences, Fingerprints: len(newest), Sinks: cleanSinks(sinks), Catalog: s.catalogBrief(),
		Findings: s.findings(totals, sources, sinks, now), Errors: incidents(newest)}
	for _, source := range sources {
		d.LagBytes += source.Lag()
		if source.LastRead.After(d.LastRead) {
			d.LastRead = source.LastRead
		}
	}
	d.sumUp(s.seen.lastHour(now))
	return view{http.StatusOK, "status", "Status", d}
}

// sumUp says how the last hour was.
func (d *statusPage) sumUp(hour map[string]int64) {
	for _, severity := range severities() {
		if n := hour[severity]; n > 0 {
			d.Hour = append(d.Hour, perLevel{severity, n})
			d.Worst = cmp.Or(d.Worst, severity)
		}
	}
	d.Health = "ok"
	for _, f := range d.Findings {
		switch {
		case f.Severity == catalog.SeverityCritical:
			d.Health = "failing"
		case f.Severity != catalog.SeverityInfo && d.Health == "ok":
			d.Health = "attention"
		}
	}
	switch n := len(d.Errors); {
	case n == 1:
		d.Summary = "One known error in the last hour"
	case n > 1:
		d.Summary = fmt.Sprintf("%d known errors in the last hour", n)
	case d.OpenSources == 0:
		d.Summary = "Nothing is being read"
	case d.Now.Sub(d.Started) < time.Hour: // what was before is not known
		d.Summary = "No known errors since the start " + span(d.Now.Sub(d.Started)) + " ago"
	default:
		d.Summary = "No known errors in the last hour"
	}
}

// incidents gathers the fingerprints with occurrences in the last hour by
// record, the worst first.
func incidents(newest []Occurrence) []incident {
	out := []incident{}
	at := map[string]int{}
	for _, o := range newest {
		if o.LastHour == 0 {
			continue
		}
		i, known := at[o.ID]
		if !known {
			at[o.ID] = len(out)
			out = append(out, incident{o, []string{o.Where()}, map[string][]string{o.Component: {o.Pod}}})
			continue
		}
		sum := &out[i]
		sum.pods[o.Component] = append(sum.pods[o.Component], o.Pod)
		sum.Count += o.Count
		sum.LastHour += o.LastHour
		sum.Places = append(sum.Places, o.Where())
		if o.First.Before(sum.First) {
			sum.First = o.First
		}
		for m, n := range o.Minutes {
			sum.Minutes[m] += n
		}
	}
	slices.SortStableFunc(out, func(a, b incident) int {
		return cmp.Or(severityRank(b.Severity)-severityRank(a.Severity), b.Last.Compare(a.Last))
	})
	return out
}

func (s *Server) catalogBrief() catalogBrief {
	x := s.catalog.Load()
	return catalogBrief{clean(x.Version, maxName), clean(x.Digest, maxName), x.At.UTC(), len(x.Records), len(x.Disabled), len(x.Refused), len(x.Warnings)}
}

// filter is what a GET form asks for.
type filter struct {
	Text     string `json:"q"`
	Severity string `json:"severity"`
}

func filterOf(r *http.Request) filter {
	q := r.URL.Query()
	f := filter{clean(strings.TrimSpace(q.Get("q")), 100), q.Get("severity")}
	if severityRank(f.Severity) < 0 {
		f.Severity = ""
	}
	return f
}

// matches reports whether the filter's words all occur in the texts.
func (f filter) matches(severity string, texts ...string) bool {
	if f.Severity != "" && f.Severity != severity {
		return false
	}
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, word := range strings.Fields(strings.ToLower(f.Text)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// Set reports whether anything is left out.
func (f filter) Set() bool { return f != filter{} }

// errorsPage lists fingerprints.
type errorsPage struct {
	Filter filter       `json:"filter"`
	Known  int          `json:"known"` // before the filter
	Errors []Occurrence `json:"errors"`
}

func (s *Server) errorsView(r *http.Request) view {
	all := s.seen.newest(s.opt.Now())
	d := &errorsPage{Filter: filterOf(r), Known: len(all), Errors: []Occurrence{}}
	for _, o := range all {
		if d.Filter.matches(o.Severity, o.Slug, o.ID, o.Message, o.Component, o.Namespace, o.Pod, o.Node) {
			d.Errors = append(d.Errors, o)
		}
	}
	return view{http.StatusOK, "errors", "Errors", d}
}

// recordPage is a record as advice, with what was seen of it here.
type recordPage struct {
	Record   catalog.Record `json:"record"`
	Disabled string         `json:"disabled,omitempty"` // why it is not matched
	Seen     []Occurrence   `json:"seen"`
}

func (s *Server) recordView(r *http.Request) view {
	name := r.PathValue("name")
	if name == otherError { // the label of alerts on what has no label of its own
		return s.errorsView(r)
	}
	x := s.catalog.Load()
	record := x.find(name)
	if record == nil {
		return s.noRecord(name)
	}
	d := &recordPage{Record: *record, Disabled: x.disabled[record.ID], Seen: []Occurrence{}}
	for _, o := range s.seen.newest(s.opt.Now()) {
		if o.ID == record.ID {
			d.Seen = append(d.Seen, o)
		}
	}
	return view{http.StatusOK, "record", cmp.Or(record.Slug, record.ID), d}
}

// Role says how a text of this role is to be read; "" for root causes.
func (d *recordPage) Role() string {
	switch d.Record.Role {
	case catalog.RoleWrapper:
		return "This text only carries another error. The cause is what follows it in the log."
	case catalog.RoleSymptom:
		return "This is the consequence of a failure elsewhere. Look for the error that came first."
	}
	return ""
}

// Provenance says which source the record describes and who looked at it.
func (d *recordPage) Provenance() string {
	text := ""
	if d.Record.AnalyzedSha != "" {
		text = fmt.Sprintf("Describes RisingWave at commit %.10s (%.10s); line numbers and wording of your version may differ.", d.Record.AnalyzedSha, d.Record.AnalyzedAt)
	}
	if d.Record.Review == catalog.ReviewImported {
		text += " Imported; not reviewed here."
	}
	return strings.TrimSpace(text)
}

// Location is where the error is thrown.
func (d *recordPage) Location() string {
	if d.Record.FilePath == "" || d.Record.LineNumber == 0 {
		return d.Record.FilePath
	}
	return fmt.Sprintf("%s:%d", d.Record.FilePath, d.Record.LineNumber)
}

// sourcesPage lists what is read.
type sourcesPage struct {
	Sources     []Source `json:"sources"`
	Opened      int64    `json:"opened"`
	Rotations   int64    `json:"rotations"`
	Truncations int64    `json:"truncations"`
	LostBytes   int64    `json:"lost_bytes"`
	Errors      int64    `json:"errors"`
	More        int      `json:"more"` // not listed
}

const maxRows = 500

func (s *Server) sourcesView(*http.Request) view {
	t := call(s.opt.Totals)
	d := &sourcesPage{Sources: []Source{}, Opened: t.Opened, Rotations: t.Rotations, Truncations: t.Truncations, LostBytes: t.LostBytes, Errors: t.SourceErrors}
	all := slices.Clone(call(s.opt.Sources))
	slices.SortStableFunc(all, func(a, b Source) int { // what needs a look first
		return cmp.Or(cmp.Compare(worth(b), worth(a)), cmp.Compare(a.Path, b.Path))
	})
	d.More = max(0, len(all)-maxRows)
	for _, source := range all[:len(all)-d.More] {
		for _, text := range []*string{&source.Path, &source.Namespace, &source.Pod, &source.Container} {
			*text = clean(*text, maxName)
		}
		source.LastError = clean(source.LastError, maxMessage)
		d.Sources = append(d.Sources, source)
	}
	return view{http.StatusOK, "sources", "Sources", d}
}

// worth is how much a source needs to be looked at.
func worth(s Source) int {
	switch {
	case s.LastError != "":
		return 3
	case s.LostBytes > 0:
		return 2
	case s.Lag() > 1<<20:
		return 1
	}
	return 0
}

func cleanSinks(sinks []Sink) []Sink {
	out := slices.Clone(sinks)
	for i := range out {
		out[i].Name, out[i].URL, out[i].LastError = clean(out[i].Name, maxName), clean(out[i].URL, maxName), clean(out[i].LastError, maxMessage)
		for _, counts := range []*map[string]int64{&out[i].Emitted, &out[i].Dropped, &out[i].Adjusted} {
			*counts = cleanKeys(*counts)
		}
	}
	return out
}

func cleanKeys(counts map[string]int64) map[string]int64 {
	out := make(map[string]int64, len(counts))
	for key, n := range counts {
		out[clean(key, maxName)] += n
	}
	return out
}

// catalogPage is the catalogue in force, and what is wrong with it.
type catalogPage struct {
	catalogBrief
	ReloadAt    time.Time        `json:"reload_at,omitzero"`
	ReloadError string           `json:"reload_error"`
	RefusedList []string         `json:"refused_records"`
	WarningList []string         `json:"lint_warnings"`
	DisabledOn  []disabledRecord `json:"disabled_records"`
	Filter      filter           `json:"filter"`
	List        []recordBrief    `json:"list"`
	More        int              `json:"more"` // that the filter lets through and are not listed
}

type disabledRecord struct {
	Slug string `json:"slug"`
	Why  string `json:"why"`
}

type recordBrief struct {
	ID        string `json:"id"`
	Slug      string `json:"slug"`
	Severity  string `json:"severity"`
	Role      string `json:"role"`
	Component string `json:"component"`
	Message   string `json:"message"`
	Count     int64  `json:"count"` // seen here, among the newest fingerprints
}

// Name is what the record is called in links.
func (r recordBrief) Name() string { return cmp.Or(r.Slug, r.ID) }

func (s *Server) catalogView(r *http.Request) view {
	x, last := s.catalog.Load(), s.lastReload()
	d := &catalogPage{catalogBrief: s.catalogBrief(), ReloadAt: last.at.UTC(), Filter: filterOf(r), List: []recordBrief{},
		RefusedList: problems(x.Refused), WarningList: problems(x.Warnings), DisabledOn: []disabledRecord{}}
	if last.err != nil {
		d.ReloadError = cleanBlock(last.err.Error(), maxLine)
	}
	for _, off := range x.Catalog.Disabled {
		d.DisabledOn = append(d.DisabledOn, disabledRecord{clean(cmp.Or(off.Record.Slug, off.Record.ID), maxName), clean(off.Why, maxMessage)})
	}
	counts := map[string]int64{}
	for _, o := range s.seen.newest(s.opt.Now()) {
		counts[o.ID] += o.Count
	}
	for i := range x.Catalog.Records {
		rec := &x.Catalog.Records[i]
		if !d.Filter.matches(rec.Severity, rec.Slug, rec.ID, rec.ErrorMessage, rec.Component, rec.Documentation, strings.Join(rec.Tags, " ")) {
			continue
		}
		if len(d.List) == maxRows {
			d.More++
			continue
		}
		d.List = append(d.List, recordBrief{rec.ID, rec.Slug, rec.Severity, rec.Role, rec.Component, clean(rec.ErrorMessage, maxArg), counts[rec.ID]})
	}
	return view{http.StatusOK, "catalog", "Catalogue", d}
}

// problems as sentences, as many as anybody reads.
func problems(list []catalog.Problem) []string {
	const most = 100
	out := []string{}
	for i, p := range list {
		if i == most {
			out = append(out, fmt.Sprintf("… and %d more; `rwannotate patterns lint` names them all", len(list)-most))
			break
		}
		p.Excerpt = ""
		out = append(out, clean(p.String(), maxMessage))
	}
	return out
}

type configPage struct {
	Lines []ConfigLine `json:"lines"`
}

func (s *Server) configView(*http.Request) view {
	d := &configPage{Lines: []ConfigLine{}}
	for _, l := range call(s.opt.Config) {
		d.Lines = append(d.Lines, ConfigLine{clean(l.Text, maxMessage), clean(l.Origin, maxName)})
	}
	return view{http.StatusOK, "config", "Configuration", d}
}

// failure is a page that is not there.
type failure struct {
	Error string   `json:"error"`
	Do    string   `json:"do"`
	Near  []string `json:"near,omitempty"` // names that come close
}

func (s *Server) notFound() view {
	do := "The pages are /, /errors, /sources, /catalog and /config."
	if !s.opt.Page {
		do = "The status page is off (web.page). There are /metrics, /-/healthy and /-/ready."
	}
	return view{http.StatusNotFound, "failure", "Not found", &failure{Error: "There is no such page.", Do: do}}
}

func (s *Server) noRecord(name string) view {
	d := &failure{Error: fmt.Sprintf("The catalogue has no record called %q.", clean(name, 80)),
		Do: "Records are named by id or slug. It may have been renamed, or belong to another version of the catalogue."}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == ' ' })
	d.Near = closest(s.catalog.Load(), words, 5)
	return view{http.StatusNotFound, "failure", "No such record", d}
}

// closest are the slugs that have most of the words, at least half of them.
func closest(x *index, words []string, most int) []string {
	score := map[string]int{}
	var names []string
	for slug := range x.bySlug {
		parts := strings.Split(slug, "-")
		for _, w := range words {
			if slices.Contains(parts, w) {
				score[slug]++
			}
		}
		if score[slug] > 0 && 2*score[slug] >= len(words) {
			names = append(names, slug)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(score[b]-score[a], strings.Compare(a, b)) })
	return names[:min(most, len(names))]
}

// CatalogRecords is the number of records in force.
func (d *statusPage) CatalogRecords() int64 { return int64(d.Catalog.Records) }
