package temporalpayvault

import (
	"context"

	"example.com/payvault"
)

// Activities has what a worker needs: Cards and a Journal for [SubmitCards], and a Sink for [ExportLists].
type Activities struct {
	Client  *payvault.Client
	Cards   CardSource
	Journal payvault.Journal // shared by all workers; with sqlpayvault one that was opened WithoutLease
	Sink    Sink
}

// CardSource gives the workers the cards that a job only refers to. A reference stands for a snapshot: its cards and
// their order never change while a job of it runs.
//
// Its methods are called concurrently. The text of an error may quote a card, so histories and logs leave it out: log
// what you need. Of a [temporal.ApplicationError] the message and the type are kept. A call that fails is tried again
// for an hour. After a non-retryable ApplicationError the job pauses at once.
type CardSource interface {
	// Snapshot describes what a reference stands for now. It is called after each call of Cards, so it has to be cheap. If
	// the result differs from [Job.Snapshot], nothing of what was read is sent.
	Snapshot(ctx context.Context, ref string) (Snapshot, error)
	// Cards returns the cards from position start to position end, which is not included.
	Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error)
}

// Snapshot is what a reference to cards stands for.
type Snapshot struct {
	Cards int `json:"cards"` // how many there are
	// Checksum differs for other cards and for another order of the cards. It may be that of [payvault.JobName], or the
	// version of an object in a store. It is in the history: the plain checksum of a file with few cards gives these away.
	Checksum string `json:"checksum"`
}

// Sink takes the pages of an export. All workers write into it, so it has to be storage that they share. It is called
// concurrently. For the same list that happens seldom: only if a worker that counts as lost is still at work, or if a
// call that took longer than CallTimeout goes on.
//
// A page may be given again, perhaps with other records, because the list has changed. It has to replace the page that
// was written before. Errors of a Sink are treated as those of a [CardSource].
type Sink interface {
	WriteCustomers(ctx context.Context, at Position, customers []payvault.Customer) error
	WriteTransactions(ctx context.Context, at Position, transactions []payvault.Transaction) error
	// EndList is called when all pages of a list are written, with the position after the last page. Pages from there on
	// are of an earlier attempt, when the list was longer. EndList may be called again.
	EndList(ctx context.Context, at Position) error
}

// Position says where a page belongs.
type Position struct {
	Export       string                  // name of the export
	Subscription payvault.SubscriptionID // 0 for customers
	Page         int                     // zero-based
	Offset       int                     // records in the pages of the list before it
}

const (
	activitySubmit = "payvault.submit"
	activityExport = "payvault.export"
)
