package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp: each command says what it does, as an order, and flags for files,
// addresses and times say so instead of "string".
func TestHelp(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		code, help, stderr := execute(t, args...)
		if code != exitOK || stderr != "" {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
		if first, _, _ := strings.Cut(help, " "); c.HasParent() && strings.HasSuffix(first, "s") {
			t.Errorf("%v begins with %q", args, first)
		}
		for _, vague := range []string{"--config string", "--input stringArray", "--patterns stringArray", "--state string", "--loki-url string", "--output-dir string", "--since string"} {
			if strings.Contains(help, vague) {
				t.Errorf("%v: %q says nothing", args, vague)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(streams{}))
}

func TestVersionFlag(t *testing.T) {
	_, want, _ := execute(t, "version")
	if code, got, stderr := execute(t, "--version"); code != exitOK || got != want || stderr != "" {
		t.Errorf("exit %d: %s%s, want %s", code, got, stderr, want)
	}
}

func TestNoArguments(t *testing.T) {
	for _, name := range []string{"healthcheck", "version", "journal-args"} {
		if code, _, _ := execute(t, name, "x"); code != exitUsage {
			t.Errorf("%s x: exit %d", name, code)
		}
	}
}
