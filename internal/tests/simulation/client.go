package simulation

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"example.com/payvault"
	"example.com/payvault/internal/pool"
)

// pool returns a connection pool of the SDK with the network and the protocol of the scenario.
func (r *run) pool() *http.Transport {
	own := pool.New()
	own.Proxy, own.DialContext, own.TLSClientConfig.RootCAs = nil, r.dial, r.world.roots
	switch r.Wire {
	case wireH2C:
		own.Protocols.SetHTTP1(false)
		own.Protocols.SetUnencryptedHTTP2(true)
	case wireH2:
		own.Protocols.SetHTTP2(true)
	}
	return own
}

func (r *run) client(base *http.Transport) (*payvault.Client, error) {
	address := "http://127.0.0.1" + basePath
	if r.Wire == wireHTTP1TLS || r.Wire == wireH2 {
		address = "https://service.test" + basePath
	}
	rt := r.caller(base)
	if slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Panic == "round tripper" }) {
		inner := rt
		rt = roundTripper(func(req *http.Request) (*http.Response, error) {
			callerOf(req.Context()).panicAt("round tripper")
			return inner.RoundTrip(req)
		})
	}
	return payvault.NewClient(address, "", payvault.WithHTTPClient(&http.Client{Transport: rt}),
		payvault.WithKeySource(func(ctx context.Context) (string, error) {
			return callerOf(ctx).key(ctx)
		}),
		payvault.WithMerchantID(1), payvault.WithDeveloperID("simulator"),
		payvault.WithTimeout(r.Client.Timeout), payvault.WithMaxResponseBytes(r.Client.MaxBytes),
		payvault.WithRetryPolicy(payvault.RetryPolicy{
			MaxAttempts: r.Client.Attempts, MinBackoff: time.Millisecond, MaxBackoff: r.Client.MaxBackoff,
			MaxRetryAfter: r.Client.MaxRetryAfter, MaxBulkRetryAfter: r.Client.MaxRetryAfter,
		}),
		payvault.WithLogger(slog.New(handler{})), payvault.WithObserver(observer()))
}

// observer returns an observer that counts calls and attempts. It also adds what it gets to caller.texts, which must
// not contain secrets.
func observer() payvault.Observer {
	return payvault.Observer{
		Start: func(ctx context.Context, info payvault.CallInfo) context.Context {
			c := callerOf(ctx)
			c.say("%+v", info)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.started++
			c.most = max(c.most, c.started-c.ended)
			return ctx
		},
		Attempt: func(ctx context.Context, info payvault.CallInfo, result payvault.CallResult) {
			c := callerOf(ctx)
			c.mu.Lock()
			c.attempts++
			c.mu.Unlock()
			c.say("%+v %+v", info, result)
			c.panicAt("observer")
		},
		End: func(ctx context.Context, info payvault.CallInfo, result payvault.CallResult) {
			c := callerOf(ctx)
			c.say("%+v %+v %s", info, result, result.ErrorClass())
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended++
		},
	}
}

// handler is a log handler that adds log records to the texts of the caller.
type handler struct{}

func (handler) Enabled(context.Context, slog.Level) bool { return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h handler) WithGroup(string) slog.Handler          { return h }

func (handler) Handle(ctx context.Context, record slog.Record) error {
	c := callerOf(ctx)
	c.say("%s", record.Message)
	record.Attrs(func(a slog.Attr) bool {
		c.say("%s=%v", a.Key, a.Value)
		return true
	})
	return nil
}
