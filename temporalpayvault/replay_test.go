package temporalpayvault

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
)

// The histories of testdata are those of a real server:
//
//	go -C internal/soak run . -temporal ../../../bin/temporal -record "$PWD/testdata/histories"
func history(t *testing.T, name string) *historypb.History {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "histories", name+".json"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	h, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

// replay replays a history, of a run of another ID if run is not empty, and returns what the workflow passed on.
func replay(t *testing.T, h *historypb.History, run string, submit any) (string, error) {
	t.Helper()
	return replayWith(t, converter.GetDefaultDataConverter(), h, run, submit)
}

func replayWith(
	t *testing.T, data converter.DataConverter, h *historypb.History, run string, submit any,
) (string, error) {
	t.Helper()
	seen := tap{data, &sync.Mutex{}, &bytes.Buffer{}}
	failures := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: seen})
	r, err := worker.NewWorkflowReplayerWithOptions(
		worker.WorkflowReplayerOptions{DataConverter: seen, FailureConverter: failures})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(submit, workflow.RegisterOptions{Name: "SubmitCards"})
	r.RegisterWorkflow(ExportLists)
	started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	if run == "" {
		run = started.GetOriginalExecutionRunId()
	}
	err = r.ReplayWorkflowHistoryWithOptions(quiet(), h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: run},
	})
	return seen.seen.String(), err
}

// Workflows that were started with the code of today go on with that of tomorrow. One that has to change what it does
// asks for workflow.GetVersion.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"unknown-1", "unknown-2", "key-1", "key-2", "failed-1", "failed-2", "tried-1", "tried-2", "canceled-1", "reset-1",
		"journal-1", "journal-2", "again-1", "again-2",
		"customers-1", "transactions-1", "transactions-2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, name)
			_, err := replay(t, h, "", SubmitCards)
			require.NoError(t, err)
			raw, err := proto.Marshal(h)
			require.NoError(t, err)
			assert.True(t, bytes.Contains(raw, []byte("json/plain")), "what is passed can be read")
			assert.False(t, bytes.Contains(raw, []byte("41111111")), "and a recording shows no card")
		})
	}
}

// A replay sees a change of the workflow.
func TestReplay_changed(t *testing.T) {
	t.Parallel()
	_, err := replay(t, history(t, "unknown-1"), "", func(ctx workflow.Context, job Job) (*Summary, error) {
		job.Concurrency = 1
		return SubmitCards(ctx, job)
	})
	require.ErrorContains(t, err, "TMPRL1100") // not deterministic
}

// A worker that cannot read what another one has encrypted decides nothing: its task fails, and one that can goes on.
func TestReplay_unreadable(t *testing.T) {
	t.Parallel()
	codec := newCodec(t, "a", "a")
	keyed, _ := NewConverters(codec)
	keyless, _ := NewConverters(newCodec(t, "b", "b"))
	encrypt := func(p *commonpb.Payloads) {
		encrypted, err := codec.Encode(p.GetPayloads())
		require.NoError(t, err)
		p.Payloads = encrypted
	}
	for name, encrypts := range map[string]func(*historypb.HistoryEvent) *commonpb.Payloads{
		"failures": func(e *historypb.HistoryEvent) *commonpb.Payloads {
			return e.GetActivityTaskFailedEventAttributes().GetFailure().GetApplicationFailureInfo().GetDetails()
		},
		"heartbeats": func(e *historypb.HistoryEvent) *commonpb.Payloads {
			return e.GetActivityTaskTimedOutEventAttributes().GetFailure().GetTimeoutFailureInfo().GetLastHeartbeatDetails()
		},
		"results": func(e *historypb.HistoryEvent) *commonpb.Payloads {
			return e.GetActivityTaskCompletedEventAttributes().GetResult()
		},
		"signals": func(e *historypb.HistoryEvent) *commonpb.Payloads {
			return e.GetWorkflowExecutionSignaledEventAttributes().GetInput()
		},
	} {
		for _, recorded := range []string{"key-1", "tried-1", "transactions-1"} {
			h, found := history(t, recorded), false
			for _, event := range h.GetEvents() {
				if p := encrypts(event); p != nil {
					encrypt(p)
					found = true
				}
			}
			if !found {
				continue
			}
			t.Run(name+" of "+recorded, func(t *testing.T) {
				t.Parallel()
				for _, data := range []converter.DataConverter{converter.GetDefaultDataConverter(), keyless} {
					_, err := replayWith(t, data, h, "", SubmitCards)
					require.ErrorContains(t, err, unreadable)
				}
				_, err := replayWith(t, keyed, h, "", SubmitCards)
				require.NoError(t, err)
			})
		}
	}
}

// The runs after one that was reset are of a reset, too.
func TestReplay_resetOfChain(t *testing.T) {
	t.Parallel()
	h := history(t, "key-1")
	last := h.GetEvents()[len(h.GetEvents())-1]
	require.Equal(t, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, last.GetEventType())
	original, err := replay(t, h, "", SubmitCards)
	require.NoError(t, err)
	assert.NotContains(t, original, `"again":true`)
	assert.NotContains(t, original, `"Run":""`, "its activities may send")
	reset, err := replay(t, h, "another", SubmitCards)
	require.NoError(t, err)
	assert.Contains(t, reset, `"again":true`)
	assert.Contains(t, reset, `"Run":""`)
	assert.Equal(t, strings.Count(reset, `"Run":"`), strings.Count(reset, `"Run":""`), "none may")
}

// Its journal goes with a job: the orders of the first run, and of the next, want it.
func TestReplay_journal(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"journal-1", "journal-2", "again-1", "again-2"} {
		orders, err := replay(t, history(t, name), "", SubmitCards)
		require.NoError(t, err)
		assert.Positive(t, strings.Count(orders, `"Journal":true`), name)
		assert.Zero(t, strings.Count(orders, `"Journal":false`), name)
	}
}

func TestIsAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		original string
		attempt  int32
		want     bool
	}{
		"first":                 {"this", 1, false},
		"reset":                 {"before", 1, true},
		"retried":               {"this", 2, true},
		"of a test environment": {"", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := &workflow.Info{OriginalRunID: test.original, Attempt: test.attempt}
			info.WorkflowExecution.RunID = "this"
			assert.Equal(t, test.want, isAgain(info))
		})
	}
}

func TestSubmitCards_afterReset(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Cards: deck{n: 100}})
	env.ExecuteWorkflow(SubmitCards, Job{Source: "deck", State: &JobState{Again: true}})
	assert.ErrorContains(t, env.GetWorkflowError(), "was reset or retried")
}
