package temporalpayvault

import (
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Register registers the workflows and activities of this package with a worker. Call it once for each worker. Register
// panics if the Activities have Cards and no Journal. All activities of a worker use the same Client. So each merchant
// with an API key of its own needs its own worker and task queue.
func Register(r worker.Registry, a *Activities) {
	if a.Cards != nil && a.Journal == nil {
		panic("temporalpayvault: Cards need a Journal, because nothing else knows which of them were sent")
	}
	r.RegisterWorkflowWithOptions(readable(submitCards), workflow.RegisterOptions{Name: workflowSubmit})
	r.RegisterWorkflowWithOptions(readable(exportLists), workflow.RegisterOptions{Name: workflowExport})
	r.RegisterActivityWithOptions(a.journalID, activity.RegisterOptions{Name: activityJournal})
	r.RegisterActivityWithOptions(a.submit, activity.RegisterOptions{Name: activitySubmit})
	r.RegisterActivityWithOptions(a.export, activity.RegisterOptions{Name: activityExport})
}

// readable returns a workflow that decodes its input and calls run. If the input is not valid JSON of type I, the
// workflow fails. If the worker cannot decrypt the input, only the workflow task fails, and another worker gets it.
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
