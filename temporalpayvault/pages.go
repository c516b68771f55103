package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"example.com/payvault"
)

// exportOrder describes the pages that an activity has to export.
type exportOrder struct {
	Export        string
	List          ExportOptions
	Span          span
	Subscriptions []payvault.SubscriptionID // the subscriptions of the span; empty for customers
	Limit         time.Duration             // time limit for a call of the sink
}

// ExportOptions has the fields of [payvault.ListOptions] that an export can use.
type ExportOptions struct {
	OrderOn string
	OrderBy payvault.Order
	Filters []Filter
	Count   int
}

// Filter has the fields of [payvault.Filter]. The JSON of a Filter has the values, as the input of a workflow needs.
// The JSON of payvault.Filter leaves the values out.
type Filter struct {
	Field     string
	Condition payvault.Condition
	Values    []string
}

// exportReport is the progress of an activity. It is sent with each heartbeat, so that the next attempt goes on at the
// same page.
type exportReport struct {
	Left            span             `json:"left"`
	Pages           int              `json:"pages"`
	Records         int              `json:"records"`
	Incomplete      int              `json:"incomplete,omitempty"`       // number of incomplete lists
	IncompleteLists []IncompleteList `json:"incomplete_lists,omitempty"` // at most 1,000 entries
	ending
}

// IncompleteList is a list that was not exported whole: the service promised more records than were written.
type IncompleteList struct {
	Subscription payvault.SubscriptionID `json:"subscription,omitempty"` // 0 for customers
	Promised     int                     `json:"promised"`               // the latest totalRecords that is not 0
	Written      int                     `json:"written"`                // number of records
	// ShortPages has the numbers of the pages that stayed short: see [ExportLists]. At most 100 are listed.
	ShortPages []int `json:"short_pages,omitempty"`
}

const (
	maxShortAsked = 10  // number of pages that stay short in a range of lists, after which none is asked for again
	maxEmpty      = 100 // number of empty pages in a row after which a list ends; the walk fails at the next one
)

// maxBadAnswers is the number of attempts after which a refused or invalid page pauses the export, and a short page is
// taken as it is. The waits between these attempts add up to 15 s.
const maxBadAnswers = 5

// export is the activity that exports a range of lists.
func (a *Activities) export(ctx context.Context, o exportOrder) (*exportReport, error) {
	if a.Client == nil || a.Sink == nil {
		return nil, errors.New("a worker has no Client or no Sink in its Activities")
	}
	var before exportReport
	if !activity.HasHeartbeatDetails(ctx) {
		before.Left = o.Span
	} else if err := activity.GetHeartbeatDetails(ctx, &before); err != nil {
		return nil, err // another worker may be able to read the heartbeat
	}
	e := &exporter{Activities: a, exportOrder: o}
	e.report.Store(&before)
	defer keepAlive(ctx, func() any { return e.report.Load() })()
	err := e.run(ctx)
	r := *e.report.Load()
	err = r.end(ctx, err, r.Left.isBeyond(o.Span))
	return &r, err
}

// exporter is one attempt of the activity export.
type exporter struct {
	*Activities
	exportOrder

	report atomic.Pointer[exportReport] // replaced after each page
}

// run exports the lists that are left. If the worker stops, run ends early without an error.
func (e *exporter) run(ctx context.Context) error {
	for ended := true; ended && e.report.Load().Left.From < e.Span.To; {
		var err error
		if len(e.Subscriptions) == 0 {
			ended, err = writeList(ctx, e, 0, e.Client.Customers.Pages(ctx, e.options()), e.Sink.WriteCustomers)
		} else {
			id := e.Subscriptions[e.report.Load().Left.From-e.Span.From]
			pages := e.Client.Subscriptions.TransactionPages(ctx, id, e.options())
			ended, err = writeList(ctx, e, id, pages, e.Sink.WriteTransactions)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeList writes the pages of a list, beginning at the page that the report names. It reports whether it has reached
// the end of the list. If the worker stops, writeList ends early without an error.
func writeList[T any](
	ctx context.Context, e *exporter, id payvault.SubscriptionID,
	pages iter.Seq2[*payvault.Page[T], error], write func(context.Context, Position, []T) error,
) (ended bool, err error) {
	left := e.report.Load().Left
	longest, empty := left.Written, 0
	for page, err := range pages {
		if err != nil {
			return false, e.badAnswer(ctx, id, err)
		}
		n, at := len(page.Items), left.at(page.Number)
		if page.TotalRecords > 0 {
			at.Promised = page.TotalRecords
		}
		promised := isMorePromised(at, n, page.TotalPages)
		if short, found := shortPage(left, page.Number, n, longest); found && promised {
			if e.asksAgain(ctx, at, short) {
				return false, fmt.Errorf("page %d is asked for again: it is empty or too short, and the totals promise more", short)
			}
			at = at.withShort(short)
		}
		if n > 0 || promised { // an empty page replaces what an earlier attempt has written
			err := e.sink(ctx, id, at, func(ctx context.Context, at Position) error { return write(ctx, at, page.Items) })
			if err != nil {
				return false, err
			}
		}
		r := *e.report.Load()
		r.Pages += min(n, 1) - min(at.Written, 1) // a page with records counts once, however often it is written
		r.Records += n - at.Written
		at.Written = n
		if n > 0 {
			longest, empty = max(longest, n), 0
		} else {
			empty++
		}
		if n == 0 && page.Number != left.Page { // the next attempt begins at the latest page that has records
			at.Page, at.Offset, at.Written = left.Page, left.Offset, left.Written
		}
		left, r.Left = at, at
		e.report.Store(&r)
		if empty == maxEmpty {
			break
		}
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			return false, nil
		default:
		}
	}
	return true, e.endList(ctx, id, left)
}

// isMorePromised reports whether the totals promise more records or pages after the page at the given position. The
// page has n records. The result is false for an empty page beyond totalPages if earlier pages stayed short: those
// pages lack the promised records.
func isMorePromised(at span, n, totalPages int) bool {
	isAfterLast := 0 < totalPages && totalPages <= at.Page
	if n == 0 && isAfterLast && len(at.Short) > 0 {
		return false
	}
	return at.Offset+n < at.Promised || at.Page+1 < totalPages
}

// shortPage looks for a page that lacks records, and returns its number. The caller checks whether the totals promise
// more records. The page with the given number has n records. It is short if it is empty, or has fewer records than
// longest, the most records of a page so far. Otherwise the latest earlier page that has records is short if it has
// fewer than n.
func shortPage(before span, number, n, longest int) (short int, found bool) {
	switch {
	case n == 0, n < longest:
		return number, true
	case number != before.Page && 0 < before.Written && before.Written < n:
		return before.Page, true
	}
	return 0, false
}

// asksAgain reports whether a short page is asked for again. A page is asked for in maxBadAnswers attempts. An attempt
// that has made progress does not count: after it, the workflow starts a new activity, whose attempts count from 1.
//
// If maxShortAsked pages of the range of lists stayed short, no further page is asked for again. The service then
// probably has a reason, such as totals that count deleted records, and asking again for each page would take too long.
func (e *exporter) asksAgain(ctx context.Context, at span, short int) bool {
	if slices.Contains(at.Short, short) || at.Stayed >= maxShortAsked {
		return false
	}
	return activity.GetInfo(ctx).Attempt < maxBadAnswers || e.report.Load().Left.isBeyond(e.Span)
}

// endList ends the first list of left: it calls EndList of the Sink, records the list if it is incomplete, and moves
// the report to the next list. If left.Written is above 0, the page of left has been written.
func (e *exporter) endList(ctx context.Context, id payvault.SubscriptionID, left span) error {
	end := left
	if left.Written > 0 {
		end = left.at(left.Page + 1)
	}
	if err := e.sink(ctx, id, end, e.Sink.EndList); err != nil {
		return err
	}
	r := *e.report.Load()
	if end.Offset < left.Promised {
		r.Incomplete++
		r.IncompleteLists = appendSome(r.IncompleteLists, []IncompleteList{{id, left.Promised, end.Offset, left.Short}})
	}
	r.Left = span{From: left.From + 1, To: left.To, Stayed: left.Stayed}
	e.report.Store(&r)
	return nil
}

// sink calls f, a method of the Sink. It passes the position at which the given span begins.
func (e *exporter) sink(
	ctx context.Context, id payvault.SubscriptionID, left span, f func(context.Context, Position) error,
) error {
	at := Position{Export: e.Export, Subscription: id, Page: left.Page, Offset: left.Offset}
	_, err := call(ctx, e.Limit, "the sink", func(ctx context.Context) (none struct{}, _ error) {
		return none, f(ctx, at)
	})
	return err
}

// badAnswer returns the error of an attempt that got no page. A refused or unreadable page may come from a proxy, so it
// pauses the export only after maxBadAnswers attempts. A refused key pauses the export at once.
func (e *exporter) badAnswer(ctx context.Context, id payvault.SubscriptionID, err error) error {
	refusal, ok := errors.AsType[*payvault.Error](err)
	aboutThePage := ok && refusal.Delivery != payvault.DeliveryNotSent && !isAboutTheKey(refusal) &&
		(!payvault.SafeToRetry(err) || errors.Is(err, payvault.ErrMalformedResponse))
	reason := err.Error()
	if id != 0 {
		reason = fmt.Sprintf("subscription %d: %s", id, err)
	}
	switch {
	case !aboutThePage:
		return ActivityError(err)
	case activity.GetInfo(ctx).Attempt < maxBadAnswers:
		return errors.New(reason)
	}
	return pauseFor(reason)
}

// isAboutTheKey reports whether the service has refused the key. A 403 without a code may come from a firewall.
func isAboutTheKey(e *payvault.Error) bool {
	return e.Is(payvault.ErrUnauthorized) || e.Is(payvault.ErrForbidden) && e.Code != ""
}

// options returns the list options for all pages from the page that the report names.
func (e *exporter) options() *payvault.ListOptions {
	o := &payvault.ListOptions{
		OrderOn: e.List.OrderOn, OrderBy: e.List.OrderBy, Count: e.List.Count, Page: e.report.Load().Left.Page,
	}
	for _, f := range e.List.Filters {
		o.Filters = append(o.Filters, payvault.Filter(f))
	}
	return o
}
