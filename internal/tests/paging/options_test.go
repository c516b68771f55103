package paging

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func TestListOptionsQuery(t *testing.T) {
	t.Parallel()
	day := func(d int) payvault.Date { return payvault.Date{Year: 2026, Month: time.February, Day: d} }
	for name, test := range map[string]struct {
		options *payvault.ListOptions
		acting  payvault.MerchantID
		want    string
	}{
		"nil":                  {nil, 0, ""},
		"nil, acting":          {nil, 7, "merchant_id=7"},
		"zero":                 {&payvault.ListOptions{}, 0, "page=0"},
		"zero, acting":         {&payvault.ListOptions{}, 7, "merchant_id=7&page=0"},
		"merchant":             {&payvault.ListOptions{MerchantID: 7}, 0, "merchant_id=7&page=0"},
		"merchant, acting":     {&payvault.ListOptions{MerchantID: 7}, 7, "merchant_id=7&page=0"},
		"page":                 {&payvault.ListOptions{Page: 12}, 0, "page=12"},
		"count":                {&payvault.ListOptions{Count: 100}, 0, "count=100&page=0"},
		"ascending":            {&payvault.ListOptions{OrderOn: "customer_id", OrderBy: payvault.Ascending}, 0, "order_by=asc&order_on=customer_id&page=0"},
		"prefetch is not sent": {&payvault.ListOptions{Prefetch: 9}, 0, "page=0"},
		"filter": {
			&payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", "a+b@example.com")}}, 0,
			"filter=customer_email%2CEQUALS%2Ca%2Bb%40example.com&page=0",
		},
		"value to escape": {
			&payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("comments", "LIKE", "100% a&b=c #1")}}, 0,
			"filter=comments%2CLIKE%2C100%25+a%26b%3Dc+%231&page=0",
		},
		"several values": {
			&payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("tran_status", "IN", "P", "Q", "R")}}, 0,
			"filter=tran_status%2CIN%2CP%2CQ%2CR&page=0",
		},
		"empty value": {
			&payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("comments", "EQUALS", "")}}, 0,
			"filter=comments%2CEQUALS%2C&page=0",
		},
		"several filters, in order": {
			&payvault.ListOptions{Filters: []payvault.Filter{
				payvault.Where("b", "EQUALS", "1"), payvault.BetweenDates("tran_date", day(1), day(1)), payvault.Where("a", "EQUALS", "2"),
			}},
			0, "filter=b%2CEQUALS%2C1&filter=tran_date%2CBETWEEN_DATES%2C2026-02-01%2C2026-02-01&filter=a%2CEQUALS%2C2&page=0",
		},
		"everything": {
			&payvault.ListOptions{
				OrderOn: "tran_time", OrderBy: payvault.Descending, Count: 25, Page: 2, MerchantID: 212346, Prefetch: 1,
				Filters: []payvault.Filter{
					payvault.BetweenDates("tran_date", payvault.Date{Year: 2026, Month: time.January, Day: 1}, payvault.Date{Year: 2026, Month: time.January, Day: 31}),
					payvault.Where("tran_status", "EQUALS", "P"),
				},
			},
			0, calls.Fixture("customers/list.query"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pager{answer: correct(1)}
			client := cannedClient(t, p)
			if test.acting != 0 {
				client = client.ForMerchant(test.acting)
			}
			_, err := client.Customers.List(t.Context(), test.options)
			require.NoError(t, err)
			_, err = client.Subscriptions.Transactions(t.Context(), 5, test.options)
			require.NoError(t, err)
			assert.Equal(t, []string{test.want, test.want}, p.queries)
		})
	}
	assert.Equal(t, calls.Fixture("customers/list.query"), calls.Fixture("subscriptions/transactions.query"))
}

func TestListOptionsRefused(t *testing.T) {
	t.Parallel()
	const (
		parts = "needs a field, a conditional and a value"
		comma = "contains a comma, which separates the parts of a filter"
		dates = "BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last"
	)
	between := func(values ...string) payvault.ListOptions {
		return payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("tran_date", payvault.CondBetweenDates, values...)}}
	}
	filter := func(f payvault.Filter) payvault.ListOptions {
		return payvault.ListOptions{Filters: []payvault.Filter{f}}
	}
	for name, test := range map[string]struct {
		options payvault.ListOptions
		path    string
		message string
	}{
		"order_by":                     {payvault.ListOptions{OrderBy: "up"}, "order_by", "is neither asc nor desc"},
		"order_by, upper case":         {payvault.ListOptions{OrderBy: "DESC"}, "order_by", "is neither asc nor desc"},
		"count":                        {payvault.ListOptions{Count: -1}, "count", "is negative"},
		"page":                         {payvault.ListOptions{Page: -1}, "page", "is negative"},
		"prefetch":                     {payvault.ListOptions{Prefetch: -1}, "Prefetch", "is negative"},
		"no field":                     {filter(payvault.Where("", "EQUALS", "1")), "filter[0]", parts},
		"no conditional":               {filter(payvault.Where("a", "", "1")), "filter[0]", parts},
		"no value":                     {filter(payvault.Where("a", "EQUALS")), "filter[0]", parts},
		"zero filter":                  {filter(payvault.Filter{}), "filter[0]", parts},
		"comma in the field":           {filter(payvault.Where("a,b", "EQUALS", "1")), "filter[0]", comma},
		"comma in the conditional":     {filter(payvault.Where("a", "EQ,UALS", "1")), "filter[0]", comma},
		"comma in the first value":     {filter(payvault.Where("a", "IN", "1,2", "3")), "filter[0]", comma},
		"comma in the last value":      {filter(payvault.Where("a", "IN", "1", "2,3")), "filter[0]", comma},
		"comma only":                   {filter(payvault.Where("a", "IN", ",")), "filter[0]", comma},
		"comma in a day":               {between("2026-01-01,2026-01-02", "2026-01-03"), "filter[0]", comma},
		"one day":                      {between("2026-01-01"), "filter[0]", dates},
		"three days":                   {between("2026-01-01", "2026-01-02", "2026-01-03"), "filter[0]", dates},
		"days in the wrong order":      {between("2026-01-02", "2026-01-01"), "filter[0]", dates},
		"day that does not exist":      {between("2026-02-29", "2026-03-01"), "filter[0]", dates},
		"last day that does not exist": {between("2026-01-01", "2026-02-30"), "filter[0]", dates},
		"time":                         {between("2026-01-01T00:00:00Z", "2026-01-02"), "filter[0]", dates},
		"short day":                    {between("2026-1-1", "2026-01-02"), "filter[0]", dates},
		"no days":                      {filter(payvault.BetweenDates("tran_date", payvault.Date{}, payvault.Date{})), "filter[0]", dates},
		"second filter": {
			payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("a", "IN", "1"), payvault.Where("", "", "")}}, "filter[1]", parts,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pager{answer: correct(1)}
			client := cannedClient(t, p)
			want := map[string][]string{test.path: {test.message}}
			page, err := client.Customers.List(t.Context(), &test.options)
			assert.Nil(t, page)
			service.AssertInvalid(t, err, payvault.OpCustomersList, want)
			transactions, err := client.Subscriptions.Transactions(t.Context(), 1, &test.options)
			assert.Nil(t, transactions)
			service.AssertInvalid(t, err, payvault.OpSubscriptionsTransactions, want)
			ids, err := walk(client.Customers.All(t.Context(), &test.options))
			assert.Empty(t, ids)
			service.AssertInvalid(t, err, payvault.OpCustomersList, want)
			assert.Empty(t, p.pages())
		})
	}
}
