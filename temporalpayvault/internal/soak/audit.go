package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"example.com/payvault"
	"example.com/payvault/temporalpayvault"
)

// errTwice is the error of audit when a batch was performed twice.
var errTwice = errors.New("batches were performed twice")

// audit compares what was performed of a part with what its summary says.
func (w *world) audit(out io.Writer, part string, sum temporalpayvault.Summary) error {
	performed := make([]int, sum.Batches)
	for _, r := range w.emulator.AccountUpdaterRequests.All() {
		if card, ok := strings.CutPrefix(r.Cards[0].CardID, part+"-"); ok {
			first, err := strconv.Atoi(card)
			if err != nil {
				return err
			}
			performed[first/batch]++
		}
	}
	status := make([]payvault.BatchStatus, sum.Batches)
	for _, o := range sum.RefusedBatches {
		status[o.Batch] = payvault.BatchRefused
	}
	for _, i := range sum.UnknownBatches {
		status[i] = payvault.BatchUnknown
	}
	twice, lost, wrong, unknown := 0, 0, 0, 0
	for i, n := range performed {
		switch {
		case n > 1:
			twice++
		case status[i] == payvault.BatchUnknown:
			unknown += n
		case status[i] == payvault.BatchRefused:
			wrong += n
		case n == 0:
			lost++
		}
	}
	say(out, "%s: %d batches accepted, %d refused, %d unknown, of which %d were performed; "+
		"performed twice: %d, lost: %d, refused and performed: %d",
		part, sum.Accepted, sum.Refused, sum.Unknown, unknown, twice, lost, wrong)
	if twice > 0 {
		return errTwice
	}
	if lost+wrong > 0 || sum.Accepted+sum.Refused+sum.Unknown != sum.Batches || sum.Cards != w.cards {
		return errors.New("the audit has failed")
	}
	return nil
}

// traces looks for what faults have to leave: batches that are refused, for a reason without the number of the card
// that the service said, and batches of unknown outcome.
func (w *world) traces(sum temporalpayvault.Summary) error {
	if w.faults > 0 && (sum.Unknown == 0 || sum.Refused == 0) {
		return fmt.Errorf("faults have left %d batches unknown and %d refused", sum.Unknown, sum.Refused)
	}
	for _, o := range sum.RefusedBatches {
		if !strings.Contains(o.Reason, declined) || strings.Contains(o.Reason, canary) {
			return fmt.Errorf("batch %d is refused for another reason, or with a card", o.Batch)
		}
	}
	return nil
}

// events returns the history of a run.
func (w *world) events(ctx context.Context, id, run string) (events []*historypb.HistoryEvent, err error) {
	list := w.client.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for list.HasNext() {
		e, err := list.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// chain returns the histories of the first run of a job and of those that go on with it.
func (w *world) chain(ctx context.Context, id string) (histories [][]*historypb.HistoryEvent, err error) {
	for run := w.runs[id]; run != ""; {
		events, err := w.events(ctx, id, run)
		if err != nil {
			return nil, err
		}
		histories = append(histories, events)
		run = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return histories, nil
}

// weigh says how large the histories of a job are.
func (w *world) weigh(ctx context.Context, out io.Writer, id string) error {
	histories, err := w.chain(ctx, id)
	if err != nil {
		return err
	}
	events, size := 0, 0
	for _, history := range histories {
		for _, e := range history {
			events, size = events+1, size+proto.Size(e)
		}
	}
	million := 1e6 / float64(w.cards)
	say(out, "%s: %d runs, %d events, %d bytes; for a million cards %.0f and %.1f MB",
		id, len(histories), events, size, float64(events)*million, float64(size)*million/1e6)
	return nil
}

// tasks returns the events of the first run of a job to which it can be reset.
func (w *world) tasks(ctx context.Context, id string) (tasks []int64, err error) {
	events, err := w.events(ctx, id, w.runs[id])
	for _, e := range events {
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, e.GetEventId())
		}
	}
	return tasks, err
}

// reset resets the first run of a job to an event.
func (w *world) reset(ctx context.Context, id string, event int64) error {
	_, err := w.client.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: w.runs[id]},
		Reason: "soak", RequestId: "reset " + id, WorkflowTaskFinishEventId: event,
	})
	return err
}

// resetFails resets a job without a journal that has ended: it has to fail, and to perform nothing.
func (w *world) resetFails(ctx context.Context, out io.Writer, id string, event int64) error {
	before := w.emulator.Commits(opSubmit)
	if err := w.reset(ctx, id, event); err != nil {
		return err
	}
	err := w.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	performed := w.emulator.Commits(opSubmit) - before
	if performed > 0 || !ok || app.Type() != temporalpayvault.TypeReset {
		return errors.Join(fmt.Errorf("%s: after a reset %d performed", id, performed), err)
	}
	say(out, "%s: reset to event %d it performs nothing: %s", id, event, app.Message())
	return nil
}

// leaks looks for cards in all histories, in the files of the server and of the journal, and in the logs of the
// workers. What is not secret has to be found in each of them.
func (w *world) leaks(ctx context.Context, out io.Writer) error {
	source := w.jobOf("heartbeats").Source
	known := map[string]string{
		"histories": "SubmitCards", w.database(): "SubmitCards", w.journal: w.jobOf("journal").Source,
		w.logs.Name(): "TaskQueue=" + queue,
	}
	texts, err := w.histories(ctx)
	if err != nil {
		return err
	}
	for name, text := range known {
		files, err := filepath.Glob(name + "*") // a database is more than one file
		if err != nil {
			return err
		}
		for _, file := range files {
			part, err := os.ReadFile(file) //nolint:gosec // its own file
			if err != nil {
				return err
			}
			texts[name] = append(texts[name], part...)
		}
		if !slices.Contains(holding(texts, text), name) {
			return fmt.Errorf("%q is not in %s: the search does not see it", text, name)
		}
	}
	for _, secret := range []string{canary, "4111 1111", "heartbeats-1"} { // numbers, and the ID of a card
		if in := holding(texts, secret); len(in) > 0 {
			return fmt.Errorf("%q is in %q", secret, in)
		}
	}
	inputs := holding(texts, source)
	say(out, "no card in %q; the input of a workflow is in %q", slices.Sorted(maps.Keys(texts)), inputs)
	open := slices.Contains(inputs, "histories") && slices.Contains(inputs, w.database())
	if w.sealed && len(inputs) > 0 || !w.sealed && !open {
		return errors.New("a codec has to hide inputs, and nothing else may")
	}
	return nil
}

func holding(texts map[string][]byte, text string) (in []string) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if bytes.Contains(texts[name], []byte(text)) {
			in = append(in, name)
		}
	}
	return in
}

// histories returns those of all runs of all workflows.
func (w *world) histories(ctx context.Context) (texts map[string][]byte, err error) {
	texts = map[string][]byte{}
	for token := []byte(nil); ; {
		list, err := w.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: token})
		if err != nil {
			return nil, err
		}
		for _, x := range list.GetExecutions() {
			events, err := w.events(ctx, x.GetExecution().GetWorkflowId(), x.GetExecution().GetRunId())
			if err != nil {
				return nil, err
			}
			for _, e := range events {
				raw, err := proto.Marshal(e)
				if err != nil {
					return nil, err
				}
				texts["histories"] = append(texts["histories"], raw...)
			}
		}
		if token = list.GetNextPageToken(); len(token) == 0 {
			return texts, nil
		}
	}
}
