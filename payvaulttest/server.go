package payvaulttest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"time"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/faulty"
	"example.com/payvault/payvaulttest/internal/inspect"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// Server is an emulator of the service that listens on loopback. It is safe for concurrent use.
type Server struct {
	// URL is the base address to give to a client: scheme, host, port and base path, without a slash
	// at the end.
	URL string

	// Records are the stores of the server, such as Invoices.
	Records

	cfg      config
	service  *service
	mux      *http.ServeMux
	faults   faults
	requests requestLog
	feed     *inspect.Feed
	http     *httptest.Server
	cancel   context.CancelFunc
	running  sync.RWMutex // held for reading by each request
	closing  sync.Once
}

// NewServer starts a server; close it with [Server.Close]. Like [net/http/httptest.NewServer] it
// panics if it cannot listen, and also if its options are wrong. [Start] returns the error instead.
func NewServer(opts ...Option) *Server {
	s, err := Start(opts...)
	if err != nil {
		panic(err)
	}
	return s
}

// Start starts a server, or says why it cannot.
func Start(opts ...Option) (*Server, error) {
	s, err := newServer(opts)
	if err != nil {
		return nil, fmt.Errorf("payvaulttest: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.addr)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("payvaulttest: listen: %w", err)
	}
	s.cancel = cancel
	records := slog.NewMultiHandler(s.cfg.logger.Handler(), s.feed)
	s.service.deliveries = newDispatcher(ctx, s.cfg.remote, slog.New(records))
	s.http = &httptest.Server{Listener: listener, EnableHTTP2: true, Config: &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.cfg.logger.Handler(), slog.LevelError),
	}}
	if s.cfg.tls {
		s.http.StartTLS()
	} else {
		s.http.Start()
	}
	s.URL = s.http.URL + s.cfg.basePath
	return s, nil
}

// newServer makes a server that does not listen yet.
func newServer(opts []Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	service, err := newService(cfg)
	if err != nil {
		return nil, err
	}
	for _, seed := range cfg.seeds {
		if err := service.plant(seed); err != nil {
			return nil, fmt.Errorf("seed: %w", err)
		}
	}
	s := &Server{cfg: cfg, service: service, Records: service.Records, mux: http.NewServeMux(), feed: inspect.NewFeed()}
	s.requests.limit = cfg.history
	actions := service.actions()
	for _, o := range service.document.Operations {
		action := actions[payvault.Operation(o.ID)]
		s.mux.HandleFunc(o.Method+" "+cfg.basePath+o.Path, func(w http.ResponseWriter, r *http.Request) {
			s.exchange(w, r, o, action)
		})
	}
	return s, nil
}

// ServeHTTP answers one request. Paths match as they are: nothing is cleaned.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.RLock()
	defer s.running.RUnlock()
	_, pattern := s.mux.Handler(r)
	switch {
	case r.Context().Err() != nil: // the server is closed
		faulty.Abort()
	case pattern == "" || path.Clean(r.URL.EscapedPath()) != r.URL.EscapedPath():
		s.exchange(w, r, &openapi.Operation{Method: "other", Path: "none"}, nil)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// Close ends the server: its requests, delays and deliveries are cut short, its connections closed.
// When it returns, no goroutine of the server is left. Closing again does nothing.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.cancel()
		s.feed.Close()
		s.http.CloseClientConnections()
		s.http.Close()
		s.running.Lock() // HTTP/2 handlers outlive their connection
		defer s.running.Unlock()
		s.service.deliveries.close()
	})
}

// HTTPClient returns a client that trusts the server's certificate under [WithTLS]. [Server.Close]
// closes its idle connections.
func (s *Server) HTTPClient() *http.Client { return s.http.Client() }

// Format implements [fmt.Formatter]: a server shows its address, never its accounts.
func (s *Server) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "payvaulttest.Server("+s.URL+")")
}
