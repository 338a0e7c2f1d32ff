package loki

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Options of one endpoint. Zero values mean what is said beside them.
type Options struct {
	Name string // in logs, metrics and dead letters; empty: the host

	// URL of the push endpoint. Without a path /loki/api/v1/push is meant; a
	// path and query are taken as they are (gateways, VictoriaLogs:
	// /insert/loki/api/v1/push?disable_message_parsing=1). User and password
	// in it are used for basic authentication and never shown.
	URL    string
	Tenant string // X-Scope-OrgID; empty: not sent

	Username        string // basic authentication; empty: none
	Password        string
	PasswordFile    string // read at each request, so that it can be rotated
	BearerTokenFile string // likewise; excludes basic authentication
	Headers         map[string]string

	ProxyURL string // empty: HTTP_PROXY, HTTPS_PROXY and NO_PROXY
	TLS      TLS

	Timeout    time.Duration // of one request; 0: 10 s
	Linger     time.Duration // how long an entry may wait for company; 0: 1 s
	Drain      time.Duration // how long Run goes on sending after its context ends; 0: 500 ms
	MinBackoff time.Duration // pause after a first failure, doubled with each further one; 0: 0.5 s
	MaxBackoff time.Duration // 0: 30 s
	BatchBytes int           // of a request before compression; 0: 1 MiB
	Parallel   int           // requests at a time, one a stream at most; 0: 4
	MaxStreams int           // label sets; more of them are sent with fewer labels. 0: 100
	MaxAge     time.Duration // older entries are dropped, Loki would refuse them; 0: 7 days, negative: sent anyway

	Heartbeat       time.Duration     // 0: each minute, negative: none
	HeartbeatLabels map[string]string // beside service_name, log_kind and level: few, bounded
	Instance        string            // this process, told by the heartbeat (host or pod name)

	DeadLetter      string // file for entries that were given up; empty: none
	DeadLetterBytes int64  // it is renamed to *.1 beyond this; 0: 16 MiB

	Version string // of rwannotate, for User-Agent and heartbeat

	// Observe is told of each request: its duration, the status (0: no answer)
	// and its bytes on the wire. May be nil. Called from several goroutines.
	Observe func(d time.Duration, status, bytes int)

	// RoundTripper replaces the network; TLS and proxy options have no effect then.
	RoundTripper http.RoundTripper
}

// TLS options. The files are looked at every 10 s and loaded again when they
// change.
type TLS struct {
	CAFile             string // trusted instead of the system's certificates
	CertFile, KeyFile  string // client certificate
	ServerName         string
	InsecureSkipVerify bool
}

// withDefaults fills in what was left out and reports everything that is
// wrong with the rest.
func (o Options) withDefaults() (Options, *url.URL, error) {
	for d, value := range map[*time.Duration]time.Duration{
		&o.Timeout: 10 * time.Second, &o.Linger: time.Second, &o.Drain: 500 * time.Millisecond,
		&o.MinBackoff: 500 * time.Millisecond, &o.MaxBackoff: 30 * time.Second, &o.MaxAge: 7 * 24 * time.Hour, &o.Heartbeat: time.Minute,
	} {
		if *d == 0 {
			*d = value
		}
	}
	for n, value := range map[*int]int{&o.BatchBytes: 1 << 20, &o.Parallel: 4, &o.MaxStreams: 100} {
		if *n <= 0 {
			*n = value
		}
	}
	if o.DeadLetterBytes <= 0 {
		o.DeadLetterBytes = 16 << 20
	}
	u, err := o.parseURL()
	if u != nil && o.Name == "" {
		o.Name = u.Host
	}
	return o, u, errors.Join(err, o.checkAuth(), o.checkTenant(), o.checkHeaders(), o.checkLabels())
}

// parseURL takes user and password out of the URL, so that nothing that
// prints it can show them.
func (o *Options) parseURL() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		// The error of net/url quotes its input, password and all.
		return nil, errors.New("url: cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("url: must begin with http:// or https://")
	case u.Host == "":
		return nil, errors.New("url: has no host")
	}
	if u.User != nil {
		if o.Username != "" {
			return nil, errors.New("url: has a user name, and username is set too")
		}
		o.Username = u.User.Username()
		if password, ok := u.User.Password(); ok {
			if o.PasswordFile != "" {
				return nil, errors.New("url: has a password, and password_file is set too")
			}
			o.Password = password
		}
		u.User = nil
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/loki/api/v1/push"
	}
	u.Fragment = ""
	return u, nil
}

func (o *Options) checkAuth() error {
	var errs []error
	if o.Password != "" && o.PasswordFile != "" {
		errs = append(errs, errors.New("password and password_file: only one can be set"))
	}
	if o.Username == "" && (o.Password != "" || o.PasswordFile != "") {
		errs = append(errs, errors.New("password: needs a username"))
	}
	if o.Username != "" && o.BearerTokenFile != "" {
		errs = append(errs, errors.New("bearer_token_file: cannot be combined with a username"))
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		errs = append(errs, errors.New("tls: cert_file and key_file belong together"))
	}
	return errors.Join(errs...)
}

// checkTenant knows Loki's rule; a bad name has every push refused.
func (o *Options) checkTenant() error {
	if len(o.Tenant) > 150 {
		return errors.New("tenant: longer than 150 bytes")
	}
	if i := strings.IndexFunc(o.Tenant, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!-_.*'()", r))
	}); i >= 0 {
		return fmt.Errorf("tenant: has a character that Loki refuses: %q", o.Tenant[i:i+1])
	}
	if o.Tenant == "." || o.Tenant == ".." {
		return errors.New("tenant: is not a name")
	}
	return nil
}

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	// ours are the headers that make a push a push.
	ours = []string{"Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Connection"}
)

func (o *Options) checkHeaders() error {
	var errs []error
	for name, value := range o.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !headerName.MatchString(name):
			errs = append(errs, fmt.Errorf("headers: %q is not a header name", name))
		case strings.ContainsAny(value, "\r\n\x00"):
			errs = append(errs, fmt.Errorf("headers: the value of %s has a line break", name))
		case contains(ours, canonical):
			errs = append(errs, fmt.Errorf("headers: %s is set by the client itself", name))
		case canonical == "Authorization" && (o.Username != "" || o.BearerTokenFile != ""):
			errs = append(errs, errors.New("headers: Authorization is set by username or bearer_token_file"))
		case canonical == "X-Scope-Orgid" && o.Tenant != "":
			errs = append(errs, errors.New("headers: X-Scope-OrgID is set by tenant"))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) checkLabels() error { return CheckLabels(o.HeartbeatLabels) }

// CheckLabels reports configured labels that cannot be sent as they are, or
// that would replace one of ours.
func CheckLabels(labels map[string]string) error {
	var errs []error
	for name, value := range labels {
		switch {
		case labelName(name) != name:
			errs = append(errs, fmt.Errorf("labels: %q is not a label name; allowed: letters, digits and _, not a digit first", name))
		case contains(LabelNames(), name):
			errs = append(errs, fmt.Errorf("labels: %s is set by rwannotate", name))
		case bounded(value) != value:
			errs = append(errs, fmt.Errorf("labels: the value of %s is not UTF-8 or longer than %d bytes", name, maxValue))
		}
	}
	if len(labels)+len(LabelNames()) > maxLabels {
		errs = append(errs, fmt.Errorf("labels: %d of them; with our own that is more than Loki's limit of %d", len(labels), maxLabels))
	}
	return errors.Join(errs...)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
