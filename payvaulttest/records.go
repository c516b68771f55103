package payvaulttest

import (
	"example.com/payvault"
)

// Records has the records of a server, with one store per resource.
type Records struct {
	Cards                  *Store[string, Card] // includes the cards of customers
	Customers              *Store[CustomerKey, Customer]
	Payees                 *Store[payvault.PayeeID, Payee] // without deleted payees
	Applications           *Store[payvault.ApplicationID, Application]
	Disputes               *Store[payvault.DisputeID, Dispute]
	Subscriptions          *Store[payvault.SubscriptionID, Subscription]
	Invoices               *Store[payvault.InvoiceID, Invoice]
	AccountUpdaterRequests *Store[string, AccountUpdaterRequest] // only accepted requests
	Webhooks               *Store[payvault.WebhookID, Webhook]
}

// newRecords creates the resources of a server and returns their stores. Each resource adds the actions of its
// operations to s.
func newRecords(s *state, deliveries *dispatcher) Records {
	cards := newCards(s)
	addTokens(s, cards)
	return Records{
		Cards:                  cards.Store,
		Customers:              newCustomers(s, cards),
		Payees:                 newPayees(s),
		Applications:           newApplications(s),
		Disputes:               newDisputes(s),
		Subscriptions:          newSubscriptions(s),
		Invoices:               newInvoices(s),
		AccountUpdaterRequests: newAccountUpdaterRequests(s),
		Webhooks:               newWebhooks(s, deliveries),
	}
}
