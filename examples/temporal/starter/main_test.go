package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

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

// late is the error of a client while the server is frozen.
func late() error {
	return serviceerror.NewDeadlineExceeded("context deadline exceeded while waiting for connections")
}

// exporting returns a server with an export. The answers to the calls of Get and of QueryWorkflow come in their order.
// A nil summary stands for an answer that does not come.
func exporting(gets, queries []*temporalpayvault.ExportSummary) *mocks.Client {
	server, run := &mocks.Client{}, &mocks.WorkflowRun{}
	server.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(run, nil)
	run.On("GetID").Return("transactions")
	for _, s := range gets {
		if s == nil {
			run.On("Get", mock.Anything, mock.Anything).Return(late()).Once()
			continue
		}
		run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
			*args.Get(1).(*temporalpayvault.ExportSummary) = *s //nolint:forcetypeassert // the test fails
		}).Return(nil).Once()
	}
	for _, s := range queries {
		if s == nil {
			server.On("QueryWorkflow", mock.Anything, "transactions", "", "progress").Return(nil, late()).Once()
			continue
		}
		value := &mocks.Value{}
		value.On("Get", mock.Anything).Run(func(args mock.Arguments) {
			*args.Get(0).(*temporalpayvault.ExportSummary) = *s //nolint:forcetypeassert // the test fails
		}).Return(nil)
		server.On("QueryWorkflow", mock.Anything, "transactions", "", "progress").Return(value, nil).Once()
	}
	return server
}

// TestExport checks what the program prints and how it ends while the server is frozen, if the export is paused, and if
// the export is incomplete.
func TestExport(t *testing.T) {
	t.Parallel()
	type answers = []*temporalpayvault.ExportSummary
	done := &temporalpayvault.ExportSummary{Lists: 2, Done: 2, Pages: 3, Records: 25}
	incomplete := *done
	incomplete.Incomplete = 1
	incomplete.IncompleteLists = []temporalpayvault.IncompleteList{
		{Subscription: 5002, Promised: 20, Written: 10, ShortPages: []int{1}},
	}
	for name, test := range map[string]struct {
		gets, queries answers
		status        int // exit status; 0 without an error
		out           string
	}{
		"frozen server": {answers{nil, nil, done}, answers{nil, {Records: 7}}, 0, "7 records of 0 subscriptions"},
		"paused":        {answers{nil}, answers{{Paused: "key"}}, 3, ""},
		"incomplete":    {answers{&incomplete}, nil, 4, "subscription 5002: 10 of 20 records; these pages are short: [1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				err := export(t.Context(), exporting(test.gets, test.queries), &out)
				assert.Contains(t, out.String(), test.out)
				if test.status == 0 {
					require.NoError(t, err)
					assert.Contains(t, out.String(), "25 records of 2 subscriptions")
					return
				}
				assert.Equal(t, test.status, exitStatus(err))
				if test.status == 3 {
					assert.EqualError(t, err, "the workflow is paused: transactions: key")
				}
			})
		})
	}
}
