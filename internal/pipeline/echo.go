package pipeline

import (
	"hash/maphash"
	"time"

	"github.com/rwannotate/rwannotate/internal/match"
)

// echoWindow is how long a reported error silences its repetitions in spans:
// RisingWave prints the error that started a recovery around each event of
// that recovery.
const echoWindow = 10 * time.Minute

// maxEchoes bounds the errors remembered.
const maxEchoes = 10_000

// echoes remembers what a stream has reported, by record and arguments. Times
// are those of the log records, so that a log read later gives the same events.
type echoes struct {
	seed maphash.Seed
	seen map[uint64]time.Time
}

// repeated reports whether res stands in a span only and was reported before.
// Anything else is noted as reported at the time.
func (e *echoes) repeated(res *match.Result, at time.Time) bool {
	if e.seen == nil {
		e.seed, e.seen = maphash.MakeSeed(), map[uint64]time.Time{}
	}
	key := e.key(res)
	last, known := e.seen[key]
	if res.Via == "span" && known && at.Sub(last) <= echoWindow {
		return true
	}
	if len(e.seen) >= maxEchoes {
		clear(e.seen)
	}
	e.seen[key] = at
	return false
}

func (e *echoes) key(res *match.Result) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	h.WriteString(res.Record.ID)
	for _, a := range res.Args {
		h.WriteByte(0)
		h.WriteString(a)
	}
	return h.Sum64()
}
