package payvaulttest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// Request is a request that the server has received.
//
// Printing or logging a Request never shows its body or its API key. The methods [Request.Body] and
// [Request.Authorization] return them.
type Request struct {
	Operation     payvault.Operation // empty if no operation has the method and path of the request
	Method        string             // HTTP method
	Path          string             // escaped path, unchanged, with the base path
	Query         url.Values         // parsed query
	Header        http.Header        // unchanged, but Authorization is redacted
	Host          string             // host to which the request was sent
	Proto         string             // such as HTTP/1.1
	RemoteAddr    string             // address of the client, with its port
	ContentLength int64              // value of the Content-Length header; 0 without a body, -1 if unknown
	Size          int64              // number of bytes of the body that arrived
	Complete      bool               // the whole body arrived
	Time          time.Time          // time when the request arrived
	Parts         []Part             // parts of a multipart body, in the order in which they were sent

	authorization sealed
	body          sealed
}

func newRequest(r *http.Request, op payvault.Operation, now time.Time) Request {
	request := Request{
		Operation: op, Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(),
		Header: r.Header.Clone(), Host: r.Host, Proto: r.Proto, RemoteAddr: r.RemoteAddr,
		ContentLength: r.ContentLength, Time: now,
		authorization: seal([]byte(strings.Join(r.Header["Authorization"], ", "))),
	}
	if len(r.Header["Authorization"]) > 0 {
		request.Header.Set("Authorization", redacted)
	}
	return request
}

// Authorization returns the Authorization header, which holds the API key. If a request has several Authorization
// headers, they are joined with commas.
func (r Request) Authorization() string { return string(r.authorization.open()) }

// Body returns the part of the body that the server read, at most the first 1 MiB. The body may contain card data.
func (r Request) Body() []byte { return r.body.open() }

// A requestLog keeps the newest requests, at most limit.
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

func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = nil
}

const keptBytes = 1 << 20 // number of bytes that are kept of each body and of each part

// Part is one part of a multipart form. Only [Part.Content] returns its content.
type Part struct {
	Name        string            // name of the form field
	FileName    string            // empty if the part is not a file
	ContentType string            // unchanged from the form
	Size        int64             // bytes of the whole content
	SHA256      [sha256.Size]byte // checksum of the whole content

	content sealed
}

// Content returns the content of the part, at most the first 1 MiB.
func (p Part) Content() []byte { return p.content.open() }

// sealed returns bytes that must not be printed by accident. It is a func, because printing a func shows only its
// address.
type sealed func() []byte

func seal(content []byte) sealed { return func() []byte { return content } }

func (s sealed) open() []byte {
	if s == nil {
		return nil
	}
	return slices.Clone(s())
}

// readForm reads a multipart form. It keeps at most the first keptBytes bytes of each part in memory.
func readForm(contentType string, body io.Reader) ([]Part, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != openapi.Form || params["boundary"] == "" {
		return nil, refuse(http.StatusUnsupportedMediaType, "the body must be multipart/form-data")
	}
	reader := multipart.NewReader(body, params["boundary"])
	var parts []Part
	for {
		part, err := reader.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF means that the form ends too early
			return parts, nil
		}
		var head limitedBuffer
		sum := sha256.New()
		if err == nil {
			_, err = io.Copy(io.MultiWriter(sum, &head), part)
		}
		if err != nil {
			return parts, refuse(http.StatusBadRequest, "the form is malformed")
		}
		parts = append(parts, Part{
			Name: part.FormName(), FileName: part.FileName(), ContentType: part.Header.Get("Content-Type"),
			Size: head.size, SHA256: [sha256.Size]byte(sum.Sum(nil)), content: seal(head.Bytes()),
		})
	}
}

// A limitedBuffer keeps the first keptBytes bytes that are written to it, and counts all bytes.
type limitedBuffer struct {
	bytes.Buffer
	size int64
}

// Write implements [io.Writer].
func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.size += int64(len(p))
	_, _ = l.Buffer.Write(p[:min(len(p), max(0, keptBytes-l.Len()))])
	return len(p), nil
}
