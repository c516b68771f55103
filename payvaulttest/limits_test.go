package payvaulttest_test

import (
	"fmt"
	"net/http"
	"strings"
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
		assert.Equal(t, kind, card.Type, number)
	}
}

func TestFiltersByKind(t *testing.T) {
	t.Parallel()
	a := seedTransactions(t)
	for _, filter := range []string{
		"amt_tran,CONTAINS,1", "batch_number,CONTAINS,1", "tran_time,CONTAINS,2026", "settle_date,CONTAINS,2026",
		"dispute_flag,GREATER_THAN,false", "amt_tran,BETWEEN_DATES,2026-01-01,2026-01-02",
	} {
		a.get(t, transactions+query("filter", filter)).refused(t, http.StatusBadRequest, "filter")
	}
	for filter, want := range map[string]string{ // a cell that is empty is below all others
		"settle_date,LESS_THAN,2026-02-02":    "abdc",
		"settle_date,GREATER_THAN,2026-02-01": "e",
		"settle_date,NOT_EQUALS,2026-02-02":   "abdc",
	} {
		assert.ElementsMatch(t, strings.Split(want, ""),
			strings.Split(a.page(t, transactions+query("filter", filter)).ids(), ""), filter)
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
