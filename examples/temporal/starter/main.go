// Starter submits the cards of a file to the account updater by a workflow, prints how it goes on, and exports the
// transactions of the emulator's subscriptions. See ../worker for what has to run.
//
//	go run -C examples/temporal ./starter -file "$PWD/cards.csv" -job november
//
// A line of the file has number, expiry and ID of a card: 4111111111111111,1230,card-1. Without one it makes cards up.
//
// While it runs, or after it was stopped:
//
//	temporal workflow query  --workflow-id cards-november --name progress
//	temporal workflow signal --workflow-id cards-november --name control --input '"pause"'
//	temporal workflow signal --workflow-id cards-november --name control --input '"resume"'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

func main() {
	file := flag.String("file", "", "of cards, with a path that the workers find it under")
	job := flag.String("job", time.Now().Format("2006-01-02T15-04-05"), "name of the job: each is started once")
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
	submission, err := server.ExecuteWorkflow(ctx, once("cards-"+job), temporalpayvault.SubmitCards, temporalpayvault.Job{
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
	if err := submission.Get(ctx, &summary); err != nil {
		return err
	}
	cancel()
	fmt.Printf("%+v\n", summary)
	return export(context.WithoutCancel(ctx), server, job)
}

// once are the options of a workflow that is never started a second time under its ID. The journal knows too what was
// sent, also for a workflow of another ID.
func once(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: id, TaskQueue: demo.Queue,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
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
		fmt.Printf("%d of %d batches accepted, %d refused, %d unknown %s\n", s.Accepted, s.Batches, s.Refused, s.Unknown,
			s.Paused)
	}
}

func export(ctx context.Context, server client.Client, job string) error {
	run, err := server.ExecuteWorkflow(ctx, once("transactions-"+job), temporalpayvault.ExportLists,
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
