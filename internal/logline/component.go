package logline

import (
	"cmp"
	"strconv"
	"strings"
)

// Components as events name them.
const (
	Meta          = "meta"
	Compute       = "compute"
	Compactor     = "compactor"
	Frontend      = "frontend"
	Standalone    = "standalone"
	ConnectorNode = "connector-node"
)

// identify fills in what the parts of the record tell about its writer.
func (r *Record) identify() {
	if r.Target != "" {
		r.Component = crateComponent(r.Target)
	}
	if r.Component == "" && r.File != "" {
		r.Component = FileComponent(r.File)
	}
	if r.Component == "" {
		r.Component = nameComponent(strings.TrimPrefix(r.Thread, "rw-standalone-"))
	}
	if r.ActorID == "" {
		r.ActorID = r.actorID()
	}
	for _, s := range r.Segments {
		if s.Kind == Message && r.Unlogged == 0 {
			r.Unlogged = count(cmp.Or(digitsAfter(s.Text, suppressed+"="), digitsAfter(s.Text, suppressed+": ")))
		}
	}
}

// suppressed is the field of RisingWave's LogSuppressor, which logs one of many and
// counts the others until the next.
const suppressed = "suppressed_count"

// count reads a number of occurrences; what is none is 0.
func count(digits string) int64 {
	n, _ := strconv.ParseUint(digits, 10, 32)
	return int64(n)
}

// crates maps the first part of a target, longest prefix first, to the
// component that runs it. Crates that every node runs (object store, RPC
// client, connectors, storage) are not here.
var crates = [...]struct{ prefix, component string }{
	{"risingwave_connector_node", ConnectorNode},
	{"risingwave_storage::hummock::compactor", Compactor},
	{"risingwave_compactor", Compactor},
	{"risingwave_meta", Meta},
	{"risingwave_stream", Compute},
	{"risingwave_compute", Compute},
	{"risingwave_batch", Compute},
	{"risingwave_frontend", Frontend},
	{"pgwire", Frontend},
}

func crateComponent(target string) string {
	for _, c := range crates {
		if strings.HasPrefix(target, c.prefix) {
			return c.component
		}
	}
	return ""
}

// FileComponent maps a source file of RisingWave, such as a panic names, to the
// component that runs it; "" where several do.
func FileComponent(file string) string {
	i := strings.Index(file, "src/")
	if i < 0 {
		return ""
	}
	dir, rest, _ := strings.Cut(file[i+len("src/"):], "/")
	switch dir {
	case "meta":
		return Meta
	case "stream", "compute", "batch":
		return Compute
	case "frontend":
		return Frontend
	case "storage":
		if strings.HasPrefix(rest, "compactor") || strings.Contains(rest, "/compactor/") {
			return Compactor
		}
	case "utils":
		if strings.HasPrefix(rest, "pgwire") {
			return Frontend
		}
	}
	return ""
}

// nameComponent maps the name of a container, unit, pod or thread.
func nameComponent(name string) string {
	for _, c := range [...]string{"compactor", "compute", "frontend", "meta"} {
		if strings.Contains(name, c) {
			return c
		}
	}
	for _, s := range [...]string{"standalone", "single_node", "single-node", "playground"} {
		if strings.Contains(name, s) {
			return Standalone
		}
	}
	return ""
}

// ComponentOf decides which component wrote a record: what the record says,
// else the first of the names (container, unit, pod, path) that tells, else
// the node that runs the crate most often.
func ComponentOf(r *Record, names ...string) string {
	if r.Component != "" {
		return r.Component
	}
	for _, n := range names {
		if c := nameComponent(n); c != "" {
			return c
		}
	}
	if strings.HasPrefix(r.Target, "risingwave_") || strings.Contains(r.File, "src/") {
		return Compute
	}
	return ""
}

// actorID looks for the id in the event, then in its spans, then in the
// sentence that the barrier manager writes about a dead actor.
func (r *Record) actorID() string {
	for _, kind := range [...]Kind{Message, Span} {
		for _, s := range r.Segments {
			if s.Kind != kind {
				continue
			}
			for _, key := range [...]string{"actor_id=", "actor_id: "} {
				if id := digitsAfter(s.Text, key); id != "" {
					return id
				}
			}
		}
	}
	for _, s := range r.Segments {
		if i := strings.Index(s.Text, " exited unexpectedly"); i > 0 && s.Kind != SQL {
			if j := strings.LastIndex(s.Text[:i], "Actor "); j >= 0 {
				return digitsAfter(s.Text[j:], "Actor ")
			}
		}
	}
	return ""
}

// digitsAfter returns the number behind the first key that is a word of its
// own: "actor_id=", not "upstream_actor_id=".
func digitsAfter(s, key string) string {
	for {
		i := strings.Index(s, key)
		if i < 0 {
			return ""
		}
		own := i == 0 || !isWordByte(s[i-1])
		s = s[i+len(key):]
		if own {
			return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
		}
	}
}
