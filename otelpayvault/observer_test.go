package otelpayvault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/otelpayvault"
	"example.com/payvault/payvaulttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig has an emulator of the service and a client. The observer of the client records spans and metrics in the rig.
type rig struct {
	server *payvaulttest.Server
	client *payvault.Client
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func newRig(t *testing.T, opts ...payvault.Option) *rig {
	t.Helper()
	r := &rig{
		server: payvaulttest.NewServer(), spans: tracetest.NewInMemoryExporter(),
		reader: sdkmetric.NewManualReader(),
	}
	t.Cleanup(r.server.Close)
	observer := otelpayvault.Observer(
		otelpayvault.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))),
		otelpayvault.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))))
	opts = append(opts, payvault.WithObserver(observer),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 3, MinBackoff: 1, MaxBackoff: 1}))
	r.client = r.server.Client(opts...)
	return r
}

// attributes returns the attributes of each call and attempt of Customers.List, followed by the given attributes.
func (r *rig) attributes(t *testing.T, more ...attribute.KeyValue) []attribute.KeyValue {
	t.Helper()
	host, text, err := net.SplitHostPort(strings.TrimPrefix(r.server.URL, "http://"))
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return append([]attribute.KeyValue{
		attribute.String("server.address", host),
		attribute.Int("server.port", port),
		attribute.String("payvault.operation", "customers.list"),
		attribute.String("http.request.method", "GET"),
		attribute.String("url.template", "/platform/vault/customer"),
	}, more...)
}

// metrics returns all recorded metrics by name. It checks that the scope of each metric has the name of package
// otelpayvault and the version of the SDK.
func (r *rig) metrics(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &all))
	byName := map[string]metricdata.Metrics{}
	for _, m := range all.ScopeMetrics {
		assert.Equal(t, "example.com/payvault/otelpayvault", m.Scope.Name)
		assert.Equal(t, payvault.Version, m.Scope.Version)
		assert.Contains(t, m.Scope.SchemaURL, "opentelemetry.io/schemas/")
		for _, metric := range m.Metrics {
			byName[metric.Name] = metric
		}
	}
	return byName
}

// listAfterRetry calls Customers.List. The service answers the first attempt with 429, and the second one with a page.
func (r *rig) listAfterRetry(t *testing.T) {
	t.Helper()
	inject(t, r.server, payvaulttest.Fault{Operation: payvault.OpCustomersList, Kind: payvaulttest.RateLimit, Times: 1})
	_, err := r.client.Customers.List(t.Context(), &payvault.ListOptions{Count: 7})
	require.NoError(t, err)
}

// TestSpansOfACallWithARetry checks the spans of a call and of its two attempts: their names, attributes, parents and
// times.
func TestSpansOfACallWithARetry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.listAfterRetry(t)

	spans := r.spans.GetSpans()
	require.Len(t, spans, 3)
	first, second, call := spans[0], spans[1], spans[2]

	assert.Equal(t, "customers.list", call.Name)
	assert.Equal(t, trace.SpanKindInternal, call.SpanKind)
	assert.Equal(t, codes.Unset, call.Status.Code)
	assert.ElementsMatch(t, r.attributes(t,
		attribute.Int("http.response.status_code", 200), attribute.String("payvault.delivery", "answered"),
		attribute.String("payvault.code", "0"), attribute.Int("payvault.attempts", 2)), call.Attributes)

	assert.Equal(t, "GET /platform/vault/customer", first.Name)
	assert.Equal(t, sdktrace.Status{Code: codes.Error}, first.Status)
	assert.ElementsMatch(t, r.attributes(t, attribute.String("error.type", "429"),
		attribute.Int("http.response.status_code", 429), attribute.String("payvault.delivery", "answered")), first.Attributes)

	assert.Equal(t, codes.Unset, second.Status.Code)
	assert.ElementsMatch(t, r.attributes(t, attribute.Int("http.request.resend_count", 1),
		attribute.Int("http.response.status_code", 200), attribute.String("payvault.delivery", "answered")),
		second.Attributes)

	for _, attempt := range []tracetest.SpanStub{first, second} {
		assert.Equal(t, trace.SpanKindClient, attempt.SpanKind)
		assert.Equal(t, call.SpanContext.SpanID(), attempt.Parent.SpanID())
		assert.Equal(t, call.SpanContext.TraceID(), attempt.SpanContext.TraceID())
		assert.False(t, attempt.StartTime.Before(call.StartTime.Add(-time.Millisecond)), "an attempt is within its call")
		assert.False(t, attempt.EndTime.After(call.EndTime))
		assert.Less(t, attempt.StartTime, attempt.EndTime)
	}
	assert.False(t, second.StartTime.Before(first.EndTime.Add(-time.Millisecond)))
}

// TestSpanAfterAWait checks that the span of an attempt does not include the wait for the rate limits.
func TestSpanAfterAWait(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	observer := otelpayvault.Observer(
		otelpayvault.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))
	ctx := observer.Start(t.Context(), payvault.CallInfo{})
	observer.Attempt(ctx, payvault.CallInfo{}, payvault.CallResult{Duration: time.Second, Waited: time.Minute})
	require.Len(t, spans.GetSpans(), 1)
	span := spans.GetSpans()[0]
	assert.Equal(t, time.Second, span.EndTime.Sub(span.StartTime))
}

// TestSpansOfAFailure checks the status and the attributes of the spans of three failed calls. The first call has an
// unknown outcome, the service refuses the second call, and the third call is invalid and not sent.
func TestSpansOfAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	inject(t, r.server, payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit, Times: 1})
	err := r.client.Invoices.Send(t.Context(), r.server.Invoices.Seed(payvaulttest.Invoice{}).ID, nil)
	require.ErrorIs(t, err, payvault.ErrOutcomeUnknown)
	_, err = r.client.Tokens.Tokenize(t.Context(),
		&payvault.TokenizeRequest{CardNumber: payvault.NewSecret("1"), ExpDate: "1230"})
	require.ErrorIs(t, err, payvault.ErrRejected)
	_, err = r.client.AccountUpdater.Submit(t.Context(), nil)
	require.ErrorIs(t, err, payvault.ErrInvalidRequest)

	spans := r.spans.GetSpans()
	require.Len(t, spans, 5)
	assert.Equal(t, "POST /platform/invoice/{invoice_id}/send", spans[0].Name)
	for i, want := range map[int][]attribute.KeyValue{
		0: {attribute.String("error.type", "connection"), attribute.String("payvault.delivery", "unknown")},
		1: {
			attribute.String("error.type", "outcome_unknown"), attribute.String("payvault.delivery", "unknown"),
			attribute.Int("payvault.attempts", 1),
		},
		3: {
			attribute.String("error.type", "400"), attribute.String("payvault.code", "400"),
			attribute.String("payvault.delivery", "answered"),
		},
		4: {
			attribute.String("error.type", "invalid_request"), attribute.String("payvault.delivery", "not sent"),
			attribute.Int("payvault.attempts", 0),
		},
	} {
		assert.Equal(t, sdktrace.Status{Code: codes.Error}, spans[i].Status)
		assert.Subset(t, spans[i].Attributes, want)
	}
	assert.NotContains(t, fmt.Sprint(spans[0].Attributes, spans[1].Attributes), "status_code", "no response arrived")
}

// TestErrorTypeOfACall checks the error.type of a call in its span and in its metric. It is outcome_unknown for an
// unknown outcome, rate_limited after a 429, and the status after another refusal. The error.type of the last attempt
// is the status in all three cases. A Validate that succeeds with status 422 has no error.type.
func TestErrorTypeOfACall(t *testing.T) {
	t.Parallel()
	for want, faults := range map[string][]payvaulttest.Fault{
		"outcome_unknown": {
			{Kind: payvaulttest.DropAfterCommit, Times: 1},
			{Kind: payvaulttest.OtherCode, Status: 409, Code: 7},
		},
		"rate_limited": {{Kind: payvaulttest.OtherCode, Status: 429, Code: 7}},
		"409":          {{Kind: payvaulttest.OtherCode, Status: 409, Code: 7}},
	} {
		r := newRig(t)
		for _, fault := range faults {
			inject(t, r.server, fault)
		}
		err := r.client.Invoices.Send(t.Context(), "I1", nil, payvault.WithReplay(), payvault.WithMaxAttempts(len(faults)))
		require.Error(t, err)
		spans := r.spans.GetSpans()
		attempt, call := spans[len(spans)-2], spans[len(spans)-1]
		assert.Contains(t, call.Attributes, attribute.String("error.type", want))
		last := strconv.Itoa(faults[len(faults)-1].Status)
		assert.Contains(t, attempt.Attributes, attribute.String("error.type", last), "as the conventions want it")
		assert.Contains(t, fmt.Sprintf("%+v", r.metrics(t)["payvault.client.operation.duration"]), want)
	}
	r := newRig(t)
	problems := `{"code":2,"data":{"tax_id":["is required"]}}`
	inject(t, r.server, payvaulttest.Fault{Kind: payvaulttest.Respond, Status: 422, Body: problems})
	_, err := r.client.Applications.Validate(t.Context(), 1)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(r.spans.GetSpans()[1].Attributes), "error.type")
}

// TestRequestsAreBelowTheCall checks that the span of a call is a child of the caller's span, and that the context of
// the HTTP request has the span of the call.
func TestRequestsAreBelowTheCall(t *testing.T) {
	t.Parallel()
	var seen trace.SpanContext
	r := newRig(t, through(func(req *http.Request) (*http.Response, error) {
		seen = trace.SpanContextFromContext(req.Context())
		assert.Empty(t, req.Header.Get("Traceparent"))
		return nil, context.Canceled
	}))
	caller := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	_, err := r.client.Customers.List(trace.ContextWithSpanContext(t.Context(), caller), nil)
	require.ErrorIs(t, err, context.Canceled)
	spans := r.spans.GetSpans()
	call := spans[len(spans)-1]
	assert.Equal(t, call.SpanContext.SpanID(), seen.SpanID())
	assert.Equal(t, caller.SpanID(), call.Parent.SpanID())
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// through returns an option that sends the requests of a client through f.
func through(f roundTrip) payvault.Option { return payvault.WithHTTPClient(&http.Client{Transport: f}) }

// TestSpansShowNothing checks that spans and metrics contain no ID, query, body, header or unknown method of a request,
// and no message of the service.
func TestSpansShowNothing(t *testing.T) {
	t.Parallel()
	const canary = "c4nary"
	r := newRig(t)
	inject(t, r.server, payvaulttest.Fault{Kind: payvaulttest.OtherCode, Status: 409, Code: 7, Message: "no " + canary})
	ctx := t.Context()
	_, err := r.client.Webhooks.AddEvent(ctx, canary, canary)
	require.Error(t, err)
	filters := []payvault.Filter{payvault.Where(canary, canary, canary)}
	_, err = r.client.Customers.List(ctx, &payvault.ListOptions{Filters: filters})
	require.Error(t, err)
	card := &payvault.TokenizeRequest{CardNumber: payvault.NewSecret(canary), CardID: canary}
	_, err = r.client.Tokens.Tokenize(ctx, card, payvault.WithHeader("X-Canary", canary))
	require.Error(t, err)
	request := payvault.Request{Method: "C4NARY", Path: []string{canary}, Query: url.Values{canary: {canary}}}
	require.Error(t, r.client.Call(ctx, request, nil))

	spans := r.spans.GetSpans()
	require.Len(t, spans, 8)
	assert.Equal(t, "HTTP", spans[6].Name)
	assert.Contains(t, spans[6].Attributes, attribute.String("http.request.method", "_OTHER"))
	assert.NotContains(t, strings.ToLower(fmt.Sprintf("%+v", spans)), canary)
	assert.NotContains(t, strings.ToLower(fmt.Sprintf("%+v", r.metrics(t))), canary)
}

// TestCallName checks that the spans and metrics of a Client.Call have the name of its request as payvault.operation,
// and that its spans have no url.template.
func TestCallName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const name = "disputes.accept"
	request := payvault.Request{Name: name, Method: "PUT", Path: []string{"platform", "dispute", "7", "accept"}}
	require.ErrorIs(t, r.client.Call(t.Context(), request, nil), payvault.ErrNotFound)

	operation := attribute.String("payvault.operation", name)
	spans := r.spans.GetSpans()
	require.Len(t, spans, 2, "an attempt and its call")
	assert.Equal(t, "PUT", spans[0].Name)
	assert.Equal(t, name, spans[1].Name)
	for _, span := range spans {
		assert.Contains(t, span.Attributes, operation)
		assert.NotContains(t, fmt.Sprint(span.Attributes), "url.template")
	}
	metrics := r.metrics(t)
	for _, metric := range []string{"http.client.request.duration", "payvault.client.operation.duration"} {
		histogram, _ := metrics[metric].Data.(metricdata.Histogram[float64])
		require.Len(t, histogram.DataPoints, 1)
		got, _ := histogram.DataPoints[0].Attributes.Value("payvault.operation")
		assert.Equal(t, name, got.AsString())
	}
}

// TestMetrics checks the three metrics of a call with one retry: their units, attributes and bucket boundaries.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	began := time.Now()
	r.listAfterRetry(t)
	elapsed := time.Since(began)
	got := r.metrics(t)
	require.Len(t, got, 3)

	requests := got["http.client.request.duration"]
	assert.Equal(t, "s", requests.Unit)
	assertHistogram(t, requests, elapsed,
		attribute.NewSet(r.attributes(t, attribute.Int("http.response.status_code", 429),
			attribute.String("error.type", "429"))...),
		attribute.NewSet(r.attributes(t, attribute.Int("http.response.status_code", 200))...))

	recommended := []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	assert.Equal(t, recommended, boundaries(t, requests))

	calls := got["payvault.client.operation.duration"]
	assert.Equal(t, "s", calls.Unit)
	operation := attribute.String("payvault.operation", "customers.list")
	assertHistogram(t, calls, elapsed, attribute.NewSet(operation, attribute.String("payvault.delivery", "answered")))
	assert.Equal(t, append(recommended, 30, 60, 120), boundaries(t, calls), "calls wait, and uploads take longer")

	metricdatatest.AssertEqual(t, metricdata.Metrics{
		Name: "payvault.client.operation.retries", Unit: "{retry}", Description: "Attempts after the first one of a call.",
		Data: metricdata.Sum[int64]{
			Temporality: metricdata.CumulativeTemporality, IsMonotonic: true,
			DataPoints: []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(operation), Value: 1}},
		},
	}, got["payvault.client.operation.retries"], metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

// boundaries returns the boundaries of the buckets of a histogram.
func boundaries(t *testing.T, m metricdata.Metrics) []float64 {
	t.Helper()
	histogram, ok := m.Data.(metricdata.Histogram[float64])
	require.True(t, ok)
	require.NotEmpty(t, histogram.DataPoints)
	return histogram.DataPoints[0].Bounds
}

// assertHistogram checks that a histogram has one record for each set of attributes in want, and no other record. No
// record may have more seconds than elapsed.
func assertHistogram(t *testing.T, m metricdata.Metrics, elapsed time.Duration, want ...attribute.Set) {
	t.Helper()
	histogram, ok := m.Data.(metricdata.Histogram[float64])
	require.True(t, ok)
	var got []attribute.Set
	for _, point := range histogram.DataPoints {
		assert.Equal(t, uint64(1), point.Count)
		assert.Positive(t, point.Sum)
		assert.LessOrEqual(t, point.Sum, elapsed.Seconds())
		got = append(got, point.Attributes)
	}
	assert.ElementsMatch(t, want, got)
}

// TestCodesAreShort checks that a code of the service becomes "other" in the attribute payvault.code, unless it has at
// most 12 characters, all of them ASCII letters, digits, dots, underscores or hyphens.
func TestCodesAreShort(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"7": "7", "denied_5-A.b": "denied_5-A.b", "jane@example.com": "other", "Jane Doe": "other",
		"ABCDEFGHIJKL": "ABCDEFGHIJKL", "ABCDEFGHIJKLM": "other", "ü": "other",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, through(func(*http.Request) (*http.Response, error) {
				body := io.NopCloser(strings.NewReader(`{"code":"` + code + `","message":"no"}`))
				return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
			}))
			_, err := r.client.Customers.List(t.Context(), nil)
			require.ErrorIs(t, err, payvault.ErrRejected)
			spans := r.spans.GetSpans()
			require.Len(t, spans, 2)
			assert.Subset(t, spans[1].Attributes, []attribute.KeyValue{attribute.String("payvault.code", want)})
		})
	}
}

// TestNoKeyIsNoRequest checks that a retry whose key source returns an error counts as a retry, but has no span and no
// request metric of its own.
func TestNoKeyIsNoRequest(t *testing.T) {
	t.Parallel()
	asked := 0
	r := newRig(t, payvault.WithKeySource(func(context.Context) (string, error) {
		asked++
		if asked > 1 {
			return "", errors.New("vault is sealed")
		}
		return "key", nil
	}))
	inject(t, r.server, payvaulttest.Fault{Operation: payvault.OpCustomersList, Kind: payvaulttest.RateLimit, Times: 1})
	_, err := r.client.Customers.List(t.Context(), nil)
	require.Error(t, err)
	spans := r.spans.GetSpans()
	require.Len(t, spans, 2)
	assert.Equal(t, "customers.list", spans[1].Name)
	assert.Subset(t, spans[1].Attributes, []attribute.KeyValue{
		attribute.String("error.type", "no_key"), attribute.String("payvault.delivery", "not sent"),
		attribute.Int("payvault.attempts", 2),
	})
	metrics := r.metrics(t)
	assert.Contains(t, metrics, "payvault.client.operation.duration")
	requests, _ := metrics["http.client.request.duration"].Data.(metricdata.Histogram[float64])
	require.Len(t, requests.DataPoints, 1)
	assert.EqualValues(t, 1, requests.DataPoints[0].Count)
	assert.EqualValues(t, 1, retries(t, metrics))
}

// TestNoServer checks that each of three attempts that find no server has a span, and that two of them are counted as
// retries.
func TestNoServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Close()
	_, err := r.client.Customers.List(t.Context(), nil)
	require.Error(t, err)
	assert.Len(t, r.spans.GetSpans(), 4)
	assert.EqualValues(t, 2, retries(t, r.metrics(t)))
}

// retries returns how many retries are counted. It fails the test unless all belong to one operation.
func retries(t *testing.T, metrics map[string]metricdata.Metrics) int64 {
	t.Helper()
	sum, _ := metrics["payvault.client.operation.retries"].Data.(metricdata.Sum[int64])
	require.Len(t, sum.DataPoints, 1)
	return sum.DataPoints[0].Value
}

// TestNilOptionsAreLeftOut checks that Observer works with a nil option and with nil providers.
func TestNilOptionsAreLeftOut(t *testing.T) {
	t.Parallel()
	assert.NotPanics(t, func() {
		observer := otelpayvault.Observer(nil, otelpayvault.WithTracerProvider(nil), otelpayvault.WithMeterProvider(nil))
		observer.End(observer.Start(t.Context(), payvault.CallInfo{}), payvault.CallInfo{}, payvault.CallResult{})
	})
}

// TestRefusedInstruments checks that a call works with a meter that refuses to make instruments.
func TestRefusedInstruments(t *testing.T) {
	t.Parallel()
	r := newRig(t, payvault.WithObserver(otelpayvault.Observer(otelpayvault.WithMeterProvider(refusingProvider{}))))
	r.listAfterRetry(t)
}

type refusingProvider struct{ noop.MeterProvider }

func (refusingProvider) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errors.New("no histograms")
}

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no counters")
}

// TestTwoObservers checks that each of two observers records a span for a call, and a child of this span for the
// attempt.
func TestTwoObservers(t *testing.T) {
	t.Parallel()
	other := tracetest.NewInMemoryExporter()
	r := newRig(t, payvault.WithObserver(otelpayvault.Observer(
		otelpayvault.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(other))))))
	_, err := r.client.Customers.List(t.Context(), nil)
	require.NoError(t, err)
	for _, spans := range []tracetest.SpanStubs{r.spans.GetSpans(), other.GetSpans()} {
		require.Len(t, spans, 2)
		assert.Equal(t, spans[1].SpanContext.SpanID(), spans[0].Parent.SpanID())
		assert.Subset(t, spans[1].Attributes, []attribute.KeyValue{attribute.Int("payvault.attempts", 1)})
	}
}

// TestUnsampledCallHasNoSpans checks that a call that is not sampled has metrics and no spans.
func TestUnsampledCallHasNoSpans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	_, err := r.client.Customers.List(trace.ContextWithSpanContext(t.Context(), unsampled), nil)
	require.NoError(t, err)
	assert.Empty(t, r.spans.GetSpans())
	assert.Contains(t, r.metrics(t), "http.client.request.duration")
}

// inject makes requests fail in the way that fault describes.
func inject(t *testing.T, srv *payvaulttest.Server, fault payvaulttest.Fault) {
	t.Helper()
	_, err := srv.Inject(fault)
	require.NoError(t, err)
}
