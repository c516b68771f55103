package payvaulttest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const transactions = "/platform/subscription/transactions/77"

func amount(text string) payvault.Amount { return payvault.MustParseAmount(text) }

// seedTransactions seeds five transactions with the pg_ids a to e. The order of their times is a, e, b, c, d. The times
// of c and d have different UTC offsets: c is earlier than d, although a comparison of the texts would put it after d.
func seedTransactions(t *testing.T) api {
	t.Helper()
	a := newAPI(t)
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return when
	}
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, CustomerID: "C1", Transactions: []payvaulttest.Transaction{
		{
			PGID: "e", Time: at("2026-02-01T00:00:00Z"), AmtTran: amount("9.5"), Status: "P", BatchNumber: 10,
			SettleDate: "2026-02-02",
		},
		{
			PGID: "a", Time: at("2026-01-01T08:00:00-05:00"), AmtTran: amount("100"), Status: "P", BatchNumber: 9,
			DisputeFlag: true,
		},
		{
			PGID: "b", Time: at("2026-01-31T23:30:00-05:00"), AmtTran: amount("10.25"), Status: "D", BatchNumber: 2,
			SettleDate: "2026-02-01",
		},
		{PGID: "d", Time: at("2026-01-31T23:50:00-05:00"), AmtTran: amount("-3"), Status: "P"},
		{PGID: "c", Time: at("2026-02-01T06:45:00+02:00"), AmtTran: amount("10.3"), Status: "D"},
	}})
	return a
}

// list requests a list, and returns the values of a field of its records, with totalRecords and totalPages.
func (a api) list(t *testing.T, path, field string) (values []string, records, pages any) {
	t.Helper()
	got := a.get(t, path)
	require.Equal(t, http.StatusOK, got.status, "%s: %s", path, got.body)
	answer := got.object(t)
	rows, _ := answer["data"].([]any)
	for _, row := range rows {
		object, _ := row.(map[string]any)
		values = append(values, fmt.Sprint(object[field]))
	}
	return values, answer["totalRecords"], answer["totalPages"]
}

// TestLists checks which transactions a query finds, and in which order.
func TestLists(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	find := func(filters ...string) string {
		var pairs []string
		for _, filter := range filters {
			pairs = append(pairs, "filter", filter)
		}
		return query(pairs...)
	}
	for _, test := range []struct {
		query, want    string
		records, pages float64
	}{
		{find("tran_date,BETWEEN_DATES,2026-01-01,2026-01-31"), "abd", 3, 1},
		{find("tran_time,BETWEEN_DATES,2026-02-01,2026-02-01"), "ec", 2, 1},
		{find("settle_date,BETWEEN_DATES,2026-02-01,2026-02-02"), "eb", 2, 1},
		{find("tran_status,EQUALS,P"), "aed", 3, 1},
		{find("tran_status,EQUALS,p"), "", 0, 0},
		{find("amt_tran,EQUALS,10.25"), "b", 1, 1},
		{find("amt_tran,EQUALS,10"), "", 0, 0},
		{find("dispute_flag,EQUALS,true"), "a", 1, 1},
		{find("customer_id,EQUALS,C1"), "aebcd", 5, 1},
		{find("customer_id,EQUALS,C1,C2"), "", 0, 0},
		{find("tran_status,EQUALS,P", "dispute_flag,EQUALS,true"), "a", 1, 1},

		{"?order_by=desc", "dcbea", 5, 1},
		{"?order_on=tran_time&order_by=desc", "dcbea", 5, 1},
		{"?order_on=amt_tran&order_by=asc", "debca", 5, 1},
		{"?order_on=tran_status&order_by=asc", "bcaed", 5, 1},
		{"?order_on=settle_date&order_by=desc", "ebdca", 5, 1},

		{"?count=2&page=0", "ae", 5, 3},
		{"?count=2&page=1", "bc", 5, 3},
		{"?count=2&page=2", "d", 5, 3},
		{"?count=5&page=1", "", 5, 1},
		{"?count=2&page=9223372036854775807", "", 5, 3},
	} {
		got, records, pages := a.list(t, transactions+test.query, "pg_id")
		assert.Equal(t, test.want, strings.Join(got, ""), test.query)
		assert.Equal(t, []any{test.records, test.pages}, []any{records, pages}, test.query)
	}
}

// TestListFilters checks that the emulator refuses filters in two forms that generated clients and axios send: several
// filters in one parameter, and an array such as filter[]. The refusal must say how filters are sent.
func TestListFilters(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	const status, first = "tran_status%2CEQUALS%2CP", "tran_date%2CBETWEEN_DATES%2C2026-01-01%2C2026-01-31"
	for name, sent := range map[string]string{
		"filter[0]": "filter=" + first + "%2C" + status,
		"filter[1]": "filter=" + first + "&filter=" + status + "%2Camt_tran%2CGREATER_THAN%2C1",
		"filter[]":  "filter[]=" + status,
		"filter[2]": "filter%5B2%5D=" + status,
	} {
		a.get(t, transactions+"?"+sent).refused(t, 400, name)
		assert.Contains(t, a.get(t, transactions+"?"+sent).body, "send each filter in a parameter of its own: filter=FIELD")
	}
}

// TestListFields checks that the refusal of an invalid filter lists the date fields, that the refusal of an invalid
// order_on lists the fields that a list can be sorted by, and that sorting by each of these fields works.
func TestListFields(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	const between = ",BETWEEN_DATES,2026-01-01,2026-01-31"
	assert.Contains(t, a.get(t, transactions+query("filter", "tran_status"+between)).body,
		"the dates of the list: batch_date, settle_date, tran_date, tran_time")
	for path, fields := range map[string]int{transactions: 26, customers: 12} {
		got := a.get(t, path+"?order_on=nonsense").body
		_, names, _ := strings.Cut(got, "can be sorted by: ")
		names, _, _ = strings.Cut(names, `"`)
		assert.Len(t, strings.Split(names, ", "), fields, got)
		for name := range strings.SplitSeq(names, ", ") {
			a.list(t, path+"?order_on="+name, name)
		}
	}
}
