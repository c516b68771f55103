// Starter submits the cards of a file to the account updater by a workflow, prints how it goes on, and exports the
// transactions of the emulator's subscriptions. See ../worker for what has to run.
//
//	go run -C examples/temporal ./starter -file "$PWD/november.csv"
//
// A line of the file has number, expiry and ID of a card: 4111111111111111,1230,card-1. Without one it makes cards up.
// Run again, for the same job, it sends nothing that was sent: the journal of the workers knows the job by its name and
// the contents of the file. The name is that of the file, or what -job says: under another name all cards are sent.
//
// While it runs, or after it was stopped:
//
//	temporal workflow query  --workflow-id cards-november --name progress
//	temporal workflow signal --workflow-id cards-november --name control --input '"pause"'
//	temporal workflow signal --workflow-id cards-november --name control --input '"resume"'
//
// The first of these says in last_failure why something is tried again.
//
// With PAYVAULT_CODEC_KEY these print what is encrypted, and "Encoded failure"; to read it takes a codec server, see
// the README of temporalpayvault. Signals can be typed as above, and what this program prints can be read. Give the key
// to the worker too: a job that its worker cannot read fails at once.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
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
	job := flag.String("job", "", "name of the job, if not that of the file: each is done once")
	flag.Parse()
	err := run(context.Background(), *file, *job)
	if errors.Is(err, demo.ErrNoServer) {
		demo.Help(os.Stdout, err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, job string) error {
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
	job = cmp.Or(job, nameOf(file))
	submission, err := server.ExecuteWorkflow(ctx, alone("cards-"+job), temporalpayvault.SubmitCards, temporalpayvault.Job{
		Source: file, Name: job,
	})
	if err != nil {
		return err
	}
	fmt.Println("submitting", file, "by the workflow", submission.GetID())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watch(ctx, server, submission.GetID())
	var summary temporalpayvault.Summary
	err = submission.Get(ctx, &summary)
	if isCanceled(err, &summary) {
		fmt.Printf("canceled: %+v\n", summary) // Left has what was not sent, unless Lost
	}
	if err != nil {
		return err
	}
	cancel()
	fmt.Printf("%+v\n", summary)
	return export(context.WithoutCancel(ctx), server, job)
}

// isCanceled reports whether a workflow was canceled, and with which summary.
func isCanceled(err error, summary any) bool {
	canceled, ok := errors.AsType[*temporal.CanceledError](err)
	return ok && canceled.Details(summary) == nil
}

// nameOf names the job of a file, so that the same file is the same job again.
func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) }

// alone are the options of a workflow of which one runs at a time. It can be started again after it has ended, or was
// terminated, since the workers have a journal: without one, it takes the ID reuse policy REJECT_DUPLICATE.
func alone(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: demo.Queue, WorkflowExecutionErrorWhenAlreadyStarted: true}
}

// watch prints the progress each second.
func watch(ctx context.Context, server client.Client, id string) {
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
			continue // no worker is there yet
		}
		fmt.Printf("%d of %d batches accepted, %d refused, %d unknown %s %s\n", s.Accepted, s.Batches, s.Refused, s.Unknown,
			s.Paused, s.LastFailure)
	}
}

func export(ctx context.Context, server client.Client, job string) error {
	run, err := server.ExecuteWorkflow(ctx, alone("transactions-"+job), temporalpayvault.ExportLists,
		temporalpayvault.ExportJob{
			Name: job, Subscriptions: "5001,5002", List: payvault.ListOptions{Count: 10},
		})
	if err != nil {
		return err
	}
	var summary temporalpayvault.ExportSummary
	if err := run.Get(ctx, &summary); err != nil {
		return err
	}
	fmt.Printf("%+v\n", summary)
	return nil
}
