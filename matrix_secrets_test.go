package payvault_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// canaries are the secrets that the requests of the matrix carry, and the keys, as they are and on the wire.
func canaries(srv *payvaulttest.Server) []string {
	secrets := []string{
		secretCard, secretSwipe, strings.TrimSuffix(strings.TrimPrefix(secretSwipe, "%B"), "^DOE/JANE^30121010000000000?"), secretWallet,
		secretRouting, secretAccount, secretSSN, secretTaxID,
		base64.StdEncoding.EncodeToString([]byte(secretCard)), url.QueryEscape(secretSwipe),
	}
	for _, account := range srv.Accounts() {
		secrets = append(secrets, account.APIKey, payvaulttest.BasicToken(account.APIKey),
			strings.TrimPrefix(payvaulttest.BasicToken(account.APIKey), "Basic "))
	}
	return secrets
}

// assertNoCanary searches a text. The security code has too few digits for a search without context: what is around
// it must not be a longer number.
func assertNoCanary(t *testing.T, srv *payvaulttest.Server, text, where string) {
	t.Helper()
	for _, canary := range canaries(srv) {
		assert.NotContains(t, text, canary, where)
	}
	assert.NotRegexp(t, `\b`+secretCVV+`\b`, text, where)
}

// logBuffer keeps what a logger writes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// logger writes everything but the time, whose digits may be anything.
func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{
		Level: slog.LevelDebug, AddSource: true,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// TestMatrixSecrets runs every operation under every fault, with debug logging on, and searches everything that comes out.
func TestMatrixSecrets(t *testing.T) {
	t.Parallel()
	faults := matrixFaults(t)
	for i := range faults {
		if faults[i].hangs != nil {
			continue // those hang, and say what others say
		}
		t.Run(faults[i].name, func(t *testing.T) {
			t.Parallel()
			ops := matrixOperations()
			for k := range ops {
				assertCellIsSilent(t, &faults[i], &ops[k])
			}
		})
	}
}

// TestMatrixGossip has the service repeat in its answers what it was sent, wherever it can.
func TestMatrixGossip(t *testing.T) {
	t.Parallel()
	ops := matrixOperations()
	for i := range ops {
		t.Run(ops[i].name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{200, 307, 400, 422, 503} {
				for _, body := range []string{
					`{"code":2,"rcode":"SECRETS","rmsg":"SECRETS","message":"SECRETS","data":{"SECRETS":["SECRETS"]}}`,
					`{"code":"SECRETS","message":"SECRETS","data":{"message":"SECRETS"}}`,
					`{"code":0,"rcode":"000","data":"SECRETS"`, "SECRETS",
				} {
					gossip := payvaulttest.Fault{
						Kind: payvaulttest.Respond, Status: status, Body: strings.ReplaceAll(body, "SECRETS", secretsOf(t, &ops[i])),
						Header: http.Header{"Location": {"/" + url.PathEscape(secretsOf(t, &ops[i]))}},
					}
					assertCellIsSilent(t, &matrixFault{name: fmt.Sprintf("gossip %d %.20s", status, body), inject: gossip}, &ops[i])
				}
			}
		})
	}
}

// secretsOf is all that a request of an operation has to hide, within a JSON string.
func secretsOf(t *testing.T, op *matrixOp) string {
	t.Helper()
	srv := payvaulttest.NewServer()
	defer srv.Close()
	key := srv.Merchant().APIKey
	if op.partner {
		key = srv.Partner().APIKey
	}
	return strings.Join(append([]string{key, payvaulttest.BasicToken(key)}, op.secrets...), ", ")
}

func assertCellIsSilent(t *testing.T, f *matrixFault, op *matrixOp) {
	t.Helper()
	var clientLog, serverLog logBuffer
	where := op.name + " × " + f.name
	c, err := newCell(t.Context(), f, op, f.once == "", []payvaulttest.Option{payvaulttest.WithLogger(serverLog.logger())}, payvault.WithLogger(clientLog.logger()))
	require.NoError(t, err, where)
	defer c.close()
	for _, text := range everyText(c.call(t.Context(), c.client)) {
		assertNoCanary(t, c.server, text, where+": error")
	}
	assert.NotEmpty(t, clientLog.String(), where)
	assertNoCanary(t, c.server, clientLog.String(), where+": log of the client")
	assertNoCanary(t, c.server, serverLog.String(), where+": log of the emulator")
}

// everyText formats an error, and all that it wraps, in every way.
func everyText(err error) []string {
	if err == nil {
		return nil
	}
	texts := []string{err.Error(), fmt.Sprintf("%v %+v %#v %q %s %x", err, err, err, err, err, err)}
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				texts = append(texts, fmt.Sprintf("%+v", v.Field(i).Interface()))
			}
		}
	}
	switch wrapper := err.(type) { //nolint:errorlint // every layer is looked at by itself
	case interface{ Unwrap() error }:
		texts = append(texts, everyText(wrapper.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, wrapped := range wrapper.Unwrap() {
			texts = append(texts, everyText(wrapped)...)
		}
	}
	return texts
}

// TestKeyStaysWithItsHost runs every operation through a proxy, with answers that name other hosts, and looks for the key
// wherever it does not belong.
func TestKeyStaysWithItsHost(t *testing.T) {
	t.Parallel()
	var elsewhere logBuffer
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _ = r.Write(&elsewhere) }))
	t.Cleanup(other.Close)
	proxy := newTunnel(t)
	lure := &matrixFault{name: "lure", tls: true, network: func(c *matrixCell) http.RoundTripper {
		transport := c.server.HTTPClient().Transport.(*http.Transport).Clone()
		transport.Proxy = http.ProxyURL(proxy.url)
		return transport
	}, inject: payvaulttest.Fault{Kind: payvaulttest.Respond, Status: http.StatusTemporaryRedirect, Header: http.Header{
		"Location": {other.URL}, "Content-Location": {other.URL}, "Refresh": {"0; url=" + other.URL}, "Link": {"<" + other.URL + ">; rel=preload"},
		"Alt-Svc": {fmt.Sprintf("h2=%q, http/1.1=%q", other.Listener.Addr(), other.Listener.Addr())},
	}}}
	ops := matrixOperations()
	for i := range ops {
		c, err := newCell(t.Context(), lure, &ops[i], false, []payvaulttest.Option{payvaulttest.WithRequestHistory(10)})
		require.NoError(t, err, ops[i].name)
		t.Cleanup(c.close)
		c.server.ResetRequests()
		require.Error(t, c.call(t.Context(), c.client), ops[i].name)
		require.NoError(t, c.call(t.Context(), c.client), ops[i].name)
		key := c.server.Merchant().APIKey
		if ops[i].partner {
			key = c.server.Partner().APIKey
		}
		requests := c.server.Requests()
		require.Len(t, requests, 2, ops[i].name)
		for _, r := range requests {
			assert.Equal(t, payvaulttest.BasicToken(key), r.Authorization(), ops[i].name)
			rest := fmt.Sprint(r.Path, r.RawQuery, r.Header, r.Host, string(r.Body()))
			assert.NotContains(t, rest, key, ops[i].name)
			assert.NotContains(t, rest, strings.TrimPrefix(payvaulttest.BasicToken(key), "Basic "), ops[i].name)
		}
		assertNoCanary(t, c.server, proxy.seen.String(), ops[i].name+": what the proxy saw")
	}
	assert.Contains(t, proxy.seen.String(), "CONNECT ")
	assert.NotContains(t, proxy.seen.String(), "Authorization")
	assert.Empty(t, elsewhere.String(), "what another host saw")
}

// tunnel is a proxy that keeps what it sees.
type tunnel struct {
	url  *url.URL
	seen logBuffer
}

func newTunnel(t *testing.T) *tunnel {
	t.Helper()
	p := &tunnel{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	var err error
	p.url, err = url.Parse(server.URL)
	require.NoError(t, err)
	return p
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintln(&p.seen, r.Method, r.RequestURI, r.Header)
	service, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = service.Close() }()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(service, io.TeeReader(buffered, &p.seen))
		_ = service.Close()
	})
	_, _ = io.Copy(conn, service)
	_ = conn.Close()
	wg.Wait()
}
