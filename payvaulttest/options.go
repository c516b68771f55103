package payvaulttest

import (
	"cmp"
	"log/slog"
	"regexp"
	"time"
)

// Option configures a server.
type Option func(*config)

type config struct {
	addr     string
	basePath string
	accounts []Account
	clock    func() time.Time
	idSeed   uint64
	logger   *slog.Logger
	tls      bool
	remote   bool
	history  int
	seeds    []Seed
}

func newConfig(opts []Option) (config, error) {
	cfg := config{
		addr:    "127.0.0.1:0",
		clock:   time.Now,
		idSeed:  1,
		logger:  slog.New(slog.DiscardHandler),
		history: 10_000,
	}
	for _, opt := range opts {
		opt(&cfg)
	}
	if len(cfg.accounts) == 0 {
		cfg.accounts = defaultAccounts()
	}
	return cfg, cmp.Or(
		fits(cfg.clock != nil, "the clock must not be nil"),
		fits(cfg.logger != nil, "the logger must not be nil"),
		fits(isBasePath.MatchString(cfg.basePath), "the base path must be plain segments, each after a slash"),
	)
}

var isBasePath = regexp.MustCompile(`^(/[\w~-][\w.~-]*)*$`)

// WithAddr sets the address to listen on, as host:port. By default the server listens on a free port of 127.0.0.1.
func WithAddr(addr string) Option { return func(c *config) { c.addr = addr } }

// WithBasePath serves all operations below a path such as "/api/v1". Each segment of the path may have letters, digits,
// dots, -, _ and ~, and must not begin with a dot. The path must begin with a slash and must not end with one.
func WithBasePath(path string) Option { return func(c *config) { c.basePath = path } }

// WithAccount adds an account. Added accounts replace the default accounts: a merchant with every feature, a second
// merchant, and a partner that may act for both merchants.
func WithAccount(account Account) Option {
	return func(c *config) { c.accounts = append(c.accounts, account) }
}

// WithClock sets the clock for timestamps. The function must not be nil and must be safe for concurrent use. It must
// not call methods of the server. That would deadlock, because the server may hold its lock while it reads the clock.
func WithClock(now func() time.Time) Option { return func(c *config) { c.clock = now } }

// WithIDs sets the seed of the identifiers that the server makes. The default is 1. The same seed and the same order of
// requests give the same identifiers. If a test uses two servers, give each server its own seed. With equal seeds, both
// servers make the same card IDs, and the test does not notice if it uses a card ID with the wrong server.
func WithIDs(seed uint64) Option { return func(c *config) { c.idSeed = seed } }

// WithLogger makes the server log one record for each request, for each delivery to a webhook, and for each error of
// the HTTP server. The records contain no secrets. Without this option nothing is logged. A nil logger is an error.
func WithLogger(logger *slog.Logger) Option { return func(c *config) { c.logger = logger } }

// WithTLS serves HTTPS, with HTTP/1.1 and HTTP/2, and with the certificate of [Server.Certificate]. The clients of
// [Server.HTTPClient], [Server.Client], [Server.PartnerClient] and [Server.ClientFor] trust this certificate.
func WithTLS() Option { return func(c *config) { c.tls = true } }

// WithRemoteNotifications makes the server deliver notifications to any address. By default it delivers only to
// loopback.
func WithRemoteNotifications() Option { return func(c *config) { c.remote = true } }

// WithRequestHistory sets how many requests [Server.Requests] returns at most. The default is 10,000. With 0 the server
// keeps no requests. The server keeps up to 1 MiB of the body of each request, and up to 1 MiB more of each part of a
// form. If the server gets many large files, choose a lower number.
func WithRequestHistory(n int) Option { return func(c *config) { c.history = max(n, 0) } }

// WithSeed adds the accounts and records of a seed. A server does not start if an account is invalid, if a record could
// not exist in the service, if no account may act for the merchant of a record, or if two records of a store have the
// same ID.
func WithSeed(seed Seed) Option {
	return func(c *config) {
		c.accounts = append(c.accounts, seed.Accounts...)
		c.seeds = append(c.seeds, seed)
	}
}
