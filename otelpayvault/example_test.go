package otelpayvault_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/payvault"
	"example.com/payvault/otelpayvault"
	"example.com/payvault/payvaulttest"
)

func ExampleObserver() {
	exporter := tracetest.NewInMemoryExporter() // the exporter of your choice
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))

	srv := payvaulttest.NewServer()
	defer srv.Close()
	client := srv.Client(payvault.WithObserver(otelpayvault.Observer(otelpayvault.WithTracerProvider(tracers))))
	_, err := client.Customers.List(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.SpanKind, span.Name)
	}
	// Output:
	// client GET /platform/vault/customer
	// internal customers.list
}
