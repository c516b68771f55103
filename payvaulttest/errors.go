package payvaulttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/faulty"
)

// ErrorKind is a kind of failure that [NewError] can make.
type ErrorKind string

// The kinds of errors. Delivery is the Delivery of the error.
const (
	ErrorInvalid     ErrorKind = "invalid"      // a local check failed; Fields says why
	ErrorNotSent     ErrorKind = "not sent"     // no connection to the service; DeliveryNotSent
	ErrorRefused     ErrorKind = "refused"      // status 400 with code 400; DeliveryAnswered
	ErrorRateLimited ErrorKind = "rate limited" // status 429; DeliveryAnswered
	ErrorUnknown     ErrorKind = "unknown"      // the answer is lost; DeliveryUnknown
	ErrorTimedOut    ErrorKind = "timed out"    // no answer in time; DeliveryUnknown
)

// NewError returns an error for a fake of the client: the error that the method of an operation returns after a failure
// of the given kind. A client makes the error: it calls the operation with made-up values, and its only attempt fails.
// So [payvault.SafeToRetry] and the sentinels are true of the error. Tokenize is called without a CardID.
//
// The service does not document the status and the code of a refusal. A test may change the exported fields of the
// error, for example to StatusCode 409 and Code "51". NewError panics if the operation has no method, or if the kind
// does not exist.
func NewError(op payvault.Operation, kind ErrorKind) *payvault.Error {
	client, err := payvault.NewClient("http://127.0.0.1", "made-up-key",
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}),
		payvault.WithHTTPClient(&http.Client{Transport: failing(op, kind)}))
	if err != nil {
		panic(fmt.Errorf("payvaulttest: make a client: %w", err))
	}
	text, number := "1230", int64(1)
	if kind == ErrorInvalid {
		text, number = "", 0
	}
	call := madeUpCalls(context.Background(), client, text, number)[op]
	if call == nil {
		panic("payvaulttest: NewError knows no operation " + string(op))
	}
	made, _ := errors.AsType[*payvault.Error](call()) // a client returns no other error
	return made
}

// failing returns a RoundTripper that makes each request of an operation fail.
func failing(op payvault.Operation, kind ErrorKind) http.RoundTripper {
	switch kind {
	case ErrorInvalid, ErrorNotSent: // nothing is sent after a failed check
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, refused }
		return &http.Transport{DialContext: dial}
	case ErrorRefused:
		return answering(op, refuse(http.StatusBadRequest, "Refused"))
	case ErrorRateLimited:
		return answering(op, refuse(http.StatusTooManyRequests, "Too many requests"))
	case ErrorUnknown:
		return losing(io.EOF)
	case ErrorTimedOut:
		return losing(context.DeadlineExceeded)
	}
	panic("payvaulttest: NewError knows no kind " + string(kind))
}

// answering returns a RoundTripper that answers each request of an operation with a refusal.
func answering(op payvault.Operation, with *refusal) roundTripper {
	answer := faulty.Send(with.status, jsonHeader(), with.body(op == payvault.OpTokensTokenize))
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		answer.ServeHTTP(w, r)
		return w.Result(), nil
	}
}

// losing returns a transport whose connections take each request, and fail with err in place of an answer.
func losing(err error) http.RoundTripper {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			conn, _ := net.Pipe()
			return &lostConn{Conn: conn, sent: make(chan struct{}), err: err}, nil
		},
	}
}

// lostConn is a connection that drops what is written. After the first write, each read fails with err.
type lostConn struct {
	net.Conn

	once sync.Once
	sent chan struct{} // closed after the first write, and when the connection is closed
	err  error
}

func (c *lostConn) Write(p []byte) (int, error) {
	c.once.Do(func() { close(c.sent) })
	return len(p), nil
}

func (c *lostConn) Read([]byte) (int, error) {
	<-c.sent
	return 0, c.err
}

func (c *lostConn) Close() error {
	c.once.Do(func() { close(c.sent) })
	return c.Conn.Close()
}

// roundTripper is an [http.RoundTripper] that calls no hooks of httptrace.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// madeUpCalls returns a call of each operation. The values of its arguments are text, which is also an expiration date,
// and number. If text is empty and number is 0, the client refuses to send each of these calls.
func madeUpCalls(
	ctx context.Context, c *payvault.Client, text string, number int64,
) map[payvault.Operation]func() error {
	return map[payvault.Operation]func() error{
		payvault.OpTokensTokenize: func() error {
			return errorOf(c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{MerchantID: payvault.MerchantID(number)}))
		},
		payvault.OpCustomersCreate: func() error {
			return errorOf(c.Customers.Create(ctx, &payvault.CustomerCreateRequest{ID: text, FirmName: "Firm"}))
		},
		payvault.OpCustomersList: func() error {
			return errorOf(c.Customers.List(ctx, &payvault.ListOptions{Page: int(number) - 1}))
		},
		payvault.OpPayeesCreate: func() error {
			return errorOf(c.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: text}))
		},
		payvault.OpPayeesDelete: func() error { return c.Payees.Delete(ctx, payvault.PayeeID(number)) },
		payvault.OpApplicationsCreate: func() error {
			return errorOf(c.Applications.Create(ctx, &payvault.ApplicationCreateRequest{ChannelID: number, SalesRep: number}))
		},
		payvault.OpApplicationsSaveData: func() error {
			data := payvault.ApplicationData{LegalName: "Firm"}
			return errorOf(c.Applications.SaveData(ctx, payvault.ApplicationID(number), &data))
		},
		payvault.OpApplicationsValidate: func() error {
			return errorOf(c.Applications.Validate(ctx, payvault.ApplicationID(number)))
		},
		payvault.OpDisputesRespond: func() error {
			evidence := payvault.FileFromBytes("evidence.pdf", []byte("%PDF-1.7"))
			request := payvault.DisputeRespondRequest{Message: "Answer", Evidence: evidence}
			return c.Disputes.Respond(ctx, payvault.DisputeID(number), &request)
		},
		payvault.OpSubscriptionsTransactions: func() error {
			return errorOf(c.Subscriptions.Transactions(ctx, payvault.SubscriptionID(number), nil))
		},
		payvault.OpSubscriptionsCancel: func() error {
			request := payvault.SubscriptionCancelRequest{CustomerID: text}
			return errorOf(c.Subscriptions.Cancel(ctx, payvault.SubscriptionID(number), &request))
		},
		payvault.OpInvoicesSend: func() error { return c.Invoices.Send(ctx, payvault.InvoiceID(text), nil) },
		payvault.OpAccountUpdaterSubmit: func() error {
			card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: text}
			return errorOf(c.AccountUpdater.Submit(ctx, []payvault.AccountUpdaterCard{card}))
		},
		payvault.OpWebhooksAddEvent: func() error {
			return errorOf(c.Webhooks.AddEvent(ctx, payvault.WebhookID(text), payvault.EventTransactionStatusUpdated))
		},
	}
}

func errorOf[T any](_ T, err error) error { return err }
