package payvaulttest

import (
	"net/http"
	"slices"

	"example.com/payvault"
)

// Payee is a saved payee profile. In JSON, its fields are named as on the wire, except has_account. The emulator keeps
// no account numbers.
type Payee struct {
	ID         payvault.PayeeID    `json:"payee_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	Name       string              `json:"payee_name"`
	Email      []string            `json:"payee_email"`
	HasAccount bool                `json:"has_account"`
}

type payees struct {
	*state
	*Store[payvault.PayeeID, Payee]
}

func newPayees(s *state) *Store[payvault.PayeeID, Payee] {
	v := &payees{state: s}
	v.Store = newStore(s, "payee", v)
	s.actions[payvault.OpPayeesCreate] = reading(v.createPayee)
	s.actions[payvault.OpPayeesDelete] = v.deletePayee
	return v.Store
}

func (*payees) key(p *Payee) (payvault.PayeeID, *payvault.MerchantID) { return p.ID, &p.MerchantID }

func (v *payees) prepare(p *Payee) { freshNumber(v.Store, &p.ID) }

func (*payees) permits(p *Payee) error { return fits(p.Name != "", "payee_name is required") }

func (*payees) detach(p *Payee) { p.Email = slices.Clone(p.Email) }

// A payeeProfile is the JSON of a payee in requests and answers.
type payeeProfile struct {
	ID      payvault.PayeeID `json:"payee_id"`
	Name    string           `json:"payee_name"`
	Phone   string           `json:"payee_phone"`
	Email   []string         `json:"payee_email"`
	Address map[string]any   `json:"payee_address,omitzero"`
	Account map[string]any   `json:"payee_account,omitzero"`
}

// createPayee performs POST /platform/vault/payee. The answer has the payee of the request, with its new ID.
func (v *payees) createPayee(c *call, in payeeProfile) (any, error) {
	if err := v.hasPayeeVault(c); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, problems{"payee_name": {"is required"}}.err()
	}
	payee := Payee{MerchantID: c.merchant, Name: in.Name, Email: in.Email, HasAccount: in.Account != nil}
	in.ID = v.put(payee).ID
	if in.Account != nil {
		in.Account["verified_date"] = v.now()
	}
	return success(in), nil
}

// hasPayeeVault returns a refusal if the payee vault is not enabled for the merchant of the call.
func (v *payees) hasPayeeVault(c *call) error {
	if !v.accounts.enabled(c.merchant, func(a Account) bool { return a.PayeeVault }) {
		return refuse(http.StatusForbidden, "the payee vault is not enabled for the merchant")
	}
	return nil
}

// deletePayee performs DELETE /platform/vault/payee/{payee_id}.
func (v *payees) deletePayee(c *call) (any, error) {
	if err := v.hasPayeeVault(c); err != nil {
		return nil, err
	}
	payee, err := v.find(c, payvault.PayeeID(c.id("payee_id")))
	if err != nil {
		return nil, err
	}
	v.remove(payee.ID)
	return success(struct{}{}), nil
}
