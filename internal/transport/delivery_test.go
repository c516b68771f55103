package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

// TestRefusedClientCertificate checks a server that requires a client certificate, and gets none or refuses it. The
// request must count as not sent, and must not be repeated. With TLS 1.3 the refusal comes after the handshake, in
// place of the answer.
func TestRefusedClientCertificate(t *testing.T) {
	t.Parallel()
	authority := httptest.NewTLSServer(nil) // only its certificate is used
	defer authority.Close()
	certificates := authority.TLS.Certificates
	refuse := func(tls.ConnectionState) error { return errRefused }
	for alert, test := range map[string]struct {
		server *tls.Config
		client []tls.Certificate
	}{
		"certificate required": {&tls.Config{ClientAuth: tls.RequireAnyClientCert}, nil},
		"bad certificate":      {&tls.Config{ClientAuth: tls.RequireAnyClientCert, VerifyConnection: refuse}, certificates},
		"unknown certificate authority": {
			&tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool()}, certificates,
		},
	} {
		tr := pipes(t, func(conn net.Conn) {
			test.server.Certificates, test.server.MinVersion = certificates, tls.VersionTLS13
			assert.Error(t, tls.Server(conn, test.server).HandshakeContext(t.Context()))
			_, _ = io.Copy(io.Discard, conn)
		})
		tr.TLSClientConfig = &tls.Config{
			Certificates: test.client, InsecureSkipVerify: true, //nolint:gosec // the test is about the other certificate
		}
		result, err := New(testConfig(tr)).Do(t.Context(), post(false).to(t, "https://service.test"))
		require.ErrorContains(t, err, "remote error: tls: "+alert)
		assert.Equal(t, NotSent, result.Delivery, alert)
		assert.Equal(t, 1, result.Attempts, alert)
	}
}

// TestRefusedClientCertificateOnHTTP2 checks an HTTP/2 server that requires a client certificate and gets none. A
// request must count as not sent, with or without a body. If the alert comes before the first stream, net/http does not
// return the alert, but an error such as "client conn could not be established".
func TestRefusedClientCertificateOnHTTP2(t *testing.T) {
	t.Parallel()
	authority := httptest.NewTLSServer(nil) // only its certificate is used
	defer authority.Close()
	config := &tls.Config{
		Certificates: authority.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert,
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
	}
	tr := pipes(t, func(conn net.Conn) {
		q := newQueued(conn)
		defer close(q.writes)
		assert.Error(t, tls.Server(q, config).HandshakeContext(t.Context()))
		_, _ = io.Copy(io.Discard, q)
	})
	tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the test is about the other certificate
	tr.ForceAttemptHTTP2 = true
	for _, request := range []*Request{post(false), post(false).text("")} {
		result, err := New(testConfig(tr)).Do(t.Context(), request.to(t, "https://service.test"))
		require.Error(t, err)
		assert.Equal(t, NotSent, result.Delivery, err)
	}
}

// TestUnprocessed checks the two proofs that no server has processed a request. One is the text of an error of
// net/http, even if another error wraps it. The other is an alert about the client's certificate on a new connection.
// Both count only if the attempt got exactly one connection.
func TestUnprocessed(t *testing.T) {
	t.Parallel()
	cannotRetry := func(reason string) error {
		return errors.New("http2: Transport: cannot retry err [" + reason + "] after Request.Body was written; " +
			"define Request.GetBody to avoid this error")
	}
	reset := func(code string) error {
		return cannotRetry("stream error: stream ID 7; " + code + "; received from peer")
	}
	goneAway := cannotRetry("http2: Transport received Server's graceful shutdown GOAWAY")
	wrapped := fmt.Errorf("of a wrapper: %w", goneAway)
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	none, first, used := []bool{}, []bool{false}, []bool{true} // whether each connection of the attempt was reused
	two := []bool{false, false}
	for name, test := range map[string]struct {
		err    error
		reused []bool
		want   Delivery
	}{
		"GOAWAY":                      {goneAway, used, NotSent},
		"GOAWAY, wrapped":             {wrapped, used, NotSent},
		"GOAWAY, no connection":       {wrapped, none, Unknown},
		"GOAWAY, two connections":     {wrapped, two, Unknown},
		"GOAWAY, a part of the text":  {errors.New("of a wrapper: " + goneAway.Error()), used, Unknown},
		"refused":                     {reset("REFUSED_STREAM"), used, NotSent},
		"another code":                {reset("PROTOCOL_ERROR"), used, Unknown},
		"not established":             {errors.New("http2: client conn could not be established"), first, NotSent},
		"cannot rewind":               {errors.New("net/http: cannot rewind body after connection loss"), used, NotSent},
		"alert, new connection":       {alert, first, NotSent},
		"alert, used connection":      {alert, used, Unknown},
		"alert, second connection":    {alert, two, Unknown},
		"alert, no connection":        {alert, none, Unknown},
		"another text of the network": {errLost, first, Unknown},
	} {
		c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
			_, _ = io.ReadAll(req.Body)
			for _, reused := range test.reused {
				httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{Reused: reused})
			}
			return nil, test.err
		})))
		result, err := c.Do(t.Context(), post(false))
		require.ErrorIs(t, err, test.err)
		assert.Equal(t, test.want, result.Delivery, name)
	}
}

// TestResentByTheRoundTripper checks that Unsure is set if a RoundTripper used two connections for one attempt. Then a
// 429 is retried only if the request has Replay.
func TestResentByTheRoundTripper(t *testing.T) {
	t.Parallel()
	for status, attempts := range map[int]map[bool]int{
		http.StatusOK:              {false: 1, true: 1},
		http.StatusTooManyRequests: {false: 1, true: 3},
	} {
		for replay, want := range attempts {
			c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
				hooks := httptrace.ContextClientTrace(req.Context())
				for range 2 {
					hooks.GetConn("service.test:443")
					hooks.GotConn(httptrace.GotConnInfo{})
				}
				return response(status, strings.NewReader(""), 0), nil
			})))
			result, err := c.Do(t.Context(), post(replay))
			require.NoError(t, err)
			assert.Equal(t, want, result.Attempts, "status %d, replay %t", status, replay)
			assert.True(t, result.Unsure)
		}
	}
}

// TestRequestThatIsDumped checks that Unsure stays false if a RoundTripper logs each request with
// httputil.DumpRequestOut, which calls the hooks of httptrace.
func TestRequestThatIsDumped(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
	}))
	defer srv.Close()
	pool := &http.Transport{}
	defer pool.CloseIdleConnections()
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		if _, err := httputil.DumpRequestOut(req, true); err != nil {
			return nil, err
		}
		return pool.RoundTrip(req)
	})))
	result, err := c.Do(t.Context(), post(false).to(t, srv.URL))
	require.NoError(t, err)
	assert.Equal(t, []any{http.StatusConflict, Answered, false}, []any{result.Status, result.Delivery, result.Unsure})
}

// TestRequestTimeoutOnTheLastConnection checks the Delivery after status 408. It is Answered only if the hooks prove
// that the last connection was new. A used connection may have got the 408 before the request.
func TestRequestTimeoutOnTheLastConnection(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reused []bool // whether each connection of an attempt was reused
		replay bool
		want   Delivery
		sent   int
	}{
		{nil, false, Unknown, 1},
		{[]bool{true}, false, Unknown, 1},
		{[]bool{true}, true, Unknown, 3},
		{[]bool{false}, true, Answered, 1},
		{[]bool{true, false}, false, Answered, 1},
		{[]bool{false, true}, false, Unknown, 1},
	} {
		c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
			for _, reused := range test.reused {
				httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{Reused: reused})
			}
			return response(http.StatusRequestTimeout, strings.NewReader(""), 0), nil
		})))
		result, err := c.Do(t.Context(), post(test.replay))
		require.NoError(t, err)
		assert.Equal(t, test.want, result.Delivery, "%v", test.reused)
		assert.Equal(t, test.sent, result.Attempts, "%v", test.reused)
	}
}
