package harvest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// lines prints messages compactly: level kind line text.
func lines(messages []Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, strings.Join([]string{m.Level, m.Kind, m.Text}, "|"))
	}
	return out
}

func TestRust(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []string
	}{
		{"tracing", `tracing::error!(%actor_id, error = ?err.as_report(), "actor exit with error");
			warn!(target: "events", id = "no", "ignore {} of {name:?}", f("nor this"), x); info!(parent: &span, "done {x}")`,
			[]string{"error|error|actor exit with error", "warn|warn|ignore {} of {name:?}", "info|info|done {x}"}},
		{"event", `tracing::event!(tracing::Level::WARN, elapsed = 1, "slow {}", x)`, []string{"warn|event|slow {}"}},
		{"fields only", `tracing::error!(error = "no text")`, nil},
		{"anyhow", `bail!("bad {}", x); return Err(anyhow!("worse {x:?}").into()); ensure!(a == "no", "must {}", f(b))`,
			[]string{"error|bail|bad {}", "error|anyhow|worse {x:?}", "error|ensure|must {}"}},
		{"nested format", `anyhow!(format!("a {} b", x)); bail!(concat!("one ", "two {}"), x)`, []string{"error|anyhow|a {} b", "error|bail|one two {}"}},
		{"thiserror", "#[error(\"epoch {0} is {1:?}\")]\nA(u64, X),\n#[error(transparent)]\nB,\n#[error(\n    \"two\\\n     lines\"\n)]\nC,",
			[]string{"error|#[error]|epoch {0} is {1:?}", "error|#[error]|twolines"}},
		{"context", `x.context("failed to open")?.with_context(|| format!("while reading {}", p))?.with_context(move || { "plain {braces}" })?;`,
			[]string{"error|.context|failed to open", "error|.with_context|while reading {}", "error|.with_context|plain {{braces}}"}},
		{"panics", `x.expect("must exist"); panic!("no {}", a); unreachable!(); todo!("later"); assert!(x.contains("no"), "want {x}"); assert_eq!(a, "no", "differs: {}", a)`,
			[]string{"panic|.expect|must exist", "panic|panic|no {}", "panic|todo|later", "panic|assert|want {x}", "panic|assert_eq|differs: {}"}},
		{"constructors", `Status::internal(format!("failed: {}", e)); SinkError::Iceberg(anyhow!("x {}", y)); MetaError::invalid_parameter("too large"); ErrorCode::InvalidInputSyntax("no {}".into())`,
			[]string{"error|Status::internal|failed: {}", "error|anyhow|x {}", "error|MetaError::invalid_parameter|too large", "error|ErrorCode::InvalidInputSyntax|no {{}}"}},
		{"names are no messages", `MetaError::catalog_id_not_found("table", id); use crate::error::ErrorCode::{self};`, nil},
		{"struct variant", `ExprError::InvalidParam { name: "x", reason: format!("must be {} or {}", a, b).into() }`, []string{"error|ExprError::InvalidParam|must be {} or {}"}},
		{"results", `Err(format!("no {}", x)); x.map_err(|e| format!("bad {e}")); x.ok_or_else(|| "not there".to_string())`,
			[]string{"error|Err|no {}", "error|.map_err|bad {e}", "error|.ok_or_else|not there"}},
		{"own macros", `bail_not_implemented!(issue = 112, "window {}", f); parser_err!("expected {}", x); compile_error!("no")`,
			[]string{"error|bail_not_implemented|window {}", "error|parser_err|expected {}"}},
		{"output", `println!("a {}", b); eprintln!("c")`, []string{"stdout|println|a {}", "stderr|eprintln|c"}},
		{"strings", `bail!("tab\tquote\" \u{e9} \x41 cut \
			here"); bail!(r#"raw \n "x" {}"#, y); bail!("a
b")`, []string{"error|bail|tab\tquote\" é A cut here", "error|bail|raw \\n \"x\" {}", "error|bail|a\nb"}},
		{"comments and lifetimes", `// bail!("no")
			/* bail!("no") /* nested */ bail!("no") */ fn f<'a>(c: char) { if c == '"' || c == '\'' { bail!("yes") } let b = b"no"; }`, []string{"error|bail|yes"}},
		{"tests", `fn a() { bail!("one") }
			#[cfg(test)] mod tests { use super::*; #[test] fn t() { panic!("no") } }
			#[tokio::test] async fn t2() { panic!("no") }
			#[cfg(any(test, feature = "test"))] pub fn helper(a: X, b: Y) -> Z { panic!("no") }
			#[cfg(test)] use std::{a, b}; #[cfg(not(test))] fn d() { bail!("two") }
			struct S { #[cfg(test)] x: T, y: U } fn e() { bail!("three") }`,
			[]string{"error|bail|one", "error|bail|two", "error|bail|three"}},
		{"test file", "#![cfg(test)]\nfn a() { bail!(\"no\") }", nil},
		{"torn", `bail!("never closed`, []string{"error|bail|never closed"}},
	} {
		if diff := cmp.Diff(c.want, lines(Rust(c.src))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestRustLine(t *testing.T) {
	found := Rust("\n// x\nfn f() {\n    tracing::warn!(\n        a = 1,\n        \"text \\\n  b\",\n    );\n    bail!(\"c\")\n}\n")
	if len(found) != 2 || found[0].Line != 4 || found[1].Line != 9 {
		t.Errorf("lines of the statements: %v, want 4 and 9", found)
	}
}

func TestJava(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []string
	}{
		{"log", `LOG.error("engine#{} terminated. message: {}", id, "no", e); log.warn("Failed: " + e.getMessage() + "!"); LOGGER.info("x", y);`,
			[]string{"error|LOG.error|engine#{} terminated. message: {}", "warn|log.warn|Failed: {}!", "info|LOGGER.info|x"}},
		{"throw", `throw new RuntimeException(e); throw new SQLException("no " + a + " in " + b.c(d, "no"), e); throw new IllegalStateException();`,
			[]string{"error|new SQLException|no {} in {}"}},
		{"format", `throw new X1Exception(String.format("got %s, expect %d%% of %.2f", a, b, c)); throw new Y2Error("at %s".formatted(x) + " end");`,
			[]string{"error|new X1Exception|got {}, expect {}% of {}", "error|new Y2Error|at {} end"}},
		{"status", `throw ValidatorUtils.invalidArgument("table '" + t + "' has no key"); Status.INTERNAL.withDescription("sink closed").asRuntimeException(); field.withDescription("a setting")`,
			[]string{"error|invalidArgument|table '{}' has no key", "error|withDescription|sink closed"}},
		{"text block", "LOG.error(\"\"\"\n    one {}\n      two\n    \"\"\", x);", []string{"error|LOG.error|one {}\n  two\n"}},
		{"no text", `LOG.error(message); LOG.info("{}", sql); throw new AException(a + b);`, nil},
		{"comments", `// LOG.error("no")
			/* LOG.error("no") */ char c = '"'; LOG.error("yes");`, []string{"error|LOG.error|yes"}},
	} {
		if diff := cmp.Diff(c.want, lines(Java(c.src))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestSource(t *testing.T) {
	rust := &fstest.MapFile{Data: []byte(`fn f() { bail!("text {}", x) }`)}
	java := &fstest.MapFile{Data: []byte(`LOG.error("java text")`)}
	tree := fstest.MapFS{
		"src/meta/src/lib.rs": rust, "src/meta/src/b.rs": rust,
		"src/meta/tests/t.rs": rust, "src/meta/src/tests.rs": rust, "src/meta/src/x_test.rs": rust, "target/x.rs": rust, ".git/x.rs": rust, "src/meta/build.rs": rust,
		"java/a/A.java": java, "java/a/ATest.java": java, "java/a/test/B.java": java,
	}
	found, err := Source(tree)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, m := range found {
		files = append(files, m.File)
	}
	if want := []string{"java/a/A.java", "src/meta/src/b.rs", "src/meta/src/lib.rs"}; !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	if _, err := Source(fstest.MapFS{"README": java}); !errors.Is(err, ErrNoSource) {
		t.Errorf("a tree without source: %v", err)
	}
}

// FuzzLex: any bytes are read to their end, without a message that is not in
// them.
func FuzzLex(f *testing.F) {
	f.Add(`bail!("a {}", x)`, false)
	f.Add("r#\"x\"# b'\\'' 'a \"\\u{110000}\\x4\" /* /* */", false)
	f.Add("\"\"\"\n a\\\n\"\"\" '\\u0041' \"%s\"", true)
	f.Fuzz(func(t *testing.T, src string, java bool) {
		if java {
			Java(src)
		} else {
			Rust(src)
		}
		for _, tok := range lex(src, java) {
			if tok.line < 1 || tok.line > strings.Count(src, "\n")+1 {
				t.Fatalf("line %d of a source with %d", tok.line, strings.Count(src, "\n")+1)
			}
		}
	})
}
