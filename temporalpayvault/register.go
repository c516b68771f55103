package temporalpayvault

import (
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
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
