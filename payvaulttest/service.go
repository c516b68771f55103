package payvaulttest

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"example.com/payvault"
)

// A service is the emulated service without HTTP around it: its accounts and its state. Every
// operation decodes and checks its request first, and takes the lock only to look things up and to
// change them.
type service struct {
	accounts accounts
	clock    func() time.Time
	ids      *ids
	events   *dispatcher
	fields   []applicationField

	mu            sync.Mutex
	commits       map[payvault.Operation]int
	cards         *table[cardKey, *Card]
	customers     map[payvault.MerchantID]*table[string, *customerRecord]
	payees        *table[payvault.PayeeID, *Payee]
	applications  *table[payvault.ApplicationID, *application]
	disputes      *table[payvault.DisputeID, *Dispute]
	subscriptions *table[payvault.SubscriptionID, *subscription]
	invoices      *table[payvault.InvoiceID, *Invoice]
	updates       *table[string, AccountUpdaterRequest]
	webhooks      *table[payvault.WebhookID, *Webhook]
}

func newService(cfg config) (*service, error) {
	accounts, err := newAccounts(cfg.accounts)
	if err != nil {
		return nil, err
	}
	return &service{
		accounts:      accounts,
		clock:         cfg.clock,
		ids:           newIDs(cfg.idSeed),
		fields:        applicationFields(),
		commits:       map[payvault.Operation]int{},
		cards:         newTable[cardKey, *Card](),
		customers:     map[payvault.MerchantID]*table[string, *customerRecord]{},
		payees:        newTable[payvault.PayeeID, *Payee](),
		applications:  newTable[payvault.ApplicationID, *application](),
		disputes:      newTable[payvault.DisputeID, *Dispute](),
		subscriptions: newTable[payvault.SubscriptionID, *subscription](),
		invoices:      newTable[payvault.InvoiceID, *Invoice](),
		updates:       newTable[string, AccountUpdaterRequest](),
		webhooks:      newTable[payvault.WebhookID, *Webhook](),
	}, nil
}

// A call is one request that was authenticated and whose method, path, query names and body kind fit
// its operation.
type call struct {
	account Account
	params  map[string]string
	query   url.Values
	body    []byte
	parts   []Part
}

// id reads an integer identifier of the path.
func (c *call) id(name string) (int64, error) {
	return parseID(name, c.params[name])
}

// merchant resolves the optional merchant_id of the query.
func (c *call) merchant() (payvault.MerchantID, error) {
	if !c.query.Has("merchant_id") {
		return c.account.MerchantID, nil
	}
	id, err := parseID("merchant_id", c.query.Get("merchant_id"))
	if err != nil {
		return 0, err
	}
	return c.account.actFor(&id)
}

func parseID(name, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(id, 10) != text {
		return 0, refuse(http.StatusBadRequest, "%s must be an integer", name)
	}
	return id, nil
}

// now is the clock of the server in whole seconds, as timestamps of the interface are.
func (v *service) now() time.Time { return v.clock().Truncate(time.Second) }

// Commits tells how many times an operation was really performed: its state changed, or it was
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

func (v *service) committed(op payvault.Operation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.commits[op]++
}
