package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const (
	cardsInTest = 20_050
	op          = payvault.OpAccountUpdaterSubmit
)

// TestMain runs a worker, which TestKilled kills, if RIVER_TEST_URL is set. Otherwise it runs the tests.
func TestMain(m *testing.M) {
	if url := os.Getenv("RIVER_TEST_URL"); url != "" {
		pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
		if err != nil {
			panic(err)
		}
		client, err := payvault.NewClient(url, os.Getenv("RIVER_TEST_KEY"))
		if err != nil {
			panic(err)
		}
		err = run(context.Background(), pool, client, "job", cardsInTest, false)
		panic(err)
	}
	os.Exit(m.Run())
}

// newPool creates a database in Postgres. It returns a connection pool of the database, and the connection string of
// the pool.
func newPool(t *testing.T) (pool *pgxpool.Pool, dsn string) {
	t.Helper()
	if dsn = os.Getenv("PAYVAULT_TEST_POSTGRES"); dsn == "" {
		t.Skip("PAYVAULT_TEST_POSTGRES is not set") // .ci/run starts a Postgres and sets the variable
	}
	ctx, name := t.Context(), "test_"+strings.ToLower(rand.Text())
	admin, err := pgxpool.New(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(admin.Close)
	_, err = admin.Exec(ctx, "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.Exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		assert.NoError(t, err)
	})
	dsn += " dbname=" + name
	pool, err = pgxpool.New(ctx, dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, dsn
}

// newServer returns an emulator of the service.
func newServer(t *testing.T) *payvaulttest.Server {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	return srv
}

// counts returns the number of batches in the journal for each status.
func counts(t *testing.T, pool *pgxpool.Pool) (counts map[string]int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT coalesce(json_object_agg(status, n), '{}') FROM
		(SELECT status, count(*) AS n FROM payvault_batches GROUP BY status) AS counts`).Scan(&counts))
	return counts
}

// TestKilled kills two workers, and completes their job with a third one. No batch may be sent twice, and each batch
// must be in the journal.
func TestKilled(t *testing.T) {
	t.Parallel()
	pool, dsn := newPool(t)
	ctx := t.Context()
	srv := newServer(t)
	for _, kind := range []payvaulttest.FaultKind{payvaulttest.DropAfterCommit, payvaulttest.DropBeforeCommit} {
		_, err := srv.Inject(payvaulttest.Fault{Operation: op, Kind: kind, Times: 3})
		require.NoError(t, err)
	}
	for kill := range 2 {
		//nolint:gosec // this program
		worker := exec.CommandContext(ctx, os.Args[0])
		worker.Env = append(os.Environ(), "RIVER_TEST_URL="+srv.URL, "RIVER_TEST_KEY="+srv.Merchant().APIKey,
			"DATABASE_URL="+dsn)
		worker.Stderr = os.Stderr
		require.NoError(t, worker.Start())
		require.Eventually(t, func() bool { return srv.Commits(op) > 50*(kill+1) }, 20*time.Second, time.Millisecond)
		require.NoError(t, worker.Process.Kill())
		_ = worker.Wait()
		// River itself makes the jobs of a killed worker available again only after RescueStuckJobsAfter.
		_, err := pool.Exec(ctx, "UPDATE river_job SET state = 'available' WHERE state = 'running'")
		require.NoError(t, err)
	}
	require.ErrorContains(t, run(ctx, pool, srv.Client(), "job", cardsInTest, false), "of 201 batches are accepted")
	had, before := counts(t, pool), srv.Commits(op)
	t.Log(had)
	require.Error(t, run(ctx, pool, srv.Client(), "job", cardsInTest, false))
	assert.Equal(t, had, counts(t, pool))
	assert.Equal(t, before, srv.Commits(op), "the same job again")

	performed := map[int]int{}
	for _, r := range srv.AccountUpdaterRequests.All() {
		var first int
		_, err := fmt.Sscanf(r.Cards[0].CardID, "card-%d", &first)
		require.NoError(t, err)
		performed[first/payvault.MaxAccountUpdaterCards]++
	}
	rows, err := pool.Query(ctx, `SELECT batch, status FROM payvault_batches`)
	require.NoError(t, err)
	total := 0
	for rows.Next() {
		var batch int
		var status string
		require.NoError(t, rows.Scan(&batch, &status))
		total++
		assert.LessOrEqual(t, performed[batch], 1, "batch %d", batch)
		if status == string(payvault.BatchAccepted) {
			assert.Equal(t, 1, performed[batch], "batch %d", batch)
		}
	}
	require.NoError(t, rows.Err())
	assert.Equal(t, 201, total)
	assert.Len(t, performed, before)
}

// TestRun_pauses checks that the queue pauses if the service does not answer properly or refuses all batches. At most
// 60 of the 201 batches may be refused or of unknown outcome. When the queue resumes, the other batches must be
// accepted.
func TestRun_pauses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   string
		lost   string // status of the batches that are not accepted and not sent again; "" for none
		least  int    // number of these batches after which the queue pauses
	}{
		"the service is gone":   {http.StatusServiceUnavailable, "", "unknown", 10}, // SubmitAll stops after 10 in a row
		"all cards are refused": {http.StatusBadRequest, `{"code":7}`, "refused", mostLost},
		"a wrong path":          {http.StatusNotFound, "<h1>Not Found</h1>", "", 0},
		"the key is refused":    {http.StatusUnauthorized, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := newPool(t)
			srv := newServer(t)
			mend, err := srv.Inject(payvaulttest.Fault{
				Operation: op, Kind: payvaulttest.Respond, Status: test.status, Body: test.body,
			})
			require.NoError(t, err)
			err = run(t.Context(), pool, srv.Client(), "job", cardsInTest, false)
			require.ErrorContains(t, err, "0 of 201 batches are accepted")
			lost := counts(t, pool)[test.lost]
			assert.LessOrEqual(t, lost, mostLost+5*8, "each part has 4 in flight, and 4 that wait to be looked at")
			assert.GreaterOrEqual(t, lost, test.least)

			mend()
			require.Error(t, run(t.Context(), pool, srv.Client(), "job", cardsInTest, false), "before the queue is resumed")
			assert.Zero(t, srv.Commits(op))
			err = run(t.Context(), pool, srv.Client(), "job", cardsInTest, true)
			assert.Equal(t, test.lost != "", err != nil, "what is lost is told each time: %v", err)
			accepted := counts(t, pool)["accepted"]
			assert.Equal(t, 201-lost, accepted)
			assert.Equal(t, accepted, srv.Commits(op))

			_, err = pool.Exec(t.Context(), "DELETE FROM payvault_batches WHERE status <> 'accepted'")
			require.NoError(t, err)
			require.NoError(t, run(t.Context(), pool, srv.Client(), "job", cardsInTest, true), "what was lost is sent again")
			assert.Equal(t, 201, srv.Commits(op))
		})
	}
}

// TestRun_cardsThatCannotBeSent checks that a run counts and skips cards that cannot be sent, even whole batches, and
// that all other cards are accepted.
func TestRun_cardsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	bad := func(p part) []payvault.AccountUpdaterCard {
		made := cards(p)
		for i := range min(2550, len(made)) {
			made[i].ExpDate = "1330"
		}
		return made
	}
	for range 2 {
		err := submission{"job", 5050, perPart, false, bad}.run(t.Context(), pool, srv.Client())
		require.EqualError(t, err, "all other cards are accepted: 2600 cannot be sent")
		assert.Equal(t, map[string]int{"accepted": 25}, counts(t, pool))
		assert.Equal(t, 25, srv.Commits(op))
	}
}

// TestResolve checks that resolve records what became of batches of unknown outcome. The next run must complete the
// job.
func TestResolve(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	_, err := srv.Inject(payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropBeforeCommit, Times: 1})
	require.NoError(t, err)
	_, err = srv.Inject(payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit, Times: 1})
	require.NoError(t, err)
	require.ErrorContains(t, run(t.Context(), pool, srv.Client(), "job", 5400, false), "52 of 54 batches are accepted")
	performed := map[string]bool{}
	for _, r := range srv.AccountUpdaterRequests.All() {
		performed[r.Cards[0].CardID] = true
	}
	for batch := range 54 {
		first := strconv.Itoa(batch * payvault.MaxAccountUpdaterCards)
		if found := first + "=accepted,found later"; performed["card-"+first] {
			_ = resolve(t.Context(), pool, "job", found) // it may fail, because the outcome is recorded already
			continue
		}
		require.NoError(t, resolve(t.Context(), pool, "job", first+"=not-sent"))
	}
	require.Error(t, resolve(t.Context(), pool, "job", "5400=accepted"))
	var recorded int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM payvault_batches
		WHERE status = 'accepted' AND request_id = 'found later'`).Scan(&recorded))
	assert.Equal(t, 1, recorded)
	require.NoError(t, run(t.Context(), pool, srv.Client(), "job", 5400, true))
	assert.Equal(t, 54, srv.Commits(op))
}

// TestRun_otherJobs checks that run counts only the batches of its own job. As an SQL pattern, the name a_b would match
// a-b.
func TestRun_otherJobs(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	for _, name := range []string{"a-b", "a_b/0"} {
		require.NoError(t, run(t.Context(), pool, srv.Client(), name, 100, false))
	}
	_, err := srv.Inject(payvaulttest.Fault{Operation: op, Kind: payvaulttest.Respond, Status: http.StatusNotFound})
	require.NoError(t, err)
	for _, name := range []string{"a_b", "a%"} {
		require.ErrorContains(t, run(t.Context(), pool, srv.Client(), name, 100, false), "0 of 1 batches", name)
	}
}

// TestRun_otherNumber checks that a run refuses another number of cards under the name of an earlier job, and sends
// nothing.
func TestRun_otherNumber(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	require.NoError(t, run(t.Context(), pool, srv.Client(), "job", 9950, false))
	for _, n := range []int{10_000, 10_050, 9900} {
		err := run(t.Context(), pool, srv.Client(), "job", n, false)
		require.ErrorContains(t, err, `the job "job" has 9950 cards, and not `+strconv.Itoa(n))
	}
	assert.Equal(t, 100, srv.Commits(op))
	require.NoError(t, run(t.Context(), pool, srv.Client(), "job", 9950, false))
}

// TestRun_canceledPart checks that a run returns an error if one of its parts was canceled, even if the journal has all
// batches as accepted. Here the part is canceled because a batch has 100 good cards, and had 50 in an earlier run.
func TestRun_canceledPart(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	bad := func(p part) []payvault.AccountUpdaterCard {
		made := cards(p)
		for i := range 50 {
			made[i].ExpDate = "1330"
		}
		return made
	}
	err := submission{"job", 5000, perPart, false, bad}.run(t.Context(), pool, srv.Client())
	require.EqualError(t, err, "all other cards are accepted: 50 cannot be sent")
	err = run(t.Context(), pool, srv.Client(), "job", 5000, false)
	require.ErrorContains(t, err, "50 of 50 batches are accepted, 1 of 1 parts are not done")
	assert.Equal(t, 50, srv.Commits(op))
}

// TestRun_otherParts checks that a run with parts of another size sends no batch of an earlier run again.
func TestRun_otherParts(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	for _, size := range []int{5000, 2500, 700} {
		require.NoError(t, submission{"job", 10_000, size, false, cards}.run(t.Context(), pool, srv.Client()))
		assert.Equal(t, 100, srv.Commits(op), "parts of %d cards", size)
	}
}

// stopping is a RoundTripper that stops the run at its 20th request, as ctrl-C would do.
type stopping struct {
	requests atomic.Int64
	stop     context.CancelFunc
}

func (s *stopping) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.requests.Add(1) == 20 {
		s.stop()
	}
	return http.DefaultTransport.RoundTrip(req)
}

// TestRun_stopped checks that a stopped run records the outcomes of the batches in flight, and that River can run the
// jobs of this run again at once.
func TestRun_stopped(t *testing.T) {
	t.Parallel()
	pool, _ := newPool(t)
	srv := newServer(t)
	ctx, stop := context.WithCancel(t.Context())
	transport := payvault.WithHTTPClient(&http.Client{Transport: &stopping{stop: stop}})
	client, err := payvault.NewClient(srv.URL, srv.Merchant().APIKey, transport)
	require.NoError(t, err)
	require.ErrorIs(t, run(ctx, pool, client, "job", cardsInTest, false), context.Canceled)
	had := counts(t, pool)
	assert.Equal(t, srv.Commits(op), had["accepted"])
	assert.Less(t, had["accepted"], 201)
	delete(had, "accepted")
	delete(had, "not sent")
	assert.Empty(t, had)
	var waiting int
	require.NoError(t, pool.QueryRow(t.Context(),
		`SELECT count(*) FROM river_job WHERE state = 'available' AND attempt = 0`).Scan(&waiting))
	assert.Equal(t, 5, waiting)
	require.NoError(t, run(t.Context(), pool, srv.Client(), "job", cardsInTest, false))
	assert.Equal(t, 201, srv.Commits(op))
}
