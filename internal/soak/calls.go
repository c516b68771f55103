package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/payvaulttest"
)

// period is what happens to one emulator.
type period struct {
	*soak

	srv   *payvaulttest.Server
	ids   calls.IDs // of the records that all calls may be about
	reads []calls.Operation

	mu      sync.Mutex
	records []record
	payees  []*payvault.Payee // that can be deleted
	deleted map[string]bool   // names of payees that may be gone
}

// record is a call that was made.
type record struct {
	op        payvault.Operation
	outcome   string
	performed func(*state) int // how often it was performed; -1 if that cannot be told
}

// The outcomes of a call, for the audit.
const (
	succeeded = "success"
	unknown   = "unknown"
	decided   = "not performed"
)

func newPeriod(s *soak, srv *payvaulttest.Server) *period {
	p := &period{soak: s, srv: srv, ids: calls.Seeded(srv), deleted: map[string]bool{}}
	p.reads = slices.DeleteFunc(calls.Table(), func(o calls.Operation) bool { return o.Replay != payvault.ReplayRead })
	return p
}

// run makes n calls with all callers.
func (p *period) run(ctx context.Context, n int) {
	numbers := make(chan int)
	var callers sync.WaitGroup
	for range p.callers {
		callers.Go(func() {
			for number := range numbers {
				p.call(ctx, number)
				p.done.Add(1)
			}
		})
	}
	first := int(p.done.Load())
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		numbers <- first + i
	}
	close(numbers)
	callers.Wait()
}

// call makes one call, perhaps with a fault in its way, and records what came of it.
func (p *period) call(ctx context.Context, number int) {
	made := pick(slices.Collect(maps.Values(p.makers())))(number)
	switch {
	case chance(p.faults):
		if _, err := p.srv.Inject(p.nextFault(made.op)); err != nil {
			p.problem("%v", err)
		}
	case chance(p.faults / 10): // a caller without patience
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pick([]time.Duration{0, 100 * time.Microsecond, time.Millisecond}))
		defer cancel()
	}
	err := made.do(ctx)
	p.watch.search(fmt.Appendf(nil, "%v %+v", err, errors.Unwrap(err)))
	r := record{op: made.op, outcome: succeeded, performed: made.performed}
	class := "success"
	if e, ok := errors.AsType[*payvault.Error](err); ok {
		class = strings.TrimSpace(fmt.Sprintf("%s %s", e.Delivery, strings.TrimPrefix(strconv.Itoa(e.StatusCode), "0")))
		r.outcome = map[bool]string{true: unknown, false: decided}[e.Delivery == payvault.Unknown]
	} else if err != nil {
		p.problem("an error of another type: %v", err)
	}
	p.soak.mu.Lock()
	p.classes[class]++
	p.soak.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = append(p.records, r)
}

// call is an operation to perform.
type call struct {
	op        payvault.Operation
	do        func(ctx context.Context) error
	performed func(*state) int
}

// makers are makers of calls; each call leaves its own trace in the emulator. What only reads leaves none, and is made
// as the table of calls does.
func (p *period) makers() map[payvault.Operation]func(number int) call {
	makers := map[payvault.Operation]func(int) call{
		payvault.OpTokensTokenize: p.tokenize, opTokenizeSaved: p.tokenizeSaved, payvault.OpCustomersCreate: p.createCustomer,
		payvault.OpPayeesCreate: p.createPayee, payvault.OpPayeesDelete: p.deletePayee,
		payvault.OpApplicationsCreate: p.createApplication, payvault.OpApplicationsSaveData: p.saveData,
		payvault.OpDisputesRespond: p.respond, payvault.OpSubscriptionsCancel: p.cancel, payvault.OpInvoicesSend: p.send,
		payvault.OpAccountUpdaterSubmit: p.submit, payvault.OpWebhooksAddEvent: p.addEvent,
	}
	for _, o := range p.reads {
		makers[o.Op] = func(int) call { return p.tabled(o) }
	}
	return makers
}

func (p *period) tabled(o calls.Operation) call {
	client := p.merchant
	if strings.HasPrefix(string(o.Op), "applications.") {
		client = p.partner
	}
	return call{o.Op, func(ctx context.Context) error {
		_, err := o.Do(ctx, client, p.ids, o.Minimal)
		return err
	}, untold}
}

func untold(*state) int { return -1 }

func (p *period) tokenize(number int) call {
	name := "holder " + strconv.Itoa(number)
	return call{payvault.OpTokensTokenize, func(ctx context.Context) error {
		_, err := p.merchant.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
			CardholderName: name, CardNumber: payvault.NewSecret(canaryCard), ExpDate: "1230",
			PayloadWalletOnePay: payvault.NewSecret(canaryWallet),
		})
		return err
	}, func(s *state) int { return s.cards[name] }}
}

// The replayable tokenize counts as another operation in the books, since it may be performed more than once.
const opTokenizeSaved = payvault.OpTokensTokenize + " with card_id"

func (p *period) tokenizeSaved(int) call {
	return call{opTokenizeSaved, func(ctx context.Context) error {
		_, err := p.merchant.Tokens.Tokenize(ctx,
			&payvault.TokenizeRequest{CardID: p.ids.Card, CardNumber: payvault.NewSecret(canaryCard), ExpDate: "1131"})
		return err
	}, untold}
}

func (p *period) createCustomer(number int) call {
	reference := strconv.Itoa(number)
	return call{payvault.OpCustomersCreate, func(ctx context.Context) error {
		_, err := p.merchant.Customers.Create(ctx, &payvault.CustomerCreateRequest{
			AutoGenerateCustomerID: true, FirmName: "Acme", ReferenceID: reference,
			BillingCards: []payvault.BillingCardRequest{{CardNumber: payvault.NewSecret(canaryCard), ExpDate: "1230"}},
		})
		return err
	}, func(s *state) int { return s.customers[reference] }}
}

func (p *period) createPayee(number int) call {
	name := "payee " + strconv.Itoa(number)
	return call{payvault.OpPayeesCreate, func(ctx context.Context) error {
		payee, err := p.merchant.Payees.Create(ctx, &payvault.PayeeCreateRequest{
			Name: name, Account: payvault.PayeeAccount{
				TypeID: payvault.TypeACH, TRNumber: payvault.NewSecret(canaryRouting),
				DDANumber: payvault.NewSecret(canaryAccount),
			},
		})
		if err == nil {
			p.mu.Lock()
			p.payees = append(p.payees, payee)
			p.mu.Unlock()
		}
		return err
	}, func(s *state) int {
		if p.deleted[name] {
			return -1
		}
		return s.payees[name]
	}}
}

// deletePayee deletes a payee that was created before, or else creates one.
func (p *period) deletePayee(number int) call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.payees) == 0 {
		return p.createPayee(number)
	}
	payee := p.payees[len(p.payees)-1]
	p.payees = p.payees[:len(p.payees)-1]
	p.deleted[payee.Name] = true
	return call{payvault.OpPayeesDelete, func(ctx context.Context) error {
		return p.merchant.Payees.Delete(ctx, payee.ID)
	}, func(s *state) int { return 1 - s.payees[payee.Name] }}
}

func (p *period) createApplication(number int) call {
	rep := int64(number) + 1000
	return call{payvault.OpApplicationsCreate, func(ctx context.Context) error {
		_, err := p.partner.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: rep})
		return err
	}, func(s *state) int { return s.applications[rep] }}
}

func (p *period) saveData(int) call {
	return call{payvault.OpApplicationsSaveData, func(ctx context.Context) error {
		_, err := p.partner.Applications.SaveData(ctx, p.ids.Application, payvault.ApplicationData{
			LegalName: "Acme LLC", BankRouting: payvault.NewSecret(canaryRouting),
			BankAccountNumber: payvault.NewSecret(canaryAccount),
		})
		return err
	}, untold}
}

func (p *period) respond(int) call {
	id := p.srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval}).ID
	return call{payvault.OpDisputesRespond, func(ctx context.Context) error {
		return p.merchant.Disputes.Respond(ctx, id, &payvault.DisputeResponse{
			Message: "The receipt is attached.", Evidence: payvault.FileFromBytes("receipt.pdf", []byte("%PDF-1.7\n%%EOF\n")),
		})
	}, func(s *state) int {
		dispute, _ := s.srv.Disputes.Get(id)
		return count(dispute.Response != nil)
	}}
}

func (p *period) cancel(int) call {
	id := p.srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "JANE1"}).ID
	return call{payvault.OpSubscriptionsCancel, func(ctx context.Context) error {
		_, err := p.merchant.Subscriptions.Cancel(ctx, id, &payvault.SubscriptionCancelRequest{CustomerID: "JANE1"})
		return err
	}, func(s *state) int {
		subscription, _ := s.srv.Subscriptions.Get(id)
		return count(subscription.State == payvaulttest.SubscriptionCanceled)
	}}
}

func (p *period) send(int) call {
	id := p.srv.Invoices.Seed(payvaulttest.Invoice{}).ID
	return call{payvault.OpInvoicesSend, func(ctx context.Context) error {
		return p.merchant.Invoices.Send(ctx, id, nil)
	}, func(s *state) int {
		invoice, _ := s.srv.Invoices.Get(id)
		return count(invoice.State == payvaulttest.InvoiceOutstanding)
	}}
}

func (p *period) submit(number int) call {
	own := strconv.Itoa(number)
	return call{payvault.OpAccountUpdaterSubmit, func(ctx context.Context) error {
		_, err := p.merchant.AccountUpdater.Submit(ctx,
			[]payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret(canaryCard), ExpDate: "1230", CardID: own}})
		return err
	}, func(s *state) int { return s.updates[own] }}
}

func (p *period) addEvent(number int) call {
	event := "event_" + strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, strconv.Itoa(number))
	return call{payvault.OpWebhooksAddEvent, func(ctx context.Context) error {
		_, err := p.merchant.Webhooks.AddEvent(ctx, p.ids.Webhook, payvault.Event(event))
		return err
	}, func(s *state) int { return count(s.events[event]) }}
}

func count(performed bool) int {
	if performed {
		return 1
	}
	return 0
}
