package payvault

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/payvault/internal/formdata"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/urlpath"
)

// do performs an operation whose result is the data of the answer.
func do[T any, P record[T]](
	ctx context.Context, c *caller, op Operation, in input, opts []CallOption,
) (*T, error) {
	var r platformReply[T, P]
	if err := c.perform(ctx, op.info(), in, &r, opts); err != nil {
		return nil, err
	}
	return r.Data, nil
}

// tell performs an operation for which no result is documented.
func tell(ctx context.Context, c *caller, op Operation, in input, opts []CallOption) error {
	return c.perform(ctx, op.info(), in, new(envelope), opts)
}

// confirm performs an operation whose code decides: what the service says besides may be missing.
func confirm(
	ctx context.Context, c *caller, op Operation, in input, opts []CallOption,
) (*Confirmation, error) {
	r := platformReply[Confirmation, *Confirmation]{informs: true}
	if err := c.perform(ctx, op.info(), in, &r, opts); err != nil {
		return nil, err
	}
	return r.Data, nil
}

// perform checks and sends an operation, and decodes its success into a reply. Every operation comes through here.
func (c *caller) perform(ctx context.Context, op OperationInfo, in input, into reply, opts []CallOption) (err error) {
	o, observers := newCallOptions(opts), c.observers
	if ctx == nil {
		o.problems.add("context", "is nil")
		ctx, observers = context.Background(), nil //nolint:contextcheck // observers have nothing to start from
	}
	start, call := time.Now(), CallInfo{Op: op.Op, Method: op.Method, Path: op.Path, Server: c.server}
	if op.Op == OpCall {
		call.Path = ""
	}
	ctx = observers.start(ctx, call)
	var (
		result transport.Result
		unread []string
	)
	returned := false
	defer func() {
		if !returned { // a panic of the caller's own code: a key source, a transport
			err = panicError(op.Op)
		}
		took := time.Since(start)
		if o.response != nil {
			*o.response = Response{result.Status, result.Header, result.Body, result.Attempts, took, unread}
		}
		observers.end(ctx, call, callResult(result, into, took, unread, err))
	}()
	out, refused := c.newRequest(op, in, &o)
	if refused == nil {
		out.Observe = observers.attempts(ctx, call)
		result, err = c.transport.Do(ctx, &out.Request)
		unread, err = out.finish(ctx, result, err, into)
	}
	returned = true
	return cmp.Or(refused, err)
}

// outgoing is a request that passed all checks.
type outgoing struct {
	transport.Request

	op    OperationInfo
	in    input
	body  any
	query url.Values
}

// newRequest checks all that can be checked before anything is sent.
func (c *caller) newRequest(op OperationInfo, in input, o *callOptions) (out outgoing, err error) {
	if c.actsFor != nil && !op.Merchant {
		return out, merchantError(op.Op)
	}
	p := o.problems
	if c.actsFor != nil && *c.actsFor <= 0 {
		p.add("merchant_id", "of ForMerchant is not positive")
	}
	values := in.check(op.Path, &p)
	out.op, out.in = op, in
	out.body, out.query = c.prepare(in.req, &p)
	var wire []byte
	if out.body != nil {
		wire = marshal(out.body, &p)
	}
	if err := p.err(op.Op); err != nil {
		return out, err
	}
	u, err := urlpath.Fill(c.base, op.Path, values...)
	if err != nil {
		return out, err
	}
	u.RawQuery = out.query.Encode()
	out.Request = transport.Request{
		Method: op.Method, URL: u, Header: maps.Clone(c.header), MaxAttempts: o.attempts,
		Replay: o.replay || op.Replay == ReplaySame || op.Replay == ReplayRead,
		Pace:   c.paces[op.Op], Place: o.place, Sending: o.sending, MaxRetryAfter: o.maxRetryAfter,
	}
	maps.Copy(out.Header, o.header)
	if form, ok := out.body.(interface {
		form(text []byte) *formdata.Body
	}); ok {
		upload := form.form(wire)
		out.Open, out.Length, out.Header["Content-Type"] = upload.Open, upload.Len(), []string{upload.ContentType()}
	} else if wire != nil {
		out.Body, out.Length = wire, int64(len(wire))
		out.Header["Content-Type"] = out.Header["Accept"]
	}
	return out, nil
}

// prepare gives the body or the query of a request.
func (c *caller) prepare(req request, p *problems) (body any, query url.Values) {
	if req == nil {
		return nil, nil
	}
	if isNil(req) {
		p.add("request", "is nil")
		return nil, nil
	}
	switch prepared := req.prepare(c, p).(type) {
	case url.Values:
		return nil, prepared
	case *Request:
		return prepared.Body, prepared.Query
	default:
		return prepared, nil
	}
}

// finish decodes a success, and makes one error of all that can go wrong from here on.
func (out *outgoing) finish(ctx context.Context, r transport.Result, err error, into reply) (unread []string, _ error) {
	var failed *Error
	switch {
	case err != nil:
		failed = transportError(ctx, out.op, r, err)
	case r.Status < 200 || r.Status > 299:
		failed = answerError(out.op, r, nil)
	default:
		var malformed error
		if unread, malformed = readReply(out.op, r.Body, into); malformed == nil {
			return unread, nil
		}
		failed = answerError(out.op, r, malformed)
	}
	if r.Cut && ctx.Err() != nil && failed.cause == nil { // the context has cut off the body of a failure
		failed.cause = safeCause(ctx, ctx.Err())
	}
	private := out.private(r.Keys)
	if into.accept(failed, private) {
		return nil, nil
	}
	failed.clear(append(private, out.ids()...))
	return unread, failed
}

// ids lists what of the path no error may repeat.
func (out *outgoing) ids() (ids []string) {
	for i, name := range urlpath.Params(out.op.Path) {
		if value := out.in.values[i].text; name != "event" && !isDocumented(value) {
			ids = append(ids, value)
		}
	}
	return ids
}

// private lists what else of the caller's no error may repeat: secrets, keys, values of the query and own headers.
func (out *outgoing) private(keys []string) []string {
	texts := secretsOf(out.body)
	for _, key := range keys {
		texts = append(texts, keyOf(key), strings.TrimPrefix(key, basic))
	}
	for name, values := range out.query {
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
	for key, values := range out.Header {
		if !reservedHeader(http.CanonicalHeaderKey(key)) {
			texts = append(texts, values...)
		}
	}
	return texts
}
