package payvault

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/trust"
)

// Observer has functions that run for each call with a non-nil context, for traces and metrics; see [WithObserver]. An
// iterator makes a call for each page, and [AccountUpdaterService.SubmitAll] makes a call for each batch that it sends.
// If the wait for the rate limit before a page or batch fails, no call is made, and no function runs. Functions that
// are nil are not called. The functions run in the goroutine of the call, which waits for them. Concurrent calls run
// the functions concurrently.
type Observer struct {
	// Start is called before the request is checked and sent. It returns the context for the HTTP requests of the call,
	// and for Attempt and End. The context that it returns has to be derived from ctx.
	Start func(ctx context.Context, call CallInfo) context.Context
	// Attempt is called after each attempt.
	Attempt func(ctx context.Context, call CallInfo, result CallResult)
	// End is called once, when the outcome of the call is known. It is also called if the call panics.
	End func(ctx context.Context, call CallInfo, result CallResult)
}

// CallInfo describes a call. It identifies no record and no person. Each field has few different values, so metrics can
// use the fields as labels.
type CallInfo struct {
	Op     Operation // such as "invoices.send"; for Client.Call Request.Name, or OpCall if the name is empty or invalid
	Method string    // HTTP method
	Path   string    // template below the base URL, such as "/platform/invoice/{invoice_id}/send"; "" for Client.Call
	Server string    // host and port of the base URL
}

// CallResult is the result of a call or of one attempt.
type CallResult struct {
	StatusCode int // HTTP status; 0 if no response arrived
	// Code is the platform code, or the rcode of Tokenize, on one line. It is "" for an attempt, because the body of the
	// answer is decoded only after the last attempt.
	Code     string
	Attempts int           // number of attempts; for an attempt, the number of this attempt, from 1
	Delivery Delivery      // whether the request reached the service
	Duration time.Duration // time of the attempt, or of the whole call with its waits
	Unread   []string      // see [Response.Unread]
	Waited   time.Duration // how long the attempt waited for the rate limit of its operation; 0 for a whole call
	// BudgetSpent is set for an attempt if no further attempt was made because the budget of retries was spent.
	BudgetSpent bool
	Err         error // the error that the call returns; for an attempt the reason why no complete answer came
}

// ErrorClass returns the class of Err in one word for logs and metrics, or "" if Err is nil. If several classes apply,
// it returns the first of this list:
//
//   - invalid_request, merchant_not_supported: a local check failed, and nothing was sent
//   - outcome_unknown: the error of a call matches [ErrOutcomeUnknown], whatever the reason; an attempt has the class
//     of the reason instead
//   - rate_limited: status 429, or the request was not sent because of the rate limit
//   - no_key: the key source failed, or its key is invalid
//   - canceled: the context was canceled
//   - timeout: the deadline of the context passed, or an attempt took too long
//   - rejected: the service refused by a code, with a status below 500
//   - response_too_large, malformed_response: the answer has a status below 400 and cannot be used
//   - status: HTTP status 400 to 499 without a code that refuses, or from 500 on
//   - stopped: the request was not sent or not repeated, because SubmitAll had stopped
//   - panic: your code, such as a key source, panicked in a call that only reads; any other call has outcome_unknown
//   - certificate: the server's certificate is not trusted
//   - dns: the name of the host was not resolved
//   - connection: the attempt got no complete answer for another reason
func (r CallResult) ErrorClass() string {
	switch err := r.Err; {
	case err == nil:
		return ""
	case errors.Is(err, ErrInvalidRequest):
		return "invalid_request"
	case errors.Is(err, ErrMerchantNotSupported):
		return "merchant_not_supported"
	case errors.Is(err, ErrOutcomeUnknown):
		return "outcome_unknown"
	case errors.Is(err, ErrRateLimited):
		return "rate_limited"
	case is[*transport.KeyError](err): // before the cases below, because the key source may fail with any error
		return "no_key"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case isTimeout(err):
		return "timeout"
	case errors.Is(err, ErrRejected):
		return "rejected"
	case errors.Is(err, ErrResponseTooLarge):
		return "response_too_large"
	case errors.Is(err, ErrMalformedResponse):
		return "malformed_response"
	case r.StatusCode >= http.StatusBadRequest:
		return "status"
	}
	return connectionClass(r.Err)
}

// connectionClass returns the class of err for a call or attempt that got no complete answer. ErrorClass handles
// canceled contexts and timeouts before it calls connectionClass.
func connectionClass(err error) string {
	switch {
	case errors.Is(err, errStopped):
		return "stopped"
	case errors.Is(err, errPanic):
		return "panic"
	case trust.Failure(err) != nil:
		return "certificate"
	case is[*net.DNSError](err):
		return "dns"
	}
	return "connection"
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// observers are called in the order in which they were given.
type observers []Observer

// start calls all Start functions and returns the context for the rest of the call.
func (os observers) start(ctx context.Context, call CallInfo) context.Context {
	for _, o := range os {
		if o.Start != nil {
			if started := o.Start(ctx, call); started != nil {
				ctx = started
			}
		}
	}
	return ctx
}

// attempts returns the function that the transport calls after each attempt. It is nil if there are no observers.
func (os observers) attempts(ctx context.Context, call CallInfo) func(transport.Attempt) {
	if len(os) == 0 {
		return nil
	}
	return func(a transport.Attempt) {
		result := CallResult{
			StatusCode: a.Status, Attempts: a.Number, Delivery: Delivery(a.Delivery), Duration: a.Duration,
			Waited: a.Waited, BudgetSpent: a.Spent,
		}
		// A status outside of 2xx and 4xx does not decide the outcome. A code in the body may decide it, but the body is
		// not decoded here.
		if class := a.Status / 100; a.Status != 0 && class != 2 && class != 4 {
			result.Delivery = DeliveryUnknown
		}
		if a.Err != nil {
			result.Err = safeCause(ctx, a.Err)
		}
		for _, o := range os {
			if o.Attempt != nil {
				o.Attempt(ctx, call, result)
			}
		}
	}
}

func (os observers) end(ctx context.Context, call CallInfo, result CallResult) {
	for _, o := range os {
		if o.End != nil {
			o.End(ctx, call, result)
		}
	}
}

// callResult makes the result for End. It takes the values from the result of the transport, from the codes of the
// answer, and from the error that the call returns.
func callResult(
	op Operation, r transport.Result, into reply, duration time.Duration, unread []string, err error,
) CallResult {
	result := CallResult{
		StatusCode: r.Status, Attempts: r.Attempts, Delivery: Delivery(r.Delivery), Duration: duration, Unread: unread,
		Err: err,
	}
	if e, failed := errors.AsType[*Error](err); failed {
		result.Code, result.Delivery = oneLine(e.Code), e.Delivery
		return result
	}
	if err == nil {
		code, _, _ := into.result().Deciding(decider(op))
		result.Code = string(code)
	}
	return result
}

// logTo returns the observer that [WithLogger] adds.
func logTo(l *slog.Logger) Observer {
	return Observer{
		Attempt: func(ctx context.Context, call CallInfo, r CallResult) {
			logResult(ctx, l, slog.LevelDebug, "payvault attempt", call, r)
		},
		End: func(ctx context.Context, call CallInfo, r CallResult) {
			logResult(ctx, l, callLevel(r), "payvault call", call, r)
		},
	}
}

// callLevel returns the level at which a call is logged: Error if its outcome is unknown, Warn if it failed or its
// answer was not read as a whole, and Debug otherwise.
func callLevel(r CallResult) slog.Level {
	switch {
	case r.Err == nil && len(r.Unread) > 0:
		return slog.LevelWarn
	case r.Err == nil:
		return slog.LevelDebug
	case errors.Is(r.Err, ErrOutcomeUnknown):
		return slog.LevelError
	}
	return slog.LevelWarn
}

// logResult logs one record about a call or an attempt. WithLogger documents its attributes.
func logResult(ctx context.Context, l *slog.Logger, level slog.Level, message string, call CallInfo, r CallResult) {
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 8),
		slog.String("operation", string(call.Op)), slog.Int("status", r.StatusCode), slog.String("code", r.Code),
		slog.Int("attempts", r.Attempts), slog.String("delivery", r.Delivery.String()), slog.Duration("duration", r.Duration))
	if r.Err != nil {
		text := r.Err.Error()
		if _, isOwn := errors.AsType[*Error](r.Err); !isOwn { // r.Err is the error of an attempt
			text = oneLine(text)
		}
		attrs = append(attrs, slog.String("error_class", r.ErrorClass()), slog.String("error", text))
	}
	if r.Waited > 0 {
		attrs = append(attrs, slog.Duration("waited", r.Waited))
	}
	if r.BudgetSpent {
		attrs = append(attrs, slog.Bool("budget_spent", true))
	}
	if len(r.Unread) > 0 {
		attrs = append(attrs, slog.String("unread", strings.Join(r.Unread, " ")))
	}
	l.LogAttrs(ctx, level, message, attrs...)
}
