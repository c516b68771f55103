package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// describe prints the process ID, the accounts, the records and the addresses. The address of the server is the last
// line, so a script can wait for it.
func describe(w io.Writer, srv *payvaulttest.Server, page string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "pid           %d\n", os.Getpid())
	for _, account := range srv.Accounts() {
		describeAccount(&b, account)
	}
	for _, card := range srv.Cards.All() {
		fmt.Fprintf(&b, "card          %s  merchant %d\n", card.ID, card.MerchantID)
	}
	for _, customer := range srv.Customers.All() {
		fmt.Fprintf(&b, "customer      %s  merchant %d\n", customer.ID, customer.NodeID)
	}
	for _, payee := range srv.Payees.All() {
		fmt.Fprintf(&b, "payee         %d  merchant %d\n", payee.ID, payee.MerchantID)
	}
	for _, application := range srv.Applications.All() {
		fmt.Fprintf(&b, "application   %d  partner %d, %s\n", application.ID, application.Partner, application.Status)
	}
	for _, sub := range srv.Subscriptions.All() {
		fmt.Fprintf(&b, "subscription  %d  merchant %d, customer %s, %s, %d transactions\n",
			sub.ID, sub.MerchantID, sub.CustomerID, sub.State, len(sub.Transactions))
	}
	for _, invoice := range srv.Invoices.All() {
		fmt.Fprintf(&b, "invoice       %s  merchant %d, %s\n", invoice.ID, invoice.MerchantID, invoice.State)
	}
	for _, dispute := range srv.Disputes.All() {
		fmt.Fprintf(&b, "dispute       %d  merchant %d, %s\n", dispute.ID, dispute.MerchantID, dispute.Kind)
	}
	for _, webhook := range srv.Webhooks.All() {
		fmt.Fprintf(&b, "webhook       %s  merchant %d, notifies %s of %s\n",
			webhook.ID, webhook.MerchantID, webhook.NotificationURL, orNothing(webhook.Events))
	}
	if page != "" {
		fmt.Fprintf(&b, "inspect       http://%s/\n", page)
	}
	fmt.Fprintf(&b, "listening on  %s\n", srv.URL)
	_, _ = w.Write(b.Bytes())
}

func describeAccount(b *bytes.Buffer, account payvaulttest.Account) {
	if !account.Partner {
		fmt.Fprintf(b, "merchant      %d  key %s\n", account.MerchantID, account.APIKey)
		return
	}
	fmt.Fprintf(b, "partner       %d  key %s  vendor %d  acts for %v\n",
		account.MerchantID, account.APIKey, account.VendorID, account.ActsFor)
}

func orNothing(events []payvault.Event) string {
	if len(events) == 0 {
		return "nothing yet"
	}
	return strings.Trim(fmt.Sprint(events), "[]")
}
