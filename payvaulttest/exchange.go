package payvaulttest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/faulty"
	"example.com/payvault/internal/openapi"
)

const (
	maxJSONBytes = 1 << 20
	headBytes    = 32 // of an answer, enough for its code
	// DefaultMaxUpload is the size of a dispute response's form unless [WithMaxUpload] says otherwise.
	DefaultMaxUpload = 64 << 20
)

// An exchange is one request on its way through the server: it arrives, is read and recorded,
// performed and answered. A fault may stand around its performance.
type exchange struct {
	http.ResponseWriter
	server  *Server
	r       *http.Request
	op      *openapi.Operation // nil if there is none
	action  action
	began   time.Time
	fault   *Fault
	request Request
	body    []byte
	parts   []Part
	refused error // what was found wrong while reading
	account Account
	denied  error  // why there is no account
	status  int    // as it was sent; 0 if nothing was
	head    []byte // the beginning of what was sent
	done    bool   // the operation was performed
}

// exchange answers a request of an operation, or of none.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, o *openapi.Operation, perform action) {
	x := &exchange{ResponseWriter: w, server: s, r: r, op: o, action: perform, began: time.Now()}
	defer x.log(r.Context())
	x.request = newRequest(r, x.name(), s.service.clock())
	x.account, x.denied = s.service.accounts.authenticate(r)
	x.fault = s.faults.take(x.name())
	var handler http.Handler = http.HandlerFunc(x.perform)
	if x.fault != nil {
		handler = x.fault.around(handler, x.isTokenize())
	}
	if x.fault == nil || x.fault.reads() {
		x.read()
	} else {
		if x.fault.Kind == DropDuringRead {
			some, _ := io.ReadAll(io.LimitReader(r.Body, 512))
			x.request.Size, x.request.body = int64(len(some)), seal(some)
		}
		s.requests.add(x.request)
	}
	handler.ServeHTTP(x, r)
}

// name is the operation of the request, or nothing if there is none.
func (x *exchange) name() payvault.Operation {
	if x.op == nil {
		return ""
	}
	return payvault.Operation(x.op.ID)
}

func (x *exchange) isTokenize() bool { return x.r.URL.Path == x.server.cfg.basePath+"/pg/tokenize" }

// WriteHeader implements [http.ResponseWriter].
func (x *exchange) WriteHeader(status int) {
	x.status = status
	x.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (x *exchange) Write(p []byte) (int, error) {
	x.head = append(x.head, p[:min(len(p), headBytes-len(x.head))]...)
	return x.ResponseWriter.Write(p) //nolint:wrapcheck // as it is
}

// Unwrap is for [http.ResponseController].
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// read takes the body in and records the request, complete or not.
func (x *exchange) read() {
	form := x.op != nil && x.op.Media == openapi.Form
	limit := int64(maxJSONBytes)
	if form {
		limit = x.server.cfg.maxUpload
	}
	body := &bodyReader{in: x.r.Body, left: limit}
	if form && x.denied == nil { // a form of no one is read to its end, but not parsed
		x.parts, x.refused = readForm(x.r.Header.Get("Content-Type"), body)
	} else {
		_, x.refused = io.Copy(io.Discard, body)
	}
	x.body = body.kept.Bytes()
	x.request.Size, x.request.Complete = body.size, body.end
	x.request.body, x.request.parts = seal(x.body), x.parts
	x.server.requests.add(x.request)
	if body.lost {
		faulty.Abort()
	}
}

// perform carries the operation out and counts it, or refuses it.
func (x *exchange) perform(w http.ResponseWriter, _ *http.Request) {
	result, err := x.dispatch()
	answer, failed := encode(result)
	status := http.StatusOK
	if err = cmp.Or(err, failed); err != nil {
		status, answer = x.refuse(w, err)
	}
	faulty.Respond(w, status, jsonHeader(), answer)
}

// refuse is the status and the body of a refusal.
func (x *exchange) refuse(w http.ResponseWriter, err error) (int, []byte) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		r = refuse(http.StatusInternalServerError, "the emulator failed")
	}
	message := r.message
	if x.isTokenize() {
		message = r.Error()
	}
	if r.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="payvault"`)
	}
	return r.status, failureBody(x.isTokenize(), r.status, message, r.fields)
}

func (x *exchange) dispatch() (any, error) {
	if x.op == nil {
		return nil, x.unknown()
	}
	if x.denied != nil {
		return nil, x.denied
	}
	query, err := x.check()
	if err != nil {
		return nil, err
	}
	v := x.server.service
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &call{account: x.account, path: x.r.PathValue, query: query, body: x.body, parts: x.parts}
	result, err := x.action(c)
	if x.done = err == nil; x.done {
		v.commits[payvault.Operation(x.op.ID)]++
	}
	return result, err
}

// unknown is the refusal of a request that no operation takes.
func (x *exchange) unknown() error {
	if methods := x.server.allowed(x.r); methods != "" {
		x.Header().Set("Allow", methods)
		return refuse(http.StatusMethodNotAllowed, "the path takes %s only", methods)
	}
	return refuse(http.StatusNotFound, "there is no such operation")
}

// check compares the request with the document and returns its query.
func (x *exchange) check() (map[string][]string, error) {
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil || strings.Contains(x.r.URL.RawQuery, ",") {
		return nil, refuse(http.StatusBadRequest, "the query is malformed; commas in a URL must be encoded as %%2C")
	}
	p := problems{}
	p.addAll(x.op.CheckPath(x.r.PathValue))
	p.addAll(x.op.CheckQuery(query))
	if err := p.err(); err != nil {
		return nil, err
	}
	if x.refused != nil {
		return nil, x.refused
	}
	switch {
	case x.op.Media == "" && len(x.body) > 0:
		return nil, refuse(http.StatusBadRequest, "the operation takes no body")
	case x.op.Media == "" || len(x.body) == 0 && !x.op.Needed:
		return query, nil
	case x.op.Media == openapi.Form:
		return query, x.checkForm()
	}
	if media, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err != nil || media != openapi.JSON {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must be application/json")
	}
	value, wrong := openapi.Parse("", x.body)
	if p.addAll(wrong); wrong == nil {
		p.addAll(x.op.Body.Check("", value))
	}
	return query, p.err()
}

// checkForm compares the parts of a form with the document, each given at most once.
func (x *exchange) checkForm() error {
	p := problems{}
	form := map[string]any{}
	for _, part := range x.parts {
		_, twice := form[part.Name]
		p.check(!twice, part.Name, "is given twice")
		form[part.Name] = ""
	}
	p.addAll(x.op.Body.Check("", form))
	return p.err()
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {openapi.JSON}} }

// theCode finds the code with which an answer begins.
var theCode = regexp.MustCompile(`^{"r?code":"?(\d{1,4})\b`)

// log writes the one record of a request: no path, no query, no header, no body. The page gets the shape, too.
func (x *exchange) log(ctx context.Context) {
	method, route := "other", "none"
	if x.op != nil {
		method, route = x.op.Method, x.op.Path
	}
	attrs := []slog.Attr{
		slog.String("operation", string(x.name())),
		slog.String("method", method),
		slog.String("route", route),
		slog.Int("status", x.status),
		slog.Int64("merchant_id", int64(x.account.MerchantID)),
		slog.Int64("request_bytes", x.request.Size),
		slog.Duration("duration", time.Since(x.began)),
		slog.Bool("performed", x.done),
	}
	if code := theCode.FindSubmatch(x.head); code != nil {
		number, _ := strconv.Atoi(string(code[1]))
		attrs = append(attrs, slog.Int("code", number))
	}
	if x.fault != nil {
		attrs = append(attrs, slog.String("fault", string(x.fault.Kind)))
	}
	x.server.cfg.logger.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
	if feed := x.server.feed; feed.Enabled(ctx, slog.LevelInfo) {
		attrs = append(attrs, slog.Any("shape", x.shape()))
		slog.New(feed).LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
	}
}
