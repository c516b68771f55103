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
	Emails     []string            `json:"payee_email"`
	HasAccount bool                `json:"has_account"`
}

func (p *Payee) clone() Payee {
	view := *p
	view.Emails = slices.Clone(view.Emails)
	return view
}

func (v *service) preparePayee(p *Payee) error {
	p.ID = freshNumber(v.ids, "payee", v.Payees, p.ID)
	return v.seedMerchant(&p.MerchantID)
}

// createPayee performs POST /platform/vault/payee. The answer repeats the payee as it was sent.
func (v *service) createPayee(c *call) (any, error) {
	in, err := bind[struct {
		Payee
		MerchantID int64          `json:"merchant_id"`
		Address    map[string]any `json:"payee_address"`
		Account    map[string]any `json:"payee_account"`
	}](c.body)
	if err != nil {
		return nil, err
	}
	merchant, err := v.payeeVault(c.merchant(in.MerchantID))
	if err != nil {
		return nil, err
	}
	if isBlank(in.Name) {
		return nil, problems{"payee_name": {"is required"}}.err()
	}
	payee, err := v.Payees.seed(Payee{
		MerchantID: merchant, Name: in.Name, Emails: in.Emails,
		HasAccount: in.Account != nil,
	})
	answer := map[string]any{
		"payee_id": payee.ID, "payee_name": payee.Name, "payee_phone": "",
		"payee_email": payee.Emails,
	}
	if in.Address != nil {
		answer["payee_address"] = in.Address
	}
	if in.Account != nil {
		in.Account["verified_date"] = v.now()
		answer["payee_account"] = in.Account
	}
	return success(answer), err
}

// payeeVault refuses merchants for which the operator has not enabled the payee vault.
func (v *service) payeeVault(merchant payvault.MerchantID, err error) (payvault.MerchantID, error) {
	if err == nil && !v.accounts.enabled(merchant, func(a Account) bool { return a.PayeeVault }) {
		err = refuse(http.StatusForbidden, "the payee vault is not enabled for the merchant")
	}
	return merchant, err
}

// deletePayee performs DELETE /platform/vault/payee/{payee_id}.
func (v *service) deletePayee(c *call) (any, error) {
	merchant, err := v.payeeVault(c.queryMerchant())
	if err != nil {
		return nil, err
	}
	id := payvault.PayeeID(c.id("payee_id"))
	if payee := v.Payees.rows[id]; payee == nil || payee.MerchantID != merchant {
		return nil, notFound("payee", "payee_id")
	}
	v.Payees.remove(id)
	return success(struct{}{}), nil
}
