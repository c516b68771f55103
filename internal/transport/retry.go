package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// checkRetry is asked by the engine after each attempt.
func checkRetry(ctx context.Context, _ *http.Response, err error) (bool, error) {
	return sendingOf(ctx).again(ctx, err), nil
}

// again tells whether there is another attempt after one that ended with err.
func (s *sending) again(ctx context.Context, err error) bool {
	return ctx.Err() == nil && s.attempts < s.request.MaxAttempts && s.retryable(err)
}

// retryable tells whether repeating is harmless and may help.
func (s *sending) retryable(err error) bool {
	switch {
	case s.last.err != nil || err != nil:
		return !permanent(err) && (s.last.delivery == NotSent || s.request.Replay)
	case s.last.status == http.StatusTooManyRequests:
		return true
	case s.last.status == http.StatusBadGateway,
		s.last.status == http.StatusServiceUnavailable,
		s.last.status == http.StatusGatewayTimeout:
		return s.request.Replay
	}
	return false
}

// permanent tells whether the same failure would follow again at once.
func permanent(err error) bool {
	if errors.Is(err, ErrTooLarge) {
		return true
	}
	if _, ok := errors.AsType[*KeyError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}

// backoff is what the service asks for, up to the cap, or exponential with full jitter.
func (c *Client) backoff(_, _ time.Duration, n int, resp *http.Response) time.Duration {
	p := c.config.Policy
	if resp != nil {
		if after := RetryAfter(resp.Header); after > 0 {
			return min(after, p.MaxRetryAfter)
		}
	}
	ceiling := p.MaxBackoff
	if shifted := p.MinBackoff << min(n, 30); shifted>>min(n, 30) == p.MinBackoff {
		ceiling = min(ceiling, shifted)
	}
	return rand.N(max(ceiling, 1)) //nolint:gosec // jitter need not be unpredictable
}

// longestRetryAfter bounds what is made of a Retry-After header, so that a caller can wait for it and add to it.
const longestRetryAfter = 24 * time.Hour

// RetryAfter reads the Retry-After header, seconds or a date; 0 if there is none to wait for.
func RetryAfter(header http.Header) time.Duration {
	values := header["Retry-After"]
	if len(values) == 0 {
		return 0
	}
	text := strings.TrimSpace(values[0])
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > int64(longestRetryAfter/time.Second) {
			return longestRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), longestRetryAfter)
	}
	return 0
}
