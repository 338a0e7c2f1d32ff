package loki

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// teller logs what an endpoint does, each kind of answer once a minute.
type teller struct {
	log  zerolog.Logger
	last map[string]time.Time
	down bool
}

func newTeller(endpoint, shown string, log zerolog.Logger) *teller {
	return &teller{log: log.With().Str("endpoint", endpoint).Str("url", shown).Logger(), last: map[string]time.Time{}}
}

// answer logs a refusal, or that an endpoint works again.
func (t *teller) answer(v verdict, a answer, g gate, now time.Time) {
	if v.do == accepted {
		if t.down {
			t.down = false
			if !t.may("works", now) {
				return
			}
			t.log.Info().Str("after", now.Sub(g.since).Round(time.Second).String()).Msg("endpoint takes entries again")
		}
		return
	}
	t.down = t.down || v.do == later
	if !t.may(fmt.Sprint(a.status, v.do, v.reason), now) {
		return
	}
	ev := t.log.Warn()
	if v.hold {
		ev = t.log.Error()
	}
	if a.err != nil {
		ev = ev.Err(a.err)
	}
	if v.wait > 0 {
		ev = ev.Str("retry_after", v.wait.String())
	}
	ev.Int("status", a.status).Str("answer", shorten(a.body, 300)).Str("reason", string(v.reason)).Msg(v.sentence())
}

// queue logs that the queue could not be read or written.
func (t *teller) queue(err error, now time.Time) {
	if t.may("queue", now) {
		t.log.Warn().Err(err).Msg("queue of events cannot be used; trying again")
	}
}

// may limits each kind of message to one a minute.
func (t *teller) may(kind string, now time.Time) bool {
	if last, ok := t.last[kind]; ok && now.Sub(last) < time.Minute {
		return false
	}
	t.last[kind] = now // a handful of kinds: statuses and reasons
	return true
}

// sentence says what happens now.
func (v verdict) sentence() string {
	switch {
	case v.hold:
		return "endpoint refuses everything: events wait in the queue until its configuration or ours is put right"
	case v.do == slower:
		return "endpoint limits this stream: its events wait, others do not"
	case v.do == fewer:
		return "endpoint does not want this stream: its events are sent with fewer labels"
	case v.do == halves:
		return "endpoint refuses a whole request: it is sent in parts to find the reason"
	case v.do == inspect:
		return "endpoint refuses some entries: they are mended or dropped, the others are stored"
	}
	if v.reason == RateLimited {
		return "endpoint limits our rate: events wait in the queue"
	}
	return "endpoint does not work: events wait in the queue"
}
