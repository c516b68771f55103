package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

var errFull = errors.New("disk full at 4111111111111111")

// shelf is a sink that replaces what it has at a position.
type shelf struct {
	mu     sync.Mutex
	pages  map[Position][]string
	ends   map[Position]int
	writes int
	fail   func(n int) error // may be nil
}

func newShelf() *shelf { return &shelf{pages: map[Position][]string{}, ends: map[Position]int{}} }

func (s *shelf) WriteCustomers(_ context.Context, at Position, customers []payvault.Customer) error {
	var ids []string
	for _, c := range customers {
		ids = append(ids, c.ID)
	}
	return s.write(at, ids)
}

func (s *shelf) WriteTransactions(_ context.Context, at Position, transactions []payvault.Transaction) error {
	var ids []string
	for _, x := range transactions {
		ids = append(ids, x.PGID)
	}
	return s.write(at, ids)
}

func (s *shelf) EndList(_ context.Context, at Position) error {
	return s.do(at, func(at Position) { s.ends[at]++ })
}

func (s *shelf) write(at Position, ids []string) error {
	return s.do(at, func(at Position) { s.pages[at] = ids })
}

func (s *shelf) do(at Position, write func(Position)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Started.IsZero() {
		return errors.New("a sink has nothing to tell attempts by")
	}
	at.Started = time.Time{}
	s.writes++
	if s.fail != nil {
		if err := s.fail(s.writes); err != nil {
			return err
		}
	}
	write(at)
	return nil
}

// check holds the pages of a list to have no hole: each begins where the one before ends.
func (s *shelf) check(t *testing.T, id payvault.SubscriptionID, pages, records int) {
	t.Helper()
	at, seen := Position{Export: "night", Subscription: id}, map[string]bool{}
	for at.Page = 0; at.Page < pages; at.Page++ {
		ids, ok := s.pages[at]
		require.True(t, ok, "%+v", at)
		at.Offset += len(ids)
		for _, id := range ids {
			assert.False(t, seen[id], "%s twice", id)
			seen[id] = true
		}
	}
	assert.Equal(t, records, at.Offset)
	assert.Equal(t, 1, s.ends[at], "its end, at %+v", at)
}

func customers(t *testing.T, srv *payvaulttest.Server, n int) {
	t.Helper()
	for i := range n {
		_, err := srv.Client().Customers.Create(t.Context(), &payvault.CustomerCreateRequest{
			ID: fmt.Sprintf("c%04d", i), FirmName: "A",
		})
		require.NoError(t, err)
	}
}

// ids is a source of subscriptions.
type ids []payvault.SubscriptionID

func (s ids) Count(context.Context, string) (int, error) { return len(s), nil }

func (s ids) Subscriptions(_ context.Context, _ string, start, end int) ([]payvault.SubscriptionID, error) {
	return s[start:end], nil
}

// subscriptions gives subscription i of n 7 × i transactions.
func subscriptions(srv *payvaulttest.Server, n int) (source ids) {
	for i := range n {
		sub := payvaulttest.Subscription{MerchantID: srv.Merchant().MerchantID}
		for k := range 7 * i {
			sub.Transactions = append(sub.Transactions, payvaulttest.Transaction{PGID: fmt.Sprintf("t%d-%d", i, k)})
		}
		source = append(source, srv.Subscriptions.Seed(sub).ID)
	}
	return source
}

func exportSummary(t *testing.T, env *testsuite.TestWorkflowEnvironment) (s ExportSummary) {
	t.Helper()
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&s))
	return s
}

func TestExportLists_customers(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 95)
	inject(t, srv, payvaulttest.Fault{
		Operation: payvault.OpCustomersList, Kind: payvaulttest.Respond, Status: 503,
		Times: 8,
	})
	sink.fail = func(n int) error {
		if n == 3 || n == 12 { // a page, and the end
			return errFull
		}
		return nil
	}
	env, seen := tapped(&Activities{Client: once(srv), Sink: sink})
	env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night", List: payvault.ListOptions{Count: 10, Page: 7}})
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 10, Records: 95}, exportSummary(t, env))
	sink.check(t, 0, 10, 95)
	showsNothing(t, seen, "sink")
}

// The values of filters come through payloads, which the JSON of a filter leaves out.
func TestExportLists_filters(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 30)
	env := newWorkflows(&Activities{Client: once(srv), Sink: sink})
	one := payvault.Where("customer_id", "EQUALS", srv.Customers.All()[7].ID)
	env.ExecuteWorkflow(ExportLists, ExportJob{List: payvault.ListOptions{Filters: []payvault.Filter{one}}})
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 1, Records: 1}, exportSummary(t, env))
}

func TestExportLists_transactions(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	source := subscriptions(srv, 12)
	source = append(source, 999_999) // which there is not
	sink.fail = func(n int) error {
		if n%9 == 0 {
			return errFull
		}
		return nil
	}
	env, seen := tapped(&Activities{Client: srv.Client(), Sink: sink, Subscriptions: &stumbles{ids: source}})
	env.ExecuteWorkflow(ExportLists, ExportJob{
		Name: "night", Subscriptions: "all", List: payvault.ListOptions{Count: 10}, ListsPerActivity: 3, Concurrency: 2,
	})
	s := exportSummary(t, env)
	assert.Equal(t, []int{13, 12, 1, 7 * 66}, []int{s.Lists, s.Done, s.Failed, s.Records})
	require.Len(t, s.FailedLists, 1)
	assert.Equal(t, payvault.SubscriptionID(999_999), s.FailedLists[0].Subscription)
	pages := 0
	for i, id := range source[:12] {
		n := (7*i + 9) / 10
		sink.check(t, id, n, 7*i)
		pages += n
	}
	assert.Equal(t, pages, s.Pages)
	assert.Len(t, sink.pages, pages)
	assert.Len(t, sink.ends, 12, "not that of a list that is refused")
	showsNothing(t, seen, "source")
	showsNothing(t, seen, "sink")
}

// stumbles fails at first.
type stumbles struct {
	ids

	count, list sync.Once
}

func (s *stumbles) Count(ctx context.Context, ref string) (n int, err error) {
	n, err = s.ids.Count(ctx, ref)
	s.count.Do(func() { err = errFull })
	return n, err
}

func (s *stumbles) Subscriptions(
	ctx context.Context, ref string, start, end int,
) (found []payvault.SubscriptionID, err error) {
	found, err = s.ids.Subscriptions(ctx, ref, start, end)
	s.list.Do(func() { err = errFull })
	return found, err
}

// Without what it needs, an export pauses and goes on later.
func TestExportLists_noSink(t *testing.T) {
	t.Parallel()
	env := newWorkflows(&Activities{Client: newServer(t).Client()})
	env.RegisterDelayedCallback(func() {
		assert.Contains(t, progressAs[ExportSummary](t, env).Paused, "no Sink")
		env.CancelWorkflow()
	}, time.Hour)
	env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night"})
	require.Error(t, env.GetWorkflowError())

	for want, a := range map[string]*Activities{
		"no Subscriptions": {Client: newServer(t).Client(), Sink: newShelf()},
		"no Client":        {Sink: newShelf(), Subscriptions: make(ids, 3)},
		"0 subscriptions":  {Client: newServer(t).Client(), Sink: newShelf(), Subscriptions: uncounted{}},
	} {
		env := newWorkflows(a)
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Hour)
		env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night", Subscriptions: "all"})
		assert.Contains(t, canceledExport(t, env).Paused, want)
	}
}

type uncounted struct{ ids }

func (uncounted) Count(context.Context, string) (int, error) { return -1, nil }

func canceledExport(t *testing.T, env *testsuite.TestWorkflowEnvironment) (s ExportSummary) {
	t.Helper()
	canceled, ok := errors.AsType[*temporal.CanceledError](env.GetWorkflowError())
	require.True(t, ok, env.GetWorkflowError())
	require.NoError(t, canceled.Details(&s))
	return s
}

// The activity after a lost one goes on at the page that the heartbeat names.
func TestExportLists_lostWorker(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	a := &Activities{Client: srv.Client(), Sink: sink, Subscriptions: subscriptions(srv, 4)}
	env := newWorkflows(a)
	lost := []exported{
		{At: span{To: 4}},
		{At: span{From: 2, To: 4, Page: 1, Offset: 10}, Done: 2, Pages: 2, Records: 17},
		{At: span{From: 3, To: 4}, Done: 1, Pages: 1, Records: 4},
	}
	own, calls := *a, 0
	own.record = (&heartbeats{}).record
	env.OnActivity(activityExport, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, o exportOrder) (*exported, error) {
			at := o.Span
			at.Tries, at.Due = 0, time.Time{}
			assert.Equal(t, lost[max(0, calls-1)].At, at)
			switch calls++; calls {
			case 1:
				_, err := lose(ctx, env) // before its first heartbeat
				return nil, err
			case 2, 3:
				_, err := lose(ctx, env, lost[calls-1])
				return nil, err
			}
			return own.export(ctx, o)
		})
	env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night", Subscriptions: "all", List: payvault.ListOptions{Count: 10}})
	assert.Equal(t, ExportSummary{Lists: 4, Done: 4, Pages: 6, Records: 42}, exportSummary(t, env))
	assert.Equal(t, 4, calls)
	assert.Equal(t, 4, sink.writes, "three pages of the last list, and its end")
}

// An attempt that the server starts a second time says what the one before had come to, and writes nothing.
func TestExport_startedAgain(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 30)
	r := newAttempt(&Activities{Client: srv.Client(), Sink: sink})
	last := exported{At: span{To: 1, Page: 1, Offset: 10}, Pages: 1, Records: 10}
	r.SetHeartbeatDetails(last)
	_, err := r.ExecuteActivity(activityExport, exportOrder{Span: span{To: 1}})
	_, lost := errors.AsType[*temporal.TimeoutError](err)
	assert.True(t, lost, err)
	var done exported
	assert.True(t, reported(err, &done))
	assert.Equal(t, last, done)
	assert.Zero(t, sink.writes)
}

// What a source or a sink does not want to be asked again has the export pause.
func TestExportLists_failedForGood(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 30)
	sink.fail = func(n int) error {
		if n == 2 {
			return temporal.NewNonRetryableApplicationError("no such table", "Table", nil)
		}
		return nil
	}
	env := newWorkflows(&Activities{Client: srv.Client(), Sink: sink})
	env.RegisterDelayedCallback(func() {
		want := ExportSummary{Lists: 1, Pages: 1, Records: 10, Paused: "no such table"}
		assert.Equal(t, want, progressAs[ExportSummary](t, env))
		env.SignalWorkflow(SignalControl, Resume)
	}, time.Hour)
	env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night", List: payvault.ListOptions{Count: 10}})
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 3, Records: 30}, exportSummary(t, env))
	sink.check(t, 0, 3, 30)
}

// An activity that is canceled ends with the pages that it has written; any other that ends early fails with them.
func TestExport_canceled(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]bool{temporal.NewCanceledError(): true, activity.ErrActivityPaused: false} {
		srv, sink := newServer(t), newShelf()
		customers(t, srv, 30)
		ctx, cancel := context.WithCancelCause(t.Context())
		sink.fail = func(int) error {
			cancel(cause)
			return nil
		}
		r := newAttempt(&Activities{Client: srv.Client(), Sink: sink})
		r.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
		ten := withValues(payvault.ListOptions{Count: 10})
		value, err := r.ExecuteActivity(activityExport, exportOrder{List: ten, Span: span{To: 1}})
		require.Equal(t, want, err == nil, err)
		var done exported
		if want {
			require.NoError(t, value.Get(&done))
		} else {
			assert.True(t, reported(err, &done))
			assert.ErrorContains(t, err, "a heartbeat was not recorded: "+cause.Error())
		}
		assert.Equal(t, exported{At: span{To: 1, Page: 1, Offset: 10}, Pages: 1, Records: 10}, done)
	}
}

// Before each call of the sink the server is asked. An attempt that is not at work any more calls it no more.
func TestExport_superseded(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"superseded": errSuperseded, "canceled": temporal.NewCanceledError()} {
		for heartbeats, want := range []struct{ pages, ends int }{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {3, 1}} {
			t.Run(fmt.Sprint(name, heartbeats), func(t *testing.T) {
				t.Parallel()
				srv, sink := newServer(t), newShelf()
				customers(t, srv, 30)
				r := newAttempt(&Activities{Client: srv.Client(), Sink: sink})
				r.refuse = func(report) error {
					if r.count >= heartbeats {
						return refusal
					}
					return nil
				}
				value, err := r.ExecuteActivity(activityExport, exportOrder{
					List: withValues(payvault.ListOptions{Count: 10}), Span: span{To: 1},
				})
				assert.Len(t, sink.pages, want.pages)
				assert.Len(t, sink.ends, want.ends)
				require.Equal(t, want.ends == 1 || name == "canceled", err == nil, err)
				var done exported
				if err == nil {
					require.NoError(t, value.Get(&done))
				} else {
					assert.True(t, reported(err, &done))
					assert.ErrorContains(t, err, "a heartbeat was not recorded: "+refusal.Error())
				}
				assert.Equal(t, []int{want.pages, want.ends, 0}, []int{done.Pages, done.Done, len(done.Failed)})
			})
		}
	}
}

func TestExport_workerStops(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 30)
	r := newAttempt(&Activities{Client: srv.Client(), Sink: sink})
	stopping := make(chan struct{})
	close(stopping)
	r.SetWorkerStopChannel(stopping)
	ten := withValues(payvault.ListOptions{Count: 10})
	_, err := r.ExecuteActivity(activityExport, exportOrder{List: ten, Span: span{To: 1}})
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	require.True(t, ok)
	assert.Equal(t, "WorkerStops", app.Type())
	assert.Len(t, sink.pages, 1)
}

func TestExportLists_keyRefused(t *testing.T) {
	t.Parallel()
	srv, sink := newServer(t), newShelf()
	customers(t, srv, 30)
	var mend func()
	sink.fail = func(n int) error {
		if n == 2 {
			mend = inject(t, srv, payvaulttest.Fault{
				Operation: payvault.OpCustomersList, Kind: payvaulttest.Respond, Status: http.StatusForbidden,
			})
		}
		return nil
	}
	env := newWorkflows(&Activities{Client: srv.Client(), Sink: sink})
	env.RegisterDelayedCallback(func() {
		s := progressAs[ExportSummary](t, env)
		assert.Contains(t, s.Paused, "403")
		assert.Equal(t, 20, s.Records)
		mend()
		env.SignalWorkflow(SignalControl, Resume)
	}, time.Hour)
	env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night", List: payvault.ListOptions{Count: 10}})
	assert.Equal(t, ExportSummary{Lists: 1, Done: 1, Pages: 3, Records: 30}, exportSummary(t, env))
	assert.Equal(t, 4, sink.writes, "it went on where it was, to the end of the list")
}

// A service that answers the same page for ever, or ends early, is no reason to walk for ever, or to miss records.
func TestExportLists_hostile(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"repeats": `{"code":0,"data":[{"customer_id":"1"}]}`,
		"empty":   `{"code":0,"data":[],"totalPages":3,"totalRecords":30}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			inject(t, srv, payvaulttest.Fault{Operation: payvault.OpCustomersList, Kind: payvaulttest.Respond, Body: body})
			env := newWorkflows(&Activities{Client: srv.Client(), Sink: newShelf()})
			env.ExecuteWorkflow(ExportLists, ExportJob{Name: "night"})
			s := exportSummary(t, env)
			require.Equal(t, 1, s.Failed)
			assert.True(t, strings.Contains(s.FailedLists[0].Reason, "malformed"), s.FailedLists[0].Reason)
		})
	}
}

func TestExportJob_spans(t *testing.T) {
	t.Parallel()
	for job, want := range map[[2]int][2]int{
		{}: {8, 100}, {3, 7}: {3, 7}, {1, 1 << 16}: {1, 5000}, {1 << 16, 1 << 16}: {1000, 20},
	} {
		per, concurrency := ExportJob{Concurrency: job[0], ListsPerActivity: job[1]}.spans()
		assert.Equal(t, want, [2]int{concurrency, per})
	}
}

func TestExportLists_continueAsNew(t *testing.T) {
	t.Parallel()
	job := ExportJob{Name: "night", Subscriptions: "all", ListsPerActivity: 2, Concurrency: 1, ActivitiesPerRun: 4}
	for runs := 1; ; runs++ {
		env := newWorkflows(&Activities{Subscriptions: make(ids, 20)})
		env.OnActivity(activityExport, mock.Anything, mock.Anything).Return(
			func(_ context.Context, o exportOrder) (*exported, error) {
				return &exported{At: span{From: o.Span.To, To: o.Span.To}, Done: 2, Pages: 5, Records: 50}, nil
			})
		env.ExecuteWorkflow(ExportLists, job)
		var next *workflow.ContinueAsNewError
		if !errors.As(env.GetWorkflowError(), &next) {
			assert.Equal(t, ExportSummary{Lists: 20, Done: 20, Pages: 50, Records: 500}, exportSummary(t, env))
			assert.Equal(t, 3, runs)
			return
		}
		job = ExportJob{}
		require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &job))
	}
}
