package transport

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// derived returns base, and RoundTrippers that pass the request on to base. One adds a header. The others derive a
// context, as tracing libraries do, and an http.Client that has a Timeout.
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
		"an Idempotency-Key": forgetful(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.Header.Set("Idempotency-Key", "1")
			return base.RoundTrip(req)
		}),
	}
}

// TestNeverTwiceOnHTTP2 checks that a request without Replay is performed once if the server performs it and then
// resets its HTTP/2 stream. It tests all error codes except REFUSED_STREAM, which states that nothing was performed.
// "http over TLS" is a TLS server that negotiates no protocol with ALPN.
func TestNeverTwiceOnHTTP2(t *testing.T) {
	t.Parallel()
	const calls = 5
	for _, scheme := range []string{"https", "http", "http over TLS"} {
		for code := range uint32(0xd + 1) {
			if code == refusedStream {
				continue
			}
			t.Run(fmt.Sprintf("%s, code %d", scheme, code), func(t *testing.T) {
				t.Parallel()
				base, address, streams := resetting(t, scheme, code, everySecond)
				for name, rt := range derived(base.base) {
					config := testConfig(rt)
					config.AttemptTimeout = 10 * time.Second // enough time for net/http to repeat the request
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

// TestNeverTwiceOnHTTP1 checks that a request without Replay is performed once if the server reads it from a reused
// HTTP/1 connection and then closes the connection. net/http repeats such a request if it has a safe method or an
// Idempotency-Key, and can be sent again.
func TestNeverTwiceOnHTTP1(t *testing.T) {
	t.Parallel()
	for wrapper := range derived(nil) {
		for _, request := range []*Request{
			(&Request{Method: http.MethodPost}).text("{}"),
			{Method: http.MethodPost},
			{Method: http.MethodDelete},
			(&Request{Method: http.MethodPost}).upload(3),
			{Method: http.MethodGet},
		} {
			synctest.Test(t, func(t *testing.T) {
				served := 0
				tr := pipes(t, func(conn net.Conn) { // it answers only the first request
					for r := bufio.NewReader(conn); readRequest(r) == nil; {
						if served++; served > 1 {
							return
						}
						_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
					}
				})
				c := New(testConfig(derived(tr)[wrapper]))
				request.Header = http.Header{}
				_, err := c.Do(t.Context(), request.to(t, "http://service.test/"))
				require.NoError(t, err)
				result, err := c.Do(t.Context(), request)
				require.Error(t, err)
				assert.Equal(t, Unknown, result.Delivery, wrapper)
				assert.Equal(t, 1, result.Attempts, wrapper)
				assert.Equal(t, 2, served, "%s, %s: performed more than once", wrapper, request.Method)
			})
		}
	}
}

// TestDeliveryWithoutResponse checks the Delivery of a request that failed without a response. Delivery depends on the
// error, on the httptrace hooks that were called, and on whether the body was read. The RoundTripper is not an
// *http.Transport, so it may send data without calling a hook.
func TestDeliveryWithoutResponse(t *testing.T) {
	t.Parallel()
	errWrite := &net.OpError{Op: "write", Err: errRefused}
	errRead := &net.OpError{Op: "read", Err: errRefused}
	type hooks struct{ asked, connected, wroteHeaders, readBody bool }
	for name, test := range map[string]struct {
		body  string
		hooks hooks
		err   error
		want  Delivery
	}{
		"no hooks":                      {"{}", hooks{}, errRefused, Unknown},
		"no connection":                 {"{}", hooks{asked: true}, errRefused, NotSent},
		"no connection, body read":      {"{}", hooks{asked: true, readBody: true}, errRefused, Unknown},
		"no connection, no body":        {"", hooks{asked: true}, errRefused, Unknown},
		"connection":                    {"{}", hooks{asked: true, connected: true}, errRefused, NotSent},
		"connection, canceled":          {"{}", hooks{asked: true, connected: true}, context.Canceled, Unknown},
		"connection, timeout":           {"{}", hooks{asked: true, connected: true}, context.DeadlineExceeded, Unknown},
		"headers, failed write":         {"{}", hooks{true, true, true, false}, errWrite, NotSent},
		"headers, failed read":          {"{}", hooks{true, true, true, false}, errRead, Unknown},
		"headers, other failure":        {"{}", hooks{true, true, true, false}, errRefused, Unknown},
		"part of the body":              {"{}", hooks{true, true, true, true}, errWrite, Unknown},
		"headers of a body of no bytes": {"", hooks{true, true, true, false}, errWrite, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := forgetful(func(req *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(req.Context())
				if test.hooks.asked {
					trace.GetConn("service.test:443")
				}
				if test.hooks.connected {
					trace.GotConn(httptrace.GotConnInfo{})
				}
				if test.hooks.wroteHeaders {
					trace.WroteHeaders()
				}
				if test.hooks.readBody {
					_, _ = req.Body.Read(make([]byte, 1))
				}
				return nil, test.err
			})
			request := post(false).text(test.body)
			result, err := New(testConfig(broken)).Do(t.Context(), request)
			require.ErrorIs(t, err, test.err)
			assert.Equal(t, test.want, result.Delivery)
			assert.Equal(t, map[Delivery]int{Unknown: 1, NotSent: 3}[test.want], result.Attempts)
		})
	}
}

// TestNoConnection checks that Delivery is NotSent if an *http.Transport got no connection, even with HTTP/2 and
// without a body.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		refusing := &http.Transport{
			ForceAttemptHTTP2: http2,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return nil, errRefused },
		}
		for _, request := range []*Request{post(false).text(""), post(false).text("{}"), post(false).upload(3)} {
			result, err := New(testConfig(refusing)).Do(t.Context(), request)
			require.ErrorIs(t, err, errRefused)
			assert.Equal(t, NotSent, result.Delivery)
			assert.Equal(t, 3, result.Attempts)
		}
	}
}

// TestPanicOfARoundTripper checks that a panic of the RoundTripper reaches the caller of Do, and that the request body
// cannot be read after the panic.
func TestPanicOfARoundTripper(t *testing.T) {
	t.Parallel()
	var body io.Reader
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		body = req.Body
		panic(errLost)
	})))
	assert.PanicsWithError(t, errLost.Error(), func() { _, _ = c.Do(t.Context(), post(false)) })
	_, err := body.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// TestNothingIsReadAfterTheAttempt checks that all readers of an upload fail after the attempt. On HTTP/2 net/http may
// read the request body even after it has returned the response.
func TestNothingIsReadAfterTheAttempt(t *testing.T) {
	t.Parallel()
	for _, onlyHTTP1 := range []bool{false, true} {
		var readers []io.Reader
		c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
			readers = []io.Reader{req.Body}
			if onlyHTTP1 { // on HTTP/1 net/http may read the upload a second time
				again, err := req.GetBody()
				assert.NoError(t, err)
				readers = append(readers, again)
			}
			for _, r := range readers {
				_, err := io.ReadFull(r, make([]byte, 3))
				assert.NoError(t, err)
			}
			return response(http.StatusOK, strings.NewReader(""), 0), nil
		})))
		c.standard, c.onlyHTTP1 = onlyHTTP1, onlyHTTP1
		_, err := c.Do(t.Context(), post(false).upload(7))
		require.NoError(t, err)
		for _, r := range readers {
			_, err := r.Read(make([]byte, 3))
			require.ErrorIs(t, err, io.ErrClosedPipe)
		}
	}
}
