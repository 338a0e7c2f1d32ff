package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"github.com/rwannotate/rwannotate/test/bench/gen"
)

// A logFile is a generated log on disk.
type logFile struct {
	path string
	gen.Stats
}

// makeLog generates a log, or takes it from an earlier run that would have
// made the same one: the name holds the options and a hash of the first 4 MiB.
func makeLog(s settings, form gen.Form) (logFile, error) {
	opt := gen.Options{Size: min(s.size, 4<<20), Seed: s.seed, HitRate: s.hitRate, Form: form, Templates: gen.LoadTemplates()}
	head := fnv.New32a()
	if _, err := gen.Write(head, opt); err != nil {
		return logFile{}, err
	}
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%d-%d-%g-%08x.log", form, s.size, s.seed, s.hitRate, head.Sum32()))
	log := logFile{path: path}
	if text, err := os.ReadFile(path + ".stats"); err == nil && json.Unmarshal(text, &log.Stats) == nil {
		return log, nil
	}
	progress("generating %s", path)
	f, err := os.Create(path)
	if err != nil {
		return logFile{}, err
	}
	defer f.Close()
	opt.Size = s.size
	if log.Stats, err = gen.Write(f, opt); err != nil {
		return logFile{}, fmt.Errorf("generate %s: %w", path, err)
	}
	text, err := json.Marshal(log.Stats)
	if err != nil {
		return logFile{}, err
	}
	return log, os.WriteFile(path+".stats", text, 0o644)
}

// A patternSet is a catalogue of n records, and the literals of the same
// records for ripgrep.
type patternSet struct {
	n             int
	dir, literals string
}

func makePatterns(s settings, n int) (patternSet, error) {
	set := patternSet{n, filepath.Join(s.dir, fmt.Sprintf("patterns-%d", n)), filepath.Join(s.dir, fmt.Sprintf("literals-%d.txt", n))}
	if err := os.RemoveAll(set.dir); err != nil {
		return set, err
	}
	for _, r := range gen.Catalog(n) {
		dir := filepath.Join(set.dir, strings.Split(r.FilePath, "/")[1])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return set, err
		}
		if err := os.WriteFile(filepath.Join(dir, r.Slug+".yaml"), r.AppendYAML(nil), 0o644); err != nil {
			return set, err
		}
	}
	text := strings.Join(gen.Literals(n), "\n") + "\n"
	return set, os.WriteFile(set.literals, []byte(text), 0o644)
}

// lineCounter counts what is written to it.
type lineCounter struct{ lines int64 }

func (c *lineCounter) Write(p []byte) (int, error) {
	c.lines += int64(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
