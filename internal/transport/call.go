package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"example.com/payvault/internal/overload"
)

// call performs one Request. The engine, which is go-retryablehttp, calls RoundTrip for each attempt, then checkRetry
// and, before a retry, backoff.
//
// A call has two contexts. The attempts use ctx: the caller's context, or the context that Start returned. All waits
// use waitContext: Stop of the Gate, or ctx if there is no Stop. So the end of Stop ends a wait, but not a request in
// flight.
type call struct {
	*Request

	client *Client
	engine retryablehttp.Client // not a pointer, like http, so that a call needs fewer allocations
	http   http.Client
	ctx    context.Context //nolint:containedctx // context for the attempts
	max    int             // number of attempts allowed
	// result of the attempts so far; the engine itself drops the last response if a context ends
	result    Result
	lastPlace overload.Place  // permission that the rate limit gave to the last attempt
	took      time.Duration   // duration of the last attempt
	cost      int64           // cost of the last retry that was not free; refunded after a success or if not made
	begun     bool            // Begin was called, and Unbegin was not called since
	uncounted int             // number of attempts that do not count toward max
	isPaced   bool            // the next retry is free, and waits for its turn in the rate limit instead of a backoff
	queued    *overload.Retry // the free retry of a single call, from payForRetry until it waits; otherwise nil
}

func newCall(ctx context.Context, client *Client, r *Request) *call {
	return &call{
		Request: r, client: client, ctx: ctx, result: Result{Delivery: NotSent},
		max: cmp.Or(r.MaxAttempts, client.config.Policy.MaxAttempts),
	}
}

// run makes the attempts and returns the error of the call. The response is in c.result.
func (c *call) run() error {
	c.http.Transport = c
	c.engine = retryablehttp.Client{
		HTTPClient:   &c.http,
		RetryMax:     math.MaxInt, // checkRetry counts the attempts
		CheckRetry:   c.checkRetry,
		Backoff:      c.backoff,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	req, err := c.newRequest()
	if err != nil {
		return err
	}
	defer func() {
		if c.queued != nil { // the context has ended, or Observe has panicked
			c.queued.Leave()
		}
	}()
	if _, err = c.engine.Do(req); err != nil { //nolint:bodyclose // it is in memory
		_, isOfAttempt := errors.AsType[*attemptError](err)
		if !isOfAttempt && c.result.Attempts > 0 { // a wait before a retry failed
			c.result.Final = cmp.Or(c.result.Final, FinalWait)
			if !c.isPaced {
				c.client.config.Budget.Refund(c.cost)
			}
		}
		return c.errorOf(err)
	}
	isSuccess := c.result.Status < http.StatusBadRequest
	if isSuccess {
		c.client.config.Budget.Refund(c.cost)
	}
	return nil
}

// newRequest returns the request for the engine. Its context is waitContext, with which the engine waits. Each attempt
// sends a copy with the caller's context, the header of the call, and the API key.
func (c *call) newRequest() (*retryablehttp.Request, error) {
	req := &http.Request{Method: c.Method, URL: c.URL, Host: c.URL.Host, Header: http.Header{}}
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

// waitContext returns the context for all waits of the call: Stop of the Gate if it is set, and otherwise ctx.
func (c *call) waitContext() context.Context {
	if c.Gate != nil && c.Gate.Stop != nil {
		return c.Gate.Stop
	}
	return c.ctx
}

// isStopped reports whether Stop has ended. After that no further request may be sent.
func (c *call) isStopped() bool {
	return c.Gate != nil && c.Gate.Stop != nil && c.Gate.Stop.Err() != nil
}

// errorOf turns the error of the engine into the error of the call. It returns one of these:
//   - the error of an attempt;
//   - the HeldError of a wait for the rate limit;
//   - the error of ctx, if ctx has ended;
//   - ErrStopped otherwise: Stop has ended, or Begin has returned false.
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
	return ErrStopped // ctx has not ended
}
