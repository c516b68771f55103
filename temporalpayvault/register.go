package temporalpayvault

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"example.com/payvault"
)

// CardSource gives the workers the cards that a job only refers to. A reference stands for a snapshot: its cards and
// their order never change while a job of it runs.
//
// Its methods are called concurrently. The text of an error is left out of histories and logs, since it may quote a
// card: log what you need. Only of a [temporal.ApplicationError] the message and the type are kept. What fails is
// tried again, for an hour; after a non-retryable ApplicationError the job pauses at once.
type CardSource interface {
	// Snapshot describes what a reference stands for now. It is called after each call of Cards, so it has to be cheap. If
	// the result differs from [Job.Snapshot], nothing of what was read is sent.
	Snapshot(ctx context.Context, ref string) (Snapshot, error)
	// Cards returns the cards from position start to position end, which is not included.
	Cards(ctx context.Context, ref string, start, end int) ([]payvault.AccountUpdaterCard, error)
}

// Snapshot is what a reference to cards stands for.
type Snapshot struct {
	Cards int `json:"cards"` // how many there are
	// Checksum is another one for other cards or another order, such as that of [payvault.JobName], or the version of an
	// object in a store. It is in the history: the plain checksum of a file with few cards gives these away.
	Checksum string `json:"checksum"`
}

// Activities are what a worker needs: Cards and a Journal for [SubmitCards], and a Sink for [ExportLists].
type Activities struct {
	Client  *payvault.Client
	Cards   CardSource
	Journal payvault.Journal // shared by all workers; with sqlpayvault one that was opened WithoutLease
	Sink    Sink
}

const (
	activitySubmit = "payvault.submit"
	activityExport = "payvault.export"
)

// Register registers the workflows and activities of this package with a worker, once. It panics if there are Cards
// and no Journal. A worker has one client: merchants with keys of their own need a worker and a task queue each.
func Register(r worker.Registry, a *Activities) {
	if a.Cards != nil && a.Journal == nil {
		panic("temporalpayvault: Cards need a Journal, since nothing else knows which of them were sent")
	}
	r.RegisterWorkflowWithOptions(readable(submitCards), workflow.RegisterOptions{Name: workflowSubmit})
	r.RegisterWorkflowWithOptions(readable(exportLists), workflow.RegisterOptions{Name: workflowExport})
	r.RegisterActivityWithOptions(a.submit, activity.RegisterOptions{Name: activitySubmit})
	r.RegisterActivityWithOptions(a.export, activity.RegisterOptions{Name: activityExport})
}

// readable decodes the input of a workflow. Where a worker cannot decrypt the input, the SDK would fail the workflow.
// This fails the workflow task, and the server gives the task to another worker. An input that is no JSON of I, such as
// one with a typing error, fails the workflow.
func readable[I, R any](
	run func(workflow.Context, I) (R, error),
) func(workflow.Context, converter.RawValue) (R, error) {
	return func(ctx workflow.Context, raw converter.RawValue) (R, error) {
		var input I
		err := converter.GetDefaultDataConverter().FromPayload(raw.Payload(), &input)
		switch {
		case errors.Is(err, converter.ErrUnableToDecode):
			var none R
			return none, temporal.NewNonRetryableApplicationError("the input cannot be read: "+err.Error(), "Job", nil)
		case err != nil:
			panicUnreadable(err)
		}
		return run(ctx, input)
	}
}

// panicUnreadable fails a workflow task.
func panicUnreadable(err error) {
	panic("temporalpayvault: this worker cannot read what a client or another worker has written: " + err.Error())
}
