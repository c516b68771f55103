package payvault

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// The tests of this file are in internal/tests/bulk.

// Journal records each batch of [AccountUpdaterService.SubmitAll] before the batch is sent, and again when the call of
// the batch has ended. So a later run of the same job does not repeat a batch that may have been performed, even if
// this process is killed. Package sqlpayvault, a module of its own, keeps a journal in SQLite or Postgres. One journal
// keeps many jobs.
//
// The methods of a Journal are called concurrently, for different batches. When a method returns, its record has to
// survive the end of the process. After the first error of a method, SubmitAll sends nothing more.
type Journal interface {
	// Begin records that a batch is about to be sent, and returns the earlier record of the batch, or the zero BatchState
	// if there is none. Begin does not change an earlier record. The exception is a batch that ended as [BatchNotSent]: it
	// counts as not recorded.
	//
	// The context ends when SubmitAll will send nothing more. A Begin that fails should record nothing, because the
	// outcome of a batch that is begun and never ended stays unknown.
	//
	// Before a batch waits for another attempt, SubmitAll calls End with BatchNotSent. After the wait it calls Begin
	// again. Once an attempt may have performed the batch, SubmitAll makes neither of these two calls.
	Begin(ctx context.Context, job string, batch int) (BatchState, error)
	// End records the outcome of a batch and replaces the earlier record. The context does not end when the context of
	// SubmitAll ends. SubmitAll calls End once after each Begin that succeeds. A journal that wraps another one must not
	// repeat an End with BatchNotSent that has failed: another call may have begun the batch meanwhile, and the repeat
	// would let a third call send it again.
	End(ctx context.Context, job string, batch int, outcome BatchOutcome) error
}

// JobName reads the cards of a job, for example a file, and returns their SHA-256 as the name of the job. A file that
// has changed is another job, so all of its cards are sent. If your jobs also differ in something else, such as the
// merchant, add it to the name.
//
// Keep the name as private as the cards: anybody who has the name of a job with few cards can find the card numbers by
// trying all numbers.
func JobName(cards io.Reader) (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, cards); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// BatchState is the record of a batch in a journal. The zero value is a batch that has not been begun.
type BatchState struct {
	Begun   bool          // the batch may have been sent, so it is not sent again
	Outcome *BatchOutcome // nil if the batch was begun and never ended; then its outcome is unknown
}

// BatchOutcome is the result of a batch. It holds no data of the cards.
type BatchOutcome struct {
	Status     BatchStatus
	Cards      int    // number of cards that were sent; 0 if it is not known
	RequestID  string // set if the batch was accepted; [REDACTED] if its digits contain the number of a card of the batch
	StatusCode int    // HTTP status of the error; 0 if no response arrived
	Code       string // platform code of the error
	// Message is the reason in the text of the error, without status and code. It is on one line, and redacted as errors
	// are. A later run that takes the batch from the journal yields it with a new error, which has this reason and these
	// Fields. The fields Message and Detail of the new error are empty. The new error does not match the cause of the
	// original error, such as [ErrMalformedResponse].
	Message string
	Fields  map[string][]string // the Fields of the error; see [Error]
}

// BatchStatus is the status of a batch.
type BatchStatus string

// The statuses of batches. All but BatchNotSent are final: later runs do not send the batch again.
const (
	BatchAccepted BatchStatus = "accepted" // the service accepted the batch
	// BatchRefused is a batch that the service refused. In two cases, a proxy in front of the service may have refused the
	// batch instead:
	//   - The status is 408.
	//   - The status is any other from 400 to 499, except 401, 403 and 429, and the body is empty, cut off or too large.
	BatchRefused BatchStatus = "refused"
	// BatchUnknown is a batch that may have reached the service in an attempt that got no usable answer. Status 403
	// without a code is no usable answer, and neither is status 408 on a connection that may have been used before.
	BatchUnknown BatchStatus = "unknown"
	// BatchNotSent is a batch that was not performed in this run, for one of these reasons:
	//   - The batch was not sent.
	//   - The batch was refused with status 401 or 429, or with status 403 and a code that refuses.
	//   - A proxy refused the batch. The SDK concludes this from any other status from 400 to 499, except 403 and 408, if
	//     the body is complete, not empty and has no code.
	//
	// If SubmitAll has stopped before it asked the journal about the batch, the error matches [ErrStopped]. An earlier run
	// may have sent such a batch. Then the journal has its record, and the next run yields the batch from the journal.
	BatchNotSent BatchStatus = "not sent"
)
