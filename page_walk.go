package payvault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/window"
)

// The tests of this file are in internal/tests/bulk.

// pageLimit is the first page number that a walk refuses, so that the walk ends even if the service never reports the
// end of the list.
const pageLimit = 1 << 20

// maxEmptyPages is the number of empty pages in a row that a walk accepts while the totals of the service promise more
// pages and more records.
const maxEmptyPages = 100

// all returns an iterator over the records of all pages from o.Page on. It ends after an error.
func (l list[T]) all(ctx context.Context, o *ListOptions, opts []CallOption) iter.Seq2[*T, error] {
	pages := l.pages(ctx, o, opts)
	return func(yield func(*T, error) bool) {
		for p, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range p.Items {
				if !yield(&p.Items[i], nil) {
					return
				}
			}
		}
	}
}

// pages returns an iterator over the pages from o.Page on. Each loop over the iterator is a walk of its own. The
// iterator uses a copy of o, so later changes to o do not matter.
func (l list[T]) pages(ctx context.Context, o *ListOptions, opts []CallOption) iter.Seq2[*Page[T], error] {
	var start ListOptions
	if o != nil {
		start = *o
		start.Filters = slices.Clone(o.Filters)
		for i := range start.Filters {
			start.Filters[i].Values = slices.Clone(start.Filters[i].Values)
		}
	}
	call := newCallOptions(opts)
	return func(yield func(*Page[T], error) bool) {
		if ctx == nil { // the call itself returns the error
			yield(l.page(ctx, &start, call))
			return
		}
		w := &pageWalk[T]{list: l, options: start, call: call, yield: yield}
		if changed := w.run(ctx); changed {
			// A record may have moved from one page to another. The second run gets the pages after the last yielded page, one
			// page after another: then the walk misses no record when records are added. The second run returns false, because
			// mayLackRecords is always false with Prefetch 1.
			w.options.Page, w.options.Prefetch = w.previous.Number+1, 1
			w.run(ctx)
		}
	}
}

// pageWalk is one walk over the pages of a list. It runs in the goroutine of the caller's loop. Only fetch may run in
// other goroutines, so fetch changes no field except failed.
type pageWalk[T any] struct {
	list    list[T]
	options ListOptions // Page is the first page of the run
	call    callOptions // its response gets the raw answer of each page that is yielded
	yield   func(*Page[T], error) bool

	ahead     *window.Window[fetched[T]]
	next, end int // the pages from next to end-1 may be asked for now
	// failed is set when fetching a page has failed. After that, no further page is asked for. The error stays in the
	// window until get returns it.
	failed atomic.Bool

	first, previous *Page[T] // the first and the latest page of the walk, without slices; nil before the first page
	records         int      // number of records on all pages of the list up to previous
	total           int      // the latest TotalRecords that is not 0
	longest         int      // number of records on the longest page of the walk
	emptyPages      int      // number of empty pages in a row up to previous
	isGuess         bool     // records is a guess: the walk begins at a later page, which may be the last
	isFull          bool     // previous may have as many records as the service puts on a page
	beyondTotals    bool     // the totals do not promise the page after previous
}

// fetched is the result of asking for one page.
type fetched[T any] struct {
	page *Page[T]
	raw  Response
	err  error
}

// run gets the pages from options.Page on, one after another, and yields them. With Prefetch it asks for pages ahead.
// It returns false when the walk has ended: after the last page, after an error, or because the caller has left the
// loop. It returns true if the list has changed and the next page may lack records. That page is not yielded.
func (w *pageWalk[T]) run(ctx context.Context) (changed bool) {
	ctx, cancel := context.WithCancel(ctx)
	w.next, w.end = w.options.Page, w.options.Page+1 // the first page alone, because its answer has the number of pages
	w.failed.Store(false)
	w.ahead = window.New[fetched[T]](w.options.Prefetch)
	defer w.ahead.Wait()
	defer cancel()
	for number := w.options.Page; ; number++ {
		f := w.get(ctx, number)
		if f.err == nil && w.mayLackRecords(f.page) {
			return true
		}
		var page *Page[T] // a copy for the walk, because the caller may change the page
		if f.err == nil {
			page = f.page.withoutSlices()
		}
		if w.mayBeEnd() && w.isNoPage(page, f) {
			return false
		}
		if w.call.response != nil {
			*w.call.response = f.raw
		}
		if f.err == nil {
			f.err = w.checkProgress(page)
		}
		if f.err != nil {
			w.yield(nil, f.err)
			return false
		}
		w.count(page)
		isLast := w.isLast(page)
		if !isLast {
			w.end = page.fetchEnd()
			w.fill(ctx)
		}
		if !w.yield(f.page, nil) || isLast {
			return false
		}
	}
}

// fill starts to fetch the next pages in the background. It stops at w.end, when the window is full, or when a fetch
// has failed.
func (w *pageWalk[T]) fill(ctx context.Context) {
	for w.next < w.end && w.ahead.HasRoom() && !w.failed.Load() {
		number := w.next
		w.next++
		w.ahead.Start(func() fetched[T] { return w.fetch(ctx, number) })
	}
}

// get returns the result for a page. With Prefetch it takes the result from the window. Without Prefetch it fetches the
// page now.
func (w *pageWalk[T]) get(ctx context.Context, number int) fetched[T] {
	if w.options.Prefetch <= 0 {
		return w.fetch(ctx, number)
	}
	w.fill(ctx)
	f, _ := w.ahead.Pop() // fill has started this page, because the page is below end, and no earlier page has failed
	return f
}

// fetch gets one page in one call, which waits after a 429.
func (w *pageWalk[T]) fetch(ctx context.Context, number int) (f fetched[T]) {
	options, call := w.options, w.call
	options.Page = number
	call.response = &f.raw
	call.gate = &transport.Gate{Patience: w.list.caller.policy.MaxBulkRetryAfter}
	page, err := w.list.page(ctx, &options, call)
	switch {
	case err != nil:
		w.failed.Store(true)
		f.err = onPage(number, err)
	case w.call.response == nil:
		f.raw = Response{} // only isNoPage needs it, after an error
	}
	f.page = page
	return f
}

// mayLackRecords reports whether p may have been fetched ahead and its totals differ from the totals of the page before
// it. Suppose that the service answers page 2, then gets a new record, and then answers page 1. The record that has
// moved from page 1 to page 2 is in neither answer. With a Prefetch of 0 or 1 this cannot happen, because the pages are
// requested one after another.
func (w *pageWalk[T]) mayLackRecords(p *Page[T]) bool {
	isAhead := w.options.Prefetch > 1 && w.previous != nil
	return isAhead && (p.TotalRecords != w.previous.TotalRecords || p.TotalPages != w.previous.TotalPages)
}

// isNoPage reports whether an answer means that the page does not exist. It is called only for a page that might not
// exist. Services answer a request for such a page in different ways:
//   - Some repeat their last or first page. So p is compared with the previous page and the first page of the walk.
//   - Some answer with status 204, 400, 404 or 416. The body must be JSON or empty, because any other body may come
//     from a proxy.
//   - Some refuse the request by a code, with status 200 or 422. Such a refusal counts only for the first page beyond
//     TotalPages.
func (w *pageWalk[T]) isNoPage(p *Page[T], f fetched[T]) bool {
	if f.err == nil {
		return p.repeats(w.previous) || p.repeats(w.first)
	}
	refusal, ok := errors.AsType[*Error](f.err)
	if !ok {
		return false
	}
	body := bytes.TrimSpace(f.raw.Body)
	isOfService := len(body) == 0 || jsontext.Value(body).IsValid()
	isFirstBeyond := w.previous.Number+1 == w.previous.TotalPages
	switch refusal.StatusCode {
	case http.StatusNoContent, http.StatusBadRequest, http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable:
		return isOfService
	case http.StatusOK, http.StatusUnprocessableEntity:
		return refusal.rejected() && isFirstBeyond
	}
	return false
}

// checkProgress returns an error if the walk might never end: if p repeats the page before it, or if there are too many
// pages or too many empty pages in a row.
func (w *pageWalk[T]) checkProgress(p *Page[T]) error {
	switch {
	case w.previous != nil && p.repeats(w.previous):
		return walkError(w.list.op, fmt.Sprintf("page %d repeats the one before it", p.Number), false)
	case len(p.Items) == 0 && w.emptyPages >= maxEmptyPages:
		return walkError(w.list.op, fmt.Sprintf("more than %d pages in a row are empty", maxEmptyPages), true)
	case p.Number >= pageLimit: // page numbers begin at 0
		return walkError(w.list.op, fmt.Sprintf("there are more than %d pages", pageLimit), true)
	}
	return nil
}

// count counts the records of a page before the page is yielded, and remembers the page.
func (w *pageWalk[T]) count(p *Page[T]) {
	if w.previous == nil {
		w.first, w.records = p, w.recordsBefore(p)
		w.isGuess = p.Number > 0 && p.mayBeShorter()
	}
	w.previous = p
	if p.TotalRecords > 0 {
		w.total = p.TotalRecords
	}
	if len(p.Items) == 0 {
		w.emptyPages++
	} else {
		w.emptyPages = 0
		w.isFull = w.looksFull(p)
		w.records += len(p.Items)
		w.longest = max(w.longest, len(p.Items))
	}
	morePages, moreRecords := w.promised()
	w.beyondTotals = p.TotalPages > 0 && !morePages && !moreRecords
}

// looksFull reports whether a page that has records may have as many records as the service puts on a page. It compares
// the page with the earlier pages of the walk. If none of them has records, it assumes that the service puts Count
// records on a page, or a multiple of 5 as its own default or maximum.
func (w *pageWalk[T]) looksFull(p *Page[T]) bool {
	if w.longest > 0 {
		return len(p.Items) >= w.longest
	}
	hasCount := w.options.Count > 0 && len(p.Items) >= w.options.Count
	return hasCount || len(p.Items)%5 == 0
}

// recordsBefore estimates the number of records on the pages before the first page of the walk. It assumes that each of
// these pages is as long as the first page of the walk. But the first page of the walk may be the last page of the
// list, and shorter than all others. If this is possible, recordsBefore assumes that each earlier page has Count
// records, unless Count is 0 or TotalRecords permits fewer records.
//
// A result that is too low does no harm: the walk still ends at an empty page. With a result that is too high, the walk
// may end before the last record.
func (w *pageWalk[T]) recordsBefore(first *Page[T]) int {
	countFits := first.Number*w.options.Count+len(first.Items) <= first.TotalRecords
	if first.mayBeShorter() && countFits && w.options.Count > 0 {
		return first.Number * w.options.Count
	}
	return first.Number * len(first.Items)
}

// mayBeShorter reports whether TotalPages permits that p is the last page, which may be shorter than the other pages.
func (p *Page[T]) mayBeShorter() bool { return p.Number+1 >= p.TotalPages }

// mayBeEnd reports whether the page after the latest page might not exist. It returns true if the service has sent
// TotalPages, and neither TotalPages nor TotalRecords promises that page. If the number of records before the first
// page of the walk is a guess, TotalRecords does not matter.
func (w *pageWalk[T]) mayBeEnd() bool {
	if w.previous == nil {
		return false
	}
	morePages, _ := w.promised()
	return w.beyondTotals || w.isGuess && w.previous.TotalPages > 0 && !morePages
}

// isLast reports whether the walk ends with p, after count has counted the records of p.
//
// The totals of the service are lower bounds. Some services round totalPages down, and others count up to a maximum or
// count one page only. So the walk goes on while one of the totals promises more, or if the service sends no
// TotalPages. After a full page, it asks for the next page even if the totals do not promise that page. After an empty
// page, it goes on only if both totals promise more.
func (w *pageWalk[T]) isLast(p *Page[T]) bool {
	if len(p.Items) == 0 {
		morePages, moreRecords := w.promised()
		return !morePages || !moreRecords
	}
	return w.beyondTotals && !w.isFull
}

// promised reports whether the totals of the service promise pages after the latest page, and whether they promise more
// records than the walk has counted.
func (w *pageWalk[T]) promised() (morePages, moreRecords bool) {
	return w.previous.Number+1 < w.previous.TotalPages, w.records < w.total
}

// repeats reports whether p has the same records as the page previous, as if the service ignored the page number. It is
// false if p is empty. It is also false if TotalRecords has grown by the length of p: then the new records have moved
// the records of previous to p. In both pages, the slice fields of the records must be nil.
func (p *Page[T]) repeats(previous *Page[T]) bool {
	added := p.TotalRecords - previous.TotalRecords
	return len(p.Items) > 0 && added != len(p.Items) && reflect.DeepEqual(p.Items, previous.Items)
}

// fetchEnd returns the number of the first page that may not be asked for yet. The page p is the latest page, and the
// walk goes on. The page after p may always be asked for, because the service may claim too few pages. Without
// TotalRecords, only that page may be asked for, because the walk might not notice that the list changes.
func (p *Page[T]) fetchEnd() int {
	if p.TotalRecords <= 0 {
		return p.Number + 2
	}
	return max(p.TotalPages, p.Number+2)
}

// withoutSlices returns a copy of the page. Each slice field of a record is nil in the copy, because the caller has the
// same slice and may change its elements. The other fields, which include the IDs, are enough to compare records.
func (p *Page[T]) withoutSlices() *Page[T] {
	copied := *p
	copied.Items = slices.Clone(p.Items)
	for field := range reflect.TypeFor[T]().Fields() {
		if field.Type.Kind() != reflect.Slice {
			continue
		}
		for i := range copied.Items {
			reflect.ValueOf(&copied.Items[i]).Elem().FieldByIndex(field.Index).SetZero()
		}
	}
	return &copied
}

// walkError returns an error for checkProgress. If it is final, the next walk would fail in the same way. The error
// about a repeated page is not final: without TotalRecords, a page seems to repeat the previous page if exactly one
// page of new records was just added.
func walkError(op Operation, text string, final bool) error {
	return &Error{
		Op: op, Attempts: 1, Delivery: DeliveryUnknown, cause: fmt.Errorf("%w: %s", ErrMalformedResponse, text),
		final: final,
	}
}

// onPage adds the number of the page to an *Error. It returns the error of a local check unchanged, because such an
// error concerns all pages. An error of another type is returned unchanged too.
func onPage(page int, err error) error {
	if e, ok := errors.AsType[*Error](err); !ok || e.isLocal() {
		return err
	}
	return fmt.Errorf("page %d: %w", page, err)
}
