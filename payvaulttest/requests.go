package payvaulttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"example.com/payvault"
)

// DefaultHistory is the number of requests that a server remembers unless [WithRequestHistory] says
// otherwise.
const DefaultHistory = 10_000

// Request is a request that arrived at the server.
//
// Printing or logging it, with whatever verb or handler, shows no body, no query, no header and no
// key: those are there for the asking.
type Request struct {
	// Operation is empty if no operation has the method and path of the request.
	Operation payvault.Operation
	// Method is that of HTTP.
	Method string
	// Path is the path as it was sent, escaped, with the base path.
	Path string
	// RawQuery is the query as it was sent, escaped.
	RawQuery string
	// Query is the query, parsed.
	Query url.Values
	// Header holds what was sent, except that Authorization is redacted: see [Request.Authorization].
	Header        http.Header
	Host          string    // that the request names
	Proto         string    // such as HTTP/1.1
	RemoteAddr    string    // of the client, with its port
	ContentLength int64     // as announced; -1 if it was not
	Size          int64     // of the body, as far as it arrived
	Complete      bool      // whether the body arrived to its end
	Time          time.Time // of its arrival

	authorization sealed
	body          sealed
	parts         []Part
}

func newRequest(r *http.Request, op payvault.Operation, now time.Time) Request {
	request := Request{
		Operation: op, Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Query: r.URL.Query(),
		Header: r.Header.Clone(), Host: r.Host, Proto: r.Proto, RemoteAddr: r.RemoteAddr,
		ContentLength: r.ContentLength, Time: now,
		authorization: seal([]byte(r.Header.Get("Authorization"))),
	}
	if request.Header.Get("Authorization") != "" {
		request.Header.Set("Authorization", redacted)
	}
	return request
}

// Authorization returns the Authorization header, which holds the API key.
func (r Request) Authorization() string { return string(r.authorization.open()) }

// Body returns the body as it arrived, or its first megabyte. It may hold card data.
func (r Request) Body() []byte { return r.body.open() }

// Decode reads the JSON body into v, with numbers kept as [json.Number] where v leaves their type open.
func (r Request) Decode(v any) error {
	dec := json.NewDecoder(bytes.NewReader(r.Body()))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("payvaulttest: decode the body of %s: %w", r.Operation, err)
	}
	return nil
}

// JSON returns the parsed JSON body, its numbers as [json.Number]; nil if the body is not JSON.
func (r Request) JSON() any {
	var v any
	if r.Decode(&v) != nil {
		return nil
	}
	return v
}

// Parts returns the parts of a multipart body, in their order.
func (r Request) Parts() []Part { return slices.Clone(r.parts) }

// Part returns the first part with a name.
func (r Request) Part(name string) (Part, bool) {
	i := slices.IndexFunc(r.parts, func(part Part) bool { return part.Name == name })
	if i < 0 {
		return Part{}, false
	}
	return r.parts[i], true
}

// Format implements [fmt.Formatter]: operation, method, path and size.
func (r Request) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Request{%s %s %s, %d bytes}", r.Operation, r.Method, r.Path, r.Size)
}

// LogValue implements [slog.LogValuer]: operation, method, path and size.
func (r Request) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("operation", string(r.Operation)),
		slog.String("method", r.Method),
		slog.String("path", r.Path),
		slog.Int64("size", r.Size),
	)
}

// MarshalText implements [encoding.TextMarshaler], so that JSON handlers show no more than the others.
func (r Request) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// A requestLog remembers the last requests.
type requestLog struct {
	limit int

	mu   sync.Mutex
	list []Request
}

func (l *requestLog) add(r Request) {
	if l.limit == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) == l.limit {
		l.list[0] = Request{}
		l.list = l.list[1:]
	}
	l.list = append(l.list, r)
}

// Requests returns everything that arrived, in the order in which it was read, refused requests
// included; at most as many as [WithRequestHistory] says. A request is there before its answer is sent.
func (s *Server) Requests() []Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return slices.Clone(s.requests.list)
}

// RequestsOf returns the requests of one operation.
func (s *Server) RequestsOf(op payvault.Operation) []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool { return r.Operation != op })
}

// ResetRequests forgets the requests that arrived so far.
func (s *Server) ResetRequests() {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	s.requests.list = nil
}
