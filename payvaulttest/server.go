package payvaulttest

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"time"

	"example.com/payvault/payvaulttest/internal/faulty"
	"example.com/payvault/payvaulttest/internal/inspect"
)

// Server is an emulator of the payment service. By default it listens on loopback. It is safe for concurrent use.
type Server struct {
	// URL is the base URL for a client: scheme, host, port and base path, without a slash at the end.
	URL string

	// Records are the stores of the server, such as Invoices.
	Records

	cfg        config
	state      *state
	deliveries *dispatcher
	handler    *handler
	http       *httptest.Server
	cancel     context.CancelFunc
	running    sync.RWMutex // each request holds a read lock
	closing    sync.Once
}

// NewServer starts a server. The caller closes it with [Server.Close]. Like [net/http/httptest.NewServer], NewServer
// panics if the server cannot listen. It also panics if an option is invalid, or in a bubble of [testing/synctest]; see
// "Fake time" in the package comment. [Start] returns an error instead.
func NewServer(opts ...Option) *Server {
	s, err := Start(opts...)
	if err != nil {
		panic(err)
	}
	return s
}

// Start starts a server. The caller closes it with [Server.Close]. Start returns an error if the server cannot listen,
// if an option is invalid, or if Start is called in a bubble of [testing/synctest].
func Start(opts ...Option) (*Server, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := start(ctx, opts)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("payvaulttest: %w", err)
	}
	s.cancel = cancel
	return s, nil
}

// start starts a server that runs until ctx ends.
func start(ctx context.Context, opts []Option) (*Server, error) {
	s, err := newServer(ctx, opts)
	if err != nil {
		return nil, err
	}
	if inBubble() {
		return nil, errors.New("a server cannot start in a bubble of testing/synctest, because an open socket stops the " +
			"time of the bubble: start the server before synctest.Test")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.http = &httptest.Server{Listener: listener, EnableHTTP2: true, Config: &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.cfg.logger.Handler(), slog.LevelError),
	}}
	s.handler.server = "http://" + listener.Addr().String()
	start := s.http.Start
	if s.cfg.tls {
		s.handler.server = "https://" + listener.Addr().String()
		start = s.http.StartTLS
	}
	s.URL = s.handler.server + s.cfg.basePath
	start()
	return s, nil
}

// inBubble reports whether the calling goroutine is in a bubble of testing/synctest. Only the first line of the
// goroutine's stack trace says so, such as "goroutine 5 [running, synctest bubble 1]:".
func inBubble() bool {
	trace := make([]byte, 200)
	trace = trace[:runtime.Stack(trace, false)]
	line, _, _ := bytes.Cut(trace, []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}

// newServer returns a server that does not listen yet.
func newServer(ctx context.Context, opts []Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	accounts, err := newAccounts(cfg.accounts)
	if err != nil {
		return nil, err
	}
	feed := inspect.NewFeed()
	s := &Server{cfg: cfg, state: newState(accounts, cfg.clock, cfg.idSeed)}
	s.deliveries = newDispatcher(ctx, cfg.remote, cfg.logger, feed)
	s.Records = newRecords(s.state, s.deliveries)
	if err := s.plant(); err != nil {
		return nil, err
	}
	s.handler = newHandler(&shared{
		state: s.state, basePath: cfg.basePath, logger: cfg.logger, feed: feed, requests: requestLog{limit: cfg.history},
	})
	return s, nil
}

// plant adds the records of all seeds to the stores.
func (s *Server) plant() error {
	for _, seed := range s.cfg.seeds {
		if err := plantAll(s.Records, seed); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return nil
}

// ServeHTTP answers one request. It does not clean the path: a path with // or /../ matches no operation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.RLock()
	defer s.running.RUnlock()
	if r.Context().Err() != nil { // the server is closed
		faulty.Abort()
	}
	s.handler.ServeHTTP(w, r)
}

// Close stops the server. It aborts all requests, also those that a fault delays. It aborts deliveries and closes the
// connections. When Close returns, no goroutine of the server is left. A second call does nothing.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.cancel()
		s.handler.feed.Close()
		s.http.CloseClientConnections()
		s.http.Close()
		s.running.Lock() // wait for HTTP/2 handlers, which may run longer than their connection
		defer s.running.Unlock()
		s.deliveries.close()
	})
}

// HTTPClient returns a client that trusts the certificate of [WithTLS]. [Server.Close] closes the idle connections of
// this client.
func (s *Server) HTTPClient() *http.Client { return s.http.Client() }

// Certificate returns the certificate of [WithTLS], for a client of your own: add it to the RootCAs of its TLS
// configuration. Without WithTLS, Certificate returns nil.
func (s *Server) Certificate() *x509.Certificate { return s.http.Certificate() }

// Format implements [fmt.Formatter]. It writes the address of the server and never its accounts.
func (s *Server) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "payvaulttest.Server("+s.URL+")")
}
