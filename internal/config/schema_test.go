package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

//go:generate go test -run "TestSchema|TestBad|TestWarnings" -update .

var update = flag.Bool("update", false, "rewrite golden files")

const schemaFile = "../../configs/config.schema.json"

// TestSchema compares the committed schema with the types.
func TestSchema(t *testing.T) {
	got := generateSchema(t)
	if *update {
		if err := os.WriteFile(schemaFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("configs/config.schema.json is not what the types say; run go generate ./internal/config (-committed +generated):\n%s", diff)
	}
}

// reference is what may stand instead of a number or a word.
var reference = &jsonschema.Schema{Type: "string", Pattern: `\$\{`}

func generateSchema(t *testing.T) []byte {
	t.Helper()
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true, // that is, none
		DoNotReference:             true,
		Mapper: func(ft reflect.Type) *jsonschema.Schema {
			switch ft {
			case reflect.TypeFor[time.Duration]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: `^([0-9.]+(d|h|m|s|ms|us))+$`}, {Const: 0}, reference}}
			case reflect.TypeFor[Size]():
				return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Pattern: `^[0-9.]+ ?([KMGT]i?B?|kB|B)?$`}, {Type: "integer", Minimum: "0"}, reference}}
			}
			return nil
		},
	}
	if err := r.AddGoComments("github.com/rwannotate/rwannotate/internal/config", ".", jsonschema.WithFullComment()); err != nil {
		t.Fatal(err)
	}
	s := r.Reflect(Config{})
	s.ID = "https://github.com/rwannotate/rwannotate/configs/config.schema.json"
	s.Title = "rwannotate configuration"
	s.Description = ""
	complete(s, reflect.ValueOf(Default()))
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// complete adds what the reflector does not know: defaults, closed lists, and
// that numbers and words may come from variables.
func complete(s *jsonschema.Schema, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		p, _ := s.Properties.Get(f.name)
		fv := v.Field(f.index)
		switch fv.Kind() {
		case reflect.Struct:
			complete(p, fv)
		case reflect.Slice:
			p.Default = []string{}
			if fv.Type().Elem().Kind() == reflect.Struct {
				element := reflect.New(fv.Type().Elem())
				element.Interface().(defaulter).setDefaults()
				complete(p.Items, element.Elem())
				continue
			}
			list := &jsonschema.Schema{Type: "array", Items: p.Items}
			p.Type, p.Items = "", nil
			p.AnyOf = []*jsonschema.Schema{list, {Type: "string"}}
		case reflect.Map:
			p.Default = map[string]string{}
			value := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
			if enum := f.tags.Get("enum"); enum != "" {
				value = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Enum: words(enum)}, reference}}
			}
			p.AdditionalProperties = value
		default:
			scalarSchema(p, fv, f.tags.Get("enum"))
		}
	}
}

func scalarSchema(p *jsonschema.Schema, v reflect.Value, enum string) {
	p.Default = v.Interface()
	if v.Type() == reflect.TypeFor[time.Duration]() || v.Type() == reflect.TypeFor[Size]() {
		p.Default = scalarText(v)
		return
	}
	switch {
	case enum != "":
		p.Type, p.AnyOf = "", []*jsonschema.Schema{{Enum: words(enum)}, reference}
	case v.Kind() == reflect.String:
		// a tenant may look like a number
		p.Type, p.AnyOf = "", []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}
	default:
		p.AnyOf = []*jsonschema.Schema{{Type: p.Type}, reference}
		p.Type = ""
	}
}

func words(enum string) []any {
	var all []any
	for word := range strings.SplitSeq(enum, ",") {
		all = append(all, word)
	}
	return all
}

func compiledSchema(t *testing.T) *santhosh.Schema {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := santhosh.NewCompiler()
	if err := c.AddResource("config.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
