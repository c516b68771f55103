// Soak runs SubmitCards on a real server of Temporal against the emulator, with requests that fail, kills workers and
// the server on the way, and audits what was performed and what can be read:
//
//	go run . -temporal ./temporal -cards 100000 -workers 3 -kills 6 -faults 0.12
//
// With -record it runs small jobs instead, and keeps their histories for the replay tests of the module.
//
// "make temporal-soak" builds the server first.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"go.temporal.io/sdk/client"

	"example.com/payvault/temporalpayvault"
)

type settings struct {
	temporal, record      string
	cards, workers, kills int
	faults                float64
	restart, sealed       bool
	job                   temporalpayvault.Job

	address, url, key, journal string // what a child connects to
}

func main() {
	var s settings
	flag.StringVar(&s.temporal, "temporal", "temporal", "the program of the development server")
	flag.StringVar(&s.record, "record", "", "directory to write the histories of small jobs to, and nothing else")
	flag.IntVar(&s.cards, "cards", 100_000, "how many a job has")
	flag.IntVar(&s.workers, "workers", 2, "processes")
	flag.IntVar(&s.kills, "kills", 6, "workers killed in a job")
	flag.Float64Var(&s.faults, "faults", 0.05, "share of requests that fail")
	flag.BoolVar(&s.restart, "restart", true, "kill the server too")
	flag.BoolVar(&s.sealed, "codec", false, "encrypt payloads, in which no card could be found")
	flag.IntVar(&s.job.BatchesPerActivity, "batches", 50, "batches per activity")
	flag.IntVar(&s.job.ActivitiesPerRun, "run", 0, "activities per run; as many as the server wants by default")
	child := flag.String("child", "", "of this program itself: worker, or alone")
	flag.StringVar(&s.address, "address", "", "of the server, for a child")
	flag.StringVar(&s.url, "url", "", "of the emulator, for a child")
	flag.StringVar(&s.key, "key", "", "of the emulator, for a child")
	flag.StringVar(&s.journal, "journal", "", "file of the journal, for a child")
	flag.Parse()
	ctx, run := context.Background(), s.soak
	switch {
	case *child == childWorker:
		run = s.work
	case *child == childAlone:
		run = s.submitAll
	case s.record != "":
		run = s.recordHistories
	}
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }

func (s *settings) soak(ctx context.Context, out io.Writer) error {
	w, err := s.build(ctx)
	defer w.close()
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, io.Writer) error{
		w.alone, w.withoutJournal, w.continued, w.withJournal, w.exports, w.leaks, w.naive,
	} {
		if err := part(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// alone is SubmitAll in one process, for comparison. Nothing fails.
func (w *world) alone(ctx context.Context, out io.Writer) error {
	child := w.child(ctx, childAlone)
	child.Stdout = out
	return child.Run()
}

// withoutJournal is a job that only heartbeats know of. A reset of it sends nothing.
func (w *world) withoutJournal(ctx context.Context, out io.Writer) error {
	const id = "heartbeats"
	sum, err := w.submitted(ctx, out, id, queue, temporalpayvault.SubmitCards)
	if err = errors.Join(err, w.traces(sum)); err != nil {
		return err
	}
	tasks, err := w.tasks(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(w.audit(out, id, sum), w.weigh(ctx, out, id), w.resetFails(ctx, out, id, tasks[0]))
}

// continued resets the first run of a job to its last task, which continues as new: the runs after it send nothing
// either.
func (w *world) continued(ctx context.Context, out io.Writer) error {
	const id = "chain"
	job := w.jobOf(id)
	job.ActivitiesPerRun = max(1, w.cards/batch/job.BatchesPerActivity/2)
	run, err := w.start(ctx, id, queue, temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	if err := run.Get(ctx, nil); err != nil {
		return err
	}
	tasks, err := w.tasks(ctx, id)
	if err != nil {
		return err
	}
	return w.resetFails(ctx, out, id, tasks[len(tasks)-1])
}

// withJournal is a job that a journal knows of, too. Neither a reset of it nor another job of the same cards sends
// anything again; what a frozen worker has told the journal that it did not send is sent then.
func (w *world) withJournal(ctx context.Context, out io.Writer) error {
	const id = "journal"
	sum, err := w.submitted(ctx, out, id, queueWithJournal, temporalpayvault.SubmitCards)
	if err = errors.Join(err, w.traces(sum)); err != nil {
		return err
	}
	tasks, err := w.tasks(ctx, id)
	if err != nil {
		return err
	}
	if err := w.audit(out, id, sum); err != nil {
		return err
	}
	_, err = w.resumed(ctx, out, id, "after a reset", func() (client.WorkflowRun, error) {
		return w.client.GetWorkflow(ctx, id, ""), w.reset(ctx, id, tasks[0])
	})
	if err != nil {
		return err
	}
	anew, err := w.resumed(ctx, out, id, "under another ID", func() (client.WorkflowRun, error) {
		return w.start(ctx, "again", queueWithJournal, temporalpayvault.SubmitCards, w.jobOf(id))
	})
	if err == nil && anew > 0 {
		err = fmt.Errorf("%s: under another ID %d batches were not known", id, anew)
	}
	return err
}

// resumed runs a job whose batches a journal knows, and counts those that it did not know, or knew not to have been
// sent. No others may be performed.
func (w *world) resumed(
	ctx context.Context, out io.Writer, id, how string, start func() (client.WorkflowRun, error),
) (anew int, err error) {
	before := w.emulator.Commits(opSubmit)
	run, err := start()
	if err != nil {
		return 0, err
	}
	var sum temporalpayvault.Summary
	if err := run.Get(ctx, &sum); err != nil {
		return 0, err
	}
	anew, performed := sum.Batches-sum.Earlier, w.emulator.Commits(opSubmit)-before
	say(out, "%s: %s %d batches were sent anew, and %d performed", id, how, anew, performed)
	if performed > anew {
		err = errors.New("batches that the journal knew were performed")
	}
	return anew, errors.Join(err, w.audit(out, id, sum))
}

// naive is the activity that one writes first. The audit has to see what it does, also to fewer cards.
func (w *world) naive(ctx context.Context, out io.Writer) error {
	const id = "naive"
	w.cards, w.kills = min(w.cards, 20_000), min(w.kills, 4)
	sum, err := w.submitted(ctx, out, id, queue, naiveWorkflow)
	if err != nil {
		return err
	}
	if err := w.audit(out, id, sum); !errors.Is(err, errTwice) && w.faults > 0 {
		return errors.New("the audit does not see that the naive activity performs batches twice")
	}
	return nil
}
