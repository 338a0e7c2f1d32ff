package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Validate checks what the types alone do not say. The problems have a Key
// and no place; Load adds it.
func Validate(c Config) []Problem {
	v := &validator{}
	v.inputs(c.Inputs)
	v.kubernetes(c.Kubernetes)
	v.duration("multiline.flush_after", c.Multiline.FlushAfter, 10*time.Millisecond, 10*time.Second)
	v.size("multiline.max_bytes", c.Multiline.MaxBytes, 4*KiB, 4*MiB)
	v.catalog(c.Catalog)
	v.output(c)
	v.state(c)
	v.loki(c.Loki)
	v.web(c.Web)
	v.optionalDuration("reload.interval", c.Reload.Interval, time.Second, day)
	v.duration("shutdown_timeout", c.ShutdownTimeout, 100*time.Millisecond, 10*time.Minute)
	return v.problems
}

type validator struct{ problems []Problem }

func (v *validator) fail(key, format string, args ...any) {
	v.problems = append(v.problems, Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) warn(key, format string, args ...any) {
	v.problems = append(v.problems, Problem{Key: key, Message: fmt.Sprintf(format, args...), Warning: true})
}

func (v *validator) duration(key string, d, least, most time.Duration) {
	if d < least {
		v.fail(key, "%s is too short; the least is %s", formatDuration(d), formatDuration(least))
	}
	if d > most {
		v.fail(key, "%s is too long; the most is %s", formatDuration(d), formatDuration(most))
	}
}

// optionalDuration allows 0, which turns the thing off.
func (v *validator) optionalDuration(key string, d, least, most time.Duration) {
	if d != 0 && d < least {
		v.fail(key, "%s is too short; the least is %s, and 0 turns it off", formatDuration(d), formatDuration(least))
	}
	if d > most {
		v.fail(key, "%s is too long; the most is %s, and 0 turns it off", formatDuration(d), formatDuration(most))
	}
}

func (v *validator) size(key string, n, least, most Size) {
	if n < least {
		v.fail(key, "%s is too small; the least is %s", n, least)
	}
	if n > most {
		v.fail(key, "%s is too large; the most is %s", n, most)
	}
}

// path refuses what a block text or a variable from a file leaves at the end of
// a name.
func (v *validator) path(key, path string) {
	if strings.TrimSpace(path) != path {
		v.fail(key, "%q begins or ends with a space or a line break; remove it", path)
	}
}

// list checks each entry of a list, and that none is there twice.
func (v *validator) list(key string, values []string, check func(key, value string)) {
	first := map[string]int{}
	for i, value := range values {
		at := fmt.Sprintf("%s[%d]", key, i)
		if j, twice := first[value]; twice {
			v.fail(at, "%q is listed twice, first as entry %d; remove one", value, j+1)
			continue
		}
		first[value] = i
		if value == "" {
			v.fail(at, "the entry is empty; give a value or remove it")
			continue
		}
		check(at, value)
	}
}

func (v *validator) inputs(inputs []Input) {
	stdin := -1
	globs := map[string]string{}
	for i, in := range inputs {
		key := fmt.Sprintf("inputs[%d]", i)
		if !in.Stdin {
			v.files(key, in, globs)
			continue
		}
		if stdin >= 0 {
			v.fail(key+".stdin", "standard input is read by inputs[%d] already; remove one", stdin)
		}
		stdin = i
		if len(in.Files) > 0 {
			v.fail(key+".files", "an input reads either files or standard input; make two inputs of it")
		}
		if len(in.Exclude) > 0 {
			v.fail(key+".exclude", "nothing can be excluded from standard input; remove this")
		}
		if in.Start != "checkpoint" {
			v.fail(key+".start", "standard input can only be read from where it is; remove this")
		}
	}
}

func (v *validator) files(key string, in Input, globs map[string]string) {
	if len(in.Files) == 0 {
		v.fail(key+".files", "the input reads nothing; list files, or set stdin: true")
	}
	v.list(key+".files", in.Files, func(at, glob string) {
		if glob == "-" {
			v.fail(at, "- is no file; for standard input write stdin: true instead of files")
			return
		}
		if v.glob(at, glob); globs[glob] != "" {
			v.fail(at, "%q is read by %s already; remove one", glob, globs[glob])
		}
		globs[glob] = key
	})
	v.list(key+".exclude", in.Exclude, v.glob)
}

func (v *validator) glob(key, glob string) {
	if strings.TrimSpace(glob) != glob {
		v.fail(key, "%q begins or ends with a space or a line break; remove it", glob)
		return
	}
	if !doublestar.ValidatePattern(glob) {
		v.fail(key, "%q is no valid glob; close every [ and {, and do not end with a backslash", glob)
	}
}

var (
	dnsName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
	uidForm     = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	recordName  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	labelName   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	tenantForm  = regexp.MustCompile(`^[A-Za-z0-9!\-_.*'()]+$`)
	queueName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$`)
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = regexp.MustCompile(`^[\t\x20-\x7e\x{80}-\x{10ffff}]*$`)
)

func (v *validator) kubernetes(k Kubernetes) {
	for _, name := range []struct{ key, value string }{
		{"namespace", k.Namespace}, {"pod", k.Pod}, {"node", k.Node},
	} {
		if name.value != "" && (!dnsName.MatchString(name.value) || len(name.value) > 253) {
			v.fail("kubernetes."+name.key, "%q is no Kubernetes name; it has only lower-case letters, digits, dashes and dots", name.value)
		}
	}
	if k.UID != "" && !uidForm.MatchString(k.UID) {
		v.fail("kubernetes.uid", "%q is no UID; it has only letters, digits and dashes", k.UID)
	}
}

func (v *validator) catalog(c Catalog) {
	if !c.Embedded && len(c.Paths) == 0 {
		v.fail("catalog.embedded", "without the built-in catalogue there is none; set catalog.paths, or remove this")
	}
	v.list("catalog.paths", c.Paths, func(at, path string) {
		v.path(at, path)
		if strings.ContainsAny(path, "*?[{") {
			v.fail(at, "%q is a glob, but a directory is expected; name the directory", path)
		}
	})
	v.list("catalog.disable", c.Disable, v.record)
	for _, name := range slices.Sorted(maps.Keys(c.SeverityOverrides)) {
		at := "catalog.severity_overrides." + name
		v.record(at, name)
		if slices.Contains(c.Disable, name) {
			v.fail(at, "the record is disabled, so its severity does not matter; remove it here or from catalog.disable")
		}
	}
}

func (v *validator) record(key, name string) {
	if !recordName.MatchString(name) {
		v.fail(key, "%q is neither the id nor the slug of a record; see `rwannotate patterns list`", name)
	}
}

func (v *validator) output(c Config) {
	if !c.Output.Stdout && len(c.Loki.Endpoints) == 0 {
		v.fail("output.stdout", "without standard output and without a Loki endpoint events go nowhere; set one of them")
	}
	v.list("output.redact", c.Output.Redact, func(at, expr string) {
		re, err := regexp.Compile(expr)
		if err != nil {
			v.fail(at, "%q is no regular expression of the RE2 kind: %s", expr, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			return
		}
		if re.MatchString("") {
			v.fail(at, "%q matches the empty text, so it would hide everything; ask for at least one character", expr)
		}
	})
}

func (v *validator) state(c Config) {
	v.path("state.dir", c.State.Dir)
	v.duration("state.commit_interval", c.State.CommitInterval, 10*time.Millisecond, 10*time.Second)
	v.size("state.queue_max_bytes", c.State.QueueMaxBytes, MiB, TiB)
	if c.State.Dir == "" && len(c.Loki.Endpoints) > 0 {
		v.warn("loki.endpoints", "without a state directory, events that Loki has not taken are lost at a restart; set state.dir")
	}
}

// Labels and structured metadata that are always sent, and what the push
// client may add.
var reservedLabels = []string{"service_name", "namespace", "component", "level", "log_kind", "pod", "replay"}

// maxLabels leaves room for those below Loki's limit of 15.
const maxLabels = 8

func (v *validator) loki(l Loki) {
	v.labels(l.Labels)
	if l.Rate.EventsPerSecond < 0 || l.Rate.EventsPerSecond > 1e6 {
		v.fail("loki.rate.events_per_second", "%s is out of range; it must be at most 1000000, and 0 turns the limit off", formatFloat(l.Rate.EventsPerSecond))
	}
	if l.Rate.Burst < 1 || l.Rate.Burst > 1e6 {
		v.fail("loki.rate.burst", "%d is out of range; it must be from 1 to 1000000", l.Rate.Burst)
	}
	v.optionalDuration("loki.heartbeat", l.Heartbeat, 5*time.Second, day)
	names := map[string]int{}
	for i, e := range l.Endpoints {
		key := fmt.Sprintf("loki.endpoints[%d]", i)
		if !queueName.MatchString(e.Name) || len(e.Name) > 63 {
			v.fail(key+".name", "%q is no name; use up to 63 lower-case letters, digits, - and _, with a letter or digit at both ends", e.Name)
		}
		if first, twice := names[e.Name]; twice {
			v.fail(key+".name", "the name %q belongs to loki.endpoints[%d] already; give each endpoint a name of its own, for its queue", e.Name, first)
		}
		names[e.Name] = i
		v.endpoint(key, e)
	}
}

func (v *validator) labels(labels map[string]string) {
	if len(labels) > maxLabels {
		v.fail("loki.labels", "there are %d labels, but Loki's limit of 15 leaves room for %d; remove some", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		at, value := "loki.labels."+name, labels[name]
		switch {
		case name == "pod":
			v.fail(at, "the label pod has the name of each event's own pod; set loki.pod_label: true instead")
		case slices.Contains(reservedLabels, name):
			v.fail(at, "the label %s is always set by rwannotate; choose another name", name)
		case !labelName.MatchString(name):
			v.fail(at, "%q is no label name; use letters, digits and _, and begin with a letter or _", name)
		case strings.HasPrefix(name, "__"):
			v.fail(at, "label names that begin with __ belong to Loki; choose another name")
		case len(name) > 1024:
			v.fail(at, "the label name has %d bytes, but Loki takes 1024; shorten it", len(name))
		case value == "":
			v.fail(at, "the label is empty, and Loki drops empty labels; give a value or remove it")
		case len(value) > 2048:
			v.fail(at, "the value has %d bytes, but Loki takes 2048; shorten it", len(value))
		case !utf8.ValidString(value):
			v.fail(at, "the value is not UTF-8; Loki refuses it")
		}
	}
}

func (v *validator) endpoint(key string, e Endpoint) {
	u := v.url(key+".url", e.URL, "http", "https")
	if e.ProxyURL != "" {
		v.url(key+".proxy_url", e.ProxyURL, "http", "https", "socks5")
	}
	for name, path := range map[string]string{
		"basic_auth.password_file": e.BasicAuth.PasswordFile, "bearer_token_file": e.BearerTokenFile,
		"tls.ca_file": e.TLS.CAFile, "tls.cert_file": e.TLS.CertFile, "tls.key_file": e.TLS.KeyFile,
	} {
		v.path(key+"."+name, path)
	}
	v.tenant(key+".tenant_id", e.TenantID)
	v.auth(key, e, u)
	v.tls(key+".tls", e.TLS, u)
	v.headers(key, e)
	// An event has up to 64 KiB, and more with its metadata and JSON escapes.
	v.size(key+".batch.max_bytes", e.Batch.MaxBytes, 256*KiB, 3*MiB)
	v.duration(key+".batch.linger", e.Batch.Linger, 10*time.Millisecond, time.Minute)
	v.duration(key+".timeout", e.Timeout, 100*time.Millisecond, 5*time.Minute)
	v.duration(key+".backoff.min", e.Backoff.Min, 10*time.Millisecond, time.Hour)
	v.duration(key+".backoff.max", e.Backoff.Max, 100*time.Millisecond, time.Hour)
	if e.Backoff.Min > e.Backoff.Max && e.Backoff.Min <= time.Hour {
		v.fail(key+".backoff", "min (%s) is longer than max (%s); swap them", formatDuration(e.Backoff.Min), formatDuration(e.Backoff.Max))
	}
	v.optionalDuration(key+".drop_older_than", e.DropOlderThan, time.Minute, 3650*day)
}

// url returns nil unless the address can be used.
func (v *validator) url(key, s string, schemes ...string) *url.URL {
	u, err := url.Parse(s)
	switch {
	case s == "":
		v.fail(key, "the endpoint has no address; write for example url: http://loki:3100")
	case err != nil:
		v.fail(key, "this is no URL; write for example %s://host:3100", schemes[0])
	case u.Scheme == "" || u.Host == "" && u.Opaque != "":
		v.fail(key, "the URL must begin with %s://", strings.Join(schemes, ":// or "))
	case !slices.Contains(schemes, u.Scheme):
		v.fail(key, "the URL begins with %s://, but %s is needed", u.Scheme, strings.Join(schemes, " or "))
	case u.Hostname() == "":
		v.fail(key, "the URL names no host; write for example %s://host:3100", u.Scheme)
	case !validPort(u):
		v.fail(key, "the port %q is not between 1 and 65535", u.Port())
	case u.Fragment != "":
		v.fail(key, "a URL to push to has no #fragment; remove it")
	default:
		if strings.HasSuffix(key, ".url") && u.Path != "" && u.Path != "/" && !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/push") {
			v.warn(key, "the path %s is used as it is, though it does not end in /push; Loki's is /loki/api/v1/push", u.Path)
		}
		return u
	}
	return nil
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(u.Port())
	return err == nil && n >= 1 && n <= 65535
}

func (v *validator) tenant(key, tenant string) {
	switch {
	case tenant == "":
	case len(tenant) > 150:
		v.fail(key, "the tenant has %d characters, but Loki takes 150; shorten it", len(tenant))
	case strings.Contains(tenant, "|"):
		v.fail(key, "%q names several tenants, but events are pushed to one; make an endpoint for each", tenant)
	case tenant == "." || tenant == "..":
		v.fail(key, "Loki refuses the tenant %q; choose another", tenant)
	case !tenantForm.MatchString(tenant):
		v.fail(key, "Loki refuses the tenant %q; use letters, digits and !-_.*'() only", tenant)
	}
}

func (v *validator) auth(key string, e Endpoint, u *url.URL) {
	basic := e.BasicAuth != BasicAuth{}
	switch {
	case basic && e.BasicAuth.Username == "":
		v.fail(key+".basic_auth.username", "there is a password_file but no username; give both")
	case basic && e.BasicAuth.PasswordFile == "":
		v.fail(key+".basic_auth.password_file", "there is a username but no password_file; give both")
	case strings.Contains(e.BasicAuth.Username, ":"):
		v.fail(key+".basic_auth.username", "a user name cannot have a colon; remove it")
	}
	given := []string{}
	if basic {
		given = append(given, "basic_auth")
	}
	if e.BearerTokenFile != "" {
		given = append(given, "bearer_token_file")
	}
	if u != nil && u.User != nil {
		given = append(given, "a user in url")
	}
	for name := range e.Headers {
		if strings.EqualFold(name, "Authorization") {
			given = append(given, "the header "+name)
		}
	}
	if len(given) > 1 {
		v.fail(key, "only one way to authenticate can be used, but there are %s; remove all but one", strings.Join(given, " and "))
	}
}

func (v *validator) tls(key string, t TLS, u *url.URL) {
	if t == (TLS{}) {
		return
	}
	if u != nil && u.Scheme == "http" {
		v.fail(key, "the url begins with http://, so certificates are not used; write https:// or remove tls")
	}
	if t.CertFile == "" && t.KeyFile != "" {
		v.fail(key+".cert_file", "there is a key_file but no cert_file; a client certificate needs both")
	}
	if t.CertFile != "" && t.KeyFile == "" {
		v.fail(key+".key_file", "there is a cert_file but no key_file; a client certificate needs both")
	}
	if t.InsecureSkipVerify && t.CAFile != "" {
		v.fail(key+".insecure_skip_verify", "with it no certificate is checked, so ca_file has no effect; remove one of them")
	}
	if t.InsecureSkipVerify && t.ServerName != "" {
		v.fail(key+".insecure_skip_verify", "with it no certificate is checked, so server_name has no effect; remove one of them")
	}
	if t.ServerName != "" && !dnsName.MatchString(strings.ToLower(t.ServerName)) {
		v.fail(key+".server_name", "%q is no host name; write it without scheme and port", t.ServerName)
	}
	if t.InsecureSkipVerify {
		v.warn(key+".insecure_skip_verify", "any server is trusted, so events and credentials can be read on the way; use ca_file instead")
	}
}

// headers never shows a value.
func (v *validator) headers(key string, e Endpoint) {
	first := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		at, lower := key+".headers."+name, strings.ToLower(name)
		switch {
		case !headerName.MatchString(name):
			v.fail(at, "%q is no header name; use letters, digits and -", name)
		case !headerValue.MatchString(e.Headers[name]):
			v.fail(at, "the value has a line break or another control character; remove it (a file read into a variable often ends with one)")
		case lower == "x-scope-orgid":
			v.fail(at, "the tenant has a key of its own; write it as tenant_id")
		case slices.Contains([]string{"content-type", "content-encoding", "content-length", "transfer-encoding", "connection"}, lower):
			v.fail(at, "the header %s is set by rwannotate itself; remove it", name)
		case first[lower] != "":
			v.fail(at, "the header is given twice, as %s and %s; remove one", first[lower], name)
		}
		first[lower] = name
	}
}

// Ports of RisingWave's own processes, with which a sidecar shares the
// network.
var risingWavePorts = []int{4560, 4566, 4567, 5688, 5690, 5691, 6660, 6786, 8080, 1222, 1250, 1260, 2222}

func (v *validator) web(w Web) {
	if w.Listen == "" {
		for _, open := range exposed(w) {
			v.fail(open, "there is no listener to offer it; set web.listen or remove this")
		}
		return
	}
	host, port, err := net.SplitHostPort(w.Listen)
	if err != nil {
		v.fail("web.listen", "%q is no host:port; write for example 127.0.0.1:12399, or :12399 for every address", w.Listen)
		return
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		v.fail("web.listen", "the port %q is not a number between 0 and 65535", port)
		return
	}
	if host != "" && net.ParseIP(host) == nil && !dnsName.MatchString(strings.ToLower(host)) {
		v.fail("web.listen", "%q is neither an IP address nor a host name", host)
		return
	}
	if slices.Contains(risingWavePorts, n) {
		v.warn("web.listen", "RisingWave itself listens on port %d, and containers of a pod share their ports; choose another", n)
	}
	if w.ShowLines && !w.Page {
		v.fail("web.show_lines", "lines are shown on the page, which web.page turns off; remove one of them")
	}
	ip := net.ParseIP(host)
	if loopback := host == "localhost" || ip != nil && ip.IsLoopback(); loopback {
		return
	}
	for _, open := range exposed(w) {
		v.warn(open, "everybody who reaches %s can use it; listen on 127.0.0.1 if that is too many", w.Listen)
	}
}

// exposed lists what the listener offers beyond the harmless.
func exposed(w Web) []string {
	var keys []string
	for _, open := range []struct {
		key string
		on  bool
	}{{"web.pprof", w.Pprof}, {"web.enable_reload", w.EnableReload}, {"web.show_lines", w.ShowLines}} {
		if open.on {
			keys = append(keys, open.key)
		}
	}
	return keys
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
