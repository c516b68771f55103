// Package api holds the interface of the service as an OpenAPI document, which [OpenAPI] returns.
package api

import (
	"bytes"
	_ "embed"
)

//go:embed openapi.yaml
var document []byte

// OpenAPI returns the text of openapi.yaml.
func OpenAPI() []byte { return bytes.Clone(document) }
