package corpus

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/annotate"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/match"
	"github.com/rwannotate/rwannotate/internal/pipeline"
)

// seedSlugs are the five published records the project was born from.
var seedSlugs = []string{
	"snapshot-backfill-epoch-set-again", "mismatch-initial-vnode-bitmap-expect", "snapshot-backfill-paused-but-received-snapshot-ch",
	"should-not-update-vnode-bitmap-during-consuming-lo", "unexpected-backfill-state",
}

// events runs a log through the pipeline as one file.
func events(t testing.TB, m *match.Matcher, log []byte, opt pipeline.Options) []annotate.Event {
	t.Helper()
	var out []annotate.Event
	opt.Now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	s := pipeline.New(pipeline.Info{Input: "file", Line: 1}, func() *match.Matcher { return m }, func(ev *annotate.Event) error {
		out = append(out, *ev)
		return nil
	}, opt)
	r := bytes.NewReader(log)
	for r.Len() > 0 {
		if _, err := s.ReadOnce(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(true); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func only(records []catalog.Record, slugs []string) []catalog.Record {
	var out []catalog.Record
	for _, r := range records {
		for _, s := range slugs {
			if r.Slug == s {
				out = append(out, r)
			}
		}
	}
	return out
}
