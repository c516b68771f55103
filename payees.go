package payvault

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/internal/answer"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// PayeesService keeps payee profiles in the payee vault, which the operator enables per account.
type PayeesService struct{ caller *caller }

// PayeeCreateRequest is a payee to store. Only the name is required.
type PayeeCreateRequest struct {
	Name       string       `json:"payee_name"`
	Email      []string     `json:"payee_email,omitempty"` // any number of addresses
	Address    PayeeAddress `json:"payee_address,omitzero"`
	Account    PayeeAccount `json:"payee_account,omitzero"`
	MerchantID MerchantID   `json:"merchant_id,omitzero"` // the merchant to act for; see also Client.ForMerchant
}

// prepare sets the merchant. It requires a name, and refuses a verified_date, which only the service assigns.
func (r *PayeeCreateRequest) prepare(c *caller, p *problems) {
	c.actFor(&r.MerchantID, p)
	require(p, "payee_name", r.Name)
	if !r.Account.VerifiedDate.IsZero() {
		p.add("payee_account.verified_date", "is assigned by the service and cannot be sent")
	}
}

// Payee is a stored payee profile.
type Payee struct {
	ID      PayeeID      `json:"payee_id,omitzero" answer:"id"`
	Name    string       `json:"payee_name,omitzero"`
	Phone   string       `json:"payee_phone,omitzero"` // only in results; the service does not document the form
	Email   []string     `json:"payee_email,omitempty"`
	Address PayeeAddress `json:"payee_address,omitzero"`
	Account PayeeAccount `json:"payee_account,omitzero"`
}

func (p *Payee) missing() string {
	if p.ID == 0 {
		return "payee_id"
	}
	return ""
}

// payeeReply is the successful answer to Create.
type payeeReply struct {
	platformReply[Payee, *Payee]
}

// afterRead clears a routing number that has lost a zero at its beginning, and adds its path to unread.
func (r *payeeReply) afterRead(body []byte, unread []string) ([]string, error) {
	var raw struct {
		Data struct {
			Account struct {
				TRNumber jsontext.Value `json:"tr_number"`
			} `json:"payee_account"`
		} `json:"data"`
	}
	_, _ = answer.ReadLenient(body, &raw) // unread already names the values that cannot be read
	if r.Data != nil && answer.HasLostZero(raw.Data.Account.TRNumber) {
		r.Data.Account.TRNumber = Secret{}
		unread = append(unread, "/data/payee_account/tr_number")
	}
	return unread, nil
}

// PayeeAddress is the address of a payee.
type PayeeAddress struct {
	Address1    string `json:"address1,omitzero"`
	Address2    string `json:"address2,omitzero"`
	City        string `json:"city,omitzero"`
	State       string `json:"state,omitzero"`
	Zip         string `json:"zip,omitzero"`                       // postal code
	CountryCode string `json:"country_code,omitzero" answer:"iso"` // the service does not document the form
	Country     string `json:"country,omitzero"`                   // the service does not document the form
}

// PayeeAccount is the ACH account of a payee.
type PayeeAccount struct {
	TypeID            ACHAccountType `json:"type_id,omitzero"`    // ACH account type
	TRNumber          Secret         `json:"tr_number,omitzero"`  // routing number
	DDANumber         Secret         `json:"dda_number,omitzero"` // account number
	AccountholderName string         `json:"accountholder_name,omitzero"`
	VerifiedDate      Timestamp      `json:"verified_date,omitzero"` // assigned by the service; refused in requests
}

// Create stores a payee profile and returns it with its ID. It fails before anything is sent if the request has no
// name, a negative MerchantID, or an account with a VerifiedDate, which only the service assigns.
//
// Not replayable. POST /platform/vault/payee.
func (s *PayeesService) Create(ctx context.Context, req *PayeeCreateRequest, opts ...CallOption) (*Payee, error) {
	var r payeeReply
	create := call{op: OpPayeesCreate.info(), content: jsonBody(req), reply: &r}
	if err := s.caller.perform(ctx, create, newCallOptions(opts)); err != nil {
		return nil, err
	}
	return r.Data, nil
}

// Delete removes a payee profile permanently. It fails before anything is sent if the ID is not positive.
//
// After [ErrOutcomeUnknown] the payee may have been deleted. A second call may be refused because the first call
// succeeded.
//
// Not replayable. DELETE /platform/vault/payee/{payee_id}.
func (s *PayeesService) Delete(ctx context.Context, id PayeeID, opts ...CallOption) error {
	return doNoData(ctx, s.caller, call{op: OpPayeesDelete.info(), path: inPath(id), content: merchantQuery}, opts)
}
