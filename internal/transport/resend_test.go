package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/overload"
)

// derived returns RoundTrippers that give net/http a new context, as http.Client with a Timeout and tracing do.
func derived(base http.RoundTripper) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{
		"plain": base,
		"WithTimeout per hop": forgetful(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(req.Context(), time.Minute)
			context.AfterFunc(req.Context(), cancel)
			return base.RoundTrip(req.WithContext(ctx))
		}),
		"WithCancel and its own hooks": forgetful(func(req *http.Request) (*http.Response, error) {
			ctx, cancel := context.WithCancel(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{}))
			context.AfterFunc(req.Context(), cancel)
			return base.RoundTrip(req.Clone(ctx))
		}),
		"http.Client with Timeout": forgetful((&http.Client{Transport: base, Timeout: time.Minute}).Do),
	}
}

// TestNeverTwiceOnHTTP2 checks that a request is performed once if the server performs it and then resets its stream,
// with any error code. "http over TLS" is a server that negotiates no protocol.
func TestNeverTwiceOnHTTP2(t *testing.T) {
	t.Parallel()
	const calls = 5
	for _, scheme := range []string{"https", "http", "http over TLS"} {
		for code := range uint32(0xd + 1) {
			t.Run(fmt.Sprintf("%s, code %d", scheme, code), func(t *testing.T) {
				t.Parallel()
				base, address, streams := resetting(t, scheme, code, everySecond)
				for name, rt := range derived(base.base) {
					config := testConfig(rt)
					config.AttemptTimeout = 10 * time.Second // enough time for net/http to send it again
					c := New(config)
					for _, request := range []*Request{
						(&Request{Method: http.MethodPost}).text("{}"),
						{Method: http.MethodPost},
						{Method: http.MethodDelete},
						(&Request{Method: http.MethodPost}).upload(3),
						{Method: http.MethodGet},
					} {
						request.Header = http.Header{}
						for range calls {
							_, err := c.Do(t.Context(), request.to(t, address))
							require.NoError(t, err)
							before := streams.Load()
							result, err := c.Do(t.Context(), request)
							require.Error(t, err, name)
							require.Equal(t, Unknown, result.Delivery, name)
							require.Equal(t, 1, result.Attempts, name)
							require.EqualValues(t, 1, streams.Load()-before, "%s, %s: performed more than once", name, request.Method)
						}
					}
				}
			})
		}
	}
}

// TestPartialHooksProveNothing checks that the outcome is unknown if a RoundTripper sends the request on two paths: one
// without hooks, and one that is refused.
func TestPartialHooksProveNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{}", ""} {
		sent := 0
		hedging := forgetful(func(req *http.Request) (*http.Response, error) {
			sent++ // by the path without hooks, whose answer is lost
			if req.ContentLength > 0 {
				_, err := io.Copy(io.Discard, req.Body)
				require.NoError(t, err)
			}
			httptrace.ContextClientTrace(req.Context()).GetConn("service.test:443")
			return nil, errRefused
		})
		result, err := New(testConfig(hedging)).Do(t.Context(), post(false).text(body))
		require.ErrorIs(t, err, errRefused)
		assert.Equal(t, Unknown, result.Delivery)
		assert.Equal(t, 1, result.Attempts)
		assert.Equal(t, 1, sent)
	}
}

// TestNoHooksProveNothing checks that the outcome is unknown if a RoundTripper fails without calling a hook or reading
// the body. It may have sent the request.
func TestNoHooksProveNothing(t *testing.T) {
	t.Parallel()
	own := forgetful(func(*http.Request) (*http.Response, error) { return nil, errRefused })
	result, err := New(testConfig(own)).Do(t.Context(), post(false).text("{}"))
	require.ErrorIs(t, err, errRefused)
	assert.Equal(t, Unknown, result.Delivery)
	assert.Equal(t, 1, result.Attempts)
}

// TestHeadersWithoutBody checks failures after the headers and before the body. Only a failed write proves that the
// headers are incomplete. After any other failure they may have arrived.
func TestHeadersWithoutBody(t *testing.T) {
	t.Parallel()
	for failure, want := range map[error]Delivery{
		errRefused: Unknown,
		&net.OpError{Op: "read", Err: errRefused}:  Unknown,
		&net.OpError{Op: "write", Err: errRefused}: NotSent,
	} {
		broken := forgetful(func(req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			trace.GetConn("service.test:443")
			trace.GotConn(httptrace.GotConnInfo{})
			trace.WroteHeaders()
			return nil, failure
		})
		request := post(false).text("{}")
		request.MaxAttempts = 1
		result, err := New(testConfig(broken)).Do(t.Context(), request)
		require.ErrorIs(t, err, errRefused)
		assert.Equal(t, want, result.Delivery, failure)
	}
}

// TestContextEndsBeforeTheHeaders checks failures after the connection and before the headers. If the context has
// ended, HTTP/2 may still write the headers, so the outcome is unknown.
func TestContextEndsBeforeTheHeaders(t *testing.T) {
	t.Parallel()
	for failure, want := range map[error]Delivery{
		context.Canceled:         Unknown,
		context.DeadlineExceeded: Unknown,
		errRefused:               NotSent,
	} {
		broken := forgetful(func(req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			trace.GetConn("service.test:443")
			trace.GotConn(httptrace.GotConnInfo{})
			return nil, failure
		})
		request := post(false).text("{}")
		request.MaxAttempts = 1
		result, err := New(testConfig(broken)).Do(t.Context(), request)
		require.ErrorIs(t, err, failure)
		assert.Equal(t, want, result.Delivery, failure)
	}
}

// TestRequestTimeoutOnIdleConnection checks that a 408 on a reused connection leaves the outcome unknown. A server may
// send it to an idle connection while the request is on its way. On a new connection a 408 is an answer.
func TestRequestTimeoutOnIdleConnection(t *testing.T) {
	t.Parallel()
	for _, replay := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			answers := []string{"200 OK", "408 Request Timeout", "408 Request Timeout"}
			served := 0
			c := New(testConfig(pipes(t, func(conn net.Conn) {
				for r := bufio.NewReader(conn); served < len(answers) && readRequest(r) == nil; served++ {
					_, _ = io.WriteString(conn, "HTTP/1.1 "+answers[served]+"\r\nContent-Length: 0\r\n\r\n")
				}
			})))
			first, err := c.Do(t.Context(), post(replay).to(t, "http://service.test/"))
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, first.Status)
			request := post(replay).to(t, "http://service.test/")
			request.MaxAttempts = 2
			second, err := c.Do(t.Context(), request)
			require.NoError(t, err)
			assert.Equal(t, http.StatusRequestTimeout, second.Status)
			assert.Equal(t, Unknown, second.Delivery)
			assert.Equal(t, map[bool]int{false: 1, true: 2}[replay], second.Attempts)
		})
	}
}

// TestRetryAfterBeyondTheCap checks that the client does not retry if the service asks for a longer wait than
// MaxRetryAfter.
func TestRetryAfterBeyondTheCap(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		s := &script{steps: times(2, answer(status, "", "Retry-After", "2"))}
		result, err := New(testConfig(s)).Do(t.Context(), post(true))
		require.NoError(t, err)
		assert.Equal(t, 1, result.Attempts)
		assert.Equal(t, 2*time.Second, overload.RetryAfter(result.Header))
	}
}

// TestPanicOfARoundTripper checks that a panic reaches the caller, and that the body cannot be read afterwards.
func TestPanicOfARoundTripper(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("broken")
	var body io.Reader
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		body = req.Body
		panic(errOwn)
	})))
	assert.PanicsWithError(t, "broken", func() { _, _ = c.Do(t.Context(), post(false)) })
	_, err := body.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
