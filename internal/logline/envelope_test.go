package logline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seen is what a test expects of a Line. Time is of the envelope, "" if it has
// none.
type seen struct {
	Payload, Stream, Time string
	Source                Source
	Partial, Recheck      bool
	Skip                  bool
}

func see(l Line) seen {
	s := seen{Payload: string(l.Payload), Stream: l.Stream, Partial: l.Partial, Recheck: l.Recheck, Skip: l.Skip}
	if at, ok := l.Stamp.Time(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)); ok {
		s.Time = at.Format(time.RFC3339Nano)
	}
	if l.Source != nil {
		s.Source = *l.Source
	}
	if l.Skip {
		s.Payload = ""
	}
	return s
}

const (
	stamp  = "2026-11-30T09:14:07.482913204Z"
	header = stamp + " ERROR risingwave_stream::task::actor_manager: actor exit with error actor_id=17 error=boom"
)

const verboseEntry = "Mon 2026-11-30 09:14:07.482913 UTC [s=0adc;i=1]"

// TestUnwrap gives each envelope's lines to a stream of their own and looks at
// the last.
func TestUnwrap(t *testing.T) {
	quoted := strings.ReplaceAll(header, `"`, `\"`)
	for _, c := range []struct {
		name  string
		lines []string
		want  seen
	}{
		{"plain", []string{header}, seen{Payload: header}},
		{"plain text without any form", []string{"hello world"}, seen{Payload: "hello world"}},
		{"empty", []string{""}, seen{}},
		{"CRLF", []string{header + "\r"}, seen{Payload: header}},
		{"byte order mark", []string{"\ufeff" + header}, seen{Payload: header}},
		{"NULs of a truncated file", []string{"\x00\x00\x00" + header}, seen{Payload: header, Recheck: true}},
		{"only NULs", []string{"\x00\x00"}, seen{Recheck: true}},
		{"colours stay out", []string{"\x1b[2m" + stamp + "\x1b[0m \x1b[31mERROR\x1b[0m x: y"}, seen{Payload: stamp + " ERROR x: y", Recheck: true}},

		{"CRI", []string{stamp + " stdout F " + header}, seen{Payload: header, Stream: "stdout", Time: stamp}},
		{"CRI stderr", []string{stamp + " stderr F thread"}, seen{Payload: "thread", Stream: "stderr", Time: stamp}},
		{"CRI zone", []string{"2026-11-30T17:14:07.482913204+08:00 stdout F x"}, seen{Payload: "x", Stream: "stdout", Time: stamp}},
		{"CRI part", []string{stamp + " stdout P half"}, seen{Payload: "half", Stream: "stdout", Time: stamp, Partial: true}},
		{"CRI tags", []string{stamp + " stdout P:x half"}, seen{Payload: "half", Stream: "stdout", Time: stamp, Partial: true}},
		{"CRI empty message", []string{stamp + " stdout F "}, seen{Stream: "stdout", Time: stamp}},
		{"CRI empty message, blank cut", []string{stamp + " stdout F"}, seen{Stream: "stdout", Time: stamp}},
		{"CRI keeps the blanks of the message", []string{stamp + " stdout F    0: std::backtrace"}, seen{Payload: "   0: std::backtrace", Stream: "stdout", Time: stamp}},
		{"CRI around CRLF", []string{stamp + " stdout F x\r"}, seen{Payload: "x", Stream: "stdout", Time: stamp}},
		{"no CRI", []string{stamp + " stdnot F x"}, seen{Payload: stamp + " stdnot F x"}},

		{"docker", []string{`{"log":"` + quoted + `\n","stream":"stdout","time":"` + stamp + `"}`}, seen{Payload: header, Stream: "stdout", Time: stamp}},
		{"docker part", []string{`{"log":"half","stream":"stderr","time":"` + stamp + `"}`}, seen{Payload: "half", Stream: "stderr", Time: stamp, Partial: true}},
		{"docker escapes", []string{`{"log":"a\t\"b\" \\ \u003cc\u003e\r\n","stream":"stdout","time":"` + stamp + `"}`}, seen{Payload: "a\t\"b\" \\ <c>", Stream: "stdout", Time: stamp, Recheck: true}},
		{"docker colours", []string{`{"log":"\u001b[31mred\u001b[0m\n","stream":"stdout","time":"` + stamp + `"}`}, seen{Payload: "red", Stream: "stdout", Time: stamp, Recheck: true}},
		{"docker members in another order", []string{`{"stream":"stdout","time":"` + stamp + `","log":"x\n"}`}, seen{Payload: "x", Stream: "stdout", Time: stamp, Recheck: true}},
		{"docker with attrs", []string{`{"log":"x\n","stream":"stdout","attrs":{"tag":"a"},"time":"` + stamp + `"}`}, seen{Payload: "x", Stream: "stdout", Time: stamp, Recheck: true}},
		{"docker around the cloud's JSON", []string{`{"log":"{\"timestamp\":\"` + stamp + `\",\"fields\":{\"message\":\"x\"}}\n","stream":"stdout","time":"` + stamp + `"}`},
			seen{Payload: `{"timestamp":"` + stamp + `","fields":{"message":"x"}}`, Stream: "stdout", Time: stamp}},
		{"torn docker", []string{`{"log":"half a li`}, seen{Payload: `{"log":"half a li`}},

		{"cloud's JSON is no envelope", []string{`{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"x"},"target":"y"}`}, seen{Payload: `{"timestamp":"` + stamp + `","level":"ERROR","fields":{"message":"x"},"target":"y"}`}},
		{"JSON of others is none", []string{`{"message":"hello","time":"` + stamp + `"}`}, seen{Payload: `{"message":"hello","time":"` + stamp + `"}`}},
		{"Fluent Bit", []string{`{"log":"` + quoted + `\n","stream":"stderr","time":"` + stamp + `","kubernetes":{"pod_name":"rw-compute-0","namespace_name":"rw","container_name":"compute","host":"n1"}}`},
			seen{Payload: header, Stream: "stderr", Time: stamp, Recheck: true, Source: Source{Pod: "rw-compute-0", Namespace: "rw", Container: "compute", Host: "n1"}}},
		{"CloudWatch around CRI", []string{`{"timestamp":1796030047482,"message":"` + stamp + ` stdout F ` + quoted + `"}`}, seen{Payload: header, Stream: "stdout", Time: stamp, Recheck: true}},
		{"CloudWatch", []string{`{"timestamp":1796030047482,"message":"` + quoted + `"}`}, seen{Payload: header, Time: "2026-11-30T09:14:07.482Z", Recheck: true}},
		{"JSON wrapper, known from before", []string{`{"line":"` + quoted + `"}`, `{"line":"  at x"}`}, seen{Payload: "  at x", Recheck: true}},

		{"kubectl --timestamps", []string{stamp + " " + header}, seen{Payload: header, Time: stamp}},
		{"kubectl --timestamps, continuation", []string{stamp + " " + header, stamp + " Caused by:"}, seen{Payload: "Caused by:", Time: stamp}},
		{"kubectl --timestamps, empty line", []string{stamp + " " + header, stamp}, seen{}},
		{"kubectl --prefix", []string{"[pod/rw-compute-0/compute] " + header}, seen{Payload: header, Source: Source{Pod: "rw-compute-0", Container: "compute"}}},
		{"kubectl --prefix --timestamps", []string{"[pod/rw-compute-0/compute] " + stamp + " " + header}, seen{Payload: header, Time: stamp, Source: Source{Pod: "rw-compute-0", Container: "compute"}}},
		{"brackets of other programs", []string{"[app] something"}, seen{Payload: "[app] something"}},
		{"compose", []string{"compute-node-0  | " + header}, seen{Payload: header, Source: Source{Container: "compute-node-0"}}},
		{"compose, coloured name", []string{"\x1b[36mcompute-node-0  |\x1b[0m " + header}, seen{Payload: header, Recheck: true, Source: Source{Container: "compute-node-0"}}},
		{"compose, continuation", []string{"meta-0  | " + header, "meta-0  |    1: cause"}, seen{Payload: "   1: cause", Source: Source{Container: "meta-0"}}},
		{"compose, empty line", []string{"meta-0  | " + header, "meta-0  | "}, seen{Source: Source{Container: "meta-0"}}},
		{"a table is no compose prefix", []string{"id  | name"}, seen{Payload: "id  | name"}},
		{"stern", []string{"rw-compute-0 compute " + header}, seen{Payload: header, Source: Source{Pod: "rw-compute-0", Container: "compute"}}},
		{"stern, continuation", []string{"rw-compute-0 compute " + header, "rw-compute-0 compute Caused by:"}, seen{Payload: "Caused by:", Source: Source{Pod: "rw-compute-0", Container: "compute"}}},
		{"two words and a value are no stern prefix", []string{`connection refused {"code": 503},None`}, seen{Payload: `connection refused {"code": 503},None`}},
		{"stern, JSON", []string{`rw-compute-0 compute {"timestamp":"x","level":"INFO","fields":{"message":"y"}}`}, seen{Payload: `{"timestamp":"x","level":"INFO","fields":{"message":"y"}}`, Source: Source{Pod: "rw-compute-0", Container: "compute"}}},
		{"three words are no stern prefix", []string{"failed to start"}, seen{Payload: "failed to start"}},
		{"logcli", []string{stamp + ` {namespace="rw", pod="rw-meta-0"} ` + header}, seen{Payload: header, Time: stamp, Source: Source{Namespace: "rw", Pod: "rw-meta-0"}}},

		{"short", []string{"Nov 30 09:14:07 node-1 risingwave[42]: " + header}, seen{Payload: header, Time: "2026-11-30T09:14:07Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short of last year", []string{"Dec 31 23:59:59 node-1 risingwave[42]: x"}, seen{Payload: "x", Time: "2025-12-31T23:59:59Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short without host", []string{"Nov 30 09:14:07 risingwave[42]: x"}, seen{Payload: "x", Time: "2026-11-30T09:14:07Z", Source: Source{Unit: "risingwave"}}},
		{"short without pid", []string{"Nov 30 09:14:07 node-1 kernel: x: y"}, seen{Payload: "x: y", Time: "2026-11-30T09:14:07Z", Source: Source{Host: "node-1", Unit: "kernel"}}},
		{"short, empty", []string{"Nov 30 09:14:07 node-1 risingwave[42]: "}, seen{Time: "2026-11-30T09:14:07Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short, continuation", []string{"Nov 30 09:14:07 node-1 risingwave[42]: x", strings.Repeat(" ", 39) + "  y"}, seen{Payload: "  y", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short-precise", []string{"Nov 30 09:14:07.482913 node-1 risingwave[42]: x"}, seen{Payload: "x", Time: "2026-11-30T09:14:07.482913Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short-iso", []string{"2026-11-30T09:14:07+0000 node-1 risingwave[42]: x"}, seen{Payload: "x", Time: "2026-11-30T09:14:07Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short-iso-precise", []string{"2026-11-30T09:14:07.482913+00:00 node-1 risingwave[42]: x"}, seen{Payload: "x", Time: "2026-11-30T09:14:07.482913Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short-unix", []string{"1796030047.482913 node-1 risingwave[42]: x"}, seen{Payload: "x", Time: "2026-11-30T09:14:07.482913Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short-monotonic", []string{"[   12.482913] node-1 risingwave[42]: x"}, seen{Payload: "x", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"short-full", []string{"Mon 2026-11-30 09:14:07 UTC node-1 risingwave[42]: x"}, seen{Payload: "x", Time: "2026-11-30T09:14:07Z", Source: Source{Host: "node-1", Unit: "risingwave"}}},
		{"verbose", []string{verboseEntry, "    _PID=42", "    MESSAGE=    0: x=y"}, seen{Payload: "    0: x=y", Time: "2026-11-30T09:14:07.482913Z"}},
		{"verbose, continuation", []string{verboseEntry, "    MESSAGE=thread 'x' panicked at y", "            z"}, seen{Payload: "z"}},
		{"verbose, other fields", []string{verboseEntry, "    MESSAGE=x", "    _PID=42"}, seen{Skip: true}},
		{"our own output in the journal", []string{"Nov 30 09:14:07 node-1 rwannotate[7]: x"}, seen{Skip: true, Time: "2026-11-30T09:14:07Z", Source: Source{Host: "node-1", Unit: "rwannotate"}}},
		{"reboot", []string{"-- Boot ffffffffffffffffffffffffffffffff --"}, seen{Skip: true}},
		{"no entries", []string{"-- No entries --"}, seen{Skip: true}},
		{"dashes of a message", []string{"-- this is text"}, seen{Payload: "-- this is text"}},

		{"journal JSON", []string{`{"_HOSTNAME":"n1","_SYSTEMD_UNIT":"rw.service","__REALTIME_TIMESTAMP":"1796030047482913","MESSAGE":"x"}`},
			seen{Payload: "x", Time: "2026-11-30T09:14:07.482913Z", Recheck: true, Source: Source{Host: "n1", Unit: "rw.service"}}},
		{"journal JSON, bytes", []string{`{"MESSAGE":[27,91,51,49,109,120,27,91,48,109,13],"SYSLOG_IDENTIFIER":"rw"}`}, seen{Payload: "x", Recheck: true, Source: Source{Unit: "rw"}}},
		{"journal JSON, repeated", []string{`{"MESSAGE":["one",[116,119,111],null],"__CURSOR":"c"}`}, seen{Payload: "one\ntwo", Recheck: true}},
		{"journal JSON, null", []string{`{"MESSAGE":null,"__CURSOR":"c"}`}, seen{Skip: true, Recheck: true}},
		{"journal JSON without MESSAGE", []string{`{"__CURSOR":"c","COREDUMP":"x"}`}, seen{Skip: true, Recheck: true}},
		{"journal JSON, ours", []string{`{"MESSAGE":"x","SYSLOG_IDENTIFIER":"rwannotate"}`}, seen{Skip: true, Recheck: true, Source: Source{Unit: "rwannotate"}}},
		{"journal JSON, split line", []string{`{"MESSAGE":"half","_LINE_BREAK":"line-max","_STREAM_ID":"s"}`}, seen{Payload: "half", Partial: true, Recheck: true}},
		{"json-seq", []string{"\x1e" + `{"MESSAGE":"x","__CURSOR":"c"}`}, seen{Payload: "x", Recheck: true}},
		{"json-sse", []string{`data: {"MESSAGE":"x","__CURSOR":"c"}`}, seen{Payload: "x", Recheck: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var u Unwrapper
			var got Line
			for _, line := range c.lines {
				got = u.Unwrap([]byte(line), Dirty([]byte(line)))
			}
			if d := cmp.Diff(c.want, see(got)); d != "" {
				t.Errorf("%q: %s", c.lines, d)
			}
		})
	}
}

// TestPrefixNeedsARecord: words before a text become a prefix only when a
// record has started behind them.
func TestPrefixNeedsARecord(t *testing.T) {
	var u Unwrapper
	for _, line := range []string{"one two three", "name  | value", "one two three"} {
		if l := u.Unwrap([]byte(line), false); string(l.Payload) != line || l.Source != nil {
			t.Errorf("%q became %q of %v", line, l.Payload, l.Source)
		}
	}
	first := u.Unwrap([]byte("one two "+header), false).Source
	if again := u.Unwrap([]byte("one two three"), false); string(again.Payload) != "three" || again.Source != first {
		t.Errorf("the prefix is not known now: %q of %v", again.Payload, again.Source)
	}
}

// TestSourcesAreBounded: a stream that invents a writer a line costs no memory.
func TestSourcesAreBounded(t *testing.T) {
	var u Unwrapper
	for i := range 3 * maxSources {
		u.Unwrap(fmt.Appendf(nil, "[pod/p%d/c] x", i), false)
	}
	if n := len(u.sources); n > maxSources {
		t.Errorf("%d writers are remembered, more than %d", n, maxSources)
	}
}

func TestNullsAreCounted(t *testing.T) {
	var u Unwrapper
	for range 3 {
		u.Unwrap([]byte(`{"MESSAGE":null,"__CURSOR":"c"}`), false)
	}
	if u.NullMessages != 3 {
		t.Errorf("%d entries without their text are counted, not 3", u.NullMessages)
	}
}

func TestStamps(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		form stampForm
		raw  string
		want string // "" if it is no time
	}{
		{stampRFC3339, "2026-08-21T14:06:38Z", "2026-08-21T14:06:38Z"},
		{stampRFC3339, "2026-08-21T14:06:38.556427665+08:00", "2026-08-21T06:06:38.556427665Z"},
		{stampRFC3339, "2026-13-41T14:06:38Z", ""},
		{stampRFC3339, "1753-12-05T00:00:00Z", ""},
		{stampRFC3339, "9999-12-05T00:00:00Z", ""},
		{stampMicros, "1787321198556427", "2026-08-21T14:06:38.556427Z"},
		{stampMicros, "99999999999999999999", ""},
		{stampMicros, "17873211985564x7", ""},
		{stampMicros, "", ""},
		{stampMillis, "1787321198556", "2026-08-21T14:06:38.556Z"},
		{stampSeconds, "1787321198.5", "2026-08-21T14:06:38.5Z"},
		{stampNoYear, "Dec 31 23:59:59", "2025-12-31T23:59:59Z"},
		{stampNoYear, "Jan  1 00:00:01", "2026-01-01T00:00:01Z"},
		{stampNoYear, "Feb 30 00:00:01", ""},
		{stampFull, "2025-11-30 12:00:00 UTC", "2025-11-30T12:00:00Z"},
		{stampNone, "x", ""},
	} {
		got := ""
		if at, ok := (Stamp{[]byte(c.raw), c.form}).Time(now); ok {
			got = at.Format(time.RFC3339Nano)
		}
		if got != c.want {
			t.Errorf("%d %q: %q, want %q", c.form, c.raw, got, c.want)
		}
	}
}
