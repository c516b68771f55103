package payvault

import "context"

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// TokensService stores card and ACH payment data under card IDs.
type TokensService struct{ caller *caller }

// TokenizeRequest is payment data to store. Only the merchant ID is documented as required. The service does not
// document which other fields a card, an ACH account or a wallet needs. The operator of the service has to enable the
// wallet of PayloadWalletTwoPay.
type TokenizeRequest struct {
	// MerchantID is required, here or by WithMerchantID or Client.ForMerchant. On the wire it is a string.
	MerchantID MerchantID `json:"merchant_id,string"`
	ProfileID  string     `json:"profile_id,omitzero"` // payment profile of the merchant
	// DeveloperID names the integration by any text; see also WithDeveloperID.
	DeveloperID string `json:"developer_id,omitzero"`
	LocID       string `json:"loc_id,omitzero"` // store location
	// VendorID names the integrator and is required for integrators; see also WithVendorID.
	VendorID            int64          `json:"vendor_id,omitzero"`
	CardholderName      string         `json:"cardholder_name,omitzero"`        // card or account holder
	AVSAddress          string         `json:"avs_address,omitzero"`            // address for address verification
	AVSZip              string         `json:"avs_zip,omitzero"`                // postal code for address verification
	EmailAddress        []string       `json:"email_address,omitempty"`         // email addresses
	CardNumber          Secret         `json:"card_number,omitzero"`            // card number
	ExpDate             string         `json:"exp_date,omitzero"`               // MMYY; see FormatExpDate
	CVV2                Secret         `json:"cvv2,omitzero"`                   // card security code
	CardID              string         `json:"card_id,omitzero"`                // ID of the card to update
	CardSwipe           Secret         `json:"card_swipe,omitzero"`             // magnetic-stripe track data
	ClientIP            string         `json:"client_ip,omitzero"`              // IP address of the client
	TRNumber            Secret         `json:"tr_number,omitzero"`              // ACH routing number
	DDANumber           Secret         `json:"dda_number,omitzero"`             // ACH account number
	TypeID              ACHAccountType `json:"type_id,omitzero"`                // ACH account type
	PayloadWalletOnePay Secret         `json:"payload_wallet_one_pay,omitzero"` // encrypted, for the first kind of wallet
	PayloadWalletTwoPay Secret         `json:"payload_wallet_two_pay,omitzero"` // for the second kind of wallet
	SingleUse           *bool          `json:"single_use,omitzero"`             // undocumented effect; nil is not sent
	EchoFields          Pairs          `json:"echo_fields,omitempty"`           // the answer repeats them unchanged
	SessionID           string         `json:"session_id,omitzero"`             // undocumented effect
	UserID              int64          `json:"user_id,omitzero"`                // undocumented effect
	ReportData          Pairs          `json:"report_data,omitempty"`           // kept for reports
}

// prepare fills in the IDs of merchant, vendor and developer from the settings of the client. It checks the merchant ID
// and the expiration date.
func (r *TokenizeRequest) prepare(c *caller, p *problems) {
	c.actFor(&r.MerchantID, p)
	if r.MerchantID == 0 {
		r.MerchantID = c.owner
	}
	if r.VendorID == 0 {
		r.VendorID = c.vendorID
	}
	if r.DeveloperID == "" {
		r.DeveloperID = c.developerID
	}
	require(p, "merchant_id", r.MerchantID)
	checkExpDate("exp_date", r.ExpDate, p)
}

// TokenizeResponse is the answer to Tokenize.
type TokenizeResponse struct {
	RCode      string `json:"rcode"`                // always 000
	RMsg       string `json:"rmsg,omitzero"`        // result message
	PGID       string `json:"pg_id,omitzero"`       // ID of the gateway record
	CardID     string `json:"card_id,omitzero"`     // ID of the saved card; Tokenize with this ID updates the card
	CardNumber string `json:"card_number,omitzero"` // masked: first four and last six digits
	EchoFields string `json:"echo_fields,omitzero"` // the pairs of the request; see ParsePairs
}

// tokenizeReply is the successful answer to Tokenize. Its values are members beside the rcode and not members of data.
type tokenizeReply struct {
	envelope

	updates bool // the request has a CardID, so the caller can go on without a CardID in the answer

	RMsg       string `json:"rmsg"`
	PGID       string `json:"pg_id" answer:"id"`
	CardID     string `json:"card_id" answer:"id"`
	CardNumber string `json:"card_number"`
	EchoFields string `json:"echo_fields"`
}

func (r *tokenizeReply) complete() (missing string, needed bool) {
	if r.CardID == "" {
		return "/card_id", !r.updates
	}
	return "", false
}

// Tokenize stores card or ACH payment data. Without a CardID the service stores the data under a new CardID. With a
// CardID it updates the data under this CardID. A missing merchant ID and an expiration date that is not MMYY fail
// before anything is sent. An rcode other than 000 is an error: see [ErrRejected].
//
// Without a CardID a second call may store the data a second time, under another CardID, and no operation lists the
// cards that belong to no customer. If a stored card that nobody uses does no harm, call again after
// [ErrOutcomeUnknown], or pass [WithReplay].
//
// Replayable with a CardID. POST /pg/tokenize.
func (s *TokensService) Tokenize(
	ctx context.Context, req *TokenizeRequest, opts ...CallOption,
) (*TokenizeResponse, error) {
	op := OpTokensTokenize.info()
	var r tokenizeReply
	if req != nil && req.CardID != "" {
		op.Replay = ReplaySame
		r.updates = true
	}
	tokenize := call{op: op, content: jsonBody(req), reply: &r}
	if err := s.caller.perform(ctx, tokenize, newCallOptions(opts)); err != nil {
		return nil, err
	}
	return &TokenizeResponse{string(r.RCode), r.RMsg, r.PGID, r.CardID, r.CardNumber, r.EchoFields}, nil
}
