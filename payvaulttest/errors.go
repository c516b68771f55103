package payvaulttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/faulty"
)

// ErrorKind is a kind of error that [NewError] makes.
type ErrorKind string

// The kinds of errors, each with the Delivery of its error.
const (
	ErrorInvalid     ErrorKind = "invalid"      // a local check failed; DeliveryNotSent; the Fields are made up
	ErrorNotSent     ErrorKind = "not sent"     // no connection to the service; DeliveryNotSent
	ErrorRefused     ErrorKind = "refused"      // status 400 with code 400; DeliveryAnswered
	ErrorRateLimited ErrorKind = "rate limited" // status 429; DeliveryAnswered
	ErrorUnknown     ErrorKind = "unknown"      // the answer is lost; DeliveryUnknown
	ErrorTimedOut    ErrorKind = "timed out"    // no answer in time; DeliveryUnknown
)

// NewError returns an error for a fake of the client: the error that the method of an operation returns after a failure
// of the given kind. A client makes the error: it calls an operation of the same class of replay, without retries. So
// [payvault.SafeToRetry] and the sentinels work as for any error of the client. An error of Tokenize is that of a
// request without a CardID.
//
// The service does not document the status and the code of a refusal. A test may change the exported fields of the
// error, for example to StatusCode 409 and Code "51". NewError panics if [payvault.Operations] does not have the
// operation, or if the kind does not exist.
func NewError(op payvault.Operation, kind ErrorKind) *payvault.Error {
	operations := payvault.Operations()
	at := slices.IndexFunc(operations, func(o payvault.OperationInfo) bool { return o.Op == op })
	if at < 0 {
		panic("payvaulttest: NewError knows no operation " + string(op))
	}
	client, err := payvault.NewClient("http://127.0.0.1", "made-up-key",
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}),
		payvault.WithHTTPClient(&http.Client{Transport: failing(op, kind)}))
	if err != nil {
		panic(fmt.Errorf("payvaulttest: make a client: %w", err))
	}
	number := int64(1)
	if kind == ErrorInvalid {
		number = 0
	}
	err = madeUpCall(client, operations[at].Replay, number)
	made, _ := errors.AsType[*payvault.Error](err) // a client returns no other error
	made.Op = op
	if kind == ErrorInvalid {
		made.Fields = map[string][]string{"made_up": {"is not valid"}}
	}
	return made
}

// madeUpCall calls an operation of the given class of replay. If number is 0, the client refuses to send the request.
func madeUpCall(c *payvault.Client, class payvault.Replay, number int64) (err error) {
	ctx := context.Background()
	switch class {
	case payvault.ReplayRead:
		_, err = c.Applications.Validate(ctx, payvault.ApplicationID(number))
	case payvault.ReplaySame:
		data := payvault.ApplicationData{LegalName: "Firm"}
		_, err = c.Applications.SaveData(ctx, payvault.ApplicationID(number), &data)
	case payvault.ReplayWithCardID:
		_, err = c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{MerchantID: payvault.MerchantID(number)})
	case payvault.ReplayNever:
		err = c.Payees.Delete(ctx, payvault.PayeeID(number))
	}
	return err
}

// failing returns a RoundTripper that makes each request fail as the kind says. A refusal has the form of an answer of
// the operation. failing panics if the kind does not exist.
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

// answering returns a RoundTripper that answers each request with a refusal, in the form of an answer of the operation.
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

// roundTripper is an [http.RoundTripper] made from a function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
