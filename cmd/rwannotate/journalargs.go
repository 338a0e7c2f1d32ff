package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/spool"
)

func newJournalArgsCmd(std streams) *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "journal-args",
		Short: "Print the journalctl option that goes on where `run` stopped",
		Long: `Print the journalctl option that goes on where "run" stopped reading a
journal: --after-cursor=… of the last entry that was saved, or --since=now if
there is none yet. It may be called while "run" holds the state directory.`,
		Example: `  journalctl -f -o export -n all $(rwannotate journal-args --state /var/lib/rwannotate) -u risingwave |
    rwannotate run --input - --state /var/lib/rwannotate`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			cfg, _, err := flags.load(std.err)
			if err != nil {
				return err
			}
			if cfg.State.Dir == "" {
				return exitf(exitUsage, "journal-args needs the state directory: --state DIR")
			}
			// On an error nothing is printed: journalctl then starts from the
			// beginning, which repeats, and loses nothing.
			cursor, err := spool.PeekCursor(cfg.State.Dir)
			if err != nil {
				return exitf(exitRuntime, "%v", err)
			}
			option := "--since=now"
			if cursor != "" {
				option = "--after-cursor=" + cursor
			}
			_, err = fmt.Fprintln(std.out, option)
			return err
		},
	}
	flags.register(cmd.Flags())
	for _, o := range overridingFlags {
		if o.flag != "state" {
			_ = cmd.Flags().MarkHidden(o.flag) // exists: registered above
		}
	}
	return cmd
}
