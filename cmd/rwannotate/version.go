package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// Set by the linker, see the Makefile; go build itself knows a revision only
// where there is a repository, which the build of an image is not given.
var version, revision = "dev", ""

// buildInfo is what the version command tells.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Catalog  struct {
		Version string `json:"version"`
		Digest  string `json:"digest"`
		Records int    `json:"records"`
	} `json:"catalog"`
}

func newVersionCmd(std streams) *cobra.Command {
	var flags catalogFlags
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of its catalogue",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			records, _, err := flags.read()
			if err != nil {
				return err
			}
			b := newBuildInfo(records)
			switch output {
			case "text":
				fmt.Fprintf(std.out, "rwannotate %s (%s, %s %s) catalogue %s %s, %d records\n", b.Version, b.Commit, b.Go, b.Platform, b.Catalog.Version, b.Catalog.Digest, b.Catalog.Records)
			case "json":
				return json.NewEncoder(std.out).Encode(b)
			default:
				return exitf(exitUsage, "-o %s: want text or json", output)
			}
			return nil
		},
	}
	flags.register(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func newBuildInfo(records []catalog.Record) buildInfo {
	b := buildInfo{Version: version, Commit: commit(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	b.Catalog.Version, b.Catalog.Digest, b.Catalog.Records = catalog.Version(records), catalog.Digest(records), len(records)
	return b
}

// commit is the beginning of the revision that this was built from.
func commit() string {
	from := revision
	if info, ok := debug.ReadBuildInfo(); ok && from == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				from = s.Value
			}
		}
	}
	return fmt.Sprintf("%.10s", cmp.Or(from, "unknown"))
}
