package transport

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newPool returns a transport for backends: many callers, one host. It has no timeout for the header of an answer, which would
// take a timer for each call: the deadline of the attempt is there already.
func newPool() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		// Measured with 64 callers (benchmarks, "sizes of the pool"): with 16 or 32 they open ten times as many connections as they
		// are, from 64 on each keeps its own, and 256 gain nothing. Buffers of other sizes than net/http's 4 KB gain nothing either.
		MaxIdleConnsPerHost: 128,
		// Load balancers drop idle connections after 60 s; leaving first means that a write seldom meets a dead one.
		IdleConnTimeout: 45 * time.Second,
		// One HTTP/2 connection carries many callers: a dead one has to be noticed before they all time out on it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// proxy leaves requests without TLS alone: a proxy would read the key and the body.
func proxy(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// shield is the engine's view of the pool. It hides CloseIdleConnections, which the engine calls after every
// failure and which would close the connections of all other callers.
type shield struct{ client *Client }

// RoundTrip makes an attempt, but for the first one: that has been made, and the engine only learns how it went. What it
// sees of an answer is neither a redirect nor a body, which net/http would act upon.
func (s shield) RoundTrip(req *http.Request) (*http.Response, error) {
	sending := sendingOf(req.Context())
	err := sending.last.err
	if sending.resumed {
		err = s.client.attempt(req.Context(), sending)
	}
	sending.resumed = true
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: sending.last.header, Body: http.NoBody, Request: req}, nil
}
