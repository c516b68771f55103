package temporalpayvault

import (
	"context"

	"example.com/payvault"
)

// Activities has the parts that a worker needs: Cards and a Journal for [SubmitCards], and a Sink for [ExportLists].
type Activities struct {
	Client  *payvault.Client
	Cards   CardSource
	Journal payvault.Journal // shared by all workers; open one of sqlpayvault WithoutLease
	Sink    Sink
}

// CardSource gives the workers the cards of a job, which has only a reference to them. A reference names a snapshot:
// its cards and their order never change while a job with that reference runs.
//
// Its methods are called concurrently. The text of an error may quote a card, so histories and logs do not have it: log
// the details yourself. Only the message and the type of a [temporal.ApplicationError] are kept. A call that fails is
// repeated for an hour. After a non-retryable ApplicationError the job pauses at once.
type CardSource interface {
	// Snapshot describes the current cards of a reference. It is called after each call of Cards, so it has to be
	// cheap. If the result differs from [Job.Snapshot], none of the cards that were read are sent.
	Snapshot(ctx context.Context, ref string) (Snapshot, error)
	// Cards returns the cards from position start to position end, which is not included.
	Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error)
}

// Snapshot describes the cards of a reference.
type Snapshot struct {
	Cards int `json:"cards"` // number of cards
	// Checksum differs for other cards and for another order of the cards. It may be the result of [payvault.JobName],
	// or the version of an object in a store. It is in the history: from the plain checksum of a file with few cards,
	// somebody can find out the cards.
	Checksum string `json:"checksum"`
}

// Sink takes the pages of an export. All workers write into it, so it has to be storage that they share. It is called
// concurrently. Concurrent calls for the same list are rare: they occur only if a worker that counts as lost is still
// at work, or if a call that took longer than CallTimeout goes on.
//
// A page may be written again, perhaps with other records, because the list has changed. The new page has to replace
// the old one. Errors of a Sink are treated like the errors of a [CardSource].
type Sink interface {
	WriteCustomers(ctx context.Context, at Position, customers []payvault.Customer) error
	WriteTransactions(ctx context.Context, at Position, transactions []payvault.Transaction) error
	// EndList is called when all pages of a list are written, with the position after the last page. Pages from that
	// position on come from an earlier attempt, when the list was longer. EndList may be called again.
	EndList(ctx context.Context, at Position) error
}

// Position identifies a page of an export.
type Position struct {
	Export       string                  // name of the export
	Subscription payvault.SubscriptionID // 0 for customers
	Page         int                     // zero-based number of the page
	Offset       int                     // number of records in the pages of the list before it
}

const (
	activitySubmit = "payvault.submit"
	activityExport = "payvault.export"
)
