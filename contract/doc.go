// Package contract has only tests. They check that the OpenAPI document is valid, and that the messages in testdata and
// the messages between the SDK and the emulator match it.
package contract
