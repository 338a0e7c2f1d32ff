// Package config turns a YAML file, the environment and command-line flags
// into one checked Config, and says in one sentence each what is wrong with
// them, all at once. It imports nothing of ours and no component imports it:
// cmd/rwannotate hands each component the values it needs.
//
// Precedence: flag, then RWANNOTATE_… variable, then file, then default.
// Secrets are never values of the configuration but files that it names.
package config

import "time"

// Config is everything that can be configured. Field comments are the
// descriptions in configs/config.schema.json; the reasons stand in
// configs/rwannotate.yaml.
type Config struct {
	// What to read. Empty: standard input if it is a pipe.
	Inputs []Input `yaml:"inputs"`
	// What a file's path does not say about the container that wrote it.
	Kubernetes Kubernetes `yaml:"kubernetes"`
	// How lines become one log record.
	Multiline Multiline `yaml:"multiline"`
	// The known errors.
	Catalog Catalog `yaml:"catalog"`
	// Which log records are looked at.
	Match Match `yaml:"match"`
	// How events are written.
	Output Output `yaml:"output"`
	// What is kept on disk.
	State State `yaml:"state"`
	// Where events are pushed.
	Loki Loki `yaml:"loki"`
	// The HTTP listener: health, metrics, status page.
	Web Web `yaml:"web"`
	// The daemon's own diagnostics on stderr.
	Log Log `yaml:"log"`
	// How changes are noticed.
	Reload Reload `yaml:"reload"`
	// At SIGTERM: the time for reading to the end, flushing and pushing, in all. What is not pushed by then stays queued in state.dir.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// Input is one thing to read: files, or standard input.
type Input struct {
	// Globs (`*`, `**`, `{a,b}`) and directories; symbolic links are followed. A file that appears later is picked up.
	Files []string `yaml:"files"`
	// Globs of files to leave alone. Compressed and temporary files always are.
	Exclude []string `yaml:"exclude"`
	// Where to begin with a file at start: after what was handled last time (else its beginning), its beginning, or its end.
	Start string `yaml:"start" enum:"checkpoint,beginning,end"`
	// Read standard input instead of files.
	Stdin bool `yaml:"stdin"`
}

// Kubernetes names the container where log paths do not, as in a sidecar that
// sees only its own pod's directory.
type Kubernetes struct {
	// Namespace of the pods.
	Namespace string `yaml:"namespace"`
	// Name of the pod.
	Pod string `yaml:"pod"`
	// UID of the pod.
	UID string `yaml:"uid"`
	// Name of the node.
	Node string `yaml:"node"`
}

// Multiline bounds the assembly of records.
type Multiline struct {
	// A record is complete when no line has followed for this long.
	FlushAfter time.Duration `yaml:"flush_after"`
	// A longer record is cut at a character and marked truncated.
	MaxBytes Size `yaml:"max_bytes"`
}

// Catalog selects the known errors.
type Catalog struct {
	// Directories with further records; a later record replaces an earlier one of the same id.
	Paths []string `yaml:"paths"`
	// Use the catalogue that is built in.
	Embedded bool `yaml:"embedded"`
	// Ids or slugs of records that shall not be reported.
	Disable []string `yaml:"disable"`
	// Other severities for single records, by id or slug: info, warning, error or critical.
	SeverityOverrides map[string]string `yaml:"severity_overrides" enum:"info,warning,error,critical"`
	// Refuse to start when a record is faulty, instead of naming it and going on without it.
	Strict bool `yaml:"strict"`
}

// Match restricts what is matched.
type Match struct {
	// Records of a lower level are not looked at. Those without a level (panics) always are.
	MinLevel string `yaml:"min_level" enum:"trace,debug,info,warn,error"`
}

// Output is how events look and where they go first.
type Output struct {
	// Write every event to standard output, one JSON object a line.
	Stdout bool `yaml:"stdout"`
	// Further regular expressions (RE2). What they match, or their first group if they have one, becomes *** in every text taken from a log.
	Redact []string `yaml:"redact"`
}

// State is the directory with positions and unsent events.
type State struct {
	// Directory for positions and unsent events. Empty: kept in memory, forgotten at exit.
	Dir string `yaml:"dir"`
	// How often positions and events are made durable.
	CommitInterval time.Duration `yaml:"commit_interval"`
	// Room for events that Loki has not taken yet, for each endpoint.
	QueueMaxBytes Size `yaml:"queue_max_bytes"`
}

// Loki is where and how events are pushed. No endpoint: nowhere.
type Loki struct {
	// Each endpoint gets every event and has its own queue: one that is down does not hold up another.
	Endpoints []Endpoint `yaml:"endpoints"`
	// Labels added to those that are always sent (service_name, namespace, component, level, log_kind).
	Labels map[string]string `yaml:"labels"`
	// Send the pod as a label, which gives each pod a stream of its own.
	PodLabel bool `yaml:"pod_label"`
	// collapse: the first hit at once, then one event with the counts when a window closes (1m, 5m, 15m, hourly). all: every hit.
	Repeat string `yaml:"repeat" enum:"collapse,all"`
	// Upper bound for collapsed events of the whole daemon. What is over stays counted and is sent later.
	Rate Rate `yaml:"rate"`
	// How often to say "I am alive", so that silence can be alerted on. 0: never.
	Heartbeat time.Duration `yaml:"heartbeat"`
}

// Endpoint is one Loki, or something that speaks its push API.
type Endpoint struct {
	// Name of the queue and of the endpoint in metrics; needed once there is more than one.
	Name string `yaml:"name"`
	// Address. Without a path, Loki's /loki/api/v1/push is meant; a path and a query are used as given.
	URL string `yaml:"url" secret:"url"`
	// Value of X-Scope-OrgID. Empty: not sent.
	TenantID string `yaml:"tenant_id"`
	// HTTP basic authentication.
	BasicAuth BasicAuth `yaml:"basic_auth" secret:"values"`
	// File with a bearer token, read again when it changes.
	BearerTokenFile string `yaml:"bearer_token_file"`
	// Certificates for https.
	TLS TLS `yaml:"tls"`
	// Proxy (http, https or socks5). Empty: as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say.
	ProxyURL string `yaml:"proxy_url" secret:"url"`
	// Further HTTP headers.
	Headers map[string]string `yaml:"headers" secret:"values"`
	// How events are gathered into one request.
	Batch Batch `yaml:"batch"`
	// A request without an answer for this long has failed, and is repeated.
	Timeout time.Duration `yaml:"timeout"`
	// The pause after a failure; it doubles from min to max, with jitter. There is no last try.
	Backoff Backoff `yaml:"backoff"`
	// Events older than this are dropped and counted: Loki refuses what is older than 7 days. 0: never.
	DropOlderThan time.Duration `yaml:"drop_older_than"`
}

// BasicAuth is a name and the file that holds its password.
type BasicAuth struct {
	// User name.
	Username string `yaml:"username"`
	// File with the password, read again when it changes.
	PasswordFile string `yaml:"password_file"`
}

// TLS is about https endpoints.
type TLS struct {
	// Certificates to trust (PEM). Empty: the system's.
	CAFile string `yaml:"ca_file"`
	// Client certificate (PEM), for mutual TLS.
	CertFile string `yaml:"cert_file"`
	// Key of the client certificate (PEM).
	KeyFile string `yaml:"key_file"`
	// Name to expect in the server's certificate, if it is not the address's.
	ServerName string `yaml:"server_name"`
	// Trust any certificate. For experiments.
	InsecureSkipVerify bool `yaml:"insecure_skip_verify"`
}

// Batch bounds one push request.
type Batch struct {
	// Most bytes in a request, before compression. Loki refuses more than 4 MiB.
	MaxBytes Size `yaml:"max_bytes"`
	// How long an event may wait for others.
	Linger time.Duration `yaml:"linger"`
}

// Backoff bounds the pause between tries.
type Backoff struct {
	// After the first failure.
	Min time.Duration `yaml:"min"`
	// After many.
	Max time.Duration `yaml:"max"`
}

// Rate is a token bucket.
type Rate struct {
	// Lasting rate. 0: no limit.
	EventsPerSecond float64 `yaml:"events_per_second"`
	// How many may go at once after a quiet time.
	Burst int `yaml:"burst"`
}

// Web is the HTTP listener.
type Web struct {
	// host:port. Empty: no listener.
	Listen string `yaml:"listen"`
	// Serve the status page besides health and metrics.
	Page bool `yaml:"page"`
	// Show original log lines on the page.
	ShowLines bool `yaml:"show_lines"`
	// Serve /debug/pprof.
	Pprof bool `yaml:"pprof"`
	// Accept POST /-/reload.
	EnableReload bool `yaml:"enable_reload"`
}

// Log is the daemon's own log.
type Log struct {
	// Messages of a lower level are left out.
	Level string `yaml:"level" enum:"debug,info,warn,error"`
	// Form of the lines.
	Format string `yaml:"format" enum:"json,text"`
}

// Reload is about noticing changes without a signal.
type Reload struct {
	// How often the catalogue's files are compared with what is loaded. 0: only at SIGHUP.
	Interval time.Duration `yaml:"interval"`
}

// Size is a number of bytes, written as 64KiB or 1MiB.
type Size int64

// Powers of 1024.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

const day = 24 * time.Hour

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Multiline: Multiline{FlushAfter: 250 * time.Millisecond, MaxBytes: 256 * KiB},
		Catalog:   Catalog{Embedded: true},
		Match:     Match{MinLevel: "trace"},
		Output:    Output{Stdout: true},
		State:     State{CommitInterval: 200 * time.Millisecond, QueueMaxBytes: 256 * MiB},
		Loki: Loki{
			Repeat:    "collapse",
			Rate:      Rate{EventsPerSecond: 20, Burst: 100},
			Heartbeat: time.Minute,
		},
		Web:             Web{Listen: "127.0.0.1:12399", Page: true},
		Log:             Log{Level: "info", Format: "json"},
		Reload:          Reload{Interval: 30 * time.Second},
		ShutdownTimeout: 800 * time.Millisecond,
	}
}

// A defaulter is an element of a list whose missing keys have defaults.
type defaulter interface{ setDefaults() }

func (in *Input) setDefaults() { in.Start = "checkpoint" }

func (e *Endpoint) setDefaults() {
	*e = Endpoint{
		Name:          "loki",
		Batch:         Batch{MaxBytes: MiB, Linger: time.Second},
		Timeout:       10 * time.Second,
		Backoff:       Backoff{Min: 500 * time.Millisecond, Max: 30 * time.Second},
		DropOlderThan: 7 * day,
	}
}
