package payvaulttest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// TestServerThatCannotStart checks that, with an invalid option, Start returns an error and NewServer panics.
func TestServerThatCannotStart(t *testing.T) {
	t.Parallel()
	taken := strings.TrimSuffix(strings.TrimPrefix(newAPI(t).srv.URL, "http://"), "/api/v1")
	for name, opt := range map[string]payvaulttest.Option{
		"a taken address":      payvaulttest.WithAddr(taken),
		"a relative base path": payvaulttest.WithBasePath("api"),
		"a slash at the end":   payvaulttest.WithBasePath("/api/"),
		"two dots":             payvaulttest.WithBasePath("/a/.."),
		"a wildcard":           payvaulttest.WithBasePath("/{a}"),
		"no clock":             payvaulttest.WithClock(nil),
		"no logger":            payvaulttest.WithLogger(nil),
		"no key":               payvaulttest.WithAccount(payvaulttest.Account{MerchantID: 1}),
		"no merchant":          payvaulttest.WithAccount(payvaulttest.Account{APIKey: "k"}),
		"no vendor":            payvaulttest.WithAccount(payvaulttest.Account{MerchantID: 1, APIKey: "k", Partner: true}),
		"one key twice": payvaulttest.WithSeed(payvaulttest.Seed{
			Accounts: []payvaulttest.Account{{MerchantID: 1, APIKey: "k"}, {MerchantID: 2, APIKey: "k"}},
		}),
	} {
		_, err := payvaulttest.Start(opt)
		require.ErrorContains(t, err, "payvaulttest: ", name)
		assert.Panics(t, func() { payvaulttest.NewServer(opt) }, name)
	}
}

// TestCloseTwice checks that several calls of Close are permitted, even concurrently, and that Server.Requests still
// works afterwards.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.get(t, customers)
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(a.srv.Close)
	}
	closers.Wait()
	_, err := a.try(t, a.request(t, http.MethodGet, "/", ""))
	require.Error(t, err)
	assert.Len(t, a.srv.Requests(), 1, "what happened can still be seen")
}

// TestIDs checks that the same seed and the same order of requests give the same identifiers, and that another seed
// gives other identifiers.
func TestIDs(t *testing.T) {
	t.Parallel()
	run := func(opts ...payvaulttest.Option) [3]any {
		a := newAPI(t, opts...)
		card := a.post(t, "/pg/tokenize", newCard).tokenized(t)
		payee := a.post(t, payees, `{"payee_name":"P"}`).ok(t)
		return [3]any{card["card_id"], card["pg_id"], payee["payee_id"]}
	}
	assert.Equal(t, run(), run())
	other := run(payvaulttest.WithIDs(7))
	for i, id := range run() {
		assert.NotEqual(t, id, other[i])
	}
}

// TestGeneratedIDsReplaceNothing checks that a new record does not replace a seeded record whose ID the server would
// generate next.
func TestGeneratedIDsReplaceNothing(t *testing.T) {
	t.Parallel()
	fresh := newAPI(t).srv
	a := newAPI(t)
	customer := fresh.Customers.Seed(payvaulttest.Customer{FirmName: "F"})
	a.srv.Customers.Seed(payvaulttest.Customer{ID: customer.ID, FirmName: "F"})
	a.srv.Invoices.Seed(payvaulttest.Invoice{ID: fresh.Invoices.Seed(payvaulttest.Invoice{}).ID})
	a.srv.Disputes.Seed(payvaulttest.Dispute{ID: fresh.Disputes.Seed(payvaulttest.Dispute{}).ID})
	a.post(t, customers, `{"auto_generate_customer_id":true,"customer_firm_name":"F"}`).ok(t)
	a.srv.Invoices.Seed(payvaulttest.Invoice{})
	a.srv.Disputes.Seed(payvaulttest.Dispute{})
	assert.Len(t, a.srv.Customers.All(), 2)
	assert.Len(t, a.srv.Invoices.All(), 2)
	assert.Len(t, a.srv.Disputes.All(), 2)
}
