package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// The functions of this file run and commit the statements of Begin and End.

// outage is a time in which the database answers no statement about a batch. It begins when a statement fails, unless
// the database has answered another statement meanwhile. It ends with the first answer.
type outage struct {
	first error
	until time.Time // calls that arrive before this time give up at this time
}

// statement runs the SQL of a Begin or an End in db. It may be called several times. Its errors ErrRunning, errMode and
// errAgain are no failures of the database.
type statement func(ctx context.Context, db querier) error

// write is a statement that waits for its result.
type write struct {
	statement statement
	result    error
	done      chan struct{} // closed when result is set
}

// querier is a transaction, or a database that commits each statement at once.
type querier interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
}

// errPanic is the result of all statements of a group if the driver has panicked. The statements of a group are
// committed together.
var errPanic = errors.New("sqlpayvault: the driver of the database has panicked")

// try runs the statement of a Begin or an End. If the database fails, try repeats the statement for up to 10 s, unless
// the error would occur again. If ctx ends before the turn of the statement comes, try gives up. It does not cancel a
// running statement, because nobody would know whether the batch was recorded.
//
// A commit of SQLite waits for the disk several times. So a call whose turn it is takes the statements of all calls
// that wait, and commits them together.
//
// During an outage all waiting statements give up at the same time. Otherwise each of them would in turn try for 10 s.
// A statement that arrives after that time has 10 s of its own.
func (j *Journal) try(ctx context.Context, run statement) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	arrived := time.Now()
	own := &write{statement: run, done: make(chan struct{})}
	select {
	case j.turns <- struct{}{}:
		defer func() { <-j.turns }()
		deadline, err := j.deadline(arrived)
		if err != nil {
			return err
		}
		j.runGroup(context.WithoutCancel(ctx), deadline, j.joinWaiting(own))
	case j.waiting <- own: // another call runs the statement
		<-own.done
	case <-ctx.Done():
		return ctx.Err()
	}
	return own.result
}

// deadline returns the time at which a call that gets its turn has to give up. Normally this is in 10 s. During an
// outage, a call that arrived before outage.until has to give up at that time. If the time has passed, deadline returns
// the error of the outage.
func (j *Journal) deadline(arrived time.Time) (time.Time, error) {
	o := j.outage.Load()
	switch {
	case o == nil || !arrived.Before(o.until):
		return time.Now().Add(timeout), nil
	case time.Now().Before(o.until):
		return o.until, nil
	}
	return time.Time{}, describe(j.file, o.first)
}

// joinWaiting returns a group: own and the statements of all calls that wait. These calls arrived after own, so the
// deadline of own is right for them too. For Postgres the group is own alone, because Postgres itself joins the commits
// of its connections.
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

// runGroup commits a group of statements, and sets the result of each. If the database fails, runGroup repeats the
// group until the deadline, unless the error would occur again. If no try succeeds, all statements of the group get the
// error. After a panic they get errPanic.
func (j *Journal) runGroup(ctx context.Context, deadline time.Time, group []*write) {
	err := errPanic
	defer func() { // also after a panic, because the other calls of the group wait
		for _, w := range group {
			if err != nil {
				w.result = err
			}
			close(w.done)
		}
	}()
	err = describe(j.file, retry(ctx, deadline, func(ctx context.Context) error {
		answers := j.answers.Load()
		err := j.commit(ctx, group)
		j.noteAnswer(err, j.answers.Load() > answers, deadline)
		return err
	}))
}

// commit runs the statements of a group and commits them: in SQLite all or none of them. In Postgres the group has one
// statement, which needs no transaction around it.
func (j *Journal) commit(ctx context.Context, group []*write) error {
	if j.waiting == nil {
		group[0].result = group[0].statement(ctx, j.db)
		return group[0].result
	}
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

// noteAnswer ends the outage if the database has answered. If the database has failed, noteAnswer begins an outage, or
// extends it to a later deadline. If the database has answered other statements meanwhile, a failure is no outage: the
// failure concerns only one connection or one row.
func (j *Journal) noteAnswer(err error, others bool, deadline time.Time) {
	o := j.outage.Load()
	switch {
	case err == nil || isAnswer(err) || errors.Is(err, errAgain):
		j.answers.Add(1)
		j.outage.Store(nil)
	case !others && (o == nil || o.until.Before(deadline)):
		j.outage.Store(&outage{first: err, until: deadline})
	}
}

// isAnswer reports whether an error is ErrRunning, errMode or errPanic. These are no failures of the database, and a
// statement that ended with one of them is not repeated.
func isAnswer(err error) bool {
	return errors.Is(err, ErrRunning) || errors.Is(err, errMode) || errors.Is(err, errPanic)
}

// repeatLater makes a goroutine run a statement after a Begin or an End has failed. The goroutine repeats the statement
// until the database answers, or until Close. Close then tries again for up to 10 s. So the journal records what
// happened as soon as the database answers again. The statement must do no harm if it takes effect late.
func (j *Journal) repeatLater(run statement) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.later = append(j.later, run)
	if len(j.later) == 1 {
		j.working.Go(j.repeat)
	}
}

// repeat runs the statements of j.later in turn, and puts each one that fails at the end of j.later. It returns when
// none is left, or at Close.
func (j *Journal) repeat() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.later) > 0 && !j.closed {
		run := j.later[0]
		j.mu.Unlock()
		isDone := j.runOnce(run)
		j.mu.Lock()
		j.later = j.later[1:]
		if !isDone {
			j.later = append(j.later, run)
		}
	}
}

// runOnce runs a statement of j.later when its turn comes, and reports whether the statement is done. If the statement
// fails, runOnce waits 100 ms, or until Close. This failure begins no outage.
func (j *Journal) runOnce(run statement) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	j.turns <- struct{}{}
	err := run(ctx, j.db)
	<-j.turns
	j.noteAnswer(err, true, time.Time{})
	if err == nil || isAnswer(err) {
		return true
	}
	select {
	case <-time.After(pause):
	case <-j.closing:
	}
	return false
}
