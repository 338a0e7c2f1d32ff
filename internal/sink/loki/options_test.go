package loki

import (
	"io"
	stdlog "log"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func quiet() *stdlog.Logger { return stdlog.New(io.Discard, "", 0) }

func TestOptionsReportEverythingAtOnce(t *testing.T) {
	_, err := New(Options{
		URL: "loki:3100", Tenant: "a|b", Username: "u", Password: "p", PasswordFile: "f", BearerTokenFile: "t",
		Headers:         map[string]string{"bad name": "x", "Content-Type": "text/plain", "Authorization": "x", "X-Scope-OrgID": "x", "X-A": "a\nb"},
		TLS:             TLS{CertFile: "c"},
		HeartbeatLabels: map[string]string{"bad-name": "x", "level": "x", "v": strings.Repeat("x", 3000)},
	}, &memQueue{}, renderTest, zerolog.Nop())
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"url:", "tenant:", "password and password_file", "bearer_token_file", "cert_file and key_file", `"bad name"`, "Content-Type", "Authorization",
		"X-Scope-OrgID", "X-A has a line break", `"bad-name"`, "level is set by", "value of v"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestOptionsOneByOne(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		want string // part of the error; empty: fine
	}{
		"minimal":            {Options{URL: "http://loki:3100"}, ""},
		"user in the URL":    {Options{URL: "https://u:p@loki"}, ""},
		"user twice":         {Options{URL: "https://u:p@loki", Username: "v"}, "username is set too"},
		"password twice":     {Options{URL: "https://u:p@loki", PasswordFile: "f"}, "password_file is set too"},
		"password alone":     {Options{URL: "http://loki", Password: "p"}, "needs a username"},
		"no password file":   {Options{URL: "http://loki", Username: "u", PasswordFile: "/nonexistent/p"}, "/nonexistent/p"},
		"no token file":      {Options{URL: "http://loki", BearerTokenFile: "/nonexistent/t"}, "/nonexistent/t"},
		"no CA file":         {Options{URL: "http://loki", TLS: TLS{CAFile: "/nonexistent/ca"}}, "ca_file"},
		"CA file without CA": {Options{URL: "http://loki", TLS: TLS{CAFile: "options_test.go"}}, "no certificate in"},
		"no certificate":     {Options{URL: "http://loki", TLS: TLS{CertFile: "/nonexistent/c", KeyFile: "/nonexistent/k"}}, "client certificate"},
		"tenant":             {Options{URL: "http://loki", Tenant: "Team-A_1.x*'(!)"}, ""},
		"tenant too long":    {Options{URL: "http://loki", Tenant: strings.Repeat("x", 151)}, "150"},
		"tenant slash":       {Options{URL: "http://loki", Tenant: "a/b"}, `"/"`},
		"tenant dots":        {Options{URL: "http://loki", Tenant: ".."}, "not a name"},
		"labels":             {Options{URL: "http://loki", HeartbeatLabels: map[string]string{"cluster": "c", "region": "r"}}, ""},
		"too many labels": {Options{URL: "http://loki", HeartbeatLabels: map[string]string{"a": "1", "b": "1", "c": "1", "d": "1",
			"e": "1", "f": "1", "g": "1", "h": "1", "i": "1"}}, "limit of 15"},
		"proxy": {Options{URL: "http://loki", ProxyURL: "nonsense"}, "proxy_url"},
	} {
		c, err := New(tc.o, &memQueue{}, renderTest, zerolog.Nop())
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
		case tc.want == "" && (c.opts.Name != "loki" && c.opts.Name != "loki:3100"):
			t.Errorf("%s: named %q", name, c.opts.Name)
		}
	}
}

func TestPath(t *testing.T) {
	for in, want := range map[string]string{
		"http://h":                     "http://h/loki/api/v1/push",
		"http://h/":                    "http://h/loki/api/v1/push",
		"http://h/?x=1":                "http://h/loki/api/v1/push?x=1",
		"https://u:p@h:1/a/b?c=d#frag": "https://h:1/a/b?c=d",
	} {
		o := Options{URL: in}
		u, err := o.parseURL()
		if err != nil || u.String() != want {
			t.Errorf("%s: %v %v", in, u, err)
		}
	}
}
