package loki

import (
	"math/rand/v2"
	"time"
)

// backoff bounds the pauses between tries.
type backoff struct{ min, max time.Duration }

// after is how long to wait after the n-th failure in a row: anything up to
// min, 2 min, 4 min … max (full jitter), so that many clients do not come back
// in step.
func (b backoff) after(n int) time.Duration {
	limit := b.min
	for range min(n-1, 62) {
		if limit >= b.max/2 {
			limit = b.max
			break
		}
		limit *= 2
	}
	return limit/20 + rand.N(max(limit-limit/20, 1))
}

// gate keeps requests away from an endpoint that does not work. After a
// failure it is shut for a while, then it lets one request through to see;
// the others follow once one has been answered.
type gate struct {
	backoff  backoff
	failures int // in a row
	since    time.Time
	until    time.Time
	probing  bool
	round    uint64 // grows with each failure that counted
}

// open says whether a request may start now. Whoever starts one calls enter.
func (g *gate) open(now time.Time) bool {
	return g.failures == 0 || !g.probing && !now.Before(g.until)
}

// enter returns the round, to be handed to fail.
func (g *gate) enter() uint64 {
	g.probing = g.failures > 0
	return g.round
}

// fail shuts the gate. Several requests that were under way together fail
// together and count as one failure. wait is what the server asked for.
func (g *gate) fail(round uint64, wait time.Duration, now time.Time) {
	if round == g.round {
		g.round++
		g.failures++
		g.probing = false
		if g.failures == 1 {
			g.since = now
		}
		g.until = now.Add(g.backoff.after(g.failures))
	}
	if asked := now.Add(wait); asked.After(g.until) {
		g.until = asked
	}
}

// pass opens the gate: the endpoint has answered.
func (g *gate) pass() {
	g.failures, g.probing = 0, false
}
