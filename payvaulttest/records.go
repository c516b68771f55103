package payvaulttest

import "example.com/payvault"

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
