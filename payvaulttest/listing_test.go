package payvaulttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
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

// seedTransactions seeds five transactions with pg_ids a to e, in order of time. The times of c and d
// are such that their instants and their texts sort differently.
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
		{
			PGID: "d", Time: at("2026-01-31T23:50:00-05:00"), AmtTran: amount("-3"), Status: "P",
			CardNumber: "4111111111111111",
		},
		{PGID: "c", Time: at("2026-02-01T06:45:00+02:00"), AmtTran: amount("10.3"), Status: "D"},
	}})
	return a
}

type page struct {
	TotalPages   json.Number `json:"totalPages"`
	TotalRecords json.Number `json:"totalRecords"`
	Data         []struct {
		PGID string `json:"pg_id"`
	} `json:"data"`
}

func (a api) page(t *testing.T, path string) page {
	t.Helper()
	got := a.get(t, path)
	require.Equal(t, http.StatusOK, got.status, got.body)
	var p page
	require.NoError(t, json.Unmarshal([]byte(got.body), &p))
	return p
}

func (p page) ids() string {
	var ids []string
	for _, row := range p.Data {
		ids = append(ids, row.PGID)
	}
	return strings.Join(ids, "")
}

func TestFilters(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	for filter, want := range map[string]string{
		"tran_date,BETWEEN_DATES,2026-01-01,2026-01-31":   "abd",
		"tran_time,BETWEEN_DATES,2026-02-01,2026-02-01":   "ec",
		"tran_date,BETWEEN_DATES,2026-01-02,2026-01-30":   "",
		"settle_date,BETWEEN_DATES,2026-02-01,2026-02-02": "be",
		"tran_status,EQUALS,P":                            "aed",
		"tran_status,EQUALS,p":                            "",
		"amt_tran,EQUALS,10.25":                           "b",
		"batch_number,EQUALS,9":                           "a",
		"dispute_flag,EQUALS,true":                        "a",
		"customer_id,EQUALS,C1":                           "aebcd",
		"customer_id,EQUALS,\nC1":                         "",
		"customer_id,EQUALS,C1,C2":                        "",
	} {
		t.Run(filter, func(t *testing.T) {
			t.Parallel()
			got := a.page(t, transactions+query("filter", filter))
			assert.ElementsMatch(t, strings.Split(want, ""), strings.Split(got.ids(), ""))
			assert.Equal(t, strconv.Itoa(len(want)), got.TotalRecords.String())
		})
	}
}

func TestFiltersCombine(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	got := a.page(t, transactions+query("filter", "tran_status,EQUALS,P", "filter", "dispute_flag,EQUALS,true",
		"filter", "tran_date,BETWEEN_DATES,2026-01-01,2026-01-31"))
	assert.Equal(t, "a", got.ids())
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	for name, test := range map[string]struct{ query, field string }{
		"unknown field":         {query("filter", "nonsense,EQUALS,1"), "filter[0]"},
		"unknown conditional":   {query("filter", "tran_status,LIKE,1"), "filter[0]"},
		"small conditional":     {query("filter", "tran_status,equals,1"), "filter[0]"},
		"two parts":             {query("filter", "tran_status,EQUALS"), "filter[0]"},
		"more than equal":       {query("filter", "amt_tran,GREATER_THAN,1"), "filter[0]"},
		"one date":              {query("filter", "tran_date,BETWEEN_DATES,2026-01-01"), "filter[0]"},
		"no such date":          {query("filter", "tran_date,BETWEEN_DATES,2026-02-30,2026-03-01"), "filter[0]"},
		"dates the wrong way":   {query("filter", "tran_date,BETWEEN_DATES,2026-02-02,2026-02-01"), "filter[0]"},
		"order on a stranger":   {query("order_on", "nonsense"), "order_on"},
		"order sideways":        {query("order_on", "pg_id", "order_by", "up"), "order_by"},
		"count zero":            {query("count", "0"), "count"},
		"count minus":           {query("count", "-1"), "count"},
		"count text":            {query("count", "ten"), "count"},
		"page minus":            {query("page", "-1"), "page"},
		"unknown parameter":     {query("limit", "1"), "limit"},
		"parameter in capitals": {query("Page", "1"), "Page"},
		"parameter twice":       {query("page", "1", "page", "2"), "page"},
		"a bare comma":          {"?filter=tran_status,EQUALS,P", ""},
		"a broken escape":       {"?page=%zz", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := a.get(t, transactions+test.query)
			if test.field == "" {
				got.refused(t, http.StatusBadRequest)
				return
			}
			got.refused(t, http.StatusBadRequest, test.field)
		})
	}
}

// A refusal names the fields that would do.
func TestListNamesItsFields(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)

	for path, want := range map[string]string{
		transactions + query("filter", "tran_status,BETWEEN_DATES,2026-01-01,2026-01-31"): "dates of the list: batch_date, " +
			"settle_date, tran_date, tran_time",
		transactions + query("order_on", "nonsense"):                                   "amt_funded, amt_refunded, ",
		customers + query("filter", "tran_date,BETWEEN_DATES,2026-01-01,2026-01-31"):   "comments, customer_email, ",
		customers + query("filter", "customer_id,BETWEEN_DATES,2026-01-01,2026-01-31"): "dates of the list: none",
		customers + query("order_on", "tran_time"):                                     "comments, customer_email, ",
	} {
		got := a.get(t, path)
		got.refused(t, http.StatusBadRequest)
		assert.Contains(t, got.body, want, path)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	for _, test := range []struct{ on, by, want string }{
		{"", "", "aebcd"},
		{"", "desc", "dcbea"},
		{"tran_time", "asc", "aebcd"},
		{"tran_time", "desc", "dcbea"},
		{"tran_time", "", "aebcd"},
		{"amt_tran", "asc", "debca"},
		{"amt_tran", "desc", "acbed"},
		{"batch_number", "asc", "cdbae"},
		{"tran_status", "asc", "bcaed"},
		{"tran_status", "desc", "deacb"},
		{"pg_id", "desc", "edcba"},
		{"settle_date", "desc", "ebdca"},
	} {
		t.Run(test.on+" "+test.by, func(t *testing.T) {
			t.Parallel()
			var pairs []string
			if test.on != "" {
				pairs = append(pairs, "order_on", test.on)
			}
			if test.by != "" {
				pairs = append(pairs, "order_by", test.by)
			}
			assert.Equal(t, test.want, a.page(t, transactions+query(pairs...)).ids())
		})
	}
}

func TestEveryTransactionFieldCanBeUsed(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	a.srv.Subscriptions.Seed(payvaulttest.Subscription{ID: 77, Transactions: []payvaulttest.Transaction{{
		AuthCode: "A", RMsg: "approved", CardNumber: "4111111111111111", PurchaseID: "P", CardholderFirstName: "J",
		CardholderLastName: "D",
		BatchNumber:        1, MerchRefNum: "M", BatchID: 2, BatchDate: "2026-01-16", SettleDate: "2026-01-17",
	}}})
	got := a.get(t, transactions+query("count", "1"))
	rows, _ := got.object(t)["data"].([]any)
	row, _ := rows[0].(map[string]any)
	assert.Len(t, row, 25, "the fields of a transaction in api/openapi.yaml")
	for field := range row {
		a.page(t, transactions+query("order_on", field))
	}
	a.page(t, transactions+query("order_on", "tran_date"))
}

func TestPaging(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	for _, test := range []struct{ count, page, want, pages string }{
		{"2", "0", "ae", "3"},
		{"2", "1", "bc", "3"},
		{"2", "2", "d", "3"},
		{"2", "3", "", "3"},
		{"5", "0", "aebcd", "1"},
		{"5", "1", "", "1"},
		{"100", "0", "aebcd", "1"},
		{"2", "9223372036854775807", "", "3"},
		{"9223372036854775807", "0", "aebcd", "1"},
	} {
		got := a.page(t, transactions+query("count", test.count, "page", test.page))
		assert.Equal(t, test.want, got.ids(), "%+v", test)
		assert.Equal(t, test.pages, got.TotalPages.String(), "%+v", test)
		assert.Equal(t, "5", got.TotalRecords.String())
	}
}

func TestDefaultCount(t *testing.T) {
	const defaultCount = 25
	t.Parallel()
	a := newAPI(t)
	for i := range defaultCount + 1 {
		a.post(t, "/platform/vault/customer", fmt.Sprintf(`{"customer_id":"C%02d","customer_firm_name":"F"}`, i)).ok(t)
	}
	got := a.page(t, "/platform/vault/customer")
	assert.Len(t, got.Data, defaultCount)
	assert.Equal(t, "2", got.TotalPages.String())
	assert.Len(t, a.page(t, "/platform/vault/customer?page=1").Data, 1)
}

func TestCustomerList(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	empty := a.get(t, "/platform/vault/customer")
	assert.JSONEq(t, `{"code":0,"message":"Success","totalPages":0,"totalRecords":0,"data":[]}`, empty.body)

	created := a.post(t, "/platform/vault/customer",
		`{"customer_id":"B","customer_firm_name":"Firm","customer_email":"a@example.com"}`).ok(t)
	a.post(t, "/platform/vault/customer",
		`{"customer_id":"A","customer_first_name":"Ann","customer_last_name":"Other"}`).ok(t)

	rows, _ := a.get(t, "/platform/vault/customer"+
		query("order_on", "customer_id", "order_by", "desc")).object(t)["data"].([]any)
	require.Len(t, rows, 2)
	assert.Equal(t, created, rows[0], "as create answered")
	rows, _ = a.get(t, "/platform/vault/customer"+
		query("filter", "customer_first_name,EQUALS,Ann")).object(t)["data"].([]any)
	assert.Len(t, rows, 1)
	for _, field := range []string{
		"customer_id", "rec_id", "node_id", "customer_first_name", "customer_last_name", "customer_firm_name",
		"customer_phone",
		"customer_email", "reference_id", "comments", "developer_id", "primary_card_number",
	} {
		a.page(t, "/platform/vault/customer"+query("order_on", field))
	}
	a.get(t, "/platform/vault/customer"+query("order_on", "tran_time")).refused(t, http.StatusBadRequest, "order_on")
	assert.Empty(t, a.page(t, "/platform/vault/customer"+query("filter", "customer_id,EQUALS,\nA")).Data)
	assert.Empty(t, a.second(t).page(t, "/platform/vault/customer").Data)
	assert.Equal(t, 17, a.srv.Commits(payvault.OpCustomersList), "refused requests do not count")
}
