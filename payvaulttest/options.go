package payvaulttest

import (
	"cmp"
	"log/slog"
	"regexp"
	"time"
)

// Option changes how a server is set up.
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

// WithAddr sets the address to listen on, host:port. The default is a free port of 127.0.0.1.
func WithAddr(addr string) Option { return func(c *config) { c.addr = addr } }

// WithBasePath serves everything below a path such as "/api/v1", of letters, digits, dots, - and _, without a slash at
// its end.
func WithBasePath(path string) Option { return func(c *config) { c.basePath = path } }

// WithAccount adds an account. The first one replaces the default accounts: a merchant with every
// feature, a partner that may act for it and for a second merchant, and that second merchant.
func WithAccount(account Account) Option {
	return func(c *config) { c.accounts = append(c.accounts, account) }
}

// WithClock sets the clock of timestamps. It must not be nil, and be safe for concurrent use. It must not
// call the server, which reads it while it holds its lock.
func WithClock(now func() time.Time) Option { return func(c *config) { c.clock = now } }

// WithIDs sets the seed of the identifiers that the server makes, 1 by default: the same seed and the same order
// of requests give the same identifiers. A test of two servers at once gives each a seed of its own: otherwise a
// card ID of the one may name a card of the other, and a mix-up goes unnoticed.
func WithIDs(seed uint64) Option { return func(c *config) { c.idSeed = seed } }

// WithLogger logs one record per request and one per delivery to a webhook. They hold no secrets.
// Without it nothing is logged. A nil logger is an error.
func WithLogger(logger *slog.Logger) Option { return func(c *config) { c.logger = logger } }

// WithTLS serves HTTPS, with HTTP/2, under a certificate that [Server.HTTPClient] trusts.
func WithTLS() Option { return func(c *config) { c.tls = true } }

// WithRemoteNotifications delivers notifications to any address, not to loopback only.
func WithRemoteNotifications() Option { return func(c *config) { c.remote = true } }

// WithRequestHistory sets how many requests [Server.Requests] remembers at most, 10,000 by default; 0 for none. Of each
// it keeps up to 1 MiB of the body, and up to 1 MiB more of each part of a form: a server that takes many large files
// wants a lower number.
func WithRequestHistory(n int) Option { return func(c *config) { c.history = max(n, 0) } }

// WithSeed adds the accounts and records of a seed. A server does not start with records that the service
// could not have, of merchants without account, or with an ID that another seed has, too.
func WithSeed(seed Seed) Option {
	return func(c *config) {
		c.accounts = append(c.accounts, seed.Accounts...)
		c.seeds = append(c.seeds, seed)
	}
}
