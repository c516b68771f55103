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

// call is one request over its attempts. go-retryablehttp drives it: RoundTrip makes an attempt, checkRetry and backoff
// say what follows.
//
// It has two contexts. That of the attempts is the caller's, so that a request in flight is not cut off when Sending
// ends. That of the waits between them, which the engine has, ends with Sending too.
type call struct {
	*Request

	client  *Client
	ctx     context.Context //nolint:containedctx // of the attempts
	max     int             // attempts
	place   overload.Place  // of the last attempt
	took    time.Duration   // by the last attempt
	cost    int64           // of the last retry
	prepaid int64           // cost of a retry that has not begun
	result  Result          // of the attempts so far; the engine drops the last answer when a context ends
}

func newCall(ctx context.Context, client *Client, r *Request) *call {
	return &call{
		Request: r, client: client, ctx: ctx, result: Result{Delivery: NotSent},
		max: cmp.Or(r.MaxAttempts, client.config.Policy.MaxAttempts),
	}
}

// run makes the attempts and returns the error of the call. Redirects are not followed: the engine sees no Location.
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
		if c.prepaid > 0 { // the context ended in the wait before the retry
			c.client.config.Budget.Refund(c.prepaid)
		}
		return c.errorOf(err)
	}
	if c.result.Status < http.StatusBadRequest {
		c.client.config.Budget.Refund(c.cost)
	}
	return nil
}

// newRequest returns the request as the engine repeats it. Each attempt adds the key to its own copy.
func (c *call) newRequest() (*retryablehttp.Request, error) {
	req := &http.Request{Method: c.Method, URL: c.URL, Host: c.URL.Host, Header: c.Header}
	r := &retryablehttp.Request{Request: req.WithContext(c.waits())}
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

// waits returns the context of the waits.
func (c *call) waits() context.Context { return cmp.Or(c.Sending, c.ctx) }

// isStopped reports whether nothing more may be sent.
func (c *call) isStopped() bool { return c.Sending != nil && c.Sending.Err() != nil }

// errorOf returns the error of the call for that of the engine, which wraps errors and ends waits by itself.
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
	return ErrStopped
}
