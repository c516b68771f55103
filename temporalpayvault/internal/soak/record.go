package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/temporalpayvault"
)

// recordHistories runs small jobs and exports, and writes the histories of their runs for the replay tests of
// temporalpayvault.
func (w *world) recordHistories(ctx context.Context) error {
	w.cards = 1250
	a, err := w.activities(ctx)
	if err != nil {
		return err
	}
	patience := payvault.RetryPolicy{MaxAttempts: 2, MaxRetryAfter: time.Second}
	if a.Client, err = payvault.NewClient(w.url, w.key, payvault.WithRetryPolicy(patience)); err != nil {
		return err
	}
	worker.SetStickyWorkflowCacheSize(0) // with a cache, histories would have a queue with the name of this machine
	here := worker.New(w.client, queue, worker.Options{Identity: "soak"})
	temporalpayvault.Register(here, a)
	if err := here.Start(); err != nil {
		return err
	}
	defer here.Stop()
	for _, job := range []func(context.Context) error{
		w.recordBrake, w.recordOperator, w.recordWait, w.recordFailed, w.recordCanceled, w.recordExports,
	} {
		if err := job(ctx); err != nil {
			return err
		}
	}
	return nil
}

// small returns a job of 13 batches. The job takes a few seconds. Its workflow continues as new once.
func (w *world) small(part string) temporalpayvault.Job {
	job := w.jobOf(part)
	job.BatchesPerActivity, job.Concurrency, job.InFlight, job.ActivitiesPerRun = 1, 2, 1, 8
	job.RequestsPerSecond = 10
	return job
}

// begin starts a workflow.
func (w *world) begin(ctx context.Context, id string, workflow, input any) (client.WorkflowRun, error) {
	return w.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, workflow, input)
}

// untilPaused waits until a workflow is paused, calls the function mend, and resumes the workflow.
func (w *world) untilPaused(ctx context.Context, id string, mend func()) error {
	for wait(ctx, 10*time.Millisecond) {
		value, err := w.client.QueryWorkflow(ctx, id, "", temporalpayvault.QueryProgress)
		if err != nil {
			return err
		}
		var progress struct{ Paused string }
		if err := value.Get(&progress); err != nil {
			return err
		}
		if progress.Paused != "" {
			break
		}
	}
	mend()
	return w.update(ctx, id, temporalpayvault.UpdateResume)
}

// recordBrake records the history of a job that pauses because batches are refused.
func (w *world) recordBrake(ctx context.Context) error {
	const id = "brake"
	fault := payvaulttest.Fault{Operation: opSubmit, Kind: payvaulttest.OtherCode, Code: 7, Skip: 3}
	mend, err := w.emulator.Inject(fault)
	if err != nil {
		return err
	}
	job := w.small(id)
	job.MaxBad = 3
	run, err := w.begin(ctx, id, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	return errors.Join(w.untilPaused(ctx, id, mend), run.Get(ctx, nil), w.keep(ctx, id))
}

// recordOperator records the history of a job that is paused and resumed by hand.
func (w *world) recordOperator(ctx context.Context) error {
	const id = "operator"
	run, err := w.begin(ctx, id, temporalpayvault.SubmitCards, w.small(id))
	if err != nil {
		return err
	}
	w.untilCommitted(ctx, 3)
	err = w.update(ctx, id, temporalpayvault.UpdatePause)
	return errors.Join(err, w.untilPaused(ctx, id, func() {}), run.Get(ctx, nil), w.keep(ctx, id))
}

// untilCommitted waits until the service has performed n more batches.
func (w *world) untilCommitted(ctx context.Context, n int) {
	before := w.emulator.Commits(opSubmit)
	for w.emulator.Commits(opSubmit) < before+n && wait(ctx, time.Millisecond) {
	}
}

// recordWait records the history of a job that has sent some batches when the service asks for a wait.
func (w *world) recordWait(ctx context.Context) error {
	const id = "wait"
	fault := payvaulttest.Fault{Operation: opSubmit, Kind: payvaulttest.RateLimit, RetryAfter: "2", Skip: 5, Times: 1}
	if _, err := w.emulator.Inject(fault); err != nil {
		return err
	}
	job := w.small(id)
	job.BatchesPerActivity = 4
	run, err := w.begin(ctx, id, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	return errors.Join(run.Get(ctx, nil), w.keep(ctx, id))
}

// recordFailed makes the running activities of a job fail, as an operator can do with the CLI of Temporal. It records
// the history of the job.
func (w *world) recordFailed(ctx context.Context) error {
	const id = "failed"
	job := w.small(id)
	job.BatchesPerActivity = 5
	run, err := w.begin(ctx, id, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	w.untilCommitted(ctx, 2)
	d, err := w.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	for _, pending := range d.GetPendingActivities() {
		failure := temporal.NewNonRetryableApplicationError("failed by an operator", "Operator", nil)
		err := w.client.CompleteActivityByID(ctx, "default", id, "", pending.GetActivityId(), nil, failure)
		if err != nil {
			return err
		}
	}
	return errors.Join(w.untilPaused(ctx, id, func() {}), run.Get(ctx, nil), w.keep(ctx, id))
}

// recordCanceled records the history of a job that is canceled while activities are running. The activities return
// their reports.
func (w *world) recordCanceled(ctx context.Context) error {
	const id = "canceled"
	job := w.small(id)
	job.BatchesPerActivity = 5
	run, err := w.begin(ctx, id, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	w.untilCommitted(ctx, 3)
	if err := w.client.CancelWorkflow(ctx, id, ""); err != nil {
		return err
	}
	var sum temporalpayvault.Summary
	canceled, ok := errors.AsType[*temporal.CanceledError](run.Get(ctx, nil))
	if !ok || canceled.Details(&sum) != nil || len(sum.NotDone) == 0 {
		return fmt.Errorf("canceled: %+v", sum)
	}
	return w.keep(ctx, id)
}

// recordExports records the histories of two exports. The first export pauses because the key is refused. The second
// export takes two runs.
func (w *world) recordExports(ctx context.Context) error {
	for i := range 25 {
		customer := &payvault.CustomerCreateRequest{ID: fmt.Sprint("c", i), FirmName: "A"}
		if _, err := w.emulator.Client().Customers.Create(ctx, customer); err != nil {
			return err
		}
	}
	fault := payvaulttest.Fault{
		Operation: payvault.OpCustomersList, Kind: payvaulttest.Respond, Status: http.StatusForbidden,
		Body: `{"code":403}`, Skip: 1,
	}
	mend, err := w.emulator.Inject(fault)
	if err != nil {
		return err
	}
	list := temporalpayvault.ExportOptions{Count: pageSize}
	all, err := w.begin(ctx, "customers", temporalpayvault.ExportLists,
		temporalpayvault.ExportJob{Name: "customers", List: list})
	if err != nil {
		return err
	}
	err = errors.Join(w.untilPaused(ctx, "customers", mend), all.Get(ctx, nil), w.keep(ctx, "customers"))
	if err != nil {
		return err
	}
	job := temporalpayvault.ExportJob{
		Name: "transactions", List: list, ListsPerActivity: 3, Concurrency: 2, ActivitiesPerRun: 4,
	}
	w.seed(20, &job)
	each, err := w.begin(ctx, "transactions", temporalpayvault.ExportLists, job)
	if err != nil {
		return err
	}
	return errors.Join(each.Get(ctx, nil), w.keep(ctx, "transactions"))
}

// keep writes the history of each run of a workflow to a file.
func (w *world) keep(ctx context.Context, id string) error {
	events, _, err := w.histories(ctx, id)
	if err != nil {
		return err
	}
	var histories []*historypb.History // the newest run first
	for _, e := range events {
		if e.GetEventId() == 1 {
			histories = append(histories, &historypb.History{})
		}
		last := histories[len(histories)-1]
		last.Events = append(last.Events, e)
	}
	slices.Reverse(histories)
	for i, history := range histories {
		text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
		if err != nil {
			return err
		}
		name := filepath.Join(w.record, fmt.Sprintf("%s-%d.json", id, i+1))
		if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil { //nolint:gosec // no secret
			return err
		}
	}
	return nil
}
