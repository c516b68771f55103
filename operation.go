package payvault

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
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
	path    path
	input   input
	upload  *formdata.Body
	turn    func() (done func()) // waits until a success may be decoded; nil for at once
	replay  bool                 // repeating it is harmless
	actsFor bool                 // it takes a merchant_id
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
	own := struct { // one piece of memory for both
		body     T
		problems problems
	}{body: *req}
	R(&own.body).prepare(c, &own.problems)
	return input{body: &own.body, problems: own.problems}
}

// path holds what segmentOf reads.
type path []any

// segment is one part of a path. Those with a name come from the caller.
type segment struct{ name, text, problem string }

// segmentOf reads one part of a path: a literal, an ID, or what Call has made a segment of.
func segmentOf(part any) segment {
	switch part := part.(type) {
	case string:
		return segment{text: part}
	case segment:
		return part
	case PayeeID:
		return integerSegment("payee_id", int64(part))
	case ApplicationID:
		return integerSegment("app_id", int64(part))
	case SubscriptionID:
		return integerSegment("subscription_id", int64(part))
	case DisputeID:
		return integerSegment("rec_id", int64(part))
	case InvoiceID:
		return segment{name: "invoice_id", text: string(part)}
	case WebhookID:
		return segment{name: "webhook_id", text: string(part)}
	case Event:
		return segment{name: "event", text: string(part)}
	}
	return segment{name: "path", problem: "holds an ID of an unknown type"}
}

func integerSegment(name string, id int64) segment {
	switch {
	case id == 0:
		return segment{name: name, problem: "is required"}
	case id < 0:
		return segment{name: name, problem: "is negative"}
	}
	return segment{name: name, text: strconv.FormatInt(id, 10)}
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
	o := newCallOptions(opts)
	if len(c.core.observers) == 0 || ctx == nil { // newRequest refuses a nil context
		_, err := c.perform(ctx, &op, into, &o, nil)
		return err
	}
	if c.core.onlyFailuresLogged(ctx) {
		return c.exchangeQuietly(ctx, &op, into, &o)
	}
	start := time.Now()
	call := c.info(&op)
	ctx = c.core.observers.start(ctx, call)
	var result transport.Result
	err := panicError(op.name) // for a panic of the caller's own code: a key source, a transport
	defer func() { c.core.observers.end(ctx, call, callResult(result, into, time.Since(start), err)) }()
	result, err = c.perform(ctx, &op, into, &o, c.core.observers.attempts(ctx, call))
	return err
}

// exchangeQuietly tells of failures only, and of a panic.
func (c *Client) exchangeQuietly(ctx context.Context, op *operation, into reply, o *callOptions) (err error) {
	start, returned := time.Now(), false
	var result transport.Result
	defer func() {
		if !returned {
			err = panicError(op.name)
		}
		if err != nil {
			c.core.observers.end(ctx, c.info(op), callResult(result, into, time.Since(start), err))
		}
	}()
	result, err = c.perform(ctx, op, into, o, nil)
	returned = true
	return err
}

// perform checks and sends an operation, and keeps the raw answer for the caller.
func (c *Client) perform(ctx context.Context, op *operation, into reply, o *callOptions, observe func(transport.Attempt)) (transport.Result, error) {
	var start time.Time
	if o.response != nil {
		start = time.Now()
	}
	req, err := c.newRequest(ctx, op, o)
	var result transport.Result
	if err == nil {
		req.Observe = observe
		result, err = c.send(ctx, op, &req, into)
	}
	if o.response != nil {
		*o.response = Response{result.Status, result.Header, result.Body, result.Attempts, time.Since(start)}
	} else {
		c.core.transport.Release(result)
	}
	return result, err
}

// newRequest checks all that can be checked before anything is sent.
func (c *Client) newRequest(ctx context.Context, op *operation, o *callOptions) (req transport.Request, err error) {
	if c.merchant != nil && !op.actsFor {
		return req, merchantError(op.name)
	}
	p := op.input.problems
	p.addAll(o.problems)
	if ctx == nil {
		p.add("context", "is nil")
	}
	if c.merchant != nil && *c.merchant <= 0 {
		p.add("merchant_id", "of ForMerchant is not positive")
	}
	texts := make([]string, 0, 8) // enough for all documented paths
	for _, part := range op.path {
		segment := segmentOf(part)
		texts = append(texts, segment.text)
		if segment.problem != "" {
			p.add(segment.name, segment.problem)
		} else if err := urlpath.Check(segment.text); err != nil {
			p.add(segment.name, err.Error())
		}
	}
	var body []byte
	if op.input.body != nil {
		body = marshal(op.input.body, &p)
	}
	if err := p.err(op.name); err != nil {
		return req, err
	}
	u, err := urlpath.Join(c.core.base, texts...)
	if err != nil {
		return req, err
	}
	u.RawQuery = op.input.query.Encode()
	req = transport.Request{
		Method: op.method, URL: u, Header: c.header(op, o), Body: body, Replay: op.replay || o.replay,
		MaxAttempts: o.attempts,
	}
	if op.upload != nil {
		req.Upload = op.upload
	}
	return req, nil
}

// private lists what of the caller's no error may repeat: secrets, IDs in the path, values of the query and own headers.
func (op *operation) private(header http.Header) []string {
	texts := secretsOf(op.input.body)
	for _, part := range op.path {
		if segment := segmentOf(part); segment.name != "" && segment.name != "event" {
			texts = append(texts, segment.text)
		}
	}
	for name, values := range op.input.query {
		switch name {
		case "order_on", "order_by", "count", "page", "merchant_id":
			continue
		}
		for _, value := range values {
			parts := strings.Split(value, ",")
			if name == "filter" { // the field and the conditional may be named
				parts = parts[min(2, len(parts)):]
			}
			for _, part := range parts {
				texts = append(texts, part, url.QueryEscape(part))
			}
		}
	}
	for key, values := range header {
		if !reservedHeader(key) {
			texts = append(texts, values...)
		}
	}
	return texts
}

func (c *Client) header(op *operation, o *callOptions) http.Header {
	header := maps.Clone(c.core.header)
	maps.Copy(header, o.header)
	switch {
	case op.upload != nil:
		header["Content-Type"] = []string{op.upload.ContentType()}
	case op.input.body != nil:
		header["Content-Type"] = header["Accept"]
	}
	return header
}

// send makes one error of all that can go wrong from here on.
func (c *Client) send(ctx context.Context, op *operation, req *transport.Request, into reply) (transport.Result, error) {
	result, err := c.core.transport.Do(ctx, req)
	var failed *Error
	switch {
	case err != nil:
		failed = transportError(ctx, op, result, err)
	case result.Status < 200 || result.Status > 299:
		failed = answerError(op, result, nil)
	default:
		if op.turn != nil {
			defer op.turn()()
		}
		malformed := readReply(result.Body, into)
		if malformed == nil {
			return result, nil
		}
		failed = answerError(op, result, malformed)
	}
	if ctx.Err() != nil && failed.cause == nil { // the body of a failure was not waited for
		failed.cause = safeCause(ctx, ctx.Err())
	}
	private := op.private(req.Header)
	for _, authorization := range append(result.Replaced, result.Authorization) {
		private = append(private, keyOf(authorization), strings.TrimPrefix(authorization, basic))
	}
	failed.clear(private)
	if r, ok := into.(interface{ accept(e *Error) bool }); ok && r.accept(failed) {
		return result, nil
	}
	return result, failed
}
