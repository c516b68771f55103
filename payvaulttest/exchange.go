package payvaulttest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/faulty"
	"example.com/payvault/payvaulttest/internal/inspect"
	"example.com/payvault/payvaulttest/internal/openapi"
)

const (
	maxFormBytes = 64 << 20 // largest form in bytes; a JSON body may have keptBytes
	headBytes    = 32       // number of bytes of an answer that are kept to find its code
)

// A route decides how the requests of one operation are answered: by an action, or by a handler of [Server.Handle]. A
// request that matches no operation gets a route without action and handler.
type route struct {
	op     *openapi.Operation
	action action
	taught http.HandlerFunc
}

// shared has the data that all exchanges of a server use.
type shared struct {
	state    *state
	server   string // scheme, host and port of the server
	basePath string
	logger   *slog.Logger
	feed     *inspect.Feed
	faults   faults
	requests requestLog
}

// An exchange reads, records, performs and answers one request.
type exchange struct {
	http.ResponseWriter
	call
	route
	h       *shared
	r       *http.Request
	began   time.Time
	fault   Fault // the fault that applies to the request; its Kind is empty if there is none
	request Request
	refused error    // reason to refuse the request, found before the operation is performed; nil if there is none
	why     *refusal // the refusal that was sent; nil if none was sent
	status  int      // status that was sent; 0 if nothing was sent
	head    []byte   // the beginning of the answer that was sent
	bodies  bool     // the page of Inspect showed bodies when the request arrived
	done    bool     // the operation was performed
}

// exchange answers a request.
func (h *shared) exchange(w http.ResponseWriter, r *http.Request, to route) {
	x := &exchange{ResponseWriter: w, route: to, h: h, r: r, began: time.Now(), bodies: h.feed.Bodies()}
	x.request = newRequest(r, x.name(), h.state.clock())
	x.account, x.refused = h.state.authenticate(r)
	if to.action == nil && to.taught == nil {
		x.refused = refuse(http.StatusNotFound, "no operation has this method and path")
	}
	x.fault = h.faults.take(x.name())
	defer h.feed.Begin(to.op.ID, string(x.fault.Kind))()
	defer x.record(r.Context()) // runs while the page still shows the request as pending
	if x.fault.Kind == ResetConnection {
		h.requests.add(x.request)
	} else {
		x.read()
	}
	x.fault.around(http.HandlerFunc(x.perform), x.isTokenize()).ServeHTTP(x, r)
}

// name returns the name of the operation, or "" if the request matches no operation.
func (x *exchange) name() payvault.Operation { return payvault.Operation(x.op.ID) }

func (x *exchange) isTokenize() bool { return x.r.URL.Path == x.h.basePath+"/pg/tokenize" }

// WriteHeader implements [http.ResponseWriter].
func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (x *exchange) Write(p []byte) (int, error) {
	limit := headBytes
	if x.bodies {
		limit = shownBytes
	}
	x.head = append(x.head, p[:min(len(p), limit-len(x.head))]...)
	return x.ResponseWriter.Write(p) //nolint:wrapcheck // unchanged
}

// Unwrap lets [http.ResponseController] find the wrapped writer.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// read reads the body and records the request, even if the body is incomplete.
func (x *exchange) read() {
	form := x.op.Media == openapi.Form
	limit := int64(keptBytes)
	if form {
		limit = maxFormBytes
	}
	var kept limitedBuffer
	body := io.TeeReader(http.MaxBytesReader(x.ResponseWriter, x.r.Body, limit), &kept)
	if form && x.refused == nil { // a form that is already refused is read to its end, but not parsed
		x.parts, x.refused = readForm(x.r.Header.Get("Content-Type"), body)
	}
	_, err := io.Copy(io.Discard, body)
	_, large := errors.AsType[*http.MaxBytesError](err)
	if large {
		x.refused = refuse(http.StatusRequestEntityTooLarge, "the body is too large")
	}
	x.body = kept.Bytes()
	x.request.Size, x.request.Complete = kept.size, err == nil
	x.request.body, x.request.Parts = seal(x.body), x.parts
	x.h.requests.add(x.request)
	if err != nil && !large { // the client disconnected before it had sent the whole body
		faulty.Abort()
	}
}

// perform performs the operation or refuses it, and sends the answer.
func (x *exchange) perform(w http.ResponseWriter, req *http.Request) {
	if x.refused == nil && x.taught != nil {
		x.ask(w, req)
		return
	}
	result, err := x.dispatch()
	if err == nil {
		faulty.Send(http.StatusOK, jsonHeader(), encode(result)).ServeHTTP(w, req)
		return
	}
	x.why, _ = errors.AsType[*refusal](err) // every error of an operation is a refusal
	faulty.Send(x.why.status, jsonHeader(), x.why.body(x.isTokenize())).ServeHTTP(w, req)
}

// ask lets the handler of [Server.Handle] answer. The operation counts as performed if the status is 2xx.
func (x *exchange) ask(w http.ResponseWriter, req *http.Request) {
	answer := httptest.NewRecorder()
	req.Body = io.NopCloser(bytes.NewReader(x.body))
	x.taught(answer, req)
	if x.done = answer.Code/100 == 2; x.done {
		x.h.state.commit(x.name())
	}
	faulty.Send(answer.Code, answer.Header(), answer.Body.Bytes()).ServeHTTP(w, req)
}

func (x *exchange) dispatch() (any, error) {
	if x.refused != nil {
		return nil, x.refused
	}
	if err := x.check(); err != nil {
		return nil, err
	}
	v := x.h.state
	v.mu.Lock()
	defer v.mu.Unlock()
	result, err := x.action(&x.call)
	if x.done = err == nil; x.done {
		v.commits[x.name()]++
	}
	return result, err
}

// check checks the request against api/openapi.yaml, and sets the merchant for which the request acts.
func (x *exchange) check() (err error) {
	x.path = x.r.PathValue
	x.query, err = url.ParseQuery(x.r.URL.RawQuery)
	if err != nil || strings.Contains(x.r.URL.RawQuery, ",") {
		return refuse(http.StatusBadRequest, "the query is malformed; commas in a URL must be encoded as %%2C")
	}
	var body any
	p := problems(x.op.CheckParameters(x.path, x.query))
	p.checkFilterNames(x.query)
	switch {
	case x.op.Media == "":
		p.check(len(x.body) == 0, "body", "is not taken by the operation")
	case x.op.Media == openapi.Form:
		form := map[string]any{}
		for _, part := range x.parts {
			p.check(form[part.Name] == nil, part.Name, "is given twice")
			form[part.Name] = ""
		}
		maps.Copy(p, x.op.Body.Check("", form))
	case len(x.body) > 0 || x.op.Needed:
		if media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || media != openapi.JSON {
			return refuse(http.StatusUnsupportedMediaType, "the body must be application/json")
		}
		var wrong openapi.Problems
		if body, wrong = openapi.Parse("", x.body); wrong == nil {
			wrong = x.op.Body.Check("", body)
		}
		maps.Copy(p, wrong)
	}
	return cmp.Or(p.err(), x.actFor(body))
}

// theCode matches the code at the beginning of an answer.
var theCode = regexp.MustCompile(`^{"r?code":"?(-?\d{1,4})\b`)

// code returns the code at the beginning of the answer that was sent, or nil if there is none.
func (x *exchange) code() *int {
	found := theCode.FindSubmatch(x.head)
	if found == nil {
		return nil
	}
	number, _ := strconv.Atoi(string(found[1])) // cannot fail: the number has at most four digits
	return &number
}

// record logs a request. If [Inspect] was called for the server, record also adds the request to the page.
func (x *exchange) record(ctx context.Context) {
	x.log(ctx)
	if x.h.feed.Watched() {
		x.show()
	}
}

// log logs a request without path, query, header and body.
func (x *exchange) log(ctx context.Context) {
	attrs := []slog.Attr{
		slog.String("operation", x.op.ID),
		slog.String("method", x.op.Method),
		slog.String("route", x.op.Path),
		slog.Int("status", x.status),
		slog.Int64("merchant_id", int64(x.account.MerchantID)),
		slog.Int64("request_bytes", x.request.Size),
		slog.Duration("duration", time.Since(x.began)),
		slog.Bool("performed", x.done),
	}
	if code := x.code(); code != nil {
		attrs = append(attrs, slog.Int("code", *code))
	}
	if x.fault.Kind != "" {
		attrs = append(attrs, slog.String("fault", string(x.fault.Kind)))
	}
	x.h.logger.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
}

// show adds the request to the page of [Inspect]. It adds the path, the body and the answer only if the page showed
// bodies when the request arrived.
func (x *exchange) show() {
	names := x.h.state.document.names
	shown := inspect.Request{
		Time: time.Now(), Operation: x.op.ID, Method: x.op.Method, Route: x.op.Path, Status: x.status, Code: x.code(),
		MerchantID: int64(x.account.MerchantID), Bytes: x.request.Size,
		Millis: float64(time.Since(x.began).Microseconds()) / 1000,
		Fault:  string(x.fault.Kind), Performed: x.done, Why: reasonOf(x.why, names), Shape: shapeOf(x.request, names),
	}
	if x.bodies {
		shown.Path, shown.Body, shown.Answer = x.r.URL.RequestURI(), bodyOf(x.request), textOf(x.head)
	}
	shown.Curl = curlOf(shown, x.request, x.h.server, x.h.basePath, x.account.APIKey)
	x.h.feed.Add(shown)
}
