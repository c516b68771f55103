package temporalpayvault

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.com/payvault"
)

// frontend is as much of a server of Temporal as one attempt of an activity takes.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer

	tasks  chan *workflowservice.PollActivityTaskQueueResponse
	record func(progress) error
	failed chan *workflowservice.RespondActivityTaskFailedRequest
	done   chan *workflowservice.RespondActivityTaskCompletedRequest
}

func (f *frontend) GetSystemInfo(
	context.Context, *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest,
) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (f *frontend) PollActivityTaskQueue(
	ctx context.Context, _ *workflowservice.PollActivityTaskQueueRequest,
) (*workflowservice.PollActivityTaskQueueResponse, error) {
	select {
	case task := <-f.tasks:
		return task, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *frontend) RecordActivityTaskHeartbeat(
	_ context.Context, r *workflowservice.RecordActivityTaskHeartbeatRequest,
) (*workflowservice.RecordActivityTaskHeartbeatResponse, error) {
	var p progress
	if err := converter.GetDefaultDataConverter().FromPayloads(r.GetDetails(), &p); err != nil {
		return nil, err
	}
	return &workflowservice.RecordActivityTaskHeartbeatResponse{}, f.record(p)
}

func (f *frontend) RespondActivityTaskFailed(
	_ context.Context, r *workflowservice.RespondActivityTaskFailedRequest,
) (*workflowservice.RespondActivityTaskFailedResponse, error) {
	f.failed <- r
	return &workflowservice.RespondActivityTaskFailedResponse{}, nil
}

func (f *frontend) RespondActivityTaskCompleted(
	_ context.Context, r *workflowservice.RespondActivityTaskCompletedRequest,
) (*workflowservice.RespondActivityTaskCompletedResponse, error) {
	f.done <- r
	return &workflowservice.RespondActivityTaskCompletedResponse{}, nil
}

// newFrontend has a worker do an order.
func newFrontend(t *testing.T, a *Activities, o order, record func(progress) error) *frontend {
	t.Helper()
	f := &frontend{
		tasks: make(chan *workflowservice.PollActivityTaskQueueResponse, 1), record: record,
		failed: make(chan *workflowservice.RespondActivityTaskFailedRequest, 1),
		done:   make(chan *workflowservice.RespondActivityTaskCompletedRequest, 1),
	}
	o.Run = "a run of a server"
	input, err := converter.GetDefaultDataConverter().ToPayloads(o)
	require.NoError(t, err)
	f.tasks <- &workflowservice.PollActivityTaskQueueResponse{
		TaskToken: []byte("token"), ActivityId: "1", Input: input, Attempt: 1,
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "job", RunId: o.Run},
		WorkflowType:      &commonpb.WorkflowType{Name: "SubmitCards"},
		ActivityType:      &commonpb.ActivityType{Name: activitySubmit},
		HeartbeatTimeout:  durationpb.New(time.Minute), StartToCloseTimeout: durationpb.New(time.Hour),
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, f)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		assert.NoError(t, <-served)
	})
	c, err := client.NewLazyClient(client.Options{HostPort: listener.Addr().String(), Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := worker.New(c, "queue", worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(a.submit, activityOptions(activitySubmit))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return f
}

// What is sent was announced before, and the server has acknowledged it.
func TestServer_announces(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 3000}
	var mu sync.Mutex
	announced, requests := map[int]bool{}, 0
	c := srv.Client(payvault.WithHTTPClient(&http.Client{Transport: roundTripper(
		func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			requests++
			assert.LessOrEqual(t, requests, len(announced))
			mu.Unlock()
			return http.DefaultTransport.RoundTrip(r)
		})}))
	f := newFrontend(t, &Activities{Cards: d, Client: c}, orderOf(d), func(p progress) error {
		mu.Lock()
		defer mu.Unlock()
		for _, batch := range p.Sending {
			announced[batch] = true
		}
		return nil
	})
	var done report
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads((<-f.done).GetResult(), &done))
	assert.Empty(t, audit(t, 30, performed(t, srv), done.statuses()))
	assert.Len(t, announced, 30)
}

// Nothing is sent that the server refuses to hear of.
func TestServer_refuses(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 3000}
	f := newFrontend(t, &Activities{Cards: d, Client: srv.Client()}, orderOf(d), func(progress) error {
		return status.Error(codes.NotFound, "activity not found")
	})
	assert.NotEmpty(t, (<-f.failed).GetFailure().GetMessage())
	assert.Empty(t, srv.Requests())
}
