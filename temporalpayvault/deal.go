package temporalpayvault

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the query and the updates of both workflows. Neither the query nor an update takes an argument.
// [UpdatePause] is refused if the workflow is paused already, and [UpdateResume] is refused if the workflow is not
// paused. A refused update changes nothing. An update with any other name is refused too.
const (
	QueryProgress = "progress" // returns the progress of the workflow, which changes when an activity ends
	// UpdatePause makes the workflow start no more activities. The running activities go on until their next heartbeat,
	// for up to 0.8 × HeartbeatTimeout (24 s by default). Then they finish their requests in flight.
	UpdatePause  = "pause"
	UpdateResume = "resume" // ends the pause, after the running activities have ended
)

// MemoPaused is a key in the memo of a workflow that is paused. Its value is the reason of the pause.
const MemoPaused = "payvault-paused"

const (
	defaultConcurrency = 4
	maxConcurrency     = 1000 // well below the 2,000 pending activities that a server allows a workflow
	defaultHeartbeat   = 30 * time.Second
	leastHeartbeat     = time.Second
	defaultCallTimeout = 5 * time.Minute
	day                = 24 * time.Hour
	maxShortListed     = 100 // largest number of pages in span.Short

	reasonOperator = "by the update " + UpdatePause
)

// span is a range of batches or lists.
type span struct {
	From   int `json:"from"`
	To     int `json:"to"`     // end of the range, not included
	Page   int `json:"page"`   // only in an export: page at which the first list goes on
	Offset int `json:"offset"` // number of records before that page
	// Written is the number of records of that page if the page has been written, or 0. A written page is requested again,
	// because it may be the last page. The service does not document its answer to a request for a page after the last.
	Written  int   `json:"written,omitzero"`
	Promised int   `json:"promised,omitzero"` // the latest totalRecords of the first list; 0 leaves it unchanged
	Short    []int `json:"short,omitempty"`   // pages of the first list that stayed short
	Stayed   int   `json:"stayed,omitzero"`   // number of pages that stayed short, in this list and those before it
}

// at returns s, moved to the given page. The given page must be the page of s or a later page. The pages between the
// two must have no records.
func (s span) at(page int) span {
	if page != s.Page {
		s.Page, s.Offset, s.Written = page, s.Offset+s.Written, 0
	}
	return s
}

// withShort returns s with one more page that stayed short. If the list of these pages is full, the page is only
// counted. If the page is listed already, s is unchanged.
func (s span) withShort(page int) span {
	if slices.Contains(s.Short, page) {
		return s
	}
	s.Stayed++
	if len(s.Short) < maxShortListed {
		s.Short = append(slices.Clone(s.Short), page)
	}
	return s
}

// isBeyond reports whether an activity has made progress. The activity got the span o, and has not done the span s.
func (s span) isBeyond(o span) bool {
	samePage := s.From == o.From && s.Page == o.Page
	return s.From > o.From || s.Page > o.Page || samePage && s.Written > 0 && o.Written == 0 || len(s.Short) > len(o.Short)
}

// dealt is the state that a run of a workflow passes to the next run when the workflow continues as new.
type dealt struct {
	Next   int    `json:"next"`             // the first batch or list that no activity has got yet
	Rest   []span `json:"rest,omitempty"`   // ranges that activities got and did not finish
	Paused string `json:"paused,omitempty"` // reason of the pause; "" if the job is not paused
}

// dealer gives ranges of batches or lists to activities, limits the number of running activities, and pauses the job.
type dealer struct {
	*dealt

	total       int         // number of batches or lists
	per         int         // number of batches or lists in a range
	concurrency int         // largest number of running activities
	most        int         // largest number of ranges in a run of the workflow; if 0, the server decides
	mayDeal     func() bool // reports whether another activity may get a range
	resumed     func()      // called when a pause ends

	ctx     workflow.Context
	acts    workflow.Context // context of the activities; a pause cancels it
	cancel  workflow.CancelFunc
	started int
	working int
}

// begin sets the options of the activities, and registers the handlers of the query and the updates.
func (d *dealer) begin(ctx workflow.Context, heartbeat time.Duration, progress any) error {
	d.concurrency = min(orDefault(d.concurrency, defaultConcurrency), maxConcurrency)
	d.ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 30 * day, // long, because heartbeats detect a lost worker
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

// pause pauses the job and cancels its activities. It does nothing if the job is paused already or if the reason is
// empty.
func (d *dealer) pause(ctx workflow.Context, reason string) {
	if d.Paused != "" || reason == "" {
		return
	}
	d.Paused = reason
	d.cancel()
	d.mark(ctx, reason)
	workflow.GetLogger(ctx).Warn("payvault: the job has paused", "reason", reason)
}

// resume ends the pause. It first waits until the running activities have ended, so that an error from before the pause
// does not pause the job again.
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

// mark sets MemoPaused in the memo to the reason. If the reason is nil, mark removes MemoPaused.
func (d *dealer) mark(ctx workflow.Context, reason any) {
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoPaused: reason}); err != nil {
		workflow.GetLogger(ctx).Warn("payvault: the memo of the job cannot be set", "error", err)
	}
}

// run gives ranges to activities until all ranges are done, and returns true. It returns false if the workflow has to
// continue as new before that. If the workflow is canceled, run waits for the running activities and returns an error.
//
// The argument deal gets a range, and returns a function that runs an activity for the range. This function runs in a
// coroutine, and returns the part of the range that is not done.
func (d *dealer) run(deal func(span) func(workflow.Context) span) (bool, error) {
	for {
		err := workflow.Await(d.ctx, func() bool { return d.mayStart() || d.mayEnd() })
		if err != nil { // canceled: the running activities return their reports
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

// hasWork reports whether a range waits for an activity.
func (d *dealer) hasWork() bool { return len(d.Rest) > 0 || d.Next < d.total }

// mayStart reports whether another activity may start now.
func (d *dealer) mayStart() bool {
	return d.Paused == "" && d.working < d.concurrency && d.hasWork() && !d.isLong() && d.mayDeal()
}

// mayEnd reports whether this run of the workflow may end: no activity or handler is running, and either all ranges are
// done or the workflow has to continue as new.
func (d *dealer) mayEnd() bool {
	return d.working == 0 && (!d.hasWork() || d.isLong()) && workflow.AllHandlersFinished(d.ctx)
}

// isLong reports whether this run has started so many activities, or has so long a history, that the workflow has to
// continue as new.
func (d *dealer) isLong() bool {
	return d.most > 0 && d.started >= d.most || workflow.GetInfo(d.ctx).GetContinueAsNewSuggested()
}

// take returns the next range. A range that an activity did not finish comes before a new range.
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

// perform runs an activity, and reports whether the activity has returned a result. Temporal makes the retries.
func (d *dealer) perform(ctx workflow.Context, name string, result any, input ...any) bool {
	err := workflow.ExecuteActivity(ctx, name, input...).Get(ctx, result)
	_, failed := errors.AsType[*temporal.ActivityError](err)
	switch {
	case err == nil:
		return true
	case temporal.IsCanceledError(err):
	case failed: // its attempts are used up, or somebody has failed it by hand, such as with the CLI of Temporal
		d.pause(ctx, cut("an activity has failed: "+err.Error()))
	default: // this worker cannot read the result, but another worker may
		panicUnreadable(err)
	}
	return false
}

// panicUnreadable fails the workflow task with a panic, so that the server gives the task to another worker.
func panicUnreadable(err error) {
	panic("temporalpayvault: this worker cannot read what a client or another worker has written: " + err.Error())
}

// after does what the report of an activity asks for: it pauses the job, or waits.
func (d *dealer) after(ctx workflow.Context, e ending) {
	d.pause(ctx, e.Stop)
	if e.Wait > 0 {
		_, _ = workflow.AwaitWithTimeout(ctx, e.Wait, d.isLong) // a pause ends the wait with an error
	}
}

// orDefault returns n if it is positive, and otherwise the default.
func orDefault[T int | time.Duration](n, instead T) T {
	if n > 0 {
		return n
	}
	return instead
}
