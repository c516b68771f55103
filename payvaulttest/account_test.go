package payvaulttest_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

// TestAuthentication checks that only a colon and the key are accepted, and that the key is not repeated.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	key := a.srv.Merchant().APIKey
	for name, test := range map[string]struct {
		header string
		status int
	}{
		"a colon and the key":     {basic(":" + key), http.StatusOK},
		"no header":               {"", http.StatusUnauthorized},
		"no colon":                {basic(key), http.StatusUnauthorized},
		"the key as the user":     {basic(key + ":"), http.StatusUnauthorized},
		"a user":                  {basic("user:" + key), http.StatusUnauthorized},
		"another key":             {basic(":another"), http.StatusUnauthorized},
		"an empty key":            {basic(":"), http.StatusUnauthorized},
		"a bearer token":          {"Bearer " + key, http.StatusUnauthorized},
		"the key without Base 64": {"Basic :" + key, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := a.request(t, http.MethodGet, "/platform/vault/customer", "")
			r.Header.Del("Authorization")
			if test.header != "" {
				r.Header.Set("Authorization", test.header)
			}
			got := a.send(t, r)
			assert.Equal(t, test.status, got.status)
			if test.status == http.StatusUnauthorized {
				got.refused(t, http.StatusUnauthorized)
				assert.NotContains(t, got.body, key)
			}
		})
	}
}

// TestActingForAnotherMerchant checks that only a partner may act for another merchant, and only for its own merchants.
func TestActingForAnotherMerchant(t *testing.T) {
	t.Parallel()
	const customer = `{"auto_generate_customer_id":true,"customer_firm_name":"Firm","merchant_id":100002}`
	a := newAPI(t)

	a.post(t, "/platform/vault/customer", customer).refused(t, http.StatusForbidden)
	a.get(t, "/platform/vault/customer?merchant_id=100002").refused(t, http.StatusForbidden)
	a.partner().post(t, "/platform/vault/customer", customer).ok(t)
	a.partner().get(t, "/platform/vault/customer?merchant_id=31").refused(t, http.StatusForbidden)

	require.Len(t, a.srv.Customers.All(), 1)
	assert.Equal(t, payvault.MerchantID(secondID), a.srv.Customers.All()[0].NodeID)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpCustomersCreate))
}

// TestOwnMerchantMayBeNamed checks that a merchant may name its own ID.
func TestOwnMerchantMayBeNamed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.post(t, "/platform/vault/customer", `{"customer_id":"C1","customer_firm_name":"Firm","merchant_id":100001}`).ok(t)
	got := a.get(t, "/platform/vault/customer?merchant_id=100001").object(t)
	assert.InEpsilon(t, 1, got["totalRecords"], 0)
}

// TestAccountsOfOnesOwn checks that WithAccount replaces the default accounts.
func TestAccountsOfOnesOwn(t *testing.T) {
	t.Parallel()
	merchant := payvaulttest.Account{MerchantID: 5, APIKey: "five", ActsFor: []payvault.MerchantID{6}}
	a := newAPI(t, payvaulttest.WithAccount(merchant))
	assert.Equal(t, []payvaulttest.Account{merchant}, a.srv.Accounts())
	assert.Equal(t, merchant, a.srv.Merchant())
	assert.Zero(t, a.srv.Partner())
	a.post(t, "/platform/vault/customer", `{"customer_id":"C1","customer_firm_name":"Firm","merchant_id":6}`).ok(t)
	assert.Len(t, a.srv.Customers.All(), 1)

	copied := a.srv.Merchant()
	copied.ActsFor[0] = 7
	assert.Equal(t, payvault.MerchantID(6), a.srv.Merchant().ActsFor[0], "a copy")
}

// TestInvalidAccounts checks that a server does not start with invalid accounts.
func TestInvalidAccounts(t *testing.T) {
	t.Parallel()
	for name, accounts := range map[string][]payvaulttest.Account{
		"no key":        {{MerchantID: 1}},
		"no merchant":   {{APIKey: "k"}},
		"no vendor":     {{MerchantID: 1, APIKey: "k", Partner: true}},
		"one key twice": {{MerchantID: 1, APIKey: "k"}, {MerchantID: 2, APIKey: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := payvaulttest.Start(payvaulttest.WithSeed(payvaulttest.Seed{Accounts: accounts}))
			require.Error(t, err)
		})
	}
}

// TestPartnerOnly checks that applications are refused with the key of a merchant.
func TestPartnerOnly(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, call := range [][3]string{
		{http.MethodPost, "/platform/application/add", `{"channel_id":1,"sales_rep":2}`},
		{http.MethodPost, "/platform/application/1/data", `{"data":[]}`},
		{http.MethodGet, "/platform/application/1/validate", ""},
	} {
		a.do(t, call[0], call[1], call[2]).refused(t, http.StatusForbidden)
	}
	assert.Empty(t, a.srv.AllCommits())
}

// TestClients checks that the clients of a server work, with and without TLS, and fill in their IDs.
func TestClients(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]payvaulttest.Option{"plain": nil, "TLS": {payvaulttest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newInvoice(t, opts...)
			require.NoError(t, a.srv.Client().Invoices.Send(t.Context(), "INV-1", nil))
			assert.True(t, a.sent())

			card := payvault.TokenizeRequest{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229"}
			_, err := a.srv.Client().Tokens.Tokenize(t.Context(), &card)
			require.NoError(t, err, "the merchant ID is filled in")
			_, err = a.srv.PartnerClient().Tokens.Tokenize(t.Context(), &card)
			require.NoError(t, err, "the vendor ID, too")
			assert.Equal(t, payvault.MerchantID(partnerID), a.srv.Cards.All()[1].MerchantID)

			unknown := a.srv.Merchant()
			unknown.APIKey = "unknown"
			_, err = a.srv.ClientFor(unknown).Customers.List(t.Context(), nil)
			require.ErrorIs(t, err, payvault.ErrUnauthorized)
		})
	}
}

// TestClientOptions checks that options of the caller are applied, and that invalid ones panic.
func TestClientOptions(t *testing.T) {
	t.Parallel()
	a := newInvoice(t)
	client := a.srv.Client(payvault.WithUserAgent("shop/1.0"))
	require.NoError(t, client.Invoices.Send(t.Context(), "INV-1", nil))
	assert.Contains(t, a.srv.Requests()[0].Header.Get("User-Agent"), "shop/1.0")
	assert.Equal(t, http.MethodPost, a.srv.Requests()[0].Method)
	assert.Panics(t, func() { a.srv.Client(payvault.WithTimeout(-1)) })
}
