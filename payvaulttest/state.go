package payvaulttest

import (
	"cmp"
	"sync"
	"time"

	"example.com/payvault"
)

// A service is the emulated service without HTTP around it: its accounts, its records and its rules.
// An operation holds the lock while it is performed.
type service struct {
	accounts accounts
	clock    func() time.Time
	ids      *ids
	document *document

	deliveries *dispatcher

	mu      sync.Mutex
	commits map[payvault.Operation]int
	Records
}

func newService(cfg config) (*service, error) {
	accounts, err := newAccounts(cfg.accounts)
	if err != nil {
		return nil, err
	}
	v := &service{
		accounts: accounts,
		clock:    cfg.clock,
		ids:      newIDs(cfg.idSeed),
		document: theDocument(),
		commits:  map[payvault.Operation]int{},
	}
	v.Records = Records{
		Cards:                  newStore[string, Card](v, "card"),
		Customers:              newStore[CustomerKey, Customer](v, "customer"),
		Payees:                 newStore[payvault.PayeeID, Payee](v, "payee"),
		Applications:           newStore[payvault.ApplicationID, Application](v, "application"),
		Disputes:               newStore[payvault.DisputeID, Dispute](v, "dispute"),
		Subscriptions:          newStore[payvault.SubscriptionID, Subscription](v, "subscription"),
		Invoices:               newStore[payvault.InvoiceID, Invoice](v, "invoice"),
		AccountUpdaterRequests: newStore[string, AccountUpdaterRequest](v, "aus"),
		Webhooks:               newStore[payvault.WebhookID, Webhook](v, "webhook"),
	}
	v.Applications.home = cmp.Or(accounts.partner().MerchantID, accounts.home())
	return v, nil
}

func (v *service) actions() map[payvault.Operation]action {
	return map[payvault.Operation]action{
		payvault.OpTokensTokenize:            reading(v.tokenize),
		payvault.OpCustomersCreate:           reading(v.createCustomer),
		payvault.OpCustomersList:             v.listCustomers,
		payvault.OpPayeesCreate:              reading(v.createPayee),
		payvault.OpPayeesDelete:              v.deletePayee,
		payvault.OpApplicationsCreate:        reading(v.createApplication),
		payvault.OpApplicationsSaveData:      reading(v.saveApplication),
		payvault.OpApplicationsValidate:      v.validateApplication,
		payvault.OpDisputesRespond:           v.respondToDispute,
		payvault.OpSubscriptionsTransactions: v.listTransactions,
		payvault.OpSubscriptionsCancel:       reading(v.cancelSubscription),
		payvault.OpInvoicesSend:              reading(v.sendInvoice),
		payvault.OpAccountUpdaterSubmit:      reading(v.submitUpdate),
		payvault.OpWebhooksAddEvent:          v.addEvent,
	}
}

// now is the clock of the server in whole seconds, as timestamps of the interface are.
func (v *service) now() time.Time { return v.clock().Truncate(time.Second) }
