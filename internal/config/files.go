package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CheckFiles opens the files and directories that the configuration names:
// passwords, tokens, certificates, the catalogue's paths. It is apart from
// Validate because a configuration is often checked on a machine that does
// not have them.
func CheckFiles(c Config, origins Origins) []Problem {
	f := &fileChecker{origins: origins}
	for i, path := range c.Catalog.Paths {
		f.directory(fmt.Sprintf("catalog.paths[%d]", i), path)
	}
	if _, err := os.Stat(c.State.Dir); err == nil { // else it will be made
		f.directory("state.dir", c.State.Dir)
	}
	for i, e := range c.Loki.Endpoints {
		f.endpoint(fmt.Sprintf("loki.endpoints[%d]", i), e)
	}
	return f.problems
}

type fileChecker struct {
	origins  Origins
	problems []Problem
}

func (f *fileChecker) say(key, message string) {
	origin, _ := f.origins.nearest(key)
	f.problems = append(f.problems, Problem{Source: origin.Name, Line: origin.Line, Column: origin.Column, Key: key, Message: message})
}

func (f *fileChecker) fail(key, path string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.say(key, fmt.Sprintf("%s does not exist; check the path, or mount it", path))
	case errors.Is(err, fs.ErrPermission):
		f.say(key, fmt.Sprintf("%s may not be read by this user; check its owner and mode", path))
	default:
		f.say(key, fmt.Sprintf("%s cannot be read: %v", path, cause(err)))
	}
}

func (f *fileChecker) directory(key, path string) {
	info, err := os.Stat(path)
	if err != nil {
		f.fail(key, path, err)
	} else if !info.IsDir() {
		f.say(key, fmt.Sprintf("%s is a file; a directory is needed", path))
	}
}

func (f *fileChecker) endpoint(key string, e Endpoint) {
	f.secret(key+".basic_auth.password_file", e.BasicAuth.PasswordFile)
	f.secret(key+".bearer_token_file", e.BearerTokenFile)
	if pem, ok := f.read(key+".tls.ca_file", e.TLS.CAFile); ok && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		f.say(key+".tls.ca_file", fmt.Sprintf("%s holds no PEM certificate", e.TLS.CAFile))
	}
	cert, haveCert := f.read(key+".tls.cert_file", e.TLS.CertFile)
	private, haveKey := f.read(key+".tls.key_file", e.TLS.KeyFile)
	if !haveCert || !haveKey {
		return
	}
	if _, err := tls.X509KeyPair(cert, private); err != nil {
		f.say(key+".tls.key_file", fmt.Sprintf("%s and %s are no pair of certificate and key: %v", e.TLS.CertFile, e.TLS.KeyFile, err))
	}
}

func (f *fileChecker) secret(key, path string) {
	if text, ok := f.read(key, path); ok && len(bytes.TrimSpace(text)) == 0 {
		f.say(key, fmt.Sprintf("%s is empty; write the secret into it", path))
	}
}

func (f *fileChecker) read(key, path string) ([]byte, bool) {
	if path == "" {
		return nil, false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.fail(key, path, err)
	}
	return text, err == nil
}
