package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManCmd writes the man pages. They are made when a release is packed, from
// what --help says, so there is nothing to keep in step. (cobra/doc would do
// it too, by way of a Markdown renderer and two more modules.)
func newManCmd(std streams) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a directory",
		Hidden: true,
		Args:   usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return exitf(exitRuntime, "%v", err)
			}
			return writeManPages(std.out, cmd.Root(), args[0])
		},
	}
}

// writeManPages writes the page of c and those of its subcommands, and prints
// their names.
func writeManPages(w io.Writer, c *cobra.Command, dir string) error {
	file := filepath.Join(dir, manName(c)+".1")
	if err := os.WriteFile(file, manPage(c), 0o644); err != nil {
		return exitf(exitRuntime, "write man page: %v", err)
	}
	fmt.Fprintln(w, file)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManPages(w, sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the page in man's own language.
func manPage(c *cobra.Command) []byte {
	var b bytes.Buffer
	c.InitDefaultHelpFlag()
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q\n", strings.ToUpper(manName(c)), "rwannotate "+version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	synopsis := c.UseLine()
	if c.HasAvailableSubCommands() {
		synopsis = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(synopsis))
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", strings.ReplaceAll(roff(text), "\n\n", "\n.PP\n"))
	manFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	manSeeAlso(&b, c)
	return b.Bytes()
}

func manFlags(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
	})
}

func manSeeAlso(b *bytes.Buffer, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			pages = append(pages, manName(sub))
		}
	}
	for i := range pages {
		pages[i] = fmt.Sprintf(".BR %s (1)", roff(pages[i]))
	}
	if len(pages) > 0 {
		fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(pages, ",\n"))
	}
}

// roff escapes text: a backslash, a dash that is to stay one, and a dot or
// quote at the beginning of a line, which would be a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
