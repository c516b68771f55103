package otelpayvault

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"example.com/payvault"
)

const scope = "example.com/payvault/otelpayvault"

// Option configures an observer.
type Option func(*config)

type config struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
}

// WithTracerProvider sets the provider of tracers. The default, also for nil, is the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) {
		if p != nil {
			c.tracers = p
		}
	}
}

// WithMeterProvider sets the provider of meters. The default, also for nil, is the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) {
		if p != nil {
			c.meters = p
		}
	}
}

// Observer returns an observer for [payvault.WithObserver] that traces and measures the calls of a client. Several
// clients may share it. Without options it uses the global providers. If a provider refuses to make an instrument, the
// error handler of OpenTelemetry gets the error, and the observer works without the instrument.
func Observer(opts ...Option) payvault.Observer {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	o := &observer{
		tracer: c.tracers.Tracer(scope, trace.WithInstrumentationVersion(payvault.Version),
			trace.WithSchemaURL(semconv.SchemaURL)),
		instruments: newInstruments(
			c.meters.Meter(scope, metric.WithInstrumentationVersion(payvault.Version), metric.WithSchemaURL(semconv.SchemaURL))),
	}
	return payvault.Observer{Start: o.start, Attempt: o.attempt, End: o.end}
}

type observer struct {
	tracer      trace.Tracer
	instruments instruments
}

// callKey is the context key for the span of a call. Each observer has its own callKey. The context key of
// OpenTelemetry is not enough, because other code may have stored another span under that key.
type callKey struct{ *observer }

func (o *observer) start(ctx context.Context, call payvault.CallInfo) context.Context {
	ctx, span := o.tracer.Start(ctx, string(call.Op), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(request(call)...))
	return context.WithValue(ctx, callKey{o}, span)
}

// attempt records the metrics of an attempt that has ended, and makes its span. The attempt gets no span if the call is
// not sampled, or if the key source returned no valid key.
func (o *observer) attempt(ctx context.Context, call payvault.CallInfo, r payvault.CallResult) {
	end := time.Now()
	o.instruments.attempt(ctx, call, r)
	parent := o.span(ctx)
	if !parent.IsRecording() || sentNothing(r) {
		return
	}
	_, span := o.tracer.Start(trace.ContextWithSpan(ctx, parent), attemptName(call),
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(end.Add(-r.Duration)), trace.WithAttributes(request(call)...))
	span.SetAttributes(answer(r)...)
	if r.Attempts > 1 {
		span.SetAttributes(semconv.HTTPRequestResendCount(r.Attempts - 1))
	}
	finish(span, r, trace.WithTimestamp(end))
}

func (o *observer) end(ctx context.Context, call payvault.CallInfo, r payvault.CallResult) {
	o.instruments.call(ctx, call, r)
	span := o.span(ctx)
	span.SetAttributes(answer(r)...)
	span.SetAttributes(code(r), attemptsKey.Int(r.Attempts))
	finish(span, r)
}

func (o *observer) span(ctx context.Context) trace.Span {
	if span, ok := ctx.Value(callKey{o}).(trace.Span); ok {
		return span
	}
	return noop.Span{}
}

// finish ends a span and sets its status. The status has no description, because the text of an error may repeat values
// of the request.
func finish(span trace.Span, r payvault.CallResult, opts ...trace.SpanEndOption) {
	if errorType(r) != "" {
		span.SetStatus(codes.Error, "")
	}
	span.End(opts...)
}

func attemptName(call payvault.CallInfo) string {
	name := method(call)
	if name == otherMethod {
		name = "HTTP"
	}
	if call.Path != "" {
		name += " " + call.Path
	}
	return name
}
