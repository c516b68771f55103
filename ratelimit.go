package payvault

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/transport"
)

// This file makes the calls of walks: lists, and bulk work. A walk waits for the rate limit before each call. When the
// service refuses the call with status 429, the walk waits again and makes a new call.

// callInTurn makes one call of a list: it waits for the rate limit of the operation and makes the call, until the
// service does not refuse it. When ctx ends, no further call is made.
func (c *caller) callInTurn(
	ctx context.Context, op Operation, opts []CallOption, call func(opts []CallOption) error,
) error {
	if ctx == nil { // the call refuses it
		return call(opts)
	}
	for {
		optsInTurn, err := c.waitForTurn(ctx, op, opts)
		if err != nil {
			return err
		}
		err = call(optsInTurn)
		if !c.startsOver(op, err, opts) {
			return err
		}
	}
}

// waitForTurn waits for the rate limit of an operation, and returns the options for the call whose turn has come. It
// returns an error if ctx ends first, or if the service asks for a longer wait than a walk accepts.
func (c *caller) waitForTurn(ctx context.Context, op Operation, opts []CallOption) ([]CallOption, error) {
	longest := c.policy.MaxBulkRetryAfter
	var place *overload.Place
	if pace := c.paces[op]; pace != nil { // it is nil with IgnoreOverload: then the call retries a 429 by itself
		turn, err := pace.WaitInWalk(ctx, longest)
		if err != nil {
			return nil, transportError(ctx, op.info(), transport.Result{Delivery: transport.NotSent}, err)
		}
		place = &turn
	}
	return append(slices.Clip(opts), func(o *callOptions) { o.place, o.maxRetryAfter = place, longest }), nil
}

// startsOver reports whether a walk makes a call again that ended with err. All of this must hold:
//   - The service refused the call with status 429, and making it again does no harm.
//   - The operation has a rate limit. Without one the call has made its retries by itself.
//   - Calls may have more than one attempt. That number limits the attempts of one call, not the calls of a walk.
//   - The service does not ask for a longer wait than a walk accepts.
func (c *caller) startsOver(op Operation, err error, opts []CallOption) bool {
	e, failed := errors.AsType[*Error](err)
	isRefused := failed && e.StatusCode == http.StatusTooManyRequests
	if !isRefused || !SafeToRetry(err) {
		return false
	}
	attempts := cmp.Or(newCallOptions(opts).attempts, c.policy.MaxAttempts)
	return c.paces[op] != nil && attempts > 1 && e.RetryAfter <= c.policy.MaxBulkRetryAfter
}
