// Package api describes the operations of the service in an OpenAPI document. [OpenAPI] returns the document.
package api

import (
	"bytes"
	_ "embed"
)

//go:embed openapi.yaml
var document []byte

// OpenAPI returns the text of openapi.yaml.
func OpenAPI() []byte { return bytes.Clone(document) }
