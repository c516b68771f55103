package payvault

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/go-querystring/query"
)

// More tests of this file are in internal/tests/operations, with the filters in internal/tests/calls/records.go.

// Condition is the middle part of a filter. The service documents [ConditionBetweenDates] only. Write any other
// condition of the service as text.
type Condition string

// ConditionBetweenDates takes two values, the first and the last day.
const ConditionBetweenDates Condition = "BETWEEN_DATES"

// Order is the direction of a sort.
type Order string

// The two directions.
const (
	Ascending  Order = "asc"
	Descending Order = "desc"
)

// Filter keeps the records that meet a condition. Logs and the JSON, XML and YAML of a Filter do not contain the
// values.
type Filter struct {
	Field     string // wire name, such as "customer_email"
	Condition Condition
	Values    []string `json:"-" xml:"-" yaml:"-"` // the values may identify people
}

// Where returns a filter on a field.
func Where(field string, condition Condition, values ...string) Filter {
	return Filter{Field: field, Condition: condition, Values: values}
}

// BetweenDates returns a filter on a date or time field. The parameters from and to are the first and the last day.
func BetweenDates(field string, from, to Date) Filter {
	return Where(field, ConditionBetweenDates, from.String(), to.String())
}

// LogValue logs field and condition. It does not log the values, because they may identify people.
func (f Filter) LogValue() slog.Value {
	return slog.GroupValue(slog.String("field", f.Field), slog.String("condition", string(f.Condition)))
}

// Format writes field and condition under every verb.
func (f Filter) Format(s fmt.State, _ rune) { _, _ = fmt.Fprintf(s, "{%s %s}", f.Field, f.Condition) }

// notName is the problem of a text for which isName is false.
const notName = "contains a blank, a comma or a control character"

// isName reports whether a text can be the name of a field or a condition. For example, "tran_time desc" is not a name,
// because it has a blank. An empty text counts as a name.
func isName(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) || unicode.IsControl(r) })
}

// check adds a problem for a missing part, for a field or a condition that cannot be a name, for a value with a comma,
// or for values of BETWEEN_DATES that are not a range of days. It adds one problem at most. Commas separate the parts
// of a filter, so the service would take a part with a comma for two parts.
func (f Filter) check(path string, p *problems) {
	switch {
	case f.Field == "", f.Condition == "", len(f.Values) == 0:
		p.add(path, "needs a field, a condition and a value")
	case !isName(f.Field), !isName(string(f.Condition)):
		p.add(path, notName+" in its field or condition")
	case slices.ContainsFunc(f.Values, func(value string) bool { return strings.Contains(value, ",") }):
		p.add(path, "contains a comma, which separates the parts of a filter")
	case f.Condition == ConditionBetweenDates && !isDateRange(f.Values):
		p.add(path, "BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last")
	}
}

// isDateRange reports whether values are two days of the form YYYY-MM-DD, the first not after the last.
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

// wire returns the value of the query parameter filter.
func (f Filter) wire() string {
	return f.Field + "," + string(f.Condition) + "," + strings.Join(f.Values, ",")
}

// ListOptions selects, sorts and pages a list. Empty fields other than Page are not sent, so that the undocumented
// defaults of the service apply. Page is sent even if it is 0. If the options are nil, a call for a single page sends
// at most the merchant of [Client.ForMerchant]. The JSON, XML and YAML of the options do not contain the values of
// filters.
type ListOptions struct {
	OrderOn    string     // wire name of the field to sort by
	OrderBy    Order      // Ascending or Descending
	Filters    []Filter   // a record must meet all filters
	Count      int        // records per page; the service does not document the maximum
	Page       int        // zero-based number of the page; an iterator begins with this page
	MerchantID MerchantID // the merchant to act for; see also Client.ForMerchant

	// Prefetch is the number of pages that an iterator requests ahead. With 0 it requests a page when the loop has used
	// up the previous page. When the totals of the service show that the list has changed, the iterator goes on as with a
	// Prefetch of 1, which requests one page after another; see docs/paging.md. An iterator keeps at most Prefetch pages
	// in memory, besides the page in use. A page of 100 customers takes less than 1 MB. With the default of
	// [WithMaxResponseBytes] no page takes more than 300 MB, whatever the service answers. So a hostile service can make
	// 32 pages take 10 GB. If you do not trust the service, choose a small Prefetch.
	Prefetch int
}

// LogValue logs the sort order, the paging, and the field and the condition of each filter. It does not log the values
// of filters, because they may identify people.
func (o ListOptions) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("order_on", o.OrderOn), slog.String("order_by", string(o.OrderBy)),
		slog.Int("count", o.Count), slog.Int("page", o.Page),
	}
	for _, f := range o.Filters {
		attrs = append(attrs, slog.String("filter", f.Field+","+string(f.Condition)))
	}
	return slog.GroupValue(attrs...)
}

// Format writes the text of LogValue under every verb.
func (o ListOptions) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, o.LogValue().String()) }

// maxPage is the highest page number that a call may ask for. A walk adds up to 2 to a page number, which must not
// overflow.
const maxPage = math.MaxInt - 2

// content returns the query, and adds the problems of the options to p. The options may be nil.
func (o *ListOptions) content(c *caller, p *problems) content {
	var params queryParams
	if o != nil {
		o.check(p)
		params = queryParams{
			OrderOn: o.OrderOn, OrderBy: o.OrderBy, Count: o.Count, Page: &o.Page, MerchantID: o.MerchantID,
		}
		for _, f := range o.Filters {
			params.Filters = append(params.Filters, f.wire())
		}
	}
	c.actFor(&params.MerchantID, p)
	return content{query: params.values()}
}

// queryParams has the query parameters of all typed operations. A call of [Client.Call] has a query of its own.
type queryParams struct {
	OrderOn    string     `url:"order_on,omitempty"`
	OrderBy    Order      `url:"order_by,omitempty"`
	Filters    []string   `url:"filter,omitempty"` // in wire form; each filter is a parameter of its own
	Count      int        `url:"count,omitempty"`
	Page       *int       `url:"page,omitempty"` // a pointer, because page 0 is sent
	MerchantID MerchantID `url:"merchant_id,omitempty"`
}

// values returns the parameters that are not empty.
func (q queryParams) values() url.Values {
	values, _ := query.Values(q) // the error is nil, because no field has a method EncodeValues
	return values
}

// merchantQuery returns the query of an operation whose only query parameter is the merchant_id.
func merchantQuery(c *caller, _ *problems) content {
	var params queryParams
	if c.actsFor != nil {
		params.MerchantID = *c.actsFor
	}
	return content{query: params.values()}
}

// check adds a problem for each option whose value is not permitted. It does not check MerchantID: actFor does.
func (o *ListOptions) check(p *problems) {
	if !isName(o.OrderOn) {
		p.add("order_on", notName)
	}
	for i, f := range o.Filters {
		f.check("filter["+strconv.Itoa(i)+"]", p)
	}
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
