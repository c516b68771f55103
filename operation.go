package payvault

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"example.com/payvault/internal/formdata"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/urlpath"
)

// Operation names one operation of the service, as in [Error.Op] and in log records.
type Operation string

// The fourteen operations of interface §4, in its order, and the two names that errors of
// [Client.Call] and [NewClient] carry.
const (
	OpTokensTokenize            Operation = "tokens.tokenize"
	OpCustomersCreate           Operation = "customers.create"
	OpCustomersList             Operation = "customers.list"
	OpPayeesCreate              Operation = "payees.create"
	OpPayeesDelete              Operation = "payees.delete"
	OpApplicationsCreate        Operation = "applications.create"
	OpApplicationsSaveData      Operation = "applications.save_data"
	OpApplicationsValidate      Operation = "applications.validate"
	OpDisputesRespond           Operation = "disputes.respond"
	OpSubscriptionsTransactions Operation = "subscriptions.transactions"
	OpSubscriptionsCancel       Operation = "subscriptions.cancel"
	OpInvoicesSend              Operation = "invoices.send"
	OpAccountUpdaterSubmit      Operation = "account_updater.submit"
	OpWebhooksAddEvent          Operation = "webhooks.add_event"

	OpCall      Operation = "client.call"
	OpNewClient Operation = "client.new"
)

// operation is one call of the service.
type operation struct {
	name    Operation
	method  string
	path    []segment
	input   input
	upload  *formdata.Body
	replay  bool // repeating it is harmless
	actsFor bool // it takes a merchant_id
}

// input is what a request puts into the body or the query, and what is wrong with it.
type input struct {
	body     any // marshalled as JSON; nil for none
	query    url.Values
	problems problems
}

// request is a body that fills in what the client knows and checks itself.
type request[T any] interface {
	*T
	prepare(c *Client, p *problems)
}

// prepared returns a copy of req, filled in and checked; the caller's own stays as it is.
func prepared[T any, R request[T]](c *Client, req R) input {
	if req == nil {
		return input{problems: problems{"request": {"is nil"}}}
	}
	body := *req
	var p problems
	R(&body).prepare(c, &p)
	return input{body: &body, problems: p}
}

// segment is one part of a path. Those with a name come from the caller.
type segment struct{ name, text string }

// segments takes the literal parts of a path and the IDs in it.
func segments(parts ...any) []segment {
	path := make([]segment, len(parts))
	for i, part := range parts {
		switch part := part.(type) {
		case string:
			path[i] = segment{text: part}
		case PayeeID:
			path[i] = integerSegment("payee_id", int64(part))
		case ApplicationID:
			path[i] = integerSegment("app_id", int64(part))
		case SubscriptionID:
			path[i] = integerSegment("subscription_id", int64(part))
		case DisputeID:
			path[i] = integerSegment("rec_id", int64(part))
		case InvoiceID:
			path[i] = segment{"invoice_id", string(part)}
		case WebhookID:
			path[i] = segment{"webhook_id", string(part)}
		case Event:
			path[i] = segment{"event", string(part)}
		}
	}
	return path
}

// integerSegment leaves an ID without a value empty, which the path does not take.
func integerSegment(name string, id int64) segment {
	if id <= 0 {
		return segment{name: name}
	}
	return segment{name, strconv.FormatInt(id, 10)}
}

// do performs an operation whose result is data.
func do[T any](ctx context.Context, c *Client, op operation, opts []CallOption) (*T, error) {
	var r platformReply[T]
	if err := c.exchange(ctx, op, &r, opts); err != nil {
		return nil, err
	}
	if r.Data == nil {
		r.Data = new(T)
	}
	return r.Data, nil
}

// exchange sends an operation and decodes its success.
func (c *Client) exchange(ctx context.Context, op operation, into reply, opts []CallOption) error {
	start := time.Now()
	o := newCallOptions(opts)
	op.replay = op.replay || o.replay
	req, err := c.newRequest(ctx, &op, &o)
	var result transport.Result
	if err == nil {
		result, err = c.send(ctx, &op, req, into)
	}
	duration := time.Since(start)
	if o.response != nil {
		*o.response = Response{result.Status, result.Header, result.Body, result.Attempts, duration}
	}
	c.logCall(ctx, op.name, result, duration, err)
	return err
}

// newRequest checks all that can be checked before anything is sent.
func (c *Client) newRequest(ctx context.Context, op *operation, o *callOptions) (*transport.Request, error) {
	if c.merchant != nil && !op.actsFor {
		return nil, merchantError(op.name)
	}
	p := op.input.problems
	p.addAll(o.problems)
	if ctx == nil {
		p.add("context", "is nil")
	}
	if c.merchant != nil && *c.merchant <= 0 {
		p.add("merchant_id", "of ForMerchant is not positive")
	}
	texts := make([]string, len(op.path))
	for i, segment := range op.path {
		texts[i] = segment.text
		if err := urlpath.Check(segment.text); err != nil {
			p.add(segment.name, err.Error())
		}
	}
	body, err := marshal(op.input.body)
	if err != nil {
		p.add("body", err.Error())
	}
	if err := p.err(op.name); err != nil {
		return nil, err
	}
	u, err := urlpath.Join(c.core.base, texts...)
	if err != nil {
		return nil, err
	}
	u.RawQuery = op.input.query.Encode()
	req := &transport.Request{
		Method: op.method, URL: u, Header: c.header(op, o), Body: body, Replay: op.replay, MaxAttempts: o.attempts,
	}
	if op.upload != nil {
		req.Upload = op.upload
	}
	return req, nil
}

// marshal gives nil for no body. The errors of encoding/json repeat no values, but name Go types where the
// cause is enough.
func marshal(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	b, err := json.Marshal(body)
	if wrapped, ok := errors.AsType[*json.MarshalerError](err); ok {
		err = wrapped.Err
	}
	return b, err
}

func (c *Client) header(op *operation, o *callOptions) http.Header {
	header := make(http.Header, 4+len(o.header)) // with room for Authorization
	maps.Copy(header, o.header)
	header["Accept"] = c.core.acceptJSON
	header["User-Agent"] = c.core.userAgent
	switch {
	case op.upload != nil:
		header["Content-Type"] = []string{op.upload.ContentType()}
	case op.input.body != nil:
		header["Content-Type"] = c.core.acceptJSON
	}
	return header
}

// send makes one error of all that can go wrong from here on.
func (c *Client) send(ctx context.Context, op *operation, req *transport.Request, into reply) (transport.Result, error) {
	if c.core.logger.Enabled(ctx, slog.LevelDebug) {
		req.Observe = func(a transport.Attempt) { c.logAttempt(ctx, op.name, a) }
	}
	result, err := c.core.transport.Do(ctx, req)
	var failed *Error
	switch {
	case err != nil:
		failed = transportError(ctx, op, result, err)
	case result.Status < 200 || result.Status > 299:
		failed = answerError(op, result, nil)
	default:
		malformed := readReply(result.Body, into)
		if malformed == nil {
			return result, nil
		}
		failed = answerError(op, result, malformed)
	}
	if r, ok := into.(interface{ accept(e *Error) bool }); ok && r.accept(failed) {
		return result, nil
	}
	failed.clear(append(secretsOf(op.input.body), keyOf(result.Authorization), result.Authorization))
	return result, failed
}

func (c *Client) logAttempt(ctx context.Context, op Operation, a transport.Attempt) {
	c.core.logger.LogAttrs(ctx, slog.LevelDebug, "payvault attempt", slog.String("operation", string(op)),
		slog.Int("attempt", a.Number), slog.Int("status", a.Status), slog.String("delivery", delivery(a.Delivery).String()),
		slog.Duration("duration", a.Duration))
}

func (c *Client) logCall(ctx context.Context, op Operation, r transport.Result, duration time.Duration, err error) {
	level := slog.LevelDebug
	e, failed := errors.AsType[*Error](err)
	switch {
	case failed && e.Delivery == Unknown:
		level = slog.LevelError
	case failed:
		level = slog.LevelWarn
	}
	if ctx == nil || !c.core.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", string(op)), slog.Int("status", r.Status),
		slog.Int("attempts", r.Attempts), slog.Duration("duration", duration),
	}
	if failed {
		attrs = append(attrs, slog.String("code", e.Code), slog.String("delivery", e.Delivery.String()), slog.String("error", e.Error()))
	} else {
		attrs = append(attrs, slog.String("delivery", delivery(r.Delivery).String()))
	}
	c.core.logger.LogAttrs(ctx, level, "payvault call", attrs...)
}
