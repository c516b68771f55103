package payvault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"example.com/payvault/internal/window"
)

// pageLimit is the highest page number of a walk. It ends a walk over a list to which the service claims no end.
const pageLimit = 1 << 20

// Page is one page of a list.
type Page[T any] struct {
	Items        []T `json:"data"`         // in the order of the service
	Number       int `json:"-"`            // zero-based index, as it was asked for
	TotalPages   int `json:"totalPages"`   // 0 if the service claims none
	TotalRecords int `json:"totalRecords"` // of all pages
}

// pageReply is the success envelope of a page.
type pageReply[T any] struct {
	envelope

	TotalPages   int `json:"totalPages"`
	TotalRecords int `json:"totalRecords"`
	// Data points to items, which is nil before the answer is read. Null makes the pointer nil.
	Data *[]T `json:"data"`

	items  []T // what Data points to, unless the answer says null
	settle func(record *T) (missing string, ok bool)
	number int // of the page, as it was asked for
}

func (r *pageReply[T]) read(body []byte, lenient bool) ([]string, error) {
	return readInto(r, body, lenient)
}

// missing returns the place of the first required value that the answer lacks. It also settles each record.
//
// Data that is absent is missing: then Data still points to items, which is nil. Data that is null means no records. It
// is missing only if the totals of the service claim records for this page.
func (r *pageReply[T]) missing() (string, bool) {
	claimsRecords := r.TotalRecords > 0 && (r.number == 0 || r.number < r.TotalPages)
	isNull := r.Data == nil
	isAbsent := !isNull && *r.Data == nil
	if isAbsent || isNull && claimsRecords {
		return "/data", true
	}
	records := r.records()
	for i := range records {
		if name, ok := r.settle(&records[i]); !ok {
			return strings.TrimSuffix("/data/"+strconv.Itoa(i)+"/"+name, "/"), true
		}
	}
	return "", false
}

func (r *pageReply[T]) records() []T {
	if r.Data == nil {
		return nil
	}
	return *r.Data
}

// list is an operation that returns pages.
type list[T any] struct {
	caller *caller
	op     Operation
	path   []pathValue
	// settle checks a record, and may correct it. If it is not ok, missing is the name of what the record lacks, or ""
	// if the record is empty.
	settle func(record *T) (missing string, ok bool)
}

// page gets one page.
func (l list[T]) page(ctx context.Context, o *ListOptions, opts []CallOption) (*Page[T], error) {
	r := pageReply[T]{settle: l.settle}
	r.Data = &r.items
	if o != nil {
		r.number = o.Page
	}
	get := call{op: l.op.info(), path: l.path, content: o.content, reply: &r}
	if err := l.caller.perform(ctx, get, opts); err != nil {
		return nil, err
	}
	return &Page[T]{Items: r.records(), Number: r.number, TotalPages: r.TotalPages, TotalRecords: r.TotalRecords}, nil
}

// all walks over the records of all pages from o.Page on.
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

// pages walks over the pages from o.Page on. It holds no state between two walks. Changes that the caller makes to o
// later do not change the walk.
func (l list[T]) pages(ctx context.Context, o *ListOptions, opts []CallOption) iter.Seq2[*Page[T], error] {
	var start ListOptions
	if o != nil {
		start = *o
		start.Filters = slices.Clone(o.Filters)
		for i := range start.Filters {
			start.Filters[i].Values = slices.Clone(start.Filters[i].Values)
		}
	}
	opts = slices.Clone(opts)
	return func(yield func(*Page[T], error) bool) {
		w := &pageWalk[T]{list: l, options: start, opts: opts, response: newCallOptions(opts).response, yield: yield}
		if changed := w.run(ctx); changed {
			// A record may have moved between two pages. Go on after the last page that was yielded, one page at a time.
			w.options.Page, w.options.Prefetch = w.previous.Number+1, 1
			w.run(ctx)
		}
	}
}

// pageWalk is one walk over the pages of a list.
type pageWalk[T any] struct {
	list     list[T]
	options  ListOptions // Page is the first page to get
	opts     []CallOption
	response *Response // where the caller wants the answer of each page, or nil
	yield    func(*Page[T], error) bool

	ahead     *window.Window[fetched[T]]
	next, end int         // the pages from next to end-1 may be asked for
	failed    atomic.Bool // the walk will end with a page that has been asked for

	previous *Page[T] // the last page that was yielded, with records of its own; nil before the first one
	records  int      // yielded so far
	total    int      // the latest number of all records that the service claims; 0 if it claims none
}

// fetched is the result of asking for one page.
type fetched[T any] struct {
	page *Page[T]
	raw  Response
	err  error
}

// run gets the pages from options.Page on and yields them. It returns false when the walk has ended. It returns true
// if the list has changed and a page that was fetched ahead may lack records. That page is not yielded.
func (w *pageWalk[T]) run(ctx context.Context) (changed bool) {
	ctx, cancel := cancelable(ctx)
	w.next, w.end = w.options.Page, w.options.Page+1 // the first page is fetched alone: it tells how many there are
	w.failed.Store(false)
	w.ahead = window.New[fetched[T]](w.options.Prefetch)
	defer w.ahead.Wait()
	defer cancel()
	for number := w.options.Page; ; number++ {
		f := w.get(ctx, number)
		if f.err == nil && w.mayLackRecords(f.page) {
			return true
		}
		if w.response != nil {
			*w.response = f.raw
		}
		if f.err == nil {
			f.err = w.take(f.page)
		}
		if f.err != nil {
			w.yield(nil, f.err)
			return false
		}
		isLast := w.isLast(f.page)
		if !isLast {
			w.end = f.page.fetchEnd()
			w.fill(ctx)
		}
		if !w.yield(f.page, nil) || isLast {
			return false
		}
	}
}

// fill starts to fetch the next pages, as many as there is room for in the window.
func (w *pageWalk[T]) fill(ctx context.Context) {
	for w.next < w.end && w.ahead.HasRoom() && !w.failed.Load() {
		number := w.next
		w.next++
		w.ahead.Start(func() fetched[T] { return w.fetch(ctx, number) })
	}
}

// get returns a page. With Prefetch it takes the page from the window, and otherwise it fetches the page now.
func (w *pageWalk[T]) get(ctx context.Context, number int) fetched[T] {
	if w.options.Prefetch <= 0 {
		return w.fetch(ctx, number)
	}
	w.fill(ctx)
	f, _ := w.ahead.Pop()
	return f
}

// fetch gets one page. Its error names the page.
func (w *pageWalk[T]) fetch(ctx context.Context, number int) (f fetched[T]) {
	options, opts := w.options, w.opts
	options.Page = number
	if w.response != nil {
		opts = append(slices.Clip(opts), WithResponse(&f.raw))
	}
	err := w.list.caller.callInTurn(ctx, w.list.op, opts, func(opts []CallOption) (err error) {
		f.page, err = w.list.page(ctx, &options, opts)
		return err
	})
	if err != nil {
		w.failed.Store(true)
		f.err = onPage(number, err)
	}
	return f
}

// mayLackRecords reports whether p was fetched ahead and its totals are not those of the page before it. Suppose that
// the service answers page 2, then gets a new record, and then answers page 1. The record that has moved from page 1 to
// page 2 is on neither of them.
func (w *pageWalk[T]) mayLackRecords(p *Page[T]) bool {
	isAhead := w.options.Prefetch > 1 && w.previous != nil
	return isAhead && (p.TotalRecords != w.previous.TotalRecords || p.TotalPages != w.previous.TotalPages)
}

// take counts the records of a page and keeps a copy of the page. It returns an error if the walk would never end.
func (w *pageWalk[T]) take(p *Page[T]) error {
	copied := *p
	copied.Items = withoutSlices(p.Items)
	repeats := w.previous != nil && copied.repeats(w.previous)
	if w.previous == nil {
		w.records = w.recordsBefore(p)
	}
	w.previous = &copied
	w.records += len(p.Items)
	if p.TotalRecords > 0 {
		w.total = p.TotalRecords
	}
	switch {
	case repeats:
		return walkError(w.list.op, fmt.Sprintf("page %d repeats the one before it", p.Number))
	case p.Number >= pageLimit && !w.isLast(p):
		return walkError(w.list.op, fmt.Sprintf("there are more than %d pages", pageLimit))
	}
	return nil
}

// recordsBefore returns how many records the pages before the first page of the walk have. All of those pages are full.
func (w *pageWalk[T]) recordsBefore(first *Page[T]) int {
	perPage := cmp.Or(w.options.Count, len(first.Items))
	if first.Number+1 < first.TotalPages { // first is full too, and the service may give fewer records than Count
		perPage = len(first.Items)
	}
	return first.Number * perPage
}

// isLast reports whether the walk ends with p: p is empty, or all pages and all records that the service claims have
// come. The number of pages alone is not enough, since some services round it down. Call take first: it counts p.
func (w *pageWalk[T]) isLast(p *Page[T]) bool {
	return len(p.Items) == 0 || p.TotalPages > 0 && p.Number+1 >= p.TotalPages && w.records >= w.total
}

// repeats reports whether the service sent the records of the previous page again, because it ignores the page number.
// The same records also come twice if exactly one page of records was added in between. That is no repeat:
// TotalRecords has grown by the length of the page.
func (p *Page[T]) repeats(previous *Page[T]) bool {
	added := p.TotalRecords - previous.TotalRecords
	return len(p.Items) > 0 && added != len(p.Items) && reflect.DeepEqual(p.Items, previous.Items)
}

// fetchEnd returns the number that follows the last page that may be fetched after p. There is at least one such page:
// p is not the last one. Without TotalRecords there is only one, because a change of the list would not be noticed.
func (p *Page[T]) fetchEnd() int {
	if p.TotalRecords <= 0 {
		return p.Number + 2
	}
	return max(p.TotalPages, p.Number+2)
}

// withoutSlices copies the records and clears their slices, since the caller gets the same slices and may change them.
// The other fields, which include the IDs, are enough to compare records.
func withoutSlices[T any](records []T) []T {
	copies := slices.Clone(records)
	for i := range copies {
		record := reflect.ValueOf(&copies[i]).Elem()
		for _, field := range record.Fields() {
			if field.Kind() == reflect.Slice {
				field.SetZero()
			}
		}
	}
	return copies
}

// cancelable is context.WithCancel, except that it returns a nil context as it is. The first call then refuses it.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}

// walkError is the error of a list whose pages contradict each other.
func walkError(op Operation, text string) error {
	return &Error{
		Op: op, Attempts: 1, Delivery: DeliveryUnknown, cause: fmt.Errorf("%w: %s", ErrMalformedResponse, text),
	}
}

// onPage adds the number of the page to an error. It leaves the error of a local check alone: each page would fail it.
func onPage(page int, err error) error {
	if e, ok := errors.AsType[*Error](err); !ok || e.isLocal() {
		return err
	}
	return fmt.Errorf("page %d: %w", page, err)
}
