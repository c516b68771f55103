// Package pool makes the default transport of a client. The transport holds the pool of connections.
package pool

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// New returns a transport for a program that calls one host from many goroutines. The transport uses only HTTP/1.1,
// because on HTTP/2 net/http may repeat a POST that the service has performed; see resend.go of package transport. The
// transport has no ResponseHeaderTimeout, because each attempt of a call has a deadline.
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
		// Without this function the error has only the status text of the proxy, such as "Forbidden".
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			return &ProxyError{answer.StatusCode}
		},
		// Some servers, such as uWSGI 2.0 with http-socket, never send status 100. An upload to such a server waits this long
		// before it sends the body.
		ExpectContinueTimeout: time.Second,
		// The default of net/http is 10 MB. But 10 MB of small headers take 157 MB of memory.
		MaxResponseHeaderBytes: 1 << 20,
		// 128 concurrent callers can keep their connections. Any further connection is closed after its call.
		MaxIdleConnsPerHost: 128,
		// Many load balancers close idle connections after 60 s. The transport closes them first, so that it seldom writes to
		// a closed one.
		IdleConnTimeout: 45 * time.Second,
	}
}

// ProxyError is the error of a proxy that refuses to connect to the service.
type ProxyError struct{ Status int }

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy refused CONNECT with status %d", e.Status)
}

// proxy returns the proxy from the environment. It returns none for a request without TLS, because the proxy could read
// the API key and the body.
func proxy(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}
