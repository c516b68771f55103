// Package contract checks the OpenAPI document api/openapi.yaml. By the document it checks testdata, and the messages
// between the SDK and the emulator. It has tests only.
package contract
