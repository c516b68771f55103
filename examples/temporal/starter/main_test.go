package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

// TestWorkflowID checks that the workflow ID consists of the name and the start of the checksum of the file.
func TestWorkflowID(t *testing.T) {
	t.Parallel()
	id := workflowID("/cards/november.csv", temporalpayvault.Snapshot{Checksum: "0123456789abcdef"})
	assert.Equal(t, "cards-november-0123456789ab", id)
}

// TestExitStatus_noServer checks the exit status without a server: 1 if there is a file to submit, and otherwise 0.
func TestExitStatus_noServer(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("%w at 127.0.0.1:1", demo.ErrNoServer)
	assert.Equal(t, 1, exitStatus(err, "november.csv"))
	assert.Zero(t, exitStatus(err, ""))
}

// TestReport checks that report writes a file with the line numbers of the batches that were not accepted. If all
// batches were accepted, report must leave no file. Otherwise the exit status must be 5.
func TestReport(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 250))
	var out bytes.Buffer
	require.NoError(t, report(name, &temporalpayvault.Summary{Batches: 3, Accepted: 3}, &out))
	assert.NoFileExists(t, name+".not-accepted.csv", "there is nothing to tell")
	s := &temporalpayvault.Summary{Batches: 3, Accepted: 2, Unknown: 1, UnknownBatches: []int{1}}
	assert.Equal(t, 5, exitStatus(report(name, s, &out), name))
	text, err := os.ReadFile(name + ".not-accepted.csv")
	require.NoError(t, err)
	assert.Contains(t, string(text), "102,201,unknown,")
}

// errFrozen is the error of a call while the server is frozen.
var errFrozen = serviceerror.NewDeadlineExceeded("context deadline exceeded while waiting for connections")

// answer is the result of a call to the server: a summary of the type that the call wants, or an error.
type answer struct {
	summary any
	err     error
}

// serverOf returns a fake server with one workflow. Each call of Get returns the next element of gets, and each call of
// QueryWorkflow the next element of queries.
func serverOf(gets, queries []answer) *mocks.Client {
	server, run := &mocks.Client{}, &mocks.WorkflowRun{}
	server.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(run, nil)
	run.On("GetID").Return("id")
	fill := func(argument int, summary any) func(mock.Arguments) {
		return func(args mock.Arguments) {
			if summary != nil {
				reflect.ValueOf(args.Get(argument)).Elem().Set(reflect.ValueOf(summary))
			}
		}
	}
	for _, a := range gets {
		run.On("Get", mock.Anything, mock.Anything).Run(fill(1, a.summary)).Return(a.err).Once()
	}
	for _, a := range queries {
		value := &mocks.Value{}
		value.On("Get", mock.Anything).Run(fill(0, a.summary)).Return(nil)
		server.On("QueryWorkflow", mock.Anything, "id", "", "progress").Return(value, a.err).Once()
	}
	return server
}

// TestExport checks the output, the error and the exit status of an export in three cases: the server is frozen for a
// time, the export is paused, and the export is incomplete.
func TestExport(t *testing.T) {
	t.Parallel()
	type summary = temporalpayvault.ExportSummary
	done := summary{Lists: 2, Done: 2, Pages: 3, Records: 25}
	incomplete := done
	incomplete.Incomplete = 1
	incomplete.IncompleteLists = []temporalpayvault.IncompleteList{
		{Subscription: 5002, Promised: 20, Written: 10, ShortPages: []int{1}},
	}
	for name, test := range map[string]struct {
		gets, queries []answer
		out           []string
		status        int    // exit status
		err           string // "" if there is no error
	}{
		"frozen server": {
			[]answer{{err: errFrozen}, {err: errFrozen}, {summary: done}},
			[]answer{{err: errFrozen}, {summary: summary{Records: 7}}},
			[]string{"7 records of 0 subscriptions", "25 records of 2 subscriptions"},
			0, "",
		},
		"paused": {
			[]answer{{err: errFrozen}},
			[]answer{{summary: summary{Paused: "key"}}},
			nil, 3, "the workflow is paused: id: key",
		},
		"incomplete": {
			[]answer{{summary: incomplete}},
			nil,
			[]string{"subscription 5002: 10 of 20 records; these pages are short: [1]"},
			4, "the export is incomplete: 1 of 2 subscriptions lack records",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				err := export(t.Context(), serverOf(test.gets, test.queries), &out)
				for _, text := range test.out {
					assert.Contains(t, out.String(), text)
				}
				if test.err == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, test.err)
				assert.Equal(t, test.status, exitStatus(err, ""))
			})
		})
	}
}

// TestSubmitAndExport_paused checks that the program prints the progress and ends with status 3 if the job is paused.
// The program must not start the export then.
func TestSubmitAndExport_paused(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 250))
	server := serverOf([]answer{{err: errFrozen}}, []answer{{
		summary: temporalpayvault.Summary{Batches: 3, Accepted: 2, Refused: 1, Paused: "key"},
	}})
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := submitAndExport(t.Context(), server, name, &out)
		require.EqualError(t, err, "the workflow is paused: id: key")
		assert.Equal(t, 3, exitStatus(err, name))
		assert.Contains(t, out.String(), "2 of 3 batches accepted, 1 refused, 0 unknown")
	})
}

// TestSubmitAndExport_notAccepted checks that the export also starts if not all cards are accepted. The error must tell
// both of unaccepted cards and of an incomplete export, and the exit status must be 5.
func TestSubmitAndExport_notAccepted(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 250))
	server := serverOf([]answer{
		{summary: temporalpayvault.Summary{Batches: 3, Accepted: 2, Unknown: 1, UnknownBatches: []int{1}}},
		{summary: temporalpayvault.ExportSummary{Lists: 2, Done: 2, Incomplete: 1}},
	}, nil)
	err := submitAndExport(t.Context(), server, name, io.Discard)
	require.ErrorIs(t, err, errNotAccepted)
	require.ErrorIs(t, err, errIncomplete)
	assert.Equal(t, 5, exitStatus(err, name))
}

// TestSubmit_canceled checks that the program reports the batches that a canceled workflow may not have sent, and
// returns an error.
func TestSubmit_canceled(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "cards.csv")
	require.NoError(t, demo.MakeUp(name, 250))
	summary := temporalpayvault.Summary{Batches: 3, Accepted: 1, NotDone: []temporalpayvault.Range{{From: 1, To: 3}}}
	server := serverOf([]answer{{err: temporal.NewCanceledError(summary)}}, nil)
	require.ErrorContains(t, submit(t.Context(), server, name, io.Discard), "was canceled")
	text, err := os.ReadFile(name + ".not-accepted.csv")
	require.NoError(t, err)
	assert.Contains(t, string(text), "102,251,perhaps not sent,")
}
