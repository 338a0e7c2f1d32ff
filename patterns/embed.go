//go:build !packed

// Package patterns carries the catalogue inside the binary: one file per
// record, in a directory per component. README.md describes the format.
package patterns

import (
	"embed"
	"io/fs"
)

//go:generate go run ./pack catalogue.zip.zst
//go:embed */*.yaml
var files embed.FS

// FS is the catalogue.
func FS() fs.FS { return files }
