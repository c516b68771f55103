package temporalpayvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deck is a source of n cards. The number and the ID of each give its position away.
type deck struct {
	n        int
	checksum string
	err      error
}

func (d deck) Snapshot(context.Context, string) (Snapshot, error) {
	return Snapshot{Cards: d.n, Checksum: cmp.Or(d.checksum, "sum")}, nil
}

func (d deck) Cards(_ context.Context, _ string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	var cards []payvault.AccountUpdaterCard
	for i := start; i < min(end, d.n); i++ {
		cards = append(cards, payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(fmt.Sprintf("41111111%08d", i)), ExpDate: "1230", CardID: fmt.Sprint("c-", i),
		})
	}
	return cards, d.err
}

// heartbeats stands in for the server.
type heartbeats struct {
	mu     sync.Mutex
	count  int
	refuse func(report) error // may be nil
}

func (h *heartbeats) record(ctx context.Context, details any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, _ := details.(report) // or what an export has done
	if h.refuse != nil {
		if err := h.refuse(p); err != nil {
			return err
		}
	}
	h.count++
	activity.RecordHeartbeat(ctx, details)
	return nil
}

func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// attempt is one attempt of an activity in the SDK's test environment.
type attempt struct {
	*testsuite.TestActivityEnvironment
	*heartbeats
}

func newAttempt(a *Activities) *attempt {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(quiet())
	r := &attempt{suite.NewTestActivityEnvironment(), &heartbeats{}}
	own := *a
	own.record = r.record
	a = &own
	for name, f := range map[string]any{
		activitySnapshot: a.snapshot, activitySubmit: a.submit, activityRecord: a.enter,
		activityCount: a.count, activityExport: a.export,
	} {
		r.RegisterActivityWithOptions(f, activityOptions(name))
	}
	return r
}

// submit returns the report of an attempt, also if it has failed.
func (r *attempt) submit(o order) (done report, err error) {
	value, err := r.ExecuteActivity(activitySubmit, o)
	if err != nil {
		_ = reported(err, &done)
		return done, err
	}
	return done, value.Get(&done)
}

// lose makes the server take an activity for lost after its heartbeat timeout, with what it knows of it, if anything.
func lose(ctx context.Context, env *testsuite.TestWorkflowEnvironment, last ...any) (*report, error) {
	info := activity.GetInfo(ctx)
	env.RegisterDelayedCallback(func() {
		_ = env.CompleteActivity(info.TaskToken, nil, temporal.NewHeartbeatTimeoutError(last...))
	}, info.HeartbeatTimeout)
	return nil, activity.ErrResultPending
}

// orderOf is an order for the batches of all cards of d.
func orderOf(d deck) order {
	batches := (d.n + batchSize - 1) / batchSize
	snapshot, _ := d.Snapshot(context.Background(), "deck")
	return order{
		Job: "job", Source: "deck", Snapshot: snapshot, Span: span{To: batches},
		Run: testRun, InFlight: 3, MaxUnknown: 1000,
	}
}

func newServer(t *testing.T) *payvaulttest.Server {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	return srv
}

func (r *report) statuses() map[int]payvault.BatchStatus {
	statuses := map[int]payvault.BatchStatus{}
	for _, o := range r.Outcomes {
		statuses[o.Batch] = o.Status
	}
	return statuses
}

// statuses are those of all batches of a job that has ended: the others are accepted.
func (s *Summary) statuses() map[int]payvault.BatchStatus {
	statuses := map[int]payvault.BatchStatus{}
	for i := range s.Batches {
		statuses[i] = payvault.BatchAccepted
	}
	for _, i := range s.UnknownBatches {
		statuses[i] = payvault.BatchUnknown
	}
	for _, o := range s.RefusedBatches {
		statuses[o.Batch] = o.Status
	}
	return statuses
}

// performed counts how often the service has performed each batch.
func performed(t *testing.T, srv *payvaulttest.Server) map[int]int {
	t.Helper()
	times := map[int]int{}
	for _, r := range srv.AccountUpdaterRequests.All() {
		var first int
		_, err := fmt.Sscanf(r.Cards[0].CardID, "c-%d", &first)
		require.NoError(t, err)
		times[first/batchSize]++
	}
	return times
}

// audit finds what must never be: a batch performed twice, or accepted and not performed, or nowhere.
func audit(t *testing.T, batches int, times map[int]int, statuses map[int]payvault.BatchStatus) (problems []string) {
	t.Helper()
	for i := range batches {
		status, n := statuses[i], times[i]
		if n > 1 || status == payvault.BatchAccepted && n != 1 || status == payvault.BatchRefused && n != 0 || status == "" {
			problems = append(problems, fmt.Sprintf("batch %d is %q and was performed %d times", i, status, n))
		}
	}
	assert.LessOrEqual(t, len(statuses), batches)
	return problems
}

// book is a journal in memory, shared by all workers.
type book struct {
	mu   sync.Mutex
	rows map[string]*payvault.BatchOutcome // nil if it was begun only
	ends int
	fail func(n int) bool // the end of a batch; may be nil
}

func newBook() *book { return &book{rows: map[string]*payvault.BatchOutcome{}} }

func (b *book) Begin(_ context.Context, job string, batch int) (payvault.BatchState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := fmt.Sprint(job, " ", batch)
	row, begun := b.rows[key]
	if begun && (row == nil || row.Status != payvault.BatchNotSent) {
		return payvault.BatchState{Begun: true, Outcome: row}, nil
	}
	b.rows[key] = nil
	return payvault.BatchState{}, nil
}

func (b *book) End(_ context.Context, job string, batch int, o payvault.BatchOutcome) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends++; b.fail != nil && b.fail(b.ends) {
		return errCut
	}
	b.rows[fmt.Sprint(job, " ", batch)] = &o
	return nil
}

var (
	errSuperseded = serviceerror.NewNotFound("activity not found")
	errCut        = errors.New("cut")
)

func decodeJob(t *testing.T, next *workflow.ContinueAsNewError) (job Job) {
	t.Helper()
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &job))
	return job
}

// inject makes requests fail until the function that it returns is called.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) (mend func()) {
	t.Helper()
	mend, err := srv.Inject(fault)
	assert.NoError(t, err)
	return mend
}
