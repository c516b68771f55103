package otelpayvault

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"

	"example.com/payvault"
)

type instruments struct {
	requests httpconv.ClientRequestDuration
	calls    metric.Float64Histogram
	retries  metric.Int64Counter
}

func newInstruments(meter metric.Meter) instruments {
	var i instruments
	var err error
	if i.requests, err = httpconv.NewClientRequestDuration(meter); err != nil {
		otel.Handle(err)
	}
	i.calls, err = meter.Float64Histogram("payvault.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of calls, all attempts and the waits between them included."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30,
			60, 120))
	if err != nil {
		otel.Handle(err)
		i.calls = noop.Float64Histogram{}
	}
	i.retries, err = meter.Int64Counter("payvault.client.operation.retries", metric.WithUnit("{retry}"),
		metric.WithDescription("Attempts after the first one of a call."))
	if err != nil {
		otel.Handle(err)
		i.retries = noop.Int64Counter{}
	}
	return i
}

func (i instruments) attempt(ctx context.Context, call payvault.CallInfo, r payvault.CallResult) {
	operation := operationKey.String(string(call.Op))
	if r.Attempts > 1 {
		i.retries.Add(ctx, 1, metric.WithAttributes(operation))
	}
	if sentNothing(r) {
		return
	}
	host, port := server(call)
	attrs := append(append([]attribute.KeyValue{operation}, template(call)...), outcome(r)...)
	i.requests.Record(ctx, r.Duration.Seconds(), httpconv.RequestMethodAttr(method(call)), host, port, attrs...)
}

func (i instruments) call(ctx context.Context, call payvault.CallInfo, r payvault.CallResult) {
	attrs := append(failure(r), operationKey.String(string(call.Op)), deliveryKey.String(r.Delivery.String()))
	i.calls.Record(ctx, r.Duration.Seconds(), metric.WithAttributes(attrs...))
}
