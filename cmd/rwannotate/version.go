package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

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
	b := buildInfo{Version: version, Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 10 {
				b.Commit = s.Value[:10]
			}
		}
	}
	b.Catalog.Version, b.Catalog.Digest, b.Catalog.Records = catalog.Version(records), catalog.Digest(records), len(records)
	return b
}
