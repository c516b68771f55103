package payvaulttest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

const newCard = `{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229","cvv2":"123"}`

// TestTokenizeCreates checks the answer and the stored record of a new card.
func TestTokenizeCreates(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	answer := a.post(t, "/pg/tokenize", `{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",
		"cvv2":"123","cardholder_name":"Jane Example","email_address":["jane@example.com"],"single_use":true,"user_id":5,
		"echo_fields":"[{\"order\": \"A-1\"}, {\"basket\":\"B\"}]","report_data":"[]"}`).tokenized(t)

	assert.Equal(t, "4111xxxxxx111111", answer["card_number"])
	assert.Equal(t, `[{"order": "A-1"}, {"basket":"B"}]`, answer["echo_fields"], "unchanged")
	assert.NotEmpty(t, answer["pg_id"])
	assert.NotContains(t, answer, "cvv2")
	id, _ := answer["card_id"].(string)
	card, ok := a.srv.Cards.Get(id)
	require.True(t, ok)
	assert.Equal(t, payvaulttest.Card{
		MerchantID: merchantID, ID: id, Kind: payvaulttest.CardKindCard, CardNumber: "4111xxxxxx111111",
		ExpDate: "1229", CardType: "VI", CardholderName: "Jane Example",
	}, card)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpTokensTokenize))
}

// TestTokenizeMasks checks how card numbers are masked, and which card type they have.
func TestTokenizeMasks(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for number, masked := range map[string]string{
		"411111111111":        "4111xx111111",
		"378282246310005":     "3782xxxxx310005",
		"6011000990139424000": "6011xxxxxxxxx424000",
		"2223003122003222":    "2223xxxxxx003222",
		"9792000000000001":    "9792xxxxxx000001",
	} {
		answer := a.post(t, "/pg/tokenize", `{"merchant_id":"100001","exp_date":"0130","card_number":"`+number+
			`"}`).tokenized(t)
		assert.Equal(t, masked, answer["card_number"])
	}
	var types []string
	for _, card := range a.srv.Cards.All() {
		types = append(types, card.CardType)
	}
	assert.ElementsMatch(t, []string{"VI", "AM", "DI", "MC", ""}, types)
}

// TestTokenizeUpdates checks that a request with a card_id updates that card.
func TestTokenizeUpdates(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.post(t, "/pg/tokenize", newCard).tokenized(t)["card_id"].(string)

	answer := a.post(t, "/pg/tokenize", `{"merchant_id":"100001","card_id":"`+id+
		`","card_number":"5454545454545454","exp_date":"0131"}`).tokenized(t)
	assert.Equal(t, id, answer["card_id"])
	assert.Equal(t, "5454xxxxxx545454", answer["card_number"])
	require.Len(t, a.srv.Cards.All(), 1)
	card := a.srv.Cards.All()[0]
	assert.Equal(t, "0131", card.ExpDate)
	assert.Equal(t, "MC", card.CardType)
	assert.Equal(t, 1, card.Updates)

	a.post(t, "/pg/tokenize", `{"merchant_id":"100001","card_id":"`+id+`","exp_date":"0232"}`).tokenized(t)
	card, _ = a.srv.Cards.Get(id)
	assert.Equal(t, "0232", card.ExpDate)
	assert.Equal(t, "5454xxxxxx545454", card.CardNumber, "kept")
}

// TestTokenizeKinds checks which kind of card is stored for each kind of payment data.
func TestTokenizeKinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fields string
		kind   payvaulttest.CardKind
		number string
	}{
		"ACH": {
			`"tr_number":"123456780","dda_number":"0001112220","type_id":"S","cardholder_name":"Jane"`,
			payvaulttest.CardKindACH, "",
		},
		"track one": {`"card_swipe":"%B4111111111111111^EXAMPLE/JANE^2912?"`, payvaulttest.CardKindCard, "4111xxxxxx111111"},
		"track two": {`"card_swipe":";5454545454545454=2912?"`, payvaulttest.CardKindCard, "5454xxxxxx545454"},
		"card first": {
			`"card_number":"4111111111111111","exp_date":"1229","card_swipe":";5454545454545454=29?","tr_number":"123456780",` +
				`"dda_number":"1","type_id":"S"`,
			payvaulttest.CardKindCard, "4111xxxxxx111111",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			got := a.post(t, "/pg/tokenize", `{"merchant_id":"100001",`+test.fields+`}`)
			got.tokenized(t)
			assert.NotContains(t, got.body, "0001112220")
			assert.Equal(t, test.kind, a.srv.Cards.All()[0].Kind)
			assert.Equal(t, test.number, a.srv.Cards.All()[0].CardNumber)
		})
	}
}

// TestTokenizeRequiresAnyPaymentData checks that a request needs some payment data. The service does not document
// which, so this is a choice of the emulator.
func TestTokenizeRequiresAnyPaymentData(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for fields, want := range map[string]payvaulttest.Card{
		`,"card_number":"4111111111111111"`: {
			Kind: payvaulttest.CardKindCard, CardNumber: "4111xxxxxx111111", CardType: "VI",
		},
		`,"tr_number":"123456780"`: {Kind: payvaulttest.CardKindACH},
		`,"dda_number":"1"`:        {Kind: payvaulttest.CardKindACH},
	} {
		id, _ := a.post(t, "/pg/tokenize", `{"merchant_id":"100001"`+fields+`}`).tokenized(t)["card_id"].(string)
		card, _ := a.srv.Cards.Get(id)
		want.ID, want.MerchantID = id, merchantID
		assert.Equal(t, want, card, fields)
	}
	for _, fields := range []string{
		``, `,"card_number":""`, `,"exp_date":"1229","cvv2":"123","cardholder_name":"Jane"`, `,"type_id":"S"`,
		`,"card_id":""`,
	} {
		got := a.post(t, "/pg/tokenize", `{"merchant_id":"100001"`+fields+`}`)
		assert.Equal(t, http.StatusBadRequest, got.status, fields)
		assert.Equal(t, map[string]any{
			"rcode": "400", "rmsg": "Invalid request: card_number or other payment data, or card_id, is required",
		}, got.object(t), fields)
	}
	const billing = `{"customer_id":"C","customer_firm_name":"F","billing_cards":[{"exp_date":"1229"}]}`
	a.post(t, "/platform/vault/customer", billing).refused(t, http.StatusBadRequest, "billing_cards[0].card_number")
	assert.Len(t, a.srv.Cards.All(), 3)
}

// TestTokenizeWallets checks that wallet payloads are accepted, and refused for a merchant without wallets.
func TestTokenizeWallets(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	answer := a.post(t, "/pg/tokenize", `{"merchant_id":"100001","payload_wallet_one_pay":"opaque"}`).tokenized(t)
	assert.Regexp(t, `^4000x+\d{6}$`, answer["card_number"])
	a.post(t, "/pg/tokenize", `{"merchant_id":"100001","payload_wallet_two_pay":"opaque"}`).tokenized(t)

	got := a.second(t).post(t, "/pg/tokenize", `{"merchant_id":"100002","payload_wallet_two_pay":"opaque"}`)
	assert.Equal(t, http.StatusForbidden, got.status)
	assert.Equal(t, "403", got.object(t)["rcode"])
}

// TestTokenizeRefuses checks that an invalid request is refused with the name of the field, without repeating a value.
func TestTokenizeRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, test := range map[string]struct {
		body   string
		status int
		names  string
	}{
		"no merchant": {`{"card_number":"4111111111111111","exp_date":"1229"}`, 400, "merchant_id"},
		"an integer merchant": {
			`{"merchant_id":100001,"card_number":"4111111111111111","exp_date":"1229"}`, 400,
			"merchant_id",
		},
		"a named merchant": {`{"merchant_id":"Acme"}`, 403, "merchant_id"},
		"another merchant": {
			`{"merchant_id":"100002","card_number":"4111111111111111","exp_date":"1229"}`, 403,
			"merchant_id",
		},
		"a short number": {
			`{"merchant_id":"100001","card_number":"41111111111","exp_date":"1229"}`, 400,
			"card_number",
		},
		"a spaced number": {
			`{"merchant_id":"100001","card_number":"4111 1111 1111 1111","exp_date":"1229"}`, 400,
			"card_number",
		},
		"month 13": {
			`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1329"}`, 400,
			"exp_date",
		},
		"a long date": {
			`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"12/29"}`, 400,
			"exp_date",
		},
		"an unknown card": {
			`{"merchant_id":"100001","card_id":"NONE","card_number":"4111111111111111"}`, 404,
			"card",
		},
		"no track": {`{"merchant_id":"100001","card_swipe":"nonsense"}`, 400, "request: card_swipe is not track data"},
		"echo is no text": {`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",` +
			`"echo_fields":[]}`, 400, "echo_fields"},
		"echo with a name twice": {`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",` +
			`"echo_fields":"[{\"a\":\"1\",\"a\":\"2\"}]"}`, 400, "echo_fields"},
		"report with a name twice": {`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",` +
			`"report_data":"[{\"a\":\"1\",\"a\":\"2\"}]"}`, 400, "report_data"},
		"an empty date of a swipe": {
			`{"merchant_id":"100001","card_swipe":";5454545454545454=2912?","exp_date":""}`, 400,
			"exp_date",
		},
		"echo is no array": {`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",` +
			`"echo_fields":"{}"}`, 400, "echo_fields"},
		"report has a double": {`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229",` +
			`"report_data":"[{\"a\":1,\"b\":2}]"}`, 400, "report_data"},
		"vendor is a string": {
			`{"merchant_id":"100001","card_number":"4111111111111111","exp_date":"1229","vendor_id":"7"}`, 400, "vendor_id",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := a.post(t, "/pg/tokenize", test.body)
			assert.Equal(t, test.status, got.status)
			answer := got.object(t)
			assert.NotEqual(t, "000", answer["rcode"])
			assert.Contains(t, answer["rmsg"], test.names)
			assert.NotContains(t, got.body, "41111", "no value is repeated")
			assert.NotContains(t, answer, "card_id")
		})
	}
	t.Cleanup(func() { assert.Empty(t, a.srv.Cards.All()) })
}

// TestTokenizeOfPartners checks that a partner must send its vendor_id.
func TestTokenizeOfPartners(t *testing.T) {
	t.Parallel()
	a := newAPI(t).partner()
	for _, body := range []string{
		`{"merchant_id":"100002","card_number":"4111111111111111","exp_date":"1229"}`,
		`{"merchant_id":"100002","card_number":"4111111111111111","exp_date":"1229","vendor_id":1}`,
	} {
		got := a.post(t, "/pg/tokenize", body)
		assert.Equal(t, http.StatusBadRequest, got.status)
		assert.Contains(t, got.object(t)["rmsg"], "vendor_id")
	}
	a.post(t, "/pg/tokenize",
		`{"merchant_id":"100002","card_number":"4111111111111111","exp_date":"1229","vendor_id":7001}`).tokenized(t)
	assert.Equal(t, payvault.MerchantID(secondID), a.srv.Cards.All()[0].MerchantID)
}

// TestCardsOfOtherMerchantsAreUnknown checks that a merchant cannot update the card of another one.
func TestCardsOfOtherMerchantsAreUnknown(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	id, _ := a.post(t, "/pg/tokenize", newCard).tokenized(t)["card_id"].(string)
	got := a.second(t).post(t, "/pg/tokenize", `{"merchant_id":"100002","card_id":"`+id+
		`","card_number":"5454545454545454"}`)
	assert.Equal(t, http.StatusNotFound, got.status)
	assert.Equal(t, "4111xxxxxx111111", a.srv.Cards.All()[0].CardNumber)
}

// TestTokenizeUpdatesKinds checks which fields of a card an update changes.
func TestTokenizeUpdatesKinds(t *testing.T) {
	t.Parallel()
	const ach = `"tr_number":"123456780","dda_number":"0001112220","type_id":"S","cardholder_name":"Jane"`
	const card = `"card_number":"4111111111111111","exp_date":"1229"`
	for name, test := range map[string]struct {
		first, update string
		want          payvaulttest.Card
	}{
		"a card to ACH": {card, ach, payvaulttest.Card{Kind: "ach", CardholderName: "Jane"}},
		"ACH to a card": {ach, card, payvaulttest.Card{
			Kind: "card", CardNumber: "4111xxxxxx111111", ExpDate: "1229",
			CardType: "VI", CardholderName: "Jane",
		}},
		"ACH has no expiry": {ach, `"exp_date":"0130"`, payvaulttest.Card{Kind: "ach", CardholderName: "Jane"}},
		"the date is kept": {
			card, `"card_number":"5454545454545454"`,
			payvaulttest.Card{Kind: "card", CardNumber: "5454xxxxxx545454", ExpDate: "1229", CardType: "MC"},
		},
		"the name only": {card, `"cardholder_name":"Joe"`, payvaulttest.Card{
			Kind:       "card",
			CardNumber: "4111xxxxxx111111", ExpDate: "1229", CardType: "VI", CardholderName: "Joe",
		}},
		"an address only": {
			card, `"avs_zip":"12345"`,
			payvaulttest.Card{Kind: "card", CardNumber: "4111xxxxxx111111", ExpDate: "1229", CardType: "VI"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t)
			id, _ := a.post(t, "/pg/tokenize", `{"merchant_id":"100001",`+test.first+`}`).tokenized(t)["card_id"].(string)
			a.post(t, "/pg/tokenize", `{"merchant_id":"100001","card_id":"`+id+`",`+test.update+`}`).tokenized(t)
			test.want.MerchantID, test.want.ID, test.want.Updates = merchantID, id, 1
			assert.Equal(t, []payvaulttest.Card{test.want}, a.srv.Cards.All())
		})
	}
}
