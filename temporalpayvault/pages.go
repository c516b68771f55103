package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	Left    span `json:"left"`
	Pages   int  `json:"pages"`
	Records int  `json:"records"`
	ending
}

// maxBadAnswers is the number of attempts after which a refused or invalid page pauses the export. The waits between
// these attempts add up to 15 s.
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
	err = r.end(ctx, err, r.Left != o.Span)
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
	for page, err := range pages {
		if err != nil {
			return false, e.badAnswer(ctx, id, err)
		}
		if len(page.Items) == 0 {
			continue
		}
		err := e.sink(ctx, id, left, func(ctx context.Context, at Position) error { return write(ctx, at, page.Items) })
		if err != nil {
			return false, err
		}
		r := *e.report.Load()
		if left.Written == 0 {
			r.Pages++
		}
		r.Records += len(page.Items) - left.Written
		left.Written = len(page.Items)
		r.Left = left
		e.report.Store(&r)
		left = left.nextPage()
		if isLast(page, left.Offset) {
			break
		}
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			return false, nil
		default:
		}
	}
	if err := e.sink(ctx, id, left.nextPage(), e.Sink.EndList); err != nil {
		return false, err
	}
	r := *e.report.Load()
	r.Left = span{From: left.From + 1, To: left.To}
	e.report.Store(&r)
	return true, nil
}

// isLast reports whether page is the last page according to its totals. The argument records is the number of records
// in all pages up to this page. An iterator of package payvault that began at the last page may not notice that it is
// the last, and would request one more page.
func isLast[T any](page *payvault.Page[T], records int) bool {
	claimsEnd := page.TotalPages > 0 && page.TotalRecords > 0
	return claimsEnd && page.Number+1 >= page.TotalPages && records >= page.TotalRecords
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

func isAboutTheKey(e *payvault.Error) bool {
	return e.Is(payvault.ErrUnauthorized) || e.Is(payvault.ErrForbidden)
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
