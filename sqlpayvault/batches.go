package sqlpayvault

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"

	"example.com/payvault"
)

// Batch is a batch of a job.
type Batch struct {
	Job     string
	Index   int                   // zero-based number of the batch
	Start   int                   // position of the first card in the stream; the batch has up to 100 cards
	Outcome payvault.BatchOutcome // Status is BatchUnknown if the batch was begun and not ended
}

// outcomeColumns are the columns of an outcome, in the order of outcomeOf. outcomeValues are the values of the columns,
// as parameters from $4 on.
const (
	outcomeColumns = `status, cards, request_id, status_code, code, message, fields`
	outcomeValues  = `CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS TEXT), CAST($7 AS BIGINT), CAST($8 AS TEXT),
	CAST($9 AS TEXT), CAST($10 AS TEXT)`
)

// outcomeOf returns pointers to the fields of an outcome, for Scan.
func outcomeOf(o *payvault.BatchOutcome) []any {
	return []any{
		&o.Status, &o.Cards, &o.RequestID, &o.StatusCode, &o.Code, &o.Message, scanFields{&o.Fields},
	}
}

// scanFields scans the column "fields", which has a JSON object of messages by field, or "" if there are no messages.
type scanFields struct{ to *map[string][]string }

func (s scanFields) Scan(value any) error {
	text, ok := value.(string)
	switch {
	case !ok:
		return fmt.Errorf("the column fields is a %T", value)
	case text == "":
		*s.to = nil
		return nil
	}
	return json.Unmarshal([]byte(text), s.to)
}

// fields returns the messages by field as a JSON object, or "" if there are none.
func fields(of map[string][]string) string {
	if len(of) == 0 {
		return ""
	}
	text, _ := json.Marshal(of) //nolint:errchkjson // a map of texts cannot fail
	return string(text)
}

// Unresolved returns the batches of a job that are of unknown outcome, ordered by Index. No run sends these batches
// again, so somebody has to look up each of them. While a run of the job is at work, the result also has the batches
// that the run has in flight.
func (j *Journal) Unresolved(ctx context.Context, job string) ([]Batch, error) {
	return j.list(ctx, `job = $1 AND status IN ('`+begun+`', '`+string(payvault.BatchUnknown)+`')`, job)
}

// Refused returns the batches of a job with the status [payvault.BatchRefused], ordered by Index.
func (j *Journal) Refused(ctx context.Context, job string) ([]Batch, error) {
	return j.list(ctx, `job = $1 AND status = '`+string(payvault.BatchRefused)+`'`, job)
}

// Find returns the batches that have this request ID, from all jobs, ordered by Job and Index. If the ID is empty, Find
// returns none. Find reads the whole journal.
func (j *Journal) Find(ctx context.Context, requestID string) ([]Batch, error) {
	return j.list(ctx, `request_id = $1 AND request_id <> ''`, requestID)
}

// list returns the batches that meet a condition, ordered by job and Index.
func (j *Journal) list(ctx context.Context, condition string, args ...any) ([]Batch, error) {
	return query(ctx, j, `SELECT job, batch, `+outcomeColumns+` FROM {schema}.payvault_batches
		WHERE `+condition+` ORDER BY job, batch`, func(b *Batch, scan func(...any) error) error {
		err := scan(append([]any{&b.Job, &b.Index}, outcomeOf(&b.Outcome)...)...)
		if b.Outcome.Status == begun {
			b.Outcome.Status, b.Outcome.Message = payvault.BatchUnknown, "it was begun and not ended"
		}
		b.Start = b.Index * payvault.MaxAccountUpdaterCards
		return err
	}, args...)
}

// Jobs returns the names of the jobs that have a batch, in the sort order of the database.
func (j *Journal) Jobs(ctx context.Context) ([]string, error) {
	return query(ctx, j, `SELECT DISTINCT job FROM {schema}.payvault_batches ORDER BY job`,
		func(job *string, scan func(...any) error) error { return scan(job) })
}

// ID returns the identity of the journal. All processes that open the same journal get the same ID, also after the
// journal was moved. The first call makes the ID: the name of the file or schema, a space and a random text.
func (j *Journal) ID(ctx context.Context) (string, error) {
	if err := j.enter(); err != nil {
		return "", err
	}
	defer j.working.Done()
	name := j.schema
	if j.file != "" {
		name = filepath.Base(j.file)
	}
	// The row whose job is "" has the ID in the column holder, so that the ID needs no table of its own. No lease can have
	// this row, because claim refuses a job without a name.
	_, err := j.change(ctx, `INSERT INTO {schema}.payvault_jobs (job, holder, beat, lease)
		SELECT '', CAST($1 AS TEXT), 0, 0 FROM {durable} WHERE 1 = 1 ON CONFLICT (job) DO NOTHING`, name+" "+rand.Text())
	if err != nil {
		return "", err
	}
	var id string
	row := j.db.QueryRowContext(ctx, j.names.Replace(`SELECT holder FROM {schema}.payvault_jobs WHERE job = ''`))
	if err := row.Scan(&id); err != nil {
		return "", describe(j.file, err)
	}
	return id, nil
}

// Count returns the number of batches of a job for each status. A batch that was begun and not ended counts as
// BatchUnknown.
func (j *Journal) Count(ctx context.Context, job string) (map[payvault.BatchStatus]int, error) {
	type count struct {
		status payvault.BatchStatus
		n      int
	}
	counts, err := query(ctx, j, `SELECT status, count(*) FROM {schema}.payvault_batches WHERE job = $1 GROUP BY status`,
		func(c *count, scan func(...any) error) error { return scan(&c.status, &c.n) }, job)
	if err != nil {
		return nil, err
	}
	total := map[payvault.BatchStatus]int{}
	for _, c := range counts {
		if c.status == begun {
			c.status = payvault.BatchUnknown
		}
		total[c.status] += c.n
	}
	return total, nil
}

// query runs a query and returns its rows. The function read turns a row into a T.
func query[T any](
	ctx context.Context, j *Journal, statement string, read func(row *T, scan func(...any) error) error, args ...any,
) (all []T, err error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.working.Done()
	rows, err := j.db.QueryContext(ctx, j.names.Replace(statement), args...)
	if err != nil {
		return nil, describe(j.file, err)
	}
	defer rows.Close() //nolint:errcheck // Err has it
	for rows.Next() {
		var row T
		if err := read(&row, rows.Scan); err != nil {
			return nil, describe(j.file, err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		return nil, describe(j.file, err)
	}
	return all, nil
}

// Resolve records the outcome of a batch after somebody has looked up the batch at the service. The batch must be
// refused or of unknown outcome. Otherwise Resolve fails, unless the batch has exactly the given outcome already. The
// new status is BatchNotSent, BatchAccepted or BatchRefused. After BatchNotSent the next run sends the batch. After the
// other two no run sends it. Resolve does not change the recorded number of cards.
//
// End all runs of the job before you call Resolve. Resolve takes the lease of the job, unless the journal is opened
// [WithoutLease]. If another run has the lease, Resolve fails with [ErrRunning]. If that run was killed, Resolve waits
// for the end of its lease. Resolve does not notice a call of SubmitAll with this Journal, or a run whose journal is
// opened WithoutLease. If this Journal is opened WithoutLease, Resolve notices no run at all.
func (j *Journal) Resolve(ctx context.Context, job string, batch int, outcome payvault.BatchOutcome) error {
	switch outcome.Status {
	case payvault.BatchAccepted, payvault.BatchRefused, payvault.BatchNotSent:
	default:
		return fmt.Errorf("sqlpayvault: a batch cannot be resolved as %q", outcome.Status)
	}
	if err := j.enter(); err != nil {
		return err
	}
	defer j.working.Done()
	j.disclaim(job) // another run may have taken over the job
	if err := j.claim(ctx, job); err != nil {
		return err
	}
	found, err := j.change(ctx, `UPDATE {schema}.payvault_batches SET status = $3, request_id = $4, status_code = $5,
		code = $6, message = $7, fields = $8 FROM {durable} WHERE job = $1 AND batch = $2 AND status IN
		('`+begun+`', '`+string(payvault.BatchUnknown)+`', '`+string(payvault.BatchRefused)+`')`, job, batch,
		string(outcome.Status), outcome.RequestID, outcome.StatusCode, outcome.Code, outcome.Message, fields(outcome.Fields))
	if err != nil || found {
		return err
	}
	// If the answer of an UPDATE was lost, the UPDATE was repeated. Then it may have found no row, because the batch
	// already had the outcome.
	isResolved, err := j.hasOutcome(ctx, job, batch, outcome)
	if err == nil && !isResolved {
		err = fmt.Errorf("sqlpayvault: batch %d of the job is neither of unknown outcome nor refused", batch)
	}
	return err
}

// hasOutcome reports whether a batch is recorded with this outcome. It does not compare the number of cards.
func (j *Journal) hasOutcome(ctx context.Context, job string, batch int, want payvault.BatchOutcome) (bool, error) {
	batches, err := j.list(ctx, `job = $1 AND batch = $2`, job, batch)
	if err != nil || len(batches) == 0 {
		return false, err
	}
	got := batches[0].Outcome
	isSame := got.Status == want.Status && got.RequestID == want.RequestID && got.StatusCode == want.StatusCode &&
		got.Code == want.Code && got.Message == want.Message && fields(got.Fields) == fields(want.Fields)
	return isSame, nil
}
