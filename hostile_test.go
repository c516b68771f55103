package payvault_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// clientOf returns a client of a server that answers every request with serve.
func clientOf(t *testing.T, serve http.HandlerFunc) *payvault.Client {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	client, err := payvault.NewClient(srv.URL, "key")
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// TestError_echoOfTheCaller: what the caller has put into path, filters and headers is not repeated, even if the service does.
func TestError_echoOfTheCaller(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"code":9,"message":"no ` + r.URL.Path + " " + r.Header.Get("X-Trace") + " " + r.URL.Query().Get("filter") + `"}`)) //nolint:gosec // the echo is the point
	}
	client := clientOf(t, echo)
	err := client.Invoices.Send(t.Context(), "inv-secret", nil, payvault.WithHeader("X-Trace", "hunter2-token"))
	_, listErr := client.Customers.List(t.Context(), &payvault.ListOptions{Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", "jane@example.com")}})
	for _, err := range []error{err, listErr} {
		require.ErrorIs(t, err, payvault.ErrRejected)
		for _, text := range []string{"inv-secret", "hunter2-token", "jane@example.com"} {
			assert.NotContains(t, err.Error(), text)
		}
	}
}

// TestFailures_dense: an answer of tiny values, which would take a hundred times its size in memory, is refused unread.
func TestFailures_dense(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"{}", "0", "null", "[]"} {
		client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"code":0,"totalPages":1,"totalRecords":1,"data":[` + strings.Repeat(value+",", 100_000) + value + `]}`))
		})
		_, err := client.Subscriptions.Transactions(t.Context(), 1, nil)
		require.ErrorIs(t, err, payvault.ErrMalformedResponse, value)
		assert.ErrorContains(t, err, "more values than its size allows")
	}
}

// TestApplicationsValidate_refused: code 2 is the answer to the question only where the question was answered.
func TestApplicationsValidate_refused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError} {
		srv := newService(t)
		srv.expect(http.MethodGet, "/platform/application/7/validate", "", `{"code":2,"message":"no","data":{"access":["denied"]}}`).withStatus(status)
		validation, err := srv.client().Applications.Validate(t.Context(), 7)
		require.Error(t, err, status)
		assert.Nil(t, validation)
	}
}

func TestNilInput(t *testing.T) {
	t.Parallel()
	for range newService(t).client().AccountUpdater.SubmitAll(t.Context(), nil, nil) {
		assert.Fail(t, "there are no cards")
	}
	var e *payvault.Error
	assert.False(t, payvault.SafeToRetry(e))
	var file *payvault.File
	require.NoError(t, file.Close())
	_, err := newService(t).client().Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "Acme", MerchantID: -7})
	require.ErrorIs(t, err, payvault.ErrInvalidRequest)
	found, ok := errors.AsType[*payvault.Error](err)
	require.True(t, ok)
	assert.Contains(t, found.Fields, "merchant_id")
}

// TestCall_dense: what an operation that is not documented answers is the caller's to judge.
func TestCall_dense(t *testing.T) {
	t.Parallel()
	client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"code":0,"data":[` + strings.Repeat("1,", 100_000) + `1]}`))
	})
	var out struct {
		Data []int `json:"data"`
	}
	require.NoError(t, client.Call(t.Context(), payvault.Request{Method: http.MethodGet, Path: []string{"numbers"}}, &out))
	assert.Len(t, out.Data, 100_001)
}

// TestError_codeThatEqualsAnID: a program decides by the code, whatever digits the caller's ID or security code has.
func TestError_codeThatEqualsAnID(t *testing.T) {
	t.Parallel()
	client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"code":117,"rcode":"117","message":"refused","rmsg":"refused"}`))
	})
	_, cancelErr := client.Subscriptions.Cancel(t.Context(), 117, &payvault.SubscriptionCancelRequest{CustomerID: "C1"})
	_, tokenizeErr := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: "1", CVV2: "117"})
	for _, err := range []error{cancelErr, tokenizeErr} {
		e, ok := errors.AsType[*payvault.Error](err)
		require.True(t, ok)
		assert.Equal(t, "117", e.Code)
	}
}
