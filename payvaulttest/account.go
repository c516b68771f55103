package payvaulttest

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"example.com/payvault"
)

const redacted = "[redacted]"

// Account is one API key of the emulator and what its holder may do. Several accounts may share a
// merchant, as when a key is being replaced.
//
// Printing or logging an Account never shows its key, on its own, in a slice or map, or in an exported
// field. In an unexported field of a struct of yours fmt does not call its methods and does show the key.
type Account struct {
	// MerchantID is the merchant that the account belongs to; for a partner, its own node.
	MerchantID payvault.MerchantID `json:"merchant_id"`
	// APIKey is the merchant's API key, or the partner's vendor API key.
	APIKey string `json:"api_key"`
	// Partner accounts may board merchants.
	Partner bool `json:"partner"`
	// VendorID is the partner's integrator ID; a tokenize request of a partner must carry it.
	VendorID int64 `json:"vendor_id"`
	// ActsFor lists the other merchants that the account may act for.
	ActsFor []payvault.MerchantID `json:"acts_for"`
	// PayeeVault, like the next two, is a feature that the operator has to enable: the payee vault.
	PayeeVault bool `json:"payee_vault"`
	// SMS enables invoices by SMS.
	SMS bool `json:"sms"`
	// SecondWallet enables the second wallet kind.
	SecondWallet bool `json:"second_wallet"`
}

// Format implements [fmt.Formatter]: whatever the verb, the key is not shown.
func (a Account) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Account{MerchantID:%d APIKey:%s Partner:%t VendorID:%d}",
		int64(a.MerchantID), redacted, a.Partner, a.VendorID)
}

// LogValue implements [slog.LogValuer] without the key.
func (a Account) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("merchant_id", int64(a.MerchantID)),
		slog.Bool("partner", a.Partner),
		slog.Int64("vendor_id", a.VendorID),
	)
}

// MarshalText implements [encoding.TextMarshaler], so that JSON handlers do not show the key.
func (a Account) MarshalText() ([]byte, error) {
	return fmt.Append(nil, a), nil
}

func (a Account) mayActFor(id payvault.MerchantID) bool {
	return id == a.MerchantID || slices.Contains(a.ActsFor, id)
}

func (a Account) check() error {
	switch {
	case a.APIKey == "":
		return errors.New("an account needs an API key")
	case a.MerchantID <= 0:
		return errors.New("an account needs a merchant ID above zero")
	case a.Partner && a.VendorID <= 0:
		return errors.New("a partner account needs a vendor ID above zero")
	}
	return nil
}

func (a Account) clone() Account {
	a.ActsFor = slices.Clone(a.ActsFor)
	return a
}

// The accounts of a server that was given none.
func defaultAccounts() []Account {
	return []Account{
		{
			MerchantID: 100001, APIKey: "merchant-api-key",
			PayeeVault: true, SMS: true, SecondWallet: true,
		},
		{
			MerchantID: 900001, APIKey: "partner-vendor-key", Partner: true, VendorID: 7001,
			ActsFor: []payvault.MerchantID{100001, 100002},
		},
		{MerchantID: 100002, APIKey: "second-merchant-api-key"},
	}
}

// accounts finds an account by its key and a merchant's features by its ID. It never changes.
type accounts struct {
	list  []Account
	byKey map[string]Account
}

func newAccounts(list []Account) (accounts, error) {
	a := accounts{byKey: make(map[string]Account, len(list))}
	for i, account := range list {
		if err := account.check(); err != nil {
			return accounts{}, fmt.Errorf("accounts[%d]: %w", i, err)
		}
		if _, taken := a.byKey[account.APIKey]; taken {
			return accounts{}, fmt.Errorf("two accounts of merchant %d share one key", account.MerchantID)
		}
		a.list = append(a.list, account.clone())
		a.byKey[account.APIKey] = a.list[len(a.list)-1]
	}
	return a, nil
}

// authenticate accepts HTTP Basic with an empty user part and a known key, given once.
func (a accounts) authenticate(r *http.Request) (Account, error) {
	user, key, ok := r.BasicAuth()
	if len(r.Header["Authorization"]) > 1 {
		return Account{}, refuse(http.StatusUnauthorized, "send one Authorization header")
	}
	if !ok || user != "" {
		return Account{}, refuse(http.StatusUnauthorized, "send Authorization: Basic with the Base64 of a colon and the API key")
	}
	account, known := a.byKey[key]
	if !known {
		return Account{}, refuse(http.StatusUnauthorized, "the API key is not known")
	}
	return account, nil
}

// enabled tells whether the operator enabled a feature for a merchant.
func (a accounts) enabled(id payvault.MerchantID, feature func(Account) bool) bool {
	return slices.ContainsFunc(a.list, func(account Account) bool {
		return account.MerchantID == id && feature(account)
	})
}

func (a accounts) first(match func(Account) bool) Account {
	if i := slices.IndexFunc(a.list, match); i >= 0 {
		return a.list[i].clone()
	}
	return Account{}
}

// actFor resolves the optional merchant_id of a request: the account's own merchant without one,
// otherwise one that the account may act for.
func (a Account) actFor(id *int64) (payvault.MerchantID, error) {
	if id == nil {
		return a.MerchantID, nil
	}
	merchant := payvault.MerchantID(*id)
	if !a.mayActFor(merchant) {
		return 0, refuse(http.StatusForbidden, "the account may not act for the merchant of merchant_id")
	}
	return merchant, nil
}

// Merchant returns the first account that is not a partner's: the one that [Server.Client] uses.
func (s *Server) Merchant() Account {
	return s.service.accounts.first(func(a Account) bool { return !a.Partner })
}

// seedMerchant is the merchant of records that name none: that of Merchant, or of the first account
// if there are partners only.
func (s *Server) seedMerchant() payvault.MerchantID {
	return cmp.Or(s.Merchant().MerchantID, s.service.accounts.list[0].MerchantID)
}

// Partner returns the first partner account: the one that [Server.PartnerClient] uses.
func (s *Server) Partner() Account {
	return s.service.accounts.first(func(a Account) bool { return a.Partner })
}

// Accounts returns every account of the server, in the order given.
func (s *Server) Accounts() []Account {
	return views(s.service.accounts.list, Account.clone)
}

// Account returns the account with an API key.
func (s *Server) Account(apiKey string) (Account, bool) {
	account, ok := s.service.accounts.byKey[apiKey]
	return account.clone(), ok
}

// BasicToken returns the value of the Authorization header for an API key, for tests that speak
// HTTP themselves.
func BasicToken(apiKey string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth("", apiKey)
	return r.Header.Get("Authorization")
}
