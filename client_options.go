package payvault

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"example.com/payvault/internal/overload"
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
	insecureHTTP bool
}

func defaultConfig() config {
	return config{
		transport: transport.Config{AttemptTimeout: 60 * time.Second, MaxResponseBytes: 8 << 20},
		policy:    RetryPolicy{}.withDefaults(),
	}
}

// WithHTTPClient makes the client use the Transport and the Timeout of hc. That timeout limits each attempt. It has no
// effect if it is longer than the timeout of [WithTimeout]. The client never follows redirects and never keeps cookies.
//
// Without a Transport, or without this option, the client has a connection pool of its own. The pool keeps 128 idle
// connections to the service for 45 seconds, so that up to 128 concurrent callers do not reconnect. It requires TLS 1.2
// or newer and limits the headers of an answer to 1 MiB. For https, and only for https, it uses the proxy that
// HTTPS_PROXY and NO_PROXY name. It speaks HTTP/1.1, because there net/http never repeats a POST or DELETE that it has
// written; it repeats a GET, and only where the SDK would do so too. A Transport of your own decides on all of that by
// itself.
//
// If the RoundTripper is not an [http.Transport], or is one that can speak HTTP/2, a request has no GetBody and its
// body can be read once. So net/http cannot send it again, and only the SDK itself repeats a request that was not sent.
// A POST without a body gets an empty body of this kind, which HTTP/1.1 sends chunked.
//
// The SDK learns whether a request was sent from the hooks of [net/http/httptrace], and from reads of its body. A
// RoundTripper that calls no hooks proves nothing, so the outcome is unknown. For a request without a body only an
// [http.Transport] without a TLSNextProto of your own proves anything.
//
// Some RoundTrippers break promises of the SDK:
//
//   - A RoundTripper may have a request performed twice if it sends the request more than once, or goes on with it
//     after RoundTrip has returned. So may a RoundTripper that replaces HTTP by [http.Transport.RegisterProtocol].
//   - On HTTP/2, net/http may send a request twice if the RoundTripper builds it anew, as by [http.NewRequest] or
//     [http.NoBody]. A signer should set headers of the request or of its Clone instead.
//   - A RoundTripper seems to send the request twice if it makes a request of its own with the same context, such as
//     for a token. Then the outcome is unknown after an answer such as 429.
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

// WithRetryPolicy replaces the retry policy.
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
// attempt gets a second more for each 256 KiB of its body. The context of a call limits all its attempts together. The
// error of an attempt that takes too long matches [context.DeadlineExceeded], like the error after the deadline of a
// context. Ask the context whether it has ended.
func WithTimeout(perAttempt time.Duration) Option {
	return func(c *config) {
		if perAttempt <= 0 {
			c.problems.add("WithTimeout", "is not positive")
		}
		c.transport.AttemptTimeout = perAttempt
	}
}

// WithKeySource asks source for the API key on each attempt, so that keys can rotate. The apiKey of [NewClient] is then
// not used and may be empty. If source fails, the attempt sends nothing, and the call fails with that error as a cause.
//
// Calls call source concurrently, so it should cache the key. Its context has the deadline of the attempt. It should
// return when that ends: a key that comes later is not used.
func WithKeySource(source func(context.Context) (string, error)) Option {
	return func(c *config) {
		if source == nil {
			c.problems.add("WithKeySource", "is nil")
			return
		}
		c.transport.Authorization = rotatingKey(source)
	}
}

// WithMerchantID names the merchant that the API key belongs to. It fills [TokenizeRequest.MerchantID] where a request
// leaves it empty.
func WithMerchantID(id MerchantID) Option {
	return func(c *config) {
		if id <= 0 {
			c.problems.add("WithMerchantID", "is not positive")
		}
		c.merchant = id
	}
}

// WithVendorID names the integrator. It fills [TokenizeRequest.VendorID] where a request leaves it empty.
func WithVendorID(id int64) Option {
	return func(c *config) {
		if id <= 0 {
			c.problems.add("WithVendorID", "is not positive")
		}
		c.vendorID = id
	}
}

// WithDeveloperID names the integration by any text. It fills the DeveloperID of tokenize and create-customer requests
// that leave it empty.
func WithDeveloperID(id string) Option {
	return func(c *config) { c.developerID = id }
}

// WithLogger logs one record per attempt, "payvault attempt", and one per call, "payvault call". Their attributes are:
//
//   - operation, status, code, attempts, delivery, duration
//   - waited: how long an attempt waited for the rate limit
//   - budget_spent: there was no further attempt because the budget of retries is spent
//   - unread: paths of the values in the answer that could not be read
//   - error_class and error, if it failed; see [CallResult.ErrorClass]
//
// The records hold no ID, query, body or header of the request. The error has texts of the service, cleared of secrets,
// keys, IDs in the path and values of the query. docs/secrets.md lists the values that it may still repeat.
//
// An attempt and a call that succeeds are logged at Debug. A call that fails, or whose answer could not be read as a
// whole, is logged at Warn, and a call with an unknown outcome at Error. A walk that waits after a 429 makes a new
// call, so each of these calls has a record.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.problems.add("WithLogger", "is nil")
		}
		c.logger = l
	}
}

// WithObserver reports every call to o. A client may have several observers; they are called in the order in which they
// were given. Package otelpayvault has one for traces and metrics of OpenTelemetry.
func WithObserver(o Observer) Option {
	return func(c *config) { c.observers = append(c.observers, o) }
}

// allObservers returns the observers with the logger first, so that its records are made while the spans of the others
// are open.
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

// WithMaxResponseBytes limits the body of an answer, counted after decompression; 8 MiB by default. A larger body is an
// error that matches [ErrResponseTooLarge]. With a status from 400 on, the error is about the status instead, and the
// message and the code may be missing.
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) {
		if n <= 0 {
			c.problems.add("WithMaxResponseBytes", "is not positive")
		}
		c.transport.MaxResponseBytes = n
	}
}

// WithInsecureHTTP allows plain http to any host. Keys and card data then travel unencrypted, so use it in test
// networks only.
func WithInsecureHTTP() Option {
	return func(c *config) { c.insecureHTTP = true }
}
