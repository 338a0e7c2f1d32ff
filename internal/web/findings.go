package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// Finding is something that is wrong with rwannotate itself, or may be.
type Finding struct {
	Severity string `json:"severity"` // info, warning, error, critical
	What     string `json:"what"`
	Do       string `json:"do"`
	Page     string `json:"page,omitempty"` // where more is told
}

// Behind this much, or silent for this long with bytes to read, a source is
// not keeping up.
const (
	farBehind = 64 << 20
	stalled   = 10 * time.Minute
)

// findings are what a person should know before trusting the page, the worst
// first.
func (s *Server) findings(t Totals, sources []Source, sinks []Sink, now time.Time) []Finding {
	out := []Finding{}
	add := func(severity, page, what, do string) { out = append(out, Finding{severity, what, do, page}) }

	if err := s.alive(); err != nil {
		add(catalog.SeverityCritical, "", "The pipeline does not move: "+clean(err.Error(), maxMessage),
			"Look at what reads standard output: if it is stuck, rwannotate waits for it. Otherwise restart rwannotate, it goes on where it was.")
	}
	if err := s.ready(); err != nil {
		add(catalog.SeverityCritical, "catalog", "No record of the catalogue can be matched.", "See which records are refused and why.")
	}
	if last := s.lastReload(); last.err != nil {
		add(catalog.SeverityError, "catalog", fmt.Sprintf("The reload of %s failed; the old configuration and catalogue stay in force.", clock(last.at)),
			"Correct what is named under Catalogue and reload again.")
	}
	if n := len(s.catalog.Load().Refused); n > 0 {
		add(catalog.SeverityWarning, "catalog", fmt.Sprintf("%s of the catalogue cannot be used.", plural(n, "record")),
			"Their errors are not recognised. Correct the files named under Catalogue; `rwannotate patterns lint` explains them.")
	}
	for _, sink := range sinks {
		sinkFindings(sink, now, add)
	}
	sourceFindings(t, sources, now, add)
	for _, text := range call(s.opt.Notices) {
		add(catalog.SeverityInfo, "", clean(text, maxMessage), "")
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return severityRank(b.Severity) - severityRank(a.Severity) })
	return out
}

func sinkFindings(s Sink, now time.Time, add func(severity, page, what, do string)) {
	name := clean(s.Name, maxName)
	if !s.FailingSince.IsZero() {
		what := fmt.Sprintf("%s has taken nothing for %s; waiting: %s (%s).", name, span(now.Sub(s.FailingSince)), plural(int(s.QueueEntries), "event"), size(s.QueueBytes))
		if s.LastError != "" {
			what += " It says: " + clean(s.LastError, maxArg)
		}
		add(catalog.SeverityError, "", what, "Nothing is lost while there is room in the queue. Check the address, the credentials and whether it runs: `rwannotate config validate --online`.")
	}
	if s.QueueMaxBytes > 0 && s.QueueBytes > s.QueueMaxBytes*9/10 {
		add(catalog.SeverityError, "", fmt.Sprintf("The queue for %s is full (%s of %s).", name, size(s.QueueBytes), size(s.QueueMaxBytes)),
			"Files now wait where they are, and must not be deleted by rotation before they are read; standard input loses the oldest events. Get the sink going or raise state.queue_max_bytes.")
	}
	if n := s.dropped(); n > 0 {
		add(catalog.SeverityWarning, "", fmt.Sprintf("%s could not be given %s (%s).", name, plural(int(n), "event"), reasons(s.Dropped)),
			"They are in the log of rwannotate and, with a state directory, in its dead-letter file.")
	}
}

func sourceFindings(t Totals, sources []Source, now time.Time, add func(severity, page, what, do string)) {
	if len(sources) == 0 {
		add(catalog.SeverityWarning, "config", "No file matches the inputs, and nothing comes in on standard input.",
			"Check the globs under Configuration, and that the log directory is mounted and readable.")
	}
	var failing, silent []string
	var lag int64
	for _, s := range sources {
		lag += s.Lag()
		switch {
		case s.LastError != "":
			failing = append(failing, clean(s.Path, maxName))
		case s.Lag() > 0 && !s.LastRead.IsZero() && now.Sub(s.LastRead) > stalled:
			silent = append(silent, clean(s.Path, maxName))
		}
	}
	if len(failing) > 0 {
		add(catalog.SeverityWarning, "sources", "Cannot be read just now: "+several(failing)+".", "It is tried again and again. The reason stands under Sources; most often it is a permission.")
	}
	if len(silent) > 0 {
		add(catalog.SeverityError, "sources", fmt.Sprintf("Not read for %s although there is more: %s.", span(stalled), several(silent)), "Rwannotate waits for standard output or for room in a queue. See what is said about those.")
	}
	if lag > farBehind {
		add(catalog.SeverityInfo, "sources", size(lag)+" are still to be read.", "A backlog is normal after a start. What is older appears first.")
	}
	if t.LostBytes > 0 {
		add(catalog.SeverityWarning, "sources", size(t.LostBytes)+" were truncated or deleted before they could be read.", "Rotate by renaming, or keep files longer.")
	}
}

func several(list []string) string {
	if len(list) > 3 {
		return strings.Join(list[:3], ", ") + fmt.Sprintf(" and %d more", len(list)-3)
	}
	return strings.Join(list, ", ")
}
