package contract

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// An exchange is a request and its answer as they went over the wire.
type exchange struct {
	request  *http.Request
	sent     []byte
	status   int
	header   http.Header
	received []byte
}

// A recorder is a transport that remembers every exchange.
type recorder struct {
	base http.RoundTripper

	mu        sync.Mutex
	exchanges []exchange
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	clone := req.Clone(req.Context())
	if req.Body != nil {
		var err error
		if sent, err = readAll(req.Body); err != nil {
			return nil, err
		}
		clone.Body = io.NopCloser(bytes.NewReader(sent))
	}
	recorded := req.Clone(req.Context())
	resp, err := r.base.RoundTrip(clone)
	if err != nil {
		return nil, err
	}
	received, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(received))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, exchange{recorded, sent, resp.StatusCode, resp.Header, received})
	return resp, nil
}

func readAll(body io.ReadCloser) ([]byte, error) {
	defer body.Close()
	return io.ReadAll(body)
}

// all returns what was exchanged so far.
func (r *recorder) all() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.exchanges
}

// An env is an emulator with recorded clients.
type env struct {
	srv               *payvaulttest.Server
	wire              *recorder
	client            *payvault.Client // of the account that the operation is for
	merchant, partner *payvault.Client
	second            *payvault.Client // of a merchant without any feature
}

func newEnv(t *testing.T) *env {
	t.Helper()
	srv := payvaulttest.NewServer()
	t.Cleanup(srv.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	e := &env{srv: srv, wire: &recorder{base: base}}
	e.merchant, e.partner = e.clientFor(srv.Merchant()), e.clientFor(srv.Partner())
	accounts := srv.Accounts()
	require.Len(t, accounts, 3)
	e.second = e.clientFor(accounts[2])
	return e
}

func (e *env) clientFor(account payvaulttest.Account) *payvault.Client {
	return e.clientThrough(account, e.wire)
}

func (e *env) clientThrough(account payvaulttest.Account, transport http.RoundTripper) *payvault.Client {
	return e.srv.ClientFor(account, payvault.WithHTTPClient(&http.Client{Transport: transport}),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
}

// A call performs one operation, after what it needs first; its result is nil where the operation has none.
type call func(ctx context.Context, e *env) (any, error)
