package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
