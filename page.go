package payvault

import (
	"bytes"
	"cmp"
	"context"
	"strconv"
	"strings"
)

// The tests of this file are in internal/tests/bulk.

// Page is one page of a list.
type Page[T any] struct {
	Items        []T `json:"data"`         // records in the order of the service
	Number       int `json:"-"`            // zero-based number of the requested page
	TotalPages   int `json:"totalPages"`   // 0 if the service sends none
	TotalRecords int `json:"totalRecords"` // number of records on all pages
}

// pageReply is the successful answer to a request for a page. Before the call, number, count and tidy are set, and Data
// points to items.
type pageReply[T any] struct {
	envelope

	TotalPages   int `json:"totalPages"`
	TotalRecords int `json:"totalRecords"`
	// After reading, Data shows what the answer had as data:
	//   - a list: Data points to it, and the list is not nil, even if it is empty.
	//   - null, or another value that means "none": Data is nil.
	//   - no data at all: Data still points to items, which is empty and has the capacity that beforeRead gave it.
	//
	// An empty list in the answer has no capacity, because the decoder replaces items by a new list. If a later version of
	// the decoder kept the capacity, every empty page would be refused as a page without data, and tests would fail.
	Data *[]T `json:"data"`

	items  []T
	number int                                           // number of the requested page
	count  int                                           // number of records asked for; 0 for the service's default
	tidy   func(record *T) (missing string, needed bool) // see list.tidy
}

// beforeRead allocates memory for the records, because a list that grows while it is read needs more time and memory.
// The number of braces limits the capacity, because each record has a brace.
func (r *pageReply[T]) beforeRead(body []byte) {
	const usual, most = 100, 1000 // records
	capacity := min(cmp.Or(r.count, usual), most, bytes.Count(body, []byte("{")))
	r.items = make([]T, 0, capacity)
}

// complete checks that the answer has data, and calls tidy with each record. If a value that the caller needs is
// missing, complete returns the JSON pointer of the value, and true.
//
// Data may be null, or another value that means "none". If the totals of the service claim records for this page, such
// data counts as missing. Otherwise the page has no records.
func (r *pageReply[T]) complete() (missing string, needed bool) {
	claimsRecords := r.TotalRecords > 0 && (r.number == 0 || r.number < r.TotalPages)
	isNull := r.Data == nil
	isAbsent := !isNull && len(*r.Data) == 0 && cap(*r.Data) > 0
	if isAbsent || isNull && claimsRecords {
		return "/data", true
	}
	records := r.records()
	for i := range records {
		if missing, needed := r.tidy(&records[i]); needed {
			return strings.TrimSuffix("/data/"+strconv.Itoa(i)+"/"+missing, "/"), true
		}
	}
	return "", false
}

// records returns the records of the answer; nil if its data is null or absent.
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
	// tidy corrects a record. If the record lacks a value that the caller needs, needed is true, and missing is the name
	// of the value, or "" if the whole record is empty.
	tidy func(record *T) (missing string, needed bool)
}

// page returns the page that o asks for. A nil o asks for the service's default page, which is assumed to be page 0.
func (l list[T]) page(ctx context.Context, o *ListOptions, opts callOptions) (*Page[T], error) {
	r := pageReply[T]{tidy: l.tidy}
	r.Data = &r.items
	if o != nil {
		r.number, r.count = o.Page, o.Count
	}
	get := call{op: l.op.info(), path: l.path, content: o.content, reply: &r}
	if err := l.caller.perform(ctx, get, opts); err != nil {
		return nil, err
	}
	return &Page[T]{Items: r.records(), Number: r.number, TotalPages: r.TotalPages, TotalRecords: r.TotalRecords}, nil
}
