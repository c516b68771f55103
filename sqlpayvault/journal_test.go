package sqlpayvault_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

const job = "cards of November"

// eachDatabase runs a test on a file of SQLite, and on Postgres if PAYVAULT_TEST_POSTGRES has its connection string.
func eachDatabase(t *testing.T, test func(t *testing.T, place string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "a journal?.100%"))
	})
	t.Run("Postgres", func(t *testing.T) {
		t.Parallel()
		dsn := os.Getenv("PAYVAULT_TEST_POSTGRES")
		if dsn == "" {
			t.Skip("PAYVAULT_TEST_POSTGRES is not set") // .ci/run starts a Postgres and sets it
		}
		test(t, newSchema(t, dsn))
	})
}

// newSchema returns the connection string of a schema that is dropped with the test, with the isolation that makes
// others fail.
func newSchema(tb testing.TB, dsn string) string {
	tb.Helper()
	schema := "test_" + strings.ToLower(rand.Text())
	db, err := sql.Open("pgx", dsn)
	require.NoError(tb, err)
	_, err = db.ExecContext(tb.Context(), "CREATE SCHEMA "+schema)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context()) // it has ended
		_, err := db.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE")
		assert.NoError(tb, err)
		assert.NoError(tb, db.Close())
	})
	return dsn + " search_path=" + schema + " options='-c default_transaction_isolation=serializable'"
}

// driverOf gives the driver of a place, the path of a file or the connection string of Postgres, and what it opens.
func driverOf(place string) (driver, source string) {
	if strings.Contains(place, "search_path=") {
		return "pgx", place
	}
	return "sqlite", "file:" + (&url.URL{Path: place}).EscapedPath() + "?_pragma=busy_timeout(5000)"
}

// execute changes what a journal has written.
func execute(t *testing.T, place, statement string) {
	t.Helper()
	db, err := sql.Open(driverOf(place))
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// open opens a journal at a place.
func open(
	ctx context.Context, place string, opts ...sqlpayvault.Option,
) (j *sqlpayvault.Journal, closeAll func() error, err error) {
	if !strings.Contains(place, "search_path=") {
		if j, err = sqlpayvault.Open(ctx, place, opts...); err != nil {
			return nil, nil, err
		}
		return j, j.Close, nil
	}
	db, err := sql.Open("pgx", place)
	if err != nil {
		return nil, nil, err
	}
	if j, err = sqlpayvault.New(ctx, db, opts...); err != nil {
		return nil, nil, err
	}
	return j, func() error {
		if err := j.Close(); err != nil {
			return err
		}
		return db.Close()
	}, nil
}

func opened(tb testing.TB, place string, opts ...sqlpayvault.Option) *sqlpayvault.Journal {
	tb.Helper()
	j, closeAll, err := open(tb.Context(), place, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, closeAll()) })
	return j
}

func stream(n int) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		for i := range n {
			if !yield(payvault.AccountUpdaterCard{
				CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CardID: "C" + strconv.Itoa(i),
			}) {
				return
			}
		}
	}
}

func collect(seq iter.Seq[*payvault.AccountUpdaterBatch]) []payvault.AccountUpdaterBatch {
	var batches []payvault.AccountUpdaterBatch
	for batch := range seq {
		batches = append(batches, *batch)
	}
	return batches
}

func TestBatches(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		ctx := t.Context()
		outcomes := []payvault.BatchOutcome{
			{Status: payvault.BatchAccepted, Cards: 100, RequestID: "REQ"},
			{Status: payvault.BatchRefused, Cards: 7, StatusCode: 200, Code: "5", Message: "Example 'refusal' é"},
			{Status: payvault.BatchUnknown, Cards: 100, Message: "unexpected EOF"},
		}
		first := opened(t, place)
		for i, outcome := range outcomes {
			state, err := first.Begin(ctx, job, i)
			require.NoError(t, err)
			assert.Zero(t, state, "nothing is known of it")
			require.NoError(t, first.End(ctx, job, i, outcome))
		}
		lost := len(outcomes)
		_, err := first.Begin(ctx, job, lost)
		require.NoError(t, err)
		require.NoError(t, first.Close())

		second := opened(t, place)
		for i, outcome := range outcomes {
			state, err := second.Begin(ctx, job, i)
			require.NoError(t, err)
			assert.Equal(t, payvault.BatchState{Begun: true, Outcome: &outcome}, state)
		}
		for range 2 {
			state, err := second.Begin(ctx, job, lost)
			require.NoError(t, err)
			assert.Equal(t, payvault.BatchState{Begun: true}, state, "begun, and never ended")
		}
		state, err := second.Begin(ctx, "another job", 0)
		require.NoError(t, err)
		assert.Zero(t, state)
	})
}

// TestTexts: what Postgres takes in no text does not fail the batches of the same commit.
func TestTexts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place, sqlpayvault.WithoutLease())
		outcome := payvault.BatchOutcome{
			Status: payvault.BatchRefused, Cards: math.MaxInt, StatusCode: math.MaxInt, Code: "5\x00", Message: "a\x00b\xff",
		}
		require.NoError(t, j.End(t.Context(), job, 0, outcome))
		state, err := j.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		outcome.Code, outcome.Message = "5", "ab\uFFFD"
		assert.Equal(t, &outcome, state.Outcome)
		for _, name := range []string{"", job + "\x00", job + "\xff"} {
			_, err = j.Begin(t.Context(), name, 0)
			require.ErrorContains(t, err, "the name of the job")
			require.ErrorContains(t, j.End(t.Context(), name, 0, outcome), "the name of the job")
		}
	})
}

func TestBatchThatWasNotSent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		for range 3 {
			state, err := j.Begin(t.Context(), job, 7)
			require.NoError(t, err)
			assert.Zero(t, state)
			require.NoError(t, j.End(t.Context(), job, 7, payvault.BatchOutcome{
				Status: payvault.BatchNotSent, Cards: 100, RequestID: "R", StatusCode: 429, Code: "1", Message: "wait",
			}))
		}
		_, err := j.Begin(t.Context(), job, 7)
		require.NoError(t, err)
		db, err := sql.Open(driverOf(place))
		require.NoError(t, err)
		var row string
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT status || cards || request_id || status_code || code ||
			message FROM payvault_batches`).Scan(&row))
		require.NoError(t, db.Close())
		assert.Equal(t, "begun00", row, "nothing is left of what it was")
		require.NoError(t, j.Close())
		state, err := opened(t, place).Begin(t.Context(), job, 7)
		require.NoError(t, err)
		assert.Equal(t, payvault.BatchState{Begun: true}, state, "it was begun again")
	})
}

// TestStatuses: one that there is not is an error, whether it comes from a caller or from the table.
func TestStatuses(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		for _, status := range []payvault.BatchStatus{"", "begun", "bogus"} {
			require.ErrorContains(t, j.End(t.Context(), job, 0, payvault.BatchOutcome{Status: status}), "is no status")
		}
		_, err := j.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		require.NoError(t, j.End(t.Context(), job, 0, payvault.BatchOutcome{Status: payvault.BatchUnknown}))
		execute(t, place, `UPDATE payvault_batches SET status = 'not_sent'`)
		_, err = j.Begin(t.Context(), job, 0)
		require.ErrorContains(t, err, `"not_sent" is no status`)
	})
}

// TestBatchThatEndsTwice at the same time takes two statements, which Postgres asks for.
func TestBatchThatEndsTwice(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		var running sync.WaitGroup
		for range 100 {
			running.Go(func() {
				assert.NoError(t, j.End(t.Context(), job, 0, payvault.BatchOutcome{Status: payvault.BatchAccepted}))
			})
		}
		running.Wait()
	})
}

// TestBatchIsBegunOnce: many ask at once, with one journal and with others that think the first is dead.
func TestBatchIsBegunOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		var mu sync.Mutex
		times := map[int]int{}
		var running sync.WaitGroup
		for range 3 {
			j := opened(t, place, sqlpayvault.WithLease(20*time.Millisecond))
			for range 3 {
				running.Go(func() {
					for batch := range 50 {
						if state, err := j.Begin(t.Context(), job, batch); err == nil && !state.Begun {
							mu.Lock()
							times[batch]++
							mu.Unlock()
						} else if err != nil {
							assert.ErrorIs(t, err, sqlpayvault.ErrRunning)
						}
					}
				})
			}
		}
		running.Wait()
		assert.NotEmpty(t, times)
		for batch, n := range times {
			assert.Equal(t, 1, n, batch)
		}
	})
}

func TestSubmitAll(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		srv := payvaulttest.NewServer()
		t.Cleanup(srv.Close)
		client := srv.Client()
		var first []payvault.AccountUpdaterBatch
		for batch := range 2 {
			j := opened(t, place)
			got := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(2050), &payvault.SubmitAllOptions{
				Concurrency: 8, Journal: j, Job: job,
			}))
			require.Len(t, got, 21)
			for i := range got {
				require.NoError(t, got[i].Err)
				assert.Equal(t, batch == 1, got[i].FromJournal)
				got[i].FromJournal = false
			}
			if batch == 0 {
				first = got
			}
			assert.Equal(t, first, got)
			require.NoError(t, j.Close())
		}
		assert.Equal(t, 21, srv.Commits(payvault.OpAccountUpdaterSubmit))
	})
}

// TestBeginIsDurable: what Begin has returned for is committed, and what could not be committed is not begun.
func TestBeginIsDurable(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		driver, source := driverOf(place)
		other, err := sql.Open(driver, source)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, other.Close()) })
		for batch := range 20 {
			_, err := j.Begin(t.Context(), job, batch)
			require.NoError(t, err)
			var status string
			row := other.QueryRowContext(t.Context(), `SELECT status FROM payvault_batches WHERE batch = $1`, batch)
			require.NoError(t, row.Scan(&status))
			assert.Equal(t, "begun", status)
		}
		if driver == "pgx" {
			return
		}
		// SQLite looks at this key when it commits.
		db, err := sql.Open(driver, source+"&_pragma=foreign_keys(1)")
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
		for _, statement := range []string{
			`CREATE TABLE parents (id INTEGER PRIMARY KEY)`,
			`CREATE TABLE children (id INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`,
			`CREATE TRIGGER orphan AFTER INSERT ON payvault_batches BEGIN INSERT INTO children VALUES (1); END`,
		} {
			_, err := db.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		failing, err := sqlpayvault.New(t.Context(), db, sqlpayvault.WithoutLease())
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, failing.Close()) })
		_, err = failing.Begin(t.Context(), job, 100)
		require.ErrorContains(t, err, "FOREIGN KEY")
	})
}

// TestTwoRuns: the second one is refused while the first one lives, and goes on when it is closed.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		first := opened(t, place)
		second := opened(t, place, sqlpayvault.WithLease(time.Minute))
		_, err := first.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		_, err = first.Begin(t.Context(), job, 0)
		require.ErrorIs(t, err, sqlpayvault.ErrRunning, "with the same journal")
		start := time.Now()
		_, err = second.Begin(t.Context(), job, 1)
		require.ErrorIs(t, err, sqlpayvault.ErrRunning)
		assert.Less(t, time.Since(start), 4*time.Second, "the first sign of life of the other one is enough")
		_, err = second.Begin(t.Context(), "another job", 0)
		require.NoError(t, err)
		require.NoError(t, first.Close())
		state, err := second.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.True(t, state.Begun)
		_, err = second.Begin(t.Context(), job, 1)
		require.NoError(t, err)
	})
}

func TestWithoutLease(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		const batches = 40
		var mu sync.Mutex
		var running sync.WaitGroup
		first, later := map[int]int{}, map[int]int{}
		for range 3 {
			j := opened(t, place, sqlpayvault.WithoutLease())
			for batch := range batches {
				running.Go(func() {
					state, err := j.Begin(t.Context(), job, batch)
					if !assert.NoError(t, err) {
						return
					}
					assert.Nil(t, state.Outcome)
					mu.Lock()
					defer mu.Unlock()
					if state.Begun {
						later[batch]++
					} else {
						first[batch]++
					}
				})
			}
		}
		running.Wait()
		for batch := range batches {
			assert.Equal(t, []int{1, 2}, []int{first[batch], later[batch]}, "batch %d", batch)
		}
		j := opened(t, place, sqlpayvault.WithoutLease())
		require.NoError(t, j.End(t.Context(), job, 1, payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100}))
		state, err := opened(t, place, sqlpayvault.WithoutLease()).Begin(t.Context(), job, 1)
		require.NoError(t, err)
		assert.Equal(t, payvault.BatchAccepted, state.Outcome.Status)
	})
}

// TestCommitsAreShared by what comes at the same time.
func TestCommitsAreShared(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		const batches = 400
		j := opened(t, place, sqlpayvault.WithLease(time.Hour)) // so that nothing but its commits are signs of life
		var running sync.WaitGroup
		for batch := range batches {
			running.Go(func() {
				_, err := j.Begin(t.Context(), job, batch)
				assert.NoError(t, err)
			})
		}
		running.Wait()
		db, err := sql.Open(driverOf(place))
		require.NoError(t, err)
		var commits int
		require.NoError(t, db.QueryRowContext(t.Context(), `SELECT beat FROM payvault_jobs`).Scan(&commits))
		assert.Less(t, commits, batches/4)
		require.NoError(t, db.Close())
	})
}

// TestWritersInAnyOrder: journals that begin and end the same batches never wait for each other.
func TestWritersInAnyOrder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		var running sync.WaitGroup
		for range 4 {
			j := opened(t, place, sqlpayvault.WithoutLease())
			for batch := range 200 {
				running.Go(func() {
					_, err := j.Begin(t.Context(), job, batch)
					assert.NoError(t, err)
				})
				running.Go(func() {
					outcome := payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100}
					assert.NoError(t, j.End(t.Context(), job, batch, outcome))
				})
			}
		}
		running.Wait()
	})
}

// TestRunThatGivesNoSignOfLife is taken over. It begins nothing more, and what it had begun it may still end.
func TestRunThatGivesNoSignOfLife(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		frozen := opened(t, place, sqlpayvault.WithLease(time.Hour))
		next := opened(t, place, sqlpayvault.WithLease(time.Hour))
		_, err := frozen.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		execute(t, place, `UPDATE payvault_jobs SET lease = 100`) // within which it gives no sign of life
		state, err := next.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Equal(t, payvault.BatchState{Begun: true}, state)

		_, err = frozen.Begin(t.Context(), job, 1)
		require.ErrorIs(t, err, sqlpayvault.ErrRunning)
		state, err = next.Begin(t.Context(), job, 1)
		require.NoError(t, err)
		assert.Zero(t, state, "what was refused was not begun")
		outcome := payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100, RequestID: "REQ"}
		require.NoError(t, frozen.End(t.Context(), job, 0, outcome))
		state, err = next.Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Equal(t, &outcome, state.Outcome)

		require.NoError(t, next.Close())
		_, err = frozen.Begin(t.Context(), job, 2)
		require.NoError(t, err, "it asks for the lease again")
	})
}

// TestLeaseIsThatOfItsHolder: a run of a shorter lease waits as long as the holder has asked for.
func TestLeaseIsThatOfItsHolder(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		_, err := opened(t, place, sqlpayvault.WithLease(time.Hour)).Begin(t.Context(), job, 0)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err = opened(t, place, sqlpayvault.WithLease(time.Millisecond)).Begin(ctx, job, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestClosed: nothing is begun, and no lease is taken.
func TestClosed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		db, err := sql.Open(driverOf(place))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, db.Close()) })
		j, err := sqlpayvault.New(t.Context(), db, sqlpayvault.WithLease(time.Hour))
		require.NoError(t, err)
		require.NoError(t, j.Close())
		require.NoError(t, j.Close())
		_, err = j.Begin(t.Context(), job, 0)
		require.ErrorIs(t, err, sqlpayvault.ErrClosed)
		ended := payvault.BatchOutcome{Status: payvault.BatchAccepted}
		require.ErrorIs(t, j.End(t.Context(), job, 0, ended), sqlpayvault.ErrClosed)
		state, err := opened(t, place).Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Zero(t, state)
	})
}

// TestLockedFile: somebody keeps the file locked. The journal fails in time, however often it gives signs of life.
func TestLockedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := opened(t, path, sqlpayvault.WithLease(5*time.Millisecond))
	_, err := j.Begin(t.Context(), job, 0)
	require.NoError(t, err)
	driver, source := driverOf(path)
	db, err := sql.Open(driver, source+"&_txlock=immediate")
	require.NoError(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	start := time.Now()
	require.ErrorContains(t, j.End(t.Context(), job, 0, payvault.BatchOutcome{Status: payvault.BatchAccepted}), "locked")
	assert.Less(t, time.Since(start), 30*time.Second, "10 s, and 5 s for the sign of life under way")
	require.NoError(t, tx.Rollback())
	require.NoError(t, db.Close())
	state, err := j.Begin(t.Context(), job, 0)
	require.NoError(t, err, "no other run is at work")
	assert.Equal(t, payvault.BatchState{Begun: true}, state)
}

// TestSubmitAllOfALease: the context ends a walk that waits for the lease of a dead run.
func TestSubmitAllOfALease(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		_, err := opened(t, place, sqlpayvault.WithLease(time.Hour)).Begin(t.Context(), "other", 0)
		require.NoError(t, err)
		execute(t, place, `INSERT INTO payvault_jobs (job, holder, beat, lease) VALUES ('`+job+`', 'dead', 1, 3600000)`)
		srv := payvaulttest.NewServer()
		t.Cleanup(srv.Close)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		options := &payvault.SubmitAllOptions{Journal: opened(t, place), Job: job}
		got := collect(srv.Client().AccountUpdater.SubmitAll(ctx, stream(300), options))
		require.Len(t, got, 3)
		for _, batch := range got {
			require.ErrorIs(t, batch.Err, context.DeadlineExceeded)
		}
	})
}

// TestLeaseOfNoTime is the default.
func TestLeaseOfNoTime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	_, err := opened(t, path, sqlpayvault.WithLease(0)).Begin(t.Context(), job, 0)
	require.NoError(t, err)
	driver, source := driverOf(path)
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	var lease int
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT lease FROM payvault_jobs`).Scan(&lease))
	assert.Equal(t, 5000, lease)
	require.NoError(t, db.Close())
}

// TestDatabaseThatFails ends the walk before anything is sent.
func TestDatabaseThatFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := opened(t, path)
	execute(t, path, `DROP TABLE payvault_batches`)
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	options := &payvault.SubmitAllOptions{Journal: j, Job: job}
	got := collect(srv.Client().AccountUpdater.SubmitAll(t.Context(), stream(1000), options))
	require.Len(t, got, 10)
	for _, batch := range got {
		require.ErrorContains(t, batch.Err, "no such table")
	}
	assert.Zero(t, srv.Commits(payvault.OpAccountUpdaterSubmit))
}

// dropping opens connections that drop at one commit, before or after the database has performed it.
type dropping struct {
	driver driver.Driver
	source string
	armed  atomic.Bool
	after  bool

	failing atomic.Int64  // commits that have failed, if that is not 0; all do
	holding chan struct{} // if it is there, a commit gives to it, twice
}

func (d *dropping) Driver() driver.Driver { return d.driver }

func (d *dropping) Connect(context.Context) (driver.Conn, error) {
	conn, err := d.driver.Open(d.source)
	return droppingConn{conn, d}, err
}

type droppingConn struct {
	driver.Conn
	*dropping
}

func (c droppingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return droppingTx{tx, c}, err
}

type droppingTx struct {
	driver.Tx
	droppingConn
}

func (t droppingTx) Commit() error {
	if t.holding != nil {
		t.holding <- struct{}{}
		t.holding <- struct{}{}
	}
	if t.failing.Load() > 0 {
		return errors.Join(fmt.Errorf("failure %d", t.failing.Add(1)-1), driver.ErrBadConn, t.Rollback())
	}
	if !t.armed.CompareAndSwap(true, false) {
		return t.Tx.Commit()
	}
	finish := t.Rollback
	if t.after {
		finish = t.Tx.Commit
	}
	return errors.Join(io.ErrUnexpectedEOF, driver.ErrBadConn, finish()) // the pool drops a bad one
}

// TestConnectionThatDrops costs no outcome that is known. One of a batch that may be sent again is not recorded twice,
// since another run may have begun it meanwhile.
func TestConnectionThatDrops(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		for i, after := range []bool{false, true} {
			name, source := driverOf(place)
			db, err := sql.Open(name, source)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			d := &dropping{driver: db.Driver(), source: source, after: after}
			db = sql.OpenDB(d)
			j, err := sqlpayvault.New(t.Context(), db, sqlpayvault.WithoutLease())
			require.NoError(t, err)
			for k, status := range []payvault.BatchStatus{"accepted", "refused", "unknown", "not sent"} {
				batch := 10*i + k
				outcome := payvault.BatchOutcome{Status: status, Cards: 100}
				_, err = j.Begin(t.Context(), job, batch)
				require.NoError(t, err)
				d.armed.Store(true)
				if err = j.End(t.Context(), job, batch, outcome); status == payvault.BatchNotSent {
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					continue
				}
				require.NoError(t, err)
				assert.False(t, d.armed.Load(), "it has dropped")
				state, err := j.Begin(t.Context(), job, batch)
				require.NoError(t, err)
				assert.Equal(t, &outcome, state.Outcome)
			}
			d.armed.Store(true)
			_, err = j.Begin(t.Context(), job, 10*i+7)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.NoError(t, j.Close())
			require.NoError(t, db.Close())
		}
	})
}

// broken opens a journal in a file whose commits fail, or are held.
func broken(t *testing.T) (*sqlpayvault.Journal, *dropping) {
	t.Helper()
	name, source := driverOf(filepath.Join(t.TempDir(), "journal"))
	db, err := sql.Open(name, source)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	d := &dropping{driver: db.Driver(), source: source}
	db = sql.OpenDB(d)
	j, err := sqlpayvault.New(t.Context(), db, sqlpayvault.WithoutLease())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, errors.Join(j.Close(), db.Close())) })
	return j, d
}

// TestFirstFailureCounts: those after it follow from it.
func TestFirstFailureCounts(t *testing.T) {
	t.Parallel()
	j, d := broken(t)
	d.failing.Store(1)
	err := j.End(t.Context(), job, 0, payvault.BatchOutcome{Status: payvault.BatchAccepted})
	require.ErrorContains(t, err, "failure 1\n")
	assert.Greater(t, d.failing.Load(), int64(2), "it was tried again")
	d.failing.Store(0)
}

// TestContextThatEnds while another transaction is committed: nothing is begun.
func TestContextThatEnds(t *testing.T) {
	t.Parallel()
	j, d := broken(t)
	d.holding = make(chan struct{})
	first, second := make(chan error, 1), make(chan error, 1)
	begin := func(ctx context.Context, batch int, ended chan<- error) {
		_, err := j.Begin(ctx, job, batch)
		ended <- err
	}
	go begin(t.Context(), 0, first)
	<-d.holding
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go begin(ctx, 1, second)
	select {
	case err := <-second:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "it waits")
	}
	<-d.holding
	require.NoError(t, <-first)
	d.holding = nil // Close commits too
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	_, err := sqlpayvault.Open(t.Context(), filepath.Join(t.TempDir(), "missing", "journal"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte("this is no database, but a text of some length"), 0o600))
	_, err = sqlpayvault.Open(t.Context(), path)
	require.ErrorContains(t, err, "not a database")
}

// TestPaths: whatever they mean to SQLite, the journal is in the file of that name.
func TestPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{":memory:", "file:journal?mode=memory", "/" + t.TempDir() + "/journal"} {
		for _, begun := range []bool{false, true} {
			j, err := sqlpayvault.Open(t.Context(), path)
			require.NoError(t, err)
			state, err := j.Begin(t.Context(), job, 0)
			require.NoError(t, err)
			assert.Equal(t, begun, state.Begun, path)
			require.NoError(t, j.Close())
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Positive(t, info.Size())
	}
}

// TestTablesAreMadeOnce: many runs start at the same time.
func TestTablesAreMadeOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		var running sync.WaitGroup
		for i := range 8 {
			running.Go(func() {
				j, closeAll, err := open(t.Context(), place)
				if assert.NoError(t, err) {
					_, err = j.Begin(t.Context(), fmt.Sprint("job ", i), 0)
					assert.NoError(t, err)
					assert.NoError(t, closeAll())
				}
			})
		}
		running.Wait()
	})
}

// TestNoCardData looks for the cards in the files.
func TestNoCardData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, filepath.Join(dir, "journal"))
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	inject(t, srv, payvaulttest.Fault{
		Kind: payvaulttest.OtherCode, Code: 5, Message: "card 4111111111111111 of C7", Times: 1,
	})
	echo := &http.Client{Transport: slow{"4111111111111111"}} // as the ID of the request
	echoing, err := payvault.NewClient("https://service.test", "key", payvault.WithHTTPClient(echo))
	require.NoError(t, err)
	for i, client := range []*payvault.Client{srv.Client(), echoing} {
		options := &payvault.SubmitAllOptions{Journal: j, Job: fmt.Sprint("job ", i)}
		require.Len(t, collect(client.AccountUpdater.SubmitAll(t.Context(), stream(300), options)), 3)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	size := 0
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		require.NoError(t, err)
		size += len(content)
		assert.NotContains(t, string(content), "41111111")
		info, err := file.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, file.Name())
	}
	assert.Positive(t, size)
}

// inject makes requests fail as the fault says.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) {
	t.Helper()
	_, err := srv.Inject(fault)
	require.NoError(t, err)
}
