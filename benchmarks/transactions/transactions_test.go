// Package transactions measures how fast pages of transactions are read. The report runs it twice: with this build of
// payvault, and with an earlier build. So it may use only what both builds have.
package transactions

import (
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json" // becomes encoding/json/v2 in Go 1.27
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/benchmarks/internal/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const pageSize = 100

// answer is a page of records.
type answer[T any] struct {
	Code         int    `json:"code"`
	Message      string `json:"message"`
	TotalPages   int    `json:"totalPages"`
	TotalRecords int    `json:"totalRecords"`
	Data         []T    `json:"data"`
}

// transaction has the fields of a payvault.Transaction as strings, bools, integers and floats.
type transaction struct {
	MerchantID          int64   `json:"merchant_id"`
	Time                string  `json:"tran_time"`
	Status              string  `json:"tran_status"`
	AuthCode            string  `json:"auth_code"`
	RCode               string  `json:"rcode"`
	RMsg                string  `json:"rmsg"`
	CardNumber          string  `json:"card_number"`
	CardType            string  `json:"card_type"`
	PurchaseID          string  `json:"purchase_id"`
	PGID                string  `json:"pg_id"`
	CardholderFirstName string  `json:"cardholder_first_name"`
	CardholderLastName  string  `json:"cardholder_last_name"`
	AmtTran             float64 `json:"amt_tran"`
	Currency            string  `json:"tran_currency"`
	DisputeFlag         bool    `json:"dispute_flag"`
	AmtRefunded         float64 `json:"amt_refunded"`
	BatchNumber         int64   `json:"batch_number"`
	CustomerID          string  `json:"customer_id"`
	SubscriptionID      int64   `json:"subscription_id"`
	MerchRefNum         string  `json:"merch_ref_num"`
	BatchID             int64   `json:"batch_id"`
	BatchDate           string  `json:"batch_date"`
	SettleDate          string  `json:"settle_date"`
	AmtFunded           float64 `json:"amt_funded"`
	FundedCurrency      string  `json:"funded_currency"`
}

// page returns a page with 100 copies of the first transaction in testdata, about 60 KB. The argument pages is the
// number of pages of the list.
func page(tb testing.TB, pages int) string {
	tb.Helper()
	text, err := os.ReadFile("../../testdata/subscriptions/transactions.response.json")
	require.NoError(tb, err)
	var page map[string]any
	require.NoError(tb, stdjson.Unmarshal(text, &page))
	page["data"] = slices.Repeat(page["data"].([]any)[:1], pageSize)
	page["totalPages"], page["totalRecords"] = pages, pages*pageSize
	text, err = stdjson.Marshal(page)
	require.NoError(tb, err)
	return string(text)
}

func newClient(tb testing.TB, transport http.RoundTripper) *payvault.Client {
	tb.Helper()
	client, err := payvault.NewClient("http://127.0.0.1", "merchant-api-key",
		payvault.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(tb, err)
	return client
}

// TestFields checks that the type transaction has every field of the answer.
func TestFields(t *testing.T) {
	t.Parallel()
	var read answer[transaction]
	require.NoError(t, stdjson.Unmarshal([]byte(page(t, 1)), &read))
	written, err := stdjson.Marshal(read)
	require.NoError(t, err)
	assert.JSONEq(t, page(t, 1), string(written))
}

// BenchmarkTransactions reads a page of 100 transactions in three ways: in a whole call of payvault, into the types of
// payvault with the JSON package that payvault uses, and into a plain struct with encoding/json.
func BenchmarkTransactions(b *testing.B) {
	text := []byte(page(b, 1))
	b.Run("impl=encodingjson", func(b *testing.B) {
		var read answer[transaction]
		rig.Measure(b, func() error {
			read = answer[transaction]{}
			return stdjson.Unmarshal(text, &read)
		})
		require.Len(b, read.Data, pageSize)
	})
	b.Run("impl=decoder", func(b *testing.B) {
		var read answer[payvault.Transaction]
		rig.Measure(b, func() error {
			read = answer[payvault.Transaction]{}
			return json.Unmarshal(text, &read)
		})
		require.Len(b, read.Data, pageSize)
	})
	b.Run("impl=payvault", func(b *testing.B) {
		c, ctx := newClient(b, rig.NewCanned(string(text))), b.Context()
		var read *payvault.Page[payvault.Transaction]
		rig.Measure(b, func() (err error) {
			read, err = c.Subscriptions.Transactions(ctx, 1, nil)
			return err
		})
		require.Len(b, read.Items, pageSize)
	})
}

// pager is a transport that answers with pages of transactions, and with an empty page after the last one. The first
// transaction of each page has an ID of its own, because a walk refuses a page that repeats the one before.
type pager struct {
	page string
	last int // number of the last page
}

func (p pager) RoundTrip(req *http.Request) (*http.Response, error) {
	number, err := strconv.Atoi(req.URL.Query().Get("page"))
	if err != nil || number > p.last {
		return rig.NewCanned(`{"code":0,"message":"Success","data":[]}`).RoundTrip(req)
	}
	body := strings.Replace(p.page, "PG6003", "PAGE"+strconv.Itoa(number), 1)
	return rig.NewCanned(body).RoundTrip(req)
}

// BenchmarkAllTransactions walks over 1,000,000 transactions.
func BenchmarkAllTransactions(b *testing.B) {
	const pages = 10_000
	b.Run("impl=payvault", func(b *testing.B) {
		c, ctx := newClient(b, pager{page(b, pages), pages - 1}), b.Context()
		options := &payvault.ListOptions{Count: pageSize, Prefetch: 8}
		rig.Measure(b, func() error {
			n := 0
			for _, err := range c.Subscriptions.AllTransactions(ctx, 1, options) {
				if err != nil {
					return err
				}
				n++
			}
			if n != pages*pageSize {
				return fmt.Errorf("%d transactions instead of %d", n, pages*pageSize)
			}
			return nil
		})
	})
}
