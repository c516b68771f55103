package simulation

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

// These are secret values of requests. No error, log record or value for observers may contain them.
const (
	canaryKey      = "sim-api-key-7Jx2Lq"
	canaryCard     = "4000123498761234"
	canarySwipe    = "%B4000123498765555^DOE/JANE^30121010000000000?"
	canaryWallet   = "wallet5Kq0xPayload"
	canaryCVV      = "c9v7q"
	canaryRouting  = "998877665"
	canaryAccount  = "55443322110099"
	canarySSN      = "987650321"
	canaryTaxID    = "876509321"
	canaryPayee    = "918273645"
	canaryApp      = "827364519"
	canaryDispute  = "736451829"
	canarySub      = "645182937"
	canaryInvoice  = "invQX7Z918k"
	canaryWebhook  = "whkQX7Z918k"
	canaryFilter   = "filterQZ81k"
	canaryExtra    = "headerQZ82k"
	canaryCallPath = "recordQZ83k"
)

// secrets returns the values that must be redacted in the errors of a call.
func (k *kind) secrets() []string {
	return append([]string{canaryKey, encodedKey(), canaryExtra, canaryCard, canaryAccount}, k.private...)
}

// encodedKey returns the base64 part of the Authorization header, which contains the API key.
func encodedKey() string { return base64.StdEncoding.EncodeToString([]byte(":" + canaryKey)) }

// kind describes one operation in one form, such as a single call or a walk. It says how to call the operation and how
// the service answers.
type kind struct {
	op      payvault.Operation
	form    string
	method  string
	path    string   // expected path after the base path, with IDs; "" if it is not checked
	list    bool     // the answer is a page of a list
	reads   bool     // the operation changes nothing; not taken from the SDK's table of operations, which is under test
	same    bool     // performing it twice has the same effect as once; not taken from the SDK's table either
	rcode   bool     // answers have their result code in the field rcode
	carries string   // a text that every complete request body contains
	private []string // secret values of the request, which must be redacted in errors
	issues  string   // the field of the answer with the new ID; "" if the answer has no new ID

	// sent returns the request value that the call sends and that the SDK must not change. It is nil if the call sends
	// none.
	sent func(q *requests) any
	// do makes the call and returns the ID that the service has issued. It is nil for walks and bulk jobs.
	do func(ctx context.Context, c *payvault.Client, q *requests, opts []payvault.CallOption) (id string, err error)
}

// requests has the arguments of calls. Several callers may share one requests value.
type requests struct {
	tokenize    payvault.TokenizeRequest
	tokenizeOld payvault.TokenizeRequest
	customer    payvault.CustomerCreateRequest
	payee       payvault.PayeeCreateRequest
	application payvault.ApplicationCreateRequest
	data        payvault.ApplicationData
	dispute     payvault.DisputeRespondRequest
	cancel      payvault.SubscriptionCancelRequest
	invoice     payvault.InvoiceSendRequest
	cards       []payvault.AccountUpdaterCard
	list        payvault.ListOptions
	call        payvault.Request
}

// recordsPerPage is the number of records on each page.
const recordsPerPage = 2

// evidence is a PDF file that is larger than the buffer of a connection (bufferSize).
//
//nolint:gochecknoglobals // never changed
var evidence = []byte("%PDF-1.7\n" + strings.Repeat("x", 150<<10) + "\n%%EOF\n")

// unchanged has the requests as they are before any call. The SDK must not change requests, so a caller's requests must
// still be equal to unchanged at the end of a scenario.
//
//nolint:gochecknoglobals // never changed
var unchanged = newRequests()

func newRequests() *requests {
	card, cvv := payvault.NewSecret(canaryCard), payvault.NewSecret(canaryCVV)
	routing, account := payvault.NewSecret(canaryRouting), payvault.NewSecret(canaryAccount)
	q := &requests{
		tokenize: payvault.TokenizeRequest{
			CardholderName: "Jane Doe", CardNumber: card, ExpDate: "1230", CVV2: cvv,
			CardSwipe: payvault.NewSecret(canarySwipe), PayloadWalletOnePay: payvault.NewSecret(canaryWallet),
			TRNumber: routing, DDANumber: account, TypeID: payvault.ACHAccountTypeS,
		},
		customer: payvault.CustomerCreateRequest{
			AutoGenerateCustomerID: true, FirmName: "Acme",
			BillingCards: []payvault.BillingCardRequest{
				{CardNumber: card, ExpDate: "1230", CVV2: cvv},
				{TRNumber: routing, DDANumber: account},
			},
		},
		payee: payvault.PayeeCreateRequest{
			Name:    "Acme",
			Account: payvault.PayeeAccount{TypeID: payvault.ACHAccountTypeS, TRNumber: routing, DDANumber: account},
		},
		application: payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42},
		data: payvault.ApplicationData{
			LegalName: "Acme LLC", TaxID: payvault.NewSecret(canaryTaxID),
			BankRouting: routing, BankAccountNumber: account,
			Ownership: payvault.Ownership{
				InterestCount: 1, Owners: []payvault.Owner{{SSN: payvault.NewSecret(canarySSN)}},
			},
		},
		dispute: payvault.DisputeRespondRequest{
			Message: "The receipt is attached.", Evidence: payvault.FileFromBytes("receipt.pdf", evidence),
		},
		cancel:  payvault.SubscriptionCancelRequest{CustomerID: "JANE1"},
		invoice: payvault.InvoiceSendRequest{EmailAddress: []string{"jane@example.com"}},
		cards:   []payvault.AccountUpdaterCard{{CardNumber: card, ExpDate: "1230", CardID: "0"}},
		list: payvault.ListOptions{
			Count: recordsPerPage, Filters: []payvault.Filter{payvault.Where("customer_email", "EQ", canaryFilter)},
		},
		call: payvault.Request{
			Method: http.MethodPut, Path: []string{"platform", "thing", canaryCallPath},
			Body: map[string]any{"card_number": card, "last": "end"},
		},
	}
	q.tokenizeOld = q.tokenize
	q.tokenizeOld.CardID = "CARDID1004"
	return q
}

// kinds returns the kinds of all operations. An operation with several forms has one kind for each form.
func kinds() []kind { return allKinds }

var allKinds = makeKinds() //nolint:gochecknoglobals // never changed

func kindOf(op payvault.Operation, form string) kind {
	for _, k := range allKinds {
		if k.op == op && k.form == form {
			return k
		}
	}
	panic("no kind " + string(op) + " " + form)
}

func makeKinds() []kind {
	all := singles()
	for _, info := range payvault.Operations() {
		found := false
		for i := range all {
			if k := &all[i]; k.op == info.Op {
				found = true
				k.method, k.path = info.Method, canaryIDs().In(info.Path)
			}
		}
		if !found {
			all = append(all, tabled(info.Op))
		}
	}
	return all
}

// tabled returns the kind of an operation for which singles has no entry. The kind makes the call by package calls,
// with the smallest valid request.
func tabled(op payvault.Operation) kind {
	o := calls.Of(op)
	replayed := strings.HasPrefix(o.Stated, o.Method+" "+o.Path+" yes ")
	k := kind{
		op: op, method: o.Method, path: canaryIDs().In(o.Path), list: o.Lists(),
		reads: replayed && o.Method == http.MethodGet, same: replayed && o.Method != http.MethodGet,
	}
	for i, segment := range strings.Split(k.path, "/") {
		// the ID of an event is not secret
		if strings.Split(o.Path, "/")[i] != segment && segment != string(canaryIDs().Event) {
			k.private = append(k.private, segment)
		}
	}
	k.do = func(ctx context.Context, c *payvault.Client, _ *requests, opts options) (string, error) {
		result, err := o.Do(ctx, c, canaryIDs(), o.Minimal, opts...)
		if (result == nil) == (err == nil) {
			return "", noResult{err == nil}
		}
		return "", err
	}
	return k
}

// canaryIDs returns the IDs that all calls use in their paths.
func canaryIDs() calls.IDs {
	return calls.IDs{
		Payee: payvault.PayeeID(number(canaryPayee)), Application: payvault.ApplicationID(number(canaryApp)),
		Dispute: payvault.DisputeID(number(canaryDispute)), Subscription: payvault.SubscriptionID(number(canarySub)),
		Invoice: canaryInvoice, Webhook: canaryWebhook, Event: payvault.EventTransactionStatusUpdated,
	}
}

func number(canary string) int64 {
	n, err := strconv.ParseInt(canary, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

type options = []payvault.CallOption

func singles() []kind {
	payment := []string{canaryCard, canarySwipe, canaryWallet, canaryCVV, canaryRouting, canaryAccount}
	subscription := payvault.SubscriptionID(number(canarySub))
	return []kind{
		{
			op: payvault.OpTokensTokenize, rcode: true, carries: canaryWallet, private: payment, issues: "card_id",
			sent: func(q *requests) any { return &q.tokenize },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Tokens.Tokenize(ctx, &q.tokenize, opts...)
				return idOf(r, err, func() string { return r.CardID })
			},
		},
		{
			op: payvault.OpTokensTokenize, form: formCard, same: true, rcode: true,
			carries: canaryWallet, private: payment, issues: "card_id",
			sent: func(q *requests) any { return &q.tokenizeOld },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Tokens.Tokenize(ctx, &q.tokenizeOld, opts...)
				return idOf(r, err, func() string { return r.CardID })
			},
		},
		{
			op: payvault.OpCustomersCreate, carries: canaryAccount,
			private: []string{canaryCard, canaryCVV, canaryRouting, canaryAccount}, issues: "customer_id",
			sent: func(q *requests) any { return &q.customer },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Customers.Create(ctx, &q.customer, opts...)
				return idOf(r, err, func() string { return r.ID })
			},
		},
		{
			op: payvault.OpCustomersList, reads: true, list: true, private: []string{canaryFilter},
			sent: func(q *requests) any { return &q.list },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Customers.List(ctx, &q.list, opts...)
				return idOf(r, err, none)
			},
		},
		{
			op: payvault.OpCustomersList, form: formWalk, reads: true, list: true,
			private: []string{canaryFilter}, sent: func(q *requests) any { return &q.list },
		},
		{
			op: payvault.OpPayeesCreate, carries: canaryAccount,
			private: []string{canaryRouting, canaryAccount}, issues: "payee_id",
			sent: func(q *requests) any { return &q.payee },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Payees.Create(ctx, &q.payee, opts...)
				return idOf(r, err, func() string { return fmt.Sprint(r.ID) })
			},
		},
		{
			op: payvault.OpPayeesDelete, private: []string{canaryPayee},
			do: func(ctx context.Context, c *payvault.Client, _ *requests, opts options) (string, error) {
				return "", c.Payees.Delete(ctx, payvault.PayeeID(number(canaryPayee)), opts...)
			},
		},
		{
			op: payvault.OpApplicationsCreate, carries: "sales_rep", issues: "app_id",
			sent: func(q *requests) any { return &q.application },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Applications.Create(ctx, &q.application, opts...)
				return idOf(r, err, func() string { return fmt.Sprint(r.App.ID) })
			},
		},
		{
			op: payvault.OpApplicationsSaveData, same: true, carries: canaryAccount,
			private: []string{canaryTaxID, canarySSN, canaryRouting, canaryAccount, canaryApp},
			sent:    func(q *requests) any { return q.data },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				_, err := c.Applications.SaveData(ctx, payvault.ApplicationID(number(canaryApp)), q.data, opts...)
				return "", err
			},
		},
		{
			op: payvault.OpApplicationsValidate, reads: true, private: []string{canaryApp},
			do: func(ctx context.Context, c *payvault.Client, _ *requests, opts options) (string, error) {
				r, err := c.Applications.Validate(ctx, payvault.ApplicationID(number(canaryApp)), opts...)
				return idOf(r, err, none)
			},
		},
		{
			op: payvault.OpDisputesRespond, carries: "%%EOF", private: []string{canaryDispute},
			sent: func(q *requests) any { return &q.dispute },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				return "", c.Disputes.Respond(ctx, payvault.DisputeID(number(canaryDispute)), &q.dispute, opts...)
			},
		},
		{
			op: payvault.OpSubscriptionsTransactions, reads: true, list: true,
			private: []string{canarySub, canaryFilter},
			sent:    func(q *requests) any { return &q.list },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Subscriptions.Transactions(ctx, subscription, &q.list, opts...)
				return idOf(r, err, none)
			},
		},
		{
			op: payvault.OpSubscriptionsTransactions, form: formWalk, reads: true, list: true,
			private: []string{canarySub, canaryFilter}, sent: func(q *requests) any { return &q.list },
		},
		{
			op: payvault.OpSubscriptionsCancel, carries: "JANE1", private: []string{canarySub},
			sent: func(q *requests) any { return &q.cancel },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.Subscriptions.Cancel(ctx, subscription, &q.cancel, opts...)
				return idOf(r, err, none)
			},
		},
		{
			op: payvault.OpInvoicesSend, carries: "jane@example.com", private: []string{canaryInvoice},
			sent: func(q *requests) any { return &q.invoice },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				return "", c.Invoices.Send(ctx, canaryInvoice, &q.invoice, opts...)
			},
		},
		{
			op: payvault.OpAccountUpdaterSubmit, carries: canaryCard,
			private: []string{canaryCard}, issues: "request_id",
			sent: func(q *requests) any { return q.cards },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				r, err := c.AccountUpdater.Submit(ctx, q.cards, opts...)
				return idOf(r, err, func() string { return r.RequestID })
			},
		},
		{
			op: payvault.OpAccountUpdaterSubmit, form: formBulk, carries: canaryCard,
			private: []string{canaryCard}, issues: "request_id", sent: func(q *requests) any { return q.cards },
		},
		{
			op: payvault.OpWebhooksAddEvent, private: []string{canaryWebhook},
			do: func(ctx context.Context, c *payvault.Client, _ *requests, opts options) (string, error) {
				r, err := c.Webhooks.AddEvent(ctx, canaryWebhook, payvault.EventTransactionStatusUpdated, opts...)
				return idOf(r, err, none)
			},
		},
		{
			op: payvault.OpCall, method: http.MethodPut, path: "/platform/thing/" + canaryCallPath, carries: `"end"`,
			private: []string{canaryCard, canaryCallPath},
			sent:    func(q *requests) any { return q.call },
			do: func(ctx context.Context, c *payvault.Client, q *requests, opts options) (string, error) {
				return "", c.Call(ctx, q.call, nil, opts...)
			},
		},
	}
}

func none() string { return "" }

// noResult is the error of a call whose result and error are both nil, or both not nil.
type noResult struct{ both bool }

func (e noResult) Error() string { return fmt.Sprintf("result and error: both %t, or none", e.both) }

func idOf[T any](result *T, err error, id func() string) (string, error) {
	switch {
	case result == nil && err == nil:
		return "", noResult{}
	case result != nil && err != nil:
		return "", noResult{true}
	case err != nil:
		return "", err
	}
	return id(), nil
}
