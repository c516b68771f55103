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

// callInTurn makes one call of a walk: it waits for the rate limit of the operation, makes the call, and starts over
// when the service refuses it with status 429. When ctx ends, no further call is made.
func (c *caller) callInTurn(
	ctx context.Context, op Operation, opts []CallOption, call func(opts []CallOption) error,
) error {
	if ctx == nil { // the call refuses it
		return call(opts)
	}
	for {
		own, err := c.waitForTurn(ctx, op, opts)
		if err != nil {
			return err
		}
		if err = call(own); !c.startsOver(op, err, opts) {
			return err
		}
	}
}

// waitForTurn waits for the rate limit of an operation. It returns the options of the call whose turn has come, and an
// error if ctx ends before, or if the service has asked for a longer wait than a walk accepts.
func (c *caller) waitForTurn(ctx context.Context, op Operation, opts []CallOption) ([]CallOption, error) {
	longest := c.policy.MaxBulkRetryAfter
	var place *overload.Place
	if pace := c.paces[op]; pace != nil { // without one, because of IgnoreOverload, the call waits by itself
		turn, err := pace.WaitInWalk(ctx, longest)
		if err != nil {
			return nil, transportError(ctx, op.info(), transport.Result{Delivery: transport.NotSent}, err)
		}
		place = &turn
	}
	return append(slices.Clip(opts), func(o *callOptions) { o.place, o.maxRetryAfter = place, longest }), nil
}

// startsOver reports whether a call of a walk is made again, because it was refused for a time that can be waited out.
func (c *caller) startsOver(op Operation, err error, opts []CallOption) bool {
	e, failed := errors.AsType[*Error](err)
	if c.paces[op] == nil || !failed || e.StatusCode != http.StatusTooManyRequests || !SafeToRetry(err) {
		return false
	}
	attempts := cmp.Or(newCallOptions(opts).attempts, c.policy.MaxAttempts)
	return attempts > 1 && e.RetryAfter <= c.policy.MaxBulkRetryAfter
}
