package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

const exampleFile = "../../configs/rwannotate.yaml"

// mustParse fails the test on any problem.
func mustParse(t *testing.T, text string, env Env, flags ...Override) (Config, Origins) {
	t.Helper()
	c, origins, problems := parse("config.yaml", []byte(text), env, flags)
	if len(problems) > 0 {
		t.Fatalf("problems:\n%s", problemText(problems))
	}
	return c, origins
}

func TestDefaultIsValid(t *testing.T) {
	if problems := Validate(Default()); len(problems) > 0 {
		t.Error(problemText(problems))
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "web:\n", "web: {}\n", "%YAML 1.2\n---\nweb: {}\n", "\xef\xbb\xbfweb: {}\n", "web: {}\r\n"} {
		c, _ := mustParse(t, text, nil)
		if diff := cmp.Diff(Default(), c); diff != "" {
			t.Errorf("%q (-default +got)\n%s", text, diff)
		}
	}
}

// TestExampleIsTheDefault: configs/rwannotate.yaml as it stands changes
// nothing, has every key, and its commented parts are the defaults too.
func TestExampleIsTheDefault(t *testing.T) {
	raw, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	c, origins := mustParse(t, string(raw), Env{})
	if diff := cmp.Diff(emptied(Default()), emptied(c)); diff != "" {
		t.Errorf("the example differs from the defaults (-default +example)\n%s", diff)
	}
	for _, key := range Keys() {
		if _, ok := origins[key]; !ok && key != keyInput && key != keyStart && key != keyLokiURL {
			t.Errorf("%s is not in the example", key)
		}
	}

	full, origins := mustParse(t, uncomment(string(raw)), Env{}, Override{"state.dir", []string{"/s"}, Origin{Kind: FromFlag, Name: "--state"}})
	var endpoint Endpoint
	endpoint.setDefaults()
	endpoint.URL = "http://loki:3100"
	if diff := cmp.Diff([]Endpoint{endpoint}, emptied(full).Loki.Endpoints); diff != "" {
		t.Errorf("loki.endpoints in the example (-default +example)\n%s", diff)
	}
	for section, element := range map[string]any{"loki.endpoints[0]": Endpoint{}, "inputs[0]": Input{}} {
		for _, key := range leaves(reflect.TypeOf(element), section) {
			if _, ok := origins[key]; !ok && key != "inputs[0].stdin" {
				t.Errorf("%s is not in the example", key)
			}
		}
	}
	if !full.Inputs[1].Stdin || full.Inputs[0].Start != "checkpoint" {
		t.Errorf("inputs in the example: %+v", full.Inputs)
	}
}

// uncomment turns `#key` and `#  key` into settings; prose is `# Text`. The
// empty lists above them go.
func uncomment(text string) string {
	setting := regexp.MustCompile(`(?m)^#(\S|  )`)
	empty := regexp.MustCompile(`(?m)^(inputs|  endpoints): \[\]\n`)
	return setting.ReplaceAllString(empty.ReplaceAllString(text, ""), "$1")
}

// emptied makes empty lists and maps nil, as the defaults have them.
func emptied(c Config) Config {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			if v.Len() == 0 {
				v.SetZero()
			}
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			if v.Len() == 0 {
				v.SetZero()
			}
		}
	}
	walk(reflect.ValueOf(&c).Elem())
	return c
}

func leaves(t reflect.Type, key string) []string {
	var keys []string
	for _, f := range fieldsOf(t) {
		if ft := t.Field(f.index).Type; ft.Kind() == reflect.Struct {
			keys = append(keys, leaves(ft, join(key, f.name))...)
		} else {
			keys = append(keys, join(key, f.name))
		}
	}
	return keys
}

// everything sets each key to something else than its default.
const everything = `
inputs:
  - files: [/var/log/a.log, "/var/log/{b,c}/**"]
    exclude: /var/log/c/x.log
    start: end
  - stdin: true
kubernetes: {namespace: rw, pod: compute-0, uid: 1f-2, node: n1.example}
multiline: {flush_after: 1s, max_bytes: 64KiB}
catalog:
  paths: [/etc/rwannotate/patterns]
  embedded: false
  disable: [end-of-stream, 1f0c6a2b9d3e4f50]
  severity_overrides: {channel-closed: critical}
  strict: true
match: {min_level: warn}
output:
  stdout: false
  redact: ['card=\d+$']
state: {dir: /var/lib/rwannotate, commit_interval: 1s, queue_max_bytes: 1GiB}
loki:
  endpoints:
    - name: main
      url: https://loki/loki/api/v1/push
      tenant_id: 007
      basic_auth: {username: rw, password_file: /p}
      tls: {ca_file: /ca, cert_file: /c, key_file: /k, server_name: loki.example}
      proxy_url: socks5://proxy:1080
      headers: {X-Scope: hunter2}
      batch: {max_bytes: 512KiB, linger: 250ms}
      timeout: 5s
      backoff: {min: 1s, max: 1m}
      drop_older_than: 0
    - {name: spare, url: "http://vl:9428/insert/loki/api/v1/push?x=1", bearer_token_file: /t}
  labels: {cluster: prod, shard: 1}
  pod_label: true
  repeat: all
  rate: {events_per_second: 0.5, burst: 3}
  heartbeat: 0
web: {listen: "127.0.0.1:1", page: false, pprof: true, enable_reload: true}
log: {level: debug, format: text}
reload: {interval: 1m}
shutdown_timeout: 5s
`

func TestEverything(t *testing.T) {
	got, _ := mustParse(t, everything, nil)
	want := Config{
		Inputs: []Input{
			{Files: []string{"/var/log/a.log", "/var/log/{b,c}/**"}, Exclude: []string{"/var/log/c/x.log"}, Start: "end"},
			{Start: "checkpoint", Stdin: true},
		},
		Kubernetes: Kubernetes{Namespace: "rw", Pod: "compute-0", UID: "1f-2", Node: "n1.example"},
		Multiline:  Multiline{FlushAfter: time.Second, MaxBytes: 64 << 10},
		Catalog: Catalog{
			Paths: []string{"/etc/rwannotate/patterns"}, Disable: []string{"end-of-stream", "1f0c6a2b9d3e4f50"},
			SeverityOverrides: map[string]string{"channel-closed": "critical"}, Strict: true,
		},
		Match:  Match{MinLevel: "warn"},
		Output: Output{Redact: []string{`card=\d+$`}},
		State:  State{Dir: "/var/lib/rwannotate", CommitInterval: time.Second, QueueMaxBytes: 1 << 30},
		Loki: Loki{
			Endpoints: []Endpoint{{
				Name: "main", URL: "https://loki/loki/api/v1/push", TenantID: "007",
				BasicAuth: BasicAuth{"rw", "/p"},
				TLS:       TLS{CAFile: "/ca", CertFile: "/c", KeyFile: "/k", ServerName: "loki.example"},
				ProxyURL:  "socks5://proxy:1080", Headers: map[string]string{"X-Scope": "hunter2"},
				Batch: Batch{512 << 10, 250 * time.Millisecond}, Timeout: 5 * time.Second, Backoff: Backoff{time.Second, time.Minute},
			}, {
				Name: "spare", URL: "http://vl:9428/insert/loki/api/v1/push?x=1", BearerTokenFile: "/t",
				Batch: Batch{1 << 20, time.Second}, Timeout: 10 * time.Second, Backoff: Backoff{500 * time.Millisecond, 30 * time.Second},
				DropOlderThan: 7 * 24 * time.Hour,
			}},
			Labels: map[string]string{"cluster": "prod", "shard": "1"}, PodLabel: true, Repeat: "all", Rate: Rate{0.5, 3},
		},
		Web:             Web{Listen: "127.0.0.1:1", Pprof: true, EnableReload: true},
		Log:             Log{Level: "debug", Format: "text"},
		Reload:          Reload{Interval: time.Minute},
		ShutdownTimeout: 5 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSchemaAgrees: the schema accepts what Load accepts, and refuses what
// has no meaning in its terms.
func TestSchemaAgrees(t *testing.T) {
	schema := compiledSchema(t)
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"example": string(example), "uncommented": uncomment(string(example)), "everything": everything} {
		if err := schema.Validate(untyped(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, pattern := range []string{"testdata/bad/types.txtar", "testdata/bad/unknown.txtar"} {
		for _, c := range readGolden(t, pattern) {
			if err := schema.Validate(untyped(t, c.text)); err == nil && !schemaCannotTell[c.name] {
				t.Errorf("%s: the schema accepts\n%s", c.name, c.text)
			}
		}
	}
	forEachProperty(schema, func(key string, s *santhosh.Schema) {
		if s.Description == "" {
			t.Errorf("%s has no description in the schema", key)
		}
	})
}

// schemaCannotTell lists faults in the text of a scalar.
var schemaCannotTell = map[string]bool{
	"queue-max-bytes-ambiguous": true,
	"queue-max-bytes-huge":      true,
	"batch-max-bytes-float":     true,
	"pprof-is-word":             true, // True is true to other readers of YAML
}

func forEachProperty(s *santhosh.Schema, visit func(key string, s *santhosh.Schema)) {
	for name, p := range s.Properties {
		visit(name, p)
		forEachProperty(p, visit)
		if items, ok := p.Items2020, p.Items2020 != nil; ok {
			forEachProperty(items, visit)
		}
	}
}

// untyped decodes YAML as an editor would.
func untyped(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	j, err := json.Marshal(v)
	if err != nil {
		return nil // .inf
	}
	doc, err := santhosh.UnmarshalJSON(strings.NewReader(string(j)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct{ path, want string }{
		{filepath.Join(dir, "none.yaml"), ": there is no such file; check the path after -c, or RWANNOTATE_CONFIG"},
		{dir, ": this is a directory; name the file in it"},
		{write("utf16.yaml", "\xff\xfea\x00:\x00", 0o600), ": the file is UTF-16; save it as UTF-8"},
		{write("latin1.yaml", "log:\n  level: \xe9\n", 0o600), ":2:10: the byte 0xe9 is not UTF-8; save the file as UTF-8"},
		{write("nul.yaml", "log:\n  level: a\x00b\n", 0o600), ":2:11: the control character 0x00 is not allowed in YAML; remove it"},
		{write("large.yaml", strings.Repeat("# x\n", 300_000), 0o600), ": the file is larger than 256 KiB; this is hardly a configuration"},
	} {
		_, _, problems := Load(tc.path, nil, nil)
		if len(problems) != 1 || !Failed(problems) {
			t.Fatalf("%s: %d problems", tc.path, len(problems))
		}
		got, _, _ := strings.Cut(strings.TrimPrefix(problems[0].String(), tc.path), "\n")
		if got = strings.Replace(got, ": ", ": ", 1); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.path, got, tc.want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	const file = "web: {listen: ':1'}\nlog: {level: warn}\nloki: {repeat: all}\n"
	env := Env{"RWANNOTATE_WEB_LISTEN": ":2", "RWANNOTATE_LOG_LEVEL": "debug", "UNRELATED": "x", "RWANNOTATE_PORT": "tcp://10.0.0.1:80"}
	c, origins := mustParse(t, file, env, Override{"web.listen", []string{":3"}, Origin{Kind: FromFlag, Name: "--web-listen"}})
	for _, tc := range []struct{ key, got, want, origin string }{
		{"web.listen", c.Web.Listen, ":3", "flag --web-listen"},
		{"log.level", c.Log.Level, "debug", "env RWANNOTATE_LOG_LEVEL"},
		{"loki.repeat", c.Loki.Repeat, "all", "file config.yaml:3"},
		{"log.format", c.Log.Format, "json", "default"},
	} {
		if tc.got != tc.want || origins[tc.key].String() != tc.origin {
			t.Errorf("%s = %q from %s, want %q from %s", tc.key, tc.got, origins[tc.key], tc.want, tc.origin)
		}
	}
}

func flagOf(key, flag string, values ...string) Override {
	return Override{key, values, Origin{Kind: FromFlag, Name: flag}}
}

func TestOverrides(t *testing.T) {
	const file = `
inputs: [{files: [/old], start: end}]
loki: {endpoints: [{url: http://old, tenant_id: t}], labels: {a: b}}
catalog: {paths: [/old]}
state: {dir: /s}
`
	c, origins := mustParse(t, file,
		Env{"RWANNOTATE_LOKI_LABELS": "{cluster: prod}", "RWANNOTATE_CATALOG_DISABLE": "[a, b]", "RWANNOTATE_OUTPUT_REDACT": "x{2}$", "RWANNOTATE_STATE_DIR": "/from-$env"},
		flagOf("input", "--input", "/var/{a,b}.log", "-", "/c"), flagOf("start", "--start", "beginning"),
		flagOf("loki.url", "--loki-url", "http://new"), flagOf("catalog.paths", "--patterns", "/p", "/q"), flagOf("catalog.embedded", "--no-embedded", "false"),
	)
	want, _ := mustParse(t, `
inputs: [{stdin: true}, {files: ["/var/{a,b}.log", /c], start: beginning}]
loki: {endpoints: [{url: http://new, tenant_id: t}], labels: {cluster: prod}}
catalog: {paths: [/p, /q], embedded: false, disable: [a, b]}
output: {redact: ["x{2}$"]}
state: {dir: /from-$$env}
`, nil)
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for key, want := range map[string]string{
		"inputs[1].files": "flag --input", "inputs[1].start": "flag --start", "loki.endpoints[0].url": "flag --loki-url",
		"loki.endpoints[0].tenant_id": "file config.yaml:3", "loki.labels": "env RWANNOTATE_LOKI_LABELS",
	} {
		if got := origins[key].String(); got != want {
			t.Errorf("origin of %s is %s, want %s", key, got, want)
		}
	}
}

func TestOverridesWithoutFile(t *testing.T) {
	c, _, problems := Load("", Env{"RWANNOTATE_LOKI_URL": "http://loki:3100", "RWANNOTATE_INPUT": "-", "RWANNOTATE_STATE_DIR": "/s"}, nil)
	if len(problems) > 0 {
		t.Fatal(problemText(problems))
	}
	if len(c.Loki.Endpoints) != 1 || c.Loki.Endpoints[0].URL != "http://loki:3100" || c.Loki.Endpoints[0].Timeout != 10*time.Second {
		t.Errorf("endpoints: %+v", c.Loki.Endpoints)
	}
	if len(c.Inputs) != 1 || !c.Inputs[0].Stdin {
		t.Errorf("inputs: %+v", c.Inputs)
	}
}

func TestBadOverrides(t *testing.T) {
	two := "state: {dir: /s}\nloki: {endpoints: [{name: a, url: http://a}, {name: b, url: http://b}]}\n"
	for _, tc := range []struct {
		name, file, want string
		env              Env
		flags            []Override
	}{
		{"word", "", `RWANNOTATE_LOG_LEVEL: log.level: "loud" is not known; write debug, info, warn or error`, Env{"RWANNOTATE_LOG_LEVEL": "loud"}, nil},
		{"bool", "", `RWANNOTATE_WEB_PAGE: web.page: "1" is neither true nor false; write one of these`, Env{"RWANNOTATE_WEB_PAGE": "1"}, nil},
		{"empty duration", "", `RWANNOTATE_RELOAD_INTERVAL: reload.interval: "" is not a duration; write for example 250ms, 30s, 5m, 1h or 7d`, Env{"RWANNOTATE_RELOAD_INTERVAL": ""}, nil},
		{"range", "", `RWANNOTATE_RELOAD_INTERVAL: reload.interval: 1ms is too short; the least is 1s, and 0 turns it off`, Env{"RWANNOTATE_RELOAD_INTERVAL": "1ms"}, nil},
		{"pairs", "", `RWANNOTATE_LOKI_LABELS: loki.labels: "cluster=prod" is no set of pairs; write {name: value}`, Env{"RWANNOTATE_LOKI_LABELS": "cluster=prod"}, nil},
		{"broken pairs", "", `RWANNOTATE_LOKI_LABELS: loki.labels: "{cluster: prod" is neither a list [a, b] nor pairs {name: value}`, Env{"RWANNOTATE_LOKI_LABELS": "{cluster: prod"}, nil},
		{"label", "", `RWANNOTATE_LOKI_LABELS: loki.labels.a-b: "a-b" is no label name; use letters, digits and _, and begin with a letter or _`, Env{"RWANNOTATE_LOKI_LABELS": "{a-b: c}"}, nil},
		{"list entry", "", `RWANNOTATE_CATALOG_DISABLE: catalog.disable[1]: "B" is neither the id nor the slug of a record; see ` + "`rwannotate patterns list`", Env{"RWANNOTATE_CATALOG_DISABLE": "[a, B]"}, nil},
		{"glob", "", `--input: inputs[0].files[0]: "[a" is no valid glob; close every [ and {, and do not end with a backslash`, nil, []Override{flagOf("input", "--input", "[a")}},
		{"stdin twice", "", `--input: inputs[1].stdin: standard input is read by inputs[0] already; remove one`, nil, []Override{flagOf("input", "--input", "-", "-")}},
		{"start", "", `--start: inputs[0].start: "now" is not known; write checkpoint, beginning or end`, nil, []Override{flagOf("input", "--input", "/a"), flagOf("start", "--start", "now")}},
		{"url", "state: {dir: /s}\n", `--loki-url: loki.endpoints[0].url: the URL must begin with http:// or https://`, nil, []Override{flagOf("loki.url", "--loki-url", "loki:3100")}},
		{"whose url", two, `--loki-url: the file has several loki.endpoints, so it is not clear whose URL this is; set it in the file`, nil, []Override{flagOf("loki.url", "--loki-url", "http://loki")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, problems := parse("config.yaml", []byte(tc.file), tc.env, tc.flags)
			if got := problemText(problems); got != tc.want+"\n" || !Failed(problems) {
				t.Errorf("got  %swant %s", got, tc.want)
			}
		})
	}
}

// TestAllAtOnce: one fault does not hide another.
func TestAllAtOnce(t *testing.T) {
	const file = `
web:
  listn: ":1"
  page: yes
  pprof: maybe
inputs:
  - files: ["[a", /b, /b]
  - start: now
loki:
  labels: {service_name: x, "a b": y}
  endpoints:
    - {url: http://loki, bearer_token_file: /t, password: p, timeout: 1}
shutdown_timeout: 1
`
	_, _, problems := parse("c.yaml", []byte(file), nil, nil)
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimSuffix(p.Source, ".yaml")+" "+p.Key)
	}
	want := []string{
		"c web.listn", "c web.page", "c web.pprof", "c inputs[0].files[0]", "c inputs[0].files[2]", "c inputs[1].start",
		"c loki.labels.service_name", "c loki.labels.a b", "c loki.endpoints[0].password", "c loki.endpoints[0].timeout", "c shutdown_timeout",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, problemText(problems))
	}
}

func TestAnchors(t *testing.T) {
	const file = `
state: {dir: /s}
loki:
  endpoints:
    - &main
      name: a
      url: &url http://loki:3100
      headers: &h {X-A: b}
      backoff: &b {min: 1s}
    - <<: *main
      name: b
      backoff: {<<: *b, max: 2s}
    - {name: c, url: *url, headers: *h, <<: [*b2, *main]}
catalog:
  paths: !!seq [!!str 12]
`
	c, _, problems := parse("c.yaml", []byte(strings.ReplaceAll(file, "*b2, ", "")), nil, nil)
	if len(problems) > 0 {
		t.Fatal(problemText(problems))
	}
	e := c.Loki.Endpoints
	if e[1].URL != e[0].URL || e[1].Headers["X-A"] != "b" || e[1].Backoff != (Backoff{time.Second, 2 * time.Second}) || e[2].Backoff.Min != time.Second || e[2].Name != "c" {
		t.Errorf("%+v", e)
	}
	if c.Catalog.Paths[0] != "12" {
		t.Errorf("%+v", c.Catalog.Paths)
	}
}

// TestExpansionCannotInject: what a variable holds is one text, whatever it
// looks like.
func TestExpansionCannotInject(t *testing.T) {
	for _, value := range []string{"[a, b]", "a\nweb: {listen: ':1'}", "*x", "&x y", "${OTHER}", "$$", "a: b", "# no", "'", `"`, "- a", "null", ""} {
		c, _ := mustParse(t, "state:\n  dir: ${DIR}\nloki:\n  labels: {a: \"x${DIR}\"}\n", Env{"DIR": value, "OTHER": "no"})
		if c.State.Dir != value || c.Loki.Labels["a"] != "x"+value || c.Web != Default().Web {
			t.Errorf("%q: %+v", value, c)
		}
	}
}

func TestExpand(t *testing.T) {
	env := Env{"A": "1", "EMPTY": ""}
	for in, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"${A}":                    "1",
		"x${A}y${A}z":             "x1y1z",
		"${A:-2}":                 "1",
		"${EMPTY}":                "",
		"${EMPTY:-2}":             "2",
		"${NO:-}":                 "",
		"${NO:-a:-b}":             "a:-b",
		"${NO:-/var/{a,b}/*.log}": "/var/{a,b}/*.log",
		"${A:?needed}":            "1",
		"$$":                      "$",
		"$$$$":                    "$$",
		"$${A}":                   "${A}",
		"$$A":                     "$A",
		"a$":                      "a$",
		"(a|b)$|^$":               "(a|b)$|^$",
		"$1":                      "$1",
		"a$)":                     "a$)",
	} {
		got, errs := expand(in, env)
		if got != want || len(errs) > 0 {
			t.Errorf("expand(%q) = %q, %v; want %q", in, got, errs, want)
		}
	}
	if _, errs := expand("${X} ${Y:?why} $Z", env); len(errs) != 3 {
		t.Errorf("want all three faults, got %v", errs)
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "250ms": 250 * time.Millisecond, "1m30s": 90 * time.Second, "1h": time.Hour, "7d": 7 * day, "1d12h": 36 * time.Hour, "1.5s": 1500 * time.Millisecond, "100us": 100 * time.Microsecond,
	} {
		got, err := parseDuration(text)
		if err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
		again, err := parseDuration(formatDuration(got))
		if err != nil || again != got {
			t.Errorf("%v is written as %s and read as %v, %v", got, formatDuration(got), again, err)
		}
	}
	for text, want := range map[time.Duration]string{
		10 * time.Second: "10s", time.Minute: "1m", 20 * time.Minute: "20m", time.Hour: "1h", 10 * time.Hour: "10h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", day: "1d", 36 * time.Hour: "36h", 100 * time.Second: "1m40s", 200 * time.Millisecond: "200ms", 70 * time.Minute: "1h10m",
	} {
		if got := formatDuration(text); got != want {
			t.Errorf("formatDuration(%v) = %s, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"", "1", "1.5", "-1s", "1x", "d", "1d1d", "1.5d", "s", "1 s", "9999999h", "99999d", "inf", "NaN", "1,5s"} {
		if got, err := parseDuration(bad); err == nil {
			t.Errorf("parseDuration(%q) = %v", bad, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "65536": 64 * KiB, "64KiB": 64 * KiB, "64 KiB": 64 * KiB, "64Ki": 64 * KiB, "1.5MiB": 1536 * KiB, "1GiB": GiB, "2Ti": 2 * TiB, "10MB": 10e6, "1kB": 1000, "7B": 7,
	} {
		got, err := parseSize(text)
		if err != nil || got != want {
			t.Errorf("parseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
		again, err := parseSize(got.String())
		if err != nil || again != got {
			t.Errorf("%v is read as %v, %v", got, again, err)
		}
	}
	for _, bad := range []string{"", "KiB", "-1", "1K", "1m", "1 g", "1XB", "1e3", "0x10", "99999999999TiB", "1.2.3"} {
		if got, err := parseSize(bad); err == nil {
			t.Errorf("parseSize(%q) = %v", bad, got)
		}
	}
}

func TestClosest(t *testing.T) {
	words := []string{"listen", "page", "show_lines", "dir", "timeout", "url"}
	for word, want := range map[string]string{
		"listn": "listen", "lisetn": "listen", "LISTEN": "listen", "pages": "page", "showlines": "show_lines", "directory": "dir",
		"ulr": "url", "x": "", "prometheus": "", "time_out": "timeout", "": "",
	} {
		if got := closest(word, words); got != want {
			t.Errorf("closest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestPlaces: every key of a file with all sorts of YAML is found where it
// stands.
func TestPlaces(t *testing.T) {
	raw, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"example": uncomment(string(raw)), "everything": everything, "crlf": strings.ReplaceAll(everything, "\n", "\r\n"),
		"texts": "state:\n  dir: |-\n    /a\n    b # no comment\n\n  # comment\n\n  commit_interval: >-\n    1s\nkubernetes: {\n  namespace: \"é\",   # ü\n  pod: 'x\n   y', uid: u }\nlog:   {level:   info ,format: json}\n",
	} {
		_, origins, _ := parse("c.yaml", []byte(text), Env{}, nil)
		lines := strings.Split(text, "\n")
		for key, o := range origins {
			if key == "" || o.Line < 1 || o.Line > len(lines) {
				continue
			}
			line := []rune(lines[o.Line-1])
			before, at := string(line[:min(o.Column-1, len(line))]), string(line[min(o.Column-1, len(line)):])
			if at == "" || strings.HasPrefix(at, " ") {
				t.Errorf("%s: %s is at %d:%d, where nothing is: %q", name, key, o.Line, o.Column, string(line))
			}
			last := key[strings.LastIndex(key, ".")+1:]
			if !strings.HasSuffix(key, "]") && !strings.Contains(before, last+":") && !strings.HasSuffix(strings.TrimSpace(before), "-") && strings.TrimSpace(before) != "" {
				t.Errorf("%s: %s is at %d:%d, but no key stands before %q in %q", name, key, o.Line, o.Column, at, string(line))
			}
		}
	}
}

// FuzzParse: no text brings the loader down, problems lie within the file,
// and a secret is not shown.
func FuzzParse(f *testing.F) {
	f.Add(everything)
	for _, pattern := range []string{"syntax", "unknown", "loki", "variables"} {
		for _, c := range readGolden(&testing.T{}, "testdata/bad/"+pattern+".txtar") {
			f.Add(c.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			t.Skip() // the parser takes long for long nonsense
		}
		c, origins, problems := parse("c.yaml", []byte(text), Env{}, nil)
		for _, p := range problems {
			if p.Line > 1+strings.Count(text, "\n") || p.Message == "" || strings.Contains(p.Message, "\x00") {
				t.Errorf("%#v", p)
			}
		}
		for _, l := range Show(c, origins) {
			if strings.Contains(l.Text, "\n") {
				t.Errorf("a line break in %q", l.Text)
			}
		}
	})
}

// RWANNOTATE_INPUT is one input, or a list as for every other key; a glob of
// --input may begin with a bracket.
func TestInputVariable(t *testing.T) {
	for value, want := range map[string][]string{
		"/a/*.log":         {"/a/*.log"},
		"[/a/*.log, /b]":   {"/a/*.log", "/b"},
		`["/a/[0-9].log"]`: {"/a/[0-9].log"},
	} {
		c, _, problems := parse("", nil, Env{"RWANNOTATE_INPUT": value}, nil)
		if len(problems) > 0 || len(c.Inputs) != 1 || !slices.Equal(c.Inputs[0].Files, want) {
			t.Errorf("%s: %+v %v", value, c.Inputs, problems)
		}
	}
	if _, _, problems := parse("", nil, Env{"RWANNOTATE_INPUT": "[/a, /b"}, nil); len(problems) != 1 || !strings.Contains(problems[0].String(), "RWANNOTATE_INPUT: inputs: ") {
		t.Errorf("not closed: %v", problems)
	}
	c, _, problems := parse("", nil, nil, []Override{{Key: "input", Values: []string{"[ab].log"}, Origin: Origin{Kind: FromFlag, Name: "--input"}}})
	if len(problems) > 0 || c.Inputs[0].Files[0] != "[ab].log" {
		t.Errorf("flag: %+v %v", c.Inputs, problems)
	}
}
