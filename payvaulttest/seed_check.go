package payvaulttest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"example.com/payvault"
)

// A merchantCheck tells whether a record may belong to a merchant. No merchant at all means the
// server's own choice.
type merchantCheck func(payvault.MerchantID) bool

// anyMerchant is for seeds whose server is not known yet.
func anyMerchant(payvault.MerchantID) bool { return true }

// has is the merchantCheck of a server: a record of a merchant without account could never be seen.
func (a accounts) has(id payvault.MerchantID) bool {
	return id == 0 || slices.ContainsFunc(a.list, func(account Account) bool { return account.MerchantID == id })
}

// mergeSeeds gives the records of several seeds as one.
func mergeSeeds(seeds []Seed) Seed {
	var all Seed
	for _, seed := range seeds {
		all.Subscriptions = append(all.Subscriptions, seed.Subscriptions...)
		all.Invoices = append(all.Invoices, seed.Invoices...)
		all.Disputes = append(all.Disputes, seed.Disputes...)
		all.Webhooks = append(all.Webhooks, seed.Webhooks...)
	}
	return all
}

// check wants records that the service could have, each ID once. What is left out is filled in later.
func (s Seed) check(known merchantCheck) error {
	return cmp.Or(
		checkRecords("subscriptions", s.Subscriptions, "subscription_id", func(r *Subscription) any { return r.ID }, (*Subscription).checkSeed, known),
		checkRecords("invoices", s.Invoices, "invoice_id", func(r *Invoice) any { return r.ID }, (*Invoice).checkSeed, known),
		checkRecords("disputes", s.Disputes, "rec_id", func(r *Dispute) any { return r.ID }, (*Dispute).checkSeed, known),
		checkRecords("webhooks", s.Webhooks, "webhook_id", func(r *Webhook) any { return r.ID }, (*Webhook).checkSeed, known),
	)
}

// checkRecords checks each record of a list, and that no two that name an ID share it.
func checkRecords[T any](list string, records []T, idName string, id func(*T) any, check func(*T, merchantCheck) error, known merchantCheck) error {
	none := id(new(T))
	seen := map[any]bool{}
	for i := range records {
		this := id(&records[i])
		if err := check(&records[i], known); err != nil {
			return fmt.Errorf("%s[%d]: %w", list, i, err)
		}
		if seen[this] {
			return fmt.Errorf("%s[%d]: there are two with the %s %v", list, i, idName, this)
		}
		seen[this] = this != none
	}
	return nil
}

// mustFit panics with what is wrong with a record or a fault that a method was given.
func mustFit(what string, err error) {
	if err != nil {
		panic(fmt.Errorf("payvaulttest: %s: %w", what, err))
	}
}

// fits makes an error out of what something must be, unless it is.
func fits(ok bool, must string) error {
	if ok {
		return nil
	}
	return errors.New(must)
}

const mustHaveAccount = "merchant_id has no account"

func (s *Subscription) checkSeed(known merchantCheck) error {
	states := []SubscriptionState{"", SubscriptionActive, SubscriptionSuspended, SubscriptionPaused, SubscriptionCanceled}
	check := func(t *Transaction, known merchantCheck) error { return t.checkSeed(s.ID, known) }
	return cmp.Or(
		fits(known(s.MerchantID), mustHaveAccount),
		fits(slices.Contains(states, s.State), "state must be active, suspended, paused or canceled"),
		checkRecords("transactions", s.Transactions, "pg_id", func(t *Transaction) any { return t.PGID }, check, known),
	)
}

func (t *Transaction) checkSeed(subscription payvault.SubscriptionID, known merchantCheck) error {
	_, unwritable := t.Time.MarshalJSON()
	return cmp.Or(
		fits(known(t.MerchantID), mustHaveAccount),
		fits(t.SubscriptionID == 0 || t.SubscriptionID == subscription, "subscription_id must be that of its subscription"),
		fits(unwritable == nil, "tran_time must be in the years 0 to 9999"),
		fits(isSeedDate(t.BatchDate), "batch_date must be YYYY-MM-DD"),
		fits(isSeedDate(t.SettleDate), "settle_date must be YYYY-MM-DD"),
		fits(isSeedNumber(t.Amount), "amt_tran must be a number without exponent"),
		fits(isSeedNumber(t.AmountRefunded), "amt_refunded must be a number without exponent"),
		fits(isSeedNumber(t.AmountFunded), "amt_funded must be a number without exponent"),
		fits(isNumericCode(t.Currency), "tran_currency must be a numeric code"),
		fits(isNumericCode(t.FundedCurrency), "funded_currency must be a numeric code"),
		fits(t.CardNumber == "" || isCardNumber(t.CardNumber) || isMasked(t.CardNumber),
			"card_number must be 12 to 19 digits, or masked: its first four and last six, x in between"),
	)
}

func isSeedDate(s string) bool { return s == "" || isDate(s) }

func isSeedNumber(n json.Number) bool {
	_, ok := parseNumber(n.String())
	return n == "" || ok && json.Valid([]byte(n))
}

// isMasked tells whether a number is one that mask made.
func isMasked(number string) bool {
	return len(number) > 10 && mask(number) == number && isDigits(number[:4]+number[len(number)-6:], 10, 10)
}

func (i *Invoice) checkSeed(known merchantCheck) error {
	states := []InvoiceState{"", InvoiceSaved, InvoiceOutstanding}
	return cmp.Or(
		fits(known(i.MerchantID), mustHaveAccount),
		fits(slices.Contains(states, i.State), "state must be saved or outstanding"),
	)
}

func (d *Dispute) checkSeed(known merchantCheck) error {
	kinds := []DisputeKind{"", DisputeFirstTime, DisputeRetrieval, DisputeOther}
	return cmp.Or(
		fits(known(d.MerchantID), mustHaveAccount),
		fits(slices.Contains(kinds, d.Kind), "kind must be first_time, retrieval or other"),
	)
}

func (w *Webhook) checkSeed(known merchantCheck) error {
	return cmp.Or(
		fits(known(w.MerchantID), mustHaveAccount),
		fits(isNotificationURL(w.NotificationURL), "notification_url must be an http or https URL"),
		fits(!slices.ContainsFunc(w.Events, isNoEventName), "events must hold names that can be added"),
	)
}

func isNotificationURL(s string) bool {
	u, err := url.Parse(s)
	return s == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
