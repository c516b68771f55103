// Package transport sends one operation: attempts, retries, delivery, deadlines and caps. It knows no bodies of the
// service.
package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/pool"
)

var (
	// ErrStopped is returned for a request that is not sent, since its caller has stopped meanwhile.
	ErrStopped = errors.New("stopped")
	// ErrTooLarge is returned for a response body that exceeds the cap, counted after decompression.
	ErrTooLarge = errors.New("response body exceeds the size limit")

	errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")
	errNotAgain   = errors.New("not sent again")
)

// KeyError is returned when no credentials could be had; that attempt sent nothing.
type KeyError struct{ Err error }

func (e *KeyError) Error() string { return "no API key: " + e.Err.Error() }

// Unwrap gives the error of the key source.
func (e *KeyError) Unwrap() error { return e.Err }

// Delivery is how far a request came.
type Delivery uint8

// Unknown is the zero value, so that a request about which nothing is known is not taken for unsent.
const (
	Unknown  Delivery = iota // bytes of it may have been written, and no response came
	NotSent                  // not a byte was written
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
	HTTP             *http.Client                          // its Transport and Timeout are used; nil for the defaults
	Authorization    func(context.Context) (string, error) // asked on each attempt
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	Policy           Policy
	Budget           *overload.Budget // nil for none
}

// Request is one operation.
type Request struct {
	Method      string
	URL         *url.URL
	Header      http.Header
	Open        func() io.Reader // gives the body, more than once to some attempts; nil for none
	Length      int64            // of the body
	Replay      bool             // repeating it is harmless
	MaxAttempts int              // 0 for the policy's
	Pace        *overload.Pace   // of the operation; nil for none
	// A refusal with status 429 is waited out, however often it comes, if there may be another attempt at all.
	Patient bool
	Sending context.Context //nolint:containedctx // when it ends, nothing more is waited for or repeated; nil for never
	// Pause is called when a request that cannot have been performed has to wait for the pace, and calls wait. It is not
	// sent if there is an error. Nil for wait alone.
	Pause   func(wait func() error) error
	Observe func(Attempt)
}

// Attempt is what Observe is told about one attempt.
type Attempt struct {
	Number   int
	Status   int // 0 if no response came
	Delivery Delivery
	Duration time.Duration
	Waited   time.Duration // before it, for the pace
	Spent    bool          // it would be followed by another if the budget of retries were not spent
	Err      error
}

// Result is what came of a request. Status, Header, Body and Delivery are those of the last attempt.
type Result struct {
	Status   int
	Header   http.Header
	Body     []byte
	Attempts int
	Delivery Delivery
	Unsure   bool     // an attempt before the last may have performed the operation
	Keys     []string // the values of the Authorization header, each once
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	engine retryablehttp.Client
	none   http.Header // of what the engine is given; nobody writes to it
	base   http.RoundTripper
	kind   kind
	config Config
}

// New returns a client. It does no I/O.
func New(config Config) *Client {
	c := &Client{config: config, none: http.Header{}}
	if own := config.HTTP; own != nil {
		c.base = own.Transport
		if own.Timeout > 0 {
			c.config.AttemptTimeout = min(own.Timeout, config.AttemptTimeout)
		}
	}
	if c.base == nil {
		c.base = pool.New()
	}
	c.kind = kindOf(c.base)
	c.engine = retryablehttp.Client{
		HTTPClient: &http.Client{Transport: attempts{c}},
		RetryMax:   1 << 30, // decide counts
		CheckRetry: func(ctx context.Context, _ *http.Response, _ error) (bool, error) {
			return callOf(ctx).again, nil
		},
		Backoff: c.backoff,
	}
	return c
}

// CloseIdleConnections closes the connections that are not in use.
func (c *Client) CloseIdleConnections() {
	(&http.Client{Transport: c.base}).CloseIdleConnections()
}

// Do sends the request until it is answered for good. The result is set with an error too.
func (c *Client) Do(ctx context.Context, r *Request) (Result, error) {
	call := &call{Request: *r, ctx: ctx, result: Result{Delivery: NotSent}}
	call.max = cmp.Or(r.MaxAttempts, c.config.Policy.MaxAttempts)
	req := http.Request{Method: r.Method, URL: r.URL, Header: c.none}
	between := context.WithValue(cmp.Or(r.Sending, ctx), callKey{}, call) // attempts
	//nolint:bodyclose,contextcheck // http.NoBody; Sending ends no later
	_, err := c.engine.Do(&retryablehttp.Request{Request: req.WithContext(between)})
	if err != nil && call.again && ctx.Err() == nil {
		err = ErrStopped // in a back-off
	}
	if err == nil && call.result.Status < http.StatusBadRequest {
		c.config.Budget.Refund(call.cost)
	}
	return call.result, err
}
