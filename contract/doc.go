// Package contract has only tests. They check the OpenAPI document api/openapi.yaml, the messages in testdata, and the
// messages between the SDK and the emulator. All messages must match the document.
package contract
