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

const payees = "/platform/vault/payee"

// TestPayeeCreate checks the answer and the stored record of a new payee.
func TestPayeeCreate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon))
	data := a.post(t, payees, `{"payee_name":"Paula","payee_email":["p@example.com","q@example.com"],
		"payee_address":{"address1":"1 Road","city":"Boston","country_code":"840","country":"United States"},
		"payee_account":{"type_id":"S","tr_number":"123456780","dda_number":"0003334440","accountholder_name":"Paul"}}`).ok(t)

	id, _ := data["payee_id"].(float64)
	delete(data, "payee_id")
	assert.Equal(t, map[string]any{
		"payee_name": "Paula", "payee_phone": "", "payee_email": []any{"p@example.com", "q@example.com"},
		"payee_address": map[string]any{
			"address1": "1 Road", "city": "Boston", "country_code": "840",
			"country": "United States",
		},
		"payee_account": map[string]any{
			"type_id": "S", "tr_number": "123456780", "dda_number": "0003334440", "accountholder_name": "Paul",
			"verified_date": "2026-01-15T12:00:00-05:00",
		},
	}, data)
	payee, ok := a.srv.Payees.Get(payvault.PayeeID(id))
	require.True(t, ok)
	assert.Equal(t, payvaulttest.Payee{
		MerchantID: merchantID, ID: payvault.PayeeID(id), Name: "Paula",
		Email: []string{"p@example.com", "q@example.com"}, HasAccount: true,
	}, payee)
}

// TestPayeeRefuses checks that an invalid payee is refused with the name of the field, and that nothing is stored.
func TestPayeeRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for body, field := range map[string]string{
		`{}`:                                  "payee_name",
		`{"payee_name":""}`:                   "payee_name",
		`{"payee_name":"P","payee_phone":""}`: "payee_phone",
		`{"payee_name":"P","payee_email":"p@example.com"}`:                  "payee_email",
		`{"payee_name":"P","payee_address":[]}`:                             "payee_address",
		`{"payee_name":"P","payee_account":[]}`:                             "payee_account",
		`{"payee_name":"P","payee_account":{"verified_date":"2026-01-15"}}`: "payee_account.verified_date",
	} {
		a.post(t, payees, body).refused(t, http.StatusBadRequest, field)
	}
	assert.Empty(t, a.srv.Payees.All())
}

// TestPayeeDelete checks that a payee can be deleted once, and which requests are refused.
func TestPayeeDelete(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.post(t, payees, `{"payee_name":"P"}`).ok(t)["payee_id"].(float64)
	path := fmt.Sprintf("%s/%.0f", payees, id)

	a.do(t, http.MethodDelete, fmt.Sprintf("%s/%.1f", payees, id), "").refused(t, http.StatusBadRequest, "payee_id")
	got := a.do(t, http.MethodDelete, path, "")
	assert.Empty(t, got.ok(t))
	assert.JSONEq(t, `{"code":0,"message":"Success","data":{}}`, got.body)
	a.do(t, http.MethodDelete, path, "").refused(t, http.StatusNotFound)
	_, ok := a.srv.Payees.Get(payvault.PayeeID(id))
	assert.False(t, ok)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpPayeesDelete))

	a.do(t, http.MethodDelete, payees+"/abc", "").refused(t, http.StatusBadRequest)
	a.do(t, http.MethodDelete, payees+"/1?force=true", "").refused(t, http.StatusBadRequest, "force")
	a.do(t, http.MethodDelete, path, `{}`).refused(t, http.StatusBadRequest)
}

// TestPayeeDeleteForAnotherMerchant checks that only a partner may delete a payee of another merchant.
func TestPayeeDeleteForAnotherMerchant(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.partner().post(t, payees, `{"payee_name":"P","merchant_id":100001}`).ok(t)["payee_id"].(float64)
	path := fmt.Sprintf("%s/%.0f", payees, id)
	a.do(t, http.MethodDelete, path+"?merchant_id=100002", "").refused(t, http.StatusForbidden)
	a.do(t, http.MethodDelete, path+"?merchant_id=", "").refused(t, http.StatusBadRequest)
	require.Len(t, a.srv.Payees.All(), 1)
	a.partner().do(t, http.MethodDelete, path+"?merchant_id=100001", "").ok(t)
	assert.Empty(t, a.srv.Payees.All())
}

// TestPayeeVaultMustBeEnabled checks that a merchant without a payee vault is refused.
func TestPayeeVaultMustBeEnabled(t *testing.T) {
	t.Parallel()
	a := newAPI(t).second(t)
	a.post(t, payees, `{"payee_name":"P"}`).refused(t, http.StatusForbidden)
	a.do(t, http.MethodDelete, payees+"/1", "").refused(t, http.StatusForbidden)
	a.partner().post(t, payees, `{"payee_name":"P","merchant_id":100002}`).refused(t, http.StatusForbidden)
	assert.Empty(t, a.srv.AllCommits())
}

// TestPayeesOfOthers checks that a merchant with a payee vault cannot delete the payees of another one.
func TestPayeesOfOthers(t *testing.T) {
	t.Parallel()
	other := payvaulttest.Account{MerchantID: 6, APIKey: "six", PayeeVault: true}
	a := newAPI(t, payvaulttest.WithAccount(payvaulttest.Account{MerchantID: 5, APIKey: "five", PayeeVault: true}),
		payvaulttest.WithAccount(other))
	id, _ := a.post(t, payees, `{"payee_name":"P"}`).ok(t)["payee_id"].(float64)
	path := fmt.Sprintf("%s/%.0f", payees, id)
	a.as(other).do(t, http.MethodDelete, path, "").refused(t, http.StatusNotFound)
	assert.Len(t, a.srv.Payees.All(), 1)
	a.do(t, http.MethodDelete, path, "").ok(t)
}
