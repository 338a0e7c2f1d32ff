// Package configs holds the configuration that is shipped: an example with
// every key, its JSON schema, and the manifests around it. Only the schema is
// part of the binary.
package configs

import _ "embed"

// Schema is config.schema.json, generated from the types of internal/config.
//
//go:embed config.schema.json
var Schema []byte
