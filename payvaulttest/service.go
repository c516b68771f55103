package payvaulttest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
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

// A call is one request that fits the document.
type call struct {
	account  Account
	merchant payvault.MerchantID // for whom it acts
	path     func(name string) string
	query    url.Values
	body     []byte
	parts    []Part
}

// actFor resolves the merchant_id of the query or the body; without one, a call acts for the merchant of its key.
func (c *call) actFor(body any) error {
	c.merchant = c.account.MerchantID
	fields, _ := body.(map[string]any)
	given, ok := fields["merchant_id"]
	if c.query.Has("merchant_id") {
		given, ok = c.query.Get("merchant_id"), true
	}
	if !ok {
		return nil
	}
	id, _ := strconv.ParseInt(fmt.Sprint(given), 10, 64)
	c.merchant = payvault.MerchantID(id)
	if !c.account.mayActFor(c.merchant) {
		return refuse(http.StatusForbidden, "the account may not act for the merchant of merchant_id")
	}
	return nil
}

// id is an identifier in the path that is a number; what is none has no record.
func (c *call) id(name string) int64 {
	if id, err := strconv.ParseInt(c.path(name), 10, 64); err == nil {
		return id
	}
	return 0
}

// An action performs an operation. The caller holds the lock.
type action func(*call) (any, error)

// reading is the action of an operation that reads a JSON body.
func reading[T any](perform func(*call, T) (any, error)) action {
	return func(c *call) (any, error) { return perform(c, bind[T](c.body)) }
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

// Commits returns how many times an operation was really performed: its state changed, or it was
// answered successfully. What a fault did to the answer does not matter, so this is what a test of
// money code counts.
func (s *Server) Commits(op payvault.Operation) int { return s.AllCommits()[op] }

// AllCommits returns the count of [Server.Commits] for every operation that was performed at all.
func (s *Server) AllCommits() map[payvault.Operation]int {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return maps.Clone(s.service.commits)
}
