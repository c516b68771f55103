// Starter submits the cards of a file to the account updater with a workflow, and prints the progress of the workflow.
// If cards are not accepted, it writes a CSV file with their line numbers. It also exports the transactions of the
// emulator's subscriptions. The comment of ../worker lists the other programs that have to run.
//
//	go run -C examples/temporal ./starter -file "$PWD/november.csv"
//
// A row of the file has the number, the expiration date and the ID of a card: 4111111111111111,1230,card-1. A header
// row is skipped. Rows that cannot be sent are left out, and the first 10 of them are printed with their line numbers.
// Without -file the program makes up cards.
//
// The journal of the workers identifies a file by its contents. If you run this program again with the same file, no
// batch is sent twice. If the workflow of the file is still running, the program prints the progress of this workflow.
// While a workflow runs you can use:
//
//	temporal workflow query --workflow-id cards-november-… --name progress
//	temporal workflow update execute --workflow-id cards-november-… --name pause
//	temporal workflow update execute --workflow-id cards-november-… --name resume
//
// If a workflow is paused, the program prints the reason and ends with exit status 3. Correct the problem, resume the
// workflow, and run the program again with the same file. If the file has changed, restore it first: a changed file is
// another job, which sends all of its cards. Exit status 5 means that not all cards are accepted. Exit status 4 means
// that all cards are accepted and the export is incomplete: the service sent fewer records than it promised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

func main() {
	file := flag.String("file", "", "CSV file of cards, under a path that is the same for the workers")
	flag.Parse()
	err := run(context.Background(), *file, os.Stdout)
	switch {
	case err == nil:
		return
	case errors.Is(err, demo.ErrNoServer):
		demo.Help(os.Stdout, err)
	default:
		fmt.Fprintln(os.Stderr, "starter:", err)
	}
	os.Exit(exitStatus(err, *file))
}

var (
	errPaused      = errors.New("the workflow is paused")
	errIncomplete  = errors.New("the export is incomplete")
	errNotAccepted = errors.New("not all cards are accepted")
)

// exitStatus returns 3 if a workflow is paused, 5 if not all cards are accepted, 4 if only an export lacks records, and
// 1 for any other error. Without a server and without a file it returns 0, because then somebody only tries out the
// program.
func exitStatus(err error, file string) int {
	switch {
	case errors.Is(err, demo.ErrNoServer) && file == "":
		return 0
	case errors.Is(err, errPaused):
		return 3
	case errors.Is(err, errNotAccepted):
		return 5
	case errors.Is(err, errIncomplete):
		return 4
	}
	return 1
}

// run submits the cards of a file, and then exports transactions. If file is "", it makes up a file.
func run(ctx context.Context, file string, out io.Writer) error {
	server, err := demo.Dial(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	if file == "" {
		file = filepath.Join(os.TempDir(), "payvault-cards.csv")
		if err := demo.MakeUp(file, 10_000); err != nil {
			return err
		}
	}
	return submitAndExport(ctx, server, file, out)
}

// submitAndExport submits the cards of a file, and then exports transactions, even if not all cards are accepted. After
// any other error it starts no export, so that the error is printed at once.
func submitAndExport(ctx context.Context, server client.Client, file string, out io.Writer) error {
	err := submit(ctx, server, file, out)
	if err != nil && !errors.Is(err, errNotAccepted) {
		return err
	}
	return errors.Join(err, export(ctx, server, out))
}

// submit submits the cards of a file, and reports the cards that were not accepted. If there are such cards, it returns
// an error that wraps errNotAccepted, unless the workflow was canceled.
func submit(ctx context.Context, server client.Client, file string, out io.Writer) error {
	snapshot, bad, err := demo.Check(ctx, file)
	if err != nil {
		return err
	}
	for _, row := range bad[:min(len(bad), 10)] {
		fmt.Fprintln(out, row)
	}
	if len(bad) > 0 {
		fmt.Fprintf(out, "%d of %d rows cannot be sent, and are left out.\n", len(bad), snapshot.Cards)
	}
	job := temporalpayvault.Job{Source: file, Snapshot: snapshot}
	id := workflowID(file, snapshot)
	// If the workflow is running already, ExecuteWorkflow returns its present run.
	run, err := server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: demo.Queue},
		temporalpayvault.SubmitCards, job)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "submitting", file, "by the workflow", id)
	summary, err := await(ctx, server, run, out, func(s *temporalpayvault.Summary) (progress, paused string) {
		return fmt.Sprintf("%d of %d batches accepted, %d refused, %d unknown", s.Accepted, s.Batches, s.Refused, s.Unknown),
			s.Paused
	})
	canceled, isCanceled := errors.AsType[*temporal.CanceledError](err)
	if isCanceled {
		err = canceled.Details(&summary)
	}
	if err != nil {
		return err
	}
	err = report(file, &summary, out)
	if isCanceled && (err == nil || errors.Is(err, errNotAccepted)) {
		err = fmt.Errorf("the workflow %s was canceled: run this program again to send the other batches", id)
	}
	return err
}

// workflowID returns the name of a file and the start of its checksum, so that a changed file gets another workflow.
func workflowID(file string, s temporalpayvault.Snapshot) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return "cards-" + name + "-" + s.Checksum[:min(len(s.Checksum), 12)]
}

// report prints the result of a file. It writes the line numbers of the cards that were not accepted to a report beside
// the file, and returns an error that wraps errNotAccepted if there are any.
func report(file string, s *temporalpayvault.Summary, out io.Writer) error {
	fmt.Fprintf(out, "%d of %d batches accepted, %d refused, %d unknown, %d cards left out\n",
		s.Accepted, s.Batches, s.Refused, s.Unknown, s.LeftOut)
	name := file + ".not-accepted.csv"
	rows, err := os.Create(name) //nolint:gosec // a file beside the user's own file
	if err != nil {
		return err
	}
	written, err := demo.WriteReport(rows, file, s)
	if err := errors.Join(err, rows.Close()); err != nil {
		return err
	}
	if written == 0 {
		return os.Remove(name)
	}
	if s.Refused > len(s.RefusedBatches) || s.Unknown > len(s.UnknownBatches) || s.LeftOut > len(s.InvalidCards) {
		fmt.Fprintln(out, name, "has the first 1,000 of each kind. The journal knows all refused and unknown batches.")
	}
	return fmt.Errorf("%w: see %s", errNotAccepted, name)
}

// await waits for the result of a workflow. About once a second it asks for the progress, and prints the progress if it
// has changed. If the workflow is paused, await returns an error that wraps errPaused. If the server does not answer,
// await keeps waiting, because the workflow may still run.
func await[S any](
	ctx context.Context, server client.Client, run client.WorkflowRun, out io.Writer,
	describe func(*S) (progress, paused string),
) (result S, err error) {
	printed := ""
	for {
		second, cancel := context.WithTimeout(ctx, time.Second)
		err := run.Get(second, &result)
		if err == nil || ctx.Err() != nil || !isUnanswered(err) {
			cancel()
			return result, err
		}
		<-second.Done()
		cancel()
		progress, paused, err := query(ctx, server, run.GetID(), describe)
		if err != nil {
			progress = "no answer of the server or of a worker: " + err.Error()
		}
		if progress != printed {
			fmt.Fprintln(out, progress)
			printed = progress
		}
		if paused != "" {
			return result, fmt.Errorf("%w: %s: %s", errPaused, run.GetID(), paused)
		}
	}
}

// query asks a worker for the progress of a workflow. It returns the results of describe.
func query[S any](
	ctx context.Context, server client.Client, id string, describe func(*S) (progress, paused string),
) (progress, paused string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	value, err := server.QueryWorkflow(ctx, id, "", temporalpayvault.QueryProgress)
	if err != nil {
		return "", "", err
	}
	var s S
	if err := value.Get(&s); err != nil {
		return "", "", err
	}
	progress, paused = describe(&s)
	return progress, paused, nil
}

// isUnanswered reports whether an error means that the server is unavailable or gave no answer in time.
func isUnanswered(err error) bool {
	_, isLate := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, isAway := errors.AsType[*serviceerror.Unavailable](err)
	return isLate || isAway || errors.Is(err, context.DeadlineExceeded)
}

// export exports the transactions of two subscriptions. If the service sent fewer records than it promised, export
// returns an error that wraps errIncomplete.
func export(ctx context.Context, server client.Client, out io.Writer) error {
	run, err := server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "transactions", TaskQueue: demo.Queue},
		temporalpayvault.ExportLists, temporalpayvault.ExportJob{
			Name: "transactions", Subscriptions: []payvault.SubscriptionID{5001, 5002},
			List: temporalpayvault.ExportOptions{Count: 10},
		})
	if err != nil {
		return err
	}
	s, err := await(ctx, server, run, out, func(s *temporalpayvault.ExportSummary) (progress, paused string) {
		return fmt.Sprintf("%d records of %d subscriptions, in %d pages", s.Records, s.Done, s.Pages), s.Paused
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d records of %d subscriptions, in %d pages\n", s.Records, s.Done, s.Pages)
	for _, list := range s.IncompleteLists {
		fmt.Fprintf(out, "subscription %d: %d of %d records; these pages are short: %v\n",
			list.Subscription, list.Written, list.Promised, list.ShortPages)
	}
	if s.Incomplete > 0 {
		return fmt.Errorf("%w: %d of %d subscriptions lack records", errIncomplete, s.Incomplete, s.Lists)
	}
	return nil
}
