package payvaulttest

import (
	"net/http"

	"example.com/payvault"
)

type tokenizeRequest struct {
	paymentFields
	VendorID   int64  `json:"vendor_id"`
	EchoFields string `json:"echo_fields"`
	ReportData string `json:"report_data"`
}

// tokens performs tokenize requests, which create and update cards.
type tokens struct {
	*state

	cards *cards
}

func addTokens(s *state, cards *cards) {
	v := tokens{s, cards}
	s.actions[payvault.OpTokensTokenize] = reading(v.tokenize)
}

// tokenize performs POST /pg/tokenize.
func (v tokens) tokenize(c *call, in tokenizeRequest) (any, error) {
	p := problems{}
	p.check(!c.account.Partner || in.VendorID == c.account.VendorID, "vendor_id", "must be the partner's own vendor ID")
	for field, text := range map[string]string{"echo_fields": in.EchoFields, "report_data": in.ReportData} {
		_, err := payvault.ParsePairs(text)
		p.check(text == "" || err == nil, field, "must be the text of a JSON array of single-pair objects")
	}
	in.check(p, "")
	if err := p.err(); err != nil {
		return nil, err
	}
	if in.WalletTwo != "" && !v.accounts.enabled(c.merchant, func(a Account) bool { return a.SecondWallet }) {
		return nil, refuse(http.StatusForbidden, "the second wallet is not enabled for the merchant")
	}
	card, err := v.cards.save(c, in.paymentFields)
	if err != nil {
		return nil, err
	}
	return tokenizeResponse{
		RCode: "000", RMsg: "Success", PGID: v.ids.text("pg"),
		CardID: card.ID, CardNumber: card.CardNumber, EchoFields: in.EchoFields,
	}, nil
}
