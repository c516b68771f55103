package payvaulttest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestPayeeCreate checks the answer and the stored record of a new payee.
func TestPayeeCreate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	data := a.post(t, payees, `{"payee_name":"Paula","payee_email":["p@example.com","q@example.com"],
		"payee_address":{"city":"Boston"},"payee_account":{"type_id":"S","tr_number":"123456780","dda_number":"1"}}`).ok(t)
	id, _ := data["payee_id"].(float64)
	delete(data, "payee_id")
	assert.Equal(t, map[string]any{
		"payee_name": "Paula", "payee_phone": "", "payee_email": []any{"p@example.com", "q@example.com"},
		"payee_address": map[string]any{"city": "Boston"},
		"payee_account": map[string]any{
			"type_id": "S", "tr_number": "123456780", "dda_number": "1", "verified_date": "2026-01-15T12:00:00-05:00",
		},
	}, data)
	payee, ok := a.srv.Payees.Get(payvault.PayeeID(id))
	require.True(t, ok)
	assert.Equal(t, payvaulttest.Payee{
		MerchantID: merchantID, ID: payvault.PayeeID(id), Name: "Paula",
		Email: []string{"p@example.com", "q@example.com"}, HasAccount: true,
	}, payee)
}

// TestPayeeDelete checks that a payee can be deleted by a partner that acts for its merchant, but not by another
// merchant, and only once.
func TestPayeeDelete(t *testing.T) {
	t.Parallel()
	other := payvaulttest.Account{MerchantID: 6, APIKey: "six", PayeeVault: true}
	partner := payvaulttest.Account{
		MerchantID: 7, APIKey: "seven", Partner: true, VendorID: 1, ActsFor: []payvault.MerchantID{5},
	}
	a := newAPI(t, payvaulttest.WithAccount(payvaulttest.Account{MerchantID: 5, APIKey: "five", PayeeVault: true}),
		payvaulttest.WithAccount(other), payvaulttest.WithAccount(partner))
	id, _ := a.as(partner).post(t, payees, `{"payee_name":"P","merchant_id":5}`).ok(t)["payee_id"].(float64)
	path := fmt.Sprintf("%s/%.0f", payees, id)
	a.as(other).do(t, http.MethodDelete, path, "").refused(t, http.StatusNotFound)
	assert.JSONEq(t, `{"code":0,"message":"Success","data":{}}`,
		a.as(partner).do(t, http.MethodDelete, path+"?merchant_id=5", "").body)
	a.do(t, http.MethodDelete, path, "").refused(t, http.StatusNotFound)
	assert.Empty(t, a.srv.Payees.All())
	_, found := a.srv.Payees.Get(payvault.PayeeID(id))
	assert.False(t, found)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpPayeesDelete))
}
