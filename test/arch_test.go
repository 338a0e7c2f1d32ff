// Package test holds the tests that no single package can own. The tests of
// this file keep the shape that ARCHITECTURE.md draws: who may import whom.
package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rwannotate/rwannotate"

// mayImport says which of our packages each package under internal may import.
// Packages stand in the order of a block's path; arrows point up this list
// only. A package below one of these (sink/loki) follows its parent's rule and
// may import its parent and its siblings. Only cmd may import everything.
var mayImport = []struct{ pkg, imports string }{
	{"logline", ""},
	{"catalog", ""},
	{"match", "logline catalog"},
	{"annotate", "logline catalog match"},
	{"pipeline", "logline catalog match annotate"},
	{"lint", "logline catalog match annotate pipeline"},
	{"harvest", "catalog"},
	{"unknown", "logline catalog match harvest"},
	{"source", "annotate"},
	{"episode", "annotate"},
	{"spool", ""},
	{"sink", "annotate"},
	{"config", ""},
	{"web", "annotate catalog"},
	{"daemon", "annotate source episode spool sink"},
}

// owners says which of our packages may import a dependency directly. A
// prefix covers the packages below it.
var owners = map[string]string{
	"github.com/coregx/ahocorasick":       "internal/match",
	"github.com/nxadm/tail":               "internal/source",
	"github.com/bmatcuk/doublestar":       "internal/source internal/config cmd",
	"go.etcd.io/bbolt":                    "internal/spool",
	"github.com/goccy/go-yaml":            "internal/catalog internal/config cmd",
	"github.com/rs/zerolog":               "internal/annotate internal/source internal/spool internal/sink internal/web internal/daemon cmd",
	"github.com/prometheus/client_golang": "internal/web cmd",
	"github.com/coreos/go-systemd":        "internal/daemon cmd",
	"github.com/klauspost/compress":       "internal/sink patterns cmd",
	"github.com/spf13/cobra":              "cmd",
	"github.com/schollz/progressbar":      "cmd",
	"net/http":                            "internal/sink internal/web cmd",
	// Not in the program at all: heavy, unmaintained or under the AGPL.
	"github.com/spf13/viper":                  "",
	"github.com/knadh/koanf":                  "",
	"gopkg.in/yaml.v3":                        "",
	"k8s.io/client-go":                        "",
	"github.com/grafana":                      "",
	"github.com/hashicorp/golang-lru":         "",
	"github.com/hashicorp/go-retryablehttp":   "",
	"github.com/rogpeppe/go-internal":         "",
	"github.com/google/go-cmp":                "",
	"go.uber.org/goleak":                      "",
	"github.com/santhosh-tekuri/jsonschema":   "",
	"github.com/VictoriaMetrics/VictoriaLogs": "",
}

// pure packages see no file, network, clock or logger: what goes in decides
// what comes out. (The catalogue reads from an fs.FS, and needs package os to
// tell whether two of its files are the same.)
var pure = map[string][]string{
	"logline":  {"os", "net", "syscall", "log", "log/slog", "github.com/rs/zerolog"},
	"match":    {"os", "net", "syscall", "log", "log/slog", "github.com/rs/zerolog"},
	"annotate": {"os", "net", "syscall", "log", "log/slog"},
	"episode":  {"os", "net", "syscall", "log", "log/slog", "github.com/rs/zerolog"},
	"pipeline": {"os", "net", "syscall", "log", "log/slog"},
	"catalog":  {"net", "syscall", "log", "log/slog", "github.com/rs/zerolog"},
}

// clock lists the functions of package time that read or wait on the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// goPackage is what `go list -json` says of a package, as far as we need it.
type goPackage struct {
	ImportPath, Dir, Name string
	GoFiles, Imports      []string
}

// rel is the package's path inside the module: internal/sink/loki.
func (p goPackage) rel() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func TestImports(t *testing.T) {
	rule := map[string][]string{}
	for _, r := range mayImport {
		rule[r.pkg] = strings.Fields(r.imports)
	}
	for _, p := range packages(t, "./...") {
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok {
				checkArrow(t, rule, p.rel(), ours)
				continue
			}
			for dep, owner := range owners {
				if within(imp, dep) && !strings.HasPrefix(p.rel(), "test") && !slices.ContainsFunc(strings.Fields(owner), func(o string) bool { return within(p.rel(), o) }) {
					t.Errorf("%s imports %s, which only %q may", p.rel(), imp, owner)
				}
			}
			if banned := pure[component(p.rel())]; slices.Contains(banned, imp) {
				t.Errorf("%s is pure and may not import %s", p.rel(), imp)
			}
		}
	}
}

// checkArrow reports an import of one of our packages by another that the
// drawing does not have.
func checkArrow(t *testing.T, rule map[string][]string, from, to string) {
	top, _, _ := strings.Cut(from, "/")
	switch {
	case top == "cmd" || top == "test":
	case strings.HasPrefix(to, "cmd/") || strings.HasPrefix(to, "test/"):
		t.Errorf("%s imports %s: nothing may", from, to)
	case top == "patterns":
		t.Errorf("%s imports %s: the embedded catalogue is data", from, to)
	case component(from) == "":
		t.Errorf("%s imports %s, but is not under internal", from, to)
	case component(from) == component(to):
	default:
		allowed, known := rule[component(from)]
		if !known {
			t.Errorf("%s is a new package: say in mayImport and in ARCHITECTURE.md where it stands", from)
		}
		if !slices.Contains(allowed, component(to)) {
			t.Errorf("%s imports %s; it may import %q only", from, to, allowed)
		}
	}
}

// component is the package directly under internal that rel belongs to, or "".
func component(rel string) string {
	rel, ok := strings.CutPrefix(rel, "internal/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rel, "/")
	return name
}

// within reports whether path is prefix, a package below it or a major version
// of it.
func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// TestArrowsPointOneWay keeps the table itself honest.
func TestArrowsPointOneWay(t *testing.T) {
	var before []string
	for _, r := range mayImport {
		for _, imp := range strings.Fields(r.imports) {
			if !slices.Contains(before, imp) {
				t.Errorf("%s may import %s, which does not stand before it", r.pkg, imp)
			}
		}
		before = append(before, r.pkg)
	}
}

func TestEveryInternalPackageHasAPlace(t *testing.T) {
	for _, p := range packages(t, "./internal/...") {
		known := slices.ContainsFunc(mayImport, func(r struct{ pkg, imports string }) bool { return r.pkg == component(p.rel()) })
		if !known {
			t.Errorf("%s is not in mayImport", p.rel())
		}
	}
}

// TestProgramDependencies looks at all that is linked into the binary, not
// only at what we import ourselves.
func TestProgramDependencies(t *testing.T) {
	for _, p := range packages(t, "-deps", "./cmd/rwannotate") {
		for dep, owner := range owners {
			if owner == "" && within(p.ImportPath, dep) {
				t.Errorf("the program depends on %s", p.ImportPath)
			}
		}
		if strings.HasPrefix(p.rel(), "test/") {
			t.Errorf("the program depends on %s", p.rel())
		}
	}
}

func TestSources(t *testing.T) {
	for _, p := range packages(t, "./...") {
		comments := 0
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				comments++
			}
			for _, finding := range inspect(p, file) {
				t.Errorf("%s/%s:%d: %s", p.rel(), name, fset.Position(finding.pos).Line, finding.text)
			}
		}
		if len(p.GoFiles) > 0 && comments != 1 {
			t.Errorf("%s has %d package comments, not one", p.rel(), comments)
		}
		if slices.Contains([]string{"util", "utils", "common", "helpers", "misc"}, p.Name) {
			t.Errorf("%s: a package is named after what it provides", p.rel())
		}
	}
}

type finding struct {
	pos  token.Pos
	text string
}

// inspect finds what a file may not do: end the process outside main, hide
// work in init, read the clock where the caller passes it.
func inspect(p goPackage, file *ast.File) (found []finding) {
	_, isPure := pure[component(p.rel())]
	for _, decl := range file.Decls {
		fn, isFunc := decl.(*ast.FuncDecl)
		if isFunc && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, finding{fn.Pos(), "init function"})
		}
		inMain := isFunc && p.Name == "main" && fn.Recv == nil && fn.Name.Name == "main"
		ast.Inspect(decl, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				found = append(found, inspectCall(call, isPure)...)
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, _ := sel.X.(*ast.Ident)
			switch {
			case pkg == nil:
			case pkg.Name == "os" && sel.Sel.Name == "Exit" && !inMain:
				found = append(found, finding{sel.Pos(), "os.Exit outside main"})
			case pkg.Name == "log" && (strings.HasPrefix(sel.Sel.Name, "Fatal") || strings.HasPrefix(sel.Sel.Name, "Panic")):
				found = append(found, finding{sel.Pos(), "log." + sel.Sel.Name + " ends the process"})
			}
			return true
		})
	}
	return found
}

// inspectCall looks at calls only: time.Now as the default of an injected clock
// is fine.
func inspectCall(call *ast.CallExpr, isPure bool) []finding {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	pkg, _ := sel.X.(*ast.Ident)
	switch {
	case isFatal(sel.X): // log.Fatal().Msg("…")
		return []finding{{sel.Pos(), "zerolog's Fatal ends the process"}}
	case isPure && pkg != nil && pkg.Name == "time" && slices.Contains(clock, sel.Sel.Name):
		return []finding{{sel.Pos(), "time." + sel.Sel.Name + "(): the time is passed in"}}
	}
	return nil
}

func isFatal(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Fatal"
}

func TestInspect(t *testing.T) {
	const src = `package main
import ("log"; "os"; "time")
func init() { os.Exit(1) }
func main() { os.Exit(0); log.Fatalln("x"); _, _ = time.Now(), time.Now }
func (l logger) f() { l.z.Fatal().Msg("x"); l.f.Fatal(); time.Sleep(1); defer func() { os.Exit(2) }() }
`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"cmd/rwannotate": 5, "internal/match": 7} {
		found := inspect(goPackage{ImportPath: module + "/" + path, Name: "main"}, file)
		if len(found) != want {
			t.Errorf("%s: %d findings, want %d: %v", path, len(found), want, found)
		}
	}
}

// packages runs `go list -json` with args at the module's root.
func packages(t *testing.T, args ...string) (list []goPackage) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Name,GoFiles,Imports"}, args...)...)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("go list %v: %w\n%s", args, err, &stderr))
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		t.Fatalf("go list %v found no package", args)
	}
	return list
}
