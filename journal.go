package payvault

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Journal is told of each batch of a [AccountUpdaterService.SubmitAll] before it is sent and after it is decided,
// so that a later run of the same job sends no batch twice, even if this one is killed. Package sqlpayvault, a
// module of its own, keeps one in SQLite or Postgres. One journal keeps many jobs.
//
// Its methods are called concurrently, for different batches; what they write has to outlive the process. The first
// error of either ends the walk: nothing more is sent. A batch after the last one stands for the end of the stream: it
// is not begun, and its outcome is [BatchEnd].
type Journal interface {
	// Begin records that a batch is about to be sent, and returns what was recorded before. It records nothing if
	// the batch is recorded already, but for one that ended as [BatchNotSent]: that counts as not recorded. The context
	// ends when nothing more is to be sent. A Begin that fails should record nothing: what it has recorded all the same
	// is of unknown outcome for good. A batch that has to wait, since the service limits the rate, ends as BatchNotSent
	// and is begun again when its turn has come.
	Begin(ctx context.Context, job string, batch int) (BatchState, error)
	// End records what came of a batch, in place of what was recorded before. Its context does not end with that of
	// the walk. It may also be called between two runs, to record what somebody has found out about a batch of unknown
	// outcome. [BatchEnd] is recorded only if nothing is recorded of its batch and of those after it, but for that same
	// end and for [BatchNotSent]: else it is an error, since an earlier run saw more batches.
	End(ctx context.Context, job string, batch int, outcome BatchOutcome) error
}

// BatchState is what a journal knows of a batch; the zero value if it has not been begun.
type BatchState struct {
	Begun   bool          // it may have been sent, so it is not sent again
	Outcome *BatchOutcome // what came of it; nil if it was begun and never ended, and its outcome is unknown
}

// BatchOutcome is what came of a batch. It holds nothing of the cards.
type BatchOutcome struct {
	Status     BatchStatus // what became of it
	Cards      int         // how many the batch has; 0 if that is not known
	RequestID  string      // if it was accepted; cleared if it may be a card number
	StatusCode int         // HTTP status of the error; 0 if no response arrived
	Code       string      // platform code of the error
	// What went wrong, as the text of the error has it after the code: what the service said, of fields too, or what
	// else it was. It is on one line, and cleared as errors are. In an Earlier error it is in the text only, not in
	// Message, Detail or Fields; nor does that match a cause, such as [ErrMalformedResponse].
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
	BatchEnd      BatchStatus = "end"      // the stream ended before it
)

// cardNumber may be one: 12 digits in a row, groups of digits as on a card, or 12 digits in a text without letters. A
// UUID seldom has any.
var cardNumber = regexp.MustCompile(
	`\pN{12,}|(?:\pN{4}[^\pL\pN]+){3,}\pN{3,}|\pN{4}[^\pL\pN]+\pN{6}[^\pL\pN]+\pN{4,}|^(?:\PL*\pN){12}\PL*$`)

// outcomeOf gives what a journal keeps.
func outcomeOf(b *AccountUpdaterBatch) BatchOutcome {
	o := BatchOutcome{Status: b.Status, Cards: b.End - b.Start}
	o.RequestID = oneLine(cardNumber.ReplaceAllString(b.RequestID, redacted))
	if e, failed := errors.AsType[*Error](b.Err); failed {
		o.StatusCode, o.Code = e.StatusCode, oneLine(e.Code)
		o.Message = lineOf(strings.Join(e.reason(nil), ": "), longReason)
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

// check compares what is known of a batch with how many cards it has in this run.
func (s BatchState) check(cards int) error {
	if s.Outcome == nil {
		return nil
	}
	if s.Outcome.Status == BatchEnd {
		return fmt.Errorf("%w: an earlier run saw fewer batches", ErrOtherCards)
	}
	if s.Outcome.Cards > 0 && s.Outcome.Cards != cards {
		return fmt.Errorf("%w: an earlier run saw another number of them in the batch", ErrOtherCards)
	}
	return nil
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
