package patterns_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/patterns"
)

// TestCatalogue: every embedded record loads without so much as a warning, and
// each file of the tree is embedded.
func TestCatalogue(t *testing.T) {
	records, problems := catalog.Load(patterns.FS())
	for _, p := range problems {
		t.Error(p)
	}
	for _, r := range records {
		if !regexp.MustCompile("^[0-9a-f]{16}$").MatchString(r.ID) {
			t.Errorf("%s: id %q is not 16 hex digits", r.File, r.ID)
		}
	}
	if onDisk, _ := catalog.Load(os.DirFS(".")); len(onDisk) != len(records) {
		t.Errorf("%d records on disk, %d embedded: a directory below the components'?", len(onDisk), len(records))
	}
}

// TestSeeds: the five records that the project began with.
func TestSeeds(t *testing.T) {
	byID := map[string]catalog.Record{}
	records, _ := catalog.Load(patterns.FS())
	for _, r := range records {
		byID[r.ID] = r
	}
	for id, slug := range map[string]string{
		"65df22fd2e2f78e4": "snapshot-backfill-epoch-set-again",
		"d35cdfb22a5e48fe": "mismatch-initial-vnode-bitmap-expect",
		"30ef04567ce7f266": "snapshot-backfill-paused-but-received-snapshot-ch",
		"a1174e815cc32dac": "should-not-update-vnode-bitmap-during-consuming-lo",
		"f223316b6872918a": "unexpected-backfill-state",
	} {
		if r := byID[id]; r.Slug != slug || r.Review != catalog.ReviewReviewed || len(r.Examples.Match) < 2 || len(r.Examples.Reject) == 0 {
			t.Errorf("%s: slug %q, review %q, %d examples", id, r.Slug, r.Review, len(r.Examples.Match))
		}
	}
}

func TestSchema(t *testing.T) {
	schema := compileSchema(t)
	err := fs.WalkDir(patterns.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(patterns.FS(), name)
		if err != nil {
			return err
		}
		if err := schema.Validate(asJSON(t, name, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSchemaRefuses: the schema is not one that lets everything through.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	for _, text := range []string{
		"errorMessage: no id",
		"id: a",
		"id: a\nerrorMessage: m\nseverty: error",
		"id: a\nerrorMessage: m\nseverity: dire",
		"id: a\nerrorMessage: m\nsolutions: one",
		"id: a\nerrorMessage: m\nexamples: {match: [{args: [a]}]}",
		"id: a\nerrorMessage: m\nslug: A B",
		"- id: a",
	} {
		if schema.Validate(asJSON(t, text, []byte(text))) == nil {
			t.Errorf("accepted:\n%s", text)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(readFile(t, "schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON reads YAML as what the validator works on.
func asJSON(t *testing.T, name string, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return doc
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

type schemaDoc struct {
	Enum       []string             `json:"enum"`
	Items      *schemaDoc           `json:"items"`
	Properties map[string]schemaDoc `json:"properties"`
}

// TestSchemaAndReadmeAreCurrent compares schema and README with the code.
func TestSchemaAndReadmeAreCurrent(t *testing.T) {
	var doc schemaDoc
	if err := json.Unmarshal(readFile(t, "schema.json"), &doc); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		of     any
		schema map[string]schemaDoc
	}{
		"record":   {catalog.Record{}, doc.Properties},
		"examples": {catalog.Examples{}, doc.Properties["examples"].Properties},
		"match":    {catalog.Example{}, doc.Properties["examples"].Properties["match"].Items.Properties},
	} {
		if diff := cmp.Diff(keysOf(c.of), slices.Sorted(maps.Keys(c.schema))); diff != "" {
			t.Errorf("%s: keys (-code +schema):\n%s", what, diff)
		}
	}
	for key, list := range map[string][]string{
		"severity": catalog.Severities(), "role": catalog.Roles(), "minLevel": catalog.Levels(),
		"errorType": catalog.ErrorTypes(), "review": catalog.Reviews(),
	} {
		if diff := cmp.Diff(list, doc.Properties[key].Enum); diff != "" {
			t.Errorf("%s (-code +schema):\n%s", key, diff)
		}
	}
	readme := string(readFile(t, "README.md"))
	for _, key := range keysOf(catalog.Record{}) {
		if !strings.Contains(readme, "\n| `"+key+"` |") {
			t.Errorf("README.md has no row for %s", key)
		}
	}
}

func keysOf(v any) (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "-" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// TestReadmeExample: the worked example of README.md is a record that loads and
// has nothing for lint to say.
func TestReadmeExample(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(# (\\S+\\.yaml)\n.*?)```").FindAllSubmatch(readFile(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no example record")
	}
	for _, b := range blocks {
		dir := t.TempDir()
		file := path.Join(dir, path.Base(string(b[2])))
		if err := os.WriteFile(file, b[1], 0o644); err != nil {
			t.Fatal(err)
		}
		records, problems := catalog.Load(os.DirFS(dir))
		if problems = append(problems, catalog.Lint(records)...); len(records) != 1 || len(problems) > 0 {
			t.Errorf("%s: %d records, %v", b[2], len(records), problems)
		}
		if err := compileSchema(t).Validate(asJSON(t, file, b[1])); err != nil {
			t.Errorf("%s: %v", b[2], err)
		}
	}
}
