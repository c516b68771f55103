package payvault

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"

	"example.com/payvault/internal/overload"
	"example.com/payvault/internal/transport"
	"example.com/payvault/internal/urlpath"
)

// Version is the version of this package, as in the User-Agent header.
const Version = "0.1.0"

// Client calls the service. It is safe for concurrent use. Make one Client per API key with [NewClient] and share it,
// so that all calls share its connections. No call changes the values that it sends. Methods of the zero Client panic.
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

	caller *caller
}

// NewClient returns a client of the service at baseURL, for example "https://sandbox.example.com". A path in baseURL
// becomes a prefix of the path of each request. apiKey is the key of a merchant, or the vendor API key of a partner.
// The key is sent to the host of baseURL only.
//
// NewClient does no I/O and reads no environment variables. It refuses these arguments with an error that matches
// [ErrInvalidRequest]:
//
//   - a key that is empty, has control characters, or has blanks, quotes or invisible characters around it, unless
//     [WithKeySource] is given
//   - a base URL that is not absolute http or https
//   - a base URL with user information, a query, a fragment, an empty segment of the path, or a segment . or ..
//   - a base URL that ends in the path of an operation, or in its beginning, such as /platform or /pg: each request
//     adds this path
//   - plain http to a host that is not loopback (see [WithInsecureHTTP])
//   - options with invalid values
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
	if err := cfg.problems.err(opNewClient); err != nil {
		return nil, err
	}
	cfg.transport.Disown = disown
	cfg.transport.Policy = transport.Policy{
		MaxAttempts: cfg.policy.MaxAttempts, MinBackoff: cfg.policy.MinBackoff, MaxBackoff: cfg.policy.MaxBackoff,
		MaxRetryAfter: cfg.policy.MaxRetryAfter,
	}
	var paces map[Operation]*overload.Pace // one per operation; Client.Call has none: its requests differ
	if !cfg.unlimited {
		cfg.transport.Budget = new(overload.Budget)
		paces = make(map[Operation]*overload.Pace, len(operations))
		for _, op := range operations {
			paces[op.Op] = overload.NewPace()
		}
	}
	isJSON, agent := []string{"application/json"}, []string{userAgent(cfg.product)}
	return newClient(&caller{core: &core{
		base: base, paces: paces, transport: transport.New(cfg.transport),
		owner: cfg.merchant, vendorID: cfg.vendorID, developerID: cfg.developerID,
		observers: cfg.allObservers(), server: hostPort(base),
		policy:     cfg.policy,
		header:     http.Header{"Accept": isJSON, "User-Agent": agent},
		jsonHeader: http.Header{"Accept": isJSON, "User-Agent": agent, "Content-Type": isJSON},
	}}), nil
}

// newClient returns a client whose fields, such as Tokens, share a caller.
func newClient(c *caller) *Client {
	client := &Client{caller: c}
	client.Tokens = &TokensService{c}
	client.Customers = &CustomersService{c}
	client.Payees = &PayeesService{c}
	client.Applications = &ApplicationsService{c}
	client.Disputes = &DisputesService{c}
	client.Subscriptions = &SubscriptionsService{c}
	client.Invoices = &InvoicesService{c}
	client.AccountUpdater = &AccountUpdaterService{c}
	client.Webhooks = &WebhooksService{c}
	return client
}

// ForMerchant returns a client that acts for another merchant. It shares the key, the connections, the budget of
// retries and the rate limits with c; see docs/partners.md. The operations of Tokens, Customers, Payees and
// Subscriptions send id as the merchant_id, and fail if the request names a merchant other than id. All other
// operations, and [Client.Call], fail before anything is sent, and the error matches [ErrMerchantNotSupported].
func (c *Client) ForMerchant(id MerchantID) *Client {
	return newClient(&caller{core: c.caller.core, actsFor: &id})
}

// CloseIdleConnections closes the connections that are not in use. The clients that [Client.ForMerchant] made share
// these connections.
func (c *Client) CloseIdleConnections() {
	c.caller.transport.CloseIdleConnections()
}

// LogValue logs the base URL and the merchant that the client acts for.
func (c *Client) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("base_url", c.caller.base.String())}
	if c.caller.actsFor != nil {
		attrs = append(attrs, slog.Int64("for_merchant", int64(*c.caller.actsFor)))
	}
	return slog.GroupValue(attrs...)
}

// Format writes the text of LogValue under every verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.LogValue().String()) }

// hostPort returns the host and the port of a URL. If the URL has no port, hostPort returns the default port of the
// scheme.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// checkBaseURL parses a base URL and adds a problem if the URL cannot be used. The problem does not contain the URL,
// because the URL may have a password in it.
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
	segments := strings.Split(strings.TrimPrefix(strings.TrimSuffix(u.Path, "/"), "/"), "/")
	for _, segment := range segments {
		if u.Path != "" && u.Path != "/" && urlpath.Check(segment) != nil {
			p.add("base_url", "has a path segment that is empty or a dot segment")
		}
	}
	if endsInOperation(segments) {
		p.add("base_url", "ends in the path of an operation, which each request adds: leave out /platform or /pg")
	}
	return u
}

// endsInOperation reports whether the segments of a path end in the path of an operation, or in the beginning of one,
// such as /platform/vault.
func endsInOperation(segments []string) bool {
	for i := range segments {
		end := "/" + strings.Join(segments[i:], "/") + "/"
		isOperation := func(op OperationInfo) bool { return strings.HasPrefix(op.Path+"/", end) }
		if slices.ContainsFunc(operations, isOperation) {
			return true
		}
	}
	return false
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func userAgent(product string) string {
	return strings.TrimSpace(fmt.Sprintf("%s payvault-go/%s (%s; %s)", product, Version, runtime.Version(), runtime.GOOS))
}
