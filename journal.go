package payvault

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"regexp"
	"strconv"
)

// Journal records each batch of a [AccountUpdaterService.SubmitAll] before it is sent and after it is decided. A later
// run of the same job then sends no batch twice, even if this one is killed. Package sqlpayvault, a module of its own,
// keeps a journal in SQLite or Postgres. One journal keeps many jobs.
//
// Its methods are called concurrently, for different batches. What they write has to outlive the process. The first
// error of either method ends the walk: nothing more is sent.
type Journal interface {
	// Begin records that a batch is about to be sent, and returns what was recorded before. If the batch is recorded
	// already, Begin changes nothing. The exception is a batch that ended as [BatchNotSent]: it counts as not recorded.
	// The context ends when nothing more is to be sent. A Begin that fails should record nothing, since a batch that is
	// begun and never ended is of unknown outcome for good. A batch that waits for the rate limit ends as BatchNotSent,
	// and is begun again when its turn has come.
	Begin(ctx context.Context, job string, batch int) (BatchState, error)
	// End records the outcome of a batch and replaces what was recorded before. Its context does not end with the
	// context of the walk.
	End(ctx context.Context, job string, batch int, outcome BatchOutcome) error
}

// JobName names a job by its cards: it returns the SHA-256 of everything that cards holds, such as a file. So a file
// that has changed is another job, and all of its cards are sent. Add what else tells jobs apart, such as the merchant.
//
// Keep the name as private as the cards: somebody who has it can find the numbers of a small file by trying all of
// them.
func JobName(cards io.Reader) (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, cards); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// BatchState is what a journal knows of a batch; the zero value if it has not been begun.
type BatchState struct {
	Begun   bool          // it may have been sent, so it is not sent again
	Outcome *BatchOutcome // what came of it; nil if it was begun and never ended, and its outcome is unknown
}

// BatchOutcome is what came of a batch. It holds nothing of the cards.
type BatchOutcome struct {
	Status     BatchStatus // what became of it
	Cards      int         // how many were sent; 0 if that is not known
	RequestID  string      // if it was accepted; cleared if it may be a card number
	StatusCode int         // HTTP status of the error; 0 if no response arrived
	Code       string      // platform code of the error
	// What went wrong, as the text of the error has it after the code: what the service said, of fields too, or what
	// else it was. It is on one line, and cleared as errors are. In an error from the journal it is in the
	// text only, not in Message, Detail or Fields; nor does that error match a cause, such as [ErrMalformedResponse].
	Message string
}

// BatchStatus is what became of a batch.
type BatchStatus string

// The statuses of batches. All but BatchNotSent are final: later runs do not send the batch.
const (
	BatchAccepted BatchStatus = "accepted" // the service has it
	BatchRefused  BatchStatus = "refused"  // the service has decided against it
	BatchUnknown  BatchStatus = "unknown"  // it was sent, and no usable answer came
	BatchNotSent  BatchStatus = "not sent" // not performed: not sent, or turned away with 429, 401 or 403
)

// cardNumber may be one: 12 digits in a row, groups of digits as on a card, or 12 digits in a text without letters. A
// UUID seldom has any.
var cardNumber = regexp.MustCompile(
	`\pN{12,}|(?:\pN{4}[^\pL\pN]+){3,}\pN{3,}|\pN{4}[^\pL\pN]+\pN{6}[^\pL\pN]+\pN{4,}|^(?:\PL*\pN){12}\PL*$`)

// outcomeOf gives what a journal keeps.
func outcomeOf(b *AccountUpdaterBatch) BatchOutcome {
	o := BatchOutcome{Status: b.Status, Cards: b.sent()}
	o.RequestID = oneLine(cardNumber.ReplaceAllString(b.RequestID, redacted))
	if e, failed := errors.AsType[*Error](b.Err); failed {
		o.StatusCode, o.Code = e.StatusCode, oneLine(e.Code)
		o.Message = lineOf(e.reason(), longCause)
	}
	return o
}

func statusOf(err error) BatchStatus {
	e, failed := errors.AsType[*Error](err)
	switch {
	case !failed:
		return BatchAccepted
	case e.Delivery == Unknown:
		return BatchUnknown
	case e.Delivery == NotSent, SafeToRetry(e), errors.Is(e, ErrUnauthorized), errors.Is(e, ErrForbidden):
		return BatchNotSent
	}
	return BatchRefused
}

// otherCards is the problem of a job that has another number of cards in a batch than in an earlier run.
const otherCards = "had another number of cards in an earlier run, in batch"

// check returns an error if an earlier run has sent another number of cards in the batch. It will each time.
func (s BatchState) check(batch, cards int) error {
	if s.Outcome == nil || s.Outcome.Cards == 0 || s.Outcome.Cards == cards {
		return nil
	}
	p := problems{"Job": {otherCards + " " + strconv.Itoa(batch)}}
	return p.err(OpAccountUpdaterSubmit)
}

// result gives what an earlier run would have yielded.
func (s BatchState) result() (status BatchStatus, requestID string, err error) {
	o := BatchOutcome{Message: "an earlier run began the batch and did not end it"}
	if s.Outcome != nil {
		o = *s.Outcome
	}
	switch o.Status {
	case BatchAccepted:
		return o.Status, o.RequestID, nil
	case BatchRefused:
	default:
		o.Status = BatchUnknown
	}
	return o.Status, "", earlierError(OpAccountUpdaterSubmit, o)
}
