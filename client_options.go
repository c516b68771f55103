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

// WithHTTPClient takes the Transport and the Timeout of hc, which is left unchanged, but for what net/http sets up in a
// Transport before its first request. The timeout is that of one attempt; a longer one than that of [WithTimeout]
// changes nothing. Redirects are not followed and cookies are not kept, whatever hc says. Without a Transport, or
// without this option, the client has a connection pool of its own. That keeps 128 idle connections to the service,
// for 45 seconds: as many as there are callers at a time should be kept, or they reconnect all the time, as with the 2
// of net/http's own pool. It wants TLS 1.2 or newer, and uses a proxy of the environment (HTTPS_PROXY and NO_PROXY, as
// net/http reads them) for https only, by CONNECT. A Transport of your own decides by itself on proxies, on the
// version of TLS and on what else it reads.
//
// The own pool speaks HTTP/1.1, on which net/http sends nothing again that was written. It limits the headers of an
// answer to 1 MiB. With any other RoundTripper, and with an [http.Transport] that can speak HTTP/2, the body of a
// request can be read once and there is no GetBody, so that net/http has no means to send it again by itself. The SDK
// itself repeats a request that was not sent. A POST without a body gets an empty one of this kind, which goes out
// chunked on HTTP/1.1.
//
// Whether a request was sent follows from the hooks of [net/http/httptrace], and from whether its body was read. A
// RoundTripper that calls no hooks proves nothing: the outcome is unknown. Without a body only an [http.Transport]
// proves anything, and only without a TLSNextProto of your own.
//
// What cannot be guaranteed:
//
//   - That a request is performed once, if a RoundTripper sends it more than once, goes on with it after it has
//     returned, or stands in the place of HTTP by [http.Transport.RegisterProtocol].
//   - The same on HTTP/2, if a RoundTripper builds the request anew, as a signer does that calls [http.NewRequest] or
//     sets [http.NoBody]. That gives net/http the means to send it twice. Set headers of the request or of its Clone
//     instead.
//   - That a RoundTripper works which has to send the body again, such as one for digest authentication: it finds no
//     GetBody.
//   - That a call ends with its context, if the RoundTripper, or the body of its response, does not.
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

// WithTimeout limits one attempt, from asking the key source to the last byte of the answer; 60 s by default. A
// body gets a second more for each 256 KiB that is sent. The context of a call limits all its attempts together.
func WithTimeout(perAttempt time.Duration) Option {
	return func(c *config) {
		if perAttempt <= 0 {
			c.problems.add("WithTimeout", "is not positive")
		}
		c.transport.AttemptTimeout = perAttempt
	}
}

// WithKeySource asks source for the API key on each attempt, so that keys can rotate; the apiKey of [NewClient] is
// then not used and may be empty. When source fails, the call fails with that error as a cause, and that attempt
// sends nothing. The function is called concurrently; it should cache, and return when its context ends, which has the
// deadline of the attempt: a key that comes later counts as none.
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

// WithDeveloperID names the integration, a free text. It fills the DeveloperID of tokenize and create-customer requests
// that leave it empty.
func WithDeveloperID(id string) Option {
	return func(c *config) { c.developerID = id }
}

// WithLogger logs one record per attempt, "payvault attempt", and one per call, "payvault call", with operation,
// status, code, attempts, delivery and duration; how long an attempt waited for the rate limit, and whether it was the
// last because the budget of retries was spent; what could not be read; and if there is an error also error_class (see
// [CallResult.ErrorClass]) and error. They hold no ID, query, body or header of the request, but error has what the
// service says, cleared of secrets, keys, IDs in the path and values of the query; see docs/secrets.md for what it may
// still repeat. Attempts are logged at Debug, and so is a call that succeeds; a call that fails, or whose answer could
// not be read as a whole, at Warn; one that fails with an unknown outcome at Error. When a walk waits out a refusal
// with status 429, it makes the call again, and each of these calls has its record.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.problems.add("WithLogger", "is nil")
		}
		c.logger = l
	}
}

// WithObserver tells o about every call; see package otelpayvault for traces and metrics of OpenTelemetry. Of several
// observers each is told, in the order in which they were given.
func WithObserver(o Observer) Option {
	return func(c *config) { c.observers = append(c.observers, o) }
}

// allObservers has the logger first, so that its records come while the spans of the others are open.
func (c *config) allObservers() observers {
	if c.logger == nil {
		return c.observers
	}
	return append(observers{logTo(c.logger)}, c.observers...)
}

// WithUserAgent puts product, such as "acme-billing/2.1", in front of the package's own User-Agent.
func WithUserAgent(product string) Option {
	return func(c *config) {
		if !validHeaderValue(product) {
			c.problems.add("WithUserAgent", "contains a control character")
		}
		c.product = product
	}
}

// WithMaxResponseBytes limits the body of an answer, counted after decompression; 8 MiB by default. A larger body is an
// error that matches [ErrResponseTooLarge]. With a status from 400 on the error is that of the status instead, and the
// message and the code may be missing.
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) {
		if n <= 0 {
			c.problems.add("WithMaxResponseBytes", "is not positive")
		}
		c.transport.MaxResponseBytes = n
	}
}

// WithInsecureHTTP allows plain http to any host. Keys and card data then travel unencrypted: it is for test
// networks only.
func WithInsecureHTTP() Option {
	return func(c *config) { c.insecureHTTP = true }
}
