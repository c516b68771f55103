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

// TestAuthentication checks that the server accepts only an Authorization header with an empty user name and the key of
// an account, and that no answer contains the key.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	key := a.srv.Merchant().APIKey
	for name, test := range map[string]struct {
		header string
		status int
	}{
		"a colon and the key": {basic(":" + key), http.StatusOK},
		"no header":           {"", http.StatusUnauthorized},
		"no colon":            {basic(key), http.StatusUnauthorized},
		"the key as the user": {basic(key + ":"), http.StatusUnauthorized},
		"a user":              {basic("user:" + key), http.StatusUnauthorized},
		"another key":         {basic(":another"), http.StatusUnauthorized},
		"an empty key":        {basic(":"), http.StatusUnauthorized},
		"a bearer token":      {"Bearer " + key, http.StatusUnauthorized},
		"no Base64":           {"Basic :" + key, http.StatusUnauthorized},
	} {
		r := a.request(t, http.MethodGet, customers, "")
		r.Header.Del("Authorization")
		if test.header != "" {
			r.Header.Set("Authorization", test.header)
		}
		got := a.send(t, r)
		require.Equal(t, test.status, got.status, name)
		assert.NotContains(t, got.body, key, name)
		if test.status != http.StatusOK {
			got.refused(t, test.status)
		}
	}
}

// TestRetire checks that the server refuses the key of a retired account and no other key, and that the merchant of the
// account keeps its records. Retire must return an error for an unknown key.
func TestRetire(t *testing.T) {
	t.Parallel()
	before := payvaulttest.Account{MerchantID: 5, APIKey: "before"}
	after := payvaulttest.Account{MerchantID: 5, APIKey: "after"}
	a := newAPI(t, payvaulttest.WithAccount(before), payvaulttest.WithAccount(after))
	a.post(t, customers, `{"customer_id":"C1","customer_firm_name":"F"}`).ok(t)
	require.NoError(t, a.srv.Retire(before))
	a.get(t, customers).refused(t, http.StatusUnauthorized)
	_, records, _ := a.as(after).list(t, customers, "customer_id")
	assert.InEpsilon(t, 1, records, 0)
	assert.Len(t, a.srv.Accounts(), 2)
	require.Error(t, a.srv.Retire(payvaulttest.Account{MerchantID: 5, APIKey: "unknown"}))
}

// TestActingForAMerchant checks that an account acts for its own merchant, with or without a merchant_id in the
// request, and for the merchants in ActsFor. The server must copy the accounts that it gets and returns.
func TestActingForAMerchant(t *testing.T) {
	t.Parallel()
	given := payvaulttest.Account{MerchantID: 5, APIKey: "five", ActsFor: []payvault.MerchantID{6}}
	a := newAPI(t, payvaulttest.WithAccount(given))
	given.ActsFor[0] = 7
	a.srv.Merchant().ActsFor[0] = 7
	a.srv.Accounts()[0].ActsFor[0] = 7
	assert.Equal(t, payvault.MerchantID(6), a.srv.Merchant().ActsFor[0], "accounts are copied")
	assert.Zero(t, a.srv.Partner())
	for merchant, field := range map[payvault.MerchantID]string{5: "", 6: `,"merchant_id":6`} {
		data := a.post(t, customers, `{"customer_id":"C1","customer_firm_name":"F"`+field+`}`).ok(t)
		assert.InEpsilon(t, int64(merchant), data["node_id"], 0)
	}
	for _, path := range []string{customers, customers + "?merchant_id=5", customers + "?merchant_id=6"} {
		_, records, _ := a.list(t, path, "customer_id")
		assert.InEpsilon(t, 1, records, 0, path)
	}
}
