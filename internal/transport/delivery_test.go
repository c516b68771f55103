package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/internal/pool"
)

// TestInspect checks the results of inspect: which RoundTrippers are standard, and which ones use only HTTP/1.
func TestInspect(t *testing.T) {
	t.Parallel()
	asked := func(h2, unencrypted bool) *http.Protocols {
		p := new(http.Protocols)
		p.SetHTTP1(true)
		p.SetHTTP2(h2)
		p.SetUnencryptedHTTP2(unencrypted)
		return p
	}
	type upgrades = map[string]func(string, *tls.Conn) http.RoundTripper
	upgrade := upgrades{"h2": func(string, *tls.Conn) http.RoundTripper { return nil }}
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	type result struct{ standard, onlyHTTP1 bool }
	both, only1 := result{standard: true}, result{standard: true, onlyHTTP1: true}
	for name, test := range map[string]struct {
		rt   http.RoundTripper
		want result
	}{
		"some RoundTripper":        {forgetful(nil), result{}},
		"the default":              {&http.Transport{}, both},
		"own dialer":               {&http.Transport{DialContext: dial}, only1},
		"own dialer for TLS":       {&http.Transport{DialTLSContext: dial}, only1},
		"own settings of TLS":      {&http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}, only1},
		"own dialer, HTTP/2 asked": {&http.Transport{DialContext: dial, ForceAttemptHTTP2: true}, both},
		"TLS dialer, HTTP/2 asked": {&http.Transport{DialTLSContext: dial, ForceAttemptHTTP2: true}, both},
		"no upgrade":               {&http.Transport{TLSNextProto: upgrades{}, ForceAttemptHTTP2: true}, only1},
		"an upgrade":               {&http.Transport{TLSNextProto: upgrade, DialContext: dial}, result{}},
		"HTTP/1 asked":             {&http.Transport{Protocols: asked(false, false)}, only1},
		"HTTP/2 asked":             {&http.Transport{Protocols: asked(true, false), DialContext: dial}, both},
		"h2c asked":                {&http.Transport{Protocols: asked(false, true)}, both},
		"both":                     {&http.Transport{Protocols: asked(true, true)}, both},
		"own pool":                 {pool.New(), only1},
	} {
		for range 2 { // a second call must return the same, although the first one has set up the Transport
			standard, onlyHTTP1 := inspect(test.rt)
			assert.Equal(t, test.want, result{standard, onlyHTTP1}, name)
		}
	}
}

// TestUpgradeOfTheCallers checks that a request is sent only once if an HTTP/2 transport that the caller has put into
// TLSNextProto sends it and then fails.
func TestUpgradeOfTheCallers(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	startHTTP2(server)
	t.Cleanup(server.Close)
	sent := 0
	upgrade := func(string, *tls.Conn) http.RoundTripper {
		return forgetful(func(req *http.Request) (*http.Response, error) {
			sent++
			_, err := io.Copy(io.Discard, req.Body)
			return nil, cmp.Or(err, error(errLost))
		})
	}
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	c := New(testConfig(&http.Transport{
		TLSClientConfig: config,
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{"h2": upgrade},
	}))
	for _, request := range []*Request{post(false), post(false).upload(3), post(false).text("")} {
		before := sent
		result, err := c.Do(t.Context(), request.to(t, server.URL))
		require.ErrorIs(t, err, errLost)
		assert.Equal(t, Unknown, result.Delivery)
		assert.Equal(t, 1, sent-before, "%d bytes", request.Length)
	}
}

// TestNewBesideARequest fails only with -race. It checks that there is no data race if New inspects a Transport while
// another client sends the first request with it.
func TestNewBesideARequest(t *testing.T) {
	t.Parallel()
	shared := http.DefaultTransport.(*http.Transport).Clone()
	var both sync.WaitGroup
	both.Go(func() {
		//nolint:testifylint // only the race counts
		_, _ = New(testConfig(shared)).Do(t.Context(), post(false).to(t, "http://127.0.0.1:1"))
	})
	both.Go(func() { New(testConfig(shared)) })
	both.Wait()
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

// TestLargestLimits checks that the largest MaxResponseBytes, AttemptTimeout and upload length cause no overflow.
func TestLargestLimits(t *testing.T) {
	t.Parallel()
	config := testConfig(&script{steps: times(2, answer(http.StatusOK, "body"))})
	config.MaxResponseBytes = math.MaxInt64
	config.AttemptTimeout = math.MaxInt64
	c := New(config)
	for _, request := range []*Request{post(false), post(false).upload(10 * uploadRate)} {
		result, err := c.Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, "body", string(result.Body))
	}
	for _, timeout := range []time.Duration{time.Second, math.MaxInt64} {
		for _, length := range []int64{1 << 52, 1 << 58, math.MaxInt64} {
			config := testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
				deadline, _ := req.Context().Deadline()
				assert.Greater(t, time.Until(deadline), 100*365*24*time.Hour)
				return nil, errLost
			}))
			config.AttemptTimeout = timeout
			_, err := New(config).Do(t.Context(), post(false).upload(length))
			require.ErrorIs(t, err, errLost)
		}
	}
}

// TestMeansToResend checks the Body and the GetBody of requests. net/http may repeat a request with Replay and without
// a body. Its Body is http.NoBody, so that HTTP/2 ends the stream with the headers. net/http may repeat any other
// request only on HTTP/1, and a GET only if it also has Replay. A request that must not be repeated has no GetBody, and
// has a Body even if the body is empty.
func TestMeansToResend(t *testing.T) {
	t.Parallel()
	requests := []*Request{post(false).text(""), post(false).text("{}"), post(false).upload(3)}
	for _, request := range requests {
		for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodGet} {
			for _, replay := range []bool{false, true} {
				for _, onlyHTTP1 := range []bool{false, true} {
					mayRepeat := onlyHTTP1 && (replay || method != http.MethodGet)
					c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
						assert.Equal(t, mayRepeat && request.Length > 0, req.GetBody != nil)
						if replay && request.Length == 0 {
							assert.Equal(t, http.NoBody, req.Body)
						} else {
							assert.Equal(t, !mayRepeat || request.Length > 0, req.Body != nil)
						}
						return response(http.StatusOK, strings.NewReader(""), 0), nil
					})))
					c.onlyHTTP1 = onlyHTTP1
					request.Method, request.Replay = method, replay
					_, err := c.Do(t.Context(), request)
					require.NoError(t, err)
				}
			}
		}
	}
}

// TestHost checks that the Host field of a request is set, for RoundTrippers that sign requests.
func TestHost(t *testing.T) {
	t.Parallel()
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		assert.Equal(t, "service.test", req.Host)
		return nil, io.ErrUnexpectedEOF
	})))
	_, err := c.Do(t.Context(), post(false))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
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
