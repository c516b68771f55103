// Package transport performs one operation. It makes attempts and retries, keeps deadlines and size limits, and
// determines whether a failed request may have been performed. It does not parse response bodies.
//
// go-retryablehttp, called the engine here, drives the attempts of a call. For each attempt it calls the method
// RoundTrip of the type call.
//
// A reader may take the files in this order:
//   - transport.go: arguments and results
//   - call.go: one call, which starts the engine
//   - attempt.go: one attempt
//   - response.go: reading the response of an attempt
//   - retry.go: whether another attempt follows
//   - resend.go: how net/http is kept from repeating a request that may have been performed
//   - delivery.go: whether an attempt may have been performed
package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/pool"
)

var (
	// ErrStopped is returned if a call does not send its request, or does not repeat it, because Gate.Stop has ended or
	// Gate.Begin has returned false. If the context of the call has ended too, its error is returned instead.
	ErrStopped = errors.New("stopped")
	// ErrTooLarge is returned for a response body over the size limit, which counts decompressed bytes.
	ErrTooLarge = errors.New("response body exceeds the size limit")
)

// KeyError is returned when the key source failed. The attempt sent nothing.
type KeyError struct{ Err error }

func (e *KeyError) Error() string { return "no API key: " + e.Err.Error() }

// Unwrap returns the error of the key source.
func (e *KeyError) Unwrap() error { return e.Err }

// RoundTripperError is the error of a RoundTripper that is not an *http.Transport, or of an *http.Transport to whose
// TLSNextProto the caller has added protocols.
type RoundTripperError struct {
	RoundTripper http.RoundTripper
	Err          error
}

func (e *RoundTripperError) Error() string { return fmt.Sprintf("%T: %v", e.RoundTripper, e.Err) }

// Unwrap returns the error of the RoundTripper.
func (e *RoundTripperError) Unwrap() error { return e.Err }

// Policy sets how often and how fast an operation is repeated.
type Policy struct {
	MaxAttempts   int
	MinBackoff    time.Duration
	MaxBackoff    time.Duration
	MaxRetryAfter time.Duration
}

// Config holds the settings that all requests of a client share.
type Config struct {
	HTTP             *http.Client                          // its Transport and Timeout are used; nil for the defaults
	Authorization    func(context.Context) (string, error) // called on each attempt
	AttemptTimeout   time.Duration
	MaxResponseBytes int64
	Policy           Policy
	Budget           *overload.Budget // nil means no retry budget
	Limit            *overload.Limit  // rate limit of all requests that the caller has set; nil means none
	// Disown hides the error of another call inside an error of the RoundTripper, of a response body or of Authorization.
	// The result has the same text but does not match the hidden error. For example, errgroup makes the error of one call
	// the cause of the contexts of all others, and a RoundTripper may return that cause. If Disown is nil, errors are not
	// changed.
	Disown func(error) error
}

// Request is one operation.
type Request struct {
	Method      string
	URL         *url.URL
	Header      http.Header      // each attempt sends a copy
	Body        []byte           // body in memory; nil if there is no body, or if Open is set
	Open        func() io.Reader // returns a new reader of the upload at each call
	Length      int64            // length of Body or of the upload
	Replay      bool             // repeating the request is harmless, even if it was performed
	MaxAttempts int              // 0 means the value of the policy
	Pace        *overload.Pace   // rate limit of the operation; nil means no limit
	Gate        *Gate            // set by walks, which are loops of many calls; nil for a single call
	// Start is called when the rate limit and the Gate permit the first attempt. It returns the context for the attempts.
	// If Start is nil, the attempts use the context of the call.
	Start   func(context.Context) context.Context
	Observe func(Attempt) // called after each attempt; may be nil
}

// Gate connects a call with the walk that makes the call. Calls with a Gate wait for a rate limit in a line of their
// own, so that a single call waits for at most one of them. Attempts that get a 429 do not count toward MaxAttempts,
// unless only one attempt is allowed or Pace is nil. Functions that are nil are not called.
type Gate struct {
	// Patience is the longest wait that the service may ask for. It takes the place of Policy.MaxRetryAfter.
	Patience time.Duration
	// Begin is called when the rate limit permits the first attempt. After Unbegin it is called again, when the rate limit
	// permits the next attempt. If it returns false, Do sends nothing more and returns ErrStopped, or the error of the
	// call's context if that context has ended.
	Begin func() bool
	// Unbegin is called before the wait for another attempt. It is also called if Stop ends during Begin. Without a Stop,
	// it is called if the context of the call ends during Begin. It is never called if an attempt may have performed the
	// operation. The status is that of the last attempt, or 0 if there was no attempt or it got no response.
	Unbegin func(status int)
	// Stop ends when the walk stops. Then the call begins no wait and no attempt, and a wait under way ends. A request in
	// flight goes on, so that its outcome is not lost. Stop must not outlive the context of the call. If Stop is nil,
	// waits end with the context of the call.
	Stop context.Context //nolint:containedctx // the call has two contexts
}

// Attempt is the report about one attempt, for Observe.
type Attempt struct {
	Number   int
	Status   int // 0 if no response came
	Delivery Delivery
	Duration time.Duration
	Waited   time.Duration // wait for the rate limits before the attempt
	Final    Final         // why no further attempt follows; "" if one follows, or if the attempt succeeded
	Err      error
}

// Final is the reason why a call that failed is not repeated.
type Final string

// The reasons. If several apply, the first of them is given.
const (
	FinalContext       Final = "context"        // the context ended during the attempt, which got no complete response
	FinalAnswer        Final = "final"          // a repeat would get the same answer or error
	FinalNotReplayable Final = "not_replayable" // the request may have been performed, and repeating it is not harmless
	FinalAttempts      Final = "attempts"       // all attempts are used
	FinalRetryAfter    Final = "retry_after"    // the service asks for a longer wait than the call accepts
	FinalDeadline      Final = "deadline"       // the context ends before the wait that the service asks for is over
	FinalBudget        Final = "budget"         // the retry budget is spent
	FinalWait          Final = "wait"           // the wait for the next attempt was cut short, or would have been too long
)

// Result is the result of a request. Status, Header, Body and Delivery belong to the last attempt.
type Result struct {
	Status   int
	Header   http.Header
	Body     []byte
	Attempts int
	Delivery Delivery
	// Unsure means that the operation may have been performed before the last request was sent: by an earlier attempt, or
	// because a RoundTripper may have sent the request of the last attempt twice. Then a refusal does not prove that
	// nothing was performed.
	Unsure bool
	// BodyErr is the error of reading the body of a response with status 400 or above, such as ErrTooLarge. Do does not
	// return this error, because the status already means a failure.
	BodyErr error
	Keys    []string // values of the Authorization header that the attempts used, each once
	Final   Final    // why the call was not repeated; "" if it succeeded or made no attempt
	// Failed is the error of the last attempt, or nil if there was no attempt. It is also nil if the attempt got a
	// response with status 400 or above, or a response whose body was read. If the wait for another attempt failed, Do
	// returns the error of the wait instead.
	Failed error
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	base      http.RoundTripper
	standard  bool // base is an *http.Transport that calls the hooks of httptrace for every connection
	onlyHTTP1 bool // base is standard and uses nothing but HTTP/1
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

// Do makes attempts until one succeeds or no further attempt may follow. It returns the result of the attempts even if
// it returns an error.
func (c *Client) Do(ctx context.Context, r *Request) (Result, error) {
	call := newCall(ctx, c, r)
	err := call.run() //nolint:contextcheck // the call has two contexts
	return call.result, err
}
