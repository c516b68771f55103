package payvaulttest

import (
	"net/http"
	"slices"
	"time"

	"example.com/payvault"
)

// Payee is what a test can see of a saved payee profile (interface §2.3).
type Payee struct {
	MerchantID payvault.MerchantID
	ID         payvault.PayeeID
	Name       string
	Emails     []string
	HasAccount bool
}

type payeeRequest struct {
	Name       string        `json:"payee_name"`
	Email      []string      `json:"payee_email"`
	Address    *payeeAddress `json:"payee_address"`
	Account    *payeeAccount `json:"payee_account"`
	MerchantID *int64        `json:"merchant_id"`
}

type payeeAddress struct {
	Address1    string `json:"address1,omitempty"`
	Address2    string `json:"address2,omitempty"`
	City        string `json:"city,omitempty"`
	State       string `json:"state,omitempty"`
	Zip         string `json:"zip,omitempty"`
	CountryCode string `json:"country_code,omitempty"`
	Country     string `json:"country,omitempty"`
}

type payeeAccount struct {
	TypeID        string `json:"type_id,omitempty"`
	Routing       string `json:"tr_number,omitempty"`
	Account       string `json:"dda_number,omitempty"`
	AccountHolder string `json:"accountholder_name,omitempty"`
}

type payeeRecord struct {
	ID      payvault.PayeeID     `json:"payee_id"`
	Name    string               `json:"payee_name"`
	Phone   string               `json:"payee_phone"`
	Email   []string             `json:"payee_email"`
	Address *payeeAddress        `json:"payee_address,omitempty"`
	Account *payeeAccountOutcome `json:"payee_account,omitempty"`
}

// The account as the answer of create repeats it. The emulator does not keep its numbers.
type payeeAccountOutcome struct {
	payeeAccount
	VerifiedDate string `json:"verified_date"`
}

// createPayee performs POST /platform/vault/payee.
func (v *service) createPayee(c *call) (any, error) {
	var in payeeRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	merchant, err := c.account.actFor(in.MerchantID)
	if err != nil {
		return nil, err
	}
	if err := v.payeeVault(merchant); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	return success(v.savePayee(merchant, &in)), nil
}

// payeeVault refuses merchants for which the operator has not enabled the payee vault.
func (v *service) payeeVault(merchant payvault.MerchantID) error {
	if !v.accounts.enabled(merchant, func(a Account) bool { return a.PayeeVault }) {
		return refuse(http.StatusForbidden, "the payee vault is not enabled for the merchant")
	}
	return nil
}

func (in *payeeRequest) check() error {
	p := problems{}
	p.check(!isBlank(in.Name), "payee_name", "is required")
	checkEach(p, "payee_email", in.Email, isEmail, "must hold email addresses")
	if a := in.Address; a != nil {
		p.check(isNumericCode(a.CountryCode), "payee_address.country_code", "must be a numeric code")
	}
	if a := in.Account; a != nil {
		p.check(a.Routing == "" || isDigits(a.Routing, 9, 9), "payee_account.tr_number", "must be nine digits")
		p.check(a.Account == "" || isDigits(a.Account, 1, 17), "payee_account.dda_number", "must be up to 17 digits")
		p.check(a.Routing != "" && a.Account != "", "payee_account.tr_number", "and dda_number are required together")
	}
	return p.err()
}

func (v *service) savePayee(merchant payvault.MerchantID, in *payeeRequest) payeeRecord {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := freshNumber(v.ids, "payee", v.payees)
	v.payees.put(id, &Payee{MerchantID: merchant, ID: id, Name: in.Name, Emails: in.Email, HasAccount: in.Account != nil})
	record := payeeRecord{ID: id, Name: in.Name, Email: append([]string{}, in.Email...), Address: in.Address}
	if in.Account != nil {
		record.Account = &payeeAccountOutcome{payeeAccount: *in.Account, VerifiedDate: v.now().Format(time.RFC3339)}
	}
	return record
}

// deletePayee performs DELETE /platform/vault/payee/{payee_id}.
func (v *service) deletePayee(c *call) (any, error) {
	id, err := c.id("payee_id")
	if err != nil {
		return nil, err
	}
	merchant, err := c.merchant()
	if err != nil {
		return nil, err
	}
	if err := v.payeeVault(merchant); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	payee, ok := v.payees.get(payvault.PayeeID(id))
	if !ok || payee.MerchantID != merchant {
		return nil, refuse(http.StatusNotFound, "there is no payee with this payee_id")
	}
	v.payees.remove(payee.ID)
	return success(struct{}{}), nil
}

// Payees returns the payees of a merchant that are not deleted, in order of creation.
func (s *Server) Payees(merchant payvault.MerchantID) []Payee {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	var list []Payee
	for _, payee := range s.service.payees.all() {
		if payee.MerchantID == merchant {
			list = append(list, payee.clone())
		}
	}
	return list
}

// Payee returns a payee, unless it is deleted.
func (s *Server) Payee(id payvault.PayeeID) (Payee, bool) {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	payee, ok := s.service.payees.get(id)
	if !ok {
		return Payee{}, false
	}
	return payee.clone(), true
}

func (p *Payee) clone() Payee {
	view := *p
	view.Emails = slices.Clone(p.Emails)
	return view
}
