package payvault

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/payvault/internal/answer"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/urlpath"
)

// doRecord performs an operation whose result is the data of the answer.
func doRecord[T any, P record[T]](ctx context.Context, c *caller, call call, opts []CallOption) (*T, error) {
	var r platformReply[T, P]
	call.reply = &r
	if err := c.perform(ctx, call, newCallOptions(opts)); err != nil {
		return nil, err
	}
	return r.Data, nil
}

// doNoData performs an operation for which no result is documented.
func doNoData(ctx context.Context, c *caller, call call, opts []CallOption) error {
	call.reply = new(envelope)
	return c.perform(ctx, call, newCallOptions(opts))
}

// doConfirm performs an operation whose answer has only a message as data. An answer without data is a success too.
func doConfirm(ctx context.Context, c *caller, call call, opts []CallOption) (*Confirmation, error) {
	r := platformReply[Confirmation, *Confirmation]{isOptional: true}
	call.reply = &r
	if err := c.perform(ctx, call, newCallOptions(opts)); err != nil {
		return nil, err
	}
	return r.Data, nil
}

// perform checks a call, sends it, reads a successful answer into the reply, and calls the observers. Every operation
// goes through perform.
//
//nolint:contextcheck // newRequest refuses a call whose context is nil
func (c *caller) perform(ctx context.Context, call call, o callOptions) error {
	o.problems = o.problems.clone() // all calls of a walk have the same options
	info := CallInfo{Op: call.op.Op, Method: call.op.Method, Path: call.op.Path, Server: c.server}
	if !info.Op.isTyped() { // the path template of Client.Call has only parameters
		info.Path = ""
	}
	// errPanic remains the error if code of the caller panics, such as a key source or a RoundTripper. The panic is not
	// recovered.
	end := outcome{observers: c.observers, info: info, err: errPanic}
	if ctx == nil {
		o.problems.add("context", "is nil")
		// The observers are not called, because Start needs the context of the call.
		ctx, end.observers = context.Background(), nil
	}
	if o.gate == nil { // out.Start begins the call of a walk, when its first attempt is permitted
		ctx = end.begin(ctx)
	}
	defer func() { end.tell(call.reply, o.response) }()
	out, err := c.newRequest(call, o)
	if err != nil {
		end.err = err
		return err
	}
	if o.gate != nil {
		out.Start = end.begin
	}
	if len(end.observers) > 0 {
		out.Observe = end.attempt
	}
	result, err := c.transport.Do(ctx, &out.Request)
	end.result = result
	end.unread, end.err = out.finish(ctx, result, err)
	return end.err
}

// outcome is the result of a call, for the observers and WithResponse.
type outcome struct {
	observers observers
	info      CallInfo
	ctx       context.Context //nolint:containedctx // the context for the observers; nil before begin
	start     time.Time       // time of begin
	result    transport.Result
	unread    []string
	err       error
}

// begin starts to measure the duration of the call, and calls the function Start of the observers. It returns the
// context for the attempts.
func (e *outcome) begin(ctx context.Context) context.Context {
	e.start = time.Now()
	e.ctx = e.observers.start(ctx, e.info)
	return e.ctx
}

// attempt calls the function Attempt of the observers.
func (e *outcome) attempt(a transport.Attempt) { e.observers.attempt(e.ctx, e.info, a) }

// tell fills in the Response of WithResponse, if there is one, and calls the function End of the observers. It does not
// call End if the call of a walk has not begun.
func (e *outcome) tell(into reply, response *Response) {
	if e.err == errPanic { //nolint:errorlint // set by perform
		e.err = panicError(e.info.Op)
	}
	var took time.Duration // 0 if the call of a walk has not begun
	if e.ctx != nil {
		took = time.Since(e.start)
	}
	if response != nil {
		*response = Response{e.result.Status, e.result.Header, e.result.Body, e.result.Attempts, took, e.unread}
	}
	if e.ctx != nil {
		e.observers.end(e.ctx, e.info, callResult(e.info.Op, e.result, into, took, e.unread, e.err))
	}
}

// outgoing is a request that passed all checks.
type outgoing struct {
	transport.Request

	call    call
	content content
}

// newRequest makes the request of a call. It does all checks that are possible before anything is sent.
func (c *caller) newRequest(call call, o callOptions) (out outgoing, err error) {
	op := call.op
	if c.actsFor != nil && !op.Merchant {
		return out, merchantError(op.Op)
	}
	p := o.problems
	if c.actsFor != nil && *c.actsFor <= 0 {
		p.add("merchant_id", "of ForMerchant is not positive")
	}
	values := call.checkPath(&p)
	out.call = call
	if call.content != nil {
		out.content = call.content(c, &p)
	}
	var body []byte
	if out.content.body != nil {
		body = marshal(out.content.body, &p)
	}
	if err := p.err(op.Op); err != nil {
		return out, err
	}
	u, err := urlpath.Fill(c.base, op.Path, values...)
	if err != nil {
		return out, err
	}
	u.RawQuery = out.content.query.Encode()
	out.Request = transport.Request{
		Method: op.Method, URL: u, Header: c.header, MaxAttempts: o.attempts,
		Replay: o.replay || op.Replay == ReplaySame || op.Replay == ReplayRead,
		Pace:   c.paces[op.Op], Gate: o.gate,
	}
	switch {
	case body == nil:
	case out.content.form != nil:
		form := out.content.form(body)
		out.Open, out.Length = form.Open, form.Len()
		out.addHeader(http.Header{"Content-Type": {form.ContentType()}})
	default:
		out.Body, out.Length, out.Header = body, int64(len(body)), c.jsonHeader
	}
	if o.header != nil {
		out.addHeader(o.header)
	}
	return out, nil
}

// addHeader sets header fields of the request. It copies the header first, because all requests of a client share the
// header.
func (out *outgoing) addHeader(more http.Header) {
	out.Header = maps.Clone(out.Header)
	maps.Copy(out.Header, more)
}

// finish decodes a successful answer into the reply, or returns the error of the call. For a refusal that is a normal
// answer of Validate it returns no error. r and err are the result of the transport. unread has the JSON pointers for
// [Response.Unread], such as those of values that could not be read.
func (out *outgoing) finish(ctx context.Context, r transport.Result, err error) (unread []string, _ error) {
	r.Body = answer.UTF8(r.Body, r.Header.Get("Content-Type"))
	var failed *Error
	switch {
	case err != nil:
		failed = transportError(ctx, out.call.op, r, err)
	case r.Status < 200 || r.Status > 299:
		failed = answerError(out.call.op, r, nil)
	default:
		var malformed error
		if unread, malformed = readReply(out.call.op, r, out.call.reply); malformed == nil {
			return unread, nil
		}
		failed = answerError(out.call.op, r, malformed)
	}
	if r.BodyErr != nil && failed.cause == nil { // the missing part of the body may have had a message
		failed.cause = bodyCause(r.BodyErr)
		if end := ctx.Err(); end != nil {
			failed.cause = safeCause(ctx, end)
		}
	}
	private := out.privateTexts(r.Keys)
	if out.call.reply.accept(failed, private) { // this refusal is a normal answer of Validate
		return nil, nil
	}
	failed.clear(append(private, out.call.pathSecrets()...))
	return unread, failed
}

// privateTexts returns the texts of the request that no error may repeat: the secrets of the body, the API keys, the
// private parts of the query, and the values of all headers except the reserved ones. The texts of the path are not
// among them: pathSecrets returns these.
func (out *outgoing) privateTexts(keys []string) []string {
	texts := secretsOf(out.content.body)
	for _, key := range keys {
		texts = append(texts, keyOf(key), strings.TrimPrefix(key, basic))
	}
	for name, values := range out.content.query {
		for _, value := range values {
			for _, part := range privateParts(name, value) {
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
