package payvaulttest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"example.com/payvault"
)

const redacted = "[redacted]"

// Account is one API key of the emulator and what its holder may do. Several accounts may share a
// merchant, as when a key is being replaced. Printing or logging an Account does not show its key, unless it stands in
// an unexported field of a struct of yours, where fmt calls no methods.
type Account struct {
	MerchantID payvault.MerchantID   `json:"merchant_id"` // for a partner, its own node
	APIKey     string                `json:"api_key"`     // the merchant's, or the partner's vendor API key
	Partner    bool                  `json:"partner"`     // it may board merchants
	VendorID   int64                 `json:"vendor_id"`   // of a partner; its tokenize requests must carry it
	ActsFor    []payvault.MerchantID `json:"acts_for"`    // other merchants that it may act for

	// Features that the operator has to enable.
	PayeeVault   bool `json:"payee_vault"`
	SMS          bool `json:"sms"`           // of invoices
	SecondWallet bool `json:"second_wallet"` // the second wallet kind
}

// Format implements [fmt.Formatter]: whatever the verb, the key is not shown.
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

func (a Account) check() error {
	return cmp.Or(
		fits(a.APIKey != "", "an account needs an API key"),
		fits(a.MerchantID > 0, "an account needs a merchant ID above zero"),
		fits(!a.Partner || a.VendorID > 0, "a partner account needs a vendor ID above zero"),
	)
}

func (a Account) clone() Account {
	a.ActsFor = slices.Clone(a.ActsFor)
	return a
}

// The accounts of a server that was given none.
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

// accounts finds an account by its key and a merchant's features by its ID. It never changes.
type accounts []Account

func newAccounts(given []Account) (accounts, error) {
	var list accounts
	for i, account := range given {
		if err := account.check(); err != nil {
			return nil, fmt.Errorf("accounts[%d]: %w", i, err)
		}
		if _, taken := list.byKey(account.APIKey); taken {
			return nil, fmt.Errorf("two accounts of merchant %d share one key", account.MerchantID)
		}
		list = append(list, account.clone())
	}
	return list, nil
}

func (a accounts) byKey(key string) (Account, bool) {
	return a.first(func(account Account) bool { return account.APIKey == key })
}

// authenticate accepts HTTP Basic with an empty user part and a known key.
func (a accounts) authenticate(r *http.Request) (Account, error) {
	user, key, ok := r.BasicAuth()
	if !ok || user != "" {
		return Account{}, refuse(http.StatusUnauthorized, "send Authorization: Basic with Base64 of a colon and the API key")
	}
	account, known := a.byKey(key)
	if !known {
		return Account{}, refuse(http.StatusUnauthorized, "the API key is not known")
	}
	return account, nil
}

// enabled reports whether the operator enabled a feature for a merchant.
func (a accounts) enabled(id payvault.MerchantID, feature func(Account) bool) bool {
	return slices.ContainsFunc(a, func(account Account) bool { return account.MerchantID == id && feature(account) })
}

func (a accounts) first(match func(Account) bool) (Account, bool) {
	if i := slices.IndexFunc(a, match); i >= 0 {
		return a[i].clone(), true
	}
	return Account{}, false
}

// Merchant returns the first account that is not a partner's: the one that [Server.Client] uses.
func (s *Server) Merchant() Account { return s.service.accounts.merchant() }

func (a accounts) merchant() Account {
	account, _ := a.first(func(a Account) bool { return !a.Partner })
	return account
}

// seedMerchant checks the merchant of a record. One that names none gets that of Merchant, or of the first
// account if there are partners only; records of a merchant without account could never be seen.
func (v *service) seedMerchant(id *payvault.MerchantID) error {
	*id = cmp.Or(*id, v.accounts.merchant().MerchantID, v.accounts[0].MerchantID)
	_, known := v.accounts.first(func(a Account) bool { return a.mayActFor(*id) })
	return fits(known, "merchant_id is of no account")
}

// Partner returns the first partner account: the one that [Server.PartnerClient] uses.
func (s *Server) Partner() Account { return s.service.accounts.partner() }

func (a accounts) partner() Account {
	account, _ := a.first(func(a Account) bool { return a.Partner })
	return account
}

// Accounts returns every account of the server, in the order given.
func (s *Server) Accounts() []Account {
	list := slices.Clone(s.service.accounts)
	for i := range list {
		list[i] = list[i].clone()
	}
	return list
}

// Account returns the account with an API key.
func (s *Server) Account(apiKey string) (Account, bool) { return s.service.accounts.byKey(apiKey) }

// BasicToken returns the value of the Authorization header for an API key, for tests that speak
// HTTP themselves.
func BasicToken(apiKey string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth("", apiKey)
	return r.Header.Get("Authorization")
}
