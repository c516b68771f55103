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

// lastPage is where a walk ends whatever the service claims.
const lastPage = 1 << 20

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

// missing accepts null for no records, unless the service claims that the page has some. Each record is settled.
func (r *pageReply[T]) missing() (string, bool) {
	claimed := r.TotalRecords > 0 && (r.number == 0 || r.number < r.TotalPages)
	isNull := r.Data == nil
	if isNull && claimed || !isNull && *r.Data == nil {
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
	settle func(record *T) (missing string, ok bool) // names what a record lacks, if anything; "" is the record
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
		w := &pageWalk[T]{list: l, options: start, opts: opts, yield: yield}
		if changed := w.run(ctx); changed {
			w.options.Page, w.options.Prefetch = w.before.Number+1, 1 // each page is asked for after the one before it has come
			w.run(ctx)
		}
	}
}

// pageWalk is one walk over the pages of a list.
type pageWalk[T any] struct {
	list    list[T]
	options ListOptions // Page is the first page to get
	opts    []CallOption
	yield   func(*Page[T], error) bool

	ahead     *window.Window[fetched[T]]
	next, end int         // the pages from next to end-1 may be asked for
	failed    atomic.Bool // the walk will end with a page that has been asked for

	before  *Page[T] // the last page that was yielded, with records of its own; nil before the first one
	records int      // yielded so far
	total   int      // the latest number of all records that the service claims; 0 if it claims none
}

// fetched is what came of asking for a page.
type fetched[T any] struct {
	page *Page[T]
	raw  Response
	err  error
}

// run gets the pages from options.Page on and yields them, until the walk ends. With pages ahead it ends too, and
// reports that, before the first page whose totals are not those of the page before it.
//
// Records that are added move others to later pages. A page that was answered before they were added, while the page
// before it was answered after, lacks what has moved from one to the other. Then the totals of the two pages differ.
func (w *pageWalk[T]) run(ctx context.Context) (changed bool) {
	ctx, cancel := cancelable(ctx)
	keepRaw := newCallOptions(w.opts).response
	w.next, w.end = w.options.Page, w.options.Page+1 // the first page is fetched alone: it tells how many there are
	w.failed.Store(false)
	w.ahead = window.New[fetched[T]](w.options.Prefetch)
	defer w.ahead.Wait()
	defer cancel()
	for at := w.options.Page; ; at++ {
		f := w.get(ctx, at)
		if f.err == nil && w.mayLackRecords(f.page) {
			return true
		}
		if f.err == nil {
			f.err = w.take(f.page)
		} else {
			f.err = onPage(at, f.err)
		}
		last := f.err == nil && w.isLast(f.page)
		if f.err == nil && !last {
			w.end = f.page.pagesKnown()
			w.fill(ctx)
		}
		if keepRaw != nil {
			*keepRaw = f.raw
		}
		if f.err != nil {
			w.yield(nil, f.err)
			return false
		}
		if !w.yield(f.page, nil) || last {
			return false
		}
	}
}

// fill asks for pages ahead, as many as may be in flight.
func (w *pageWalk[T]) fill(ctx context.Context) {
	for w.next < w.end && w.ahead.HasRoom() && !w.failed.Load() {
		number := w.next
		w.next++
		w.ahead.Start(func() fetched[T] { return w.fetch(ctx, number) })
	}
}

// get waits for a page. Without pages ahead it asks for it first.
func (w *pageWalk[T]) get(ctx context.Context, number int) fetched[T] {
	if w.options.Prefetch <= 0 {
		return w.fetch(ctx, number)
	}
	w.fill(ctx)
	f, _ := w.ahead.Pop()
	return f
}

// fetch gets one page.
func (w *pageWalk[T]) fetch(ctx context.Context, number int) (f fetched[T]) {
	o, opts := w.options, w.opts
	o.Page = number
	if newCallOptions(opts).response != nil { // or the body would be kept for nothing
		opts = append(slices.Clip(opts), WithResponse(&f.raw))
	}
	f.err = w.list.caller.callInTurn(ctx, w.list.op, opts, func(opts []CallOption) (err error) {
		f.page, err = w.list.page(ctx, &o, opts)
		return err
	})
	if f.err != nil {
		w.failed.Store(true)
	}
	return f
}

// mayLackRecords reports whether p was fetched ahead and its totals are not those of the page before it.
func (w *pageWalk[T]) mayLackRecords(p *Page[T]) bool {
	isAhead := w.options.Prefetch > 1 && w.before != nil
	return isAhead && (p.TotalRecords != w.before.TotalRecords || p.TotalPages != w.before.TotalPages)
}

// take counts the records of a page. It refuses one on which the walk would go on for ever.
func (w *pageWalk[T]) take(p *Page[T]) error {
	own := *p
	own.Items = ownRecords(p.Items)
	repeats := w.before != nil && own.repeats(w.before)
	if w.before == nil { // the pages that the walk leaves out are full
		w.records = p.Number * cmp.Or(w.options.Count, len(p.Items))
	}
	w.before = &own
	w.records += len(p.Items)
	if p.TotalRecords > 0 {
		w.total = p.TotalRecords
	}
	switch {
	case repeats:
		return walkError(w.list.op, fmt.Sprintf("page %d repeats the one before it", p.Number))
	case p.Number >= lastPage && !w.isLast(p):
		return walkError(w.list.op, fmt.Sprintf("there are more than %d pages", lastPage))
	}
	return nil
}

// isLast reports whether the walk ends with p: it is empty, or all pages and all records that the service claims have
// come. One of the two numbers is not enough: there are services that round the number of pages down.
func (w *pageWalk[T]) isLast(p *Page[T]) bool {
	return len(p.Items) == 0 || p.TotalPages > 0 && p.Number+1 >= p.TotalPages && w.records >= w.total
}

// repeats reports whether a page has the records of the page before it, though as many were not added since.
func (p *Page[T]) repeats(before *Page[T]) bool {
	added := p.TotalRecords - before.TotalRecords
	return len(p.Items) > 0 && added != len(p.Items) && reflect.DeepEqual(p.Items, before.Items)
}

// pagesKnown is how many pages may be asked for when p, which is not the last one, has come. Without totals that
// would tell of changes it is the next one only.
func (p *Page[T]) pagesKnown() int {
	if p.TotalRecords <= 0 {
		return p.Number + 2
	}
	return max(p.TotalPages, p.Number+2)
}

// ownRecords copies records but for what a copy shares with them: the consumer of a walk may change the slices in a
// record. What is left has its ID in it.
func ownRecords[T any](records []T) []T {
	own := slices.Clone(records)
	for i := range own {
		record := reflect.ValueOf(&own[i]).Elem()
		for _, field := range record.Fields() {
			if field.Kind() == reflect.Slice {
				field.SetZero()
			}
		}
	}
	return own
}

// cancelable is context.WithCancel, but leaves it to the calls to refuse a nil context with an error.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}

// walkError is the error of a list whose pages contradict each other.
func walkError(op Operation, text string) error {
	return &Error{
		Op: op, Attempts: 1, Delivery: Unknown, cause: fmt.Errorf("%w: %s", ErrMalformedResponse, text),
	}
}

// onPage names the page in the error of a walk. What is refused locally is so for all pages.
func onPage(page int, err error) error {
	if e, ok := errors.AsType[*Error](err); !ok || e.isLocal() {
		return err
	}
	return fmt.Errorf("page %d: %w", page, err)
}
