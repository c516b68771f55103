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

// retry runs a statement until it succeeds, the deadline has passed, or ctx ends. It stops at an error that would occur
// again: ErrRunning, an error that a pooler causes, or an error about a file that is damaged, was moved, or is in
// another journal mode. A failed statement may have been performed, so repeating it has to be harmless.
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

// exec runs a statement in db, with {schema} and {durable} replaced. It returns the number of changed rows.
func (j *Journal) exec(ctx context.Context, db querier, statement string, args ...any) (changed int64, err error) {
	result, err := db.ExecContext(ctx, j.names.Replace(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// change runs a statement by exec in the database of the journal. If the statement fails, change repeats it for up to
// 10 s, by retry. It reports whether the latest try has changed a row.
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

// isMissing reports whether an error may mean that the database has not found a table or a column of a statement.
// SQLite has only a general code for this, SQLITE_ERROR.
func isMissing(err error) bool {
	if missing, ok := errors.AsType[*sqlite.Error](err); ok {
		return missing.Code() == sqlite3.SQLITE_ERROR
	}
	missing, ok := errors.AsType[interface { // the error of a driver for Postgres
		error
		SQLState() string
	}](err)
	return ok && (missing.SQLState() == "42P01" || missing.SQLState() == "42703") // undefined table, undefined column
}

// describe adds the names of this package and of the SQLite file to an error of the database, and advice if there is
// any. The file is "" for Postgres. describe returns nil, ErrRunning, errMode and errPanic unchanged.
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

// tables has the statements by which [Open] and [New] make the tables. If your program has no right to make tables,
// remove the text "{schema}." from these statements, and run them before you start the program.
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
		if err = j.checkTables(ctx); err == nil {
			return nil
		}
		for i := 0; i < len(tables) && isMissing(err); i++ {
			if _, failed := j.exec(ctx, j.db, tables[i]); failed != nil {
				err = failed
			}
		}
	}
	if isMissing(err) {
		return fmt.Errorf("sqlpayvault: payvault_jobs and payvault_batches are of another version of this package. "+
			"Finish their jobs with that version and then drop both tables, or keep new jobs in another file, database "+
			"or schema: %w", err)
	}
	return describe(j.file, err)
}

// checkTables returns an error unless both tables have all columns.
func (j *Journal) checkTables(ctx context.Context) error {
	_, err := j.exec(ctx, j.db, `SELECT j.job, holder, beat, lease, b.job, batch, status, run, number, cards,
		request_id, status_code, code, message, fields FROM {schema}.payvault_jobs j, {schema}.payvault_batches b
		WHERE 1 = 0`)
	return err
}
