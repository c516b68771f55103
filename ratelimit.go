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

// A walk is one loop over the pages of a list or over the batches of SubmitAll. The functions of this file make walks
// obey the rate limit. A walk waits before each call. After status 429 it waits again and makes a new call. callInTurn
// does this for lists. SubmitAll has a loop of its own in bulk_send.go, which also writes into the journal.

// callInTurn waits for the rate limit of the operation, and then runs the given call, which asks for one page. It does
// both again as long as startsOver returns true for the error. It returns the error of waitInWalk or of the last call.
func (c *caller) callInTurn(
	ctx context.Context, op Operation, opts []CallOption, call func(opts []CallOption) error,
) error {
	for {
		optsInTurn, err := c.waitInWalk(ctx, op, opts)
		if err != nil {
			return err
		}
		err = call(optsInTurn)
		if !c.startsOver(op, err, opts) {
			return err
		}
	}
}

// waitInWalk waits for the rate limit of an operation, and returns the options for the call. It returns an error if ctx
// ends first, if the wait would last beyond the deadline of ctx, or if the service asks for a longer wait than
// MaxBulkRetryAfter.
func (c *caller) waitInWalk(ctx context.Context, op Operation, opts []CallOption) ([]CallOption, error) {
	longest := c.policy.MaxBulkRetryAfter
	var place *overload.Place
	if pace := c.paces[op]; pace != nil { // pace is nil with IgnoreOverload: then the call itself retries after a 429
		turn, err := pace.WaitInWalk(ctx, longest)
		if err != nil {
			return nil, transportError(ctx, op.info(), transport.Result{Delivery: transport.NotSent}, err)
		}
		place = &turn
	}
	return append(slices.Clip(opts), func(o *callOptions) { o.place, o.maxRetryAfter = place, longest }), nil
}

// startsOver reports whether a walk repeats a call that ended with err. Four conditions must hold:
//   - The service refused the call with status 429, and repeating it does no harm.
//   - The operation has a rate limit. Without a rate limit, the call itself has made the retries.
//   - MaxAttempts is not 1. A larger number does not limit how often a walk starts over.
//   - The service does not ask for a longer wait than MaxBulkRetryAfter.
func (c *caller) startsOver(op Operation, err error, opts []CallOption) bool {
	e, failed := errors.AsType[*Error](err)
	isRefused := failed && e.StatusCode == http.StatusTooManyRequests
	if !isRefused || !SafeToRetry(err) {
		return false
	}
	attempts := cmp.Or(newCallOptions(opts).attempts, c.policy.MaxAttempts)
	return c.paces[op] != nil && attempts > 1 && e.RetryAfter <= c.policy.MaxBulkRetryAfter
}
