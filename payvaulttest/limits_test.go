package payvaulttest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

func TestCardsOfBothPrefixes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for number, kind := range map[string]string{
		"341111111111111": "AM", "371111111111111": "AM", "351111111111111": "",
		"361111111111111": "",
	} {
		id, _ := a.post(t, "/pg/tokenize", `{"merchant_id":"100001","exp_date":"0130","card_number":"`+number+
			`"}`).tokenized(t)["card_id"].(string)
		card, ok := a.srv.Cards.Get(id)
		require.True(t, ok)
		assert.Equal(t, kind, card.CardType, number)
	}
}

// A merchant that has the payee vault, too, cannot delete the payees of another.
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
