package payvault

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"example.com/payvault/internal/answer"
)

// Request is an operation for [Client.Call] that this package has no types for. Its body is written as encoding/json
// writes it, except that each [Secret] in it is written as its text. If a MarshalJSON method of your own has written a
// redacted Secret, the call fails before anything is sent. Such a type needs the method MarshalJSONTo of JSON v2. The
// logs, JSON, XML and YAML of a Request do not contain path, query and body.
type Request struct {
	// Name is the name of the operation in errors, logs, spans and metrics, such as "disputes.accept". Without it they
	// say "client.call". It has at most 64 letters, digits, dots, hyphens and underscores. Write it into the program:
	// metrics count each name apart, and nothing clears it of secrets.
	Name   string
	Method string // an HTTP method
	// Path has the segments after the base URL, not escaped and without "/". Errors are cleared of them, as of IDs, unless
	// they are words of documented paths or of Name.
	Path   []string   `json:"-" xml:"-" yaml:"-"`
	Query  url.Values `json:"-" xml:"-" yaml:"-"` // nil for none
	Body   any        `json:"-" xml:"-" yaml:"-"` // marshalled as JSON; nil for none
	Replay bool       // states that repeating is harmless; otherwise it is repeated only if not sent, or after status 429
}

// LogValue logs the operation, the method, the number of segments and whether there is a body.
func (r Request) LogValue() slog.Value {
	return slog.GroupValue(slog.String("operation", string(r.operation())), slog.String("method", r.Method),
		slog.Int("path_segments", len(r.Path)), slog.Bool("body", r.Body != nil))
}

// Format writes the text of LogValue under every verb, because path, query and body may hold secrets.
func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.LogValue().String()) }

// Call performs an operation that has no method here. The interface names these and does not document them: to get an
// application, upload a document for one and browse sales representatives; to create an invoice; to add a subscription
// or a webhook; to create the data of a dispute and to accept one; to edit a customer; and to get the summary of a
// request of the account updater. Ask the operator for method, path and body.
//
// Authentication, retries, size limits and errors work as for the typed operations. But Call has no rate limit after
// status 429. If r.Replay is set, the call is repeated like a replayable operation, whatever its method is.
//
// An answer is a success if its status is 2xx and its code is 0. Without a code, its rcode has to be 000. An rcode
// beside the code must not mean failure. The whole JSON body of a success is decoded into out, which may be nil. As
// with encoding/json, values that out has already may stay. The error of a failed decoding names the path of the value,
// unless the value is of a type that decodes itself. Then out may have a part of the answer. An answer with too many
// values is refused, as for the typed operations.
func (c *Client) Call(ctx context.Context, r Request, out any, opts ...CallOption) error {
	op := OperationInfo{Op: r.operation(), Method: r.Method, Replay: ReplayNever}
	if r.Replay {
		op.Replay = ReplaySame
	}
	for i := range r.Path {
		op.Path += "/{path[" + strconv.Itoa(i) + "]}"
	}
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		opts = append(slices.Clip(opts), func(o *callOptions) { o.problems.add("out", "is not a pointer") })
	}
	return c.caller.perform(ctx, call{
		op: op, path: inPath(r.Path...), content: r.content, reply: &callReply{out: out},
	}, opts)
}

// operation returns the name of the request, or OpCall if it has none or a wrong one.
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
	case op.isTyped() || op == OpNewClient:
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

// afterRead decodes the body once more if the codes mean success. It decodes the caller's type as encoding/json does.
func (r *callReply) afterRead(body []byte, unread []string) ([]string, error) {
	if isSuccess := r.Check(answer.ByEither) == nil; !isSuccess || r.out == nil {
		return unread, nil
	}
	return unread, answer.ReadAsCaller(body, r.out)
}
