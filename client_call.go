package payvault

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"example.com/payvault/internal/answer"
)

// Request is an operation for [Client.Call] that this package has no types for. Its body is written as [MarshalWire]
// writes it: like encoding/json, but with the texts of secrets. If a MarshalJSON method of your own writes [REDACTED]
// for a Secret, the call fails before anything is sent. A type with such a method also needs the method MarshalJSONTo
// of JSON v2, which must never call [Secret.Reveal]; see [MarshalWire]. The logs, JSON, XML and YAML of a Request do
// not contain path, query and body.
type Request struct {
	// Name is the name of the operation in errors, logs, spans and metrics, such as "disputes.accept". If Name is empty,
	// the name is "client.call". Name may have at most 64 letters, digits, dots, hyphens and underscores, and must not be
	// the name of an operation of this package. Use a constant: metrics count each name separately, and a secret in a name
	// is not redacted.
	Name   string
	Method string // an HTTP method
	// Path has the segments after the base URL, not escaped and without "/". A segment may be an ID, so errors redact it
	// in the texts of the service. They do not redact words of documented paths, words of Name, or segments of one or two
	// bytes.
	Path  []string   `json:"-" xml:"-" yaml:"-"`
	Query url.Values `json:"-" xml:"-" yaml:"-"` // nil if there is none
	Body  any        `json:"-" xml:"-" yaml:"-"` // marshalled as JSON; nil if there is none
	// Replay states that repeating the request is harmless. Without Replay and without [WithReplay], the request is
	// repeated only after status 429, or if it cannot have been performed ([DeliveryNotSent]).
	Replay bool
}

// LogValue logs the operation, the method, the number of segments of the path, and whether there is a body.
func (r Request) LogValue() slog.Value {
	return slog.GroupValue(slog.String("operation", string(r.operation())), slog.String("method", r.Method),
		slog.Int("path_segments", len(r.Path)), slog.Bool("body", r.Body != nil))
}

// Format writes the text of LogValue under every verb, because path, query and body may hold secrets.
func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.LogValue().String()) }

// Call performs an operation that has no method of its own. The documentation of the service names some of these
// operations, but not their method, path and body: getting an application, uploading a document for an application,
// browsing sales representatives, creating an invoice, adding a subscription, adding a webhook, creating the data of a
// dispute, accepting a dispute, editing a customer, and getting the summary of an account updater request. Ask the
// operator for method, path and body.
//
// Authentication, retries, size limits and errors work as for operations that have a method. But Call learns no rate
// limit from status 429, and through [Client.ForMerchant] it fails with [ErrMerchantNotSupported]. If r.Replay is set,
// the request is repeated like a replayable operation, whatever its HTTP method is.
//
// An answer is a success if its status is 2xx and its code is 0. If the answer also has an rcode, this rcode must not
// mean failure. An answer without a code needs the rcode 000.
//
// The whole JSON body of a success is decoded into out, unless out is nil. Call decodes as encoding/json does, so
// values that out has before the call may stay. But a number in a variable of type any becomes a [json.Number], which
// keeps all digits of an ID. If the decoding fails, out may have a part of the answer, and the error has the path of
// the value if it is known. An answer with too many values is an error.
func (c *Client) Call(ctx context.Context, r Request, out any, opts ...CallOption) error {
	op := OperationInfo{Op: r.operation(), Method: r.Method, Replay: ReplayNever}
	if r.Replay {
		op.Replay = ReplaySame
	}
	for i := range r.Path {
		op.Path += "/{path[" + strconv.Itoa(i) + "]}"
	}
	options := newCallOptions(opts)
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		options.problems.add("out", "is not a pointer")
	}
	return c.caller.perform(ctx, call{
		op: op, path: inPath(r.Path...), content: r.content, reply: &callReply{out: out},
	}, options)
}

// operation returns the name of the request, or OpCall if the name is empty or invalid.
func (r Request) operation() Operation {
	if r.Name == "" || r.nameProblem() != "" {
		return OpCall
	}
	return Operation(r.Name)
}

// nameProblem returns the problem of the name, or "".
func (r Request) nameProblem() string {
	const longest, allowed = 64, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"
	op := Operation(r.Name)
	switch {
	case len(r.Name) > longest || strings.Trim(r.Name, allowed) != "":
		return "is not of at most 64 letters, digits, dots, hyphens and underscores"
	case op.isTyped() || op == opNewClient:
		return "is the name of an operation of this package"
	}
	return ""
}

// content checks a request, and returns its query and its body.
func (r Request) content(_ *caller, p *problems) content {
	if problem := r.nameProblem(); problem != "" {
		p.add("name", problem)
	}
	if !validHeaderName(r.Method) || r.Method == http.MethodConnect {
		p.add("method", "is not an HTTP method")
	}
	require(p, "path", len(r.Path))
	for i, segment := range r.Path {
		if strings.Contains(segment, "/") {
			p.add(fmt.Sprintf("path[%d]", i), `has a "/": give each segment as an element of its own`)
		}
	}
	return content{query: r.Query, body: r.Body}
}

// callReply is the answer of [Client.Call], with a code, an rcode or both.
type callReply struct {
	envelope

	out any
}

// afterRead decodes the body into the caller's variable if the codes mean success. The decoding follows the rules of
// encoding/json.
func (r *callReply) afterRead(body []byte, unread []string) ([]string, error) {
	if isSuccess := r.Check(answer.ByEither) == nil; !isSuccess || r.out == nil {
		return unread, nil
	}
	return unread, answer.ReadAsCaller(body, r.out)
}
