package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite" // the driver that Open uses
	sqlite3 "modernc.org/sqlite/lib"
)

// connectionsOf returns the number of connections for statements about batches: as many as db may open, or two if db
// has no limit. The reason for two: by default, database/sql keeps two idle connections, and closes any further
// connection after one statement.
func connectionsOf(db *sql.DB) int {
	if limit := db.Stats().MaxOpenConnections; limit > 0 {
		return limit
	}
	return 2
}

// outage is a time in which the database fails. It begins with the first error of a statement about a batch, and ends
// with the first success.
type outage struct {
	first error
	until time.Time // when the statement that failed first gives up
}

// write is the statement of a Begin or an End. It is run in db, and may be run several times. Its result may be
// ErrRunning or errMode, which are no failures of the database: see isAnswer.
type write struct {
	statement func(ctx context.Context, db querier) error
	result    error
	done      chan struct{} // closed when result is set
}

// querier is a database, which commits each statement, or a transaction.
type querier interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
}

// try runs the statement of a Begin or an End, and repeats it for up to 10 s if the database fails. When ctx ends, try
// stops waiting for its turn. It does not cancel a running statement, because nobody would know whether the batch was
// recorded.
//
// A commit of SQLite waits for the disk several times. So a call whose turn it is takes the statements of all calls
// that wait, and commits them together.
//
// During an outage all waiting statements give up at the same time. Otherwise each of them would in turn try for 10 s.
// A statement that arrives later has 10 s of its own.
func (j *Journal) try(ctx context.Context, statement func(ctx context.Context, db querier) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	arrived := time.Now()
	own := &write{statement: statement, done: make(chan struct{})}
	select {
	case j.turns <- struct{}{}:
		defer func() { <-j.turns }()
		j.runGroup(context.WithoutCancel(ctx), arrived, j.joinWaiting(own))
	case j.waiting <- own: // another call runs the statement
		<-own.done
	case <-ctx.Done():
		return ctx.Err()
	}
	return own.result
}

// joinWaiting returns a group of own and the statements of all calls that wait. For Postgres no call waits in the
// channel waiting, because Postgres itself joins the commits of its connections.
func (j *Journal) joinWaiting(own *write) []*write {
	group := []*write{own}
	for {
		select {
		case other := <-j.waiting:
			group = append(group, other)
		default:
			return group
		}
	}
}

// runGroup runs a group of statements and sets their results. The first of them arrived at the given time. If the
// database fails, all statements of the group get its error, and nothing of the group is committed.
func (j *Journal) runGroup(ctx context.Context, arrived time.Time, group []*write) {
	err := j.runInTime(ctx, arrived, func(ctx context.Context) error {
		if j.waiting == nil {
			group[0].result = group[0].statement(ctx, j.db)
			return group[0].result
		}
		return j.commit(ctx, group)
	})
	for _, w := range group {
		if err != nil {
			w.result = err
		}
		close(w.done)
	}
}

// commit runs the statements of a group in one transaction.
func (j *Journal) commit(ctx context.Context, group []*write) error {
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it does nothing after Commit
	for _, w := range group {
		w.result = w.statement(ctx, tx)
		if w.result != nil && !isAnswer(w.result) {
			return w.result
		}
	}
	return tx.Commit()
}

// runInTime runs and repeats a function for up to 10 s, or until the end of the outage in which it has arrived.
func (j *Journal) runInTime(ctx context.Context, arrived time.Time, run func(ctx context.Context) error) error {
	deadline := time.Now().Add(timeout)
	if o := j.outage.Load(); o != nil && arrived.Before(o.until) {
		if !time.Now().Before(o.until) {
			return describe(j.file, o.first)
		}
		deadline = o.until
	}
	err := retry(ctx, deadline, func(ctx context.Context) error {
		err := run(ctx)
		if err == nil || isAnswer(err) || errors.Is(err, errAgain) {
			j.outage.Store(nil) // the database has answered
		} else if o := j.outage.Load(); o == nil || o.until.Before(deadline) {
			j.outage.Store(&outage{first: err, until: deadline})
		}
		return err
	})
	return describe(j.file, err)
}

// isAnswer reports whether an error is what a statement has found out, and no failure of the database.
func isAnswer(err error) bool { return errors.Is(err, ErrRunning) || errors.Is(err, errMode) }

// retry runs a statement until it succeeds or the deadline has passed. It stops at an error that would occur again:
// ErrRunning, an error that a pooler causes, or a file that is damaged, was moved, or is in another journal mode. A
// failed statement may have been performed, so repeating it has to be harmless.
func retry(ctx context.Context, deadline time.Time, statement func(ctx context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	var first error // later errors may be mere consequences of the first
	for wait := time.Millisecond; ; wait = min(2*wait, pause) {
		err := statement(ctx)
		if err == nil || isAnswer(err) || isPooled(err) || isDamaged(err) || isMoved(err) {
			return err
		}
		if first == nil {
			first = err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return first
		}
	}
}

// exec runs a statement in db, with the names of the tables in their places. It returns the number of changed rows.
func (j *Journal) exec(ctx context.Context, db querier, statement string, args ...any) (changed int64, err error) {
	result, err := db.ExecContext(ctx, j.names.Replace(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// change runs a statement like exec, repeats it if it fails, and reports whether it has changed a row.
func (j *Journal) change(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	err = retry(ctx, time.Now().Add(timeout), func(ctx context.Context) error {
		n, err := j.exec(ctx, j.db, statement, args...)
		changed = n > 0
		return err
	})
	return changed, describe(j.file, err)
}

// isPooled reports whether a statement failed because it was prepared on another connection of a pooler.
func isPooled(err error) bool { return strings.Contains(err.Error(), "prepared statement") }

// isMoved reports whether SQLite has found that the file was moved or removed while the journal was open.
func isMoved(err error) bool {
	moved, ok := errors.AsType[*sqlite.Error](err)
	return ok && moved.Code() == sqlite3.SQLITE_READONLY_DBMOVED
}

// isDamaged reports whether SQLite has found that a file is damaged or no database.
func isDamaged(err error) bool {
	damaged, ok := errors.AsType[*sqlite.Error](err)
	return ok && (damaged.Code()&0xff == sqlite3.SQLITE_NOTADB || damaged.Code()&0xff == sqlite3.SQLITE_CORRUPT)
}

// isMissing reports whether SQLite has not found a table or a column of a statement.
func isMissing(err error) bool {
	missing, ok := errors.AsType[*sqlite.Error](err)
	return ok && missing.Code() == sqlite3.SQLITE_ERROR
}

// describe adds the names of this package and of the SQLite file to an error of the database, and advice if there is
// any. The file is "" for Postgres. It returns nil and the errors of this package unchanged.
func describe(file string, err error) error {
	if err == nil || isAnswer(err) {
		return err
	}
	advice := ""
	switch {
	case isPooled(err):
		advice = "a pooler such as pgbouncer gives each transaction another connection: pgx needs " +
			"default_query_exec_mode=exec in its connection string: "
	case isMoved(err):
		advice = "the file was moved or removed while the journal was open. Before the next run, put it into its place, " +
			"or name its new place: "
	case isBusy(err):
		advice = "another program has locked the file for too long, such as a browser for databases, a backup or a frozen " +
			"run. End that program, and run the job again: "
	}
	if file != "" {
		file += ": "
	}
	return fmt.Errorf("sqlpayvault: %s%s%w", file, advice, err)
}

// orRunning adds ErrRunning to err if a statement did not end in time, because a frozen run may hold a lock. It returns
// any other error unchanged. It also returns err unchanged if ctx has ended.
func orRunning(ctx context.Context, err error) error {
	if ctx.Err() == nil && (isBusy(err) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%w, or the database does not answer: %w", ErrRunning, err)
	}
	return err
}

// isBusy reports whether SQLite has failed to get the lock of a file in time.
func isBusy(err error) bool {
	locked, ok := errors.AsType[*sqlite.Error](err)
	return ok && locked.Code()&0xff == sqlite3.SQLITE_BUSY
}

// tables has the statements by which [Open] and [New] make the tables. If your program has no right to make tables, run
// these statements before you start the program, without the word {schema}. in them.
//
//nolint:gochecknoglobals // never changed
var tables = [...]string{
	`CREATE TABLE IF NOT EXISTS {schema}.payvault_jobs (
		job TEXT PRIMARY KEY, holder TEXT NOT NULL, beat BIGINT NOT NULL, lease BIGINT NOT NULL)`, // lease in ms
	`CREATE TABLE IF NOT EXISTS {schema}.payvault_batches (
		job TEXT NOT NULL, batch BIGINT NOT NULL, status TEXT NOT NULL, run TEXT NOT NULL, number BIGINT NOT NULL,
		cards BIGINT NOT NULL DEFAULT 0, request_id TEXT NOT NULL DEFAULT '', status_code BIGINT NOT NULL DEFAULT 0,
		code TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', fields TEXT NOT NULL DEFAULT '',
		PRIMARY KEY (job, batch))`,
}

// createTables makes the tables if they do not exist. It returns an error for tables of another version of this
// package.
func (j *Journal) createTables(ctx context.Context) error {
	var err error
	for range 5 { // Postgres returns an error if another process makes the same table at the same time
		if err = j.checkTables(ctx); err == nil || isBusy(err) {
			break
		}
		for _, table := range tables {
			if _, err = j.exec(ctx, j.db, table); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("sqlpayvault: create tables: %w", orRunning(ctx, err))
	}
	if err = j.checkTables(ctx); err != nil {
		return fmt.Errorf("sqlpayvault: payvault_jobs and payvault_batches are of another version of this package. "+
			"Finish their jobs with that version and then drop both tables, or keep new jobs in another file, database "+
			"or schema: %w", err)
	}
	return nil
}

// checkTables returns an error unless both tables have all columns.
func (j *Journal) checkTables(ctx context.Context) error {
	_, err := j.exec(ctx, j.db, `SELECT j.job, holder, beat, lease, b.job, batch, status, run, number, cards,
		request_id, status_code, code, message, fields FROM {schema}.payvault_jobs j, {schema}.payvault_batches b
		WHERE 1 = 0`)
	return err
}
