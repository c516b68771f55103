package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
	"example.com/payvault/sqlpayvault"
	"example.com/payvault/temporalpayvault"
)

// recordHistories runs small jobs of each kind, and writes the histories of their runs.
func (s *settings) recordHistories(ctx context.Context, _ io.Writer) error {
	s.workers, s.sealed = 0, false
	w, err := s.build(ctx)
	defer w.close()
	if err != nil {
		return err
	}
	if err := w.recordTried(ctx); err != nil {
		return err
	}
	pv, err := s.newPayvault()
	if err != nil {
		return err
	}
	journal, err := sqlpayvault.Open(ctx, s.journal, sqlpayvault.WithoutLease())
	if err != nil {
		return err
	}
	defer journal.Close()                //nolint:errcheck // it has no leases to give up
	worker.SetStickyWorkflowCacheSize(0) // as in work
	for name, journal := range map[string]payvault.Journal{queue: nil, queueWithJournal: journal} {
		here := worker.New(w.client, name, worker.Options{Identity: "soak"})
		temporalpayvault.Register(here, &temporalpayvault.Activities{
			Client: pv, Cards: deck{}, Journal: journal, Subscriptions: numbers{}, Sink: folder(w.dir),
		})
		if err := here.Start(); err != nil {
			return err
		}
		defer here.Stop()
	}
	for _, job := range []func(context.Context) error{
		w.recordUnknown, w.recordKey, w.recordFailed, w.recordCanceled, w.recordReset, w.recordJournal,
		w.recordExports,
	} {
		if err := job(ctx); err != nil {
			return err
		}
	}
	return nil
}

// small is a job that takes some seconds, in two runs.
func small(part string) temporalpayvault.Job {
	return temporalpayvault.Job{
		Source: part + ":1250", BatchesPerActivity: 1, Concurrency: 2, InFlight: 1, ActivitiesPerRun: 8, MaxUnknown: 3,
		RequestsPerSecond: 10,
	}
}

// recordUnknown is of a job that pauses since batches are unknown, and by a signal.
func (w *world) recordUnknown(ctx context.Context) error {
	const id = "unknown"
	lost := payvaulttest.Fault{Operation: opSubmit, Kind: payvaulttest.DropAfterCommit, Times: 3}
	if _, err := w.emulator.Inject(lost); err != nil {
		return err
	}
	run, err := w.start(ctx, id, queue, temporalpayvault.SubmitCards, small(id))
	if err != nil {
		return err
	}
	accepted := func(n int) func(temporalpayvault.Summary) bool {
		return func(s temporalpayvault.Summary) bool { return s.Accepted >= n }
	}
	signal := func(text string) error {
		return w.client.SignalWorkflow(ctx, id, "", temporalpayvault.SignalControl, text)
	}
	return errors.Join(
		w.until(ctx, id, isPaused), signal(temporalpayvault.Resume),
		w.until(ctx, id, accepted(3)), signal(temporalpayvault.Pause),
		w.until(ctx, id, isPaused), signal(temporalpayvault.Resume),
		run.Get(ctx, nil), w.keep(ctx, id))
}

func isPaused(s temporalpayvault.Summary) bool { return s.Paused != "" }

// recordKey is of a job whose key is refused for some time.
func (w *world) recordKey(ctx context.Context) error {
	const id = "key"
	mend, err := w.emulator.Inject(payvaulttest.Fault{
		Operation: opSubmit, Kind: payvaulttest.Respond, Status: http.StatusUnauthorized,
	})
	if err != nil {
		return err
	}
	run, err := w.start(ctx, id, queue, temporalpayvault.SubmitCards, small(id))
	if err != nil {
		return err
	}
	err = w.until(ctx, id, isPaused)
	mend()
	return errors.Join(err, w.client.SignalWorkflow(ctx, id, "", temporalpayvault.SignalControl, temporalpayvault.Resume),
		run.Get(ctx, nil), w.keep(ctx, id))
}

// recordFailed is of a job of which somebody fails an activity.
func (w *world) recordFailed(ctx context.Context) error {
	const id = "failed"
	job := small(id)
	job.MaxUnknown = 100 // its batches become unknown
	run, err := w.start(ctx, id, queue, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	for err = errNone; err != nil && wait(ctx, 10*time.Millisecond); {
		err = w.failOne(ctx, id)
	}
	return errors.Join(err, w.until(ctx, id, isPaused),
		w.client.SignalWorkflow(ctx, id, "", temporalpayvault.SignalControl, temporalpayvault.Resume),
		run.Get(ctx, nil), w.keep(ctx, id))
}

var errNone = errors.New("no activity is at work")

// failOne fails an activity that is at work, as an operator does.
func (w *world) failOne(ctx context.Context, id string) error {
	d, err := w.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	for _, pending := range d.GetPendingActivities() {
		if pending.GetActivityType().GetName() == "payvault.submit" {
			failure := temporal.NewNonRetryableApplicationError("failed by an operator", "Operator", nil)
			return w.client.CompleteActivityByID(ctx, "default", id, "", pending.GetActivityId(), nil, failure)
		}
	}
	return errNone
}

// recordTried is of a job whose activities fail, or are lost with their worker, and are tried again by another one.
func (w *world) recordTried(ctx context.Context) error {
	const id = "tried"
	w.faults = 3 // of a worker that is a child: as many of ten readings fail
	job := small(id)
	job.BatchesPerActivity, job.HeartbeatTimeout, job.MaxUnknown = 3, heartbeat, 100
	first, second := w.child(ctx, childWorker), w.child(ctx, childWorker)
	if err := first.Start(); err != nil {
		return err
	}
	run, err := w.start(ctx, id, queue, temporalpayvault.SubmitCards, job)
	for err == nil && !w.hasAnnounced(ctx, id) && wait(ctx, 10*time.Millisecond) {
	}
	kill(first)
	defer kill(second)
	if err := errors.Join(err, second.Start(), run.Get(ctx, nil), w.keep(ctx, id)); err != nil {
		return err
	}
	histories, err := w.chain(ctx, id)
	failed, lost := false, false
	for _, e := range slices.Concat(histories...) {
		failed = failed || e.GetActivityTaskFailedEventAttributes() != nil
		timeout := e.GetActivityTaskTimedOutEventAttributes().GetFailure().GetTimeoutFailureInfo()
		lost = lost || timeout.GetLastHeartbeatDetails() != nil
	}
	if !failed || !lost {
		err = errors.Join(err, fmt.Errorf("%s: nothing has failed, or no activity was lost: record again", id))
	}
	return err
}

func (w *world) hasAnnounced(ctx context.Context, id string) bool {
	d, err := w.client.DescribeWorkflowExecution(ctx, id, "")
	return err == nil && slices.ContainsFunc(d.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
		return a.GetHeartbeatDetails() != nil
	})
}

// recordCanceled is of a job that is canceled amid its activities, which say what they have done.
func (w *world) recordCanceled(ctx context.Context) error {
	const id = "canceled"
	job, before := small(id), w.emulator.Commits(opSubmit)
	job.BatchesPerActivity = 5
	run, err := w.start(ctx, id, queue, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	for w.emulator.Commits(opSubmit) < before+7 && wait(ctx, time.Millisecond) {
	}
	if err := w.client.CancelWorkflow(ctx, id, ""); err != nil {
		return err
	}
	var sum temporalpayvault.Summary
	canceled, ok := errors.AsType[*temporal.CanceledError](run.Get(ctx, nil))
	if !ok || canceled.Details(&sum) != nil || sum.Accepted != w.emulator.Commits(opSubmit)-before {
		return fmt.Errorf("canceled: %+v", sum)
	}
	return w.keep(ctx, id)
}

// recordReset is of the job before, reset.
func (w *world) recordReset(ctx context.Context) error {
	const id = "canceled"
	tasks, err := w.tasks(ctx, id)
	if err != nil {
		return err
	}
	if err := w.resetFails(ctx, io.Discard, id, tasks[0]); err != nil {
		return err
	}
	events, err := w.events(ctx, id, "")
	return errors.Join(err, w.write("reset", 1, events))
}

// recordJournal is of a job with a journal, and of its cards under another ID.
func (w *world) recordJournal(ctx context.Context) error {
	for _, id := range []string{"journal", "again"} {
		run, err := w.start(ctx, id, queueWithJournal, temporalpayvault.SubmitCards, small("journal"))
		if err != nil {
			return err
		}
		var sum temporalpayvault.Summary
		if err := errors.Join(run.Get(ctx, &sum), w.keep(ctx, id)); err != nil {
			return err
		}
		if known := sum.Earlier == sum.Batches; known != (id == "again") {
			return fmt.Errorf("%s: %+v", id, sum)
		}
	}
	return nil
}

// recordExports is of exports, of which one pauses since the key is refused.
func (w *world) recordExports(ctx context.Context) error {
	pv := w.emulator.Client()
	for i := range 25 {
		customer := &payvault.CustomerCreateRequest{ID: fmt.Sprint("c", i), FirmName: "A"}
		if _, err := pv.Customers.Create(ctx, customer); err != nil {
			return err
		}
	}
	mend, err := w.emulator.Inject(payvaulttest.Fault{
		Operation: payvault.OpCustomersList, Kind: payvaulttest.Respond, Status: http.StatusForbidden,
	})
	if err != nil {
		return err
	}
	w.seed(20)
	list := payvault.ListOptions{Count: 10}
	all, err := w.start(ctx, "customers", queue, temporalpayvault.ExportLists,
		temporalpayvault.ExportJob{Name: "customers", List: list})
	if err != nil {
		return err
	}
	err = w.until(ctx, "customers", isPaused)
	mend()
	resumed := w.client.SignalWorkflow(ctx, "customers", "", temporalpayvault.SignalControl, temporalpayvault.Resume)
	if err := errors.Join(err, resumed); err != nil {
		return err
	}
	each, err := w.start(ctx, "transactions", queue, temporalpayvault.ExportLists, temporalpayvault.ExportJob{
		Name: "transactions", Subscriptions: "20", List: list, ListsPerActivity: 3, Concurrency: 2, ActivitiesPerRun: 4,
	})
	if err != nil {
		return err
	}
	return errors.Join(all.Get(ctx, nil), each.Get(ctx, nil), w.keep(ctx, "customers"), w.keep(ctx, "transactions"))
}

// until waits for progress of a job.
func (w *world) until(ctx context.Context, id string, reached func(temporalpayvault.Summary) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for wait(ctx, 10*time.Millisecond) {
		value, err := w.client.QueryWorkflow(ctx, id, "", temporalpayvault.QueryProgress)
		if err != nil {
			return err
		}
		var sum temporalpayvault.Summary
		if err := value.Get(&sum); err != nil {
			return err
		}
		if reached(sum) {
			return nil
		}
	}
	return ctx.Err()
}

// keep writes the histories of a job.
func (w *world) keep(ctx context.Context, id string) error {
	histories, err := w.chain(ctx, id)
	for i, events := range histories {
		err = errors.Join(err, w.write(id, i+1, events))
	}
	return err
}

func (w *world) write(id string, run int, events []*historypb.HistoryEvent) error {
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&historypb.History{Events: events})
	if err != nil {
		return err
	}
	name := filepath.Join(w.record, fmt.Sprintf("%s-%d.json", id, run))
	return os.WriteFile(name, append(text, '\n'), 0o644) //nolint:gosec // no secret
}
