package temporalpayvault_test

import (
	"context"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"example.com/payvault"
	"example.com/payvault/temporalpayvault"
)

// A worker. Start as many as you like.
func ExampleRegister() { //nolint:testableexamples // it needs a server
	serve := func(server client.Client, pv *payvault.Client, cards temporalpayvault.CardSource) error {
		w := worker.New(server, "payvault", worker.Options{WorkerStopTimeout: 70 * time.Second})
		temporalpayvault.Register(w, &temporalpayvault.Activities{Client: pv, Cards: cards})
		return w.Run(worker.InterruptCh())
	}
	_ = serve
}

// A client starts a job, each under an ID that is used once.
func ExampleSubmitCards() { //nolint:testableexamples // it needs a server
	submit := func(ctx context.Context, server client.Client) (s temporalpayvault.Summary, err error) {
		run, err := server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: "cards-2026-11", TaskQueue: "payvault",
			WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		}, temporalpayvault.SubmitCards, temporalpayvault.Job{Source: "s3://cards/2026-11.csv", RequestsPerSecond: 200})
		if err != nil {
			return s, err
		}
		return s, run.Get(ctx, &s)
	}
	_ = submit
}

// Both ends take the same keys. Where the user interface is to show payloads, a codec server takes the codec.
func ExampleNewConverters() { //nolint:testableexamples // it needs a server
	dial := func(key []byte) (client.Client, error) {
		codec, err := temporalpayvault.NewCodec("2026-11", map[string][]byte{"2026-11": key})
		if err != nil {
			return nil, err
		}
		data, failure := temporalpayvault.NewConverters(codec)
		return client.Dial(client.Options{DataConverter: data, FailureConverter: failure})
	}
	_ = dial
}
