// Package loki tests delivery as a whole: folding, spool and client together,
// against a real server where there is one, in sizes and times that a
// package's own tests should not take.
package loki

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/episode"
	"github.com/rwannotate/rwannotate/internal/sink/loki"
	"github.com/rwannotate/rwannotate/internal/spool"
)

// The test binary is its own sender, in a process that can be killed: with
// these in the environment it sends and does not test.
const (
	envState  = "RWANNOTATE_TEST_SENDER_STATE"
	envURL    = "RWANNOTATE_TEST_SENDER_URL"
	envEvents = "RWANNOTATE_TEST_SENDER_EVENTS"
	envFold   = "RWANNOTATE_TEST_SENDER_FOLD" // not empty: repeats are folded
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(envState); dir != "" {
		n, err := strconv.Atoi(os.Getenv(envEvents))
		if err == nil {
			err = send(context.Background(), dir, os.Getenv(envURL), n)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "sender:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// events are stamped from here on, a millisecond apart, so that a sender that
// starts again makes the same ones.
const firstStamp = "RWANNOTATE_TEST_FIRST_STAMP"

func stampOf(i int) time.Time {
	ns, _ := strconv.ParseInt(os.Getenv(firstStamp), 10, 64)
	return time.Unix(0, ns).UTC().Add(time.Duration(i) * time.Millisecond)
}

// setStamp fixes the stamp of event 0 for this process and its children.
func setStamp(t *testing.T, at time.Time) {
	t.Setenv(firstStamp, strconv.FormatInt(at.Truncate(time.Millisecond).UnixNano(), 10))
}

// awkward are texts that travel badly.
var awkward = []string{
	"plain", "", `"quoted" \ back\slash`, "tab\tand\nnewline\r", "\x1b[31mcolour\x1b[0m", "ünïcödé 中文 🚀", "\u2028\u2029\ufeff", "<html>&amp;</html>",
	strings.Repeat("long ", 800), `{"level":"info","nested":{"a":[1,2]}}`, "a=b c=\"d e\"", "{} {:?}", "\x00nul",
}

var records = []catalog.Record{
	{ID: "d35cdfb22a5e48fe", Slug: "mismatch-initial-vnode-bitmap-expect", Severity: "error", ErrorMessage: "mismatch initial vnode bitmap: {:?}, expect: {:?}",
		Documentation: "The distribution changed between planning and execution.", Solutions: []string{"Retry the job recovery.", "Recreate the job."}},
	{ID: "30ef04567ce7f266", Slug: "snapshot-backfill-paused", Severity: "critical", ErrorMessage: "snapshot backfill paused, but received snapshot chunk"},
}

// event is the i-th event, always the same for the same i.
func event(i int) annotate.Event {
	text := awkward[i%len(awkward)]
	ev := annotate.Event{
		Level: []string{"error", "warn", "fatal"}[i%3], Kind: annotate.KindMatch, Time: stampOf(i), Message: fmt.Sprintf("seq=%07d %s", i, text),
		RW:     annotate.RW{Component: []string{"meta", "compute", "", "frontend"}[i%4], Target: "risingwave_stream::task", Level: "ERROR", ActorID: strconv.Itoa(i % 997)},
		Error:  annotate.Error{ID: records[i%2].ID, Template: records[i%2].ErrorMessage, Confidence: "high", Via: "field", Args: []string{text, strconv.Itoa(i)}},
		K8s:    annotate.K8s{Namespace: []string{"rw-a", "rw-b"}[i/7%2], Pod: fmt.Sprint("compute-", i%11), Container: "compute", Node: fmt.Sprint("node ", i%3)},
		Origin: annotate.Origin{Input: "file", Path: "/var/log/pods/x/0.log", Offset: int64(i) * 431, LineNumber: int64(i) + 1, Stream: "stdout", Line: "ERROR " + text, TimeFrom: "record"},
	}
	ev.Seen = annotate.Seen{New: 1, Count: 1, First: ev.Time, Last: ev.Time}
	return ev
}

func renderer() *loki.Renderer {
	return &loki.Renderer{
		Encode: annotate.NewEncoder(records, "2026-09-14T16:17:12.679Z", "sha256:5b1f7c09").Append,
		Describe: func(id string) (slug, severity string) {
			for _, r := range records {
				if r.ID == id {
					return r.Slug, r.Severity
				}
			}
			return "", ""
		},
		Catalog: "sha256:5b1f7c09", Labels: map[string]string{"cluster": "test"},
	}
}

// queue is the spool's queue "loki" as the client sees it.
type queue struct{ *spool.Spool }

func (q queue) Read(after uint64, maxEntries, maxBytes int) ([]loki.QueueEntry, error) {
	entries, err := q.Spool.Read("loki", after, maxEntries, maxBytes)
	out := make([]loki.QueueEntry, len(entries))
	for i, e := range entries {
		out[i] = loki.QueueEntry(e)
	}
	return out, err
}

func (q queue) Ack(seqs []uint64) error          { return q.Spool.Ack("loki", seqs) }
func (q queue) Size() (entries int, bytes int64) { return q.Spool.Size("loki") }

const position = "made"

// send queues the events that are not queued yet, in the same transaction as
// its position, and delivers until the queue is empty.
func send(ctx context.Context, dir, url string, n int) error {
	state, err := spool.Open(dir, spool.Options{}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer state.Close()
	client, err := loki.New(loki.Options{URL: url, Name: "loki", Heartbeat: -1, MaxBackoff: time.Second, Linger: 50 * time.Millisecond},
		queue{state}, renderer().Render, zerolog.New(os.Stderr))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- client.Run(ctx) }()
	defer func() { cancel(); <-done }()
	work := produce
	if os.Getenv(envFold) != "" {
		work = fold
	}
	if err := work(state, client.Wake, n); err != nil {
		return err
	}
	for {
		if left, _ := state.Size("loki"); left == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for reason, n := range client.Stats().Dropped {
		if n > 0 {
			return fmt.Errorf("%d entries dropped: %s", n, reason)
		}
	}
	return nil
}

func produce(state *spool.Spool, wake func(), n int) error {
	made := 0
	if b, ok := state.Position(position); ok {
		made, _ = strconv.Atoi(string(b))
	}
	for made < n {
		var batch [][]byte
		for len(batch) < 500 && made < n {
			ev := event(made)
			b, err := json.Marshal(&ev)
			if err != nil {
				return err
			}
			batch = append(batch, b)
			made++
		}
		err := state.Commit(spool.Batch{
			Positions: map[string][]byte{position: []byte(strconv.Itoa(made))},
			Events:    map[string][][]byte{"loki": batch},
		})
		if err != nil {
			return err
		}
		wake()
	}
	return nil
}

// fold is produce with repeats folded: positions, open episodes and events are
// committed together. In the end what is counted and not told is flushed.
func fold(state *spool.Spool, wake func(), n int) error {
	folder := episode.New(episode.Options{})
	var err error
	state.Episodes(func(key string, saved []byte) {
		err = errors.Join(err, folder.Restore(key, saved, time.Now()))
	})
	made := 0
	if b, ok := state.Position(position); ok {
		made, _ = strconv.Atoi(string(b))
	}
	for err == nil && made < n {
		var out []annotate.Event
		for range min(200, n-made) {
			out = append(out, folder.Add(event(made), time.Now())...)
			made++
		}
		if made == n {
			out = append(out, folder.Flush(time.Now())...)
		}
		b := spool.Batch{Positions: map[string][]byte{position: []byte(strconv.Itoa(made))}, Episodes: map[string][]byte{}, Events: map[string][][]byte{}}
		folder.Changed(func(key string, saved []byte) { b.Episodes[key] = saved })
		for i := range out {
			data, merr := json.Marshal(&out[i])
			err = errors.Join(err, merr)
			b.Events["loki"] = append(b.Events["loki"], data)
		}
		err = errors.Join(err, state.Commit(b))
		wake()
		time.Sleep(5 * time.Millisecond)
	}
	return err
}
