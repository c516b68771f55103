//go:build !race

package payvault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAllocationsOfOneCall guards the client's own cost. The race detector allocates too.
//
//nolint:paralleltest // it counts the allocations of the process
func TestAllocationsOfOneCall(t *testing.T) {
	client := cannedClient(t, newCanned(tokenizeAnswer()))
	in := tokenizeRequest()
	ctx := t.Context()
	var err error
	got := testing.AllocsPerRun(200, func() { _, err = client.Tokens.Tokenize(ctx, in) })
	assert.NoError(t, err)
	t.Logf("%v allocations", got)
	assert.LessOrEqual(t, got, 40.0)
}
