package sqlpayvault

import (
	"context"
	"fmt"

	"example.com/payvault"
)

// Batch is a batch of a job.
type Batch struct {
	Index   int                   // zero-based number of the batch
	Start   int                   // position of the first card in the stream; the batch has up to 100 cards
	Outcome payvault.BatchOutcome // Status is BatchUnknown if the batch was begun and not ended
}

// Unresolved returns the batches of unknown outcome, ordered by Index. No run sends these batches again, so somebody
// has to look up each of them. While a run of the job is at work, the result includes its batches in flight.
func (j *Journal) Unresolved(ctx context.Context, job string) ([]Batch, error) {
	return j.list(ctx, job, begun, string(payvault.BatchUnknown))
}

// Refused returns the batches that the service has refused, ordered by Index.
func (j *Journal) Refused(ctx context.Context, job string) ([]Batch, error) {
	refused := string(payvault.BatchRefused)
	return j.list(ctx, job, refused, refused)
}

// list returns the batches of a job that have one of the two given statuses, ordered by Index.
func (j *Journal) list(ctx context.Context, job, status, or string) (batches []Batch, err error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.working.Done()
	rows, err := j.db.QueryContext(ctx, `SELECT batch, status, cards, request_id, status_code, code, message
		FROM payvault_batches WHERE job = $1 AND status IN ($2, $3) ORDER BY batch`, job, status, or)
	if err != nil {
		return nil, describe(err)
	}
	defer rows.Close() //nolint:errcheck // Err has it
	for rows.Next() {
		var b Batch
		o := &b.Outcome
		err := rows.Scan(&b.Index, &o.Status, &o.Cards, &o.RequestID, &o.StatusCode, &o.Code, &o.Message)
		if err != nil {
			return nil, err
		}
		if o.Status == begun {
			o.Status, o.Message = payvault.BatchUnknown, "it was begun and not ended"
		}
		b.Start = b.Index * payvault.MaxAccountUpdaterCards
		batches = append(batches, b)
	}
	return batches, rows.Err()
}

// Resolve records the outcome of a batch that was of unknown outcome or refused, after somebody has looked it up. With
// BatchNotSent the next run sends the batch. With BatchAccepted or BatchRefused no run sends it. Resolve does not
// change the recorded number of cards.
//
// End all runs of the job before you call Resolve. Resolve takes the lease of the job, and fails with [ErrRunning] if
// another journal has the lease. Resolve does not notice a call of SubmitAll with this journal. If this journal was
// opened [WithoutLease], Resolve notices no run at all.
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
	found, err := j.change(ctx, `UPDATE payvault_batches SET status = $3, request_id = $4, status_code = $5, code = $6,
		message = $7 WHERE job = $1 AND batch = $2 AND status IN ('`+begun+`', '`+string(payvault.BatchUnknown)+`', '`+
		string(payvault.BatchRefused)+`')`, job, batch, string(outcome.Status), outcome.RequestID, outcome.StatusCode,
		outcome.Code, outcome.Message)
	if err == nil && !found {
		err = fmt.Errorf("sqlpayvault: batch %d of the job is neither of unknown outcome nor refused", batch)
	}
	return err
}
