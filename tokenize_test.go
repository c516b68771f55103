package payvault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestTokenize_filled checks that WithMerchantID, WithVendorID and WithDeveloperID fill the empty fields of a request,
// and only those.
func TestTokenize_filled(t *testing.T) {
	t.Parallel()
	own := &payvault.TokenizeRequest{MerchantID: 7, VendorID: 8, DeveloperID: "nine"}
	for body, request := range map[string]*payvault.TokenizeRequest{
		`{"merchant_id":"1","vendor_id":2,"developer_id":"3"}`:    {},
		`{"merchant_id":"7","vendor_id":8,"developer_id":"nine"}`: own,
	} {
		got := perform(t, payvault.OpTokensTokenize, request,
			payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))
		assert.JSONEq(t, body, got)
	}
}

// TestTokenize_refused checks that Tokenize requires a request and a merchant ID.
func TestTokenize_refused(t *testing.T) {
	t.Parallel()
	const op = payvault.OpTokensTokenize
	assertRefused(t, op, (*payvault.TokenizeRequest)(nil), service.Fields{"request": {"is nil"}})
	assertRefused(t, op, &payvault.TokenizeRequest{}, service.Fields{"merchant_id": {calls.Required}})
}

// TestTokenize_cardID checks an answer without a readable card_id. If the request has no CardID, the answer is an
// error. If the request has a CardID, the answer is a success, and Unread names the card_id.
func TestTokenize_cardID(t *testing.T) {
	t.Parallel()
	create, update := named(t, "tokens.tokenize without a CardID"), named(t, "tokens.tokenize with a CardID")
	assertUnread(t, create, `{"rcode":"000"}`, "/card_id is missing")
	assertUnread(t, create, `{"rcode":"000","card_id":8.61e+30}`, "/card_id is missing, and cannot be read: /card_id")
	assertRead(t, update, `{"rcode":"000"}`, &payvault.TokenizeResponse{RCode: "000"}, "/card_id")
}

// TestTokenize_rcode checks that the number 0 is read as the rcode 000, also beside a code without digits. The text
// "0", an rcode {}, which counts as missing, and the rcode 051 must make the call fail.
func TestTokenize_rcode(t *testing.T) {
	t.Parallel()
	tokenize := named(t, "tokens.tokenize without a CardID")
	success := &payvault.TokenizeResponse{RCode: "000", CardID: "A"}
	assertRead(t, tokenize, `{"rcode":0,"code":"OK","card_id":"A"}`, success)
	assertUnread(t, tokenize, `{"rcode":"0","card_id":"A"}`, "another result code")
	assertUnread(t, tokenize, `{"rcode":{},"code":0,"card_id":"A"}`, "no result code")
	assertUnread(t, tokenize, `{"rcode":"051","code":5,"card_id":"A"}`, ": code 051")
}
