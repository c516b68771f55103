package payvault

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/trust"
)

// Observer is told about every call, for traces, metrics and the like; see [WithObserver]. A page of an iterator and a
// batch of [AccountUpdaterService.SubmitAll] are a call each. Functions that are nil are left out; the others are
// called concurrently if calls are, in the goroutine of the call, which waits for them.
type Observer struct {
	// Start is called before anything is checked or sent, and returns the context for the rest of the call: that of
	// its HTTP requests, and of Attempt and End. It has to be derived from ctx.
	Start func(ctx context.Context, call CallInfo) context.Context
	// Attempt is called after each attempt.
	Attempt func(ctx context.Context, call CallInfo, result CallResult)
	// End is called once, when the outcome is known, also when the call panics.
	End func(ctx context.Context, call CallInfo, result CallResult)
}

// CallInfo tells what a call does. Nothing in it identifies a record or a person, and its values are few.
type CallInfo struct {
	Op     Operation // such as "invoices.send"; of Client.Call the name of its Request, or OpCall
	Method string    // of HTTP
	Path   string    // template below the base URL, such as "/platform/invoice/{invoice_id}/send"; "" for Client.Call
	Server string    // host and port of the base URL
}

// CallResult tells what came of a call, or of one attempt.
type CallResult struct {
	StatusCode int // HTTP status; 0 if no response arrived
	// Platform code or tokenize rcode, text of the service on one line; "" for an attempt, whose body is not decoded.
	Code     string
	Attempts int           // how many there were; for an attempt its number, from 1
	Delivery Delivery      // whether the request reached the service
	Duration time.Duration // of a call all of it, waits included
	Unread   []string      // see [Response.Unread]
	Waited   time.Duration // of an attempt: how long it was held back before, after status 429 to others
	// BudgetSpent is set for an attempt that would be followed by another if the budget of retries were not spent.
	BudgetSpent bool
	Err         error // what the caller gets, with what the service says; for an attempt why no complete answer came
}

// ErrorClass returns the kind of Err in one word for logs and metrics, or "" without an error. Of several that apply it
// is the first of these:
//
//   - invalid_request, merchant_not_supported: a local check failed, and nothing was sent
//   - outcome_unknown: the operation may have been performed, whatever the reason; an attempt has the reason instead
//   - rate_limited: status 429, or not sent because of one that other calls got
//   - no_key, canceled, timeout
//   - rejected: the service gave a code, with a status below 500
//   - response_too_large, malformed_response
//   - status: HTTP status 400 or above, without a code or from 500 on
//   - stopped: not sent or not repeated, because the walk of SubmitAll was over
//   - panic: of a key source or a transport
//   - certificate, dns, connection
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
	case is[*transport.KeyError](err): // whatever the key source fails with
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

// connectionClass returns the class of an error that came without an answer, and is no end of the context.
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

// observers are told in their order.
type observers []Observer

// start returns the context for the rest of the call.
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

// attempts returns what the transport tells about each attempt; nil if nobody asks.
func (os observers) attempts(ctx context.Context, call CallInfo) func(transport.Attempt) {
	if len(os) == 0 {
		return nil
	}
	return func(a transport.Attempt) {
		result := CallResult{
			StatusCode: a.Status, Attempts: a.Number, Delivery: Delivery(a.Delivery), Duration: a.Duration,
			Waited: a.Waited, BudgetSpent: a.Spent,
		}
		// The body, which may tell more, is not read yet.
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

// callResult sums a call up.
func callResult(r transport.Result, into reply, duration time.Duration, unread []string, err error) CallResult {
	result := CallResult{
		StatusCode: r.Status, Attempts: r.Attempts, Delivery: Delivery(r.Delivery), Duration: duration, Unread: unread,
		Err: err,
	}
	if e, failed := errors.AsType[*Error](err); failed {
		result.Code, result.Delivery = oneLine(e.Code), e.Delivery
		return result
	}
	if codes := into.result(); err == nil && codes.RCode != "" && codes.Code == "" {
		result.Code = answer.RCodeSuccess
	} else if err == nil {
		result.Code = oneLine(string(codes.Code))
	}
	return result
}

// logTo is the observer behind [WithLogger].
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

func logResult(ctx context.Context, l *slog.Logger, level slog.Level, message string, call CallInfo, r CallResult) {
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 8),
		slog.String("operation", string(call.Op)), slog.Int("status", r.StatusCode), slog.String("code", r.Code),
		slog.Int("attempts", r.Attempts), slog.String("delivery", r.Delivery.String()), slog.Duration("duration", r.Duration))
	if r.Err != nil {
		text := r.Err.Error()
		if _, own := errors.AsType[*Error](r.Err); !own { // of an attempt: a key source's text, for one
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
