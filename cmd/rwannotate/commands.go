package main

import "github.com/spf13/cobra"

// commands lists the subcommands; each lives in a file of its own name.
func commands(std streams) []*cobra.Command {
	return []*cobra.Command{
		newRunCmd(std),
		newScanCmd(std),
		newExplainCmd(std),
		newPatternsCmd(std),
		newConfigCmd(std),
		newHealthcheckCmd(std),
		newJournalArgsCmd(std),
		newVersionCmd(std),
		newManCmd(std),
	}
}
