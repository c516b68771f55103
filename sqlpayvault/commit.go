package sqlpayvault

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/payvault"
)

// op is a Begin, or an End if it has an outcome.
type op struct {
	key

	outcome *payvault.BatchOutcome
	state   payvault.BatchState // what Begin returns
	err     error
	done    chan struct{} // closed when it is committed, or has failed
}

// final reports whether it is an End that no Begin follows. After another one a run may have begun the batch again,
// and to record it once more would undo that.
func (o *op) final() bool { return o.outcome != nil && o.outcome.Status != payvault.BatchNotSent }

// begun is the status of a batch that has not ended.
const begun = "begun"

// most is how many operations share a transaction.
const most = 256

// do has an operation committed. Once it is handed over it is waited for, whatever becomes of the context.
func (j *Journal) do(ctx context.Context, o *op) error {
	if o.job == "" || text(o.job) != o.job { // it would fail those that share the transaction
		return errJobName
	}
	select {
	case j.ops <- o:
		<-o.done
		return o.err
	case <-j.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work commits together what has come while the last transaction was being committed, or nothing as a sign of life.
func (j *Journal) work() {
	var due <-chan time.Time
	if !j.shared {
		ticker := time.NewTicker(j.lease / 5)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case o := <-j.ops:
			j.commit(j.group(o))
		case <-due:
			j.commit(j.group())
		case <-j.closed:
			return
		}
	}
}

// group adds all that wait.
func (j *Journal) group(ops ...*op) []*op {
	for len(ops) < most {
		select {
		case o := <-j.ops:
			ops = append(ops, o)
		default:
			return ops
		}
	}
	return ops
}

// commit commits operations together. What is known of a batch for good is tried again until the time is over: the
// connection may be all that was lost, and nobody should have to look up that batch.
func (j *Journal) commit(ops []*op) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var failed error
	for {
		err := j.apply(ctx, ops)
		failed = cmp.Or(failed, err)
		again := err != nil && ctx.Err() == nil
		ops = slices.DeleteFunc(ops, func(o *op) bool {
			if again && o.final() {
				return false
			}
			if err != nil {
				o.err = fmt.Errorf("sqlpayvault: %w", failed)
			}
			close(o.done)
			return true
		})
		if len(ops) == 0 {
			return
		}
		<-time.After(pause)
	}
}

// transaction begins one that does not fail for what others do at the same time, whatever isolation is the default.
func (j *Journal) transaction(ctx context.Context) (*sql.Tx, error) {
	return j.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
}

func (j *Journal) apply(ctx context.Context, ops []*op) error {
	tx, err := j.transaction(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing, and before it the first error counts
	held, err := j.held(ctx, tx)
	if err != nil {
		return err
	}
	var allowed []*op
	for _, o := range ops {
		switch {
		case o.outcome != nil:
		case !j.shared && !held[o.job]:
			o.err = ErrRunning
			j.disclaim(o.job)
		}
		if o.err == nil {
			allowed = append(allowed, o)
		}
	}
	// All transactions lock rows in one order. In the order of a map, those of two journals wait for each other.
	slices.SortStableFunc(allowed, func(a, b *op) int {
		return cmp.Or(strings.Compare(a.job, b.job), cmp.Compare(a.batch, b.batch))
	})
	for len(allowed) > 0 {
		n := alike(allowed)
		write := begin
		if allowed[0].outcome != nil {
			write = end
		}
		if err := write(ctx, tx, allowed[:n]); err != nil {
			return err
		}
		allowed = allowed[n:]
	}
	return tx.Commit()
}

// alike counts the operations that one statement can do: of one kind, and none of a batch that another is of.
func alike(ops []*op) int {
	for i := 1; i < len(ops); i++ {
		if (ops[i].outcome == nil) != (ops[0].outcome == nil) || ops[i].key == ops[i-1].key {
			return i
		}
	}
	return len(ops)
}

// held gives a sign of life, and the jobs whose leases the run still has. No other run can take them over before the
// transaction ends.
func (j *Journal) held(ctx context.Context, tx *sql.Tx) (map[string]bool, error) {
	if j.shared {
		return nil, nil
	}
	found, err := tx.QueryContext(ctx, `UPDATE payvault_jobs SET beat = beat + 1 WHERE holder = $1 RETURNING job`, j.run)
	if err != nil {
		return nil, err
	}
	defer found.Close() //nolint:errcheck // Err has it
	jobs := map[string]bool{}
	for found.Next() {
		var job string
		if err := found.Scan(&job); err != nil {
			return nil, err
		}
		jobs[job] = true
	}
	return jobs, found.Err()
}

// begin inserts the batches that are not there, or were not sent, and reads the others.
func begin(ctx context.Context, tx *sql.Tx, ops []*op) error {
	insert, known := &rows{}, make(map[key]*op, len(ops))
	for _, o := range ops {
		insert.add(o.job, o.batch, begun)
		known[o.key] = o
	}
	//nolint:gosec // what is put together are the numbers of parameters
	found, err := tx.QueryContext(ctx, `INSERT INTO payvault_batches (job, batch, status) VALUES `+insert.values()+`
		ON CONFLICT (job, batch) DO UPDATE
		SET status = excluded.status, cards = 0, request_id = '', status_code = 0, code = '', message = ''
		WHERE payvault_batches.status = '`+string(payvault.BatchNotSent)+`' RETURNING job, batch`, insert.args...)
	if err != nil {
		return err
	}
	defer found.Close() //nolint:errcheck // Err has it
	for found.Next() {
		var k key
		if err := found.Scan(&k.job, &k.batch); err != nil {
			return err
		}
		delete(known, k)
	}
	if err := found.Err(); err != nil {
		return err
	}
	return read(ctx, tx, known)
}

// read fills in what is known of batches.
func read(ctx context.Context, tx *sql.Tx, ops map[key]*op) error {
	if len(ops) == 0 {
		return nil
	}
	var where []string
	var args []any
	for k := range ops {
		args = append(args, k.job, k.batch)
		where = append(where, fmt.Sprintf("job = $%d AND batch = $%d", len(args)-1, len(args)))
	}
	//nolint:gosec // as above
	found, err := tx.QueryContext(ctx, `SELECT job, batch, status, cards, request_id, status_code, code, message
		FROM payvault_batches WHERE `+strings.Join(where, " OR "), args...)
	if err != nil {
		return err
	}
	defer found.Close() //nolint:errcheck // Err has it
	for found.Next() {
		var k key
		var b payvault.BatchOutcome
		err := found.Scan(&k.job, &k.batch, &b.Status, &b.Cards, &b.RequestID, &b.StatusCode, &b.Code, &b.Message)
		if err != nil {
			return err
		}
		switch ops[k].state.Begun = true; {
		case b.Status == begun:
		case isStatus(b.Status):
			ops[k].state.Outcome = &b
		default: // which somebody has written
			ops[k].err = errStatus(b.Status)
		}
	}
	return found.Err()
}

// end records outcomes.
func end(ctx context.Context, tx *sql.Tx, ops []*op) error {
	upsert := &rows{}
	for _, o := range ops {
		b := o.outcome
		upsert.add(o.job, o.batch, text(string(b.Status)), b.Cards, text(b.RequestID), b.StatusCode, text(b.Code),
			text(b.Message))
	}
	//nolint:gosec // as above
	_, err := tx.ExecContext(ctx, `INSERT INTO payvault_batches
		(job, batch, status, cards, request_id, status_code, code, message) VALUES `+upsert.values()+`
		ON CONFLICT (job, batch) DO UPDATE SET status = excluded.status, cards = excluded.cards,
		request_id = excluded.request_id, status_code = excluded.status_code, code = excluded.code,
		message = excluded.message`,
		upsert.args...)
	return err
}

// text leaves out what Postgres takes in no text.
func text(s string) string { return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "") }

// rows are the rows of an INSERT.
type rows struct {
	text strings.Builder
	args []any
}

func (r *rows) add(values ...any) {
	separator := ", ("
	if len(r.args) == 0 {
		separator = "("
	}
	for _, value := range values {
		r.args = append(r.args, value)
		fmt.Fprintf(&r.text, "%s$%d", separator, len(r.args))
		separator = ", "
	}
	r.text.WriteString(")")
}

func (r *rows) values() string { return r.text.String() }

// createTables makes the tables. Others may do so at the same time, which Postgres reports as an error.
func createTables(ctx context.Context, db *sql.DB) (err error) {
	for range 3 {
		if _, err = db.ExecContext(ctx, `SELECT 1 FROM payvault_jobs, payvault_batches WHERE 1 = 0`); err == nil {
			return nil
		}
		for _, table := range []string{
			`CREATE TABLE IF NOT EXISTS payvault_jobs (
				job TEXT PRIMARY KEY, holder TEXT NOT NULL, beat BIGINT NOT NULL, lease BIGINT NOT NULL)`, // in ms
			`CREATE TABLE IF NOT EXISTS payvault_batches (
				job TEXT NOT NULL, batch BIGINT NOT NULL, status TEXT NOT NULL, cards BIGINT NOT NULL DEFAULT 0,
				request_id TEXT NOT NULL DEFAULT '', status_code BIGINT NOT NULL DEFAULT 0,
				code TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', PRIMARY KEY (job, batch))`,
		} {
			if _, err = db.ExecContext(ctx, table); err != nil {
				break
			}
		}
		if err == nil {
			return nil
		}
	}
	return err
}
