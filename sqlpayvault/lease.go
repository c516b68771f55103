package sqlpayvault

import (
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

// holding is who holds a job, and the number of its signs of life so far: a run that does not count on is dead. No
// clocks are compared.
type holding struct {
	holder string
	beat   int64
}

// claim takes the lease of a job, unless this journal has it.
func (j *Journal) claim(ctx context.Context, job string) error {
	j.mu.Lock()
	c, known := j.claims[job]
	if !known {
		c = &claim{done: make(chan struct{})}
		j.claims[job] = c
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
	look := time.NewTicker(min(j.lease/10, 100*time.Millisecond))
	defer look.Stop()
	dead := time.After(j.lease)
	var first holding
	for waited := false; ; waited = true {
		free, err := j.changed(ctx, `INSERT INTO payvault_jobs (job, holder, beat) VALUES ($1, $2, 1)
			ON CONFLICT (job) DO UPDATE SET holder = excluded.holder, beat = payvault_jobs.beat + 1
			WHERE payvault_jobs.holder = ''`, job, j.run)
		if free || err != nil {
			return err
		}
		var now holding
		row := j.db.QueryRowContext(ctx, `SELECT holder, beat FROM payvault_jobs WHERE job = $1`, job)
		if err := row.Scan(&now.holder, &now.beat); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if !waited {
			first = now
		}
		if now != first && now.holder != "" {
			return ErrRunning
		}
		select {
		case <-look.C:
		case <-dead:
			taken, err := j.changed(ctx, `UPDATE payvault_jobs SET holder = $1, beat = beat + 1
				WHERE job = $2 AND holder = $3 AND beat = $4`, j.run, job, first.holder, first.beat)
			if err == nil && !taken {
				err = ErrRunning
			}
			return err
		case <-j.closed:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// changed reports whether a statement has changed a row.
func (j *Journal) changed(ctx context.Context, statement string, args ...any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := j.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// beat gives a sign of life. One that fails is followed by others.
func (j *Journal) beat() {
	_, _ = j.changed(context.Background(), `UPDATE payvault_jobs SET beat = beat + 1 WHERE holder = $1`, j.run)
}
