package temporalpayvault

import (
	"context"

	"example.com/payvault"
)

// Activities has the parts that a worker needs. [SubmitCards] needs Client, Cards and Journal. [ExportLists] needs
// Client and Sink.
type Activities struct {
	Client  *payvault.Client
	Cards   CardSource
	Journal Journal // shared by all workers; open a journal of sqlpayvault with WithoutLease
	Sink    Sink
}

// Journal is a journal that has an identity, such as a Journal of package sqlpayvault. A job notes the ID of its
// journal at its start. A worker with another journal sends none of the job's cards: its activities fail. Temporal
// repeats them, so that a worker with the right journal can get them. After an hour of failures the job pauses.
type Journal interface {
	payvault.Journal
	// ID returns the same text each time the journal is opened, and another text for any other journal.
	ID(ctx context.Context) (string, error)
}

// CardSource gives the workers the cards of a job. A job has only a reference to its cards. While the job runs,
// the cards of the reference and their order must not change.
//
// The methods of a CardSource are called concurrently. The text of an error may quote a card, so histories and logs do
// not contain it: log the details yourself. A [temporal.ApplicationError] is an exception: its message and its type are
// written. A failed call is repeated for up to an hour, and then the job pauses. After a non-retryable
// ApplicationError, the job pauses at once.
type CardSource interface {
	// Snapshot describes the current cards of a reference. It is called after each successful call of Cards, so it has to
	// be cheap. If the result differs from [Job.Snapshot], the cards that Cards returned are not sent.
	Snapshot(ctx context.Context, ref string) (Snapshot, error)
	// Cards returns the cards from position start to position end-1.
	Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error)
}

// Snapshot describes the cards of a reference.
type Snapshot struct {
	Cards int `json:"cards"` // number of cards
	// Checksum changes whenever the cards or their order change. It may be the result of [payvault.JobName], or the
	// version of an object in a store. The workflow history contains the checksum. If there are few cards, a reader of a
	// plain checksum can find the card numbers by trying all numbers.
	Checksum string `json:"checksum"`
}

// Sink stores the pages of an export. All workers write to it, so it needs a storage that all workers share. Its
// methods are called concurrently. Calls for one list can overlap, but rarely: a call that exceeded CallTimeout may
// still run, and so may a worker that Temporal considers lost.
//
// A page may be written again, with other records if the list has changed. The new page, which may be empty, has to
// replace the old page.
//
// Histories and logs do not contain the text of an error, because it may quote a record: log the details yourself. A
// [temporal.ApplicationError] is an exception: its message and its type are written. A failed call is repeated for up
// to an hour, and then the export pauses. After a non-retryable ApplicationError, the export pauses at once.
type Sink interface {
	WriteCustomers(ctx context.Context, at Position, customers []payvault.Customer) error
	WriteTransactions(ctx context.Context, at Position, transactions []payvault.Transaction) error
	// EndList is called when all pages of a list are written. The argument at is the position after the last page that has
	// records. If the sink has pages from that position on, they are empty or outdated: an earlier attempt wrote the
	// outdated ones when the list was longer. EndList may be called several times for one list.
	EndList(ctx context.Context, at Position) error
}

// Position identifies a page of an export.
type Position struct {
	Export       string                  // name of the export
	Subscription payvault.SubscriptionID // 0 for customers
	Page         int                     // zero-based number of the page
	Offset       int                     // number of records in the earlier pages of the list
}

const (
	activityJournal = "payvault.journal"
	activitySubmit  = "payvault.submit"
	activityExport  = "payvault.export"
)
