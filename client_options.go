package payvault

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"time"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/pool"
	"example.com/payvault/internal/testonly"
	"example.com/payvault/internal/transport"
)

// Option sets up a client in [NewClient].
type Option func(*config)

// config holds the settings of a client.
type config struct {
	transport   transport.Config
	merchant    MerchantID
	vendorID    int64
	developerID string
	product     string
	logger      *slog.Logger
	observers   observers
	problems    problems

	policy       RetryPolicy
	unlimited    bool // neither a budget of retries nor learned rate limits
	insecureHTTP bool
}

//nolint:gochecknoinits // see package testonly
func init() {
	testonly.WithoutOverloadLimits = func() any { return Option(func(c *config) { c.unlimited = true }) }
}

func defaultConfig() config {
	return config{
		transport: transport.Config{AttemptTimeout: 60 * time.Second, MaxResponseBytes: 8 << 20},
		policy:    RetryPolicy{}.withDefaults(),
	}
}

// WithHTTPClient makes the client use the Transport and the Timeout of hc. A transport of [NewTransport] keeps all
// promises of the SDK, also if you set a proxy, a certificate or a limit of connections in it. If hc has no Transport,
// the client makes one with NewTransport. Any other Transport has the limits that are described below.
//
// The Timeout of hc limits each attempt. A Timeout that is longer than that of [WithTimeout], 60 s by default, has no
// effect. The client never follows redirects and never keeps cookies.
//
// An [http.Transport] that can use HTTP/2, and a RoundTripper of any other type, get requests without GetBody, whose
// body can be read only once. So net/http cannot send such a request again by itself. Only the SDK repeats it, where a
// repeat is harmless. The exception is a replayable request without a body: net/http may send it again.
//
// With these RoundTrippers, a request that has no body and is not replayable declares no length. Over HTTP/1.1 such a
// POST is chunked. Webhooks.AddEvent, Payees.Delete and [Client.Call] without a body make such requests. Some servers
// refuse them with status 411 or 415: see docs/works-with.md. An [http.Transport] that uses HTTP/1 only, such as one of
// NewTransport, gets these requests with their length.
//
// From the hooks of [net/http/httptrace], and from reads of the request body, the SDK learns whether a request was
// sent. If the RoundTripper calls no hooks, the outcome of a failed attempt is unknown. The outcome is also unknown if
// a RoundTripper that is not an [http.Transport] gets no connection for a request without a body.
//
// Some RoundTrippers break promises of the SDK:
//
//   - A request may be performed twice if the RoundTripper sends it more than once, or continues to send it after
//     RoundTrip has returned, or uses [http.Transport.RegisterProtocol] for http or https.
//   - On HTTP/2, net/http may send a request twice if the RoundTripper copies the request with [http.NewRequest], or
//     sets the Body of the request to [http.NoBody]. A RoundTripper that signs requests should only set headers, of the
//     request or of its Clone.
//   - If the RoundTripper makes a request of its own with the same context, such as for a token, the SDK cannot tell it
//     from the request of the call, and assumes that the call was sent twice. The outcome is then unknown after an
//     answer such as 429.
//   - A RoundTripper that has to send the body again, as for digest authentication, does not work: it finds no GetBody.
//   - A call lasts longer than its context if the RoundTripper, or its response body, does not end with the context.
func WithHTTPClient(hc *http.Client) Option {
	return func(c *config) {
		if hc == nil {
			c.problems.add("WithHTTPClient", "is nil")
			return
		}
		if hc.Transport != nil && isNil(hc.Transport) {
			c.problems.add("WithHTTPClient", "has a Transport that is a nil pointer")
			return
		}
		c.transport.HTTP = &http.Client{Transport: hc.Transport, Timeout: hc.Timeout}
	}
}

// NewTransport returns a new connection pool, like the one that a client has without [WithHTTPClient]. You may change
// its fields before you pass it to WithHTTPClient, such as Proxy, MaxConnsPerHost, TLSClientConfig.RootCAs and
// TLSClientConfig.Certificates. Clients may share it.
//
// The pool keeps up to 128 idle connections to the service for 45 seconds, so that 128 concurrent callers do not
// reconnect. It requires TLS 1.2 or newer and limits the headers of an answer to 1 MiB. For https, and only for https,
// it uses the proxy in HTTPS_PROXY, except for hosts in NO_PROXY. It uses HTTP/1.1 only, because over HTTP/1.1 net/http
// never repeats a POST or DELETE that it has written. Over HTTP/1.1 net/http may repeat a GET, but only where the SDK
// would do so too.
func NewTransport() *http.Transport { return pool.New() }

// WithRetryPolicy replaces the default retry policy. Zero fields of p take their default values.
func WithRetryPolicy(p RetryPolicy) Option {
	return func(c *config) {
		switch {
		case min(p.MinBackoff, p.MaxBackoff, p.MaxRetryAfter, p.MaxBulkRetryAfter) < 0 || p.MaxAttempts < 0:
			c.problems.add("WithRetryPolicy", "has a negative field")
		case p.MaxRetryAfter >= overload.LongestWait:
			c.problems.add("WithRetryPolicy", "has a MaxRetryAfter of 24 hours or more")
		case p.MaxBulkRetryAfter >= overload.LongestWait:
			c.problems.add("WithRetryPolicy", "has a MaxBulkRetryAfter of 24 hours or more")
		default:
			c.policy = p.withDefaults()
		}
	}
}

// WithTimeout limits one attempt, from asking the key source to the last byte of the answer. The default is 60 s. An
// attempt gets one more second for each 256 KiB of its request body. The context of a call limits all its attempts
// together. The error of an attempt that takes too long matches [context.DeadlineExceeded], like the error of a context
// after its deadline. To tell the two apart, ask your context whether it has ended.
func WithTimeout(perAttempt time.Duration) Option {
	return func(c *config) {
		if perAttempt <= 0 {
			c.problems.add("WithTimeout", "is not positive")
		}
		c.transport.AttemptTimeout = perAttempt
	}
}

// WithKeySource makes the client call source for the API key on each attempt, so that keys can rotate. The apiKey of
// [NewClient] is then not used and may be empty. If source returns an error, the attempt sends nothing, and the call
// fails with that error as a cause.
//
// source must be safe for concurrent use, and should cache the key. Its context has the deadline of the attempt. When
// this context ends, source should return, because a later key is not used.
func WithKeySource(source func(context.Context) (string, error)) Option {
	return func(c *config) {
		if source == nil {
			c.problems.add("WithKeySource", "is nil")
			return
		}
		c.transport.Authorization = rotatingKey(source)
	}
}

// WithMerchantID names the merchant that the API key belongs to. A [TokenizeRequest] without a MerchantID gets this ID.
func WithMerchantID(id MerchantID) Option {
	return func(c *config) {
		if id <= 0 {
			c.problems.add("WithMerchantID", "is not positive")
		}
		c.merchant = id
	}
}

// WithVendorID names the integrator. A [TokenizeRequest] without a VendorID gets this ID.
func WithVendorID(id int64) Option {
	return func(c *config) {
		if id <= 0 {
			c.problems.add("WithVendorID", "is not positive")
		}
		c.vendorID = id
	}
}

// WithDeveloperID names the integration by any text. A [TokenizeRequest] or [CustomerCreateRequest] without a
// DeveloperID gets this text.
func WithDeveloperID(id string) Option {
	return func(c *config) { c.developerID = id }
}

// WithLogger logs one record per attempt, "payvault attempt", and one per call, "payvault call". Their attributes are:
//
//   - operation, status, code, attempts, delivery
//   - duration, and waited: how long an attempt waited for the rate limits, if it did. Both are a [time.Duration],
//     which [slog.JSONHandler] writes in nanoseconds, such as 1500000000, and [slog.TextHandler] as 1.5s
//   - not_repeated: why no further attempt followed a failure; see [CallResult.NotRepeated]
//   - unread: the paths in [Response.Unread], if there are any
//   - error_class and error, if the attempt or the call failed; see [CallResult.ErrorClass]
//
// The records hold no ID, query, body or header of the request. The attribute error may have texts of the service, in
// which secrets, keys, IDs in the path and values of the query are redacted. docs/secrets.md lists the values that may
// remain in such texts.
//
// Attempts are logged at Debug. A call of unknown outcome is logged at Error, and any other failed call at Warn. A call
// that succeeds is logged at Warn if it has the attribute unread, and otherwise at Debug. Each page or batch of a walk,
// such as SubmitAll, is one call with all its attempts. A page or batch without an attempt has no record.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.problems.add("WithLogger", "is nil")
		}
		c.logger = l
	}
}

// WithObserver reports every call to o. A client may have several observers; they are called in the order in which they
// were given. Package otelpayvault has an observer for traces and metrics of OpenTelemetry.
func WithObserver(o Observer) Option {
	return func(c *config) { c.observers = append(c.observers, o) }
}

// allObservers returns the observers with the logger first. So the logger writes the record of a call while the spans
// of the other observers are still open.
func (c *config) allObservers() observers {
	if c.logger == nil {
		return c.observers
	}
	return append(observers{logTo(c.logger)}, c.observers...)
}

// WithUserAgent puts product, such as "acme-billing/2.1", in front of the User-Agent of this package.
func WithUserAgent(product string) Option {
	return func(c *config) {
		if !validHeaderValue(product) {
			c.problems.add("WithUserAgent", "contains a control character")
		}
		c.product = product
	}
}

// WithMaxResponseBytes limits the body of an answer, counted after decompression; 8 MiB by default. With a status below
// 400, a larger body is an error that matches [ErrResponseTooLarge]. With a status from 400 on, the error is about the
// status. It does not match ErrResponseTooLarge, and may lack the message and the code of the service.
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) {
		if n <= 0 {
			c.problems.add("WithMaxResponseBytes", "is not positive")
		}
		c.transport.MaxResponseBytes = n
	}
}

// WithRateLimit limits the requests of the client to perSecond on average, and to burst at once. If you know the limit
// of the service, set it here: then the service need not refuse requests with status 429. All operations,
// [Client.Call], and all clients of [Client.ForMerchant] share the limit, and every attempt counts.
//
// A request waits for its turn. If its turn comes after the deadline of its context, the call fails at once, the
// request is not sent, and the error matches [ErrRateLimited]. Walks, such as SubmitAll, do not crowd out single calls:
// all walks together have at most one request at a time in the queue. The rate limit that the client learns from status
// 429 applies too.
func WithRateLimit(perSecond float64, burst int) Option {
	return func(c *config) {
		isValidRate := perSecond > 0 && !math.IsInf(perSecond, 0) // a NaN is not > 0
		if !isValidRate {
			c.problems.add("WithRateLimit", "has a rate that is not positive and finite")
		}
		if burst < 1 {
			c.problems.add("WithRateLimit", "has a burst that is not positive")
		}
		c.transport.Limit = overload.NewLimit(perSecond, burst)
	}
}

// WithInsecureHTTP allows plain http to any host. Keys and card data then travel unencrypted, so use it in test
// networks only.
func WithInsecureHTTP() Option {
	return func(c *config) { c.insecureHTTP = true }
}
