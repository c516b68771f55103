package payvaulttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// Commits returns how often the server has performed an operation, whether or not the client got the answer. So a test
// can check that a payment was not made twice. For an operation that does not exist, Commits returns 0.
func (s *Server) Commits(op payvault.Operation) int { return s.AllCommits()[op] }

// AllCommits returns the counts of [Server.Commits] for all operations that were performed at least once.
func (s *Server) AllCommits() map[payvault.Operation]int {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return maps.Clone(s.state.commits)
}

// Requests returns the newest requests, including refused requests, in the order in which the server read them.
// [WithRequestHistory] sets how many requests the server keeps. A request is in the list before its answer is sent.
func (s *Server) Requests() []Request {
	s.handler.requests.mu.Lock()
	defer s.handler.requests.mu.Unlock()
	return slices.Clone(s.handler.requests.list)
}

// Retire makes the server refuse the API key of an account, with status 401, as after a change of keys. Requests that
// are being answered go on. The merchant of the account keeps its records, and [Server.Accounts] still lists the
// account. Retire returns an error if no account has this API key.
func (s *Server) Retire(account Account) error {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	if !slices.ContainsFunc(s.state.accounts, func(a Account) bool { return a.APIKey == account.APIKey }) {
		return errors.New("payvaulttest: no account has the API key of the account to retire")
	}
	s.state.retired[account.APIKey] = true
	return nil
}

// Handle adds an operation that the documentation of the service mentions but does not describe. A test can then run
// code that calls the operation with [payvault.Client.Call]. Method and path together are a pattern of [http.ServeMux],
// for example GET and /platform/application/{appId}. The path is relative to [Server.URL]. The handler may use the
// server. The handler gets only requests with a known API key and a body of at most 1 MiB. The operation counts as
// performed if the handler answers with a status of 2xx.
//
// [Request], [Fault] and [Server.Commits] name the operation by method and path: "GET /platform/application/{appId}".
// Handle panics if method or path is invalid, if handler is nil, or if the pattern equals or conflicts with the pattern
// of another operation of the server.
func (s *Server) Handle(method, path string, handler http.HandlerFunc) {
	if method == "" || !strings.HasPrefix(path, "/") || handler == nil {
		panic("payvaulttest: Handle wants a method, a path that begins with a slash, and a handler")
	}
	s.handler.add(route{
		op: &openapi.Operation{ID: method + " " + path, Method: method, Path: path}, taught: handler,
	})
}

// Inject makes the requests that arrive from now on fail as the fault describes. It returns a function that removes the
// fault. If several faults would make a request fail, only the fault that was injected first does so.
//
// Inject returns an error, and injects nothing, if the fault can never make a request fail as described: its kind or
// operation does not exist, a field has an invalid value, the kind does not read a field that is set, or AfterCommit is
// set for a kind that performs nothing.
func (s *Server) Inject(fault Fault) (remove func(), err error) {
	if err := fault.check(s.handler.allOperations()); err != nil {
		return nil, fmt.Errorf("payvaulttest: fault %q: %w", string(fault.Kind), err)
	}
	fault.Header = fault.Header.Clone()
	id := s.handler.faults.add(fault).id
	return func() { s.handler.faults.remove(id) }, nil
}

// Faults returns the faults that still wait for requests, in the order in which they were injected.
func (s *Server) Faults() []ArmedFault {
	s.handler.faults.mu.Lock()
	defer s.handler.faults.mu.Unlock()
	list := make([]ArmedFault, len(s.handler.faults.list))
	for i, armed := range s.handler.faults.list {
		list[i] = armed.ArmedFault
		list[i].Header = armed.Header.Clone()
	}
	return list
}

// ClearFaults removes every fault.
func (s *Server) ClearFaults() {
	s.handler.faults.mu.Lock()
	defer s.handler.faults.mu.Unlock()
	s.handler.faults.list = nil
}

// TriggerEvent delivers an event to those webhooks of a merchant that have the event and a notification URL, and
// returns the number of these webhooks. Each delivery contains the parameter data, encoded as JSON. TriggerEvent panics
// if it has to deliver data that cannot be encoded as JSON. The deliveries are made in the background:
// [Server.WaitDeliveries] waits for them.
func (s *Server) TriggerEvent(merchant payvault.MerchantID, event payvault.Event, data any) int {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	return s.state.occur(merchant, event, data)
}

// SetTransactionStatus changes the status of a subscription's transaction and triggers the event
// transaction_status_updated. It returns an error if the subscription has no transaction with this pg_id.
func (s *Server) SetTransactionStatus(id payvault.SubscriptionID, pgID, status string) error {
	v := s.state
	v.mu.Lock()
	defer v.mu.Unlock()
	sub := cmp.Or(s.Subscriptions.rows[id], &Subscription{})
	i := slices.IndexFunc(sub.Transactions, func(t Transaction) bool { return t.PGID == pgID })
	if i < 0 {
		return fmt.Errorf("payvaulttest: subscription %d has no transaction with this pg_id", id)
	}
	sub.Transactions[i].Status = status
	v.occur(sub.MerchantID, payvault.EventTransactionStatusUpdated, sub.Transactions[i])
	return nil
}

// Deliveries returns the deliveries that have ended, in the order in which they ended.
func (s *Server) Deliveries() []Delivery {
	d := s.deliveries
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.history)
}

// Redeliver delivers the notification of element i of [Server.Deliveries] again, in the background and with the same
// body. So a test can check what a receiver does with a notification that comes twice, or that comes again after the
// receiver has answered it with status 500. The service does not document whether it delivers again. Redeliver panics
// if there is no element i.
func (s *Server) Redeliver(i int) {
	s.deliveries.repeater(i)()
}

// WaitDeliveries waits until all deliveries that were triggered before the call have ended. It does not wait for later
// deliveries. It returns early with an error when the context ends or the server is closed.
func (s *Server) WaitDeliveries(ctx context.Context) error { return s.deliveries.wait(ctx) }
