package catalog

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	base := []Record{{ID: "a", Slug: "base-a"}, {ID: "b", Slug: "base-b"}}
	overlay := []Record{{ID: "c", Slug: "over-c"}, {ID: "a", Slug: "over-a"}}
	want := []Record{{ID: "a", Slug: "over-a"}, {ID: "b", Slug: "base-b"}, {ID: "c", Slug: "over-c"}}
	if diff := cmp.Diff(want, Merge(base, overlay)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if base[0].Slug != "base-a" {
		t.Error("Merge changed its argument")
	}
}

func TestDigest(t *testing.T) {
	records := []Record{{ID: "a", Slug: "x", Tags: []string{"1", "2"}}, {ID: "b"}}
	digest := Digest(records)
	if len(digest) != len("sha256:5b1f7c09") {
		t.Errorf("Digest = %q", digest)
	}
	reversed := slices.Clone(records)
	slices.Reverse(reversed)
	reversed[0].File, reversed[0].Component = "elsewhere.yaml", "meta"
	if got := Digest(reversed); got != digest {
		t.Errorf("order or file changed the digest: %s, %s", digest, got)
	}
	for name, other := range map[string][]Record{
		"a list strung together": {{ID: "a", Slug: "x", Tags: []string{"12"}}, {ID: "b"}},
		"a value moved":          {{ID: "a", Repo: "x", Tags: []string{"1", "2"}}, {ID: "b"}},
		"an example":             {{ID: "a", Slug: "x", Tags: []string{"1", "2"}, Examples: Examples{Reject: []string{"x"}}}, {ID: "b"}},
		"a number":               {{ID: "a", Slug: "x", Tags: []string{"1", "2"}, LineNumber: 1}, {ID: "b"}},
		"a record less":          records[:1],
	} {
		if Digest(other) == digest {
			t.Errorf("%s: same digest", name)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		want    string
		records []Record
	}{
		{"", nil},
		{"", []Record{{AnalyzedAt: "yesterday"}}},
		{"2026-09-14T16:17:12.679Z", []Record{
			{AnalyzedAt: "2026-09-11", DatasetVersion: "2026-09-14T11:17:12.474Z"},
			{DatasetVersion: "2026-09-14T16:17:12.679Z"},
			{AnalyzedAt: "2026-09-14T18:00:00+02:00"},
		}},
		{"2026-11-30", []Record{{AnalyzedAt: "2026-11-30"}, {DatasetVersion: "2026-11-29T23:59:59Z"}}},
	} {
		if got := Version(c.records); got != c.want {
			t.Errorf("Version = %q, want %q", got, c.want)
		}
	}
}
