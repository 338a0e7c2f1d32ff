package gen

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

var templates = sync.OnceValue(LoadTemplates)

func write(t *testing.T, opt Options) (string, Stats) {
	t.Helper()
	opt.Templates = templates()
	var b bytes.Buffer
	stats, err := Write(&b, opt)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Bytes != int64(b.Len()) || stats.Bytes < opt.Size || stats.Bytes > opt.Size+1<<18 {
		t.Errorf("%s: %d bytes written, %d reported, %d asked for", opt.Form, b.Len(), stats.Bytes, opt.Size)
	}
	return b.String(), stats
}

func TestSameSeedSameBytes(t *testing.T) {
	for _, form := range Forms() {
		a, _ := write(t, Options{Size: 1 << 18, Seed: 7, HitRate: 0.01, Form: form})
		b, _ := write(t, Options{Size: 1 << 18, Seed: 7, HitRate: 0.01, Form: form})
		c, _ := write(t, Options{Size: 1 << 18, Seed: 8, HitRate: 0.01, Form: form})
		if a != b {
			t.Errorf("%s: the same seed gave other bytes", form)
		}
		if a == c {
			t.Errorf("%s: another seed gave the same bytes", form)
		}
		long, _ := write(t, Options{Size: 1 << 19, Seed: 7, HitRate: 0.01, Form: form})
		if !strings.HasPrefix(long, a[:1<<17]) {
			t.Errorf("%s: a longer log begins differently", form)
		}
	}
	if _, err := Write(&bytes.Buffer{}, Options{Size: 1, Form: "no such form"}); err == nil {
		t.Error("an unknown form is no error")
	}
}

// TestLooksLikeRisingWave undoes each form with a few lines of its own and
// looks for headers, levels and length.
func TestLooksLikeRisingWave(t *testing.T) {
	const ts = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z`
	const rest = ` (?:[a-z_]+(?:\{[^\n]*\})?:)*(?: ?[a-z0-9_]+(?:::[a-z0-9_]+)*: |risingwave|pgwire)`
	headers := map[Form]string{
		Text:    `^` + ts + ` ( INFO| WARN|DEBUG|ERROR)` + rest,
		ANSI:    `^\x1b\[2m` + ts + `\x1b\[0m \x1b\[3\dm( INFO| WARN|DEBUG|ERROR)\x1b\[0m rw-[a-z-]+ \x1b\[`,
		Compact: `^` + ts + ` ( INFO| WARN|DEBUG|ERROR)` + rest,
		Pretty:  `^  ` + ts + ` ( INFO| WARN|DEBUG|ERROR) [a-z0-9_:]+: [^\n]+`,
		Compose: `^` + ts + ` ( INFO| WARN|DEBUG|ERROR) rw-[a-z-]+` + rest,
	}
	for _, form := range Forms() {
		log, stats := write(t, Options{Size: 1 << 19, Seed: 1, HitRate: 0.02, Form: form})
		lines := unwrap(t, form, log)
		inner := headers[form]
		if form == JSON || form == CRIJSON {
			inner = `^\{"timestamp":"` + ts + `","level":"(INFO|WARN|DEBUG|ERROR)","fields":\{"message":"`
		} else if inner == "" {
			inner = headers[Text]
		}
		header := regexp.MustCompile(inner)
		heads, panics, bytes := 0, 0, 0
		for _, line := range lines {
			bytes += len(line) + 1
			if header.MatchString(line) {
				heads++
			}
			if strings.HasPrefix(line, "thread 'rw-") {
				panics++
			}
			if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
				t.Errorf("%s: not JSON: %.200s", form, line)
			}
		}
		if int64(heads+panics) != stats.Records {
			t.Errorf("%s: %d headers and %d panics of %d records", form, heads, panics, stats.Records)
		}
		if mean := bytes / len(lines); form == Text && (mean < 200 || mean > 300) {
			t.Errorf("%s: a line has %d bytes on average", form, mean)
		}
	}
}

// unwrap takes the lines out of their carrier and joins what it cut.
func unwrap(t *testing.T, form Form, log string) (lines []string) {
	t.Helper()
	open := ""
	add := func(piece string, whole bool) {
		open += piece
		if whole {
			lines, open = append(lines, open), ""
		}
	}
	criPrefix := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z std(?:out|err) ([FP]) `)
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		switch form {
		case CRI, CRIJSON:
			m := criPrefix.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("no CRI prefix: %.200s", line)
			}
			add(line[len(m[0]):], m[1] == "F")
		case Docker:
			var e struct {
				Log, Stream string
				Time        time.Time
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Stream == "" || e.Time.IsZero() {
				t.Fatalf("%v: %.200s", err, line)
			}
			piece, whole := strings.CutSuffix(e.Log, "\n")
			add(piece, whole)
		case JournalJSON:
			var e struct {
				Cursor  string `json:"__CURSOR"`
				Time    string `json:"__REALTIME_TIMESTAMP"`
				Message string `json:"MESSAGE"`
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Cursor == "" {
				t.Fatalf("%v: %.200s", err, line)
			}
			if _, err := strconv.ParseInt(e.Time, 10, 64); err != nil {
				t.Fatal(err)
			}
			add(e.Message, true)
		case JournalExport:
			if m, ok := strings.CutPrefix(line, "MESSAGE="); ok {
				add(m, true)
			} else if line != "" && !regexp.MustCompile(`^[A-Z_]+=`).MatchString(line) {
				t.Fatalf("not a field: %.200s", line)
			}
		case Compose:
			m, ok := strings.CutPrefix(line, "risingwave-standalone-1  | ")
			if !ok {
				t.Fatalf("no prefix: %.200s", line)
			}
			add(m, true)
		default:
			add(line, true)
		}
	}
	if open != "" {
		t.Errorf("%s: the last line is cut", form)
	}
	return lines
}

func TestSameRecordsInEveryForm(t *testing.T) {
	count := func(form Form) string {
		log, _ := write(t, Options{Size: 1 << 20, Seed: 3, HitRate: 0.05, Form: form})
		found := regexp.MustCompile(`snapshot backfill epoch set again: \d+ \d+ \d+|actor exit with error`).FindAllString(log, 5)
		return strings.Join(found, ";")
	}
	want := count(Text)
	for _, form := range Forms() {
		if got := count(form); got != want || got == "" {
			t.Errorf("%s: %s\nwant %s", form, got, want)
		}
	}
}

func TestHitRate(t *testing.T) {
	for _, rate := range []float64{0, 0.005, 0.1, 1} {
		_, stats := write(t, Options{Size: 3 << 20, Seed: 2, HitRate: rate})
		got := float64(stats.Hits) / float64(stats.Records-stats.Echoes)
		if got < rate*0.6 || got > rate*1.4 {
			t.Errorf("rate %g: %d hits in %d records", rate, stats.Hits, stats.Records)
		}
		if stats.Hits > 100 && (stats.SeedHits < stats.Hits*2/5 || stats.SeedHits > stats.Hits*3/5) {
			t.Errorf("rate %g: %d of %d hits are seeds", rate, stats.SeedHits, stats.Hits)
		}
	}
}

// TestLiteralsAreInHitsOnly: no literal of the largest catalogue occurs in a
// healthy record, and each hit has one of the smallest that must find it.
func TestLiteralsAreInHitsOnly(t *testing.T) {
	all := Literals(20_000)
	for _, form := range []Form{Text, ANSI, JSON, Docker} {
		log, _ := write(t, Options{Size: 1 << 20, Seed: 5, Form: form})
		if found := occurring(log, all); len(found) > 0 {
			t.Errorf("%s: healthy records hold %q", form, found)
		}
	}
	if noise := healthyText(templates()); !straddles(noise, "ack channel is missing actor") || straddles(noise, "snapshot backfill paused, but") {
		t.Error("straddles does not see where a message ends and its fields begin")
	}
	log, stats := write(t, Options{Size: 1 << 20, Seed: 5, HitRate: 1})
	if found := occurring(log, Literals(knownCount)); len(found) < knownCount/2 {
		t.Errorf("%d hits show only %d of %d errors", stats.Hits, len(found), knownCount)
	}
}

// occurring returns those literals that text holds.
func occurring(text string, literals []string) (found []string) {
	byHead := map[string][]string{}
	for _, lit := range literals {
		byHead[lit[:minLiteral]] = append(byHead[lit[:minLiteral]], lit)
	}
	for i := 0; i+minLiteral <= len(text); i++ {
		for _, lit := range byHead[text[i:i+minLiteral]] {
			if strings.HasPrefix(text[i:], lit) && !slices.Contains(found, lit) {
				found = append(found, lit)
			}
		}
	}
	return found
}

func TestCatalog(t *testing.T) {
	records := Catalog(20_000)
	ids, slugs := map[string]bool{}, map[string]bool{}
	for i, r := range records {
		if ids[r.ID] || slugs[r.Slug] {
			t.Fatalf("record %d (%s) has the id or the slug of another", i, r.Slug)
		}
		ids[r.ID], slugs[r.Slug] = true, true
		if i >= 1000 {
			continue
		}
		re, err := regexp.Compile(r.MessagePattern)
		if err != nil {
			t.Fatalf("%s: %v", r.Slug, err)
		}
		if lit := (Template{Text: r.ErrorMessage}).Literal(); len(lit) < minLiteral {
			t.Errorf("%s: literal %q", r.Slug, lit)
		}
		instance := catalog.Instantiate(r.ErrorMessage, slices.Repeat([]string{"42"}, catalog.Holes(r.ErrorMessage)))
		if !re.MatchString(instance) {
			t.Errorf("%s: %q does not match %q", r.Slug, r.MessagePattern, instance)
		}
	}
	for i, r := range Catalog(500) {
		if r.ID != records[i].ID {
			t.Fatalf("record %d of 500 is not that of 20,000", i)
		}
	}
}
