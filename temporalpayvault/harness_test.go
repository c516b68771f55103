package temporalpayvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const op = payvault.OpAccountUpdaterSubmit

var errCut = errors.New("cut")

// deck is a CardSource of n cards. The number and the ID of a card contain its position.
type deck struct {
	n        int
	checksum string
}

func (d deck) snapshot() Snapshot { return Snapshot{Cards: d.n, Checksum: cmp.Or(d.checksum, "sum")} }

func (d deck) Snapshot(context.Context, string) (Snapshot, error) { return d.snapshot(), nil }

func (d deck) Cards(_ context.Context, _ string, start, end int) ([]payvault.AccountUpdaterCard, error) {
	var cards []payvault.AccountUpdaterCard
	for i := start; i < min(end, d.n); i++ {
		cards = append(cards, payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret(fmt.Sprintf("41111111%08d", i)), ExpDate: "1230", CardID: fmt.Sprint("c-", i),
		})
	}
	return cards, nil
}

// job returns a job with all cards of a deck.
func (d deck) job() Job { return Job{Source: "deck", Snapshot: d.snapshot()} }

// book is a journal in memory, shared by all workers.
type book struct {
	mu   sync.Mutex
	rows map[string]*payvault.BatchOutcome // the value is nil for a batch that was begun and not ended
	fail func(end bool) error              // if set, Begin returns the error of fail(false), and End that of fail(true)
}

const bookID = "book"

func (*book) ID(context.Context) (string, error) { return bookID, nil }

func newBook() *book { return &book{rows: map[string]*payvault.BatchOutcome{}} }

func (b *book) Begin(_ context.Context, job string, batch int) (payvault.BatchState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		if err := b.fail(false); err != nil {
			return payvault.BatchState{}, err
		}
	}
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
	if b.fail != nil {
		if err := b.fail(true); err != nil {
			return err
		}
	}
	b.rows[fmt.Sprint(job, " ", batch)] = &o
	return nil
}

// count returns the number of batches for each recorded status. The status "" means that a batch was begun and not
// ended.
func (b *book) count() map[payvault.BatchStatus]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := map[payvault.BatchStatus]int{}
	for _, o := range b.rows {
		if o == nil {
			o = &payvault.BatchOutcome{}
		}
		counts[o.Status]++
	}
	return counts
}

func newServer(t *testing.T) *payvaulttest.Server {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	return srv
}

// newActivities returns the activities of a worker with a new journal.
func newActivities(srv *payvaulttest.Server, cards CardSource) *Activities {
	return &Activities{Client: srv.Client(), Cards: cards, Journal: newBook()}
}

// once returns a client that never retries.
func once(srv *payvaulttest.Server) *payvault.Client {
	return srv.Client(payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
}

// inject makes the service fail with a fault. It returns a function that removes the fault.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) (mend func()) {
	t.Helper()
	mend, err := srv.Inject(fault)
	assert.NoError(t, err)
	return mend
}

func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// newWorkflows returns Temporal's test environment for workflows. Its clock skips waits.
func newWorkflows(a *Activities) *testsuite.TestWorkflowEnvironment {
	return loggedWorkflows(a, quiet())
}

func loggedWorkflows(a *Activities, logger log.Logger) *testsuite.TestWorkflowEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(logger)
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a busy machine may need long
	Register(env, a)
	return env
}

// newAttempts returns Temporal's test environment for activities. It runs a single attempt of an activity.
func newAttempts(a *Activities) *testsuite.TestActivityEnvironment { return loggedAttempts(a, quiet()) }

func loggedAttempts(a *Activities, logger log.Logger) *testsuite.TestActivityEnvironment {
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(logger)
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(a.submit, activity.RegisterOptions{Name: activitySubmit})
	env.RegisterActivityWithOptions(a.export, activity.RegisterOptions{Name: activityExport})
	return env
}

// orderOf returns an order for all batches of a deck.
func orderOf(d deck) order {
	return order{
		Job: "job", JournalID: bookID, Source: "deck", Snapshot: d.snapshot(), To: (d.n + batchSize - 1) / batchSize,
		InFlight: 3, Permits: 1000, Limit: time.Minute,
	}
}

// submit runs one attempt of the activity that submits batches.
func submit(a *Activities, o order) (r report, err error) {
	value, err := newAttempts(a).ExecuteActivity(activitySubmit, o)
	if err != nil {
		return r, err
	}
	return r, value.Get(&r)
}

// result returns the result of a workflow, which must have completed without an error.
func result[S any](t *testing.T, env *testsuite.TestWorkflowEnvironment) (s S) {
	t.Helper()
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	require.NoError(t, env.GetWorkflowResult(&s))
	return s
}

// query returns the progress of a workflow.
func query[S any](t *testing.T, env *testsuite.TestWorkflowEnvironment) (s S) {
	t.Helper()
	value, err := env.QueryWorkflow(QueryProgress)
	require.NoError(t, err)
	require.NoError(t, value.Get(&s))
	return s
}

// update sends an update to a workflow. Then it calls the function done with the error of the update, or with nil.
func update(env *testsuite.TestWorkflowEnvironment, name string, done func(error), args ...any) {
	env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
		OnReject:   done,
		OnAccept:   func() {},
		OnComplete: func(_ any, err error) { done(err) },
	}, args...)
}

// resume resumes a paused workflow.
func resume(t *testing.T, env *testsuite.TestWorkflowEnvironment) {
	t.Helper()
	update(env, UpdateResume, func(err error) { assert.NoError(t, err) })
}

// performed returns how often the service has performed each batch.
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

// statuses returns the status of each batch of a completed job. A batch that the summary does not list is accepted.
func (s *Summary) statuses() map[int]payvault.BatchStatus {
	statuses := map[int]payvault.BatchStatus{}
	for i := range s.Batches {
		statuses[i] = payvault.BatchAccepted
	}
	for _, i := range s.UnknownBatches {
		statuses[i] = payvault.BatchUnknown
	}
	for _, b := range s.RefusedBatches {
		statuses[b.Batch] = payvault.BatchRefused
	}
	return statuses
}

// audit returns a text for each batch that was performed twice, accepted but not performed, or refused but performed.
func audit(times map[int]int, statuses map[int]payvault.BatchStatus) (problems []string) {
	for i, status := range statuses {
		n := times[i]
		if n > 1 || status == payvault.BatchAccepted && n != 1 || status == payvault.BatchRefused && n != 0 {
			problems = append(problems, fmt.Sprintf("batch %d is %q and was performed %d times", i, status, n))
		}
	}
	return problems
}

// roundTripper is a transport made from a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through returns a client of the service that sends its requests through f.
func through(srv *payvaulttest.Server, f roundTripper) *payvault.Client {
	return srv.Client(payvault.WithHTTPClient(&http.Client{Transport: f}))
}
