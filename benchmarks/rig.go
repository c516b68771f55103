package benchmarks

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"time"
)

// Protocol is how a client and a server on the loopback interface talk.
type Protocol string

// The protocols.
const (
	HTTP1 Protocol = "HTTP/1.1"
	TLS1  Protocol = "HTTP/1.1 over TLS"
	HTTP2 Protocol = "HTTP/2"
)

// Server is a server on the loopback interface that counts connections.
type Server struct {
	URL         string
	Connections atomic.Int64

	server *httptest.Server
	roots  *x509.CertPool
	http2  bool
}

// NewServer starts a server.
func NewServer(p Protocol, handler http.Handler) *Server {
	s := &Server{http2: p == HTTP2}
	s.server = httptest.NewUnstartedServer(handler)
	s.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.Connections.Add(1)
		}
	}
	if p == HTTP1 {
		s.server.Start()
	} else {
		s.server.EnableHTTP2 = s.http2
		s.server.StartTLS()
		s.roots = x509.NewCertPool()
		s.roots.AddCert(s.server.Certificate())
	}
	s.URL = s.server.URL
	return s
}

// Close ends the server.
func (s *Server) Close() { s.server.Close() }

// Transport returns a transport with a pool for 64 callers, as a careful programmer sets it up.
func (s *Server) Transport() *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost: 128, IdleConnTimeout: 45 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2: s.http2,
	}
	if s.roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	}
	return t
}

// answering is a handler that reads each request and gives one answer.
func answering(body string) http.Handler {
	length := strconv.Itoa(len(body))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		_, _ = io.WriteString(w, body)
	})
}

// handled is a transport that ends in a handler, without a connection.
type handled struct{ handler http.Handler }

func (h handled) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, req)
	return w.Result(), nil
}
