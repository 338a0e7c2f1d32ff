package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"time"
)

// Merge returns base with overlay's records added. A record of overlay
// replaces the one of base with the same id in its place; new ones follow.
func Merge(base, overlay []Record) []Record {
	if len(base) == 0 {
		return overlay // as Load gives it: no id is there twice
	}
	place := make(map[string]int, len(base)+len(overlay))
	merged := make([]Record, 0, len(base)+len(overlay))
	for _, list := range [][]Record{base, overlay} {
		for _, r := range list {
			if i, ok := place[r.ID]; ok {
				merged[i] = r
				continue
			}
			place[r.ID] = len(merged)
			merged = append(merged, r)
		}
	}
	return merged
}

// Digest names the content of a set of records: "sha256:" and 8 hex digits. It
// depends on every key's value, not on the order of the records, the files they came
// from or how these are written.
func Digest(records []Record) string {
	sorted := make([]*Record, len(records))
	for i := range records {
		sorted[i] = &records[i]
	}
	slices.SortFunc(sorted, func(a, b *Record) int { return cmp.Compare(a.ID, b.ID) })
	d := digester{hash: sha256.New()}
	for _, r := range sorted {
		d.record(r)
	}
	d.flush()
	return "sha256:" + hex.EncodeToString(d.hash.Sum(nil))[:8]
}

// digester hashes values with their lengths, so that no two contents look the
// same when strung together.
type digester struct {
	hash hash.Hash
	buf  []byte
}

func (d *digester) record(r *Record) {
	for _, f := range r.fields() {
		switch v := f.ptr.(type) {
		case *string:
			d.text(*v)
		case *int:
			d.number(*v)
		case *[]string:
			d.texts(*v)
		case *Examples:
			d.number(len(v.Match))
			for _, e := range v.Match {
				d.text(e.Text)
				d.texts(e.Args)
			}
			d.texts(v.Reject)
		}
	}
	d.flush()
}

func (d *digester) flush() {
	d.hash.Write(d.buf)
	d.buf = d.buf[:0]
}

func (d *digester) texts(list []string) {
	d.number(len(list))
	for _, s := range list {
		d.text(s)
	}
}

func (d *digester) text(s string) {
	d.number(len(s))
	d.buf = append(d.buf, s...)
}

func (d *digester) number(n int) { d.buf = binary.AppendUvarint(d.buf, uint64(n)) }

// Version is the newest datasetVersion or analyzedAt of the records as written
// there, "" if none has one.
func Version(records []Record) string {
	var newest time.Time
	version := ""
	for i := range records {
		for _, s := range []string{records[i].DatasetVersion, records[i].AnalyzedAt} {
			if t, ok := parseInstant(s); ok && (version == "" || t.After(newest)) {
				newest, version = t, s
			}
		}
	}
	return version
}
