// Tracing prints the OpenTelemetry spans of a few calls to standard output. The span of a call has a child span for
// each attempt of the call. The spans contain no IDs of records, no queries and no bodies.
//
// The program runs offline, against the emulator, unless PAYVAULT_BASE_URL, PAYVAULT_API_KEY and PAYVAULT_MERCHANT_ID
// name a sandbox. The emulator refuses one attempt and loses one answer. In a sandbox the program lists a page of
// customers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"example.com/payvault"
	"example.com/payvault/examples/internal/sandbox"
	"example.com/payvault/otelpayvault"
	"example.com/payvault/payvaulttest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "tracing:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, out, show io.Writer) (err error) {
	tracers, err := newTracers(out)
	if err != nil {
		return err
	}
	// Shutdown exports the remaining spans, even after ctrl-C.
	defer func() { err = errors.Join(err, tracers.Shutdown(context.WithoutCancel(ctx))) }()

	observer := payvault.WithObserver(otelpayvault.Observer(otelpayvault.WithTracerProvider(tracers)))
	client, err := sandbox.Client(getenv, observer)
	if err != nil {
		return err
	}
	ctx, span := tracers.Tracer("tracing").Start(ctx, "my own work") // the parent of the spans of all calls
	defer span.End()
	if client == nil {
		if err := sandbox.Offline(show, false); err != nil {
			return err
		}
		return offline(ctx, observer)
	}
	_, err = client.Customers.List(ctx, &payvault.ListOptions{Count: 25})
	return err
}

// newTracers returns a provider of tracers that writes spans to out. A real program sends spans to a collector, with
// the exporter otlptracehttp or otlptracegrpc.
func newTracers(out io.Writer) (*sdktrace.TracerProvider, error) {
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(out), stdouttrace.WithPrettyPrint())
	if err != nil {
		return nil, err
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName("payvault-tracing")))), nil
}

// offline makes one call that succeeds at its second attempt, and one call whose answer is lost.
func offline(ctx context.Context, observer payvault.Option) error {
	srv := payvaulttest.NewServer()
	defer srv.Close()
	for _, fault := range []payvaulttest.Fault{
		{Operation: payvault.OpCustomersList, Kind: payvaulttest.RateLimit, Times: 1},
		{Operation: payvault.OpInvoicesSend, Kind: payvaulttest.DropAfterCommit, Times: 1},
	} {
		if _, err := srv.Inject(fault); err != nil {
			return err
		}
	}
	client := srv.Client(observer)
	if _, err := client.Customers.List(ctx, nil); err != nil {
		return err
	}
	err := client.Invoices.Send(ctx, srv.Invoices.Seed(payvaulttest.Invoice{}).ID, &payvault.InvoiceSendRequest{})
	if !errors.Is(err, payvault.ErrOutcomeUnknown) {
		return fmt.Errorf("the answer was to be lost: %w", err)
	}
	return nil
}
