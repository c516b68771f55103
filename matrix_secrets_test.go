package payvault_test

import (
	"bytes"
	"context"
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

// handlers write JSON and text, all but times and durations, whose digits may be anything.
func (b *logBuffer) handlers() []slog.Handler {
	opts := &slog.HandlerOptions{
		Level: slog.LevelDebug, AddSource: true,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindDuration {
				return slog.Attr{}
			}
			return a
		},
	}
	return []slog.Handler{slog.NewJSONHandler(b, opts), slog.NewTextHandler(b, opts)}
}

// TestMatrixSecrets runs every operation under every fault, with debug logging on, and searches everything that comes out.
func TestMatrixSecrets(t *testing.T) {
	t.Parallel()
	faults := matrixFaults(t)
	for i := range faults {
		t.Run(faults[i].name, func(t *testing.T) {
			t.Parallel()
			ops := matrixOperations()
			for k := range ops {
				for _, withReplay := range []bool{false, true} {
					assertCellIsSilent(t, &faults[i], &ops[k], matrixRun{withReplay, faults[i].once == ""})
				}
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
					assertCellIsSilent(t, &matrixFault{name: fmt.Sprintf("gossip %d %.20s", status, body), inject: gossip}, &ops[i], matrixRun{stays: true})
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

// assertCellIsSilent runs a cell and searches whatever it shows: all that the caller has, under every verb and in both
// handlers of slog, what observers are told, and the logs of both sides.
func assertCellIsSilent(t *testing.T, f *matrixFault, op *matrixOp, run matrixRun) {
	t.Helper()
	var clientLog, serverLog, shown logBuffer
	where := fmt.Sprintf("%s × %s, %+v", op.name, f.name, run)
	c, err := newCell(t.Context(), f, op, run.stays, serverLog.handlers(),
		payvault.WithLogger(slog.New(slog.NewMultiHandler(clientLog.handlers()...))), payvault.WithObserver(shown.observer()))
	require.NoError(t, err, where)
	attempts := 0
	c.run(t, run.stays, func(t *testing.T) {
		t.Helper()
		var response payvault.Response
		result, err := c.call.do(t.Context(), c.client, append(run.options(), payvault.WithResponse(&response))...)
		attempts, response.Duration = response.Attempts, 0
		for _, text := range everyText(err) {
			_, _ = fmt.Fprintln(&shown, text)
		}
		shown.show(err, result, c.call.request, response, &response, c.client, c.server)
	})
	c.assertStruck(t, where, run.stays, attempts)
	assert.NotEmpty(t, shown.String(), where)
	assert.NotEmpty(t, clientLog.String(), where)
	for name, text := range map[string]string{
		"what the caller sees": shown.String(), "log of the client": clientLog.String(), "log of the emulator": serverLog.String(),
	} {
		assertNoCanary(t, c.server, text, where+": "+name)
	}
}

// show formats values under every verb and logs them with both handlers, the elements of a slice one by one.
func (b *logBuffer) show(values ...any) {
	logger := slog.New(slog.NewMultiHandler(b.handlers()...))
	for _, value := range values {
		_, _ = fmt.Fprintf(b, "%v %+v %#v %s %q\n", value, value, value, value, value)
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice { // a JSON handler shows the wire form of a whole one
			for i := range list.Len() {
				logger.Info("shown", "value", list.Index(i).Interface())
			}
			continue
		}
		logger.Info("shown", "value", value)
	}
}

// observer shows what observers are told.
func (b *logBuffer) observer() payvault.Observer {
	told := func(_ context.Context, call payvault.CallInfo, result payvault.CallResult) {
		result.Duration = 0
		b.show(call, result, result.Err)
	}
	return payvault.Observer{Attempt: told, End: told, Start: func(ctx context.Context, call payvault.CallInfo) context.Context {
		b.show(call)
		return ctx
	}}
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
		c, err := newCell(t.Context(), lure, &ops[i], false, nil)
		require.NoError(t, err, ops[i].name)
		t.Cleanup(c.close)
		c.server.ResetRequests()
		_, err = c.call.do(t.Context(), c.client)
		require.Error(t, err, ops[i].name)
		_, err = c.call.do(t.Context(), c.client)
		require.NoError(t, err, ops[i].name)
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
