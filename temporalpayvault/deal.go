package temporalpayvault

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the query and the updates of both workflows. None takes an argument. An update is refused, and changes
// nothing, if there is nothing to pause or to resume. An update with another name is refused too.
const (
	QueryProgress = "progress" // returns the progress of the workflow, which changes when an activity ends
	// UpdatePause starts no more activities. The activities at work go on until their next heartbeat, up to 0.8 ×
	// HeartbeatTimeout (24 s), and then finish their requests in flight.
	UpdatePause  = "pause"
	UpdateResume = "resume" // goes on, after the activities that were at work have ended
)

// MemoPaused is a key in the memo of a workflow that is paused. Its value is the reason.
const MemoPaused = "payvault-paused"

const (
	defaultConcurrency = 4
	maxConcurrency     = 1000 // a server lets a workflow have 2,000 activities
	defaultHeartbeat   = 30 * time.Second
	leastHeartbeat     = time.Second
	defaultCallTimeout = 5 * time.Minute
	day                = 24 * time.Hour

	reasonOperator = "by the update " + UpdatePause
)

// span is a range of batches or lists.
type span struct {
	From   int `json:"from"`
	To     int `json:"to"`     // end of the range, not included
	Page   int `json:"page"`   // only in an export: first page in the first list
	Offset int `json:"offset"` // number of records before that page
	// Written is the number of records of that page that were written already. The page is requested again
	// nevertheless, because it may be the last one: the interface does not document the answer for a page beyond the
	// last one.
	Written int `json:"written,omitzero"`
}

// nextPage returns s with the page after the written one.
func (s span) nextPage() span {
	if s.Written > 0 {
		s.Page, s.Offset, s.Written = s.Page+1, s.Offset+s.Written, 0
	}
	return s
}

// dealt is the state that a run of a workflow passes to the next run.
type dealt struct {
	Next   int    `json:"next"`             // the first batch or list that no activity has got yet
	Rest   []span `json:"rest,omitempty"`   // ranges that activities got and did not finish
	Paused string `json:"paused,omitempty"` // reason of the pause; "" if the job is not paused
}

// dealer gives ranges to activities, limits how many are at work, and pauses.
type dealer struct {
	*dealt

	total       int         // number of batches or lists
	per         int         // number of batches or lists in a range
	concurrency int         // largest number of ranges at work
	most        int         // largest number of ranges in a run; 0 means that the server decides
	mayDeal     func() bool // reports whether another activity may get a range
	resumed     func()      // called when the job goes on

	ctx     workflow.Context
	acts    workflow.Context // context of the activities; a pause ends it
	cancel  workflow.CancelFunc
	started int
	working int
}

// begin sets the options of the activities, and registers the query and the updates.
func (d *dealer) begin(ctx workflow.Context, heartbeat time.Duration, progress any) error {
	d.concurrency = min(orDefault(d.concurrency, defaultConcurrency), maxConcurrency)
	d.ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * day, // heartbeats detect a lost worker
		HeartbeatTimeout:    max(orDefault(heartbeat, defaultHeartbeat), leastHeartbeat),
		WaitForCancellation: true, // a canceled activity returns its report
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
	})
	d.acts, d.cancel = workflow.WithCancel(d.ctx)
	pause := func(ctx workflow.Context) error {
		d.pause(ctx, reasonOperator)
		return nil
	}
	mayPause := func(workflow.Context) error {
		if d.Paused != "" {
			return errors.New("it is paused already: " + d.Paused)
		}
		return nil
	}
	mayResume := func(workflow.Context) error {
		if d.Paused == "" {
			return errors.New("it is not paused")
		}
		return nil
	}
	update := func(name string, handler, validator func(workflow.Context) error) error {
		return workflow.SetUpdateHandlerWithOptions(ctx, name, handler, workflow.UpdateHandlerOptions{Validator: validator})
	}
	return errors.Join(
		workflow.SetQueryHandler(ctx, QueryProgress, progress),
		update(UpdatePause, pause, mayPause), update(UpdateResume, d.resume, mayResume),
	)
}

// pause pauses the job and ends its activities. A job that is paused keeps its first reason.
func (d *dealer) pause(ctx workflow.Context, reason string) {
	if d.Paused != "" || reason == "" {
		return
	}
	d.Paused = reason
	d.cancel()
	d.mark(ctx, reason)
	workflow.GetLogger(ctx).Warn("payvault: the job has paused", "reason", reason)
}

// resume lets the job go on. It first waits for the activities at work, because they started before the problem was
// solved.
func (d *dealer) resume(ctx workflow.Context) error {
	err := workflow.Await(ctx, func() bool { return d.working == 0 })
	if err != nil || d.Paused == "" {
		return err
	}
	d.Paused = ""
	d.acts, d.cancel = workflow.WithCancel(d.ctx)
	d.resumed()
	d.mark(ctx, nil)
	return nil
}

// mark sets the reason in the memo, or removes it if the reason is nil.
func (d *dealer) mark(ctx workflow.Context, reason any) {
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoPaused: reason}); err != nil {
		workflow.GetLogger(ctx).Warn("payvault: the memo of the job cannot be set", "error", err)
	}
}

// run deals out ranges until all are done, and returns true. It returns false if the workflow has to continue as new
// first. deal gets a range and returns a function, which run calls in a coroutine of its own. The function has an
// activity do the range, and returns the part of the range that is left.
func (d *dealer) run(deal func(span) func(workflow.Context) span) (bool, error) {
	for {
		err := workflow.Await(d.ctx, func() bool { return d.mayStart() || d.mayEnd() })
		if err != nil { // canceled: the activities at work return their reports
			cleanup, cancel := workflow.NewDisconnectedContext(d.ctx)
			defer cancel()
			return false, errors.Join(err, workflow.Await(cleanup, func() bool { return d.working == 0 }))
		}
		if d.mayEnd() {
			return !d.hasWork(), nil
		}
		s := d.take()
		d.started++
		d.working++
		do := deal(s)
		workflow.Go(d.acts, func(ctx workflow.Context) {
			if left := do(ctx); left.From < left.To {
				d.Rest = append(d.Rest, left)
			}
			d.working--
		})
	}
}

// hasWork reports whether there is a range that no activity has got.
func (d *dealer) hasWork() bool { return len(d.Rest) > 0 || d.Next < d.total }

// mayStart reports whether an activity may get a range now.
func (d *dealer) mayStart() bool {
	return d.Paused == "" && d.working < d.concurrency && d.hasWork() && !d.isLong() && d.mayDeal()
}

// mayEnd reports whether this run of the workflow may end: all is done, or the run is long enough.
func (d *dealer) mayEnd() bool {
	return d.working == 0 && (!d.hasWork() || d.isLong()) && workflow.AllHandlersFinished(d.ctx)
}

// isLong reports whether the history of the run is long enough.
func (d *dealer) isLong() bool {
	return d.most > 0 && d.started >= d.most || workflow.GetInfo(d.ctx).GetContinueAsNewSuggested()
}

// take takes the next range.
func (d *dealer) take() span {
	if len(d.Rest) > 0 {
		s := d.Rest[0]
		d.Rest = slices.Delete(d.Rest, 0, 1)
		return s
	}
	s := span{From: d.Next, To: min(d.Next+d.per, d.total)}
	d.Next = s.To
	return s
}

// perform runs an activity, and reports whether it has returned a result. Temporal makes the retries.
func (d *dealer) perform(ctx workflow.Context, name string, input, result any) bool {
	err := workflow.ExecuteActivity(ctx, name, input).Get(ctx, result)
	_, failed := errors.AsType[*temporal.ActivityError](err)
	switch {
	case err == nil:
		return true
	case temporal.IsCanceledError(err):
	case failed: // somebody has failed the activity, such as with the CLI
		d.pause(ctx, cut("an activity has failed: "+err.Error()))
	default: // this worker cannot read the result, but another worker may
		panicUnreadable(err)
	}
	return false
}

// panicUnreadable fails the workflow task, so that the server gives it to another worker.
func panicUnreadable(err error) {
	panic("temporalpayvault: this worker cannot read what a client or another worker has written: " + err.Error())
}

// after follows the report of an activity: it pauses the job, or waits.
func (d *dealer) after(ctx workflow.Context, e ending) {
	d.pause(ctx, e.Stop)
	if e.Wait > 0 {
		_, _ = workflow.AwaitWithTimeout(ctx, e.Wait, d.isLong) // returns an error when the job pauses
	}
}

// orDefault returns n, or instead if n is not positive.
func orDefault[T int | time.Duration](n, instead T) T {
	if n > 0 {
		return n
	}
	return instead
}
