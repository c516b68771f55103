package temporalpayvault

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// frontend is as much of a server of Temporal as one attempt of an activity takes.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer

	tasks  chan *workflowservice.PollActivityTaskQueueResponse
	record func(report) error
	failed chan *workflowservice.RespondActivityTaskFailedRequest
	done   chan *workflowservice.RespondActivityTaskCompletedRequest
	worker worker.Worker
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
	var p report
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
func newFrontend(t *testing.T, a *Activities, o order, record func(report) error) *frontend {
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
	w := worker.New(c, "queue", worker.Options{DisableWorkflowWorker: true, WorkerStopTimeout: time.Minute})
	f.worker = w
	w.RegisterActivityWithOptions(a.submit, activityOptions(activitySubmit))
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return f
}

// announcements are the batches that a server has heard of.
type announcements struct {
	mu      sync.Mutex
	batches map[int]bool
	sent    int
}

func (a *announcements) record(p report) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, batch := range p.Sending {
		a.batches[batch] = true
	}
	return nil
}

// client holds that no more is sent than was announced.
func (a *announcements) client(t *testing.T, srv *payvaulttest.Server) *payvault.Client {
	t.Helper()
	return srv.Client(payvault.WithHTTPClient(&http.Client{Transport: roundTripper(
		func(r *http.Request) (*http.Response, error) {
			a.mu.Lock()
			a.sent++
			assert.LessOrEqual(t, a.sent, len(a.batches))
			a.mu.Unlock()
			return http.DefaultTransport.RoundTrip(r)
		})}))
}

// What is sent was announced before, and the server has acknowledged it.
func TestServer_announces(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 3000}
	heard := announcements{batches: map[int]bool{}}
	f := newFrontend(t, &Activities{Cards: d, Client: heard.client(t, srv)}, orderOf(d), heard.record)
	var done report
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads((<-f.done).GetResult(), &done))
	assert.Empty(t, audit(t, 30, performed(t, srv), done.statuses()))
	assert.Len(t, heard.batches, 30)
}

// When a worker stops, the server has heard of all that was done, though requests were cut off.
func TestServer_workerStops(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 30_000}
	heard := announcements{batches: map[int]bool{}}
	enough := make(chan struct{})
	var once sync.Once
	f := newFrontend(t, &Activities{Cards: d, Client: heard.client(t, srv)}, orderOf(d), func(p report) error {
		if len(p.Outcomes) > 5 {
			once.Do(func() { close(enough) })
		}
		return heard.record(p)
	})
	<-enough
	f.worker.Stop()
	err := temporal.GetDefaultFailureConverter().FailureToError((<-f.failed).GetFailure())
	var done report
	require.True(t, reported(err, &done), err)
	assert.Empty(t, done.Sending)
	assert.GreaterOrEqual(t, len(done.Outcomes), srv.Commits(op))
	assert.Less(t, len(done.Outcomes), 300)
}

// A server that does not know the attempt any more is not announced anything, and nothing more is sent.
func TestServer_refuses(t *testing.T) {
	t.Parallel()
	srv, d := newServer(t), deck{n: 30_000}
	heard := announcements{batches: map[int]bool{}}
	var heartbeats atomic.Int32
	f := newFrontend(t, &Activities{Cards: d, Client: heard.client(t, srv)}, orderOf(d), func(p report) error {
		if heartbeats.Add(1) > 3 {
			return status.Error(codes.NotFound, "activity not found")
		}
		return heard.record(p)
	})
	select {
	case <-f.failed:
	case r := <-f.done:
		assert.Fail(t, "it went on", r.String())
	}
	for batch := range performed(t, srv) {
		assert.Contains(t, heard.batches, batch)
	}
	assert.Less(t, len(heard.batches), 30)
}
