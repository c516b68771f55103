package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// The functions of this file run and commit the statements of Begin and End.

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
