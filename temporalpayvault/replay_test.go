package temporalpayvault

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
)

// history reads a history from testdata. This command recorded the histories with a real Temporal server:
//
//	go -C internal/soak run . -temporal temporal -faults 0 -record "$PWD/testdata/histories"
func history(t *testing.T, name string) *historypb.History {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "histories", name+".json"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, file.Close()) })
	h, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

func histories(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.json")
	require.NoError(t, err)
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	require.Greater(t, len(names), 8)
	return names
}

// replay replays a history with a worker that has the given data converter.
func replay(t *testing.T, h *historypb.History, data converter.DataConverter) error {
	t.Helper()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: data})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(readable(submitCards), workflow.RegisterOptions{Name: workflowSubmit})
	r.RegisterWorkflowWithOptions(readable(exportLists), workflow.RegisterOptions{Name: workflowExport})
	started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	return r.ReplayWorkflowHistoryWithOptions(quiet(), h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
	})
}

// TestReplay checks that the current code replays the recorded histories: docs/versions.md promises that running
// workflows survive an upgrade. If a change of a workflow makes the test fail, the change needs workflow.GetVersion.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, name := range histories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history(t, name)
			require.NoError(t, replay(t, h, nil))
			raw, err := proto.Marshal(h)
			require.NoError(t, err)
			assert.True(t, bytes.Contains(raw, []byte("json/plain")), "what is passed can be read")
			assert.False(t, bytes.Contains(raw, []byte("41111111")), "and a recording shows no card")
		})
	}
}

// TestReplay_unreadable checks that a worker fails the workflow task if it cannot decrypt the input or the results in a
// history, and that a worker with the key can continue.
func TestReplay_unreadable(t *testing.T) {
	t.Parallel()
	codec := newCodec(t, "a", "a")
	keyed, _ := NewConverters(codec)
	otherKey, _ := NewConverters(newCodec(t, "b", "b"))
	for name, payloads := range map[string]func(*historypb.HistoryEvent) *commonpb.Payloads{
		"input": func(e *historypb.HistoryEvent) *commonpb.Payloads {
			return e.GetWorkflowExecutionStartedEventAttributes().GetInput()
		},
		"results": func(e *historypb.HistoryEvent) *commonpb.Payloads {
			return e.GetActivityTaskCompletedEventAttributes().GetResult()
		},
	} {
		for _, recorded := range []string{"brake-1", "wait-1", "customers-1"} {
			h, found := history(t, recorded), false
			for _, event := range h.GetEvents() {
				if p := payloads(event); p != nil {
					encrypted, err := codec.Encode(p.GetPayloads())
					require.NoError(t, err)
					p.Payloads, found = encrypted, true
				}
			}
			require.True(t, found)
			t.Run(name+" of "+recorded, func(t *testing.T) {
				t.Parallel()
				for _, data := range []converter.DataConverter{converter.GetDefaultDataConverter(), otherKey} {
					require.ErrorContains(t, replay(t, h, data), "this worker cannot read")
				}
				require.NoError(t, replay(t, h, keyed))
			})
		}
	}
}
