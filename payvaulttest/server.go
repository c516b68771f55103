package payvaulttest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is an emulator of the service that listens on loopback. It is safe for concurrent use.
type Server struct {
	// URL is the base address to give to a client: scheme, host, port and base path, without a slash
	// at the end.
	URL string

	basePath  string
	maxUpload int64
	secure    bool
	logger    *slog.Logger
	service   *service
	routes    []route
	events    *dispatcher
	faults    faults
	requests  requestLog
	conns     *connections
	running   gate
	http      *http.Server
	client    *http.Client
	cancel    context.CancelFunc
	served    chan struct{}
	closing   sync.Once
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
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("payvaulttest: %w", err)
	}
	service, err := newService(cfg)
	if err != nil {
		return nil, fmt.Errorf("payvaulttest: %w", err)
	}
	seed := mergeSeeds(cfg.seeds)
	if err := seed.check(service.accounts.has); err != nil {
		return nil, fmt.Errorf("payvaulttest: seed: %w", err)
	}
	identity, err := newIdentity(cfg.tls)
	if err != nil {
		return nil, fmt.Errorf("payvaulttest: make a certificate: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.addr)
	if err != nil {
		return nil, fmt.Errorf("payvaulttest: listen: %w", err)
	}
	s := newServer(cfg, service, identity)
	s.URL = identity.scheme() + "://" + listener.Addr().String() + cfg.basePath
	s.plant(seed)
	go s.listen(listener)
	return s, nil
}

func newServer(cfg config, service *service, identity identity) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		basePath:  cfg.basePath,
		maxUpload: cfg.maxUpload,
		secure:    cfg.tls,
		logger:    cfg.logger,
		service:   service,
		routes:    service.routes(),
		events:    newDispatcher(ctx, cfg.remote, cfg.logger),
		requests:  requestLog{limit: cfg.history},
		client:    identity.client(),
		cancel:    cancel,
		served:    make(chan struct{}),
	}
	service.events = s.events
	s.conns = newConnections(s.faults.refusing)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		TLSConfig:         identity.config(),
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConn,
		ConnState:         s.conns.track,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),

		DisableGeneralOptionsHandler: true, // OPTIONS * is a request like any other
	}
	return s
}

// listen serves until the server is closed.
func (s *Server) listen(listener net.Listener) {
	defer close(s.served)
	listener = &pickyListener{Listener: listener, refuse: s.faults.takeConnection}
	if s.secure {
		_ = s.http.ServeTLS(listener, "", "")
		return
	}
	_ = s.http.Serve(listener)
}

// Close ends the server: its requests, delays and deliveries are cut short, its connections closed.
// When it returns, no goroutine of the server is left. Closing again does nothing.
func (s *Server) Close() {
	s.closing.Do(func() {
		s.cancel()
		_ = s.http.Close()
		<-s.served
		s.conns.wait()
		s.running.shut() // HTTP/2 handlers outlive their connection
		s.events.end()
		s.client.CloseIdleConnections()
	})
}

// HTTPClient returns a client that trusts the server's certificate under [WithTLS]. [Server.Close]
// closes its idle connections.
func (s *Server) HTTPClient() *http.Client { return s.client }

// Format implements [fmt.Formatter]: a server shows its address, never its accounts.
func (s *Server) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "payvaulttest.Server("+s.URL+")")
}

// LogValue implements [slog.LogValuer]: a server shows its address, never its accounts.
func (s *Server) LogValue() slog.Value { return slog.StringValue(s.URL) }
