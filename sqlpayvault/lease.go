package sqlpayvault

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"
)

// claim is the lease of a job, taken once for all that wait for it.
type claim struct {
	done chan struct{}
	err  error
}

// holding is who holds a job, the number of its signs of life so far, and after how many milliseconds without another
// it is dead. No clocks are compared.
type holding struct {
	holder      string
	beat, lease int64
}

// claim takes the lease of a job, unless this journal has it.
func (j *Journal) claim(ctx context.Context, job string) error {
	j.mu.Lock()
	if j.over {
		j.mu.Unlock()
		return ErrClosed
	}
	c, known := j.claims[job]
	if !known {
		c = &claim{done: make(chan struct{})}
		j.claims[job] = c
		j.running.Add(1)
		defer j.running.Done()
	}
	j.mu.Unlock()
	if known {
		select {
		case <-c.done:
			return c.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.err = j.take(ctx, job); c.err != nil {
		j.disclaim(job)
	}
	close(c.done)
	return c.err
}

// disclaim forgets a lease that another run has, so that the next Begin asks again.
func (j *Journal) disclaim(job string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.claims, job)
}

// take takes the lease of a job as soon as it is free, or its holder has given no sign of life for long enough.
func (j *Journal) take(ctx context.Context, job string) error {
	var first holding
	var dead <-chan time.Time
	for {
		free, err := j.changed(ctx, `INSERT INTO payvault_jobs (job, holder, beat, lease) VALUES ($1, $2, 1, $3)
			ON CONFLICT (job) DO UPDATE
			SET holder = excluded.holder, beat = payvault_jobs.beat + 1, lease = excluded.lease
			WHERE payvault_jobs.holder = ''`, job, j.run, j.lease.Milliseconds())
		if free || err != nil {
			return err
		}
		now, err := j.holding(ctx, job)
		lease := time.Duration(now.lease) * time.Millisecond
		switch {
		case err != nil:
			return err
		case now.holder == "": // it was given up meanwhile
			continue
		case dead == nil:
			first, dead = now, time.After(lease)
		case now != first:
			return ErrRunning
		}
		select {
		case <-time.After(min(lease/10, 100*time.Millisecond)):
		case <-dead:
			return j.takeOver(ctx, job, first)
		case <-j.closed:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takeOver takes a lease whose holder has given no sign of life since it was looked at.
func (j *Journal) takeOver(ctx context.Context, job string, from holding) error {
	taken, err := j.changed(ctx, `UPDATE payvault_jobs SET holder = $1, beat = beat + 1, lease = $2
		WHERE job = $3 AND holder = $4 AND beat = $5`, j.run, j.lease.Milliseconds(), job, from.holder, from.beat)
	if err == nil && !taken {
		err = ErrRunning
	}
	return err
}

// holding reads who holds a job; nobody does if it is not there.
func (j *Journal) holding(ctx context.Context, job string) (h holding, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	row := j.db.QueryRowContext(ctx, `SELECT holder, beat, lease FROM payvault_jobs WHERE job = $1`, job)
	if err = row.Scan(&h.holder, &h.beat, &h.lease); errors.Is(err, sql.ErrNoRows) {
		return holding{}, nil
	}
	return h, err
}

// changed reports whether a statement has changed a row.
func (j *Journal) changed(ctx context.Context, statement string, args ...any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tx, err := j.transaction(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() //nolint:errcheck // as in apply
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, cmp.Or(err, tx.Commit())
}
