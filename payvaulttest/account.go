package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"example.com/payvault"
)

const redacted = "[redacted]"

// Account is one API key of the emulator, with the rights that the key gives. Several accounts may have the same
// merchant, for example while a key is being replaced. Printing or logging an Account does not show the key. There is
// one exception: if a struct of your own has an Account in an unexported field, fmt shows the key. The reason is that
// fmt does not call the methods of values in unexported fields.
type Account struct {
	MerchantID payvault.MerchantID   `json:"merchant_id"` // ID of the merchant or partner that owns the key
	APIKey     string                `json:"api_key"`     // API key of the merchant, or vendor API key of the partner
	Partner    bool                  `json:"partner"`     // the account belongs to a partner, which may board merchants
	VendorID   int64                 `json:"vendor_id"`   // vendor ID that the tokenize requests of a partner must have
	ActsFor    []payvault.MerchantID `json:"acts_for"`    // other merchants for which the account may act

	// Features that the operator of the service enables for a merchant:
	PayeeVault   bool `json:"payee_vault"`
	SMS          bool `json:"sms"`           // invoices are also sent by SMS
	SecondWallet bool `json:"second_wallet"` // payloads of the second wallet are accepted
}

// Format implements [fmt.Formatter]. Every verb prints [redacted] instead of the key.
func (a Account) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Account{MerchantID:%d APIKey:%s Partner:%t VendorID:%d}",
		int64(a.MerchantID), redacted, a.Partner, a.VendorID)
}

// MarshalText implements [encoding.TextMarshaler]. It returns the text of Format, so JSON log handlers do not show the
// key.
func (a Account) MarshalText() ([]byte, error) {
	return fmt.Append(nil, a), nil
}

func (a Account) mayActFor(id payvault.MerchantID) bool {
	return id == a.MerchantID || slices.Contains(a.ActsFor, id)
}

// defaultAccounts returns the accounts of a server if neither [WithAccount] nor a seed adds an account.
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

// accounts are the accounts of a server. They never change.
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

// first returns the first account that matches, or the zero Account.
func (a accounts) first(match func(Account) bool) Account {
	if i := slices.IndexFunc(a, match); i >= 0 {
		return a[i]
	}
	return Account{}
}

func (a accounts) merchant() Account { return a.first(func(a Account) bool { return !a.Partner }) }

func (a accounts) partner() Account { return a.first(func(a Account) bool { return a.Partner }) }

// home returns the merchant that owns seeded records without a merchant ID. It is the merchant of the first account
// that is not a partner, or else of the first account.
func (a accounts) home() payvault.MerchantID { return cmp.Or(a.merchant().MerchantID, a[0].MerchantID) }

// serve reports whether at least one account may act for a merchant.
func (a accounts) serve(id payvault.MerchantID) bool {
	return slices.ContainsFunc(a, func(account Account) bool { return account.mayActFor(id) })
}

// enabled reports whether the operator of the service has enabled a feature for a merchant.
func (a accounts) enabled(id payvault.MerchantID, feature func(Account) bool) bool {
	return slices.ContainsFunc(a, func(account Account) bool { return account.MerchantID == id && feature(account) })
}

// authenticate returns the account of a request, or a refusal. The request must use HTTP Basic authentication with an
// empty user name and the key of an account as the password. The key must not be one of the retired keys.
func (a accounts) authenticate(r *http.Request, retired map[string]bool) (Account, error) {
	user, key, _ := r.BasicAuth()
	account := a.first(func(account Account) bool { return user == "" && account.APIKey == key && !retired[key] })
	if account.APIKey == "" {
		return account, refuse(http.StatusUnauthorized,
			"send Authorization: Basic with Base64 of a colon and an API key that is known")
	}
	return account, nil
}
