package payvaulttest

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/notify"
)

// A service is the emulated service without HTTP around it: its accounts, its records and its rules.
// An operation holds the lock while it is performed.
type service struct {
	accounts accounts
	clock    func() time.Time
	ids      *ids
	events   *notify.Dispatcher
	document *document

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
	document, err := theDocument()
	if err != nil {
		return nil, err
	}
	v := &service{
		accounts: accounts,
		clock:    cfg.clock,
		ids:      newIDs(cfg.idSeed),
		document: document,
		commits:  map[payvault.Operation]int{},
	}
	v.Cards = newStore(&v.mu, func(c *Card) string { return c.ID }, v.prepareCard, (*Card).clone)
	v.Customers = newStore(&v.mu, (*Customer).key, v.prepareCustomer, v.withCards)
	v.Payees = newStore(&v.mu, func(p *Payee) payvault.PayeeID { return p.ID }, v.preparePayee, (*Payee).clone)
	v.Applications = newStore(&v.mu, func(a *Application) payvault.ApplicationID { return a.ID }, v.prepareApplication,
		(*Application).clone)
	v.Disputes = newStore(&v.mu, func(d *Dispute) payvault.DisputeID { return d.ID }, v.prepareDispute, (*Dispute).clone)
	v.Subscriptions = newStore(&v.mu, func(s *Subscription) payvault.SubscriptionID { return s.ID },
		v.prepareSubscription, (*Subscription).clone)
	v.Invoices = newStore(&v.mu, func(i *Invoice) payvault.InvoiceID { return i.ID }, v.prepareInvoice, (*Invoice).clone)
	v.AccountUpdaterRequests = newStore(&v.mu, func(r *AccountUpdaterRequest) string { return r.RequestID },
		v.prepareUpdate, (*AccountUpdaterRequest).clone)
	v.Webhooks = newStore(&v.mu, func(w *Webhook) payvault.WebhookID { return w.ID }, v.prepareWebhook, (*Webhook).clone)
	return v, nil
}

// A call is one request that fits the document.
type call struct {
	account Account
	path    func(name string) string
	query   url.Values
	body    []byte
	parts   []Part
}

// merchant is whom a request acts for: the merchant of merchant_id, or without one that of the key.
func (c *call) merchant(id int64) (payvault.MerchantID, error) {
	merchant := cmp.Or(payvault.MerchantID(id), c.account.MerchantID)
	if !c.account.mayActFor(merchant) {
		return 0, refuse(http.StatusForbidden, "the account may not act for the merchant of merchant_id")
	}
	return merchant, nil
}

// queryMerchant is merchant for the merchant_id of the query, whose form was checked.
func (c *call) queryMerchant() (payvault.MerchantID, error) {
	id, _ := strconv.ParseInt(c.query.Get("merchant_id"), 10, 64)
	return c.merchant(id)
}

// id is an integer identifier in the path, whose form was checked.
func (c *call) id(name string) int64 {
	id, _ := strconv.ParseInt(c.path(name), 10, 64)
	return id
}

// An action performs an operation. The caller holds the lock.
type action func(*call) (any, error)

func (v *service) actions() map[payvault.Operation]action {
	return map[payvault.Operation]action{
		payvault.OpTokensTokenize:            v.tokenize,
		payvault.OpCustomersCreate:           v.createCustomer,
		payvault.OpCustomersList:             v.listCustomers,
		payvault.OpPayeesCreate:              v.createPayee,
		payvault.OpPayeesDelete:              v.deletePayee,
		payvault.OpApplicationsCreate:        v.createApplication,
		payvault.OpApplicationsSaveData:      v.saveApplication,
		payvault.OpApplicationsValidate:      v.validateApplication,
		payvault.OpDisputesRespond:           v.respondToDispute,
		payvault.OpSubscriptionsTransactions: v.listTransactions,
		payvault.OpSubscriptionsCancel:       v.cancelSubscription,
		payvault.OpInvoicesSend:              v.sendInvoice,
		payvault.OpAccountUpdaterSubmit:      v.submitUpdate,
		payvault.OpWebhooksAddEvent:          v.addEvent,
	}
}

// now is the clock of the server in whole seconds, as timestamps of the interface are.
func (v *service) now() time.Time { return v.clock().Truncate(time.Second) }

// Commits returns how many times an operation was really performed: its state changed, or it was
// answered successfully. What a fault did to the answer does not matter, so this is what a test of
// money code counts.
func (s *Server) Commits(op payvault.Operation) int {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return s.service.commits[op]
}

// AllCommits returns the count of [Server.Commits] for every operation that was performed at all.
func (s *Server) AllCommits() map[payvault.Operation]int {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	return maps.Clone(s.service.commits)
}
