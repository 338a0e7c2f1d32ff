package loki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Tests with a real network, on loopback only: what a RoundTripper in memory
// cannot show.

// server records requests and answers with status.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	conns    map[string]bool // remote addresses
	answer   func(n int) (status int, body string)
}

func newServer(t *testing.T, configure func(*httptest.Server)) *server {
	s := &server{conns: map[string]bool{}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, r)
		s.conns[r.RemoteAddr] = true
		answer := s.answer
		s.mu.Unlock()
		if answer == nil {
			w.WriteHeader(204)
			return
		}
		status, body := answer(n)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	s.Config.ErrorLog = nil
	if configure != nil {
		configure(s.Server)
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *server) last() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		return nil
	}
	return s.requests[len(s.requests)-1]
}

// once posts a body to an endpoint.
func once(t *testing.T, o Options) answer {
	t.Helper()
	p := poster0(t, o)
	return p.post(t.Context(), []byte("x"))
}

func poster0(t *testing.T, o Options) *poster {
	t.Helper()
	o, u, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPoster(o, u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRequest(t *testing.T) {
	s := newServer(t, nil)
	dir := t.TempDir()
	password := write(t, filepath.Join(dir, "password"), "s3cret\n")
	a := once(t, Options{
		URL:    strings.Replace(s.URL, "http://", "http://us%40er@", 1) + "/insert/loki/api/v1/push?disable_message_parsing=1&x=%2F",
		Tenant: "team-a", PasswordFile: password, Version: "9",
		Headers: map[string]string{"AccountID": "12", "Host": "gateway.test"},
	})
	if a.status != 204 || a.err != nil {
		t.Fatal(a)
	}
	r := s.last()
	user, pass, _ := r.BasicAuth()
	for what, got := range map[string]string{
		r.RequestURI: "/insert/loki/api/v1/push?disable_message_parsing=1&x=%2F", r.Method: "POST", user: "us@er", pass: "s3cret", r.Host: "gateway.test",
		r.Header.Get("X-Scope-OrgID"): "team-a", r.Header.Get("AccountID"): "12", r.Header.Get("User-Agent"): "rwannotate/9",
		r.Header.Get("Content-Type"): "application/json", r.Header.Get("Content-Encoding"): "gzip",
	} {
		if what != got {
			t.Errorf("got %q, want %q", what, got)
		}
	}
}

func TestSecretsAreReadAgain(t *testing.T) {
	s := newServer(t, nil)
	dir := t.TempDir()
	token := write(t, filepath.Join(dir, "token"), "one\n")
	p := poster0(t, Options{URL: s.URL, BearerTokenFile: token})
	p.post(t.Context(), nil)
	if got := s.last().Header.Get("Authorization"); got != "Bearer one" {
		t.Errorf("%q", got)
	}
	write(t, token, "two")
	p.post(t.Context(), nil)
	if got := s.last().Header.Get("Authorization"); got != "Bearer two" {
		t.Errorf("%q", got)
	}
	// A file that is gone or empty stops nothing but the request.
	n := len(s.requests)
	write(t, token, "\n")
	if a := p.post(t.Context(), nil); a.err == nil || !strings.Contains(a.err.Error(), token) || judge(a).do != later {
		t.Error(a.err)
	}
	os.Remove(token)
	if a := p.post(t.Context(), nil); a.err == nil || judge(a).do != later {
		t.Error(a.err)
	}
	if len(s.requests) != n {
		t.Error("a request without its token")
	}
}

func TestConnectionIsNotReusedAfter5xx(t *testing.T) {
	s := newServer(t, nil)
	s.answer = func(n int) (int, string) {
		if n == 2 {
			return 500, "empty ring"
		}
		return 204, ""
	}
	p := poster0(t, Options{URL: s.URL})
	for i, want := range []int{1, 1, 1, 2, 2} {
		p.post(t.Context(), nil)
		if got := len(s.conns); got != want {
			t.Errorf("request %d: %d connections, want %d", i, got, want)
		}
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	s := newServer(t, nil)
	s.answer = func(int) (int, string) { <-release; return 204, "" }
	defer close(release)
	a := once(t, Options{URL: s.URL, Timeout: 50 * time.Millisecond})
	if a.err == nil || !strings.Contains(a.err.Error(), "timeout") || strings.Contains(a.err.Error(), s.URL) {
		t.Errorf("%v", a.err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	elsewhere := newServer(t, nil)
	s := newServer(t, func(ts *httptest.Server) {
		ts.Config.Handler = http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect)
		ts.Start()
	})
	a := once(t, Options{URL: s.URL, Username: "u", Password: "p"})
	if v := judge(a); a.status != 307 || v.do != later || !v.hold {
		t.Errorf("%+v %+v", a, v)
	}
	if elsewhere.last() != nil {
		t.Error("followed")
	}
}

func TestProxy(t *testing.T) {
	proxy := newServer(t, nil)
	u := strings.Replace(proxy.URL, "http://", "http://proxyuser:pr0xypass@", 1)
	a := once(t, Options{URL: "http://loki.invalid/push", ProxyURL: u})
	if a.status != 204 {
		t.Fatal(a)
	}
	if r := proxy.last(); r.RequestURI != "http://loki.invalid/push" || r.Header.Get("Proxy-Authorization") == "" {
		t.Errorf("%s %v", r.RequestURI, r.Header)
	}
	proxy.Close()
	a = once(t, Options{URL: "http://loki.invalid/push", ProxyURL: u})
	if a.err == nil || strings.Contains(a.err.Error(), "pr0xypass") {
		t.Error(a.err)
	}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
	n    int64
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func (a *authority) issue(name string) (cert, key string) {
	a.n++
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(100 + a.n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, _ := x509.MarshalECPrivateKey(k)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kder}))
}

func TestMutualTLSWithReload(t *testing.T) {
	ca := newAuthority(t, "ca")
	cert, key := ca.issue("server")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	s := newServer(t, func(ts *httptest.Server) {
		ts.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
		ts.Config.ErrorLog = quiet()
		ts.StartTLS()
	})
	dir := t.TempDir()
	o := Options{URL: s.URL, TLS: TLS{
		CAFile:   write(t, filepath.Join(dir, "ca.pem"), ca.pem),
		CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
	}}
	client := func(name string) {
		cert, key := ca.issue(name)
		write(t, o.TLS.CertFile, cert)
		write(t, o.TLS.KeyFile, key)
	}
	client("first")
	p := poster0(t, o)
	p.post(t.Context(), nil)
	if got := s.last().TLS.PeerCertificates[0].Subject.CommonName; got != "first" {
		t.Fatal(got)
	}
	client("second")
	p.post(t.Context(), nil) // not looked at yet
	p.tls.looked = time.Now().Add(-lookAgain)
	if a := p.post(t.Context(), nil); a.status != 204 {
		t.Fatal(a)
	}
	if got := s.last().TLS.PeerCertificates[0].Subject.CommonName; got != "second" {
		t.Errorf("still the certificate of %s", got)
	}
	// Half a file: the old certificate stays in use, and the whole file is found later.
	write(t, o.TLS.CertFile, "-----BEGIN CERT")
	p.tls.looked = time.Now().Add(-lookAgain)
	if a := p.post(t.Context(), nil); a.status != 204 {
		t.Fatal(a)
	}
	client("third")
	p.tls.looked = time.Now().Add(-lookAgain)
	p.post(t.Context(), nil)
	if got := s.last().TLS.PeerCertificates[0].Subject.CommonName; got != "third" {
		t.Errorf("still the certificate of %s", got)
	}
	// A server that nobody vouches for.
	o.TLS.CAFile = write(t, filepath.Join(dir, "other.pem"), newAuthority(t, "other").pem)
	if a := once(t, o); a.err == nil || !strings.Contains(a.err.Error(), "certificate") {
		t.Errorf("%v", a.err)
	}
	o.TLS.InsecureSkipVerify = true
	if a := once(t, o); a.status != 204 {
		t.Error(a)
	}
}

// TestSecretsNeverShow runs a client against everything that can fail, with
// secrets in every place that takes one, and reads all that it says.
func TestSecretsNeverShow(t *testing.T) {
	secrets := []string{"urlp4ss", "pr0xypass", "h3adersecret", "t0kensecret", "f1lesecret"}
	echo := newServer(t, nil)
	echo.answer = func(n int) (int, string) {
		r := echo.requests[n]
		return []int{401, 400, 500, 429}[n%4], "you sent " + r.Header.Get("Authorization") + " and " + r.Header.Get("X-Key") + " at http://x:urlp4ss@host/"
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	password := write(t, filepath.Join(t.TempDir(), "p"), "f1lesecret\n")
	token := write(t, filepath.Join(t.TempDir(), "t"), "t0kensecret\n")
	var out bytes.Buffer
	for _, o := range []Options{
		{URL: strings.Replace(echo.URL, "http://", "http://user:urlp4ss@", 1) + "/push?token=urlp4ss"},
		{URL: strings.Replace(dead.URL, "http://", "http://user:urlp4ss@", 1) + "/push?token=urlp4ss"},
		{URL: echo.URL, BearerTokenFile: token, Headers: map[string]string{"X-Key": "h3adersecret"}},
		{URL: echo.URL, Username: "u", PasswordFile: password},
		{URL: "http://loki.invalid", ProxyURL: strings.Replace(dead.URL, "http://", "http://u:pr0xypass@", 1)},
		{URL: "https://user:urlp4ss@127.0.0.1:1/"},
	} {
		o.Heartbeat, o.Timeout, o.Linger = -1, time.Second, time.Millisecond
		o.DeadLetter = filepath.Join(t.TempDir(), "dead")
		q := &memQueue{}
		q.add([]byte(`{"Line":"x","Time":"2000-01-01T00:00:00Z"}`))
		o.MaxAge = -1
		c, err := New(o, q, renderTest, zerolog.New(&out))
		if err != nil {
			t.Fatal(err)
		}
		stop := running(t, c)
		time.Sleep(300 * time.Millisecond)
		stop()
		c.post.client.CloseIdleConnections()
		if b, err := os.ReadFile(o.DeadLetter); err == nil {
			out.Write(b)
		}
	}
	for _, o := range []Options{
		{URL: "http://user:urlp4ss@host:badport/"}, {URL: "ftp://user:urlp4ss@host/"}, {URL: "http://user:urlp4ss@/"}, {URL: "http://us er:urlp4ss@host\x7f/"},
		{URL: "http://host", ProxyURL: "http://u:pr0xypass@\x7f"}, {URL: "http://host", Headers: map[string]string{"X-Key": "h3adersecret\n"}},
	} {
		_, err := New(o, &memQueue{}, renderTest, zerolog.Nop())
		if err == nil {
			t.Errorf("%+v is accepted", o)
			continue
		}
		out.WriteString(err.Error() + "\n")
	}
	if len(echo.requests) < 3 || !strings.Contains(out.String(), "***") {
		t.Errorf("%d requests; nothing was tested:\n%s", len(echo.requests), out.String())
	}
	for _, s := range secrets {
		if i := strings.Index(out.String(), s); i >= 0 {
			t.Errorf("%s in …%s…", s, out.String()[max(0, i-200):i+20])
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"dial http://u:p@h/x: refused": "dial http://***@h/x: refused",
		"http://h/a@b":                 "http://h/a@b",
		"token abcd in it":             "token *** in it",
		"nothing":                      "nothing",
	} {
		if got := Redact(in, []string{"abcd", "x"}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An answer that echoes the request shows nothing of how it was authenticated.
func TestSecretsOf(t *testing.T) {
	for address, prepare := range map[string]func(*http.Request){
		"http://h/push":                         func(r *http.Request) { r.SetBasicAuth("rw", "hunter22") },
		"http://rw:hunter22@h/push":             func(r *http.Request) { r.Header.Set("Echo", "cnc6aHVudGVyMjI=") },
		"http://h/push?token=hunter22&parsed=1": func(*http.Request) {},
		"http://h/p?t=hunter22":                 func(r *http.Request) { r.Header.Set("Authorization", "Bearer hunter22hunter22") },
	} {
		req, err := http.NewRequest(http.MethodPost, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		prepare(req)
		echo := fmt.Sprint("cannot serve ", req.URL.RequestURI(), " for ", req.Header)
		if got := Redact(echo, SecretsOf(req)); strings.Contains(got, "hunter22") || strings.Contains(got, "cnc6") || !strings.Contains(got, "cannot serve /p") {
			t.Errorf("%s: %s", address, got)
		}
	}
}
