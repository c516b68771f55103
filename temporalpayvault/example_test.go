package temporalpayvault_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"example.com/payvault/temporalpayvault"
)

// This example runs a worker. You can start any number of workers.
func ExampleRegister() { //nolint:testableexamples // it needs a server
	serve := func(server client.Client, a *temporalpayvault.Activities) error {
		w := worker.New(server, "payvault", worker.Options{WorkerStopTimeout: 70 * time.Second})
		temporalpayvault.Register(w, a)
		return w.Run(worker.InterruptCh())
	}
	_ = serve
}

// This example starts a job and waits for its result. The snapshot identifies the cards. For a file, payvault.JobName
// computes the checksum.
func ExampleSubmitCards() { //nolint:testableexamples // it needs a server
	submit := func(
		ctx context.Context, server client.Client, snapshot temporalpayvault.Snapshot,
	) (s temporalpayvault.Summary, err error) {
		run, err := server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: "cards-2026-11", TaskQueue: "payvault",
		}, temporalpayvault.SubmitCards, temporalpayvault.Job{Source: "s3://cards/2026-11.csv", Snapshot: snapshot})
		if err != nil {
			return s, err
		}
		return s, run.Get(ctx, &s)
	}
	_ = submit
}

// This example makes converters. Clients and workers use the same keys. With a codec server that uses this codec, the
// web UI of Temporal shows the payloads.
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
