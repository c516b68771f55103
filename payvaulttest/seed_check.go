package payvaulttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
	return errors.Join(
		checkRecords(s.Subscriptions, func(r Subscription) any { return r.ID }, (*Subscription).checkSeed, known),
		checkRecords(s.Invoices, func(r Invoice) any { return r.ID }, (*Invoice).checkSeed, known),
		checkRecords(s.Disputes, func(r Dispute) any { return r.ID }, (*Dispute).checkSeed, known),
		checkRecords(s.Webhooks, func(r Webhook) any { return r.ID }, (*Webhook).checkSeed, known),
	)
}

// checkRecords checks each record, and that no two that name an ID share it.
func checkRecords[T any](records []T, id func(T) any, check func(*T, merchantCheck) error, known merchantCheck) error {
	seen := map[any]bool{id(*new(T)): false}
	for _, record := range records {
		if err := check(&record, known); err != nil {
			return err
		}
		if seen[id(record)] {
			return fmt.Errorf("there are two %Ts with the ID %v", record, id(record))
		}
		seen[id(record)] = id(record) != id(*new(T))
	}
	return nil
}

// mustFit panics with what is wrong with a record that a Seed method was given.
func mustFit(err error) {
	if err != nil {
		panic(fmt.Errorf("payvaulttest: %w", err))
	}
}

// fits makes an error out of what a record must be, unless it is.
func fits(ok bool, record string, id any, must string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s %v: %s", record, id, must)
}

const mustHaveAccount = "its merchant has no account"

func (s *Subscription) checkSeed(known merchantCheck) error {
	states := []SubscriptionState{"", SubscriptionActive, SubscriptionSuspended, SubscriptionPaused, SubscriptionCanceled}
	err := errors.Join(
		fits(known(s.MerchantID), "subscription", s.ID, mustHaveAccount),
		fits(slices.Contains(states, s.State), "subscription", s.ID, "its state is unknown"),
		checkRecords(s.Transactions, func(t Transaction) any { return t.PGID }, (*Transaction).checkSeed, known),
	)
	if err != nil {
		return fmt.Errorf("subscription %d: %w", s.ID, err)
	}
	return nil
}

func (t *Transaction) checkSeed(known merchantCheck) error {
	_, unwritable := t.Time.MarshalJSON()
	return errors.Join(
		fits(known(t.MerchantID), "transaction", t.PGID, mustHaveAccount),
		fits(unwritable == nil, "transaction", t.PGID, "tran_time must be in the years 0 to 9999"),
		fits(isSeedDate(t.BatchDate), "transaction", t.PGID, "batch_date must be YYYY-MM-DD"),
		fits(isSeedDate(t.SettleDate), "transaction", t.PGID, "settle_date must be YYYY-MM-DD"),
		fits(isSeedNumber(t.Amount), "transaction", t.PGID, "amt_tran must be a number without exponent"),
		fits(isSeedNumber(t.AmountRefunded), "transaction", t.PGID, "amt_refunded must be a number without exponent"),
		fits(isSeedNumber(t.AmountFunded), "transaction", t.PGID, "amt_funded must be a number without exponent"),
		fits(isMaskable(t.CardNumber), "transaction", t.PGID, "card_number must be masked, or 12 to 19 digits and nothing else"),
	)
}

func isSeedDate(s string) bool { return s == "" || isDate(s) }

func isSeedNumber(n json.Number) bool {
	_, ok := parseNumber(n.String())
	return n == "" || ok && json.Valid([]byte(n))
}

// isMaskable tells whether a number is one that the emulator masks, or shows no more digits than a
// masked one does.
func isMaskable(number string) bool {
	digits := 0
	for _, digit := range "0123456789" {
		digits += strings.Count(number, string(digit))
	}
	return digits <= 10 || isCardNumber(number)
}

func (i *Invoice) checkSeed(known merchantCheck) error {
	states := []InvoiceState{"", InvoiceSaved, InvoiceOutstanding}
	return errors.Join(
		fits(known(i.MerchantID), "invoice", i.ID, mustHaveAccount),
		fits(slices.Contains(states, i.State), "invoice", i.ID, "its state is unknown"),
	)
}

func (d *Dispute) checkSeed(known merchantCheck) error {
	kinds := []DisputeKind{"", DisputeFirstTime, DisputeRetrieval, DisputeOther}
	return errors.Join(
		fits(known(d.MerchantID), "dispute", d.ID, mustHaveAccount),
		fits(slices.Contains(kinds, d.Kind), "dispute", d.ID, "its kind is unknown"),
	)
}

func (w *Webhook) checkSeed(known merchantCheck) error {
	return errors.Join(
		fits(known(w.MerchantID), "webhook", w.ID, mustHaveAccount),
		fits(isNotificationURL(w.NotificationURL), "webhook", w.ID, "notification_url must be an http or https URL"),
		fits(!slices.ContainsFunc(w.Events, isNoEventName), "webhook", w.ID, "events must hold names that can be added"),
	)
}

func isNotificationURL(s string) bool {
	u, err := url.Parse(s)
	return s == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
