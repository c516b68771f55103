package payvaulttest

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"example.com/payvault"
)

// CardKind tells what kind of payment data a [Card] stands for.
type CardKind string

// The kinds of payment data.
const (
	CardKindCard   CardKind = "card"
	CardKindACH    CardKind = "ach"
	CardKindWallet CardKind = "wallet"
)

// Card is saved payment data (interface §2.1) as the emulator keeps it: without card number, security code, track,
// wallet payload or account number.
type Card struct {
	MerchantID     payvault.MerchantID
	ID             string
	Kind           CardKind
	MaskedNumber   string // empty for ACH
	ExpDate        string // MMYY
	Type           string
	CardholderName string
	SingleUse      bool
	Updates        int // how many times the card was updated under its ID
}

type cardKey struct {
	merchant payvault.MerchantID
	id       string
}

type tokenizeRequest struct {
	MerchantID     *string  `json:"merchant_id"`
	ProfileID      string   `json:"profile_id"`
	DeveloperID    string   `json:"developer_id"`
	LocID          string   `json:"loc_id"`
	VendorID       *int64   `json:"vendor_id"`
	CardholderName string   `json:"cardholder_name"`
	AVSAddress     string   `json:"avs_address"`
	AVSZip         string   `json:"avs_zip"`
	EmailAddress   []string `json:"email_address"`
	ClientIP       string   `json:"client_ip"`
	CardSwipe      string   `json:"card_swipe"`
	WalletOne      string   `json:"payload_wallet_one_pay"`
	WalletTwo      string   `json:"payload_wallet_two_pay"`
	SingleUse      *bool    `json:"single_use"`
	EchoFields     string   `json:"echo_fields"`
	SessionID      string   `json:"session_id"`
	UserID         *int64   `json:"user_id"`
	ReportData     string   `json:"report_data"`
	paymentFields
}

// The payment fields that a tokenize request and a billing card share.
type paymentFields struct {
	CardNumber string  `json:"card_number"`
	ExpDate    *string `json:"exp_date"`
	CVV        string  `json:"cvv2"`
	TypeID     string  `json:"type_id"`
	Routing    string  `json:"tr_number"`
	Account    string  `json:"dda_number"`
	CardID     string  `json:"card_id"`
}

type tokenizeResponse struct {
	RCode      string `json:"rcode"`
	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id,omitempty"`
	CardID     string `json:"card_id,omitempty"`
	CardNumber string `json:"card_number,omitempty"`
	EchoFields string `json:"echo_fields,omitempty"`
}

// tokenize performs POST /pg/tokenize.
func (v *service) tokenize(c *call) (any, error) {
	var in tokenizeRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	merchant, err := in.merchant(c.account)
	if err != nil {
		return nil, err
	}
	if err := v.checkTokenize(merchant, &in); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
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

// merchant resolves merchant_id, which tokenize carries as a string, and the vendor_id of partners.
func (in *tokenizeRequest) merchant(account Account) (payvault.MerchantID, error) {
	if in.MerchantID == nil {
		return 0, problems{"merchant_id": {"is required"}}.err()
	}
	if account.Partner && (in.VendorID == nil || *in.VendorID != account.VendorID) {
		return 0, problems{"vendor_id": {"must be the partner's own vendor ID"}}.err()
	}
	id, err := strconv.ParseInt(*in.MerchantID, 10, 64)
	if err != nil || strconv.FormatInt(id, 10) != *in.MerchantID {
		return 0, problems{"merchant_id": {"must be the digits of a merchant ID"}}.err()
	}
	return account.actFor(&id)
}

func (v *service) checkTokenize(merchant payvault.MerchantID, in *tokenizeRequest) error {
	p := problems{}
	in.check(p, "")
	ach := in.Routing != "" && in.CardNumber == "" && in.CardSwipe == ""
	p.check(!ach || in.CardID != "" || !isBlank(in.CardholderName), "cardholder_name", "is required with ACH data")
	p.check(in.CardSwipe == "" || trackNumber(in.CardSwipe) != "", "card_swipe", "is not track data")
	p.check(in.EchoFields == "" || isPairs(in.EchoFields), "echo_fields", "must be the text of a JSON array of single-pair objects")
	p.check(in.ReportData == "" || isPairs(in.ReportData), "report_data", "must be the text of a JSON array of single-pair objects")
	p.check(in.hasData() || in.CardID != "", "card_number", "or other payment data is required")
	p.check(in.hasData() || in.CardID == "" || in.changes(), "card_id", "comes without anything to update")
	if err := p.err(); err != nil {
		return err
	}
	if in.WalletTwo != "" && !v.accounts.enabled(merchant, func(a Account) bool { return a.SecondWallet }) {
		return refuse(http.StatusForbidden, "the second wallet is not enabled for the merchant")
	}
	return nil
}

func (in *tokenizeRequest) hasData() bool {
	return in.CardNumber != "" || in.CardSwipe != "" || in.Routing != "" || in.WalletOne != "" || in.WalletTwo != ""
}

// changes tells whether a request without payment data has something else that is saved with a card.
func (in *tokenizeRequest) changes() bool {
	texts := deref(in.ExpDate) + in.CVV + in.TypeID + in.CardholderName + in.AVSAddress + in.AVSZip
	return texts != "" || len(in.EmailAddress) > 0 || in.SingleUse != nil
}

// check looks at the shape of payment fields. Which of them are required for each kind of tokenize
// is not shown by the interface: this is the emulator's choice.
func (f *paymentFields) check(p problems, path string) {
	p.check(f.CardNumber == "" || isCardNumber(f.CardNumber), join(path, "card_number"), "must be 12 to 19 digits")
	p.check(f.ExpDate == nil || isExpDate(*f.ExpDate), join(path, "exp_date"), "must be MMYY")
	p.check(f.CardNumber == "" || f.ExpDate != nil || f.CardID != "", join(path, "exp_date"), "is required with a new card number")
	p.check(f.CVV == "" || isDigits(f.CVV, 3, 4), join(path, "cvv2"), "must be three or four digits")
	p.check(f.Routing == "" || isDigits(f.Routing, 9, 9), join(path, "tr_number"), "must be nine digits")
	p.check(f.Account == "" || isDigits(f.Account, 1, 17), join(path, "dda_number"), "must be up to 17 digits")
	p.check((f.Routing == "") == (f.Account == ""), join(path, "tr_number"), "and dda_number are required together")
	p.check(f.Routing == "" || f.TypeID != "", join(path, "type_id"), "is required with ACH data")
}

// card turns a request into what is kept of it. With several kinds of payment data a card number
// goes first, then a swipe, then ACH data, then a wallet.
func (in *tokenizeRequest) card(g *ids) Card {
	card := in.paymentFields.card()
	card.CardholderName = in.CardholderName
	switch {
	case in.CardNumber != "":
	case in.CardSwipe != "":
		number := trackNumber(in.CardSwipe)
		card.Kind, card.MaskedNumber, card.Type = CardKindCard, mask(number), cardType(number)
	case card.Kind == CardKindACH:
	case in.WalletOne != "" || in.WalletTwo != "":
		card.Kind, card.MaskedNumber = CardKindWallet, walletNumber(g)
	}
	return card
}

func (f *paymentFields) card() Card {
	switch {
	case f.CardNumber != "":
		return Card{Kind: CardKindCard, MaskedNumber: mask(f.CardNumber), ExpDate: deref(f.ExpDate), Type: cardType(f.CardNumber)}
	case f.Routing != "":
		return Card{Kind: CardKindACH}
	}
	return Card{ExpDate: deref(f.ExpDate)}
}

// walletNumber makes up the masked number behind a wallet payload, which the emulator cannot read.
func walletNumber(g *ids) string {
	digits := strconv.FormatInt(g.number("wallet"), 10)
	return mask("40000000" + digits)
}

// trackNumber finds the card number in magnetic-stripe data: after %B on track one, after ; on track two.
func trackNumber(swipe string) string {
	for _, start := range []string{"%B", ";"} {
		_, rest, found := strings.Cut(swipe, start)
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		if found && isCardNumber(number) {
			return number
		}
	}
	return ""
}

// saveCard creates a card, or updates the one saved under id. The caller holds the lock.
func (v *service) saveCard(merchant payvault.MerchantID, id string, card Card) (*Card, error) {
	card.MerchantID = merchant
	if id == "" {
		card.ID = v.ids.text("card")
		v.cards.put(cardKey{merchant, card.ID}, &card)
		return &card, nil
	}
	saved, ok := v.cards.get(cardKey{merchant, id})
	if !ok {
		return nil, refuse(http.StatusNotFound, "there is no saved card with this card_id")
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

// Cards returns every saved card, those of customers included, in order of creation.
func (s *Server) Cards() []Card {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return copies(s.service.cards.rows)
}

// Card returns a saved card of a merchant.
func (s *Server) Card(merchant payvault.MerchantID, id string) (Card, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	card, ok := s.service.cards.get(cardKey{merchant, id})
	if !ok {
		return Card{}, false
	}
	return *card, true
}
