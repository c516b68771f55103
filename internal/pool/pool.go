// Package pool has the connections that a client keeps unless it is given others.
package pool

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"
)

// New returns a transport for backends: many callers, one host. It speaks HTTP/1.1 only, on which net/http sends
// nothing again that was written. The deadline of the attempt covers the wait for the header of an answer.
func New() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		Protocols:           protocols,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		// net/http allows 10 MB by default, which take 157 MB when they are many small headers.
		MaxResponseHeaderBytes: 1 << 20,
		// As many as there may be callers at a time: what is not kept is dialed anew for each call.
		MaxIdleConnsPerHost: 128,
		// Load balancers drop idle connections after 60 s; leaving first means that a write seldom meets a dead one.
		IdleConnTimeout: 45 * time.Second,
	}
}

// proxy leaves requests without TLS alone: a proxy would read the key and the body.
func proxy(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}
