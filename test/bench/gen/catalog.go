package gen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// minLiteral is the shortest literal, in bytes, of a record we make.
const minLiteral = 12

// seedErrors are the first records of every catalogue, under their published
// ids.
var seedErrors = [seedCount]struct {
	id, file string
	line     int
	text     string
}{
	{"65df22fd2e2f78e4", "src/meta/src/stream/stream_graph/fragment.rs", 1627,
		"snapshot backfill epoch set again: {} {} {}"},
	{"d35cdfb22a5e48fe", "src/stream/src/executor/backfill/snapshot_backfill/consume_upstream/upstream_table_trait.rs", 121,
		"mismatch initial vnode bitmap: {:?}, expect: {:?}"},
	{"30ef04567ce7f266", "src/stream/src/executor/backfill/snapshot_backfill/executor.rs", 1126,
		"snapshot backfill paused, but received snapshot chunk"},
	{"a1174e815cc32dac", "src/stream/src/executor/backfill/snapshot_backfill/executor.rs", 428,
		"should not update vnode bitmap during consuming log store"},
	{"f223316b6872918a", "src/stream/src/executor/source/source_backfill_executor.rs", 1167,
		"Unexpected backfill state: {:?}"},
}

// Catalog returns n records with distinct literals of at least 12 bytes: the
// five seed errors, errors of RisingWave's source, and invented ones once
// those are used up. A smaller catalogue is the beginning of a larger one. No
// literal occurs in a record of Write that is not a hit.
func Catalog(n int) []catalog.Record {
	templates := knownErrors(LoadTemplates(), n)
	records := make([]catalog.Record, len(templates))
	for i, t := range templates {
		records[i] = newRecord(i, t)
		if i < seedCount {
			records[i].ID = seedErrors[i].id
		}
	}
	return records
}

// Literals returns the longest literal of each record that Catalog(n) returns,
// in its order.
func Literals(n int) []string {
	templates := knownErrors(LoadTemplates(), n)
	literals := make([]string, len(templates))
	for i, t := range templates {
		literals[i] = t.Literal()
	}
	return literals
}

// knownErrors chooses the n templates that Catalog makes records of.
func knownErrors(ts Templates, n int) []Template {
	candidates := make([]Template, 0, len(ts.Errors))
	for _, i := range rand.New(rand.NewPCG(1, 0)).Perm(len(ts.Errors)) {
		candidates = append(candidates, ts.Errors[i])
	}
	chosen := make([]Template, 0, n)
	taken := map[string]bool{}
	noise := healthyText(ts)
	take := func(t Template) {
		lit := t.Literal()
		if len(chosen) < n && len(lit) >= minLiteral && !taken[lit] && !strings.Contains(noise, lit) && !straddles(noise, lit) {
			taken[lit] = true
			chosen = append(chosen, t)
		}
	}
	for _, s := range seedErrors {
		take(Template{Level: "error", File: s.file, Line: s.line, Text: s.text})
	}
	for _, t := range candidates {
		take(t)
	}
	for r := rand.New(rand.NewPCG(2, 0)); len(chosen) < n; {
		take(invented(r))
	}
	return chosen
}

// straddles reports whether lit occurs where a healthy message ends and its
// first field begins: "… is missing" followed by "actor_id=7".
func straddles(noise, lit string) bool {
	for i := range len(lit) {
		if lit[i] != ' ' {
			continue
		}
		begins := func(name string) bool {
			return strings.HasPrefix(lit[i+1:], name) || strings.HasPrefix(name, lit[i+1:])
		}
		if slices.ContainsFunc(fieldNames, begins) && strings.Contains(noise, lit[:i]+" \n") {
			return true
		}
	}
	return false
}

// healthyText is all fixed text that Write puts into records around an error
// and into those without one.
func healthyText(ts Templates) string {
	var b strings.Builder
	for _, list := range [][]Template{ts.Info, ts.Debug, ts.Warn, ts.Log} {
		for _, t := range list {
			for _, p := range t.pieces() {
				b.WriteString(p.Literal)
				if p.Hole != "" {
					b.WriteByte('\n')
				}
			}
			b.WriteString(" \n") // fields follow a message
		}
	}
	b.WriteString("actor exit with error actor_id=\nExecutor error: \nrecovery start!\n")
	b.WriteString(backtrace)
	return b.String()
}

var inventedWords = strings.Fields(`quorum lease shard handover replica ledger cursor segment tablet ballot fence snapshotter rebalancer
	watermark tombstone manifest bucket partitioner dispatcher coordinator arbiter spiller prefetch allocator histogram sketch bloom
	offset checkpointing compensation rollback follower learner witness heartbeat membership gossip throttle credit backlog drainage
	serializer dictionary encoder cipher keyring envelope digest`)

var inventedVerbs = strings.Fields("expired vanished diverged overlapped stalled regressed underflowed collided detached mismatched")

// invented makes up an error that RisingWave does not have.
func invented(r *rand.Rand) Template {
	text := fmt.Sprintf("%s %s %s while the %s %s", pick(r, inventedWords), pick(r, inventedWords), pick(r, inventedVerbs),
		pick(r, inventedWords), pick(r, inventedWords))
	switch r.IntN(4) {
	case 0:
		text += ": {}"
	case 1:
		text = "{} " + text
	case 2:
		text += ", expected {:?} but got {:?}"
	}
	return Template{Level: "error", File: "src/common/src/invented.rs", Line: 1 + r.IntN(3000), Text: text}
}

// newRecord makes a catalogue record of a template, with as much text around
// it as the published ones have.
func newRecord(i int, t Template) catalog.Record {
	sum := sha256.Sum256([]byte(t.Text))
	const commit = "6469eb736d691e8e9b8a419a57edd6429ca77417"
	return catalog.Record{
		ID:             hex.EncodeToString(sum[:8]),
		Repo:           "risingwavelabs/risingwave",
		Slug:           fmt.Sprintf("%05d-%s", i, catalog.Slug(t.Text)),
		ErrorMessage:   t.Text,
		MessagePattern: catalog.EscapedPattern(t.Text),
		ErrorType:      "exception",
		Severity:       catalog.SeverityError,
		FilePath:       t.File,
		LineNumber:     t.Line,
		GithubURL:      fmt.Sprintf("https://github.com/risingwavelabs/risingwave/blob/%s/%s#L%d", commit, t.File, t.Line),
		Documentation: "This text stands in for an explanation of the length that the published records have. The component checks a condition " +
			"that its design takes for granted, finds that it does not hold, and returns this error instead of going on with a state that it no " +
			"longer understands. The job restarts from its last checkpoint, and if the condition still does not hold the error comes back.",
		TriggerScenarios: "Raised while a barrier is handled, after the state of the previous epoch was committed and before the next one is " +
			"started, when the two sides of the exchange disagree about what has been sent.",
		CommonSituations: "Seen after a change of parallelism during a backfill, after an upgrade with jobs in flight, and where two sources of " +
			"configuration contradict each other.",
		Solutions: []string{
			"Look for the first error of the same job in the log of the meta node; this one is often its consequence.",
			"Let the automatic recovery run once; if the error returns, drop the job and create it again with a smaller backfill rate limit.",
			"If it persists on the newest patch release, report it with the log of ten minutes around its first appearance.",
		},
		HandlingStrategy: "retry",
		PreventionTips:   []string{"Do not rescale a job while it is backfilling.", "Keep all nodes on one version."},
		Tags:             []string{"rust", "streaming", "backfill"},
		BackgroundTag:    "internal-invariant-violation",
		Review:           "imported",
		AnalyzedSha:      commit,
		AnalyzedAt:       "2026-09-14T16:17:12.679Z",
	}
}
