package payvaulttest

import (
	"cmp"
	"net/http"
	"strconv"

	"example.com/payvault"
	"example.com/payvault/internal/cardnumber"
	"example.com/payvault/internal/openapi"
)

// CardKind says what kind of payment data a [Card] stands for.
type CardKind string

// The kinds of payment data.
const (
	CardKindCard   CardKind = "card"
	CardKindACH    CardKind = "ach"
	CardKindWallet CardKind = "wallet"
)

// Card is saved payment data, its fields named as on the wire, as the emulator keeps it: without card number, security
// code, track, wallet payload or account number.
type Card struct {
	ID             string              `json:"card_id"`
	MerchantID     payvault.MerchantID `json:"merchant_id"`
	Kind           CardKind            `json:"kind"`
	MaskedNumber   string              `json:"card_number"` // empty for ACH
	ExpDate        string              `json:"exp_date"`    // MMYY
	Type           string              `json:"card_type"`
	CardholderName string              `json:"cardholder_name"`
	SingleUse      bool                `json:"single_use"`
	Updates        int                 `json:"-"` // how many times the card was updated under its ID
}

func (c *Card) clone() Card { return *c }

func (v *service) prepareCard(c *Card) error {
	c.ID = freshText(v.ids, "card", v.Cards, c.ID)
	c.Kind = cmp.Or(c.Kind, CardKindCard)
	if cardnumber.Valid(c.MaskedNumber) {
		c.Type, c.MaskedNumber = cmp.Or(c.Type, cardnumber.Network(c.MaskedNumber)), cardnumber.Mask(c.MaskedNumber)
	}
	return cmp.Or(
		v.seedMerchant(&c.MerchantID),
		fits(c.MaskedNumber == "" || cardnumber.IsMasked(c.MaskedNumber), "card_number must be 12 to 19 digits, or masked"),
		fits(c.Kind == CardKindCard || c.Kind == CardKindACH || c.Kind == CardKindWallet, "kind must be card, ach or wallet"),
	)
}

type tokenizeRequest struct {
	MerchantID     string `json:"merchant_id"`
	VendorID       int64  `json:"vendor_id"`
	CardholderName string `json:"cardholder_name"`
	CardSwipe      string `json:"card_swipe"`
	WalletOne      string `json:"payload_wallet_one_pay"`
	WalletTwo      string `json:"payload_wallet_two_pay"`
	SingleUse      *bool  `json:"single_use"`
	EchoFields     string `json:"echo_fields"`
	ReportData     string `json:"report_data"`
	paymentFields
}

// The payment fields that a tokenize request and a billing card share.
type paymentFields struct {
	CardNumber string `json:"card_number"`
	ExpDate    string `json:"exp_date"`
	Routing    string `json:"tr_number"`
	Account    string `json:"dda_number"`
	CardID     string `json:"card_id"`
}

type tokenizeResponse struct {
	RCode      string `json:"rcode"`
	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id,omitzero"`
	CardID     string `json:"card_id,omitzero"`
	CardNumber string `json:"card_number,omitzero"`
	EchoFields string `json:"echo_fields,omitzero"`
}

// tokenize performs POST /pg/tokenize.
func (v *service) tokenize(c *call) (any, error) {
	in, err := bind[tokenizeRequest](c.body)
	if err != nil {
		return nil, err
	}
	if c.account.Partner && in.VendorID != c.account.VendorID {
		return nil, problems{"vendor_id": {"must be the partner's own vendor ID"}}.err()
	}
	id, err := strconv.ParseInt(in.MerchantID, 10, 64)
	if err != nil || id <= 0 {
		return nil, problems{"merchant_id": {"must be the digits of a merchant ID"}}.err()
	}
	merchant, err := c.merchant(id)
	if err != nil {
		return nil, err
	}
	if err := v.checkTokenize(merchant, &in); err != nil {
		return nil, err
	}
	card, err := v.saveCard(merchant, in.CardID, in.card(v.ids))
	if err != nil {
		return nil, err
	}
	if in.SingleUse != nil {
		card.SingleUse = *in.SingleUse
	}
	return tokenizeResponse{
		RCode: "000", RMsg: "Success", PGID: v.ids.text("pg"),
		CardID: card.ID, CardNumber: card.MaskedNumber, EchoFields: in.EchoFields,
	}, nil
}

func (v *service) checkTokenize(merchant payvault.MerchantID, in *tokenizeRequest) error {
	p := problems{}
	in.check(p, "")
	p.check(in.CardSwipe == "" || cardnumber.OfTrack(in.CardSwipe) != "", "card_swipe", "is not track data")
	p.check(in.EchoFields == "" || isPairs(in.EchoFields), "echo_fields",
		"must be the text of a JSON array of single-pair objects")
	p.check(in.ReportData == "" || isPairs(in.ReportData), "report_data",
		"must be the text of a JSON array of single-pair objects")
	p.check(in.hasData() || in.CardID != "", "card_number", "or other payment data is required")
	if err := p.err(); err != nil {
		return err
	}
	if in.WalletTwo != "" && !v.accounts.enabled(merchant, func(a Account) bool { return a.SecondWallet }) {
		return refuse(http.StatusForbidden, "the second wallet is not enabled for the merchant")
	}
	return nil
}

func (in *tokenizeRequest) hasData() bool {
	return in.paymentFields.hasData() || in.CardSwipe != "" || in.WalletOne != "" || in.WalletTwo != ""
}

func (f *paymentFields) hasData() bool {
	return f.CardNumber != "" || f.Routing != "" || f.Account != ""
}

// check looks at the payment fields beyond their shape. What is required for each kind of payment data is
// the emulator's choice.
func (f *paymentFields) check(p problems, path string) {
	p.check(f.CardNumber == "" || cardnumber.Valid(f.CardNumber), openapi.WirePath(path, "card_number"),
		"must be 12 to 19 digits")
	p.check(f.CardNumber == "" || f.ExpDate != "" || f.CardID != "", openapi.WirePath(path, "exp_date"),
		"is required with a new card number")
	p.check((f.Routing == "") == (f.Account == ""), openapi.WirePath(path, "tr_number"),
		"and dda_number are required together")
}

// card turns a request into what is kept of it. With several kinds of payment data a card number
// goes first, then a swipe, then ACH data, then a wallet.
func (in *tokenizeRequest) card(g *ids) Card {
	card := in.paymentFields.card()
	card.CardholderName = in.CardholderName
	switch {
	case in.CardNumber != "":
	case in.CardSwipe != "":
		number := cardnumber.OfTrack(in.CardSwipe)
		card.Kind, card.MaskedNumber, card.Type = CardKindCard, cardnumber.Mask(number), cardnumber.Network(number)
	case card.Kind == CardKindACH:
	case in.WalletOne != "" || in.WalletTwo != "": // the emulator cannot read it, and makes a number up
		card.Kind, card.MaskedNumber = CardKindWallet, cardnumber.Mask("40000000"+strconv.FormatInt(g.number("wallet"), 10))
	}
	return card
}

func (f *paymentFields) card() Card {
	switch {
	case f.CardNumber != "":
		return Card{
			Kind: CardKindCard, MaskedNumber: cardnumber.Mask(f.CardNumber), ExpDate: f.ExpDate,
			Type: cardnumber.Network(f.CardNumber),
		}
	case f.Routing != "":
		return Card{Kind: CardKindACH}
	}
	return Card{ExpDate: f.ExpDate}
}

// savedCard finds a card of a merchant.
func (v *service) savedCard(merchant payvault.MerchantID, id string) (*Card, bool) {
	card, ok := v.Cards.rows[id]
	return card, ok && card.MerchantID == merchant
}

// saveCard creates a card, or updates the one saved under id.
func (v *service) saveCard(merchant payvault.MerchantID, id string, card Card) (*Card, error) {
	if id == "" {
		card.MerchantID, card.ID = merchant, freshText(v.ids, "card", v.Cards, "")
		return v.Cards.put(card), nil
	}
	saved, ok := v.savedCard(merchant, id)
	if !ok {
		return nil, notFound("saved card", "card_id")
	}
	saved.update(card)
	return saved, nil
}

// update replaces what the new data carries and keeps the rest; an expiry date is kept for the same
// kind of payment data only, and never for ACH data.
func (c *Card) update(with Card) {
	c.Updates++
	if with.Kind != "" {
		if with.Kind != c.Kind {
			c.ExpDate = ""
		}
		c.Kind, c.MaskedNumber, c.Type = with.Kind, with.MaskedNumber, with.Type
	}
	if c.Kind != CardKindACH {
		c.ExpDate = cmp.Or(with.ExpDate, c.ExpDate)
	}
	c.CardholderName = cmp.Or(with.CardholderName, c.CardholderName)
}
