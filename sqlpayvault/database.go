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

// try runs a statement about a batch, and repeats it for up to 10 s if it fails. When ctx ends, try stops waiting for a
// connection. It does not cancel a running statement, because nobody would know whether the batch was recorded.
func (j *Journal) try(ctx context.Context, statement func(ctx context.Context) error) error {
	select {
	case j.statements <- struct{}{}:
		defer func() { <-j.statements }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return retry(context.WithoutCancel(ctx), statement)
}

// retry runs a statement until it succeeds, for up to 10 s. It stops at an error that would occur again: ErrRunning, an
// error that a pooler causes, or the error of a damaged file. A failed statement may have been performed, so repeating
// it has to be harmless.
func retry(ctx context.Context, statement func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var first error // later errors may be mere consequences of the first
	for wait := time.Millisecond; ; wait = min(2*wait, pause) {
		err := statement(ctx)
		if err == nil || errors.Is(err, ErrRunning) {
			return err
		}
		if first == nil {
			first = err
		}
		if isPooled(err) || isDamaged(err) {
			return describe(first)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return describe(first)
		}
	}
}

// change runs a statement, and reports whether it has changed a row.
func (j *Journal) change(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	err = retry(ctx, func(ctx context.Context) error {
		result, err := j.db.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		changed = n > 0
		return err
	})
	return changed, err
}

// isPooled reports whether a statement failed because it was prepared on another connection of a pooler.
func isPooled(err error) bool { return strings.Contains(err.Error(), "prepared statement") }

// isDamaged reports whether SQLite has found that a file is damaged or no database.
func isDamaged(err error) bool {
	damaged, ok := errors.AsType[*sqlite.Error](err)
	return ok && (damaged.Code()&0xff == sqlite3.SQLITE_NOTADB || damaged.Code()&0xff == sqlite3.SQLITE_CORRUPT)
}

// describe adds the name of this package to an error of the database. If a pooler causes the error, it also adds
// advice.
func describe(err error) error {
	if isPooled(err) {
		return fmt.Errorf("sqlpayvault: a pooler such as pgbouncer gives each transaction another connection: "+
			"pgx needs default_query_exec_mode=exec in its connection string: %w", err)
	}
	return fmt.Errorf("sqlpayvault: %w", err)
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
// these statements before you start the program.
//
//nolint:gochecknoglobals // never changed
var tables = [...]string{
	`CREATE TABLE IF NOT EXISTS payvault_jobs (
		job TEXT PRIMARY KEY, holder TEXT NOT NULL, beat BIGINT NOT NULL, lease BIGINT NOT NULL)`, // lease in ms
	`CREATE TABLE IF NOT EXISTS payvault_batches (
		job TEXT NOT NULL, batch BIGINT NOT NULL, status TEXT NOT NULL, run TEXT NOT NULL, number BIGINT NOT NULL,
		cards BIGINT NOT NULL DEFAULT 0, request_id TEXT NOT NULL DEFAULT '', status_code BIGINT NOT NULL DEFAULT 0,
		code TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', PRIMARY KEY (job, batch))`,
}

// createTables makes the tables if they do not exist. It returns an error for tables of another version of this
// package.
func createTables(ctx context.Context, db *sql.DB) error {
	var err error
	for range 5 { // Postgres returns an error if another process makes the same table at the same time
		if err = checkTables(ctx, db); err == nil || isBusy(err) {
			break
		}
		for _, table := range tables {
			if _, err = db.ExecContext(ctx, table); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("sqlpayvault: create tables: %w", orRunning(ctx, err))
	}
	if err = checkTables(ctx, db); err != nil {
		return fmt.Errorf("sqlpayvault: payvault_jobs and payvault_batches are of another version of this package. "+
			"Finish their jobs with that version and then drop both tables, or keep new jobs in another file, database "+
			"or schema: %w", err)
	}
	return nil
}

// checkTables returns an error unless both tables have all columns.
func checkTables(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `SELECT j.job, holder, beat, lease, b.job, batch, status, run, number, cards,
		request_id, status_code, code, message FROM payvault_jobs j, payvault_batches b WHERE 1 = 0`)
	return err
}
