package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := certificate(t)
	certFile, keyFile := write("cert.pem", cert), write("key.pem", key)
	_, otherKey := certificate(t)
	empty, text := write("empty", []byte(" \n")), write("text", []byte("secret\n"))

	good := Default()
	good.State.Dir = dir
	good.Catalog.Paths = []string{dir}
	good.Loki.Endpoints = []Endpoint{{
		BasicAuth: BasicAuth{"u", text}, BearerTokenFile: text, TLS: TLS{CAFile: certFile, CertFile: certFile, KeyFile: keyFile},
	}}
	if problems := CheckFiles(good, nil); len(problems) > 0 {
		t.Error(problemText(problems))
	}

	bad := Default()
	bad.State.Dir = text
	bad.Catalog.Paths = []string{"/nowhere/a", text}
	bad.Loki.Endpoints = []Endpoint{
		{BasicAuth: BasicAuth{"u", "/nowhere/p"}, BearerTokenFile: empty, TLS: TLS{CAFile: text, CertFile: certFile, KeyFile: write("other.pem", otherKey)}},
		{BearerTokenFile: dir, TLS: TLS{CertFile: certFile, KeyFile: "/nowhere/k"}},
	}
	var got []string
	for _, p := range CheckFiles(bad, Origins{"state.dir": {Kind: FromFile, Name: "c.yaml", Line: 3, Column: 8}}) {
		got = append(got, p.String())
	}
	want := []string{
		"catalog.paths[0]: /nowhere/a does not exist; check the path, or mount it",
		"catalog.paths[1]: " + text + " is a file; a directory is needed",
		"c.yaml:3:8: state.dir: " + text + " is a file; a directory is needed",
		"loki.endpoints[0].basic_auth.password_file: /nowhere/p does not exist; check the path, or mount it",
		"loki.endpoints[0].bearer_token_file: " + empty + " is empty; write the secret into it",
		"loki.endpoints[0].tls.ca_file: " + text + " holds no PEM certificate",
		"loki.endpoints[0].tls.key_file: " + certFile + " and " + filepath.Join(dir, "other.pem") + " are no pair of certificate and key: tls: private key does not match public key",
		"loki.endpoints[1].bearer_token_file: " + dir + " cannot be read: is a directory",
		"loki.endpoints[1].tls.key_file: /nowhere/k does not exist; check the path, or mount it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}
