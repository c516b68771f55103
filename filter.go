package payvault

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json" // encoding/json/v2 from Go 1.27 on
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-querystring/query"
)

// Conditional is the middle part of a filter. The interface shows [CondBetweenDates] only; any other that the service
// knows can be given as text.
type Conditional string

// CondBetweenDates takes two values, the first and the last day.
const CondBetweenDates Conditional = "BETWEEN_DATES"

// Order is the direction of a sort.
type Order string

// The two directions.
const (
	Ascending  Order = "asc"
	Descending Order = "desc"
)

// Filter keeps the records that meet a condition. JSON, XML and YAML of it leave out the values, as logs do.
type Filter struct {
	Field       string // wire name, such as "customer_email"
	Conditional Conditional
	Values      []string `json:"-" xml:"-" yaml:"-"` // which may identify people
}

// Where returns a filter on a field.
func Where(field string, conditional Conditional, values ...string) Filter {
	return Filter{Field: field, Conditional: conditional, Values: values}
}

// BetweenDates returns a filter on a date or time field; from and to are days.
func BetweenDates(field string, from, to Date) Filter {
	return Where(field, CondBetweenDates, from.String(), to.String())
}

// LogValue logs field and conditional. The values are left out: they may identify people.
func (f Filter) LogValue() slog.Value {
	return slog.GroupValue(slog.String("field", f.Field), slog.String("conditional", string(f.Conditional)))
}

// Format writes field and conditional under every verb.
func (f Filter) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "{%s %s}", f.Field, f.Conditional) }

// check refuses what the service could not tell apart: it separates the parts by commas.
func (f Filter) check(path string, p *problems) {
	parts := append([]string{f.Field, string(f.Conditional)}, f.Values...)
	switch {
	case f.Field == "", f.Conditional == "", len(f.Values) == 0:
		p.add(path, "needs a field, a conditional and a value")
	case slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(part, ",") }):
		p.add(path, "contains a comma, which separates the parts of a filter")
	case f.Conditional == CondBetweenDates && !isDateRange(f.Values):
		p.add(path, "BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last")
	}
}

func isDateRange(values []string) bool {
	if len(values) != 2 {
		return false
	}
	for _, value := range values {
		if _, err := ParseDate(value); err != nil {
			return false
		}
	}
	return values[0] <= values[1]
}

func (f Filter) wire() string {
	return f.Field + "," + string(f.Conditional) + "," + strings.Join(f.Values, ",")
}

// filters is written as one query parameter each.
type filters []Filter

// EncodeValues implements [query.Encoder].
func (fs filters) EncodeValues(key string, v *url.Values) error {
	for _, f := range fs {
		v.Add(key, f.wire())
	}
	return nil
}

// ListOptions selects, sorts and pages a list. Empty fields are not sent, and the defaults of the
// service apply, which the interface does not show; Page is always sent, but for nil options of a single page, which
// send nothing but the merchant of [Client.ForMerchant]. JSON, XML and YAML leave out the values of filters.
type ListOptions struct {
	OrderOn    string     // wire name of the field to sort by
	OrderBy    Order      // Ascending or Descending
	Filters    []Filter   // all of them apply
	Count      int        // records per page; the largest is not shown
	Page       int        // zero-based index of the page, for an iterator of the first one
	MerchantID MerchantID // when acting for another merchant; see also Client.ForMerchant

	// Prefetch is how many pages an iterator keeps in flight. With 0 it asks for a page when the one before is
	// used up. Memory is bounded by that many pages besides the one in use. A page of 100 customers takes less than 1 MB;
	// with the default of [WithMaxResponseBytes] none takes more than 100 MB, whatever the service answers, since what
	// decoding allocates is counted. So a hostile service can make 32 pages take 3.3 GB: with one that is not trusted,
	// choose fewer.
	Prefetch int
}

// LogValue logs the options. Values of filters are left out: they may identify people.
func (o ListOptions) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("order_on", o.OrderOn), slog.String("order_by", string(o.OrderBy)),
		slog.Int("count", o.Count), slog.Int("page", o.Page),
	}
	for _, f := range o.Filters {
		attrs = append(attrs, slog.String("filter", f.Field+","+string(f.Conditional)))
	}
	return slog.GroupValue(attrs...)
}

// Format writes what LogValue logs, under every verb.
func (o ListOptions) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.LogValue().String()) }

// maxPage leaves a walk room to count on; lastPage is where a walk ends whatever the service claims.
const (
	maxPage  = math.MaxInt - 2
	lastPage = 1 << 20
)

// listQuery is the wire form of ListOptions.
type listQuery struct {
	OrderOn    string     `url:"order_on,omitempty"`
	OrderBy    Order      `url:"order_by,omitempty"`
	Filters    filters    `url:"filter"`
	Count      int        `url:"count,omitempty"`
	Page       *int       `url:"page,omitempty"`
	MerchantID MerchantID `url:"merchant_id,omitempty"`
}

// listRequest is a request of options that may be nil.
type listRequest struct{ *ListOptions }

// prepare checks the options and builds the query.
func (r listRequest) prepare(c *Client, p *problems) any {
	var q listQuery
	if o := r.ListOptions; o != nil {
		q = listQuery{o.OrderOn, o.OrderBy, o.Filters, o.Count, &o.Page, o.MerchantID}
		for i, f := range o.Filters {
			f.check("filter["+strconv.Itoa(i)+"]", p)
		}
		o.check(p)
	}
	c.actFor(&q.MerchantID, p)
	values, err := query.Values(q)
	if err != nil {
		p.add("query", err.Error())
	}
	return values
}

func (o *ListOptions) check(p *problems) {
	if o.OrderBy != "" && o.OrderBy != Ascending && o.OrderBy != Descending {
		p.add("order_by", "is neither asc nor desc")
	}
	if o.Count < 0 {
		p.add("count", "is negative")
	}
	switch {
	case o.Page < 0:
		p.add("page", "is negative")
	case o.Page > maxPage:
		p.add("page", "is out of range")
	}
	if o.Prefetch < 0 {
		p.add("Prefetch", "is negative")
	}
}

// Page is one page of a list.
type Page[T any] struct {
	Items        []T `json:"data"`         // in the order of the service
	Number       int `json:"-"`            // zero-based index, as it was asked for
	TotalPages   int `json:"totalPages"`   // 0 if the service claims none
	TotalRecords int `json:"totalRecords"` // of all pages
}

// pageReply is the success envelope of a page.
type pageReply[T any] struct {
	codes

	TotalPages   int        `json:"totalPages"`
	TotalRecords int        `json:"totalRecords"`
	Data         records[T] `json:"data"`

	settle func(record *T) (missing string, ok bool)
}

func (r *pageReply[T]) result() codes { return r.codes }

// counters are for all that lists in a page have.
func (*pageReply[T]) counters(r *reader) *json.Unmarshalers {
	return json.JoinUnmarshalers(counter[T](r), counter[BillingCard](r), counter[ShippingAddress](r), counter[string](r),
		counter[Timestamp](r))
}

// missing accepts null for no records. Each record is settled.
func (r *pageReply[T]) missing() (string, bool) {
	if !r.Data.given || r.Data.list == nil && r.TotalRecords > 0 {
		return "/data", true
	}
	for i := range r.Data.list {
		if name, ok := r.settle(&r.Data.list[i]); !ok {
			return strings.TrimSuffix("/data/"+strconv.Itoa(i)+"/"+name, "/"), true
		}
	}
	return "", true
}

// records are those of a page, if the answer has any.
type records[T any] struct {
	list  []T
	given bool
}

func (records[T]) elements() reflect.Type { return reflect.TypeFor[[]T]() }

// UnmarshalJSONFrom reads a list or null, which does not take back a list.
func (r *records[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if r.given && dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	r.given = true
	return json.UnmarshalDecode(dec, &r.list)
}

// list is an operation that returns pages.
type list[T any] struct {
	client *Client
	op     Operation
	in     input
	settle func(record *T) (missing string, ok bool) // names what a record lacks, if anything; "" is the record
}

// page gets one page.
func (l list[T]) page(ctx context.Context, o *ListOptions, opts []CallOption) (*Page[T], error) {
	r := pageReply[T]{settle: l.settle}
	if err := exchange(ctx, l.client, l.op.info(), l.in.send(listRequest{o}), &r, opts); err != nil {
		return nil, err
	}
	p := &Page[T]{Items: r.Data.list, TotalPages: r.TotalPages, TotalRecords: r.TotalRecords}
	if o != nil {
		p.Number = o.Page
	}
	return p, nil
}

// all walks over the records of all pages from o.Page on. It holds no state between two walks.
func (l list[T]) all(ctx context.Context, o *ListOptions, opts []CallOption) iter.Seq2[*T, error] {
	var start ListOptions
	if o != nil {
		start = *o
		start.Filters = slices.Clone(o.Filters) // what the caller changes later does not change the walk
		for i := range start.Filters {
			start.Filters[i].Values = slices.Clone(start.Filters[i].Values)
		}
	}
	opts = slices.Clone(opts)
	return func(yield func(*T, error) bool) {
		for p, err := range l.pages(ctx, start, opts) {
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

// pages walks over the pages. It ends with the last page that the service claims. A page that repeats the one before
// it, or that is empty although more are claimed, is an error.
func (l list[T]) pages(ctx context.Context, o ListOptions, opts []CallOption) iter.Seq2[*Page[T], error] {
	type fetched struct {
		page *Page[T]
		raw  Response
		err  error
	}
	opts = slices.Clone(opts) // what the caller changes later does not change the walk
	keepRaw := newCallOptions(opts).response
	return func(yield func(*Page[T], error) bool) {
		ctx, cancel := cancelable(ctx)
		first, next, known := o.Page, 0, 1 // the first page is fetched alone: it tells how many there are
		var failed atomic.Bool             // the walk will end with a page that has been asked for
		w := newWindow(o.Prefetch, func() (func() fetched, bool) {
			if next >= known || failed.Load() {
				return nil, false
			}
			o := o
			o.Page += next
			next++
			return func() (f fetched) {
				own := opts
				if keepRaw != nil {
					own = append(slices.Clip(opts), WithResponse(&f.raw))
				}
				f.err = l.client.callInTurn(ctx, l.op, own, func(opts []CallOption) (err error) {
					f.page, err = l.page(ctx, &o, opts)
					return err
				})
				if f.err != nil {
					failed.Store(true)
				}
				return f
			}, true
		})
		defer w.running.Wait()
		defer cancel()
		var before []T
		for at := 0; at < known; at++ {
			f, _ := w.pop()
			if f.err != nil {
				f.err = onPage(first+at, f.err)
			} else {
				f.err = l.checkWalk(f.page, &before)
			}
			if f.err == nil {
				known = f.page.pagesKnown() - first
				w.fill()
			}
			if keepRaw != nil {
				*keepRaw = f.raw
			}
			if !yield(f.page, f.err) || f.err != nil {
				return
			}
		}
	}
}

// pagesKnown is how many pages there are, as far as p tells. Where the service claims none, records mean that
// there may be another page.
func (p *Page[T]) pagesKnown() int {
	if p.TotalPages <= 0 && len(p.Items) > 0 {
		return p.Number + 2
	}
	return max(p.TotalPages, 0)
}

// checkWalk refuses a page on which the walk would go on for ever, and keeps its records for the next.
func (l list[T]) checkWalk(p *Page[T], before *[]T) error {
	more := p.Number+1 < p.TotalPages
	records := ownRecords(p.Items)
	repeated := len(records) > 0 && reflect.DeepEqual(records, *before)
	*before = records
	switch {
	case len(p.Items) == 0 && more:
		return walkError(l.op, fmt.Sprintf("page %d of %d is empty", p.Number, p.TotalPages))
	case repeated:
		return walkError(l.op, fmt.Sprintf("page %d repeats the one before it", p.Number))
	case p.Number >= lastPage && p.pagesKnown() > p.Number+1:
		return walkError(l.op, fmt.Sprintf("there are more than %d pages", lastPage))
	}
	return nil
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
