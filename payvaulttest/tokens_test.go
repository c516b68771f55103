package payvaulttest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const newCard = `{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229","cvv2":"123"}`

// tokenize sends a tokenize request for the first merchant, with the given JSON fields, and returns the answer.
func (a api) tokenize(t *testing.T, fields string) map[string]any {
	t.Helper()
	return a.post(t, "/pg/tokenize", `{"merchant_id":"100001",`+fields+`}`).tokenized(t)
}

// TestTokenize checks the answer and the record of a new card. Neither has the full card number or the security code.
// The vendor_id of a merchant is ignored.
func TestTokenize(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	answer := a.tokenize(t, `"card_number":"4111111111111111","exp_date":"1229","cvv2":"123","vendor_id":1,
		"cardholder_name":"Jane Example","echo_fields":"[{\"order\": \"A-1\"}, {\"basket\":\"B\"}]","report_data":"[]"`)
	id, _ := answer["card_id"].(string)
	assert.NotEmpty(t, answer["pg_id"])
	delete(answer, "pg_id")
	assert.Equal(t, map[string]any{
		"rcode": "000", "rmsg": "Success", "card_id": id, "card_number": "4111xxxxxx111111",
		"echo_fields": `[{"order": "A-1"}, {"basket":"B"}]`,
	}, answer)
	card, ok := a.srv.Cards.Get(id)
	require.True(t, ok)
	assert.Equal(t, payvaulttest.Card{
		MerchantID: merchantID, ID: id, Kind: payvaulttest.CardKindCard, CardNumber: "4111xxxxxx111111",
		ExpDate: "1229", CardType: "VI", CardholderName: "Jane Example",
	}, card)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpTokensTokenize))
}

// TestTokenizeOfPartners checks that a partner can tokenize a card for a merchant if the request has the partner's own
// vendor ID.
func TestTokenizeOfPartners(t *testing.T) {
	t.Parallel()
	a := newAPI(t).partner()
	a.post(t, "/pg/tokenize", `{"merchant_id":"100002","card_number":"4111111111111111","vendor_id":7001}`).tokenized(t)
	assert.Equal(t, payvault.MerchantID(secondID), a.srv.Cards.All()[0].MerchantID)
}

// TestTokenizeKeeps checks which data of a card the server keeps, and that an update replaces the fields that the
// request has.
func TestTokenizeKeeps(t *testing.T) {
	t.Parallel()
	const (
		card = `"card_number":"4111111111111111","exp_date":"1229"`
		ach  = `"tr_number":"123456780","dda_number":"0001112220","type_id":"S","cardholder_name":"Jane"`
	)
	visa := payvaulttest.Card{Kind: "card", CardNumber: "4111xxxxxx111111", CardType: "VI"}
	dated := visa
	dated.ExpDate = "1229"
	wallet := payvaulttest.Card{Kind: "wallet", CardNumber: "4000xxxxxx000002", CardType: "VI"}
	named, jane := dated, dated
	named.CardholderName, jane.CardholderName = "Joe", "Jane"
	for name, test := range map[string]struct {
		first, update string
		want          payvaulttest.Card
	}{
		"track one":           {`"card_swipe":"%B4111111111111111^EXAMPLE/JANE^2912?"`, "", visa},
		"the card of several": {card + `,"card_swipe":";5454545454545454=29?",` + ach, "", jane},
		"19 digits": {
			`"card_number":"6011000990139424000"`, "",
			payvaulttest.Card{Kind: "card", CardNumber: "6011xxxxxxxxx424000", CardType: "DI"},
		},
		"ACH":            {ach, "", payvaulttest.Card{Kind: "ach", CardholderName: "Jane"}},
		"ACH of several": {ach + `,"payload_wallet_one_pay":"x"`, "", payvaulttest.Card{Kind: "ach", CardholderName: "Jane"}},
		"half of ACH":    {`"dda_number":"1"`, "", payvaulttest.Card{Kind: "ach"}},
		"the one wallet": {`"payload_wallet_one_pay":"x"`, "", wallet},
		"the other":      {`"payload_wallet_two_pay":"x"`, "", wallet},

		"a new number": {
			card, `"card_number":"5454545454545454"`,
			payvaulttest.Card{Kind: "card", CardNumber: "5454xxxxxx545454", ExpDate: "1229", CardType: "MC"},
		},
		"a new date":      {`"card_number":"4111111111111111","exp_date":"0130"`, `"exp_date":"1229"`, dated},
		"a new name":      {card, `"cardholder_name":"Joe"`, named},
		"another name":    {card + `,"cardholder_name":"Jane"`, `"cardholder_name":"Joe"`, named},
		"an address":      {card, `"avs_zip":"12345"`, dated},
		"a card to ACH":   {card, ach, payvaulttest.Card{Kind: "ach", CardholderName: "Jane"}},
		"ACH with a date": {ach, `"exp_date":"0130"`, payvaulttest.Card{Kind: "ach", CardholderName: "Jane"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			id, _ := a.tokenize(t, test.first)["card_id"].(string)
			if test.update != "" {
				test.want.Updates = 1
				answer := a.tokenize(t, `"card_id":"`+id+`",`+test.update)
				assert.Equal(t, id, answer["card_id"])
			}
			test.want.MerchantID, test.want.ID = merchantID, id
			assert.Equal(t, []payvaulttest.Card{test.want}, a.srv.Cards.All())
		})
	}
}
