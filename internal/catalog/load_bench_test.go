package catalog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkLoad reads 5,000 records of the catalogue's size from a directory.
func BenchmarkLoad(b *testing.B) {
	for _, form := range []string{"yaml", "general yaml", "json"} {
		b.Run(form, func(b *testing.B) {
			dir := b.TempDir()
			writeMany(b, dir, form, 5000)
			for b.Loop() {
				if records, problems := Load(os.DirFS(dir)); len(records) != 5000 || len(problems) > 0 {
					b.Fatal(len(records), problems)
				}
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	dir := b.TempDir()
	writeMany(b, dir, "yaml", 5000)
	records, _ := Load(os.DirFS(dir))
	for b.Loop() {
		Digest(records)
	}
}

// writeMany writes n records made from the catalogue's, in one of three forms.
func writeMany(b *testing.B, dir, form string, n int) {
	tree, _ := Load(os.DirFS("../../patterns"))
	for i := range n {
		r := tree[i%len(tree)]
		r.ID, r.Slug = fmt.Sprintf("%016x", i), fmt.Sprintf("record-%d", i)
		data, ext := r.AppendYAML(nil), ".yaml"
		switch form {
		case "general yaml":
			data = append([]byte("---\n"), data...)
		case "json":
			ext = ".json"
			var err error
			if data, err = json.Marshal(map[string]any{"record": r, "datasetVersion": "2026-09-14T11:17:12.474Z"}); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, r.Slug+ext), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecode reads one record of ordinary size from memory.
func BenchmarkDecode(b *testing.B) {
	for _, form := range []string{"yaml", "general yaml", "json"} {
		b.Run(form, func(b *testing.B) {
			dir := b.TempDir()
			writeMany(b, dir, form, 1)
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != 1 {
				b.Fatal(files, err)
			}
			name := files[0].Name()
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := decode(name, data); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
