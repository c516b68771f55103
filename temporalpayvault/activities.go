package temporalpayvault

import (
	"context"

	"example.com/payvault"
)

// Activities are what a worker needs: Cards and a Journal for [SubmitCards], and a Sink for [ExportLists].
type Activities struct {
	Client  *payvault.Client
	Cards   CardSource
	Journal payvault.Journal // shared by all workers; with sqlpayvault one that was opened WithoutLease
	Sink    Sink
}

// CardSource gives the workers the cards that a job only refers to. A reference stands for a snapshot: its cards and
// their order never change while a job of it runs.
//
// Its methods are called concurrently. The text of an error is left out of histories and logs, since it may quote a
// card: log what you need. Only of a [temporal.ApplicationError] the message and the type are kept. What fails is
// tried again, for an hour; after a non-retryable ApplicationError the job pauses at once.
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
	// Checksum is another one for other cards or another order, such as that of [payvault.JobName], or the version of an
	// object in a store. It is in the history: the plain checksum of a file with few cards gives these away.
	Checksum string `json:"checksum"`
}

// Sink takes the pages of an export. All workers write into it, so it has to be storage that they share. It is called
// concurrently, but seldom for the same list: only while a worker that was taken for lost is still at work.
//
// A page may be given again. It has to replace what was written before for the same list and page, and then every
// page is there once. The list may have changed meanwhile, so that the page has other records. Errors of a Sink are
// treated as those of a [CardSource].
type Sink interface {
	WriteCustomers(ctx context.Context, at Position, customers []payvault.Customer) error
	WriteTransactions(ctx context.Context, at Position, transactions []payvault.Transaction) error
	// EndList is called when all pages of a list are written, at the position after the last one. Pages from there on were
	// written while the list was longer. It may be called again, too.
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
