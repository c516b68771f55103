package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"example.com/payvault"
)

const redacted = "[redacted]"

// Account is one API key of the emulator with the rights of its holder. Several accounts may share a merchant, for
// example while a key is being replaced. Printing or logging an Account does not show its key. The exception is an
// Account in an unexported field of a struct of yours, where fmt calls no methods.
type Account struct {
	MerchantID payvault.MerchantID   `json:"merchant_id"` // ID of the merchant; for a partner, its own node
	APIKey     string                `json:"api_key"`     // key of the merchant, or vendor API key of the partner
	Partner    bool                  `json:"partner"`     // the account may board merchants
	VendorID   int64                 `json:"vendor_id"`   // only for a partner, whose tokenize requests must have it
	ActsFor    []payvault.MerchantID `json:"acts_for"`    // other merchants for which the account may act

	// Features that the operator has to enable:
	PayeeVault   bool `json:"payee_vault"`
	SMS          bool `json:"sms"`           // SMS for invoices
	SecondWallet bool `json:"second_wallet"` // the second wallet kind
}

// Format implements [fmt.Formatter]. No verb shows the key.
func (a Account) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Account{MerchantID:%d APIKey:%s Partner:%t VendorID:%d}",
		int64(a.MerchantID), redacted, a.Partner, a.VendorID)
}

// MarshalText implements [encoding.TextMarshaler], so that JSON handlers do not show the key.
func (a Account) MarshalText() ([]byte, error) {
	return fmt.Append(nil, a), nil
}

func (a Account) mayActFor(id payvault.MerchantID) bool {
	return id == a.MerchantID || slices.Contains(a.ActsFor, id)
}

// defaultAccounts returns the accounts of a server without WithAccount and without a seed that has accounts.
func defaultAccounts() []Account {
	return []Account{
		{MerchantID: 100001, APIKey: "merchant-api-key", PayeeVault: true, SMS: true, SecondWallet: true},
		{
			MerchantID: 900001, APIKey: "partner-vendor-key", Partner: true, VendorID: 7001,
			ActsFor: []payvault.MerchantID{100001, 100002},
		},
		{MerchantID: 100002, APIKey: "second-merchant-api-key"},
	}
}

// accounts finds an account by its key, and the features of a merchant by its ID. It never changes.
type accounts []Account

func newAccounts(given []Account) (accounts, error) {
	keys := map[string]bool{}
	for i, account := range given {
		if err := cmp.Or(
			fits(account.APIKey != "", "an account needs an API key"),
			fits(account.MerchantID > 0, "an account needs a merchant ID above zero"),
			fits(!account.Partner || account.VendorID > 0, "a partner account needs a vendor ID above zero"),
			fits(!keys[account.APIKey], "two accounts share one key"),
		); err != nil {
			return nil, fmt.Errorf("accounts[%d]: %w", i, err)
		}
		keys[account.APIKey] = true
	}
	return accounts(given).copied(), nil
}

func (a accounts) copied() accounts {
	list := slices.Clone(a)
	for i := range list {
		list[i].ActsFor = slices.Clone(list[i].ActsFor)
	}
	return list
}

// first returns the first account that matches, or an empty one.
func (a accounts) first(match func(Account) bool) Account {
	if i := slices.IndexFunc(a, match); i >= 0 {
		return a[i]
	}
	return Account{}
}

func (a accounts) merchant() Account { return a.first(func(a Account) bool { return !a.Partner }) }

func (a accounts) partner() Account { return a.first(func(a Account) bool { return a.Partner }) }

// home returns the merchant that owns a record without a merchant ID.
func (a accounts) home() payvault.MerchantID { return cmp.Or(a.merchant().MerchantID, a[0].MerchantID) }

// serve reports whether an account may act for a merchant.
func (a accounts) serve(id payvault.MerchantID) bool {
	return slices.ContainsFunc(a, func(account Account) bool { return account.mayActFor(id) })
}

// enabled reports whether the operator enabled a feature for a merchant.
func (a accounts) enabled(id payvault.MerchantID, feature func(Account) bool) bool {
	return slices.ContainsFunc(a, func(account Account) bool { return account.MerchantID == id && feature(account) })
}

// authenticate accepts HTTP Basic with an empty user part and a known key.
func (a accounts) authenticate(r *http.Request) (Account, error) {
	user, key, _ := r.BasicAuth()
	account := a.first(func(account Account) bool { return user == "" && account.APIKey == key })
	if account.APIKey == "" {
		return account, refuse(http.StatusUnauthorized,
			"send Authorization: Basic with Base64 of a colon and an API key that is known")
	}
	return account, nil
}
