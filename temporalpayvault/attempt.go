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
	maxAttempts = 60   // attempts without progress; with the waits between them they take an hour
	maxReason   = 1000 // largest number of bytes of a text in a history
)

// ending is the reason why an attempt of an activity has not done all of its range.
type ending struct {
	Stop string        `json:"stop,omitempty"` // reason why the job has to pause
	Wait time.Duration `json:"wait,omitempty"` // wait that the service asked for
}

// end takes the error of an attempt. It returns an error if Temporal has to start the activity again. Otherwise the
// activity returns its report, so the workflow learns the results of the attempt. The log has the reason why the
// attempt ended.
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

// consider chooses the reaction to the error of an attempt: a pause, a wait, or a retry by Temporal. For a retry it
// returns the error. After progress the workflow gives the rest to a new activity. So attempt counts only attempts
// without progress, and attempts whose worker was lost.
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

// pauseFor returns an error of an attempt that makes the job pause.
func pauseFor(reason string) error {
	return temporal.NewNonRetryableApplicationError(reason, "Pause", nil)
}

// call calls a function of a source or a sink. If the function takes longer than limit, call returns an error that
// pauses the job, and the function may go on in its goroutine. The text of an error may quote a card, so call removes
// it. It keeps the message and the type of an application error, because the caller has written these for the history.
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
			if recover() != nil { // the text of a panic may quote a card, but a stack has no such texts
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
	app, ok := errors.AsType[*temporal.ApplicationError](r.err)
	switch {
	case r.err == nil, ctx.Err() != nil:
		return r.value, r.err
	case limited.Err() != nil:
		r.err = pauseFor(fmt.Sprintf("%s has not answered for %s", name, limit))
	case ok:
		r.err = temporal.NewApplicationErrorWithOptions(cut(app.Message()), app.Type(), temporal.ApplicationErrorOptions{
			NonRetryable: app.NonRetryable(), NextRetryDelay: app.NextRetryDelay(),
		})
	default:
		r.err = errors.New(name + " has failed")
	}
	return r.value, r.err
}

// cut shortens a text to maxReason bytes.
func cut(text string) string {
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// keepAlive sends heartbeats until the function that it returns is called. The SDK cancels the context of an attempt
// whose heartbeat the server refuses.
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
