package sqlpayvault_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
)

// TestBatches checks that a second run gets the outcomes that the first run has recorded. For a batch that the first
// run has begun and not ended, the second run must get no outcome.
func TestBatches(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		outcomes := []payvault.BatchOutcome{
			{Status: payvault.BatchAccepted, Cards: 100, RequestID: "REQ"},
			{
				Status: payvault.BatchRefused, Cards: 7, StatusCode: 200, Code: "5", Message: "Example 'refusal' é",
				Fields: map[string][]string{"data[0].exp_date": {"is 'past' é", "is early"}, "data[1]": {}},
			},
			{Status: payvault.BatchUnknown, Cards: 100, Message: "unexpected EOF"},
		}
		first := opened(t, place)
		for i, outcome := range outcomes {
			mustBegin(t, first, i)
			require.NoError(t, first.End(t.Context(), job, i, outcome))
		}
		lost := len(outcomes)
		mustBegin(t, first, lost)
		require.NoError(t, first.Close())

		second := opened(t, place)
		for i, outcome := range outcomes {
			state, err := second.Begin(t.Context(), job, i)
			require.NoError(t, err)
			assert.Equal(t, payvault.BatchState{Begun: true, Outcome: &outcome}, state)
		}
		for range 2 {
			state, err := second.Begin(t.Context(), job, lost)
			require.NoError(t, err)
			assert.Equal(t, payvault.BatchState{Begun: true}, state, "begun, and never ended")
		}
		state, err := second.Begin(t.Context(), "another job", 0)
		require.NoError(t, err)
		assert.Zero(t, state)
	})
}

// TestBatchThatWasNotSent checks that Begin accepts a batch again after End has recorded it as not sent. The row of the
// batch must not keep the old outcome.
func TestBatchThatWasNotSent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j := opened(t, place)
		for range 3 {
			mustBegin(t, j, 7)
			require.NoError(t, j.End(t.Context(), job, 7, payvault.BatchOutcome{
				Status: payvault.BatchNotSent, Cards: 100, RequestID: "R", StatusCode: 429, Code: "1", Message: "wait",
			}))
		}
		mustBegin(t, j, 7)
		var row string
		require.NoError(t, direct(t, place).QueryRowContext(t.Context(), `SELECT status || cards || request_id ||
			status_code || code || message || fields FROM payvault_batches`).Scan(&row))
		assert.Equal(t, "begun00", row)
		require.NoError(t, j.Close())
		state, err := opened(t, place).Begin(t.Context(), job, 7)
		require.NoError(t, err)
		assert.Equal(t, payvault.BatchState{Begun: true}, state)
	})
}

// TestNotSentOverAnotherRun checks that End with the outcome "not sent" does not change a batch that another run has
// begun or ended in the meantime. End repeats its statement if the connection drops, so the outcome may arrive twice.
func TestNotSentOverAnotherRun(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		first, second := opened(t, place, sqlpayvault.WithoutLease()), opened(t, place, sqlpayvault.WithoutLease())
		for batch, status := range []payvault.BatchStatus{"", payvault.BatchAccepted} {
			mustBegin(t, first, batch)
			mustEnd(t, first, batch, payvault.BatchNotSent)
			mustBegin(t, second, batch)
			if status != "" {
				mustEnd(t, second, batch, status)
			}
			mustEnd(t, first, batch, payvault.BatchNotSent)
			state, err := opened(t, place, sqlpayvault.WithoutLease()).Begin(t.Context(), job, batch)
			require.NoError(t, err)
			assert.True(t, state.Begun, "batch %d", batch)
		}
	})
}

// TestBatchIsBegunOnce checks that only one Begin begins a batch if several goroutines and journals call Begin at the
// same time. This must hold with leases that are so short that each journal may take over the job, and without leases.
// Without leases, no Begin may fail.
func TestBatchIsBegunOnce(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]sqlpayvault.Option{
		"20 ms": sqlpayvault.WithLease(20 * time.Millisecond), "none": sqlpayvault.WithoutLease(),
	} {
		t.Run("lease="+name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, place string) {
				t.Helper()
				var mu sync.Mutex
				times := map[int]int{}
				var running sync.WaitGroup
				for range 3 {
					j := opened(t, place, option)
					for range 3 {
						running.Go(func() {
							for batch := range 50 {
								state, err := j.Begin(t.Context(), job, batch)
								if name == "none" || !errors.Is(err, sqlpayvault.ErrRunning) {
									assert.NoError(t, err)
								}
								if err == nil && !state.Begun {
									mu.Lock()
									times[batch]++
									mu.Unlock()
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
		})
	}
}

// TestWithoutLeaseAfterNotSent checks that Begin does not fail while other journals begin the batch and end it as not
// sent. In SQLite nothing can come between the two statements of Begin, which are in one transaction.
func TestWithoutLeaseAfterNotSent(t *testing.T) {
	t.Parallel()
	place := newDatabase(t, postgres(t))
	var running sync.WaitGroup
	for range 4 {
		j := opened(t, place, sqlpayvault.WithoutLease())
		running.Go(func() {
			for range 50 {
				state, err := j.Begin(t.Context(), job, 1)
				if !assert.NoError(t, err) {
					return
				}
				if !state.Begun {
					assert.NoError(t, j.End(t.Context(), job, 1, payvault.BatchOutcome{Status: payvault.BatchNotSent}))
				}
			}
		})
	}
	running.Wait()
}

// TestClosed checks that the methods of a closed journal return ErrClosed. The closed journal must not take a lease,
// and another journal must be able to begin the batch.
func TestClosed(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j, closeAll, err := open(t.Context(), place, sqlpayvault.WithLease(time.Hour))
		require.NoError(t, err)
		require.NoError(t, closeAll())
		require.NoError(t, j.Close())
		_, err = j.Begin(t.Context(), job, 0)
		require.ErrorIs(t, err, sqlpayvault.ErrClosed)
		require.ErrorIs(t, j.End(t.Context(), job, 0, payvault.BatchOutcome{}), sqlpayvault.ErrClosed)
		_, err = j.Unresolved(t.Context(), job)
		require.ErrorIs(t, err, sqlpayvault.ErrClosed)
		resolved := payvault.BatchOutcome{Status: payvault.BatchAccepted}
		require.ErrorIs(t, j.Resolve(t.Context(), job, 0, resolved), sqlpayvault.ErrClosed)
		mustBegin(t, opened(t, place), 0)
	})
}

// dropping opens database connections that break at a statement, before or after the database has committed the
// statement. It can also block statements. Queries neither break nor block.
type dropping struct {
	driver driver.Driver
	source string

	mu      sync.Mutex
	left    int // number of statements that still break
	after   bool
	commits int    // number of transactions that were committed
	hold    *hold  // if set, it blocks all statements
	last    string // the newest statement
}

// hold blocks statements. Each statement sends to the channel entered, and then receives from the channel release.
type hold struct{ entered, release chan struct{} }

func (d *dropping) Driver() driver.Driver { return d.driver }

func (d *dropping) Connect(context.Context) (driver.Conn, error) {
	conn, err := d.driver.Open(d.source)
	return &droppingConn{Conn: conn, dropping: d}, err
}

// set makes the next n statements break their connections. If after is true, the database commits each of these
// statements first.
func (d *dropping) set(n int, after bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.after = n, after
}

// release lets the one statement that is blocked continue. Later statements are not blocked.
func (d *dropping) release() {
	d.mu.Lock()
	held := d.hold
	d.hold = nil
	d.mu.Unlock()
	held.release <- struct{}{}
}

type droppingConn struct {
	driver.Conn
	*dropping

	dropped    bool
	tx         driver.Tx // nil outside of a transaction
	dropsAtEnd bool      // the connection breaks after the commit of tx
}

func (c *droppingConn) Begin() (driver.Tx, error) {
	var err error
	c.tx, err = c.Conn.Begin() //nolint:staticcheck // the drivers have it
	return c, err
}

func (c *droppingConn) Commit() error {
	err := c.tx.Commit()
	c.tx = nil
	c.mu.Lock()
	c.commits++
	c.mu.Unlock()
	if c.dropsAtEnd {
		c.dropped = true
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *droppingConn) Rollback() error {
	err := c.tx.Rollback()
	c.tx = nil
	return err
}

func (c *droppingConn) IsValid() bool { return !c.dropped }

func (c *droppingConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (c *droppingConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	c.mu.Lock()
	drop, after, hold := c.left > 0, c.after, c.hold
	c.left = max(0, c.left-1)
	c.last = q
	c.mu.Unlock()
	if hold != nil {
		hold.entered <- struct{}{}
		<-hold.release
	}
	if drop && after && c.tx != nil {
		drop, c.dropsAtEnd = false, true
	}
	if !drop {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
	}
	c.dropped = true
	if after {
		if _, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args); err != nil {
			return nil, err
		}
	}
	return nil, io.ErrUnexpectedEOF
}

// newDropping returns a journal, and the dropping that can break the connections of the journal.
func newDropping(t *testing.T, place string) (*sqlpayvault.Journal, *dropping) {
	t.Helper()
	require.NoError(t, opened(t, place).Close()) // it makes the tables
	name, source := driverOf(place)
	opener, err := sql.Open(name, source)
	require.NoError(t, err)
	require.NoError(t, opener.Close())
	d := &dropping{driver: opener.Driver(), source: source}
	db := sql.OpenDB(d)
	j := sqlpayvault.NewOn(db, isFile(place), sqlpayvault.WithoutLease())
	t.Cleanup(func() {
		assert.NoError(t, j.Close())
		assert.NoError(t, db.Close())
	})
	return j, d
}

// TestConnectionThatDrops checks that Begin, End and Resolve succeed if two statements in a row lose their connections.
// Another journal must then find the outcome, and must be able to begin a batch that was not sent. Resolve must fail
// for an accepted batch if the request ID differs.
func TestConnectionThatDrops(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, place string) {
		t.Helper()
		j, d := newDropping(t, place)
		other := opened(t, place, sqlpayvault.WithoutLease())
		batch := 0
		for _, after := range []bool{false, true} {
			for _, status := range []payvault.BatchStatus{"accepted", "refused", "unknown", "not sent"} {
				batch++
				d.set(2, after)
				mustBegin(t, j, batch)
				outcome := payvault.BatchOutcome{Status: status, Cards: 100}
				d.set(2, after)
				require.NoError(t, j.End(t.Context(), job, batch, outcome))
				state, err := other.Begin(t.Context(), job, batch)
				require.NoError(t, err)
				if status == payvault.BatchNotSent {
					assert.Zero(t, state)
				} else {
					assert.Equal(t, &outcome, state.Outcome)
				}
			}
			for _, status := range []payvault.BatchStatus{"accepted", "refused", "not sent"} {
				batch++
				mustBegin(t, j, batch)
				outcome := payvault.BatchOutcome{Status: status, RequestID: "REQ", Fields: map[string][]string{"a": {"b"}}}
				d.set(2, after)
				require.NoError(t, j.Resolve(t.Context(), job, batch, outcome))
				state, err := other.Begin(t.Context(), job, batch)
				require.NoError(t, err)
				if status == payvault.BatchNotSent {
					assert.Zero(t, state)
				} else {
					assert.Equal(t, &outcome, state.Outcome)
				}
				outcome.RequestID = "another"
				if status == payvault.BatchAccepted {
					err := j.Resolve(t.Context(), job, batch, outcome)
					require.ErrorContains(t, err, "is neither of unknown outcome nor refused")
				}
			}
		}
	})
}

// broken is a driver that calls the function statement in place of each statement, and the function commit in place of
// each commit. If a function is nil, its statements or commits succeed.
type broken struct {
	driver.Conn
	statement func(ctx context.Context, args []driver.NamedValue) error
	commit    func() error
}

func (b *broken) Driver() driver.Driver                        { return nil }
func (b *broken) Connect(context.Context) (driver.Conn, error) { return b, nil }
func (b *broken) Close() error                                 { return nil }
func (b *broken) Begin() (driver.Tx, error)                    { return b, nil }
func (b *broken) Rollback() error                              { return nil }

func (b *broken) Commit() error {
	if b.commit == nil {
		return nil
	}
	return b.commit()
}

func (b *broken) ExecContext(ctx context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	if b.statement == nil {
		return driver.RowsAffected(1), nil
	}
	return driver.RowsAffected(1), b.statement(ctx, args)
}

// inBroken runs a test in fake time, with a journal in a database of the driver broken. The function end records that a
// batch was accepted.
func inBroken(t *testing.T, isSQLite bool, b *broken, test func(t *testing.T, end func(batch int) error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pool := sql.OpenDB(b)
		j := sqlpayvault.NewOn(pool, isSQLite, sqlpayvault.WithoutLease())
		test(t, func(batch int) error {
			return j.End(t.Context(), job, batch, payvault.BatchOutcome{Status: payvault.BatchAccepted})
		})
		require.NoError(t, j.Close())
		require.NoError(t, pool.Close())
	})
}

// TestDatabaseThatIsGone checks that all calls of End fail together, 10 s after the first of them, if the database does
// not answer. Calls that come later must have 10 s of their own, and fail together too. All this must hold again in a
// second outage.
func TestDatabaseThatIsGone(t *testing.T) {
	t.Parallel()
	for _, isSQLite := range []bool{true, false} {
		t.Run(fmt.Sprint("SQLite=", isSQLite), func(t *testing.T) {
			t.Parallel()
			var fails atomic.Bool
			b := &broken{statement: func(context.Context, []driver.NamedValue) error {
				if fails.Load() {
					return io.ErrUnexpectedEOF
				}
				return nil
			}}
			inBroken(t, isSQLite, b, func(t *testing.T, end func(batch int) error) {
				t.Helper()
				for range 2 {
					fails.Store(true)
					var running sync.WaitGroup
					for range 2 {
						start := time.Now()
						for batch := range 64 {
							running.Go(func() { assert.ErrorIs(t, end(batch), io.ErrUnexpectedEOF) })
							<-time.After(100 * time.Millisecond)
						}
						running.Wait()
						assert.Equal(t, 10*time.Second, time.Since(start))
					}

					running.Go(func() { assert.NoError(t, end(0)) })
					<-time.After(9 * time.Second)
					fails.Store(false)
					running.Wait()
				}
			})
		})
	}
}

// TestLateCall checks an End that comes 11 s after the other calls. These should have given up after 10 s, but the last
// try of one of them still runs, because a commit of SQLite does not end with its context. The late End must have 10 s
// of its own.
func TestLateCall(t *testing.T) {
	t.Parallel()
	var start time.Time
	b := &broken{commit: func() error {
		if time.Since(start) > 11*time.Second {
			return nil
		}
		<-time.After(6 * time.Second)
		return io.ErrUnexpectedEOF
	}}
	inBroken(t, true, b, func(t *testing.T, end func(batch int) error) {
		t.Helper()
		start = time.Now()
		var running sync.WaitGroup
		for batch := range 2 {
			running.Go(func() { assert.ErrorIs(t, end(batch), io.ErrUnexpectedEOF) })
			synctest.Wait()
		}
		<-time.After(11 * time.Second)
		assert.NoError(t, end(2))
		assert.Less(t, 12*time.Second, time.Since(start))
		running.Wait()
	})
}

// TestStatementThatHangs checks that an End fails alone if its connection hangs, for example because a firewall has
// dropped it. Calls that wait meanwhile must succeed on other connections.
func TestStatementThatHangs(t *testing.T) {
	t.Parallel()
	b := &broken{statement: func(ctx context.Context, args []driver.NamedValue) error {
		if len(args) > 1 && args[1].Value == int64(1000) {
			<-ctx.Done()
			return ctx.Err()
		}
		<-time.After(time.Millisecond)
		return nil
	}}
	inBroken(t, false, b, func(t *testing.T, end func(batch int) error) {
		t.Helper()
		start := time.Now()
		var running sync.WaitGroup
		running.Go(func() { assert.ErrorIs(t, end(1000), context.DeadlineExceeded) })
		for batch := range 8 {
			running.Go(func() {
				for time.Since(start) < 11*time.Second {
					assert.NoError(t, end(batch))
				}
			})
		}
		running.Wait()
	})
}

// TestDriverThatPanics checks a panic of the driver while one call runs the statements of several calls, to commit them
// together. The panic must reach this call. The other calls must return an error, and later calls must succeed.
func TestDriverThatPanics(t *testing.T) {
	t.Parallel()
	var release chan struct{}
	b := &broken{statement: func(_ context.Context, args []driver.NamedValue) error {
		switch {
		case len(args) > 1 && args[1].Value == int64(0):
			<-release
		case len(args) > 1 && args[1].Value == int64(2):
			panic("a bug of the driver")
		}
		return nil
	}}
	inBroken(t, true, b, func(t *testing.T, end func(batch int) error) {
		t.Helper()
		release = make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { assert.NoError(t, end(0)) })
		synctest.Wait()
		running.Go(func() { assert.PanicsWithValue(t, "a bug of the driver", func() { _ = end(1) }) })
		synctest.Wait() // end(1) is the first call that waits, so it runs the statements of the other two
		for batch := 2; batch < 4; batch++ {
			running.Go(func() { assert.ErrorContains(t, end(batch), "the driver of the database has panicked") })
		}
		synctest.Wait()
		release <- struct{}{}
		running.Wait()
		assert.NoError(t, end(4))
	})
}

// TestDatabaseThatComesBack checks what is recorded after an outage of more than 10 s. A batch whose Begin failed is
// recorded as not sent, also if the statement of Begin was committed. A batch whose End failed has its outcome. This
// holds for a journal that stays open, and for a journal that is closed during the outage.
func TestDatabaseThatComesBack(t *testing.T) {
	t.Parallel()
	for _, isClosed := range []bool{false, true} {
		t.Run(fmt.Sprint("closed=", isClosed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal")
			synctest.Test(t, func(t *testing.T) {
				j, d := newDropping(t, path)
				mustBegin(t, j, 1)
				mustBegin(t, j, 2)
				d.set(math.MaxInt, true)
				_, err := j.Begin(t.Context(), job, 0)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				d.set(math.MaxInt, false)
				_, err = j.Begin(t.Context(), job, 3)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				outcome := payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100, RequestID: "REQ"}
				require.ErrorIs(t, j.End(t.Context(), job, 1, outcome), io.ErrUnexpectedEOF)
				notSent := payvault.BatchOutcome{Status: payvault.BatchNotSent}
				require.ErrorIs(t, j.End(t.Context(), job, 2, notSent), io.ErrUnexpectedEOF)
				var closing sync.WaitGroup
				if isClosed {
					closing.Go(func() { assert.NoError(t, j.Close()) })
				}
				<-time.After(9 * time.Second)
				d.set(0, false)
				<-time.After(time.Second)
				closing.Wait()
				if isClosed {
					assert.Contains(t, d.last, "SET holder = ''", "the lease is released after the outcomes are recorded")
				}

				other := opened(t, path, sqlpayvault.WithoutLease())
				mustBegin(t, other, 0)
				mustBegin(t, other, 2)
				mustBegin(t, other, 3)
				state, err := other.Begin(t.Context(), job, 1)
				require.NoError(t, err)
				assert.Equal(t, &outcome, state.Outcome)
			})
		})
	}
}

// TestEndThatIsRecordedLate checks a batch that was ended as not sent and then begun again. The answer to its End was
// lost, so the journal repeats the End. The batch must stay begun.
func TestEndThatIsRecordedLate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	synctest.Test(t, func(t *testing.T) {
		j, d := newDropping(t, path)
		mustBegin(t, j, 0)
		d.set(math.MaxInt, true)
		notSent := payvault.BatchOutcome{Status: payvault.BatchNotSent}
		require.ErrorIs(t, j.End(t.Context(), job, 0, notSent), io.ErrUnexpectedEOF)
		synctest.Wait() // the first repeat has failed
		d.set(0, false)
		mustBegin(t, j, 0)
		<-time.After(time.Second) // the second repeat has succeeded
		state, err := opened(t, path, sqlpayvault.WithoutLease()).Begin(t.Context(), job, 0)
		require.NoError(t, err)
		assert.Equal(t, payvault.BatchState{Begun: true}, state)
	})
}

// TestContextThatEnds checks that Begin succeeds if its context ends while the statement is running. If the context has
// ended before, or ends while Begin waits for its turn, Begin must fail and begin nothing.
func TestContextThatEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j, d := newDropping(t, path)
	late, end := context.WithTimeout(t.Context(), 0)
	defer end()
	_, err := j.Begin(late, job, 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, sqlpayvault.ErrRunning)
	d.hold = &hold{make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	first, others := make(chan error), make(chan error)
	begin := func(batch int, errs chan<- error) {
		_, err := j.Begin(ctx, job, batch)
		errs <- err
	}
	go begin(0, first)
	<-d.hold.entered // the first Begin has its turn, and the others wait
	for batch := range 8 {
		go begin(1+batch, others)
	}
	cancel()
	for range 8 {
		require.ErrorIs(t, <-others, context.Canceled)
	}
	close(d.hold.release)
	require.NoError(t, <-first)
	var n int
	require.NoError(t, direct(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM payvault_batches`).Scan(&n))
	assert.Equal(t, 1, n)
	d.hold = nil // the statement of Close must not be blocked
}

// TestCallsThatWait checks that calls that wait for a running call are committed together, that each call gets its own
// result, and that an End is recorded if its context ends while the statement is running. All this must also hold if a
// connection breaks, before or after the commit.
func TestCallsThatWait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks  int
		after   bool
		commits int // for the first call, for the three others, and for a last one that looks
	}{
		"whole":               {commits: 3},
		"breaks before":       {breaks: 1, commits: 3},
		"breaks after commit": {breaks: 1, after: true, commits: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal")
			synctest.Test(t, func(t *testing.T) {
				j, d := newDropping(t, path)
				callTogether(t, j, d, func() { d.set(test.breaks, test.after) })
				assert.Equal(t, test.commits, d.commits)
			})
		})
	}
}

// callTogether makes one call and three calls that wait for it, and checks their results. While the database works on
// these three, callTogether ends their context and then calls the function during.
func callTogether(t *testing.T, j *sqlpayvault.Journal, d *dropping, during func()) {
	t.Helper()
	held := &hold{make(chan struct{}), make(chan struct{})}
	d.hold = held
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	begin := func(batch int, want payvault.BatchState) {
		calls.Go(func() {
			state, err := j.Begin(ctx, job, batch)
			assert.NoError(t, err)
			assert.Equal(t, want, state, batch)
		})
	}
	begin(0, payvault.BatchState{})
	<-held.entered
	begin(0, payvault.BatchState{Begun: true})
	begin(1, payvault.BatchState{})
	accepted := payvault.BatchOutcome{Status: payvault.BatchAccepted, Cards: 100, RequestID: "REQ"}
	calls.Go(func() { assert.NoError(t, j.End(ctx, job, 2, accepted)) })
	synctest.Wait() // these three wait for the first Begin
	held.release <- struct{}{}
	<-held.entered
	cancel()
	during()
	d.release()
	calls.Wait()
	state, err := j.Begin(t.Context(), job, 2)
	require.NoError(t, err)
	assert.Equal(t, &accepted, state.Outcome)
}

// TestCloseWaits checks that Close waits for an End that is under way, before it uses or closes the database.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	isRecorded := false
	b := &broken{statement: func(_ context.Context, args []driver.NamedValue) error {
		if len(args) == 1 { // the statement of Close
			assert.True(t, isRecorded)
			return nil
		}
		<-time.After(time.Second)
		isRecorded = true
		return nil
	}}
	inBroken(t, false, b, func(t *testing.T, end func(batch int) error) {
		t.Helper()
		go func() { assert.NoError(t, end(0)) }()
		synctest.Wait() // then inBroken calls Close
	})
}

// TestTablesAreMadeOnce checks that several runs can make the tables of a new database at the same time.
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

// TestNoCardData checks that the files of a journal contain no card number, even if the service returns a card number
// in its message or as the request ID. Only the owner may have access to the files.
func TestNoCardData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, filepath.Join(dir, "journal"))
	srv := newServer(t, payvaulttest.Fault{
		Kind: payvaulttest.OtherCode, Code: 5, Message: "card 4111111111111111 of C7", Times: 1,
	})
	echo := &http.Client{Transport: slow{requestID: "4111111111111111"}} // the request ID looks like a card number
	echoing, err := payvault.NewClient("https://service.test", "key", payvault.WithHTTPClient(echo))
	require.NoError(t, err)
	for i, client := range []*payvault.Client{srv.Client(), echoing} {
		options := &payvault.SubmitAllOptions{Journal: j, Job: fmt.Sprint("job ", i)}
		got, err := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(300), options))
		require.NoError(t, err)
		require.Len(t, got, 3)
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
