// Package patterns carries the catalogue inside the binary: one file per
// record, in a directory per component. README.md describes the format.
package patterns

import "embed"

// FS holds the catalogue.
//
//go:embed */*.yaml
var FS embed.FS
