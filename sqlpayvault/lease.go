package sqlpayvault

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"
)

// holding is the state of a lease. If beat does not change for the time of the lease, the holder counts as dead. A run
// that waits measures this time by its own clock, so the clocks of two machines are never compared.
type holding struct {
	holder string // name of the run; "" if no run has the lease
	beat   int64  // counter that each heartbeat increases
	lease  int64  // time of the lease, in milliseconds
}

// beat writes heartbeats for all leases until Close. It ignores an error, because the next heartbeat comes soon.
func (j *Journal) beat() {
	ticker := time.NewTicker(j.lease / 5)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			_, _ = j.exec(ctx, j.db, `UPDATE {schema}.payvault_jobs SET beat = beat + 1 WHERE holder = $1`, j.run)
			cancel()
		case <-j.closing:
			return
		}
	}
}

// claim takes the lease of a job, unless this journal has the lease already or needs none. It refuses a job without a
// name, because the row whose name is empty has the ID of the journal.
func (j *Journal) claim(ctx context.Context, job string) error {
	if job == "" {
		return errors.New("sqlpayvault: the job has no name")
	}
	if j.shared || j.holds(job) {
		return nil
	}
	select {
	case j.claiming <- struct{}{}:
		defer func() { <-j.claiming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if j.holds(job) { // another call has taken the lease in the meantime
		return nil
	}
	if err := j.take(ctx, job); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return orRunning(ctx, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held[job] = true
	return nil
}

// holds reports whether this run has the lease of a job.
func (j *Journal) holds(job string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.held[job]
}

// disclaim forgets that this journal has the lease of a job, so that the next claim looks into the database again.
func (j *Journal) disclaim(job string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.held, job)
}

// take takes the lease of a job when it is free, or when its holder has written no heartbeat for the time of the lease.
// After two heartbeats of the holder, take returns ErrRunning. One heartbeat is not enough: the database may perform
// the last statement of a process after the process was killed.
func (j *Journal) take(ctx context.Context, job string) error {
	var last holding
	var dead <-chan time.Time
	for signs := -1; ; { // -1, because the first read of the lease counts as a change
		now, err := j.holding(ctx, job)
		if err != nil {
			return err
		}
		lease := time.Duration(now.lease) * time.Millisecond
		switch {
		case now.holder == j.run:
			return nil
		case now.holder == "":
			if err := j.takeFrom(ctx, job, now); err != nil {
				return err
			}
			continue // read whether this run has got the lease
		case now != last:
			last, dead = now, time.After(lease)
			signs++
			if signs == 0 && j.logger != nil {
				j.logger.InfoContext(ctx, "sqlpayvault: another run has the lease of the job: waiting for its end",
					slog.Duration("lease", lease))
			}
		}
		if signs == 2 {
			return ErrRunning
		}
		select {
		case <-dead:
			err = j.takeFrom(ctx, job, now)
		case <-time.After(min(lease/10, pause)):
		case <-j.closing:
			err = ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// takeFrom takes the lease of a job if its holder and its beat are still those of the argument from.
func (j *Journal) takeFrom(ctx context.Context, job string, from holding) error {
	_, err := j.change(ctx, `INSERT INTO {schema}.payvault_jobs AS known (job, holder, beat, lease)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), 1, CAST($3 AS BIGINT) FROM {durable} WHERE 1 = 1
		ON CONFLICT (job) DO UPDATE
		SET holder = excluded.holder, beat = known.beat + 1, lease = excluded.lease
		WHERE known.holder = $4 AND known.beat = $5`,
		job, j.run, j.lease.Milliseconds(), from.holder, from.beat)
	return err
}

// holding reads the lease of a job. A job without a row has no holder.
func (j *Journal) holding(ctx context.Context, job string) (h holding, err error) {
	err = retry(ctx, time.Now().Add(timeout), func(ctx context.Context) error {
		row := j.db.QueryRowContext(ctx,
			j.names.Replace(`SELECT holder, beat, lease FROM {schema}.payvault_jobs WHERE job = $1`), job)
		err := row.Scan(&h.holder, &h.beat, &h.lease)
		if errors.Is(err, sql.ErrNoRows) {
			h, err = holding{}, nil
		}
		return err
	})
	return h, describe(j.file, err)
}
