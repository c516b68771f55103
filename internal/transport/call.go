package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"example.com/payvault/internal/overload"
)

// call performs one Request in one or more attempts. The engine, which is go-retryablehttp, drives it: the engine calls
// RoundTrip for each attempt, and then checkRetry and backoff.
//
// A call has two contexts. The attempts use the caller's context, so that the end of Sending does not cut off a request
// in flight. The waits between the attempts use waitContext, which ends with Sending too. The engine gets this one.
type call struct {
	*Request

	client  *Client
	ctx     context.Context //nolint:containedctx // the caller's, for the attempts
	max     int             // number of attempts allowed
	place   overload.Place  // turn of the last attempt at the rate limit
	took    time.Duration   // duration of the last attempt
	cost    int64           // what the last retry took from the budget
	prepaid int64           // the same while the retry has not begun; then 0
	result  Result          // of the attempts so far; the engine drops the last response when a context ends
}

func newCall(ctx context.Context, client *Client, r *Request) *call {
	return &call{
		Request: r, client: client, ctx: ctx, result: Result{Delivery: NotSent},
		max: cmp.Or(r.MaxAttempts, client.config.Policy.MaxAttempts),
	}
}

// run makes the attempts and returns the error of the call. The response is left in c.result.
func (c *call) run() error {
	engine := retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: c},
		RetryMax:     c.max - 1,
		CheckRetry:   c.checkRetry,
		Backoff:      c.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	req, err := c.newRequest()
	if err != nil {
		return err
	}
	if _, err = engine.Do(req); err != nil { //nolint:bodyclose // it is in memory
		if c.prepaid > 0 { // the context ended before the retry began
			c.client.config.Budget.Refund(c.prepaid)
		}
		return c.errorOf(err)
	}
	if c.result.Status < http.StatusBadRequest {
		c.client.config.Budget.Refund(c.cost)
	}
	return nil
}

// newRequest returns the request for the engine, without the API key. Each attempt adds the key to a copy of its own.
func (c *call) newRequest() (*retryablehttp.Request, error) {
	req := &http.Request{Method: c.Method, URL: c.URL, Host: c.URL.Host, Header: c.Header}
	r := &retryablehttp.Request{Request: req.WithContext(c.waitContext())}
	var err error
	switch {
	case c.Open != nil:
		err = r.SetBody(retryablehttp.ReaderFunc(func() (io.Reader, error) { return c.Open(), nil }))
	case c.Body != nil:
		err = r.SetBody(c.Body)
	}
	r.ContentLength = c.Length
	return r, err
}

// waitContext returns the context for all waits of the call: Sending if there is one.
func (c *call) waitContext() context.Context { return cmp.Or(c.Sending, c.ctx) }

// isStopped reports whether Sending has ended, after which nothing more may be sent.
func (c *call) isStopped() bool { return c.Sending != nil && c.Sending.Err() != nil }

// errorOf turns the error of the engine into that of the call. The engine wraps errors, and returns the error of
// waitContext when a wait is cut short.
func (c *call) errorOf(err error) error {
	if failed, ok := errors.AsType[*attemptError](err); ok {
		return failed.Err
	}
	if held, ok := errors.AsType[*overload.HeldError](err); ok {
		return held
	}
	if ended := c.ctx.Err(); ended != nil {
		return ended
	}
	return ErrStopped // only Sending has ended
}
