package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/payvaulttest"
)

// target is the service that quickstart calls, with the IDs of existing records. A comment at a field names the
// variable that sets the field for a sandbox.
type target struct {
	merchant *payvault.Client
	partner  *payvault.Client // PAYVAULT_PARTNER_API_KEY and PAYVAULT_VENDOR_ID; if nil, board is skipped
	close    func()

	isSandbox bool

	channel, salesRep int64                   // PAYVAULT_CHANNEL_ID, PAYVAULT_SALES_REP
	dispute           payvault.DisputeID      // PAYVAULT_DISPUTE_ID: a retrieval dispute, which will be answered
	subscription      payvault.SubscriptionID // PAYVAULT_SUBSCRIPTION_ID: a subscription, which will be canceled
	subscriber        string                  // PAYVAULT_CUSTOMER_ID: the customer of the subscription
	invoice           payvault.InvoiceID      // PAYVAULT_INVOICE_ID: an invoice, which will be sent to an example address
	webhook           payvault.WebhookID      // PAYVAULT_WEBHOOK_ID: a webhook, to which an event will be added
}

// newTarget returns a target for the sandbox if the variables name one, and otherwise for an emulator.
func newTarget(getenv func(string) string, out io.Writer) (*target, error) {
	merchant, err := sandbox.Client(getenv)
	if err != nil {
		return nil, err
	}
	if merchant != nil {
		fmt.Fprintln(out, "Using", getenv("PAYVAULT_BASE_URL"))
		return named(getenv, merchant)
	}
	if err := sandbox.Offline(out, false); err != nil {
		return nil, err
	}
	return emulator(), nil
}

// emulator returns a target for an emulator in this process. The emulator has records that no documented operation
// creates, such as an invoice.
func emulator() *target {
	srv := payvaulttest.NewServer()
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{
		CustomerID: "JANE1",
		Transactions: []payvaulttest.Transaction{
			{Time: time.Date(2026, 10, 1, 9, 30, 0, 0, time.UTC), AmtTran: payvault.MustParseAmount("19.90")},
			{Time: time.Date(2026, 11, 1, 9, 30, 0, 0, time.UTC), AmtTran: payvault.MustParseAmount("19.90")},
		},
	})
	return &target{
		merchant: srv.Client(), partner: srv.PartnerClient(), close: srv.Close,
		channel: 7, salesRep: 42,
		dispute:      srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval}).ID,
		subscription: subscription.ID, subscriber: subscription.CustomerID,
		invoice: srv.Invoices.Seed(payvaulttest.Invoice{}).ID,
		webhook: srv.Webhooks.Seed(payvaulttest.Webhook{}).ID,
	}
}

// named returns a target for a sandbox, with the IDs of existing records from the environment variables.
func named(getenv func(string) string, merchant *payvault.Client) (*target, error) {
	t := &target{
		merchant: merchant, isSandbox: true, close: func() {},
		subscriber: getenv("PAYVAULT_CUSTOMER_ID"),
		invoice:    payvault.InvoiceID(getenv("PAYVAULT_INVOICE_ID")),
		webhook:    payvault.WebhookID(getenv("PAYVAULT_WEBHOOK_ID")),
	}
	var vendor int64
	for name, read := range map[string]func(int64){
		"PAYVAULT_VENDOR_ID":       func(id int64) { vendor = id },
		"PAYVAULT_CHANNEL_ID":      func(id int64) { t.channel = id },
		"PAYVAULT_SALES_REP":       func(id int64) { t.salesRep = id },
		"PAYVAULT_DISPUTE_ID":      func(id int64) { t.dispute = payvault.DisputeID(id) },
		"PAYVAULT_SUBSCRIPTION_ID": func(id int64) { t.subscription = payvault.SubscriptionID(id) },
	} {
		text := getenv(name)
		id, err := strconv.ParseInt(text, 10, 64)
		if text != "" && err != nil {
			return nil, fmt.Errorf("%s is not a number", name)
		}
		read(id)
	}
	var err error
	if key := getenv("PAYVAULT_PARTNER_API_KEY"); key != "" && vendor != 0 {
		t.partner, err = payvault.NewClient(getenv("PAYVAULT_BASE_URL"), key, payvault.WithVendorID(vendor))
	}
	return t, err
}
