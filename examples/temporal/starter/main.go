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
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

func main() {
	file := flag.String("file", "", "of cards, with a path that the workers find it under")
	flag.Parse()
	err := run(context.Background(), *file, os.Stdout)
	if errors.Is(err, demo.ErrNoServer) {
		demo.Help(os.Stdout, err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

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
	err = submit(ctx, server, file, out)
	return cmp.Or(err, export(ctx, server, out))
}

// submit submits the cards of a file, and reports the cards that were not accepted.
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
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go watch(watching, server, id, out)
	var summary temporalpayvault.Summary
	err = run.Get(ctx, &summary)
	if canceled, ok := errors.AsType[*temporal.CanceledError](err); ok {
		err = canceled.Details(&summary)
	}
	stop()
	if err != nil {
		return err
	}
	return report(file, &summary, out)
}

// workflowID returns the name of a file and the start of its checksum, so that a changed file gets another workflow.
func workflowID(file string, s temporalpayvault.Snapshot) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	return "cards-" + name + "-" + s.Checksum[:min(len(s.Checksum), 12)]
}

// report prints the result of a file. It writes the line numbers of the cards that were not accepted to a report beside
// the file.
func report(file string, s *temporalpayvault.Summary, out io.Writer) error {
	fmt.Fprintf(out, "%d of %d batches accepted, %d refused, %d unknown, %d cards left out\n",
		s.Accepted, s.Batches, s.Refused, s.Unknown, s.LeftOut)
	name := file + ".not-accepted.csv"
	rows, err := os.Create(name) //nolint:gosec // a file beside the user's own file
	if err != nil {
		return err
	}
	lines, err := demo.WriteReport(rows, file, s)
	if err := errors.Join(err, rows.Close()); err != nil {
		return err
	}
	if lines == 0 {
		return os.Remove(name)
	}
	fmt.Fprintln(out, "see", name)
	if s.Refused > len(s.RefusedBatches) || s.Unknown > len(s.UnknownBatches) || s.LeftOut > len(s.InvalidCards) {
		fmt.Fprintln(out, "It has the first 1,000 of each kind. The journal knows all refused and unknown batches.")
	}
	return nil
}

// watch prints the progress of the workflow each second until ctx ends.
func watch(ctx context.Context, server client.Client, id string, out io.Writer) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		value, err := server.QueryWorkflow(ctx, id, "", temporalpayvault.QueryProgress)
		var s temporalpayvault.Summary
		if err != nil || value.Get(&s) != nil {
			continue // there may be no worker yet
		}
		fmt.Fprintf(out, "%d of %d batches accepted, %d refused, %d unknown\n", s.Accepted, s.Batches, s.Refused, s.Unknown)
		if s.Paused != "" {
			fmt.Fprintln(out, "paused:", s.Paused)
		}
	}
}

func export(ctx context.Context, server client.Client, out io.Writer) error {
	run, err := server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "transactions", TaskQueue: demo.Queue},
		temporalpayvault.ExportLists, temporalpayvault.ExportJob{
			Name: "transactions", Subscriptions: []payvault.SubscriptionID{5001, 5002},
			List: temporalpayvault.ExportOptions{Count: 10},
		})
	if err != nil {
		return err
	}
	var s temporalpayvault.ExportSummary
	if err := run.Get(ctx, &s); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d records of %d subscriptions, in %d pages\n", s.Records, s.Done, s.Pages)
	return nil
}
