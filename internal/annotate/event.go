// Package annotate turns a log record and the known error found in it into
// an event, and an event into its bytes. It is pure: no I/O, no clock.
//
// An Event holds only what varies from one occurrence to the next. The text
// that belongs to the catalogue record (meaning, solutions, source link) is
// added when the event is encoded, so that a queue on disk stays small.
package annotate

import (
	"time"
)

// Kinds of events. Match is one occurrence; First and Repeat are what the
// folding of storms makes of many (see package episode).
const (
	KindMatch  = "match"
	KindFirst  = "first"
	KindRepeat = "repeat"
)

// An Event is one recognised error, without the catalogue's static text.
// The JSON tags here are the storage form (spool); the published form, schema
// v1, is written by Encoder.
type Event struct {
	Level   string    `json:"l"` // trace…fatal: the higher of the record's level and the catalogue's severity
	Time    time.Time `json:"t"` // of the log record, UTC
	Message string    `json:"m"` // the recognised text with its arguments, secrets masked
	Kind    string    `json:"k"`

	RW     RW     `json:"rw"`
	Error  Error  `json:"e"`
	Seen   Seen   `json:"s"`
	K8s    K8s    `json:"k8,omitzero"`
	Origin Origin `json:"o"`
}

// RW is what RisingWave itself said about the record.
type RW struct {
	Component string   `json:"c,omitempty"` // meta, compute, compactor, frontend, standalone, connector-node or ""
	Target    string   `json:"t,omitempty"` // log target, a Rust module path
	Level     string   `json:"l,omitempty"` // as printed; PANIC for a panic; "" where the record has none
	Event     string   `json:"e,omitempty"` // the log statement's own message
	ActorID   string   `json:"a,omitempty"`
	Chain     []string `json:"ch,omitempty"` // templates around the primary one, outermost first
}

// Error names the catalogue record and what was found with it.
type Error struct {
	ID         string   `json:"id"`            // catalogue record id
	Template   string   `json:"t"`             // wording that matched: errorMessage or an alias
	Args       []string `json:"a,omitempty"`   // placeholder values in the template's order, secrets masked
	Confidence string   `json:"c"`             // high, medium, low
	Via        string   `json:"v"`             // message, field, continuation, span, panic
	Others     []Other  `json:"oth,omitempty"` // other records that the same text may mean
}

// Other is a further candidate.
type Other struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
}

// Seen counts occurrences: New since the previous event of the same
// fingerprint, Count since the episode began.
type Seen struct {
	New   int64     `json:"n"`
	Count int64     `json:"c"`
	First time.Time `json:"f"`
	Last  time.Time `json:"l"`
}

// K8s says which container wrote the record. The zero value is left out of
// the published event.
type K8s struct {
	Namespace string `json:"ns,omitempty"`
	Pod       string `json:"p,omitempty"`
	UID       string `json:"u,omitempty"`
	Container string `json:"c,omitempty"`
	Restart   int    `json:"r,omitempty"`
	Node      string `json:"n,omitempty"`
}

// Origin says where the record was read.
type Origin struct {
	Input      string `json:"i"`           // file, stdin
	Path       string `json:"p,omitempty"` // file path; "" for stdin
	Offset     int64  `json:"o"`           // of the record's first byte in the file or stream
	LineNumber int64  `json:"n,omitempty"` // 1-based, of the record's first physical line; 0 unknown
	Stream     string `json:"s,omitempty"` // stdout, stderr or "": as the container runtime says
	Unit       string `json:"u,omitempty"` // systemd unit (journald)
	Host       string `json:"h,omitempty"` // host name (journald)
	Line       string `json:"l"`           // original text without envelope, secrets masked
	Truncated  bool   `json:"tr,omitempty"`
	TimeFrom   string `json:"tf"` // record, envelope, receive
}
