package temporalpayvault

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the query and of the signal of both workflows.
const (
	QueryProgress = "progress" // answers with what the workflow would return; grows when an activity ends
	SignalControl = "control"  // has Pause or Resume for its input: signals of one name are taken in their order
)

// What [SignalControl] says. Anything else is ignored.
const (
	Pause  = "pause"  // hands out nothing more; what is in flight goes on to its end
	Resume = "resume" // goes on, also after a pause of the workflow's own
)

const (
	defaultConcurrency = 8
	maxConcurrency     = 1000 // a server lets a workflow have 2,000 activities
	defaultHeartbeat   = 30 * time.Second
	leastHeartbeat     = time.Second
	day                = 24 * time.Hour
	fewTries           = 6      // without progress; the last of them waits for half a minute
	maxRedo            = 1000   // spans that have failed, for what a run hands to the next one to stay small
	maxPending         = 20_000 // of what activities in flight have in their heartbeats, which a server keeps in 8 MB

	bySignal    = "by a signal"
	stopFailing = "too many parts fail each time"

	unreadable = "this worker cannot read what another one, or a client, has encrypted"
)

// span is a range of what a workflow hands out to its activities: batches, or lists.
type span struct {
	From int  `json:"f"`
	To   int  `json:"t"`           // not included
	Lost bool `json:"l,omitempty"` // no activity has reported them: some may have been sent

	// Of an export: where in its first list it begins.
	Page   int `json:"p,omitempty"`
	Offset int `json:"o,omitempty"`

	// Of what activities have failed at.
	Tries int       `json:"n,omitempty"` // since the last that made progress
	Due   time.Time `json:"d,omitzero"`  // when it is to be tried again
}

// carried is what a run of a workflow hands to the next one when it continues as new.
type carried struct {
	Next int    `json:"next"` // was not handed out yet
	Redo []span `json:"redo,omitempty"`
	Mark int    `json:"mark,omitempty"` // unknown batches that do not count: before the last resume, or of another job
	Row  int    `json:"row,omitempty"`  // refused batches in a row, since the last resume
}

// dispatch hands out spans, some at a time, until there are none, and pauses.
type dispatch struct {
	*carried

	total       int
	per         int     // of total in a span
	concurrency int     // spans in flight
	most        int     // spans in a run; 0 for as many as the server wants
	paused      *string // why; "" if it is not
	failure     *string // of the activity that ended last; "" if it succeeded
	resumed     func()

	resumes  int
	started  int
	inFlight int
	failed   error
}

// run has spans done by do, which returns what is left of one, and reports whether that were all. If not, the workflow
// is to continue as new.
func (d *dispatch) run(ctx workflow.Context, do func(workflow.Context, span) []span) (bool, error) {
	for {
		err := workflow.Await(ctx, func() bool {
			d.receive(ctx)
			return d.mayStart(ctx) || d.mayEnd(ctx)
		})
		if err != nil { // canceled: so are the activities in flight, which report what they have done
			cleanup, cancel := workflow.NewDisconnectedContext(ctx)
			defer cancel()
			return false, errors.Join(err, workflow.Await(cleanup, func() bool { return d.inFlight == 0 }))
		}
		if d.mayEnd(ctx) {
			if !d.hasWork() {
				*d.paused, *d.failure = "", "" // there is nothing to resume
			}
			return !d.hasWork(), d.failed
		}
		s := d.take()
		d.inFlight++
		resumes := d.resumes
		workflow.Go(ctx, func(ctx workflow.Context) {
			left := []span{s}
			if d.isDue(ctx, s) {
				left = do(ctx, s)
			}
			if len(left) > 0 {
				d.isDue(ctx, left[0]) // all of them are at the same time
			}
			d.Redo = append(d.Redo, left...)
			if len(left) > 0 && left[0].Tries > fewTries && len(d.Redo) > maxRedo {
				d.stop(ctx, stopFailing, resumes)
			}
			d.inFlight--
		})
	}
}

// isDue waits until a span is due, and reports whether it may be done then. It waits in the place of an activity, so
// that not all spans of a job fail for the same reason, one after the other.
func (d *dispatch) isDue(ctx workflow.Context, s span) bool {
	wait := s.Due.Sub(workflow.Now(ctx))
	if wait <= 0 {
		return true
	}
	ends := func() bool {
		return *d.paused != "" || d.failed != nil || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	}
	_, err := workflow.AwaitWithTimeout(ctx, wait, ends)
	return err == nil && !ends()
}

// begin runs the activity whose result says what there is to hand out, again after a pause if it fails for good. It
// returns an error if the workflow was canceled.
func (d *dispatch) begin(ctx workflow.Context, activity, ref string, result any) error {
	for {
		err := perform(ctx, activity, ref, result)
		if err == nil || temporal.IsCanceledError(err) {
			return err
		}
		d.pause(ctx, "it cannot begin: "+err.Error())
		err = workflow.Await(ctx, func() bool {
			d.receive(ctx)
			return *d.paused == ""
		})
		if err != nil {
			return err
		}
	}
}

// left is what was not handed out, or not done.
func (d *dispatch) left() []Range {
	var left []Range
	for _, s := range d.Redo {
		left = append(left, Range{s.From, s.To, s.Lost})
	}
	if d.Next < d.total {
		left = append(left, Range{From: d.Next, To: d.total})
	}
	return left
}

// pause keeps the first reason.
func (d *dispatch) pause(ctx workflow.Context, reason string) {
	if *d.paused != "" || reason == "" {
		return
	}
	*d.paused = reason
	workflow.GetLogger(ctx).Warn("payvault: the job has paused", "reason", reason)
}

// receive takes the signals that have come.
func (d *dispatch) receive(ctx workflow.Context) {
	signals := workflow.GetSignalChannel(ctx, SignalControl)
	for n := signals.Len(); n > 0; n-- {
		var raw converter.RawValue
		var control string
		ok := signals.ReceiveAsync(&raw) // which drops what it cannot read
		err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &control)
		if !ok || signals.Len() != n-1 || errors.Is(err, converter.ErrEncodingIsNotSupported) {
			panic("temporalpayvault: " + unreadable)
		}
		switch control {
		case Pause:
			d.pause(ctx, bySignal)
		case Resume:
			*d.paused = ""
			d.resumes++
			d.resumed()
		}
	}
}

// stop pauses since an activity wants it, if there is a reason. One that was started before the last resume does not
// know what has been mended.
func (d *dispatch) stop(ctx workflow.Context, reason string, resumes int) {
	if resumes == d.resumes {
		d.pause(ctx, reason)
	}
}

func (d *dispatch) hasWork() bool { return len(d.Redo) > 0 || d.Next < d.total }

func (d *dispatch) enough(ctx workflow.Context) bool {
	return d.most > 0 && d.started >= d.most || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

func (d *dispatch) mayStart(ctx workflow.Context) bool {
	return d.inFlight < d.concurrency && d.failed == nil && *d.paused == "" && d.hasWork() && !d.enough(ctx)
}

func (d *dispatch) mayEnd(ctx workflow.Context) bool {
	return d.inFlight == 0 && (d.failed != nil || !d.hasWork() || d.enough(ctx))
}

// take prefers what is to be done again, but what fails each time does not hold up what has not been tried.
func (d *dispatch) take() span {
	d.started++
	i := slices.IndexFunc(d.Redo, func(s span) bool { return s.Tries <= fewTries })
	if i < 0 && d.Next < d.total {
		s := span{From: d.Next, To: min(d.Next+d.per, d.total)}
		d.Next = s.To
		return s
	}
	i = max(i, 0)
	s := d.Redo[i]
	d.Redo = slices.Delete(d.Redo, i, i+1)
	return s
}

// perform runs an activity. A result that cannot be read must not be decided on, since other workers can read it: the
// panic fails the task of the workflow, and the server gives it out again.
func perform(ctx workflow.Context, activity string, input, result any) error {
	err := workflow.ExecuteActivity(ctx, activity, input).Get(ctx, result)
	if _, failed := errors.AsType[*temporal.ActivityError](err); err == nil || failed || temporal.IsCanceledError(err) {
		return err
	}
	panic("temporalpayvault: " + unreadable + ": " + err.Error())
}

// reported reads what an activity that has failed had come to, from the details of its failure, or from the last
// heartbeat of one that was lost, and reports whether that is known. One that was lost without a heartbeat had come to
// nothing.
func reported(err error, result any) bool {
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return !timeout.HasLastHeartbeatDetails() || isRead(timeout.LastHeartbeatDetails(result))
	}
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.HasDetails() && isRead(app.Details(result))
}

func isRead(err error) bool {
	if err != nil && !errors.Is(err, converter.ErrUnableToDecode) { // which it is of what was typed by hand
		panic("temporalpayvault: " + unreadable + ": " + err.Error())
	}
	return err == nil
}

// ended considers how an activity has ended, and what it has left of a span. If it has failed, and it is known what it
// had come to, the rest is tried again later, by a new activity: the server refuses for good what comes late from the
// one before. If that is not known, the job pauses.
func (d *dispatch) ended(ctx workflow.Context, s span, err error, known bool, left []span) {
	app, _ := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		*d.failure = ""
	case temporal.IsCanceledError(err):
	case known:
		*d.failure = "a worker was lost"
		wait := min(time.Second<<min(s.Tries, 6), time.Minute)
		if app != nil {
			*d.failure = app.Message()
			wait = orDefault(app.NextRetryDelay(), wait)
		}
		tries := s.Tries + 1
		if s.progress(left) {
			tries = 0
		}
		for i := range left {
			left[i].Tries, left[i].Due = tries, workflow.Now(ctx).Add(wait)
		}
	case app != nil && app.Type() == TypeReset:
		d.failed = err
	default:
		d.pause(ctx, "an activity has failed: "+err.Error())
	}
}

// progress reports whether less is left of a span.
func (s span) progress(left []span) bool {
	n := s.To - s.From
	for _, l := range left {
		n -= l.To - l.From
	}
	return n > 0 || len(left) > 0 && left[0].Page > s.Page
}

// withActivities sets how activities are run. A lost worker is told by its heartbeat; an attempt that makes progress
// may take long.
func withActivities(ctx workflow.Context, heartbeat, least time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: day + least,
		HeartbeatTimeout:    max(orDefault(heartbeat, defaultHeartbeat), leastHeartbeat),
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
	})
}

// startedOnce has the server not start an activity again that was lost; see ended. Nor does it after a failure
// with a report, which is not retryable. What is left to the server are failures before an activity has begun, as on a
// worker that cannot read the input.
func startedOnce(ctx workflow.Context) workflow.Context {
	return workflow.WithRetryPolicy(ctx, temporal.RetryPolicy{
		InitialInterval: time.Second, MaximumInterval: time.Minute,
		NonRetryableErrorTypes: []string{"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"},
	})
}

// perActivity is how many batches or lists an activity has.
func perActivity(wanted, standard, concurrency int) int {
	return min(orDefault(wanted, standard), maxBatches, maxPending/concurrency)
}

// orDefault returns n, or what stands in for it if it is not positive.
func orDefault[T int | time.Duration](n, instead T) T {
	if n > 0 {
		return n
	}
	return instead
}
