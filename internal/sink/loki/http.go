package loki

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxAnswer bounds what is read of an answer. Loki lists ten refused entries
// with their labels and puts the total behind them.
const maxAnswer = 64 << 10

// answer is what came of one request: a status and text, or an error.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
	when   time.Time
}

// poster sends requests to one endpoint.
type poster struct {
	opts   Options
	url    *url.URL
	shown  string // the URL for people: without user, password and query
	client *http.Client
	tls    *reloader // nil if the RoundTripper was given
}

func newPoster(o Options, u *url.URL) (*poster, error) {
	p := &poster{opts: o, url: u, shown: u.Scheme + "://" + u.Host + u.EscapedPath()}
	rt := o.RoundTripper
	if rt == nil {
		r, err := newReloader(o)
		if err != nil {
			return nil, err
		}
		p.tls, rt = r, r
	}
	p.client = &http.Client{
		Transport: rt,
		Timeout:   o.Timeout,
		// A redirected POST comes as a GET, or takes the password elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	_, err := p.authorization()
	return p, err
}

// post sends a compressed body and reads the answer.
func (p *poster) post(ctx context.Context, body []byte) answer {
	req, secrets, err := p.request(ctx, body)
	if err != nil {
		return answer{err: err, when: time.Now()}
	}
	began := time.Now()
	resp, err := p.client.Do(req)
	a := answer{err: err}
	if err == nil {
		a = read(resp)
	}
	a.when = time.Now()
	a.err = redactError(a.err, secrets)
	a.body = Redact(a.body, secrets)
	if a.err != nil || a.status >= 500 {
		// What answered may be on its way down; the next try must find its successor.
		p.client.CloseIdleConnections()
	}
	if p.opts.Observe != nil {
		p.opts.Observe(a.when.Sub(began), a.status, len(body))
	}
	return a
}

func read(resp *http.Response) answer {
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 == 2 {
		err = nil // the status is the answer
	} else if err != nil {
		err = fmt.Errorf("read answer with status %d: %w", resp.StatusCode, err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: strings.ToValidUTF8(string(text), "\uFFFD"), err: err}
}

func (p *poster) request(ctx context.Context, body []byte) (*http.Request, []string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("build request: %w", redactError(err, nil))
	}
	auth, err := p.authorization()
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "rwannotate/"+p.opts.Version)
	if p.opts.Tenant != "" {
		req.Header.Set("X-Scope-OrgID", p.opts.Tenant)
	}
	secrets := auth.secrets
	for name, value := range p.opts.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
		secrets = append(secrets, value)
	}
	auth.apply(req)
	return req, append(secrets, SecretsOf(req)...), nil
}

// authorization reads the secrets anew: in Kubernetes they are files that
// change while we run.
func (p *poster) authorization() (authorization, error) {
	a := authorization{user: p.opts.Username, password: p.opts.Password}
	for path, into := range map[string]*string{p.opts.PasswordFile: &a.password, p.opts.BearerTokenFile: &a.token} {
		if path == "" {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return a, fmt.Errorf("read secret: %w", err)
		}
		*into = strings.TrimSpace(string(b))
		if *into == "" {
			return a, fmt.Errorf("read secret: %s is empty", path)
		}
	}
	for _, s := range []string{a.password, a.token} {
		if s != "" {
			a.secrets = append(a.secrets, s)
		}
	}
	return a, nil
}

type authorization struct {
	user, password, token string
	secrets               []string // what must not appear in any text
}

func (a authorization) apply(req *http.Request) {
	switch {
	case a.token != "":
		req.Header.Set("Authorization", "Bearer "+a.token)
	case a.user != "":
		req.SetBasicAuth(a.user, a.password)
	}
}

// SecretsOf are the parts of a request that are not to be seen in an answer
// that echoes it: credentials as they are sent, and the query of the URL.
func SecretsOf(req *http.Request) []string {
	var secrets []string
	basic := func(user, password string) {
		secrets = append(secrets, password, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	if u := req.URL.User; u != nil {
		password, _ := u.Password()
		basic(u.Username(), password)
	}
	if user, password, ok := req.BasicAuth(); ok {
		basic(user, password)
	} else if _, token, ok := strings.Cut(req.Header.Get("Authorization"), " "); ok {
		secrets = append(secrets, token)
	}
	secrets = append(secrets, req.URL.RawQuery)
	for _, values := range req.URL.Query() {
		for _, v := range values {
			if len(v) > 5 { // not of switches
				secrets = append(secrets, v)
			}
		}
	}
	return secrets
}

// userinfo is user and password of a URL inside a text.
var userinfo = regexp.MustCompile(`//[^/@\s"']*@`)

// Redact takes secrets out of a text that others wrote: an answer may echo a
// header, an error of net/http the URL of the proxy.
func Redact(text string, secrets []string) string {
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) }) // one may hold another
	for _, s := range secrets {
		if len(s) >= 4 { // shorter ones would garble the text more than they protect
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return userinfo.ReplaceAllString(text, "//***@")
}

// redactError drops the URL that net/http puts into its errors. The cause is
// kept as text only: whoever unwrapped it would find the URL again.
func redactError(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	var ue *url.Error
	cause := err
	if errors.As(err, &ue) {
		cause = ue.Err
	}
	text := Redact(cause.Error(), secrets)
	if ue != nil && ue.Timeout() {
		return errors.New("timeout: " + text)
	}
	return errors.New(text)
}

// reloader is a transport that is replaced when one of its files changes, so
// that renewed certificates are used without a restart and before the old ones
// expire.
type reloader struct {
	opts Options

	mu      sync.Mutex
	current *http.Transport
	stamp   string // of the files the current one was made from
	looked  time.Time
}

const lookAgain = 10 * time.Second

func newReloader(o Options) (*reloader, error) {
	r := &reloader{opts: o, looked: time.Now()}
	r.stamp = r.stat()
	t, err := newTransport(o)
	r.current = t
	return r, err
}

func (r *reloader) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.transport().RoundTrip(req)
}

// CloseIdleConnections is found by http.Client.
func (r *reloader) CloseIdleConnections() {
	r.mu.Lock()
	t := r.current
	r.mu.Unlock()
	t.CloseIdleConnections()
}

// transport is the one to use now. Files caught half written are tried again
// at the next request, with the old ones in use until then.
func (r *reloader) transport() *http.Transport {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) < lookAgain {
		return r.current
	} else {
		r.looked = now
	}
	stamp := r.stat()
	if stamp == r.stamp {
		return r.current
	}
	t, err := newTransport(r.opts)
	if err != nil {
		return r.current
	}
	old := r.current
	r.current, r.stamp = t, stamp
	old.CloseIdleConnections()
	return t
}

// stat tells apart the states of the files; missing ones too.
func (r *reloader) stat() string {
	var b strings.Builder
	for _, path := range []string{r.opts.TLS.CAFile, r.opts.TLS.CertFile, r.opts.TLS.KeyFile} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%s: missing;", path)
			continue
		}
		fmt.Fprintf(&b, "%s: %d %d;", path, info.ModTime().UnixNano(), info.Size())
	}
	return b.String()
}

func newTransport(o Options) (*http.Transport, error) {
	config, err := tlsConfig(o.TLS)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if o.ProxyURL != "" {
		u, err := url.Parse(o.ProxyURL)
		if err != nil || u.Host == "" {
			return nil, errors.New("proxy_url: is not a URL") // not quoted: it may hold a password
		}
		proxy = http.ProxyURL(u)
	}
	dialer := net.Dialer{Timeout: o.Timeout, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   o.Timeout,
		ResponseHeaderTimeout: o.Timeout,
		MaxIdleConns:          o.Parallel,
		MaxIdleConnsPerHost:   o.Parallel,
		IdleConnTimeout:       30 * time.Second,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
	}, nil
}

func tlsConfig(o TLS) (*tls.Config, error) {
	config := &tls.Config{ServerName: o.ServerName, InsecureSkipVerify: o.InsecureSkipVerify, MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls: ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: ca_file: no certificate in %s", o.CAFile)
		}
	}
	if o.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls: client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}
