package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rwannotate/rwannotate/configs"
	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/internal/config"
	"github.com/rwannotate/rwannotate/internal/sink/loki"
)

// defaultConfigFile is read if nothing else is named and it exists.
const defaultConfigFile = "/etc/rwannotate/config.yaml"

// configFlags name a configuration file and override keys of it.
type configFlags struct {
	file string
	set  *pflag.FlagSet
}

// overridingFlags are the flags that stand for a key of the configuration.
var overridingFlags = []struct{ flag, key, usage string }{
	{"input", "input", "file, directory or `GLOB` to read, or - for standard input, instead of the configured inputs (repeatable)"},
	{"start", "start", "where to begin with files: checkpoint, beginning or end"},
	{"patterns", "catalog.paths", "`DIR` with further records, which override embedded ones by id (repeatable)"},
	{"no-embedded", "catalog.embedded", "leave out the catalogue inside the binary"},
	{"strict", "catalog.strict", "stop if a record of the catalogue cannot be used"},
	{"state", "state.dir", "`DIR` for positions and unsent events"},
	{"loki-url", "loki.url", "`URL` of Loki, such as http://loki:3100"},
	{"loki-repeat", "loki.repeat", "collapse: repeats become one event with counts; all: send every hit"},
	{"web-listen", "web.listen", "`HOST:PORT` of health, metrics and status page; empty: none"},
	{"log-level", "log.level", "least level of our own messages: debug, info, warn or error"},
	{"log-format", "log.format", "form of our own messages: json or text"},
}

func (f *configFlags) register(fl *pflag.FlagSet) {
	f.set = fl
	fl.StringVarP(&f.file, "config", "c", "", "configuration `FILE` (default $RWANNOTATE_CONFIG, else "+defaultConfigFile+" if it exists)")
	for _, o := range overridingFlags {
		switch o.flag {
		case "input", "patterns":
			fl.StringArray(o.flag, nil, o.usage)
		case "no-embedded", "strict":
			fl.Bool(o.flag, false, o.usage)
		default:
			fl.String(o.flag, "", o.usage)
		}
	}
}

// path of the file to read; "" if there is none.
func (f *configFlags) path() string {
	if f.file != "" {
		return f.file
	}
	if file := os.Getenv(config.EnvPrefix + "CONFIG"); file != "" {
		return file
	}
	if _, err := os.Stat(defaultConfigFile); err == nil {
		return defaultConfigFile
	}
	return ""
}

// overrides are the flags that were given.
func (f *configFlags) overrides() []config.Override {
	var given []config.Override
	for _, o := range overridingFlags {
		flag := f.set.Lookup(o.flag)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if o.flag == "no-embedded" {
			values = []string{fmt.Sprint(flag.Value.String() == "false")}
		}
		given = append(given, config.Override{Key: o.key, Values: values, Origin: config.Origin{Kind: config.FromFlag, Name: "--" + o.flag}})
	}
	return given
}

// load reads the configuration and tells every problem on w. An error means
// that it cannot be used.
func (f *configFlags) load(w io.Writer) (config.Config, config.Origins, error) {
	c, origins, problems := config.Load(f.path(), config.EnvOf(os.Environ()), f.overrides())
	return c, origins, tellProblems(w, problems)
}

// tellProblems prints the problems; the error counts those that are more than
// warnings.
func tellProblems(w io.Writer, problems []config.Problem) error {
	n := 0
	for _, p := range problems {
		fmt.Fprintln(w, printable(p.String()))
		if !p.Warning {
			n++
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return exitf(exitConfig, "the configuration has a fault")
	}
	return exitf(exitConfig, "the configuration has %d faults", n)
}

func newConfigCmd(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and show the configuration",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return exitError{code: exitUsage}
		},
	}
	cmd.AddCommand(newConfigValidateCmd(std), newConfigShowCmd(std), newConfigSchemaCmd(std))
	return cmd
}

func newConfigValidateCmd(std streams) *cobra.Command {
	var online bool
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Say everything that is wrong with a configuration",
		Long: `Read a configuration as run would, with the RWANNOTATE_… variables, and say
everything that is wrong with it. Files that it names (secrets, certificates)
and records of the catalogue are looked for; as they may be elsewhere, those
that are missing are warnings, and errors with --online. --online also asks
each Loki endpoint with a push that stores nothing.

Exit code 0: it can be used; 78: it cannot; 1: a Loki endpoint does not answer.`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				flags.file = args[0]
			}
			return validateConfig(cmd.Context(), std, &flags, online)
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().BoolVar(&online, "online", false, "also ask each Loki endpoint; nothing is stored")
	return cmd
}

func validateConfig(ctx context.Context, std streams, flags *configFlags, online bool) error {
	c, origins, err := flags.load(std.err)
	if err != nil {
		return err
	}
	missing := config.CheckFiles(c, origins)
	catalogue := catalogFlags{dirs: c.Catalog.Paths, noEmbedded: !c.Catalog.Embedded}
	if records, _, err := catalogue.read(); err == nil { // else CheckFiles has said it
		missing = append(missing, unknownRecords(records, configured{c, origins})...)
	}
	for i := range missing {
		missing[i].Warning = !online
	}
	if err := tellProblems(std.err, missing); err != nil {
		return err
	}
	name := flags.path()
	if name == "" {
		name = "no file: the defaults"
	}
	if online {
		if err := probeEndpoints(ctx, std.out, c); err != nil {
			return err
		}
	}
	fmt.Fprintf(std.out, "%s: ok\n", name)
	return nil
}

// unknownRecords finds ids and slugs in the configuration that no record of
// the catalogue has.
func unknownRecords(records []catalog.Record, given configured) []config.Problem {
	c, origins := given.cfg, given.origins
	named := func(r catalog.Record, name string) bool { return r.ID == name || r.Slug == name }
	var problems []config.Problem
	check := func(key, name string) {
		if slices.ContainsFunc(records, func(r catalog.Record) bool { return named(r, name) }) {
			return
		}
		o := origins[key]
		problems = append(problems, config.Problem{
			Source: o.Name, Line: o.Line, Column: o.Column, Key: key,
			Message: fmt.Sprintf("the catalogue has no record %q; see `rwannotate patterns list`", name),
		})
	}
	for i, name := range c.Catalog.Disable {
		check(fmt.Sprintf("catalog.disable[%d]", i), name)
	}
	for name := range c.Catalog.SeverityOverrides {
		check("catalog.severity_overrides."+name, name)
	}
	slices.SortFunc(problems, func(a, b config.Problem) int { return strings.Compare(a.Key, b.Key) })
	return problems
}

func newConfigShowCmd(std streams) *cobra.Command {
	var output string
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the configuration in force, and where each value was given",
		Long: `Show every value that run would use with the same flags, the RWANNOTATE_…
variables and the file, and where it was given. Secrets are shown as ***.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if output != "text" && output != "json" {
				return exitf(exitUsage, "-o %s: write text or json", output)
			}
			c, origins, err := flags.load(std.err)
			if err != nil {
				return err
			}
			if output == "json" {
				return showJSON(std.out, config.Show(c, origins))
			}
			return showText(std.out, config.Show(c, origins))
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "form: text (YAML with comments) or json")
	return cmd
}

func showText(w io.Writer, lines []config.Line) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		if l.Origin == "" {
			fmt.Fprintf(table, "%s\n", l.Text)
			continue
		}
		fmt.Fprintf(table, "%s\t# %s\n", l.Text, l.Origin)
	}
	return table.Flush()
}

func showJSON(w io.Writer, lines []config.Line) error {
	type value struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Origin string `json:"origin"`
	}
	values := []value{}
	for _, l := range lines {
		if l.Origin != "" {
			values = append(values, value{l.Key, l.Value, l.Origin})
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(values)
}

func newConfigSchemaCmd(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of the configuration, for editors",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := std.out.Write(configs.Schema)
			return err
		},
	}
}

// usageArgs makes the errors of a check of arguments usage errors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exitf(exitUsage, "%v (see %q)", err, cmd.CommandPath()+" --help")
		}
		return nil
	}
}

// probeEndpoints asks every endpoint and says what it answered.
func probeEndpoints(ctx context.Context, w io.Writer, c config.Config) error {
	code := exitOK
	if len(c.Loki.Endpoints) == 0 {
		fmt.Fprintln(w, "no Loki endpoint is configured: nothing was asked")
	}
	for _, e := range c.Loki.Endpoints {
		verdict, failed := probe(ctx, e)
		code = max(code, failed)
		fmt.Fprintf(w, "loki endpoint %s, %s: %s\n", e.Name, config.MaskURL(e.URL), verdict)
	}
	if code != exitOK {
		return exitf(code, "not every Loki endpoint is ready to take events")
	}
	return nil
}

// probe sends a push without a stream, which no server stores, and puts the
// answer into words. The code is that of the exit.
func probe(ctx context.Context, e config.Endpoint) (verdict string, code int) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	client, err := probeClient(e)
	if err != nil {
		return err.Error(), exitConfig
	}
	defer client.CloseIdleConnections()
	req, err := probeRequest(ctx, e)
	if err != nil {
		return err.Error(), exitConfig
	}
	resp, err := client.Do(req)
	if err != nil {
		var withURL *url.Error // which may hold a password
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return "no answer: " + loki.Redact(err.Error(), loki.SecretsOf(req)), exitRuntime
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	secrets := append(loki.SecretsOf(req), slices.Collect(maps.Values(e.Headers))...)
	return judge(resp, loki.Redact(strings.TrimSpace(string(body)), secrets))
}

func judge(resp *http.Response, body string) (verdict string, code int) {
	said := fmt.Sprintf("it answered %s", resp.Status)
	if line, _, _ := strings.Cut(body, "\n"); line != "" {
		said += fmt.Sprintf(" (%.200q)", line)
	}
	switch status := resp.StatusCode; {
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"):
		return said + " with a web page; this is no push endpoint: check the path of url", exitConfig
	case status == 200, status == 204:
		return said + ": ready", exitOK
	case status == 422, status == 400 && strings.Contains(body, "at least one valid stream"):
		return said + ", as Loki does to an empty push: ready", exitOK
	case status == 401, status == 403:
		return said + "; check basic_auth, bearer_token_file, headers and tenant_id", exitConfig
	case status == 404, status == 405:
		return said + "; check the path of url", exitConfig
	case status == 407:
		return said + "; check the user of proxy_url", exitConfig
	case status >= 300 && status < 400:
		return said + fmt.Sprintf(", a redirection, which is not followed; write %s into url", config.MaskURL(resp.Header.Get("Location"))), exitConfig
	case status == 429, status >= 500:
		return said + "; it is reached, but takes nothing now", exitRuntime
	case status < 300:
		return said + "; only 200 and 204 mean that events are taken", exitRuntime
	}
	return said, exitConfig
}

func probeClient(e config.Endpoint) (*http.Client, error) {
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{ServerName: e.TLS.ServerName, InsecureSkipVerify: e.TLS.InsecureSkipVerify, MinVersion: tls.VersionTLS12},
	}
	if e.ProxyURL != "" {
		u, err := url.Parse(e.ProxyURL)
		if err != nil {
			return nil, errors.New("proxy_url is no URL")
		}
		transport.Proxy = http.ProxyURL(u)
	}
	if e.TLS.CAFile != "" {
		pem, err := os.ReadFile(e.TLS.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.ca_file: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	if e.TLS.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(e.TLS.CertFile, e.TLS.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.cert_file: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{cert}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}, nil
}

func probeRequest(ctx context.Context, e config.Endpoint) (*http.Request, error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, errors.New("url is no URL")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/loki/api/v1/push"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(`{"streams":[]}`))
	if err != nil {
		return nil, errors.New("url is no URL")
	}
	for name, value := range e.Headers {
		req.Header.Set(name, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rwannotate")
	if e.TenantID != "" {
		req.Header.Set("X-Scope-OrgID", e.TenantID)
	}
	for path, use := range map[string]func(secret string){
		e.BasicAuth.PasswordFile: func(secret string) { req.SetBasicAuth(e.BasicAuth.Username, secret) },
		e.BearerTokenFile:        func(secret string) { req.Header.Set("Authorization", "Bearer "+secret) },
	} {
		if path == "" {
			continue
		}
		secret, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		use(strings.TrimSpace(string(secret)))
	}
	return req, nil
}
