// Package contract checks the OpenAPI document api/openapi.yaml, and checks testdata, and what the SDK and the emulator
// send each other, by the document. It has tests only.
package contract
