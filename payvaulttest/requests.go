package payvaulttest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
)

// Request is a request that arrived at the server.
//
// Its body and its key are there for the asking only: printing or logging a Request never shows them.
type Request struct {
	Operation     payvault.Operation // empty if no operation has the method and path of the request
	Method        string             // of HTTP
	Path          string             // as it was sent, escaped, with the base path
	RawQuery      string             // as it was sent, escaped
	Query         url.Values         // RawQuery, parsed
	Header        http.Header        // as it was sent, but for Authorization: see [Request.Authorization]
	Host          string             // that the request names
	Proto         string             // such as HTTP/1.1
	RemoteAddr    string             // of the client, with its port
	ContentLength int64              // as announced; -1 if it was not
	Size          int64              // of the body, as far as it arrived
	Complete      bool               // whether the body arrived to its end
	Time          time.Time          // of its arrival
	Parts         []Part             // of a multipart body, in their order

	authorization sealed
	body          sealed
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

// A requestLog remembers the last requests.
type requestLog struct {
	limit int
	mu    sync.Mutex
	list  []Request
}

func (l *requestLog) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list = append(l.list, r); len(l.list) > l.limit {
		l.list[0] = Request{}
		l.list = l.list[1:]
	}
}

// Requests returns everything that arrived, in the order in which it was read, refused requests included: the last
// ones, as many as [WithRequestHistory] says. A request is there before its answer is sent.
func (s *Server) Requests() []Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return slices.Clone(s.requests.list)
}
