// Package catalog is the knowledge base: what a known error is and how such
// records are read, checked and written. It knows nothing of logs and of
// matching.
package catalog

// Severities, in rising order.
const (
	SeverityInfo     = "info"
	SeverityWarning  = "warning"
	SeverityError    = "error"
	SeverityCritical = "critical"
)

// Roles of a record's text in an error chain.
const (
	RoleRoot    = "root"    // the cause itself (default)
	RoleWrapper = "wrapper" // carries another error: "Executor error: {0}"
	RoleSymptom = "symptom" // the consequence of a failure elsewhere
)

// Record is one known error. The keys are those of the published knowledge
// base plus a few of our own; see patterns/README.md.
type Record struct {
	ID               string   `yaml:"id" json:"id"`
	Repo             string   `yaml:"repo,omitempty" json:"repo"`
	Slug             string   `yaml:"slug,omitempty" json:"slug"`
	ErrorMessage     string   `yaml:"errorMessage,omitempty" json:"errorMessage"`
	MessagePattern   string   `yaml:"messagePattern,omitempty" json:"messagePattern"`
	Aliases          []string `yaml:"aliases,omitempty" json:"aliases"`
	ErrorType        string   `yaml:"errorType,omitempty" json:"errorType"`
	Severity         string   `yaml:"severity,omitempty" json:"severity"`
	Role             string   `yaml:"role,omitempty" json:"role"`
	MinLevel         string   `yaml:"minLevel,omitempty" json:"minLevel"`
	Targets          []string `yaml:"targets,omitempty" json:"targets"`
	Versions         []string `yaml:"versions,omitempty" json:"versions"`
	FilePath         string   `yaml:"filePath,omitempty" json:"filePath"`
	LineNumber       int      `yaml:"lineNumber,omitempty" json:"lineNumber"`
	GithubURL        string   `yaml:"githubUrl,omitempty" json:"githubUrl"`
	Documentation    string   `yaml:"documentation,omitempty" json:"documentation"`
	TriggerScenarios string   `yaml:"triggerScenarios,omitempty" json:"triggerScenarios"`
	CommonSituations string   `yaml:"commonSituations,omitempty" json:"commonSituations"`
	Solutions        []string `yaml:"solutions,omitempty" json:"solutions"`
	HandlingStrategy string   `yaml:"handlingStrategy,omitempty" json:"handlingStrategy"`
	PreventionTips   []string `yaml:"preventionTips,omitempty" json:"preventionTips"`
	Tags             []string `yaml:"tags,omitempty" json:"tags"`
	BackgroundTag    string   `yaml:"backgroundTag,omitempty" json:"backgroundTag"`
	References       []string `yaml:"references,omitempty" json:"references"`
	Examples         Examples `yaml:"examples,omitempty" json:"examples"`
	Review           string   `yaml:"review,omitempty" json:"review"`
	AnalyzedSha      string   `yaml:"analyzedSha,omitempty" json:"analyzedSha"`
	AnalyzedAt       string   `yaml:"analyzedAt,omitempty" json:"analyzedAt"`
	DatasetVersion   string   `yaml:"datasetVersion,omitempty" json:"datasetVersion"`

	// Component is the part of the catalogue the record belongs to: its
	// directory ("meta", "stream", …), else the crate of its source file. Not a key.
	Component string `yaml:"-" json:"-"`

	// File is where the record was read, for messages. Not a key.
	File string `yaml:"-" json:"-"`
}

// Examples prove a record where it is edited.
type Examples struct {
	Match  []Example `yaml:"match,omitempty" json:"match"`   // must hit this record first, with these arguments
	Reject []string  `yaml:"reject,omitempty" json:"reject"` // must not hit it
}

// Example is one log record and the argument values expected in it.
type Example struct {
	Text string   `yaml:"text" json:"text"`
	Args []string `yaml:"args,omitempty" json:"args"`
}
