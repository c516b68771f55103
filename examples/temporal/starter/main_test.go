package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault/temporalpayvault"
)

// Each start of a file is of the same job, whatever the time, and may be made again.
func TestNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "november", nameOf("/cards/november.csv"))
	options := alone("cards-november")
	assert.Equal(t, "cards-november", options.ID)
	assert.Zero(t, options.WorkflowIDReusePolicy, "it may be started after its end")
	assert.True(t, options.WorkflowExecutionErrorWhenAlreadyStarted)
}

func TestIsCanceled(t *testing.T) {
	t.Parallel()
	var s temporalpayvault.Summary
	assert.True(t, isCanceled(temporal.NewCanceledError(temporalpayvault.Summary{Accepted: 5}), &s))
	assert.Equal(t, 5, s.Accepted)
	assert.False(t, isCanceled(temporal.NewCanceledError(), &s))
	assert.False(t, isCanceled(nil, &s))
}
