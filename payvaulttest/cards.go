package payvaulttest

import (
	"cmp"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/cardnumber"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// CardKind is the kind of payment data of a [Card].
type CardKind string

// The kinds of payment data.
const (
	CardKindCard   CardKind = "card"
	CardKindACH    CardKind = "ach"
	CardKindWallet CardKind = "wallet"
)

// Card is saved payment data. In JSON, its fields are named as on the wire, except kind. A stored Card has no full card
// number, security code, track, wallet payload or account number.
type Card struct {
	ID             string              `json:"card_id"`
	MerchantID     payvault.MerchantID `json:"merchant_id"`
	Kind           CardKind            `json:"kind"`
	CardNumber     string              `json:"card_number,omitzero"` // masked; empty for ACH
	ExpDate        string              `json:"exp_date,omitzero"`    // MMYY
	CardType       string              `json:"card_type"`
	CardholderName string              `json:"cardholder_name"`
	Updates        int                 `json:"-"` // how many times the card was updated
}

// cards is the store of payment data. Tokenize requests and customers share it.
type cards struct {
	*state
	*Store[string, Card]
}

func newCards(s *state) *cards {
	v := &cards{state: s}
	v.Store = newStore(s, "card", v)
	return v
}

func (*cards) key(c *Card) (string, *payvault.MerchantID) { return c.ID, &c.MerchantID }

func (v *cards) prepare(c *Card) {
	freshText(v.Store, &c.ID)
	c.Kind = cmp.Or(c.Kind, CardKindCard)
	c.CardType = cmp.Or(c.CardType, cardnumber.Network(c.CardNumber))
	c.CardNumber = cardnumber.Masked(c.CardNumber)
}

func (v *cards) permits(c *Card) error {
	billing := map[string]any{}
	c.show(billing)
	return cmp.Or(
		v.document.shows("BillingCard", billing),
		oneOf("kind", c.Kind, CardKindCard, CardKindACH, CardKindWallet),
	)
}

func (*cards) detach(*Card) {} // a copy shares nothing with the card

// paymentFields has the payment data of a tokenize request, of a billing card, or of a card in an account updater
// request. None of these three can have all the fields.
type paymentFields struct {
	CardNumber string `json:"card_number"`
	ExpDate    string `json:"exp_date"`
	Routing    string `json:"tr_number"`
	Account    string `json:"dda_number"`
	CardID     string `json:"card_id"`
	Holder     string `json:"cardholder_name"`
	Swipe      string `json:"card_swipe"`
	WalletOne  string `json:"payload_wallet_one_pay"`
	WalletTwo  string `json:"payload_wallet_two_pay"`
	Verify     bool   `json:"verify"`
}

const wrongNumber = "must be 12 to 19 digits"

// check adds problems for rules that are not in api/openapi.yaml: a request must have payment data or a card ID, the
// card number must be 12 to 19 digits, and card_swipe must be track data with a card number.
func (f *paymentFields) check(p problems, path string) {
	number, swipe := openapi.WirePath(path, "card_number"), openapi.WirePath(path, "card_swipe")
	given := f.CardID != "" || f.Swipe != "" || f.card().Kind != ""
	p.check(given, number, "or other payment data, or card_id, is required")
	p.check(f.CardNumber == "" || cardnumber.Valid(f.CardNumber), number, wrongNumber)
	p.check(f.Swipe == "" || cardnumber.OfTrack(f.Swipe) != "", swipe, "is not track data")
}

// card returns the card that the emulator keeps for the payment data. If a request has several kinds of payment data,
// card uses only the first kind in this order: card number, swipe, ACH data, wallet.
func (f *paymentFields) card() Card {
	card := Card{ExpDate: f.ExpDate, CardholderName: f.Holder}
	switch number := cmp.Or(f.CardNumber, cardnumber.OfTrack(f.Swipe)); {
	case number != "":
		card.Kind, card.CardNumber, card.CardType = CardKindCard, cardnumber.Mask(number), cardnumber.Network(number)
	case f.Routing != "" || f.Account != "":
		card.Kind = CardKindACH
	case f.WalletOne != "" || f.WalletTwo != "": // the emulator cannot read a wallet, so it makes up a number
		card.Kind, card.CardNumber = CardKindWallet, cardnumber.Mask("4000000000000002")
	}
	return card
}

// save creates a card. If the request has a card ID, save updates the card with this ID instead: new payment
// data, a new expiration date and a new cardholder name replace the saved ones. ACH data has no expiration date.
func (v *cards) save(c *call, in paymentFields) (card *Card, err error) {
	with := in.card()
	if in.CardID == "" {
		with.MerchantID = c.merchant
		card = v.put(with)
	} else if card, err = v.find(c, in.CardID); err == nil {
		card.Updates++
		card.ExpDate = cmp.Or(with.ExpDate, card.ExpDate)
		card.CardholderName = cmp.Or(with.CardholderName, card.CardholderName)
		if with.Kind != "" {
			card.Kind, card.CardNumber, card.CardType = with.Kind, with.CardNumber, with.CardType
		}
	}
	if err == nil && card.Kind == CardKindACH {
		card.ExpDate = ""
	}
	return card, err
}

// show copies the card number, expiration date and card type into a billing card. If one of these values is empty,
// show removes the field of that value from the billing card.
func (c *Card) show(billing map[string]any) {
	shown := map[string]string{"card_number": c.CardNumber, "exp_date": c.ExpDate, "card_type": c.CardType}
	for name, text := range shown {
		if billing[name] = text; text == "" {
			delete(billing, name)
		}
	}
}
