package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

const (
	maxAttempts = 60   // number of attempts without progress before the job pauses, about an hour
	maxReason   = 1000 // number of bytes after which a text for a history is cut
	maxListed   = 1000 // largest number of entries in a list of a report or a summary
)

// ending tells the workflow what to do after an attempt that did not finish its range: to pause, to wait, or neither.
type ending struct {
	Stop string        `json:"stop,omitempty"` // reason why the job has to pause
	Wait time.Duration `json:"wait,omitempty"` // wait that the service asked for
}

// end decides how the activity ends after an attempt with err. If end returns an error, Temporal starts the activity
// again. If end returns nil, the activity returns its report to the workflow.
func (e *ending) end(ctx context.Context, err error, progress bool) error {
	if err == nil || ctx.Err() != nil {
		return nil //nolint:nilerr // a canceled activity returns its report
	}
	again := e.consider(err, progress, activity.GetInfo(ctx).Attempt)
	if again == nil {
		activity.GetLogger(ctx).Warn("payvault: an attempt ends early", "error", err)
	}
	return again
}

// consider returns err, so that Temporal repeats the activity, if err may be retried, the attempt made no progress, and
// attempts are left. Otherwise consider returns nil. It then sets e.Stop if the workflow has to pause, and e.Wait if
// the workflow has to wait. After progress the workflow starts a new activity, whose attempts count from 1.
func (e *ending) consider(err error, progress bool, attempt int32) error {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case ok && app.NonRetryable():
		e.Stop = cut(app.Message())
	case progress && ok:
		e.Wait = app.NextRetryDelay()
	case progress:
	case attempt >= maxAttempts:
		e.Stop = cut(fmt.Sprintf("failed %d times: %s", maxAttempts, err))
	default:
		return err
	}
	return nil
}

// pauseFor returns an error that pauses the job for the given reason.
func pauseFor(reason string) error {
	return temporal.NewNonRetryableApplicationError(reason, "Pause", nil)
}

// call calls f, a method of a CardSource or a Sink. If ctx ends before f returns, call returns the error of ctx. If f
// takes longer than limit, call returns an error that pauses the job. Any other error of f may quote a card, and so may
// a panic. So call returns an error that says only that f has failed. But the message of a [temporal.ApplicationError]
// is kept.
func call[T any](ctx context.Context, limit time.Duration, name string, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		r := result{err: errors.New("panic")}
		defer func() {
			if recover() != nil { // only the stack is logged: the panic value may quote a card
				activity.GetLogger(ctx).Error("payvault: "+name+" has panicked", "stack", string(debug.Stack()))
			}
			done <- r
		}()
		r.value, r.err = f(limited)
	}()
	var r result
	select {
	case r = <-done:
	case <-limited.Done():
		r.err = limited.Err()
	}
	switch {
	case r.err == nil:
		return r.value, nil
	case ctx.Err() != nil:
		return r.value, ctx.Err()
	case limited.Err() != nil:
		return r.value, pauseFor(fmt.Sprintf("%s has not answered for %s", name, limit))
	}
	return r.value, withoutCards(r.err, name)
}

// withoutCards returns an error in place of err, which comes from the caller's code and may quote a card. The result
// says only that name has failed. But if err wraps a [temporal.ApplicationError], the result has the message, the type
// and the settings for retries of that error. A long message is cut.
func withoutCards(err error, name string) error {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok {
		return errors.New(name + " has failed")
	}
	return temporal.NewApplicationErrorWithOptions(cut(app.Message()), app.Type(), temporal.ApplicationErrorOptions{
		NonRetryable: app.NonRetryable(), NextRetryDelay: app.NextRetryDelay(),
	})
}

// cut shortens a text that is longer than maxReason bytes.
func cut(text string) string {
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// sleep waits for d. It returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// appendSome appends elements until the list has maxListed of them.
func appendSome[T any](list, more []T) []T {
	return append(list, more[:min(len(more), maxListed-len(list))]...)
}

// keepAlive sends heartbeats with the result of details until stop is called. The SDK of Temporal cancels ctx if the
// server answers that the activity has to end, or does not answer in time.
func keepAlive(ctx context.Context, details func() any) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(max(activity.GetInfo(ctx).HeartbeatTimeout/3, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				activity.RecordHeartbeat(ctx, details())
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
