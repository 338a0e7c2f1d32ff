package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func shown(c Config, origins Origins) string {
	var b strings.Builder
	for _, l := range Show(c, origins) {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// TestShowIsRead: what Show writes is a configuration, the same one.
func TestShowIsRead(t *testing.T) {
	odd := everything + `
# texts that YAML would take for something else, and dollar signs
`
	odd = strings.Replace(odd, "cluster: prod", `cluster: "a: b # c $${D} $$$$x 'é' \" \\ \t", t: "true", n: "null", z: "~", d: "- x", e: "1e3", o: "0o7"`, 1)
	for name, text := range map[string]string{"default": "", "everything": everything, "odd": odd} {
		c, origins := mustParse(t, text, nil)
		for i := range c.Loki.Endpoints {
			c.Loki.Endpoints[i].Headers = nil // are not shown
		}
		again, _ := mustParse(t, shown(c, origins), Env{})
		if diff := cmp.Diff(emptied(c), emptied(again)); diff != "" {
			t.Errorf("%s (-written +read)\n%s", name, diff)
		}
	}
}

func TestShowHidesSecrets(t *testing.T) {
	c, origins := mustParse(t, `
state: {dir: /s}
loki:
  endpoints:
    - url: https://user:hunter2@loki/push?token=hunter2&x=1
      proxy_url: http://me:hunter2@proxy:1
      headers: {X-A: hunter2, Cookie: a=hunter2}
`, nil)
	got := shown(c, origins)
	if strings.Contains(got, "hunter") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	for _, want := range []string{`url: "https://***@loki/push?token=***&x=1"`, `proxy_url: "http://***@proxy:1"`, `X-A: "***"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, l := range Show(c, origins) {
		if strings.Contains(l.Value, "hunter") {
			t.Errorf("a secret in %+v", l)
		}
	}
}

func TestMaskURL(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"http://loki:3100":                 "http://loki:3100",
		"http://loki/a?disable=1":          "http://loki/a?disable=1",
		"http://loki/a?api_key=k&b=2":      "http://loki/a?api_key=***&b=2",
		"http://u@loki":                    "http://***@loki",
		"http://u:p@loki:3100/x?y#z":       "http://***@loki:3100/x?y#z",
		"://u:p@loki":                      "***",
		"u:p@loki":                         "***",
		"http://u:p ss@loki":               "***",
		"http://u:p/ss@loki":               "***",
		"not a url":                        "not a url",
		"https://loki/loki/api/v1/push":    "https://loki/loki/api/v1/push",
		"http://[::1]:3100/push?sig=a%20b": "http://[::1]:3100/push?sig=***",
	} {
		if got := MaskURL(in); got != want {
			t.Errorf("MaskURL(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestExcerptHidesSecrets: where a text is shown that is not understood.
func TestExcerptHidesSecrets(t *testing.T) {
	for _, text := range []string{
		"pasword: hunter2\nloki: {endpoints: [{password: hunter2}]}\n",
		"url: http://u:hunter2@x\n",
		"loki:\n  endpoints:\n    - url: http://loki\n      headers:\n        A: hunter2\n        \"B B\": |\n          hunter2\n          hunter2\n      bearer_token: 'hunter2'\n",
		"loki: {endpoints: [{headers: {X: hunter2}, tls: 3, hedaers: {}}]}\n",
		"authorization: Bearer hunter2\n  x: y\n",
		"x:\n  api_key: hunter2\n y: z\n",
		"loki: {endpoints: [{headers: hunter2}]}\n",
		"loki: {endpoints: [{headers: [hunter2, hunter2]}]}\n",
		"loki: {endpoints: [{headers: {X: {Y: hunter2}}}]}\n",
		"loki: {endpoints: [{url: 'http://u:hunter2@[', proxy_url: 'u:hunter2@x'}]}\n",
		"loki: {endpoints: [{url: 'http://u:hunter2@h/?token=hunter2#x'}]}\n",
	} {
		_, _, problems := parse("c.yaml", []byte(text), nil, nil)
		if got := problemText(problems); strings.Contains(got, "hunter") || got == "" {
			t.Errorf("%s\n%s", text, got)
		}
	}
}
