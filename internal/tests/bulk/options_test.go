package bulk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func filtered(filters ...payvault.Filter) *payvault.ListOptions {
	return &payvault.ListOptions{Filters: filters}
}

func TestListOptionsQuery(t *testing.T) {
	t.Parallel()
	first := payvault.Date{Year: 2026, Month: time.February, Day: 1}
	where := payvault.Where
	for _, test := range []struct {
		options *payvault.ListOptions
		want    string
	}{
		{nil, ""},
		{&payvault.ListOptions{}, "page=0"},
		{&payvault.ListOptions{MerchantID: 7}, "merchant_id=7&page=0"},
		{&payvault.ListOptions{Page: 12}, "page=12"},
		{&payvault.ListOptions{Count: 100}, "count=100&page=0"},
		{
			&payvault.ListOptions{OrderOn: "customer_id", OrderBy: payvault.Ascending},
			"order_by=asc&order_on=customer_id&page=0",
		},
		{&payvault.ListOptions{Prefetch: 9}, "page=0"}, // which is not sent
		{
			filtered(where("customer_email", "EQUALS", "a+b@example.com")),
			"filter=customer_email%2CEQUALS%2Ca%2Bb%40example.com&page=0",
		},
		{filtered(where("comments", "LIKE", "100% a&b=c #1")), "filter=comments%2CLIKE%2C100%25+a%26b%3Dc+%231&page=0"},
		{filtered(where("tran_status", "IN", "P", "Q", "R")), "filter=tran_status%2CIN%2CP%2CQ%2CR&page=0"},
		{filtered(where("comments", "EQUALS", "")), "filter=comments%2CEQUALS%2C&page=0"},
		{
			filtered(where("b", "EQUALS", "1"), payvault.BetweenDates("tran_date", first, first), where("a", "EQUALS", "2")),
			"filter=b%2CEQUALS%2C1&filter=tran_date%2CBETWEEN_DATES%2C2026-02-01%2C2026-02-01&filter=a%2CEQUALS%2C2&page=0",
		},
	} {
		s := &fake{pages: 1}
		client := s.client(t)
		_, err := client.Customers.List(t.Context(), test.options)
		require.NoError(t, err)
		_, err = client.Subscriptions.Transactions(t.Context(), 5, test.options)
		require.NoError(t, err)
		assert.Equal(t, []string{test.want, test.want}, s.queries())
	}
	assert.Equal(t, calls.Fixture("customers/list.query"), calls.Fixture("subscriptions/transactions.query"))
}

func TestListOptionsRefused(t *testing.T) {
	t.Parallel()
	const (
		parts = "needs a field, a conditional and a value"
		comma = "contains a comma, which separates the parts of a filter"
		dates = "BETWEEN_DATES needs two days of the form YYYY-MM-DD, the first not after the last"
		order = "is neither asc nor desc"
	)
	where := payvault.Where
	between := func(values ...string) *payvault.ListOptions {
		return filtered(where("tran_date", payvault.CondBetweenDates, values...))
	}
	for _, test := range []struct {
		options       *payvault.ListOptions
		path, message string
	}{
		{&payvault.ListOptions{OrderBy: "up"}, "order_by", order},
		{&payvault.ListOptions{OrderBy: "DESC"}, "order_by", order},
		{&payvault.ListOptions{Count: -1}, "count", "is negative"},
		{&payvault.ListOptions{Page: -1}, "page", "is negative"},
		{&payvault.ListOptions{Prefetch: -1}, "Prefetch", "is negative"},
		{filtered(where("", "EQUALS", "1")), "filter[0]", parts},
		{filtered(where("a", "", "1")), "filter[0]", parts},
		{filtered(where("a", "EQUALS")), "filter[0]", parts},
		{filtered(payvault.Filter{}), "filter[0]", parts},
		{filtered(where("a", "IN", "1"), where("", "", "")), "filter[1]", parts},
		{filtered(where("a,b", "EQUALS", "1")), "filter[0]", comma},
		{filtered(where("a", "EQ,UALS", "1")), "filter[0]", comma},
		{filtered(where("a", "IN", "1,2", "3")), "filter[0]", comma},
		{filtered(where("a", "IN", "1", "2,3")), "filter[0]", comma},
		{filtered(where("a", "IN", ",")), "filter[0]", comma},
		{between("2026-01-01,2026-01-02", "2026-01-03"), "filter[0]", comma},
		{between("2026-01-01"), "filter[0]", dates},
		{between("2026-01-01", "2026-01-02", "2026-01-03"), "filter[0]", dates},
		{between("2026-01-02", "2026-01-01"), "filter[0]", dates},
		{between("2026-02-29", "2026-03-01"), "filter[0]", dates},
		{between("2026-01-01", "2026-02-30"), "filter[0]", dates},
		{between("2026-01-01T00:00:00Z", "2026-01-02"), "filter[0]", dates},
		{between("2026-1-1", "2026-01-02"), "filter[0]", dates},
		{filtered(payvault.BetweenDates("tran_date", payvault.Date{}, payvault.Date{})), "filter[0]", dates},
	} {
		client, want := service.Client(t, service.Nowhere), service.Fields{test.path: {test.message}}
		page, err := client.Customers.List(t.Context(), test.options)
		assert.Nil(t, page)
		service.AssertInvalid(t, err, payvault.OpCustomersList, want)
		transactions, err := client.Subscriptions.Transactions(t.Context(), 1, test.options)
		assert.Nil(t, transactions)
		service.AssertInvalid(t, err, payvault.OpSubscriptionsTransactions, want)
		ids, err := walk(client.Customers.All(t.Context(), test.options))
		assert.Empty(t, ids)
		service.AssertInvalid(t, err, payvault.OpCustomersList, want)
	}
}
