// Package contract holds the SDK, its emulator and the fixtures against the interface document api/openapi.yaml, so
// that none of them can change alone. It has tests only, in a module of its own: the SDK does not need an OpenAPI
// library.
package contract
