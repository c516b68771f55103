// Package transport sends one operation: attempts, retry and replay, delivery tracking, deadlines and response
// caps. It knows HTTP and nothing of the service's bodies.
package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// ErrTooLarge is returned for a response body that exceeds the cap, counted after decompression.
var ErrTooLarge = errors.New("response body exceeds the size limit")

var (
	errNoResponse  = errors.New("the RoundTripper returned neither a response nor an error")
	errStreamReset = errors.New("the server reset the stream")
)

// KeyError is returned when no credentials could be had; that attempt sent nothing.
type KeyError struct{ Err error }

func (e *KeyError) Error() string { return "no API key: " + e.Err.Error() }

// Unwrap gives the error of the key source.
func (e *KeyError) Unwrap() error { return e.Err }

// Delivery tells how far a request came.
type Delivery uint8

// Unknown is the zero value, so that a request about which nothing is known is not taken for unsent.
const (
	Unknown  Delivery = iota // bytes of it may have been written, and no response came
	NotSent                  // not a byte was written, or all that was written was turned away unprocessed
	Answered                 // a response came
)

// Policy sets how often and how fast an operation is repeated.
type Policy struct {
	MaxAttempts   int
	MinBackoff    time.Duration
	MaxBackoff    time.Duration
	MaxRetryAfter time.Duration
}

// Config holds what all requests of a client share.
type Config struct {
	HTTP             *http.Client                                                  // its Transport and Timeout are used; nil for the defaults
	Authorization    func(ctx context.Context, deadline time.Time) (string, error) // asked on each attempt
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	Policy           Policy
}

// Request is one operation.
type Request struct {
	Method      string
	URL         *url.URL
	Header      http.Header // the transport's own from here on
	Body        []byte
	Upload      Upload // instead of Body
	Replay      bool   // repeating it is harmless
	MaxAttempts int    // 0 for the policy's
	Observe     func(Attempt)
}

// Upload is a body that is streamed from its source on each attempt.
type Upload interface {
	Open() io.Reader
	Len() int64
}

// Attempt is what Observe is told about one attempt.
type Attempt struct {
	Number   int
	Status   int // 0 if no response came
	Delivery Delivery
	Duration time.Duration
	Err      error
}

// Result is what came of a request. Status, Header, Body and Delivery are those of the last attempt, also when the
// body is incomplete or the context ended while the next attempt was waiting.
type Result struct {
	Status   int
	Header   http.Header
	Body     []byte
	Attempts int
	Delivery Delivery
	Unsure   bool // an attempt before that may have performed the operation

	Authorization string   // of the last attempt
	Replaced      []string // those of earlier attempts that differ from the one after them

	buffer *buffer // holds Body
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	engine retryablehttp.Client
	base   http.RoundTripper
	config Config
	http1  atomic.Bool // the last response came over HTTP/1
	opaque bool        // what HTTP version its connections speak has to be watched

	buffers sync.Pool // of *buffer
}

// New returns a client. It does no I/O.
func New(config Config) *Client {
	c := &Client{config: config}
	if own := config.HTTP; own != nil {
		c.base = own.Transport
		if own.Timeout > 0 {
			c.config.AttemptTimeout = min(own.Timeout, config.AttemptTimeout)
		}
	}
	if c.base == nil {
		c.base = newPool()
	}
	c.opaque = opaque(c.base)
	c.engine = retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: shield{c}},
		RetryMax:     1 << 30, // checkRetry counts
		CheckRetry:   checkRetry,
		Backoff:      c.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	return c
}

// CloseIdleConnections closes the connections of the pool that are not in use.
func (c *Client) CloseIdleConnections() {
	(&http.Client{Transport: c.base}).CloseIdleConnections()
}

// Do sends the request until it is answered for good. The result is set with an error too.
func (c *Client) Do(ctx context.Context, r *Request) (Result, error) {
	s := &sending{request: *r}
	if r.MaxAttempts == 0 {
		s.request.MaxAttempts = c.config.Policy.MaxAttempts
	}
	err := c.attempt(ctx, s)
	if s.again(ctx, err) {
		err = c.resume(ctx, s)
	}
	return s.result(), err
}

// resume leaves the attempts after the first to the engine, whose own request stands for them and is never sent.
func (c *Client) resume(ctx context.Context, s *sending) error {
	req := http.Request{URL: new(url.URL), Header: http.Header{}}
	resp, err := c.engine.Do(&retryablehttp.Request{Request: req.WithContext(context.WithValue(ctx, sendingKey{}, s))})
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // the attempt has read it
	return s.last.err
}

// newRequest builds the request without parsing its URL once more, as http.NewRequest would. It reads its body through body.
func newRequest(ctx context.Context, r *Request, body *bytes.Reader) *http.Request {
	req := http.Request{
		Method: r.Method, URL: r.URL, Host: r.URL.Host, Header: r.Header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	switch {
	case r.Upload != nil:
		req.ContentLength = r.Upload.Len()
		req.Body = io.NopCloser(r.Upload.Open())
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(r.Upload.Open()), nil }
	case r.Body != nil:
		req.ContentLength = int64(len(r.Body))
		body.Reset(r.Body)
		req.Body = io.NopCloser(body)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	case !r.Replay && safe(r.Method):
		req.Body = io.NopCloser(strings.NewReader("")) // one that is empty is not sent
	}
	if !r.Replay && safe(r.Method) {
		req.GetBody = nil
	}
	return req.WithContext(ctx)
}

// safe tells whether net/http itself sends a request of this method again when its connection was lost. It does not
// if there is a body that cannot be rewound.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
