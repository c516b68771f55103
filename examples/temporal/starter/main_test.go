package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

// TestWorkflowID checks that the workflow ID consists of the name and the start of the checksum of the file.
func TestWorkflowID(t *testing.T) {
	t.Parallel()
	id := workflowID("/cards/november.csv", temporalpayvault.Snapshot{Checksum: "0123456789abcdef"})
	assert.Equal(t, "cards-november-0123456789ab", id)
}

// TestReport checks that report writes a file with the line numbers of the batches that were not accepted. If all
// batches were accepted, report must leave no file.
func TestReport(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 250))
	var out bytes.Buffer
	require.NoError(t, report(name, &temporalpayvault.Summary{Batches: 3, Accepted: 3}, &out))
	assert.NoFileExists(t, name+".not-accepted.csv", "there is nothing to tell")
	s := &temporalpayvault.Summary{Batches: 3, Accepted: 2, Unknown: 1, UnknownBatches: []int{1}}
	require.NoError(t, report(name, s, &out))
	text, err := os.ReadFile(name + ".not-accepted.csv")
	require.NoError(t, err)
	assert.Contains(t, string(text), "102,201,unknown,")
}
