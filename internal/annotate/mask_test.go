package annotate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/logline"
	"github.com/rwannotate/rwannotate/internal/match"
)

// TestMask: what is a secret goes, what helps to find the fault stays.
func TestMask(t *testing.T) {
	m := NewMasker()
	for in, want := range map[string]string{
		"postgres://rw:hunter22@db.prod:5432/dev failed":          "postgres://***@db.prod:5432/dev failed",
		"kafka+ssl://u%40x:p%3Aw@broker-1:9093,broker-2":          "kafka+ssl://***@broker-1:9093,broker-2",
		"https://token12345@github.com/x":                         "https://***@github.com/x",
		"http://meta-0:5690/path?x=a@b":                           "http://meta-0:5690/path?x=a@b",
		"see https://a.example/x and mail me@b.example":           "see https://a.example/x and mail me@b.example",
		"password=hunter22 user=rw":                               "password=*** user=rw",
		"PASSWORD = hunter22, host=h":                             "PASSWORD = ***, host=h",
		`password="a b c" x`:                                      `password="***" x`,
		"passwd: hunter22":                                        "passwd: ***",
		`{"secret_key": "abc/+def==", "region":"eu"}`:             `{"secret_key": "***", "region":"eu"}`,
		`{\"secret_key\": \"abc/+def==\"}`:                        `{\"secret_key\": \"***\"}`,
		"WITH (s3.access.key = 'AKIAIOSFODNN7', s3.bucket = 'b')": "WITH (s3.access.key = '***', s3.bucket = 'b')",
		"properties.sasl.password = 'it''s', topic = 't'":         "properties.sasl.password = '***', topic = 't'",
		`Config { password: Some("x y z"), user: Some("rw") }`:    `Config { password: Some("***"), user: Some("rw") }`,
		`password="quoted \"inside\" of it" x`:                    `password="***" x`,
		`password="cut off here`:                                  `password="***`,
		`\"password\":\"a\\\"b c\", x`:                            `\"password\":\"***\", x`,
		"aws_secret_access_key=abcdef/ghi":                        "aws_secret_access_key=***",
		"AWS_SESSION_TOKEN=FwoGZXIvYXdzE":                         "AWS_SESSION_TOKEN=***",
		"Authorization: Bearer eyJhbGciOi.eyJzdWIi.sig-_1":        "Authorization: Bearer ***",
		"authorization: Basic cnc6aHVudGVyMjI=":                   "authorization: Basic ***",
		"client_secret=abc123&grant=x":                            "client_secret=***&grant=x",
		"X-Amz-Signature=deadbeef01&x=1":                          "X-Amz-Signature=***&x=1",
		"token=abcdefgh":                                          "token=***",
		"password=hunter22 again hunter22":                        "password=*** again ***",
		"password=ab table ab":                                    "password=*** table ab", // too short to hide everywhere
		"CREATE USER rw WITH PASSWORD 'it''s' x":                  "CREATE USER rw WITH PASSWORD '***' x",
		"ALTER USER rw ENCRYPTED PASSWORD 'hunter22":              "ALTER USER rw ENCRYPTED PASSWORD '***",
		"CREATE SECRET s WITH (backend = 'meta') AS 'hunter22';":  "CREATE SECRET s WITH (backend = 'meta') AS '***';",
		"alter secret a.s as 'hunter22'":                          "alter secret a.s as '***'",
		"https://a.example/c?se=1&sig=aB%2B9&sp=r":                "https://a.example/c?se=1&sig=***&sp=r",
		"The key AKIAIOSFODNN7EXAMPLE does not exist":             "The key *** does not exist",
		"WITH (jwt = 'eyJh.eyJz.c2ln', subject = 's')":            "WITH (jwt = '***', subject = 's')",
		"properties.ssl.key.pem = '-----BEGIN KEY-----\nMII='":    "properties.ssl.key.pem = '***'",
		"user:hunter22 at postgres://user:hunter22@h; hunter22":   "*** at postgres://***@h; ***",

		"unexpected token at 5":                 "unexpected token at 5",
		"primary key (a, b) of t":               "primary key (a, b) of t",
		"key=5 sort_key=7":                      "key=5 sort_key=7",
		"passed=12 bypass=1":                    "passed=12 bypass=1",
		"tokenizer=whitespace":                  "tokenizer=whitespace",
		"secret 's' is used as 'x' by a sink":   "secret 's' is used as 'x' by a sink",
		"region asia-east1 config=1":            "region asia-east1 config=1",
		"password authentication failed for rw": "password authentication failed for rw",
		"":                                      "",
	} {
		if got := m.of(in).apply(in); got != want {
			t.Errorf("%q:\n got %q\nwant %q", in, got, want)
		}
	}
}

func TestMaskWithOwnExpressions(t *testing.T) {
	m := NewMasker(regexp.MustCompile(`cust-\d+`), regexp.MustCompile(`tenant (\w+)`))
	for in, want := range map[string]string{
		"cust-4711 failed":         "*** failed",
		"tenant acme has cust-1":   "tenant *** has ***",
		"password=x1234 tenant ab": "password=*** tenant ab",
	} {
		if got := m.of(in).apply(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	var none *Masker
	if got := none.of("password=x1234").apply("password=x1234"); got != "password=x1234" {
		t.Errorf("without a masker: %q", got)
	}
}

// event is what New makes of a log record with the message "cannot connect: {}".
func event(t testing.TB, text string, mask *Masker) Event {
	t.Helper()
	m, _ := match.New([]catalog.Record{{ID: "a", ErrorMessage: "cannot connect: {}"}})
	rec := logline.Parse([]byte(text))
	res, ok := m.Match(&rec, 0)
	if !ok {
		t.Fatalf("%q is not recognised", text)
	}
	return New(&rec, &res, "meta", time.Unix(0, 0), K8s{}, Origin{}, mask)
}

// TestSecretsInEvents: a secret is hidden wherever it would go out, also where
// its key is not next to it and where it is written differently.
func TestSecretsInEvents(t *testing.T) {
	for _, text := range []string{
		`2026-11-30T09:14:07Z ERROR x::y: login password=hunter22 error=cannot connect: hunter22 refused`,
		`2026-11-30T09:14:07Z ERROR x::y: failed error=cannot connect: postgres://rw:hunter22@h/db`,
		`{"fields":{"message":"x","error":"cannot connect: password=\"hunter22\\\"\\\\more\""},"level":"ERROR"}`,
		`{"fields":{"message":"password=hunter22","error":"cannot connect: Some(\"hunter22\")"},"level":"ERROR"}`,
		`{"fields":{"error":"cannot connect: \u0070assword=hunter22"},"level":"ERROR"}`,
		"2026-11-30T09:14:07Z ERROR x::y: cannot connect: Config { password: \"hunter22\" }",
	} {
		ev := event(t, text, NewMasker())
		e := NewEncoder([]catalog.Record{{ID: "a"}}, "", "")
		if out := string(e.Append(nil, &ev)); strings.Contains(out, "hunter22") || strings.Contains(out, "more") {
			t.Errorf("%s\n goes out as %s", text, out)
		}
		for _, a := range append(slices.Clone(ev.Error.Args), ev.Message) {
			if !strings.Contains(a, "***") {
				t.Errorf("%s: %q hides nothing", text, a)
			}
		}
	}
}

// TestManySecrets: a record full of them costs no more than its length.
func TestManySecrets(t *testing.T) {
	var b strings.Builder
	b.WriteString("2026-11-30T09:14:07Z ERROR x::y: cannot connect: x ")
	for i := 0; b.Len() < 256<<10; i++ {
		fmt.Fprintf(&b, "password=secret%d ", i)
	}
	begun := time.Now()
	ev := event(t, b.String(), NewMasker())
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("%v for %d bytes", took, b.Len())
	}
	if strings.Contains(ev.Origin.Line, "secret") {
		t.Error("a secret is left")
	}
}
