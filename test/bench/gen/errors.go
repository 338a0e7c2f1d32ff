package gen

import (
	"fmt"
	"strconv"
	"strings"
)

// hit makes a record that carries a known error, seeds in half of the cases,
// in one of the ways errors enter RisingWave's log.
func (g *generator) hit() (rec record, seed bool, text string) {
	r := g.rand
	k := r.IntN(2 * seedCount)
	seed = k < seedCount
	if !seed {
		k = seedCount + r.IntN(len(g.templates.known)-seedCount)
	}
	t := g.templates.known[k]
	text = g.errorText(t)
	context := pick(r, g.templates.Log)
	switch {
	case t.Level == "panic" && r.IntN(3) == 0:
		rec = g.record(Template{File: t.File, Line: t.Line}, "")
		rec.panicAt, rec.message = fmt.Sprintf("%s:%d:%d", t.File, t.Line, 1+r.IntN(90)), text
	case strings.HasPrefix(t.File, "src/stream"):
		rec = g.record(Template{File: "src/stream/src/task/actor_manager.rs", Line: 582, Text: "actor exit with error"}, "ERROR")
		rec.fields = []field{{"actor_id", strconv.Itoa(1 + r.IntN(40_000)), display}, {"error", "Executor error: " + text + g.backtrace(), display}}
	case r.IntN(4) == 0:
		rec = g.record(Template{File: t.File, Line: t.Line}, "ERROR")
		rec.message, rec.fields = text, someFields(r)
	default:
		rec = g.record(context, "ERROR")
		rec.fields = append(someFields(r), field{pick(r, []string{"error", "err", "e"}), text + g.backtrace(), display})
	}
	return rec, seed, text
}

// errorText instantiates an error's template.
func (g *generator) errorText(t Template) string {
	switch {
	case strings.HasPrefix(t.Text, "snapshot backfill epoch set again"):
		return fmt.Sprintf("snapshot backfill epoch set again: %d %d %d", 1+g.rand.IntN(5000), epoch(g.rand), epoch(g.rand))
	case strings.HasPrefix(t.Text, "mismatch initial vnode bitmap"):
		return fmt.Sprintf("mismatch initial vnode bitmap: %s, expect: %s", bitmap(g.rand.IntN(257)), bitmap(g.rand.IntN(257)))
	case strings.HasPrefix(t.Text, "Unexpected backfill state"):
		return fmt.Sprintf(`Unexpected backfill state: BackfillStateWithProgress { state: SourceCachingUp("%d"), num_consumed_rows: %d, target_offset: Some("%d") }`,
			g.rand.IntN(9000), g.rand.IntN(9000), g.rand.IntN(9000))
	default:
		return fill(g.rand, t)
	}
}

// echo makes one of the lines of a recovery, whose span repeats the error.
func (g *generator) echo(text string) record {
	t := Template{File: "src/meta/src/barrier/worker.rs", Line: 941, Text: "recovery start!"}
	rec := g.record(t, "INFO")
	rec.spans = []span{{"failure_recovery", []field{{"error", "Executor error: " + text, display}}}}
	return rec
}

// backtrace is empty for four errors in five.
func (g *generator) backtrace() string {
	if g.rand.IntN(5) > 0 {
		return ""
	}
	return backtrace
}

const backtrace = `

Backtrace:
   0: <anyhow::Error>::msg::<alloc::string::String>
             at ./root/.cargo/registry/src/index/anyhow-1.0.102/src/backtrace.rs:27:14
   1: <risingwave_stream::error::StreamError as core::convert::From<anyhow::Error>>::from
             at ./risingwave/src/stream/src/error.rs:88:27
   2: risingwave_stream::executor::actor::Actor<C>::run::{{closure}}
             at ./risingwave/src/stream/src/executor/actor.rs:236:9
   3: <tracing::instrument::Instrumented<T> as core::future::future::Future>::poll
   4: tokio::runtime::task::core::Core<T,S>::poll
   5: tokio::runtime::task::harness::Harness<T,S>::poll
   6: tokio::runtime::scheduler::multi_thread::worker::Context::run_task
   7: tokio::runtime::scheduler::multi_thread::worker::run
   8: std::sys::backtrace::__rust_begin_short_backtrace
   9: core::ops::function::FnOnce::call_once{{vtable.shim}}
  10: std::sys::pal::unix::thread::Thread::new::thread_start
  11: start_thread
             at ./nptl/pthread_create.c:442:8
  12: clone3

`
