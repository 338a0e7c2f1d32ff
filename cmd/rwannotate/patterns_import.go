package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/catalog"
	"github.com/rwannotate/rwannotate/patterns"
)

func newImportCmd(std streams) *cobra.Command {
	imp := importer{std: std}
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Turn published records into records of the catalogue",
		Long: `Read records as the knowledge base publishes them, the JSON of its API or the
text of its page (- is standard input), and print them as YAML records with
"review: imported". Several are printed as several documents; with -o DIR each is
written to DIR/COMPONENT/SLUG.yaml instead, which must not exist yet.

Published JSON works in a --patterns directory as it is; import it to edit it, or
to add examples.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return imp.run(args) },
	}
	cmd.Flags().StringVarP(&imp.dir, "output-dir", "o", "", "write files below `DIR`")
	cmd.Flags().BoolVar(&imp.force, "force", false, "overwrite files")
	return cmd
}

type importer struct {
	std   streams
	dir   string
	force bool
}

func (imp *importer) run(files []string) error {
	records, bad, err := imp.read(files)
	if err != nil {
		return err
	}
	embedded, _ := catalog.Load(patterns.FS())
	catalog.CompleteLinks(records, append(embedded, records...))
	for i := range records {
		if err := imp.write(&records[i], i > 0); err != nil {
			return err
		}
	}
	if bad > 0 {
		return exitf(exitConfig, "%d of %d files could not be imported", bad, len(files))
	}
	return nil
}

// read parses every file and says what is wrong with each; bad counts those
// without a usable record.
func (imp *importer) read(files []string) (records []catalog.Record, bad int, err error) {
	for _, file := range files {
		data, err := imp.open(file)
		if err != nil {
			return nil, 0, exitf(exitRuntime, "import %s: %v", file, err)
		}
		record, problems := catalog.ParsePublished(data)
		for _, p := range problems {
			p.File = file
			fmt.Fprintln(imp.std.err, printable(p.String()))
		}
		if catalog.HasErrors(problems) {
			bad++
			continue
		}
		records = append(records, record)
	}
	return records, bad, nil
}

// maxImport bounds what is read; a page has some 10 KB.
const maxImport = 2 << 20

func (imp *importer) open(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(imp.std.in, maxImport))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, reasonOf(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImport))
	return data, reasonOf(err)
}

// reasonOf drops the path from an error of the file system.
func reasonOf(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (imp *importer) write(r *catalog.Record, follows bool) error {
	if imp.dir == "" {
		if follows {
			fmt.Fprintln(imp.std.out, "---")
		}
		_, err := imp.std.out.Write(r.AppendYAML(nil))
		return err
	}
	file := filepath.Join(imp.dir, r.Component, r.Slug+".yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return exitf(exitRuntime, "import: %v", err)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if imp.force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, flags, 0o644)
	if err != nil {
		return exitf(exitRuntime, "import: %v", err)
	}
	_, err = f.Write(r.AppendYAML(nil))
	if err = errors.Join(err, f.Close()); err != nil {
		return exitf(exitRuntime, "import: %v", err)
	}
	fmt.Fprintln(imp.std.out, file)
	return nil
}
