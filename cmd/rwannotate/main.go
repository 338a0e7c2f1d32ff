// Command rwannotate reads RisingWave logs, recognises known errors and says
// what they mean and what to do. This package parses the command line, wires
// the parts together and decides the exit code; everything else is internal/.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes, part of the command-line contract (design: 0 done, 1 runtime
// error, 2 usage, 10 --fail-on matched, 78 bad configuration or catalogue).
const (
	exitOK      = 0
	exitRuntime = 1
	exitUsage   = 2
	exitFailOn  = 10
	exitConfig  = 78
)

// streams are the process's standard streams, handed down so that commands can
// be tested in-process.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// exitError carries an exit code to main. An empty message prints nothing.
type exitError struct {
	code int
	msg  string
}

func (e exitError) Error() string { return e.msg }

func exitf(code int, format string, args ...any) error {
	return exitError{code, fmt.Sprintf(format, args...)}
}

func main() {
	// A reader that goes away (scan | head) is an error to report, not a signal
	// to die of without a word.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit exitError
	if !errors.As(err, &exit) {
		exit = exitError{exitRuntime, err.Error()}
	}
	if exit.msg != "" {
		fmt.Fprintln(std.err, "rwannotate: "+printable(exit.msg))
	}
	return exit.code
}

func newRoot(std streams) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "rwannotate",
		Short: "Recognise known errors in RisingWave logs and say what to do about them",
		Long: `rwannotate reads RisingWave log streams (files, Kubernetes container logs,
journalctl piped in), recognises known errors and emits one enriched event for
each: which error it is, how severe, what it means, what to do.

Exit codes: 0 done; 1 something failed while running; 2 wrong command line;
10 "scan --fail-on" found such an error; 78 the configuration or the catalogue
cannot be used.`,
		Example: `  rwannotate scan compute-0.log
  rwannotate explain invalid-worker
  journalctl -f -o export -u risingwave-compute | rwannotate run`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return newVersionCmd(std).RunE(cmd, nil)
			}
			_ = cmd.Help()
			return exitError{code: exitUsage}
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var value *pflag.InvalidValueError
		if errors.As(err, &value) {
			err = fmt.Errorf("--%s %q: a value of type %s is expected", value.GetFlag().Name, value.GetValue(), value.GetFlag().Value.Type())
		}
		return exitf(exitUsage, "%v (see %q)", err, cmd.CommandPath()+" --help")
	})
	root.Flags().BoolVar(&showVersion, "version", false, "print what the command version prints")
	root.AddCommand(commands(std)...)
	return root
}
