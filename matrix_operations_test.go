package payvault_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// What the requests of the matrix hold: nothing of it may show up in an error or a log record.
const (
	secretCard    = "4000123498761234"
	secretCVV     = "9737"
	secretSwipe   = "%B4000123498765555^DOE/JANE^30121010000000000?"
	secretWallet  = "wallet-payload-5Kq0x"
	secretRouting = "998877665"
	secretAccount = "55443322110099"
	secretSSN     = "987650321"
	secretTaxID   = "876509321"
)

// matrixOperations are the fourteen operations; tokenize is there twice, since its class depends on the request.
func matrixOperations() []matrixOp {
	return []matrixOp{
		{name: "tokens.tokenize", op: payvault.OpTokensTokenize, secrets: []string{secretCard, secretCVV, secretSwipe, secretWallet, secretRouting, secretAccount}, prepare: prepareTokenize},
		{name: "tokens.tokenize with CardID", op: payvault.OpTokensTokenize, replayable: true, secrets: []string{secretCard, secretCVV, secretSwipe, secretWallet, secretRouting, secretAccount}, prepare: prepareTokenizeSaved},
		{name: "customers.create", op: payvault.OpCustomersCreate, secrets: []string{secretCard, secretCVV, secretRouting, secretAccount}, prepare: prepareCustomer},
		{name: "customers.list", op: payvault.OpCustomersList, replayable: true, get: true, prepare: prepareCustomers},
		{name: "payees.create", op: payvault.OpPayeesCreate, secrets: []string{secretRouting, secretAccount}, prepare: preparePayee},
		{name: "payees.delete", op: payvault.OpPayeesDelete, bodyless: true, again: 404, prepare: preparePayeeDelete},
		{name: "applications.create", op: payvault.OpApplicationsCreate, partner: true, prepare: prepareApplication},
		{name: "applications.save_data", op: payvault.OpApplicationsSaveData, replayable: true, partner: true, secrets: []string{secretTaxID, secretSSN, secretRouting, secretAccount}, prepare: prepareSaveData},
		{name: "applications.validate", op: payvault.OpApplicationsValidate, replayable: true, get: true, partner: true, prepare: prepareValidate},
		{name: "disputes.respond", op: payvault.OpDisputesRespond, again: 409, prepare: prepareDispute},
		{name: "subscriptions.transactions", op: payvault.OpSubscriptionsTransactions, replayable: true, get: true, prepare: prepareTransactions},
		{name: "subscriptions.cancel", op: payvault.OpSubscriptionsCancel, again: 409, prepare: prepareCancel},
		{name: "invoices.send", op: payvault.OpInvoicesSend, again: 409, prepare: prepareInvoice},
		{name: "account_updater.submit", op: payvault.OpAccountUpdaterSubmit, secrets: []string{secretCard}, prepare: prepareUpdater},
		{name: "webhooks.add_event", op: payvault.OpWebhooksAddEvent, bodyless: true, prepare: prepareEvent},
	}
}

// TestMatrixOperations holds the operations of the matrix and their classes against the list that is taken from the interface.
func TestMatrixOperations(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("testdata/operations.txt")
	require.NoError(t, err)
	want := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		columns := strings.Split(line, "\t") // number, operation, method, path, replay, …
		if strings.HasPrefix(line, "#") {
			continue
		}
		switch name, class := columns[1], columns[4]; class {
		case "card_id":
			want[name], want[name+" with CardID"] = false, true
		default:
			want[name] = class == "yes"
		}
	}
	got := map[string]bool{}
	ops := matrixOperations()
	for i := range ops {
		got[ops[i].name] = ops[i].replayable
		assert.True(t, strings.HasPrefix(ops[i].name, string(ops[i].op)), ops[i].name)
	}
	assert.Equal(t, want, got)
	assert.Len(t, got, 15)
}

// calling is a call that fmt and log/slog are shown the request of.
func calling[T any](request any, do func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (T, error)) matrixCall {
	return matrixCall{request: request, do: func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		result, err := do(ctx, c, opts...)
		if err != nil {
			return nil, err
		}
		return result, nil
	}}
}

// done is the result of an operation that has none.
type done struct{}

func prepareTokenize(context.Context, *payvaulttest.Server) (matrixCall, error) {
	return tokenizing(tokenizeEverything("")), nil
}

func prepareTokenizeSaved(ctx context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	client := srv.Client()
	defer client.CloseIdleConnections()
	saved, err := client.Tokens.Tokenize(ctx, tokenizeEverything(""))
	if err != nil {
		return matrixCall{}, err
	}
	return tokenizing(tokenizeEverything(saved.CardID)), nil
}

func tokenizing(req *payvault.TokenizeRequest) matrixCall {
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Tokens.Tokenize(ctx, req, opts...)
	})
}

func tokenizeEverything(cardID string) *payvault.TokenizeRequest {
	return &payvault.TokenizeRequest{
		CardID: cardID, CardholderName: "Jane Doe", CardNumber: payvault.NewSecret(secretCard), ExpDate: payvault.ExpDate(12, 2030), CVV2: payvault.NewSecret(secretCVV),
		CardSwipe: payvault.NewSecret(secretSwipe), PayloadWalletOnePay: payvault.NewSecret(secretWallet), TRNumber: payvault.NewSecret(secretRouting), DDANumber: payvault.NewSecret(secretAccount), TypeID: payvault.TypeACH,
	}
}

func prepareCustomer(context.Context, *payvaulttest.Server) (matrixCall, error) {
	req := &payvault.CustomerCreateRequest{
		AutoGenerateCustomerID: true, FirstName: "Jane", LastName: "Doe",
		BillingCards: []payvault.BillingCardRequest{
			{CardNumber: payvault.NewSecret(secretCard), ExpDate: payvault.ExpDate(12, 2030), CVV2: payvault.NewSecret(secretCVV), Primary: true},
			{TRNumber: payvault.NewSecret(secretRouting), DDANumber: payvault.NewSecret(secretAccount), TypeID: payvault.TypeACH},
		},
	}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Customers.Create(ctx, req, opts...)
	}), nil
}

func prepareCustomers(context.Context, *payvaulttest.Server) (matrixCall, error) {
	return calling(nil, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Customers.List(ctx, nil, opts...)
	}), nil
}

func preparePayee(context.Context, *payvaulttest.Server) (matrixCall, error) {
	req := newPayee()
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Payees.Create(ctx, req, opts...)
	}), nil
}

func newPayee() *payvault.PayeeCreateRequest {
	return &payvault.PayeeCreateRequest{
		Name: "Acme", Account: payvault.PayeeAccount{TypeID: payvault.TypeACH, TRNumber: payvault.NewSecret(secretRouting), DDANumber: payvault.NewSecret(secretAccount)},
	}
}

func preparePayeeDelete(ctx context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	client := srv.Client()
	defer client.CloseIdleConnections()
	payee, err := client.Payees.Create(ctx, newPayee())
	if err != nil {
		return matrixCall{}, err
	}
	return calling(nil, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (done, error) {
		return done{}, c.Payees.Delete(ctx, payee.ID, opts...)
	}), nil
}

func prepareApplication(context.Context, *payvaulttest.Server) (matrixCall, error) {
	req := &payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Applications.Create(ctx, req, opts...)
	}), nil
}

func newApplication(ctx context.Context, srv *payvaulttest.Server) (payvault.ApplicationID, error) {
	client := srv.PartnerClient()
	defer client.CloseIdleConnections()
	created, err := client.Applications.Create(ctx,
		&payvault.ApplicationCreateRequest{ChannelID: 7, SalesRep: 42})
	if err != nil {
		return 0, err
	}
	return created.App.ID, nil
}

func prepareSaveData(ctx context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	id, err := newApplication(ctx, srv)
	req := payvault.ApplicationData{
		LegalName: "Acme LLC", TaxID: payvault.NewSecret(secretTaxID), BankRouting: payvault.NewSecret(secretRouting), BankAccountNumber: payvault.NewSecret(secretAccount),
		Ownership: payvault.Ownership{InterestCount: 1, Owners: []payvault.Owner{{SSN: payvault.NewSecret(secretSSN)}}},
	}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Applications.SaveData(ctx, id, req, opts...)
	}), err
}

func prepareValidate(ctx context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	id, err := newApplication(ctx, srv)
	return calling(nil, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Applications.Validate(ctx, id, opts...)
	}), err
}

func prepareDispute(_ context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	dispute := srv.Disputes.Seed(payvaulttest.Dispute{Kind: payvaulttest.DisputeRetrieval})
	req := &payvault.DisputeResponse{
		Message: "The receipt is attached.", Evidence: payvault.FileFromBytes("receipt.pdf", []byte("%PDF-1.7\n%%EOF\n")),
	}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (done, error) {
		return done{}, c.Disputes.Respond(ctx, dispute.ID, req, opts...)
	}), nil
}

func prepareTransactions(_ context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{Transactions: []payvaulttest.Transaction{{Amount: "19.90"}}})
	return calling(nil, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Subscriptions.Transactions(ctx, subscription.ID, nil, opts...)
	}), nil
}

func prepareCancel(_ context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	subscription := srv.Subscriptions.Seed(payvaulttest.Subscription{CustomerID: "JANE1"})
	req := &payvault.SubscriptionCancelRequest{CustomerID: "JANE1"}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Subscriptions.Cancel(ctx, subscription.ID, req, opts...)
	}), nil
}

func prepareInvoice(_ context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	invoice := srv.Invoices.Seed(payvaulttest.Invoice{})
	req := &payvault.InvoiceSendRequest{EmailAddress: []string{"jane@example.com"}}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (done, error) {
		return done{}, c.Invoices.Send(ctx, invoice.ID, req, opts...)
	}), nil
}

func prepareUpdater(context.Context, *payvaulttest.Server) (matrixCall, error) {
	req := []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret(secretCard), ExpDate: payvault.ExpDate(12, 2030)}}
	return calling(req, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.AccountUpdater.Submit(ctx, req, opts...)
	}), nil
}

func prepareEvent(_ context.Context, srv *payvaulttest.Server) (matrixCall, error) {
	webhook := srv.Webhooks.Seed(payvaulttest.Webhook{})
	return calling(nil, func(ctx context.Context, c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return c.Webhooks.AddEvent(ctx, webhook.ID, payvault.EventTransactionStatusUpdated, opts...)
	}), nil
}

// matrixCell is one operation under one fault, with an emulator of its own.
type matrixCell struct {
	fault  *matrixFault
	op     *matrixOp
	server *payvaulttest.Server
	client *payvault.Client
	call   matrixCall

	options []payvault.Option // of the client
	before  int               // commits before the call
	left    atomic.Int64      // how often the network still strikes
	struck  atomic.Int64      // how often the fault has struck; all is counted when the cell is closed
	closes  []func()

	mu     sync.Mutex
	closed bool
	conns  []net.Conn // which net/http may have dialed for an attempt of its own that it was not allowed to make
}

// keep closes conn with the cell.
func (c *matrixCell) keep(conn net.Conn, err error) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case c.closed:
		_ = conn.Close()
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

// newCell prepares everything up to the call. The log handlers are the emulator's.
func newCell(ctx context.Context, f *matrixFault, op *matrixOp, stays bool, logs []slog.Handler, opts ...payvault.Option) (*matrixCell, error) {
	c := &matrixCell{fault: f, op: op, options: append(opts, f.options...)}
	logger := slog.New(slog.NewMultiHandler(append(logs, strikeCounter{c})...))
	srvOpts := []payvaulttest.Option{payvaulttest.WithBasePath(basePath), payvaulttest.WithRequestHistory(10), payvaulttest.WithLogger(logger)}
	if f.tls {
		srvOpts = append(srvOpts, payvaulttest.WithTLS())
	}
	c.server = payvaulttest.NewServer(srvOpts...)
	c.closes = append(c.closes, c.server.Close)
	var err error
	if c.call, err = op.prepare(ctx, c.server); err != nil {
		c.close()
		return nil, err
	}
	c.client = c.newClient()
	if f.warm {
		if _, err = c.client.Customers.List(ctx, nil); err != nil {
			c.close()
			return nil, err
		}
	}
	c.before = c.server.Commits(op.op)
	c.server.ResetRequests()
	if err := c.arm(stays); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// strikeCounter reads in the log of the emulator how often its fault has struck.
type strikeCounter struct{ cell *matrixCell }

func (strikeCounter) Enabled(context.Context, slog.Level) bool { return true }
func (s strikeCounter) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s strikeCounter) WithGroup(string) slog.Handler          { return s }

func (s strikeCounter) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "fault" {
			s.cell.struck.Add(1)
		}
		return true
	})
	return nil
}

// newClient returns a client whose network strikes as the fault says.
func (c *matrixCell) newClient(opts ...payvault.Option) *payvault.Client {
	opts = append([]payvault.Option{payvault.WithRetryPolicy(payvault.RetryPolicy{
		MaxAttempts: attemptsAtMost, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, MaxRetryAfter: 2 * time.Millisecond, IgnoreOverload: true,
	})}, append(opts, c.options...)...)
	if c.fault.network != nil {
		opts = append(opts, payvault.WithHTTPClient(&http.Client{Transport: c.fault.network(c)}))
	}
	client := c.connect(opts...)
	c.closes = append(c.closes, client.CloseIdleConnections)
	return client
}

func (c *matrixCell) connect(opts ...payvault.Option) *payvault.Client {
	if c.op.partner {
		return c.server.PartnerClient(opts...)
	}
	return c.server.Client(opts...)
}

// arm makes the fault strike from now on, once or until heal.
func (c *matrixCell) arm(stays bool) error {
	c.left.Store(1)
	if stays {
		c.left.Store(1 << 30)
	}
	if f := c.fault.inject; f.Kind != "" {
		f.Operation = c.op.op
		if !stays {
			f.Times = 1
		}
		_, err := c.server.Inject(f)
		return err
	}
	return nil
}

// strikes tells the network whether to strike now.
func (c *matrixCell) strikes() bool {
	if c.left.Add(-1) < 0 {
		return false
	}
	c.struck.Add(1)
	return true
}

// heal ends the fault.
func (c *matrixCell) heal() {
	c.left.Store(0)
	c.server.ClearFaults()
}

func (c *matrixCell) commits() int { return c.server.Commits(c.op.op) - c.before }

// perform performs the operation behind the back of the client under test, as a service does whose answer is lost.
func (c *matrixCell) perform(ctx context.Context) error {
	client := c.connect()
	defer client.CloseIdleConnections()
	_, err := c.call.do(ctx, client)
	if e, ok := errors.AsType[*payvault.Error](err); ok && e.StatusCode == c.op.again {
		return nil // it was performed before
	}
	return err
}

func (c *matrixCell) close() {
	for _, f := range c.closes {
		f()
	}
	c.closes = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// inject makes requests fail as the fault says and returns what ends that.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) func() {
	t.Helper()
	remove, err := srv.Inject(fault)
	require.NoError(t, err)
	return remove
}
