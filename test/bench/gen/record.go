package gen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// kind says how a field was recorded, which decides how each form prints it.
type kind int

const (
	display kind = iota // %value
	debug               // ?value, already in Debug form
	str                 // a string: quoted in text
	number
)

type field struct {
	name, value string
	kind        kind
}

type span struct {
	name   string
	fields []field
}

// record is one event before it takes a form.
type record struct {
	time    time.Time
	level   string
	thread  string // printed in standalone mode only
	spans   []span
	target  string
	message string
	fields  []field
	file    string
	line    int
	panicAt string // set for a panic, which goes to stderr as plain text in every form
}

// healthy makes a record that nobody needs to read.
func (g *generator) healthy() record {
	r := g.rand
	var t Template
	switch p := r.IntN(100); {
	case p < 82:
		t = skewed(r, g.templates.Info)
	case p < 96:
		t = skewed(r, g.templates.Warn)
	default:
		t = skewed(r, g.templates.Debug)
	}
	rec := g.record(t, strings.ToUpper(t.Level))
	rec.spans = g.spans(rec.target)
	rec.fields = someFields(r)
	return rec
}

// record fills in a template.
func (g *generator) record(t Template, level string) record {
	g.now = g.now.Add(time.Duration(g.rand.IntN(4_000_000)))
	return record{
		time: g.now, level: level, target: t.Target(), file: t.File, line: t.Line,
		thread:  threadOf(t.File),
		message: fill(g.rand, t),
	}
}

// skewed favours the front of the list: a few templates make most of a log.
func skewed(r *rand.Rand, from []Template) Template {
	x := r.Float64()
	return from[int(x*x*x*float64(len(from)))]
}

// fill gives each placeholder of a template a value.
func fill(r *rand.Rand, t Template) string {
	var b strings.Builder
	for _, p := range t.pieces() {
		b.WriteString(p.Literal)
		if p.Hole != "" {
			b.WriteString(value(r, p.Hole))
		}
	}
	return b.String()
}

func threadOf(file string) string {
	switch {
	case strings.HasPrefix(file, "src/meta"):
		return "rw-standalone-meta"
	case strings.HasPrefix(file, "src/frontend"):
		return "rw-standalone-frontend"
	case strings.HasPrefix(file, "src/storage"):
		return "rw-standalone-compactor"
	case strings.HasPrefix(file, "src/stream"):
		return "rw-streaming"
	default:
		return "rw-main"
	}
}

var fieldNames = []string{"actor_id", "fragment_id", "table_id", "prev_epoch", "curr_epoch", "worker_id", "elapsed", "rows", "splits", "job_id",
	"table_name", "sst_ids", "addr", "state"}

// someFields returns a few fields, none twice.
func someFields(r *rand.Rand) (fields []field) {
	for _, i := range r.Perm(len(fieldNames))[:2+r.IntN(7)] {
		fields = append(fields, someField(r, fieldNames[i]))
	}
	return fields
}

func someField(r *rand.Rand, name string) field {
	switch name {
	case "prev_epoch", "curr_epoch":
		return field{name, strconv.FormatInt(epoch(r), 10), number}
	case "rows":
		return field{name, strconv.Itoa(r.IntN(1_000_000)), number}
	case "elapsed":
		return field{name, fmt.Sprintf("%d.%06dms", r.IntN(2000), r.IntN(1_000_000)), debug}
	case "splits":
		return field{name, fmt.Sprintf(`["%d", "%d"]`, r.IntN(64), r.IntN(64)), debug}
	case "table_name":
		return field{name, pick(r, relations), str}
	case "sst_ids":
		return field{name, debugValue(r), debug}
	case "addr":
		return field{name, pick(r, hosts), display}
	case "state":
		return field{name, pick(r, states), debug}
	default:
		return field{name, strconv.Itoa(1 + r.IntN(40_000)), display}
	}
}

func (g *generator) spans(target string) []span {
	r := g.rand
	switch {
	case strings.HasPrefix(target, "risingwave_stream") && r.IntN(3) > 0:
		actor := strconv.Itoa(1 + r.IntN(40_000))
		return []span{
			{"actor", []field{{"otel.name", "Actor " + actor, str}, {"actor_id", actor, display},
				{"prev_epoch", strconv.FormatInt(epoch(r), 10), number}, {"curr_epoch", strconv.FormatInt(epoch(r), 10), number}}},
			{"executor", []field{{"otel.name", fmt.Sprintf("%s %X", pick(r, executors), r.IntN(1<<40)), str}, {"message", "barrier", display},
				{"chunk_size", strconv.Itoa(r.IntN(1024)), number}}},
		}
	case strings.HasPrefix(target, "risingwave_frontend") && r.IntN(2) == 0:
		return []span{{"handle_query", []field{{"mode", "extended query", str}, {"session_id", strconv.Itoa(r.IntN(9000)), number},
			{"sql", g.sql(), display}}}}
	case strings.HasPrefix(target, "risingwave_meta") && r.IntN(6) == 0:
		return []span{{"barrier", []field{{"prev_epoch", strconv.FormatInt(epoch(r), 10), number}}}}
	default:
		return nil
	}
}

// sql is a statement; now and then one that fills several 16 KiB pieces of a
// container runtime.
func (g *generator) sql() string {
	r := g.rand
	columns := 1 + r.IntN(6)
	if r.IntN(400) == 0 {
		columns = 1000 + r.IntN(2000)
	}
	var b strings.Builder
	b.WriteString("SELECT ")
	for i := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("attr_")
		b.WriteString(strconv.Itoa(i))
	}
	fmt.Fprintf(&b, ` FROM %s WHERE "status" = 'open' AND id > %d`, pick(r, relations), r.IntN(1_000_000))
	return b.String()
}
