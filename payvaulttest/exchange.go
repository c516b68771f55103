package payvaulttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
)

var errFailed = errors.New("the emulator failed")

// An exchange is one request on its way through the server: it arrives, is read and recorded,
// performed and answered. A fault may strike between any two of these steps.
type exchange struct {
	server  *Server
	w       http.ResponseWriter
	r       *http.Request
	began   time.Time
	match   match
	fault   *Fault
	request Request
	parts   []Part
	refused error // what was found wrong while reading
	account Account
	denied  error // why there is no account
	answer  answer
	status  int // as it was sent; 0 if nothing was
}

// An answer is what goes back to the client.
type answer struct {
	status int
	body   []byte
}

// serve answers one request. Its deferred log record is written for dropped requests, too.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.running.enter() {
		abort()
	}
	defer s.running.leave()
	x := &exchange{server: s, w: w, r: r, began: time.Now(), match: find(s.routes, s.basePath, r)}
	defer x.log(r.Context())
	defer x.rescue(r.Context())
	x.request = newRequest(r, x.operation(), s.service.clock())
	x.account, x.denied = s.service.accounts.authenticate(r)
	x.fault = s.faults.takeRequest(x.operation())
	x.read()
	if x.strike(beforeCommit) {
		return
	}
	x.answer = x.perform()
	if x.strike(afterCommit) {
		return
	}
	x.respond(x.answer.status, x.header(), x.answer.body)
}

// operation is the operation of the request, or nothing if there is none.
func (x *exchange) operation() payvault.Operation {
	if x.match.route == nil {
		return ""
	}
	return x.match.route.op
}

// read takes the body in and records the request, complete or not.
func (x *exchange) read() {
	if x.at(onArrival) {
		x.server.requests.add(x.request)
		x.strike(onArrival)
	}
	body := newBodyReader(x.r.Body, x.limit())
	switch {
	case x.at(duringRead):
		_, _ = body.Read(make([]byte, 512))
	case x.takesForm() && x.denied != nil:
		body.keep.left = 0 // a form of no one is read to its end, but neither parsed nor kept
		_, x.refused = io.Copy(io.Discard, body)
	case x.takesForm():
		x.parts, x.refused = readForm(x.r.Header.Get("Content-Type"), body)
	default:
		_, x.refused = io.Copy(io.Discard, body)
	}
	x.record(body)
	x.strike(duringRead)
	if errors.Is(x.refused, errBodyLost) {
		abort()
	}
}

func (x *exchange) record(body *bodyReader) {
	x.request.Size, x.request.Complete = body.size, body.end
	x.request.body, x.request.parts = seal(body.kept.Bytes()), x.parts
	x.server.requests.add(x.request)
}

func (x *exchange) at(s stage) bool { return x.fault != nil && x.fault.stage() == s }

func (x *exchange) takesForm() bool {
	return x.match.route != nil && x.match.route.body == formBody
}

func (x *exchange) limit() int64 {
	if x.takesForm() {
		return x.server.maxUpload
	}
	return maxJSONBytes
}

// perform carries the operation out and counts it, or refuses it.
func (x *exchange) perform() answer {
	result, err := x.dispatch()
	if err != nil {
		return x.refuse(err)
	}
	body, err := json.Marshal(result)
	if err != nil {
		return x.refuse(err)
	}
	x.server.service.committed(x.operation())
	return answer{http.StatusOK, body}
}

func (x *exchange) dispatch() (any, error) {
	if err := x.match.err(); err != nil {
		return nil, err
	}
	if x.denied != nil {
		return nil, x.denied
	}
	route := x.match.route
	if route.partner && !x.account.Partner {
		return nil, refuse(http.StatusForbidden, "only partner accounts may board merchants")
	}
	query, err := x.check(route)
	if err != nil {
		return nil, err
	}
	return route.perform(&call{
		account: x.account, params: x.match.params, query: query, body: x.request.body(), parts: x.parts,
	})
}

// check looks at everything about the request that is the same for all operations.
func (x *exchange) check(route *route) (map[string][]string, error) {
	if err := checkHeaders(x.r.Header); err != nil {
		return nil, err
	}
	query, err := parseQuery(x.r.URL.RawQuery, route.query)
	if err != nil {
		return nil, err
	}
	if x.refused != nil {
		return nil, x.refused
	}
	return query, checkBody(route.body, x.r, x.request.body())
}

func (x *exchange) refuse(err error) answer {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		r = refuse(http.StatusInternalServerError, "%v", errFailed)
	}
	status, body := r.toWire(x.match.tokenize)
	return answer{status, encode(body)}
}

// header is that of the emulator's own answers.
func (x *exchange) header() http.Header {
	header := jsonHeader()
	if x.answer.status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Basic realm="payvault"`)
	}
	if len(x.match.allow) > 0 {
		header.Set("Allow", strings.Join(x.match.allow, ", "))
	}
	return header
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// respond sends a whole answer. A client that is gone does not matter.
func (x *exchange) respond(status int, header http.Header, body []byte) {
	x.start(status, header, len(body))
	_, _ = x.w.Write(body)
}

// start sends the status and the header, with a length unless it is below zero.
func (x *exchange) start(status int, header http.Header, length int) {
	if status == 0 {
		status = http.StatusOK
	}
	for name, values := range header {
		x.w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if _, given := x.w.Header()["Content-Type"]; !given {
		x.w.Header()["Content-Type"] = nil // none, rather than one that net/http guesses
	}
	if length >= 0 && status != http.StatusNoContent && status != http.StatusNotModified {
		x.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	x.w.WriteHeader(status)
	x.status = status
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"code":500,"message":"the emulator cannot encode its answer"}`)
	}
	return body
}

// log writes the one record of a request: no path, no query, no header, no body.
func (x *exchange) log(ctx context.Context) {
	route := "none"
	if x.match.route != nil {
		route = x.match.route.path
	}
	attrs := []slog.Attr{
		slog.String("operation", string(x.operation())),
		slog.String("method", knownMethod(x.r.Method)),
		slog.String("route", route),
		slog.Int("status", x.status),
		slog.Int64("merchant_id", int64(x.account.MerchantID)),
		slog.Int64("request_bytes", x.request.Size),
		slog.Duration("duration", time.Since(x.began)),
	}
	if x.fault != nil {
		attrs = append(attrs, slog.String("fault", string(x.fault.Kind)))
	}
	x.server.logger.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
}

// knownMethod keeps what a client makes up out of the log.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	default:
		return "other"
	}
}

// rescue turns a panic, of the emulator or of the user's clock, into a log record and a 500. The record
// says where it was, not with what: the value may hold anything.
func (x *exchange) rescue(ctx context.Context) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares like this
		panic(cause)
	}
	x.server.logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("operation", string(x.operation())),
		slog.String("type", fmt.Sprintf("%T", cause)), slog.Any("stack", frames()))
	if x.status != 0 {
		abort()
	}
	x.answer = x.refuse(errFailed)
	x.respond(x.answer.status, x.header(), x.answer.body)
}

// frames lists the functions and lines that a panic went through, without their arguments.
func frames() []string {
	callers := make([]uintptr, 32)
	walk := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	var list []string
	for {
		frame, more := walk.Next()
		list = append(list, fmt.Sprintf("%s:%d", frame.Function, frame.Line))
		if !more {
			return list
		}
	}
}
