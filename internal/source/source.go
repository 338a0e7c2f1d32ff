// Package source brings the bytes of files and pipes to those who make events
// of them, and remembers how far each got.
//
// A file is followed by its identity (device, inode and a fingerprint of its
// content), never by its name: the descriptor that we opened once is read until
// the file is finished, whatever rotation, link or deletion does to the path.
// Files (this package's main type) looks at the paths; one goroutine per file
// owns the descriptor:
//
//	Files.scan ──opens, retires──► file ──ReadOnce──► Consumer
//	                                │ end of file: waits for growth
//	                                └─ nxadm/tail on /proc/self/fd/N, or the next look
//
// github.com/nxadm/tail is asked one thing only: to say, within a fraction of
// a millisecond, that an open file has grown. The bytes are always read here,
// so there is one place that knows offsets, truncation and unfinished lines.
//
// Order: within a file always that of its bytes. At a rotation the old file is
// read to its end before the new one is begun; what is written to the old one
// later still comes, beside the new one, until nothing came for 5 s.
package source

import (
	"io"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
)

// Consumer handles the bytes of one stream. All calls come from one goroutine.
type Consumer interface {
	// ReadOnce calls r.Read exactly once and handles what is complete then. It
	// returns what Read returned, or an error of its own, which ends the
	// stream. It may block: nothing more is read then.
	ReadOnce(r io.Reader) (n int, err error)
	// Idle tells that there are no new bytes just now.
	Idle(now time.Time)
	// End tells that the stream has ended. The unterminated last line counts
	// as complete only if partial.
	End(partial bool) error
	// Resume returns where a later start must read from: the offset of the
	// first byte not finally handled, and the 1-based number of its line (0
	// unknown).
	Resume() (offset, line int64)
}

// cursored is a Consumer that knows journald cursors.
type cursored interface{ Cursor() string }

// Open makes the Consumer of a stream.
type Open func(StreamInfo) Consumer

// StreamInfo says what a Consumer is about to get.
type StreamInfo struct {
	Key   string // names the stream's position; unique among the open streams
	Input string // "file" or "stdin"
	Path  string // as the input named it; "" for stdin
	K8s   annotate.K8s
	// Offset of the first byte, and the 1-based number of its line; Line is 0
	// where nobody counted.
	Offset, Line int64
}

// Positions remembers how far each stream got. Store is called after each read
// that may have produced events, from the stream's goroutine, and may block to
// hold the stream back. The values are this package's own.
type Positions interface {
	Load(key string) ([]byte, bool)
	Store(key string, pos []byte)
	Delete(key string)
	Each(func(key string, pos []byte))
}

// StdinKey is the Key of standard input. What is stored under it is the
// journald cursor, if the stream is a journal.
const StdinKey = "stdin"

// Start says where files that exist when Files starts are read from. Files
// that appear later are always read from their beginning.
type Start string

// The choices of Start.
const (
	FromCheckpoint Start = "checkpoint" // where the position says, else the beginning
	FromBeginning  Start = "beginning"  // whatever the position says
	FromEnd        Start = "end"        // only what is written from now on
)

// Stat is what can be told of one open file.
type Stat struct {
	Path       string // as the input named it
	Real       string // links resolved, when it was opened
	K8s        annotate.K8s
	Offset     int64 // bytes read
	Size       int64 // bytes there at the last look: Size-Offset is the lag
	Retired    bool  // rotated away or deleted; being read to its end
	Truncated  int64 // times it was truncated or rewritten
	Lost       int64 // bytes that were there at the last look and could not be read any more
	LastRead   time.Time
	LastError  string
	LastActive time.Time // of its goroutine
}

// Totals counts over all files since the start.
type Totals struct {
	Bytes       int64
	Opened      int64
	Rotations   int64
	Truncations int64
	LostBytes   int64 // that may have held lines nobody has seen
	Errors      int64
}
