package lint

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// A form is one way in which RisingWave or a collector writes a record that
// carries a message.
type form struct {
	name  string
	write func(level, target, message string) string
}

const stamp = "2026-08-21T14:06:38.556427665Z"

// forms are all the ways a known error reaches us, one of each kind.
func forms() []form {
	text := func(level, target, message string) string {
		return fmt.Sprintf("%s %5s %s: something failed actor_id=17 error=%s\n", stamp, level, target, message)
	}
	cloud := func(level, target, message string) string {
		return fmt.Sprintf(`{"timestamp":"%s","level":%q,"fields":{"message":"something failed","actor_id":"17","error":%s},"target":%q}`+"\n", stamp, level, quote(message), target)
	}
	each := func(text, prefix string) string {
		return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
	}
	return []form{
		{"text", text},
		{"thread and spans", func(level, target, message string) string {
			return fmt.Sprintf("%s %5s rw-streaming actor{otel.name=\"Actor 17\" actor_id=17}:executor{chunk_size=42}: %s: something failed error=%s elapsed=2.841s\n", stamp, level, target, message)
		}},
		{"colours", func(level, target, message string) string {
			return fmt.Sprintf("\x1b[2m%s\x1b[0m \x1b[31m%5s\x1b[0m \x1b[2m%s\x1b[0m\x1b[2m:\x1b[0m something failed \x1b[3merror\x1b[0m\x1b[2m=\x1b[0m%s\n", stamp, level, target, message)
		}},
		{"backtrace", func(level, target, message string) string {
			return text(level, target, message) + "\nBacktrace:\n   0: std::backtrace::Backtrace::create\n             at ./rustc/library/std/src/backtrace.rs:331:13\n\n"
		}},
		{"cloud JSON", cloud},
		{"pretty", func(level, target, message string) string {
			return fmt.Sprintf("  %s %5s %s: something failed, actor_id: 17, error: %s\n    at src/stream/src/task/actor_manager.rs:605\n\n", stamp, level, target, message)
		}},
		{"panic", func(_, _, message string) string {
			return "thread 'rw-main' (12) panicked at src/x/src/lib.rs:1:2:\n" + message + "\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"
		}},
		{"CRI", func(level, target, message string) string {
			return each(text(level, target, message), "2026-08-21T14:06:39.000000001Z stdout F ")
		}},
		{"docker", func(level, target, message string) string {
			var b strings.Builder
			for line := range strings.Lines(text(level, target, message)) {
				fmt.Fprintf(&b, `{"log":%s,"stream":"stdout","time":"2026-08-21T14:06:39.000000001Z"}`+"\n", quote(line))
			}
			return b.String()
		}},
		{"docker around cloud JSON", func(level, target, message string) string {
			return fmt.Sprintf(`{"log":%s,"stream":"stdout","time":"2026-08-21T14:06:39.000000001Z"}`+"\n", quote(cloud(level, target, message)))
		}},
		{"compose", func(level, target, message string) string {
			return each(text(level, target, message), "compute-node-0  | ")
		}},
		{"journal short", func(level, target, message string) string {
			return each(text(level, target, message), "Aug 21 14:06:39 host risingwave[42]: ")
		}},
		{"journal JSON", func(level, target, message string) string {
			return fmt.Sprintf(`{"__REALTIME_TIMESTAMP":"1787321199000000","_SYSTEMD_UNIT":"risingwave.service","MESSAGE":%s}`+"\n", quote(strings.TrimSuffix(text(level, target, message), "\n")))
		}},
	}
}

// quote writes a JSON string as serde does: no escapes for HTML.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sampleTarget is a log target that fits a record.
func sampleTarget(r *catalog.Record) string {
	if len(r.Targets) == 0 {
		return "risingwave_stream::task::actor_manager"
	}
	if strings.HasSuffix(r.Targets[0], "::") {
		return r.Targets[0] + "task"
	}
	return r.Targets[0]
}
