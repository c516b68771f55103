package temporalpayvault

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	workflowSubmit = "SubmitCards"

	defaultBatches  = 100
	maxBatches      = 1000 // more would make the report too large
	defaultInFlight = 4
	defaultMaxBad   = 20

	reasonBad = "too many batches are refused or of unknown outcome"
)

// Job is the input of [SubmitCards].
type Job struct {
	Source   string   // reference to the cards, for the CardSource
	Snapshot Snapshot // describes the cards of Source; the workers compare it with CardSource.Snapshot
	// Name is needed only if several merchants share a journal, or to send the same cards once more. The name of the job
	// in the journal is the checksum of its cards, or Name@checksum if Name is set.
	Name string

	BatchesPerActivity int     // batches of 100 cards; 100 batches if it is not positive, 1,000 at most
	Concurrency        int     // running activities; 4 if it is not positive, 1,000 at most
	InFlight           int     // requests that an activity keeps in flight; 4 if it is not positive
	RequestsPerSecond  float64 // limit for all activities together; retries do not count; no limit if not positive

	// MaxBad is the number of refused batches and batches of unknown outcome at which the job pauses. If it is not
	// positive, it is 20, or Concurrency × InFlight if that is more. MaxBad also limits the requests in flight, because
	// all of them may fail at once. [SubmitCards] lists the other reasons for a pause.
	//
	// Ten batches that one activity sends and that are accepted can offset one refused or unknown batch. So an activity
	// with fewer than ten batches offsets none. A batch without a valid card counts as refused. Batches that an earlier
	// attempt or job has begun and not ended, such as those of a killed worker, count when an activity reports them as
	// unknown. [UpdateResume] sets the count to 0.
	MaxBad int

	CallTimeout      time.Duration // a longer call of the CardSource pauses the job; 5 minutes if not positive
	HeartbeatTimeout time.Duration // longest time between heartbeats of an activity; 30 s if not positive, 1 s at least
	ActivitiesPerRun int           // activities until the workflow continues as new; by default the server decides
}

// Summary is the result of [SubmitCards], and the answer to [QueryProgress] while the workflow runs. Batch i has the
// cards 100 × i to 100 × i + 99 of the snapshot. If the outcome of a batch becomes known after the batch was reported
// as unknown, only the journal has the outcome.
type Summary struct {
	Cards       int `json:"cards"`
	Batches     int `json:"batches"`
	Accepted    int `json:"accepted"`
	Refused     int `json:"refused"`                // batches that the service refused, or that have no valid card
	Unknown     int `json:"unknown"`                // batches that may have been performed; they are not sent again
	FromJournal int `json:"from_journal,omitempty"` // of the batches above, those that an earlier attempt or job sent
	LeftOut     int `json:"left_out,omitempty"`     // cards that cannot be sent; the other cards of their batches are sent

	RefusedBatches []RefusedBatch `json:"refused_batches,omitempty"` // at most 1,000 entries
	UnknownBatches []int          `json:"unknown_batches,omitempty"` // at most 1,000 entries
	InvalidCards   []InvalidCard  `json:"invalid_cards,omitempty"`   // at most 1,000 of the cards that cannot be sent
	NotDone        []Range        `json:"not_done,omitempty"`        // batches of a canceled job that may be unsent

	Paused string `json:"paused,omitempty"` // reason of the pause; "" if the job is not paused
}

// Range is a range of batches. Some of its batches may be done; the journal has their outcomes.
type Range struct {
	From int `json:"from"`
	To   int `json:"to"` // end of the range, not included
}

// jobInput is a job, with the state that a run of the workflow passes to the next run.
type jobInput struct {
	Job

	State struct {
		Summary Summary `json:"summary"`
		Lost    int     `json:"lost,omitempty"`    // sum of report.Lost since the last resume, less what was offset
		Journal string  `json:"journal,omitempty"` // ID of the journal
		dealt
	}
}

// SubmitCards is a workflow that submits all cards of a snapshot to the account updater, in batches of 100. It
// completes when every batch is accepted, refused or of unknown outcome. Batches are sent and completed in any order.
//
// The journal makes sure that no batch is performed twice, even if workers or workflows are killed, reset, retried or
// started again. A job with the same Name and cards under another workflow ID sends only what is still unsent.
//
// The workflow pauses in these cases, and waits for [UpdateResume]. The reason is in [Summary] and in the memo, see
// [MemoPaused].
//
//   - after [UpdatePause],
//   - when too many batches are refused or of unknown outcome, see Job.MaxBad,
//   - when 10 batches in a row of an activity, or 2 × InFlight if that is more, are of unknown outcome,
//   - when the service answers 401 or 403,
//   - when another status from 400 to 499, except 408 and 429, arrives without a code of the service, for example
//     from a proxy,
//   - when the cards do not match the journal,
//   - when the cards do not match the snapshot, and no worker gets the right cards within 4 minutes,
//   - when a call of the CardSource takes longer than CallTimeout, or returns a non-retryable
//     [temporal.ApplicationError],
//   - when the same activity has failed for an hour, for example because all workers have another journal,
//   - when somebody fails an activity by hand, for example with the CLI of Temporal.
//
// After a status of 500 or more, or a 403 without a code, the outcome of the batch is unknown, which counts for
// Job.MaxBad.
func SubmitCards(ctx workflow.Context, job Job) (*Summary, error) {
	return submitCards(ctx, jobInput{Job: job})
}

// submitCards is one run of the workflow. It returns the summary. It returns an error if the workflow has to continue
// as new, if it is canceled, or if its input is invalid.
func submitCards(ctx workflow.Context, in jobInput) (*Summary, error) {
	if in.Snapshot.Cards < 0 || in.Snapshot.Checksum == "" {
		return nil, temporal.NewNonRetryableApplicationError("a job needs the checksum of its cards", "Job", nil)
	}
	j := &cardJob{jobInput: in}
	j.dealer = dealer{
		dealt: &j.State.dealt, total: (in.Snapshot.Cards + batchSize - 1) / batchSize,
		per:         min(orDefault(in.BatchesPerActivity, defaultBatches), maxBatches),
		concurrency: in.Concurrency, most: in.ActivitiesPerRun,
		mayDeal: func() bool { return j.free() > 0 }, resumed: func() { j.State.Lost = 0 },
	}
	err := j.begin(ctx, in.HeartbeatTimeout, func() (*Summary, error) { return j.summary(), nil })
	if err != nil {
		return nil, err
	}
	j.InFlight = orDefault(j.InFlight, defaultInFlight)
	j.MaxBad = orDefault(j.MaxBad, max(defaultMaxBad, j.concurrency*j.InFlight))
	if j.State.Journal == "" {
		j.noteJournal()
	}
	done, err := j.run(j.submit)
	sum := j.summary()
	switch {
	case err != nil:
		for _, s := range append(j.Rest, span{From: j.Next, To: j.total}) {
			if s.From < s.To {
				sum.NotDone = append(sum.NotDone, Range{s.From, s.To})
			}
		}
		return nil, temporal.NewCanceledError(*sum)
	case !done:
		return nil, workflow.NewContinueAsNewError(ctx, workflowSubmit, j.jobInput)
	}
	sum.Paused = "" // there is nothing to resume
	return sum, nil
}

// cardJob is the state of one run of the workflow.
type cardJob struct {
	jobInput
	dealer

	out int // number of permits that the running activities have
}

// noteJournal runs the activity that returns the ID of the journal, and notes the ID. If the activity fails for an
// hour, or somebody fails it by hand, the job pauses. After the pause, noteJournal starts the activity again. It ends
// without the ID if the workflow is canceled.
func (j *cardJob) noteJournal() {
	limited := *workflow.GetActivityOptions(j.ctx).RetryPolicy
	limited.MaximumAttempts = maxAttempts
	ctx := workflow.WithRetryPolicy(j.ctx, limited)
	for !j.perform(ctx, activityJournal, &j.State.Journal) && ctx.Err() == nil {
		_ = workflow.Await(ctx, func() bool { return j.Paused == "" }) // its error is that of ctx
	}
}

// summary returns the summary so far.
func (j *cardJob) summary() *Summary {
	sum := j.State.Summary
	sum.Cards, sum.Batches, sum.Paused = j.Snapshot.Cards, j.total, j.Paused
	return &sum
}

// submit returns a function for the range s. The function runs an activity that submits the range, and returns the part
// of the range that is not done.
func (j *cardJob) submit(s span) func(workflow.Context) span {
	o := j.order(s)
	j.out += o.Permits
	return func(ctx workflow.Context) span {
		var r report
		if j.perform(ctx, activitySubmit, &r, o) {
			s.From = r.Done
			j.State.Summary.add(r)
		}
		j.out -= o.Permits
		j.State.Lost += r.Lost
		if r.Lost == 0 {
			// Every ten accepted batches free one lost permit. The activity has freed its own lost permits, which Regained
			// counts. Its other accepted batches free permits that earlier activities have lost.
			offset := max(0, r.Accepted-r.FromJournal)/acceptedForOne - r.Regained
			j.State.Lost = max(0, j.State.Lost-max(0, offset))
		}
		if j.State.Lost >= j.MaxBad && r.Stop == "" {
			r.Stop = reasonBad
		}
		j.after(ctx, r.ending)
		return s
	}
}

// free returns the number of permits that are not lost, and that no running activity has.
func (j *cardJob) free() int { return j.MaxBad - j.State.Lost - j.out }

// order returns the order for a range. Activities that may run at the same time get equal shares of the permits.
func (j *cardJob) order(s span) order {
	ranges := 1 + len(j.Rest) + (j.total-j.Next+j.per-1)/j.per // s, and those that no activity has
	atWork := min(j.concurrency-j.working+1, ranges)           // working counts this range already
	o := order{
		Job: j.Snapshot.Checksum, JournalID: j.State.Journal, Source: j.Source, Snapshot: j.Snapshot, From: s.From, To: s.To,
		InFlight: j.InFlight, Permits: max(1, j.free()/atWork), Limit: orDefault(j.CallTimeout, defaultCallTimeout),
	}
	if j.Name != "" {
		o.Job = j.Name + "@" + o.Job
	}
	if j.RequestsPerSecond > 0 {
		activities := min(j.concurrency, (j.total+j.per-1)/j.per)
		seconds := min(float64(activities)/j.RequestsPerSecond, day.Seconds())
		o.Interval = time.Duration(seconds * float64(time.Second))
	}
	return o
}

// add adds the results of a report to the summary.
func (s *Summary) add(r report) {
	s.Accepted += r.Accepted
	s.Refused += len(r.Refused)
	s.Unknown += len(r.Unknown)
	s.FromJournal += r.FromJournal
	s.LeftOut += r.LeftOut
	s.InvalidCards = appendSome(s.InvalidCards, r.Invalid)
	s.RefusedBatches = appendSome(s.RefusedBatches, r.Refused)
	s.UnknownBatches = appendSome(s.UnknownBatches, r.Unknown)
}
