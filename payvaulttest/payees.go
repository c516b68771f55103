package payvaulttest

import (
	"net/http"
	"slices"

	"example.com/payvault"
)

// Payee is a saved payee profile, its fields named as on the wire. The emulator keeps no account numbers.
type Payee struct {
	ID         payvault.PayeeID    `json:"payee_id"`
	MerchantID payvault.MerchantID `json:"merchant_id"`
	Name       string              `json:"payee_name"`
	Email      []string            `json:"payee_email"`
	HasAccount bool                `json:"has_account"`
}

func (p *Payee) head() (payvault.PayeeID, *payvault.MerchantID) { return p.ID, &p.MerchantID }

func (p *Payee) prepare(v *service) {
	freshNumber(v.Payees, &p.ID)
}

func (p *Payee) detach(*service) { p.Email = slices.Clone(p.Email) }

type payeeRequest struct {
	Payee
	MerchantID int64          `json:"merchant_id"`
	Address    map[string]any `json:"payee_address"`
	Account    map[string]any `json:"payee_account"`
}

// createPayee performs POST /platform/vault/payee. The answer repeats the payee as it was sent.
func (v *service) createPayee(c *call, in payeeRequest) (any, error) {
	if err := v.hasPayeeVault(c); err != nil {
		return nil, err
	}
	if in.Name == "" {
		return nil, problems{"payee_name": {"is required"}}.err()
	}
	in.Payee.MerchantID, in.HasAccount = c.merchant, in.Account != nil
	payee := v.Payees.put(in.Payee)
	answer := map[string]any{"payee_id": payee.ID, "payee_name": in.Name, "payee_phone": "", "payee_email": in.Email}
	if in.Address != nil {
		answer["payee_address"] = in.Address
	}
	if in.Account != nil {
		in.Account["verified_date"] = v.now()
		answer["payee_account"] = in.Account
	}
	return success(answer), nil
}

// hasPayeeVault refuses merchants for which the operator has not enabled the payee vault.
func (v *service) hasPayeeVault(c *call) error {
	if !v.accounts.enabled(c.merchant, func(a Account) bool { return a.PayeeVault }) {
		return refuse(http.StatusForbidden, "the payee vault is not enabled for the merchant")
	}
	return nil
}

// deletePayee performs DELETE /platform/vault/payee/{payee_id}.
func (v *service) deletePayee(c *call) (any, error) {
	if err := v.hasPayeeVault(c); err != nil {
		return nil, err
	}
	payee, err := v.Payees.find(c, payvault.PayeeID(c.id("payee_id")))
	if err != nil {
		return nil, err
	}
	v.Payees.remove(payee.ID)
	return success(struct{}{}), nil
}
