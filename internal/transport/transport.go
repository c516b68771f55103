// Package transport sends one operation: attempts, retries, delivery, deadlines and size limits. It does not look into
// the bodies of the service. go-retryablehttp drives the attempts of a call; each is one round trip of its http.Client.
package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/pool"
)

var (
	// ErrStopped is returned for a request that was not sent, or not sent again, because Sending has ended.
	ErrStopped = errors.New("stopped")
	// ErrTooLarge is returned for a response body over the size limit, counted after decompression.
	ErrTooLarge = errors.New("response body exceeds the size limit")
)

// KeyError is returned when the key source failed. That attempt sent nothing.
type KeyError struct{ Err error }

func (e *KeyError) Error() string { return "no API key: " + e.Err.Error() }

// Unwrap returns the error of the key source.
func (e *KeyError) Unwrap() error { return e.Err }

// Policy sets how often and how fast an operation is repeated.
type Policy struct {
	MaxAttempts   int
	MinBackoff    time.Duration
	MaxBackoff    time.Duration
	MaxRetryAfter time.Duration
}

// Config holds what all requests of a client share.
type Config struct {
	HTTP             *http.Client                          // its Transport and Timeout are used; nil for the defaults
	Authorization    func(context.Context) (string, error) // asked on each attempt
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	Policy           Policy
	Budget           *overload.Budget // nil for none
	// Disown returns an error of the RoundTripper or of Authorization without what it says about other calls. Nil leaves
	// errors as they are.
	Disown func(error) error
}

// Request is one operation.
type Request struct {
	Method        string
	URL           *url.URL
	Header        http.Header
	Body          []byte           // nil for none, or for one that Open gives
	Open          func() io.Reader // returns an upload from its start, more than once
	Length        int64            // of Body, or of the upload
	Replay        bool             // repeating it is harmless
	MaxAttempts   int              // 0 for that of the policy
	MaxRetryAfter time.Duration    // 0 for that of the policy
	Pace          *overload.Pace   // of the operation; nil for none
	// Place is that of the first attempt, if the caller has waited for it. Such a caller also waits out a refusal with
	// status 429 by itself.
	Place *overload.Place
	// Sending ends no later than the context of the call. From then on nothing is waited for or sent again, but a request
	// in flight goes on. Nil if it does not end before.
	Sending context.Context //nolint:containedctx // as its comment says
	Observe func(Attempt)
}

// Attempt is what Observe is told about one attempt.
type Attempt struct {
	Number   int
	Status   int // 0 if no response came
	Delivery Delivery
	Duration time.Duration
	Waited   time.Duration // before it, for the rate limit
	Spent    bool          // another attempt would follow if the retry budget were not spent
	Err      error
}

// Result is what came of a request. Status, Header, Body and Delivery are those of the last attempt.
type Result struct {
	Status   int
	Header   http.Header
	Body     []byte
	Attempts int
	Delivery Delivery
	Cut      bool     // the body of a failure did not come as a whole
	Unsure   bool     // an attempt before the last may have performed the operation
	Keys     []string // the values of the Authorization header, each once
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	base      http.RoundTripper
	standard  bool // base is an *http.Transport, and its hooks tell of every connection
	onlyHTTP1 bool // and it speaks nothing but HTTP/1
	config    Config
}

// New returns a client. It does no I/O.
func New(config Config) *Client {
	c := &Client{config: config}
	if config.Disown == nil {
		c.config.Disown = func(err error) error { return err }
	}
	if own := config.HTTP; own != nil {
		c.base = own.Transport
		if own.Timeout > 0 {
			c.config.AttemptTimeout = min(own.Timeout, config.AttemptTimeout)
		}
	}
	if c.base == nil {
		c.base = pool.New()
	}
	c.standard, c.onlyHTTP1 = inspect(c.base)
	return c
}

// CloseIdleConnections closes the connections that are not in use.
func (c *Client) CloseIdleConnections() {
	(&http.Client{Transport: c.base}).CloseIdleConnections()
}

// Do sends the request until the answer is final. The result is set with an error too.
func (c *Client) Do(ctx context.Context, r *Request) (Result, error) {
	call := newCall(ctx, c, r)
	err := call.run() //nolint:contextcheck // the call has two contexts
	return call.result, err
}
