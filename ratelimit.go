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
// when the service refuses it with status 429. Nothing is begun before its turn has come. When ctx ends, no further
// call is made.
func (c *caller) callInTurn(
	ctx context.Context, op Operation, opts []CallOption, call func(opts []CallOption) error,
) error {
	if ctx == nil { // the call refuses it
		return call(opts)
	}
	longest := c.policy.MaxBulkRetryAfter
	turn := func(place *overload.Place) []CallOption {
		return append(slices.Clip(opts), func(o *callOptions) { o.place, o.maxRetryAfter = place, longest })
	}
	pace := c.paces[op]
	if pace == nil { // because of IgnoreOverload; the call waits by itself
		return call(turn(nil))
	}
	for {
		place, err := pace.WaitInWalk(ctx, longest)
		if err != nil {
			return transportError(ctx, op.info(), transport.Result{Delivery: transport.NotSent}, err)
		}
		if err = call(turn(&place)); !c.startsOver(err, opts) {
			return err
		}
	}
}

// startsOver reports whether a call of a walk is made again, because it was refused for a time that can be waited out.
func (c *caller) startsOver(err error, opts []CallOption) bool {
	e, failed := errors.AsType[*Error](err)
	if !failed || e.StatusCode != http.StatusTooManyRequests || !SafeToRetry(err) {
		return false
	}
	attempts := cmp.Or(newCallOptions(opts).attempts, c.policy.MaxAttempts)
	return attempts > 1 && e.RetryAfter <= c.policy.MaxBulkRetryAfter
}
