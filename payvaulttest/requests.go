package payvaulttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
)

const (
	// DefaultHistory is the number of requests that a server remembers unless [WithRequestHistory] says
	// otherwise.
	DefaultHistory = 10_000
	// MaxHistoryBytes is about what the remembered requests may hold in memory, whatever their number.
	MaxHistoryBytes = 64 << 20
)

// Request is a request that arrived at the server.
//
// Printing or logging it, with whatever verb or handler, shows no body, no query, no header and no
// key: those are there for the asking. That holds for a Request on its own, in a slice or map, and in an
// exported field. In an unexported field of a struct of yours fmt does not call its methods: it then
// prints RawQuery, Query and the other headers, but never the body or the key.
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
	// Header holds what was sent, except that every Authorization is redacted: see [Request.Authorization].
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
		authorization: seal([]byte(strings.Join(r.Header["Authorization"], ", "))),
	}
	if len(r.Header["Authorization"]) > 0 {
		request.Header.Set("Authorization", redacted)
	}
	return request
}

// Authorization returns the Authorization header, which holds the API key. Several are joined with commas.
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
	_, _ = fmt.Fprintf(f, "Request{%s %s %s, %d bytes}", r.Operation, brief(r.Method), brief(r.Path), r.Size)
}

// LogValue implements [slog.LogValuer]: operation, method, path and size.
func (r Request) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("operation", string(r.Operation)),
		slog.String("method", brief(r.Method)),
		slog.String("path", brief(r.Path)),
		slog.Int64("size", r.Size),
	)
}

// brief cuts what a client can make as long as it likes.
func brief(s string) string {
	const enough = 200
	if len(s) <= enough {
		return s
	}
	return s[:enough] + "..."
}

// MarshalText implements [encoding.TextMarshaler], so that JSON handlers show no more than the others.
func (r Request) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// What a request, and what an entry of one of its maps, takes besides its texts: rather more than less.
const (
	requestBytes = 1 << 10
	entryBytes   = 64
)

// bytes is about what the request holds in memory, and not much less.
func (r Request) bytes() int64 {
	texts := len(r.Method) + len(r.Path) + len(r.RawQuery) + len(r.Host) + len(r.Proto) + len(r.RemoteAddr)
	sum := requestBytes + int64(texts) + r.body.size() + r.authorization.size() + mapBytes(r.Query) + mapBytes(r.Header)
	for _, part := range r.parts {
		sum += part.bytes()
	}
	return sum
}

func mapBytes(values map[string][]string) int64 {
	var sum int64
	for name, list := range values {
		sum += int64(entryBytes + len(name))
		for _, value := range list {
			sum += int64(entryBytes + len(value))
		}
	}
	return sum
}

// A requestLog remembers the last requests.
type requestLog struct {
	limit int

	mu    sync.Mutex
	list  []Request
	bytes int64
}

func (l *requestLog) add(r Request) {
	if l.limit == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r)
	l.bytes += r.bytes()
	for len(l.list) > l.limit || l.bytes > MaxHistoryBytes {
		l.bytes -= l.list[0].bytes()
		l.list[0] = Request{}
		l.list = l.list[1:]
	}
}

// Requests returns everything that arrived, in the order in which it was read, refused requests
// included: the last ones, as many as [WithRequestHistory] says and as [MaxHistoryBytes] holds. A
// request is there before its answer is sent.
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
	s.requests.list, s.requests.bytes = nil, 0
}
