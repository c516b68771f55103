// Starter submits made-up cards to the account updater by a workflow, prints how it goes on, and exports the
// transactions of the emulator's subscriptions. See ../worker for what has to run.
//
//	go run -C examples/temporal ./starter -cards 100000 -job november
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
	"strconv"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"example.com/payvault"
	"example.com/payvault/examples/temporal/internal/demo"
	"example.com/payvault/temporalpayvault"
)

func main() {
	cards := flag.Int("cards", 10_000, "how many to submit")
	job := flag.String("job", time.Now().Format("2006-01-02T15-04-05"), "name of the job: each is started once")
	flag.Parse()
	err := run(context.Background(), *cards, *job)
	if errors.Is(err, demo.ErrNoServer) {
		demo.Help(os.Stdout, err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cards int, job string) error {
	server, err := demo.Dial(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	submission, err := server.ExecuteWorkflow(ctx, once("cards-"+job), temporalpayvault.SubmitCards, temporalpayvault.Job{
		Source: strconv.Itoa(cards), Name: job,
	})
	if err != nil {
		return err
	}
	fmt.Println("submitting", cards, "cards as workflow", submission.GetID())
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

// once are the options of a workflow that is never started a second time under its ID: without a journal nothing else
// knows that its cards were sent.
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
