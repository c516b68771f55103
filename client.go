package payvault

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/urlpath"
)

// Version is the version of this package, as the User-Agent header names it.
const Version = "0.1.0"

// Client calls the service. It is safe for concurrent use; make one per API key and share it, so that its
// connections are shared too. No call changes what is passed to it. [NewClient] makes it: calls of the zero value fail
// with [ErrInvalidRequest].
type Client struct {
	Tokens         *TokensService         // POST /pg/tokenize
	Customers      *CustomersService      // /platform/vault/customer
	Payees         *PayeesService         // /platform/vault/payee
	Applications   *ApplicationsService   // /platform/application
	Disputes       *DisputesService       // /platform/dispute
	Subscriptions  *SubscriptionsService  // /platform/subscription
	Invoices       *InvoicesService       // /platform/invoice
	AccountUpdater *AccountUpdaterService // /platform/aus
	Webhooks       *WebhooksService       // /platform/webhook

	core     *core
	merchant *MerchantID // whom it acts for; nil for the owner of the key
}

// core is what a client and those that [Client.ForMerchant] makes of it share.
type core struct {
	base        *url.URL
	transport   *transport.Client
	merchant    MerchantID
	vendorID    int64
	developerID string
	observers   observers
	server      string      // host and port, for the observers
	header      http.Header // of each request; the values are shared
	paces       map[Operation]*overload.Pace
	policy      RetryPolicy // without zero fields
}

// NewClient returns a client of the service at baseURL, for example "https://sandbox.example.com". A path in baseURL is
// kept as a prefix. The API key is that of a merchant, or the vendor API key of a partner; it is sent to the host of
// baseURL only.
//
// NewClient does no I/O and reads no environment. It refuses, with an error that matches [ErrInvalidRequest]: an empty
// key or one with control characters, a base URL that is not absolute http or https or that has user
// information, a query or a fragment, plain http to a host that is not loopback (see [WithInsecureHTTP]), and
// options that make no sense.
func NewClient(baseURL, apiKey string, opts ...Option) (*Client, error) {
	cfg := defaultConfig()
	for _, opt := range opts {
		if opt != nil {
			opt(&cfg)
		}
	}
	base := checkBaseURL(baseURL, cfg.insecureHTTP, &cfg.problems)
	if cfg.transport.Authorization == nil {
		if err := checkKey(apiKey); err != nil {
			cfg.problems.add("api_key", err.Error())
		}
		cfg.transport.Authorization = staticKey(apiKey)
	}
	if err := cfg.problems.err(OpNewClient); err != nil {
		return nil, err
	}
	cfg.transport.Policy = transport.Policy{
		MaxAttempts: cfg.policy.MaxAttempts, MinBackoff: cfg.policy.MinBackoff, MaxBackoff: cfg.policy.MaxBackoff,
		MaxRetryAfter: cfg.policy.MaxRetryAfter,
	}
	var paces map[Operation]*overload.Pace // none for Call: which calls are one operation is not known
	if !cfg.policy.IgnoreOverload {
		cfg.transport.Budget = new(overload.Budget)
		paces = make(map[Operation]*overload.Pace, len(operations))
		for _, op := range operations {
			paces[op.Op] = overload.NewPace()
		}
	}
	return newClient(&core{
		base: base, paces: paces, transport: transport.New(cfg.transport),
		merchant: cfg.merchant, vendorID: cfg.vendorID, developerID: cfg.developerID,
		observers: cfg.allObservers(), server: hostPort(base),
		policy: cfg.policy,
		header: http.Header{"Accept": {"application/json"}, "User-Agent": {userAgent(cfg.product)}},
	}, nil), nil
}

func newClient(core *core, merchant *MerchantID) *Client {
	c := &Client{core: core, merchant: merchant}
	c.Tokens = &TokensService{c}
	c.Customers = &CustomersService{c}
	c.Payees = &PayeesService{c}
	c.Applications = &ApplicationsService{c}
	c.Disputes = &DisputesService{c}
	c.Subscriptions = &SubscriptionsService{c}
	c.Invoices = &InvoicesService{c}
	c.AccountUpdater = &AccountUpdaterService{c}
	c.Webhooks = &WebhooksService{c}
	return c
}

// ForMerchant returns a client that acts for another merchant. It shares all with c: the key, the connections, and what
// spares a service that refuses requests; docs/partners.md says more. Operations that take a merchant_id, which are
// those of Tokens, Customers, Payees and Subscriptions, send id; a request that names yet another merchant fails. All
// other operations, and [Client.Call], fail before anything is sent with an error that matches
// [ErrMerchantNotSupported].
func (c *Client) ForMerchant(id MerchantID) *Client {
	if c == nil {
		c = new(Client)
	}
	return newClient(c.core, &id)
}

// CloseIdleConnections closes the connections that are not in use, also those of the clients that
// [Client.ForMerchant] made.
func (c *Client) CloseIdleConnections() {
	if c != nil && c.core != nil {
		c.core.transport.CloseIdleConnections()
	}
}

// LogValue logs the base URL and the merchant that the client acts for.
func (c *Client) LogValue() slog.Value {
	if c == nil || c.core == nil {
		return slog.StringValue("not made by NewClient")
	}
	attrs := []slog.Attr{slog.String("base_url", c.core.base.String())}
	if c.merchant != nil {
		attrs = append(attrs, slog.Int64("for_merchant", int64(*c.merchant)))
	}
	return slog.GroupValue(attrs...)
}

// actFor fills in the merchant that the client acts for.
func (c *Client) actFor(id *MerchantID, p *problems) {
	if c.merchant != nil && *id == 0 {
		*id = *c.merchant
	}
	c.checkMerchant("merchant_id", *id, p)
}

// checkMerchant refuses an ID that is none, and one that names a third merchant.
func (c *Client) checkMerchant(path string, id MerchantID, p *problems) {
	switch {
	case id < 0:
		p.add(path, "is negative")
	case c.merchant != nil && id != 0 && id != *c.merchant:
		p.add(path, "names another merchant than ForMerchant")
	}
}

// hostPort returns host and port of a URL, the port of the scheme if it names none.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// checkBaseURL returns nil and adds problems if the URL cannot be used. It never repeats the URL, which may hold a
// password.
func checkBaseURL(text string, insecureHTTP bool, p *problems) *url.URL {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		p.add("base_url", "is not a URL")
		return nil
	case u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		p.add("base_url", "is not an absolute http or https URL")
	case u.User != nil:
		p.add("base_url", "has user information")
	case strings.ContainsAny(text, "?#"):
		p.add("base_url", "has a query or a fragment")
	case u.Scheme == "http" && !insecureHTTP && !isLoopback(u.Hostname()):
		p.add("base_url", "is plain http to a host that is not loopback; see WithInsecureHTTP")
	}
	for segment := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSuffix(u.Path, "/"), "/"), "/") {
		if u.Path != "" && u.Path != "/" && urlpath.Check(segment) != nil {
			p.add("base_url", "has a path segment that is empty or a dot segment")
		}
	}
	return u
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func userAgent(product string) string {
	return strings.TrimSpace(fmt.Sprintf("%s payvault-go/%s (%s; %s)", product, Version, runtime.Version(), runtime.GOOS))
}

// Option sets up a client in [NewClient].
type Option func(*config)

type config struct {
	transport   transport.Config
	merchant    MerchantID
	vendorID    int64
	developerID string
	product     string
	logger      *slog.Logger
	observers   observers
	problems    problems

	policy       RetryPolicy
	insecureHTTP bool
}

// RetryPolicy sets how often and how fast an operation is repeated. Which failures are repeated at all follows
// from the operation and is not a setting; see docs/failures.md. Zero fields take the defaults.
type RetryPolicy struct {
	MaxAttempts   int           // attempts in all, the first included; 4 by default, 1 turns retries off
	MinBackoff    time.Duration // ceiling of the first wait but after a 429, doubled for each further; 200 ms by default
	MaxBackoff    time.Duration // ceiling of these waits; 5 s by default
	MaxRetryAfter time.Duration // longest wait for a Retry-After, or the call fails at once; below 24 h, 30 s by default
	// MaxBulkRetryAfter is the same for SubmitAll and for the iterators of lists, whose work would be lost if they ended;
	// below 24 h, 15 minutes by default, or MaxRetryAfter if that is longer.
	MaxBulkRetryAfter time.Duration
	// IgnoreOverload turns off what the calls of a client share, see docs/failures.md: the budget of
	// retries, and the rate limit of an operation after status 429.
	IgnoreOverload bool
}

// withDefaults fills in the fields that are zero.
func (p RetryPolicy) withDefaults() RetryPolicy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 4)
	p.MinBackoff = cmp.Or(p.MinBackoff, 200*time.Millisecond)
	p.MaxBackoff = cmp.Or(p.MaxBackoff, 5*time.Second)
	p.MaxRetryAfter = cmp.Or(p.MaxRetryAfter, 30*time.Second)
	p.MaxBulkRetryAfter = cmp.Or(p.MaxBulkRetryAfter, max(15*time.Minute, p.MaxRetryAfter))
	return p
}

func defaultConfig() config {
	return config{
		transport: transport.Config{AttemptTimeout: 60 * time.Second, MaxResponseBytes: maxResponse},
		policy:    RetryPolicy{}.withDefaults(),
	}
}

// WithHTTPClient takes the Transport and the Timeout of hc, which is left unchanged, but for what net/http sets up in a
// Transport before its first request. The timeout is that of one attempt; a longer one than that of [WithTimeout]
// changes nothing. Redirects are not followed and cookies are not kept, whatever hc says. Without a Transport, or
// without this option, the client has a connection pool of its own. That keeps 128 idle connections to the service,
// for 45 seconds: as many as there are callers at a time should be kept, or they reconnect all the time, as with the 2
// of net/http's own pool. It wants TLS 1.2 or newer, and uses a proxy of the environment (HTTPS_PROXY and NO_PROXY, as
// net/http reads them) for https only, by CONNECT. A Transport of your own decides by itself on proxies, on the
// version of TLS and on what else it reads.
//
// The own pool speaks HTTP/1.1, on which net/http sends nothing again that was written. An [http.Transport] of yours
// may speak HTTP/2: net/http is then given no means to send a request again by itself, and one whose stream was reset
// or refused is of unknown outcome. A POST without a body goes out with an empty one, chunked on HTTP/1.1. A
// connection that died while it was idle is survived by an [http.Transport] on HTTP/1.1, unless its Protocols allow
// unencrypted HTTP/2; by any other RoundTripper only where TLS has negotiated http/1.1.
//
// What an error says about delivery follows from the hooks of [net/http/httptrace] and from whether the body was
// taken. A RoundTripper that calls no hooks, or has taken any of the body, proves nothing: the outcome is unknown. Of
// a request without a body only an [http.Transport] proves anything, and only without a TLSNextProto of your own.
//
// What cannot be guaranteed: that a request is performed once by a RoundTripper that sends copies of it by itself, or
// goes on with it after it has returned; by one that [http.Transport.RegisterProtocol] puts in the place of HTTP; and
// that a call ends with its context when the RoundTripper, or the body of its response, does not.
func WithHTTPClient(hc *http.Client) Option {
	return func(c *config) {
		if hc == nil {
			c.problems.add("WithHTTPClient", "is nil")
			return
		}
		if hc.Transport != nil && isNil(hc.Transport) {
			c.problems.add("WithHTTPClient", "has a Transport that is a nil pointer")
			return
		}
		c.transport.HTTP = &http.Client{Transport: hc.Transport, Timeout: hc.Timeout}
	}
}

// WithRetryPolicy replaces the retry policy.
func WithRetryPolicy(p RetryPolicy) Option {
	return func(c *config) {
		switch {
		case min(p.MinBackoff, p.MaxBackoff, p.MaxRetryAfter, p.MaxBulkRetryAfter) < 0 || p.MaxAttempts < 0:
			c.problems.add("WithRetryPolicy", "has a negative field")
		case p.MaxRetryAfter >= overload.LongestWait:
			c.problems.add("WithRetryPolicy", "has a MaxRetryAfter of 24 hours or more")
		case p.MaxBulkRetryAfter >= overload.LongestWait:
			c.problems.add("WithRetryPolicy", "has a MaxBulkRetryAfter of 24 hours or more")
		default:
			c.policy = p.withDefaults()
		}
	}
}

// WithTimeout limits one attempt, from asking the key source to the last byte of the answer; 60 s by default. A
// body gets a second more for each 256 KiB that is sent. The context of a call limits all its attempts together.
func WithTimeout(perAttempt time.Duration) Option {
	return func(c *config) {
		if perAttempt <= 0 {
			c.problems.add("WithTimeout", "is not positive")
		}
		c.transport.AttemptTimeout = perAttempt
	}
}

// WithKeySource asks source for the API key on each attempt, so that keys can rotate; the apiKey of [NewClient] is
// then not used and may be empty. When source fails, the call fails with that error as a cause, and that attempt
// sends nothing. The function is called concurrently; it should cache, and return when its context ends, which has the
// deadline of the attempt: a key that comes later counts as none.
func WithKeySource(source func(context.Context) (string, error)) Option {
	return func(c *config) {
		if source == nil {
			c.problems.add("WithKeySource", "is nil")
			return
		}
		c.transport.Authorization = rotatingKey(source)
	}
}

// WithMerchantID names the merchant that the API key belongs to. It fills [TokenizeRequest.MerchantID] where a request
// leaves it empty.
func WithMerchantID(id MerchantID) Option {
	return func(c *config) {
		if id <= 0 {
			c.problems.add("WithMerchantID", "is not positive")
		}
		c.merchant = id
	}
}

// WithVendorID names the integrator. It fills [TokenizeRequest.VendorID] where a request leaves it empty.
func WithVendorID(id int64) Option {
	return func(c *config) {
		if id <= 0 {
			c.problems.add("WithVendorID", "is not positive")
		}
		c.vendorID = id
	}
}

// WithDeveloperID names the integration, a free text. It fills the DeveloperID of tokenize and create-customer requests
// that leave it empty.
func WithDeveloperID(id string) Option {
	return func(c *config) { c.developerID = id }
}

// WithLogger logs one record per attempt, "payvault attempt", and one per call, "payvault call", with operation,
// status, code, attempts, delivery and duration; how long an attempt waited for its pace, and whether it was the last
// since the budget of retries was spent; what could not be read; and if there is an error also error_class (see
// [CallResult.ErrorClass]) and error. They hold no ID, query, body or header of the request, but error has what the
// service says, cleared of secrets, keys, IDs in the path and values of the query; see docs/secrets.md for what it may
// still repeat. Attempts are logged at Debug, and so is a call that succeeds; a call that fails, or whose answer could
// not be read as a whole, at Warn; one that fails with an unknown outcome at Error.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) {
		if l == nil {
			c.problems.add("WithLogger", "is nil")
		}
		c.logger = l
	}
}

// WithObserver tells o about every call; see package otelpayvault for traces and metrics of OpenTelemetry. Of several
// observers each is told, in the order in which they were given.
func WithObserver(o Observer) Option {
	return func(c *config) { c.observers = append(c.observers, o) }
}

// allObservers has the logger first, so that its records come while the spans of the others are open.
func (c *config) allObservers() observers {
	if c.logger == nil {
		return c.observers
	}
	return append(observers{logTo(c.logger)}, c.observers...)
}

// WithUserAgent puts product, such as "acme-billing/2.1", in front of the package's own User-Agent.
func WithUserAgent(product string) Option {
	return func(c *config) {
		if !validHeaderValue(product) {
			c.problems.add("WithUserAgent", "contains a control character")
		}
		c.product = product
	}
}

// WithMaxResponseBytes limits the body of an answer, counted after decompression; 8 MiB by default. A larger one is an
// error that matches [ErrResponseTooLarge].
func WithMaxResponseBytes(n int64) Option {
	return func(c *config) {
		if n <= 0 {
			c.problems.add("WithMaxResponseBytes", "is not positive")
		}
		c.transport.MaxResponseBytes = n
	}
}

// WithInsecureHTTP allows plain http to any host. Keys and card data then travel unencrypted: it is for test
// networks only.
func WithInsecureHTTP() Option {
	return func(c *config) { c.insecureHTTP = true }
}

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	response *Response
	replay   bool
	attempts int
	header   http.Header
	problems problems

	// Of a walk:
	maxRetryAfter time.Duration
	place         *overload.Place // that it has waited for
	sending       context.Context //nolint:containedctx // ends when it is over
}

func newCallOptions(opts []CallOption) callOptions {
	if len(opts) == 0 {
		return callOptions{}
	}
	var o callOptions // in memory of its own, since the options take its address
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// Response is the answer as it came over the wire. JSON, XML and YAML of it leave out header and body.
type Response struct {
	StatusCode int           // 0 if no response arrived
	Header     http.Header   `json:"-" xml:"-" yaml:"-"` // of the last response
	Body       []byte        `json:"-" xml:"-" yaml:"-"` // raw, as far as it was read
	Attempts   int           // 0 if nothing was tried
	Duration   time.Duration // of the whole call, waits included
	// JSON pointers to what could not be read of the answer of an operation that was performed, or did not fit what is
	// documented of it, and to a code that is not documented for the operation; 20 at most.
	Unread []string
}

// Format writes status, size, attempts and duration, without header and body, under every verb.
func (r Response) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "{StatusCode:%d Body:%d bytes Attempts:%d Duration:%v}", r.StatusCode, len(r.Body), r.Attempts,
		r.Duration)
}

// LogValue logs status, size, attempts and duration, without header and body.
func (r Response) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("status", r.StatusCode), slog.Int("body_bytes", len(r.Body)),
		slog.Int("attempts", r.Attempts), slog.Duration("duration", r.Duration))
}

// WithResponse stores the raw answer in r when the call ends, with an error too. Of an iterator it
// stores that of the page or batch whose item is being yielded.
func WithResponse(r *Response) CallOption { return func(o *callOptions) { o.response = r } }

// WithReplay states that repeating this call is harmless, so that it is repeated like a replayable operation
// after a lost connection, a timeout of an attempt, and statuses 502, 503 and 504. When an attempt is lost and the next
// one is refused, the first may have performed the operation: the error has the status and the code of the refusal, and
// matches [ErrOutcomeUnknown].
func WithReplay() CallOption { return func(o *callOptions) { o.replay = true } }

// WithAttempts sets how often this call is tried at most, the first time included.
func WithAttempts(n int) CallOption {
	return func(o *callOptions) {
		if n < 1 {
			o.problems.add("WithAttempts", "is not positive")
		}
		o.attempts = n
	}
}

// WithHeader adds a header to the requests of this call. Refused are Authorization, Host, Accept, Accept-Encoding,
// User-Agent (see [WithUserAgent]), Content-*, the headers of the connection itself, and Idempotency-Key and
// X-Idempotency-Key: the interface documents no such header, and net/http would take it as leave to send a request
// twice.
func WithHeader(key, value string) CallOption {
	key = http.CanonicalHeaderKey(key)
	return func(o *callOptions) {
		if reserved := reservedHeader(key); reserved || !validHeaderName(key) || !validHeaderValue(value) {
			o.problems.add("WithHeader", strconv.Quote(key)+" cannot be set, or not to this value")
			return
		}
		if o.header == nil {
			o.header = http.Header{}
		}
		o.header.Add(key, value)
	}
}

func reservedHeader(key string) bool {
	switch key {
	case "Authorization", "Host", "Accept", "Accept-Encoding", "User-Agent",
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade", "Expect",
		"Idempotency-Key", "X-Idempotency-Key":
		return true
	}
	return strings.HasPrefix(key, "Content-")
}

func validHeaderName(name string) bool {
	return name != "" && strings.Trim(name,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

func validHeaderValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
}

// Request is an operation that this package does not type, for [Client.Call]. Its body is written as encoding/json
// writes it, but each [Secret] in it as its text. Where a MarshalJSON method of your own has redacted one, the call
// fails before anything is sent: such a type needs the method MarshalJSONTo of JSON v2. JSON, XML and YAML of a Request
// itself leave out path, query and body, as logs do.
type Request struct {
	Method string     // an HTTP method
	Path   []string   `json:"-" xml:"-" yaml:"-"` // segments after the base URL, not escaped
	Query  url.Values `json:"-" xml:"-" yaml:"-"` // nil for none
	Body   any        `json:"-" xml:"-" yaml:"-"` // marshalled as JSON; nil for none
	Replay bool       // states that repeating it is harmless; without it a GET is not repeated either
}

// LogValue logs the method and whether there is a body.
func (r Request) LogValue() slog.Value {
	return slog.GroupValue(slog.String("method", r.Method), slog.Int("path_segments", len(r.Path)),
		slog.Bool("body", r.Body != nil))
}

// Format writes what LogValue logs, under every verb: path, query and body may hold anything.
func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.LogValue().String()) }

// Call performs an operation that has no method here, with the same authentication, retries, limits and errors as those
// that have. The interface names some without showing them, such as to accept a dispute or to get an application: ask
// the operator for method, path and body. The whole JSON body of a success is decoded into out, which may be nil, as
// encoding/json decodes it: into what is there already. After an error of decoding, which names the place, out may
// have a part of the answer. An answer is a success if its status is 2xx and its code is 0 or its rcode is 000. What
// decoding allocates is bounded as for the typed operations, but for what methods of your own do, such as
// UnmarshalJSON, and for types of your own that are large by themselves, such as [1 << 20]byte.
//
// It is repeated like a replayable operation if r.Replay is set, whatever its method is.
func (c *Client) Call(ctx context.Context, r Request, out any, opts ...CallOption) error {
	op := OperationInfo{Op: OpCall, Method: r.Method, Replay: ReplayNever}
	if r.Replay {
		op.Replay = ReplaySame
	}
	for i := range r.Path {
		op.Path += "/{path[" + strconv.Itoa(i) + "]}"
	}
	if v := reflect.ValueOf(out); out != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		opts = append(slices.Clip(opts), func(o *callOptions) { o.problems.add("out", "is not a pointer") })
	}
	return exchange(ctx, c, op, with(r.Path...).send(&r), &callReply{out: out}, opts)
}

func (r *Request) prepare(_ *Client, p *problems) any {
	if !validHeaderName(r.Method) || r.Method == http.MethodConnect {
		p.add("method", "is not an HTTP method")
	}
	require(p, "path", len(r.Path))
	return r
}

// callReply takes the success of either shape.
type callReply struct {
	codes

	out any
}

func (r *callReply) result() codes { return r.codes }

func (*callReply) missing() (string, bool) { return "", true }

// read decodes the codes, and then the caller's type.
func (r *callReply) read(first *reader, body []byte) error {
	if err := first.read(body, &r.codes); err != nil || r.out == nil || r.check(OperationInfo{Op: OpCall}) != nil {
		return err
	}
	own := reader{ctx: first.ctx, open: true}
	return own.decode(body, r.out)
}
