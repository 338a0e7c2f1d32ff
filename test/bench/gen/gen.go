// Package gen makes RisingWave logs and catalogues to test and to measure
// with. The same options give the same bytes: realistic healthy lines built
// from RisingWave's own message templates, and among them a known share of
// records that carry a known error.
package gen

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// A Form is how the log was printed and what carried it.
type Form string

// Forms of a log. Those that name a carrier hold the default text form.
const (
	Text          Form = "text"
	ANSI          Form = "ansi"
	Compact       Form = "compact"
	Pretty        Form = "pretty"
	JSON          Form = "json"
	CRI           Form = "cri"
	CRIJSON       Form = "cri-json"
	Docker        Form = "docker"
	JournalExport Form = "journal-export"
	JournalJSON   Form = "journal-json"
	Compose       Form = "compose"
)

// Forms lists them all.
func Forms() []Form {
	return []Form{Text, ANSI, Compact, Pretty, JSON, CRI, CRIJSON, Docker, JournalExport, JournalJSON, Compose}
}

// Options of a log.
type Options struct {
	Size      int64     // bytes to write; the last record is written whole
	Seed      uint64    // decides all that is random
	HitRate   float64   // share of records that carry a known error: 0.001 is one in a thousand
	Form      Form      // "" is Text
	Templates Templates // what LoadTemplates returned, for who writes many logs; the zero value loads them
}

// Stats says what was written.
type Stats struct {
	Bytes, Records int64
	Hits           int64 // records that carry a known error, one each
	SeedHits       int64 // those among them that carry one of the five seed errors
	Echoes         int64 // records that repeat the error of a hit in a span
}

// The catalogue's share that logs are made of: the first seedCount records of
// Catalog, and the first knownCount. A catalogue of 500 records or more thus
// finds the same hits.
const (
	seedCount  = 5
	knownCount = 500
)

type generator struct {
	rand      *rand.Rand
	now       time.Time
	templates Templates
}

// Write writes a log.
func Write(w io.Writer, opt Options) (Stats, error) {
	if opt.Templates.known == nil {
		opt.Templates = LoadTemplates()
	}
	g := &generator{
		rand:      rand.New(rand.NewPCG(opt.Seed, 0x5eed)),
		now:       time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		templates: opt.Templates,
	}
	format, wrap, err := form(opt.Form)
	if err != nil {
		return Stats{}, err
	}
	var (
		stats       Stats
		buf, lines  []byte
		writeRecord = func(rec record) error {
			lines = lines[:0]
			stream := "stdout"
			if rec.panicAt != "" {
				lines, stream = panicked(lines, &rec), "stderr"
			} else {
				lines = format(lines, &rec)
			}
			if wrap != nil {
				buf = wrap(buf, lines, rec.time, stream)
			} else {
				buf = append(buf, lines...)
			}
			stats.Records++
			if len(buf) < 1<<20 && stats.Bytes+int64(len(buf)) < opt.Size {
				return nil
			}
			n, err := w.Write(buf)
			stats.Bytes += int64(n)
			buf = buf[:0]
			return err
		}
	)
	for err == nil && stats.Bytes < opt.Size {
		if g.rand.Float64() >= opt.HitRate {
			err = writeRecord(g.healthy())
			continue
		}
		rec, seed, text := g.hit()
		stats.Hits++
		if seed {
			stats.SeedHits++
		}
		err = writeRecord(rec)
		if seed && g.rand.IntN(20) == 0 {
			for i := 0; err == nil && i < 3 && stats.Bytes < opt.Size; i++ {
				stats.Echoes++
				err = writeRecord(g.echo(text))
			}
		}
	}
	return stats, err
}

// form returns how records are printed, and what the lines are wrapped in or
// nil. Neither draws from the generator's random numbers: the same seed gives
// the same records in every form.
func form(f Form) (formatter, envelope, error) {
	j := &journal{rand: rand.New(rand.NewPCG(0, 0))}
	switch f {
	case Text, "":
		return text(false), nil, nil
	case ANSI:
		return ansi, nil, nil
	case Compact:
		return compact, nil, nil
	case Pretty:
		return pretty, nil, nil
	case JSON:
		return cloud, nil, nil
	case CRI:
		return text(false), cri, nil
	case CRIJSON:
		return cloud, cri, nil
	case Docker:
		return text(false), docker, nil
	case JournalExport:
		return text(false), j.export, nil
	case JournalJSON:
		return text(false), j.json, nil
	case Compose:
		return text(true), compose, nil
	default:
		return nil, nil, fmt.Errorf("unknown form %q, not one of %q", f, Forms())
	}
}
