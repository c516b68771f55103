package payvaulttest

import (
	"example.com/payvault"
)

// Records are the records that a server holds, one store per resource, named as on the wire.
type Records struct {
	Cards                  *Store[string, Card] // those of customers included
	Customers              *Store[CustomerKey, Customer]
	Payees                 *Store[payvault.PayeeID, Payee] // that are not deleted
	Applications           *Store[payvault.ApplicationID, Application]
	Disputes               *Store[payvault.DisputeID, Dispute]
	Subscriptions          *Store[payvault.SubscriptionID, Subscription]
	Invoices               *Store[payvault.InvoiceID, Invoice]
	AccountUpdaterRequests *Store[string, AccountUpdaterRequest] // that were accepted
	Webhooks               *Store[payvault.WebhookID, Webhook]
}

// newRecords makes the resources of a server. Each adds the actions of its operations to the state.
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
