package temporalpayvault

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
)

// CardSource gives the workers the cards that a job only refers to: a reference stands for a snapshot, whose cards and
// their order never change while a job of it runs. It is called concurrently. What its errors say is left out of
// histories and logs, since it may quote a card: log what you need. Only of a [temporal.ApplicationError] the message,
// cut after 1,000 bytes, and the type are kept; a codec encrypts the message, and leaves the type as it is. What fails
// is tried again until it succeeds; a non-retryable ApplicationError has the job pause.
type CardSource interface {
	// Snapshot describes what a reference stands for. It is called once for a job, and again after each call of Cards:
	// a job whose snapshot has changed sends nothing of what it has read, and pauses. So it has to be cheap: one that
	// reads all cards each time reads them once for each activity.
	Snapshot(ctx context.Context, ref string) (Snapshot, error)
	// Cards returns the cards from position start to position end, which is not included.
	Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error)
}

// Snapshot is what a reference to cards stands for.
type Snapshot struct {
	Cards    int    `json:"cards"`    // how many there are
	Checksum string `json:"checksum"` // another one for other cards or another order: required; gives no card away; no @
}

// Activities are what a worker needs. The journal and whatever the workflows it runs do not use may be nil.
type Activities struct {
	Client        *payvault.Client
	Cards         CardSource
	Journal       payvault.Journal // shared by all workers, see SubmitCards; of sqlpayvault only one WithoutLease
	Subscriptions SubscriptionSource
	Sink          Sink

	record func(context.Context, any) error // of tests: the SDK's test environments have no client for activities
}

const (
	activitySnapshot = "payvault.snapshot"
	activitySubmit   = "payvault.submit"
	activityRecord   = "payvault.record"
	activityCount    = "payvault.count"
	activityExport   = "payvault.export"
)

// Register registers the workflows and activities of this package with a worker, once. Merchants whose clients have
// different keys each need a worker with a task queue of its own; many of them fit in one process.
func Register(r worker.Registry, a *Activities) {
	r.RegisterWorkflow(SubmitCards)
	r.RegisterWorkflow(ExportLists)
	for name, f := range map[string]any{
		activitySnapshot: a.snapshot, activitySubmit: a.submit, activityRecord: a.enter,
		activityCount: a.count, activityExport: a.export,
	} {
		r.RegisterActivityWithOptions(f, activityOptions(name))
	}
}

// Job is the input of [SubmitCards].
type Job struct {
	Source string // reference of the cards, for the CardSource
	Name   string // with the checksum it names the cards in the journal, for a service and merchant; Source if empty

	// Batches of 100 cards each; 50 if it is not positive. A heartbeat holds them all, so they are 5,000 at most, and
	// 20,000 in all activities in flight.
	BatchesPerActivity int
	Concurrency        int     // activities in flight; 8 if it is not positive, 1,000 at most
	InFlight           int     // requests that an activity keeps in flight; 4 if it is not positive
	RequestsPerSecond  float64 // of all activities, without retries after 429; 0 for no limit but that of the service

	MaxUnknown       int           // pauses at about so many batches of unknown outcome; 100 if it is not positive
	HeartbeatTimeout time.Duration // a worker that is silent for so long is lost; 30 s if not positive, 1 s at least
	ActivitiesPerRun int           // continues as new after so many; by default when the server suggests it

	State *JobState // of the runs before: leave it nil
}

// JobState is what a run of a job hands to the next one when it continues as new.
type JobState struct {
	Snapshot Snapshot `json:"snapshot"`
	Summary  Summary  `json:"summary"`
	Journal  bool     `json:"journal,omitempty"` // the worker that began the job had one
	Again    bool     `json:"again,omitempty"`   // this run, or one before, was made by a reset or a retry
	carried
}

// Summary is the result of [SubmitCards], and while it runs the answer to [QueryProgress].
type Summary struct {
	Cards    int `json:"cards"`
	Batches  int `json:"batches"` // of 100 cards; the last may have fewer
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"` // by the service, or by a local check
	Unknown  int `json:"unknown"` // may have been performed; not sent again
	Earlier  int `json:"earlier"` // of these, what the journal knew of another job or before a reset: nothing was sent

	RefusedBatches []Outcome `json:"refused_batches,omitempty"` // at most 1,000 of them
	UnknownBatches []int     `json:"unknown_batches,omitempty"` // at most 1,000 of them
	Left           []Range   `json:"left,omitempty"`            // of a job that was canceled: not sent, unless Lost

	Paused      string `json:"paused,omitempty"`       // why; "" if it is not
	LastFailure string `json:"last_failure,omitempty"` // of the last activity to end, tried again; "" if it succeeded
}

// Range is a range of batches.
type Range struct {
	From int  `json:"from"`
	To   int  `json:"to"`             // not included
	Lost bool `json:"lost,omitempty"` // no activity has reported them: some may have been sent
}

// Outcome is what came of a batch.
type Outcome struct {
	Batch      int                  `json:"b"`           // zero-based: cards 100 × Batch to 100 × Batch + 99
	Status     payvault.BatchStatus `json:"s"`           // accepted, refused or unknown
	RequestID  string               `json:"r,omitempty"` // if it was accepted; cleared of what may be a card number
	StatusCode int                  `json:"h,omitempty"` // HTTP status of a refusal
	Code       string               `json:"c,omitempty"` // platform code of a refusal
	Reason     string               `json:"m,omitempty"` // of a refusal, cleared as errors are; cut after 200 bytes
	Earlier    bool                 `json:"e,omitempty"` // the journal knew it, of another job or before a reset
}

const (
	defaultBatches    = 50
	maxBatches        = 5000 // some 100 bytes each in a heartbeat, 400 at most; a payload may have 2 MB
	defaultInFlight   = 4
	defaultMaxUnknown = 100
	maxListed         = 1000
)

// SubmitCards is a workflow that submits all cards of a snapshot to the account updater, in batches of 100, each at
// most once. It returns when every batch is accepted, refused or unknown. Batches are neither sent nor decided in
// order.
//
// It pauses until it is told to [Resume], with the reason in [Summary], after [Pause], when the service answers 401 or
// 403 (nothing was performed, and the batch is sent again after the pause), when too many batches have become unknown,
// when 10 batches in a row are refused, within an activity or in the order in which activities report, when the
// snapshot has changed, when more than 1,000 parts fail each time, and when an activity fails for good, such as the one
// that asks for the snapshot. Refused batches are not sent again after a pause.
//
// Too many are MaxUnknown since it began or was resumed, or, in one activity, what it may have: 1/Concurrency of what
// was left of MaxUnknown when it was started, and 1 at least. The activities in flight then go on to their end, each
// within its share, but for its requests in flight. So when the service is gone, about MaxUnknown + Concurrency ×
// (1 + 2 × InFlight) batches are unknown at most; twice MaxUnknown plus as many if faults come by and by. What the
// journal knew of another job does not count.
//
// A job is done with a journal if the worker that begins it has one. Otherwise it goes on without one, also on workers
// that have been given one since; a job with a journal pauses on a worker without.
//
// What is lost with a worker, or fails in a way that may pass, is tried again until it succeeds, by another activity:
// after a second, ever more seldom up to once a minute, or when the service says. What has failed 7 times without
// progress is left until the rest was tried. LastFailure in [Summary] says why.
//
// Without a journal, start a job with the ID reuse policy REJECT_DUPLICATE, and without a retry policy or a schedule:
// nothing else knows that its cards were sent. Do not reset the heartbeats of its activities either, since they are
// what knows: whoever does may have batches sent twice. With a journal, the same Name and checksum send nothing again,
// whatever is started: Earlier in [Summary] counts what was known.
func SubmitCards(ctx workflow.Context, job Job) (*Summary, error) {
	if job.State == nil {
		job.State = &JobState{}
	}
	state, sum := job.State, &job.State.Summary
	state.Again = state.Again || isAgain(workflow.GetInfo(ctx))
	err := workflow.SetQueryHandler(ctx, QueryProgress, func() (*Summary, error) { return sum, nil })
	if err != nil {
		return nil, err
	}
	job.setDefaults()
	d := &dispatch{
		carried: &state.carried, per: job.BatchesPerActivity, concurrency: job.Concurrency, most: job.ActivitiesPerRun,
		paused: &sum.Paused, failure: &sum.LastFailure, resumed: func() { state.Mark, state.Row = sum.Unknown, 0 },
	}
	ctx = withActivities(ctx, job.HeartbeatTimeout, 0)
	if sum.Cards == 0 {
		var b beginning
		if err := d.begin(ctx, activitySnapshot, job.Source, &b); err != nil {
			return nil, temporal.NewCanceledError(*sum)
		}
		state.Snapshot, state.Journal = b.Snapshot, b.Journal
		sum.Cards = state.Snapshot.Cards
		sum.Batches = (sum.Cards + batchSize - 1) / batchSize
	}
	ctx = withActivities(ctx, job.HeartbeatTimeout, time.Duration(job.BatchesPerActivity)*job.interval())
	d.total = sum.Batches
	done, err := d.run(ctx, func(ctx workflow.Context, s span) []span {
		resumes := d.resumes
		r, left := job.submit(ctx, d, s)
		d.stop(ctx, r.Stop, resumes)
		if resumes == d.resumes {
			state.Row = refusedInRow(state.Row, r.Outcomes)
		}
		if state.Row >= maxRefused {
			d.stop(ctx, stopRefused, resumes)
		}
		if sum.Unknown-state.Mark >= job.MaxUnknown {
			d.stop(ctx, stopUnknown, d.resumes)
		}
		return left
	})
	switch {
	case temporal.IsCanceledError(err):
		sum.Left = d.left()
		return nil, temporal.NewCanceledError(*sum)
	case err != nil || done:
		return sum, err
	}
	return nil, workflow.NewContinueAsNewError(ctx, SubmitCards, job)
}

// submit has an activity submit a span, counts what it has come to, and returns what is left.
func (j *Job) submit(ctx workflow.Context, d *dispatch, s span) (r report, left []span) {
	state, order := j.State, j.order(ctx, s)
	err := perform(startedOnce(ctx), activitySubmit, order, &r)
	known := err == nil || reported(err, &r)
	_, lost := errors.AsType[*temporal.TimeoutError](err)
	if lost && known {
		r.Left = s.without(r.mentioned()) // what it had not announced was not sent
	} // canceled without a report, it may have sent all: the server does not say whether there was an attempt before
	left = r.redo(s, state.Journal || temporal.IsCanceledError(err))
	state.Summary.add(r.Outcomes)
	state.Mark += r.unknownEarlier()
	d.ended(ctx, s, err, known, left)
	if owed := r.owed(); state.Journal && len(owed) > 0 {
		order.Owed = owed
		_ = perform(ctx, activityRecord, order, nil) // which succeeds, unless it is canceled
	}
	return r, left
}

// isAgain reports whether a run was made by a reset or a retry of another one.
func isAgain(info *workflow.Info) bool {
	return info.Attempt > 1 || info.OriginalRunID != info.WorkflowExecution.RunID && info.OriginalRunID != ""
}

// order is what an activity is to do with a span.
func (j *Job) order(ctx workflow.Context, s span) order {
	sum := &j.State.Summary
	o := order{
		Job: j.journalName(), Source: j.Source, Snapshot: j.State.Snapshot, Span: s,
		Journal: j.State.Journal, InFlight: j.InFlight, Interval: j.interval(),
	}
	left := max(1, j.MaxUnknown-sum.Unknown+j.State.Mark)
	o.MaxUnknown = (left + j.Concurrency - 1) / j.Concurrency // its share
	if !j.State.Again {
		o.Run = workflow.GetInfo(ctx).WorkflowExecution.RunID
	}
	return o
}

// journalName is under what the journal knows the cards: others have another checksum, though the name be the same.
func (j *Job) journalName() string {
	return cmp.Or(j.Name, j.Source) + "@" + j.State.Snapshot.Checksum
}

func (j *Job) setDefaults() {
	j.Concurrency = min(orDefault(j.Concurrency, defaultConcurrency), maxConcurrency)
	j.BatchesPerActivity = perActivity(j.BatchesPerActivity, defaultBatches, j.Concurrency)
	j.InFlight = orDefault(j.InFlight, defaultInFlight)
	j.MaxUnknown = orDefault(j.MaxUnknown, defaultMaxUnknown)
}

// interval is the time between the requests of one activity. Of a small job not all are at work.
func (j *Job) interval() time.Duration {
	if j.RequestsPerSecond <= 0 {
		return 0
	}
	activities := (j.State.Summary.Batches + j.BatchesPerActivity - 1) / j.BatchesPerActivity
	seconds := float64(max(1, min(j.Concurrency, activities))) / j.RequestsPerSecond
	return time.Duration(min(seconds, day.Seconds()) * float64(time.Second))
}

func (s *Summary) add(outcomes []Outcome) {
	for _, o := range outcomes {
		if o.Earlier {
			s.Earlier++
		}
		switch o.Status {
		case payvault.BatchAccepted:
			s.Accepted++
		case payvault.BatchRefused:
			if s.Refused++; len(s.RefusedBatches) < maxListed {
				s.RefusedBatches = append(s.RefusedBatches, o)
			}
		default:
			if s.Unknown++; len(s.UnknownBatches) < maxListed {
				s.UnknownBatches = append(s.UnknownBatches, o.Batch)
			}
		}
	}
}
