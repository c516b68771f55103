package payvault_test

import (
	"errors"
	"fmt"
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

// TestFailures_large: what a failure says is read within bounds of memory and time, however many secrets it may repeat.
func TestFailures_large(t *testing.T) {
	t.Parallel()
	cards := make([]payvault.AccountUpdaterCard, payvault.MaxAccountUpdaterCards)
	for i := range cards {
		cards[i] = payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(fmt.Sprintf("4444444444444%03d", i)), ExpDate: "1230"}
	}
	for name, test := range map[string]struct {
		text     string
		rejected bool
	}{
		"digits": {`{"code":7,"message":"` + strings.Repeat("4", 1<<20) + `"}`, true},
		"large":  {`{"code":7,"message":"` + strings.Repeat("x", 3<<20) + `"}`, true},
	} {
		client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(test.text)) })
		_, err := client.AccountUpdater.Submit(t.Context(), cards)
		require.Error(t, err, name)
		assert.Equal(t, test.rejected, errors.Is(err, payvault.ErrRejected), name)
		assert.NotEqual(t, test.rejected, errors.Is(err, payvault.ErrOutcomeUnknown), name)
	}
}

// TestZeroLikeCodes: a code that looks like zero is no refusal, for the service may well have performed the operation.
func TestZeroLikeCodes(t *testing.T) {
	t.Parallel()
	for _, code := range []string{`"0.0"`, `"-0"`, `"00"`, `" 0"`, `"000"`} {
		client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"code":` + code + `,"data":{"payee_id":1}}`))
		})
		_, err := client.Payees.Create(t.Context(), &payvault.PayeeCreateRequest{Name: "Acme"})
		assert.ErrorIs(t, err, payvault.ErrOutcomeUnknown, code)
		assert.NotErrorIs(t, err, payvault.ErrRejected, code)
	}
}

// TestWalkWithANegativeNumberOfPages ends, wherever it starts.
func TestWalkWithANegativeNumberOfPages(t *testing.T) {
	t.Parallel()
	for _, total := range []string{"-9223372036854775808", "-1"} {
		asked := 0
		client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked > 3 {
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write([]byte(`{"code":0,"totalPages":` + total + `,"data":[]}`))
		})
		for _, err := range client.Customers.All(t.Context(), &payvault.ListOptions{Page: 1}) {
			require.NoError(t, err)
		}
		assert.Equal(t, 1, asked)
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
	_, tokenizeErr := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{MerchantID: 1, CVV2: payvault.NewSecret("117")})
	for _, err := range []error{cancelErr, tokenizeErr} {
		e, ok := errors.AsType[*payvault.Error](err)
		require.True(t, ok)
		assert.Equal(t, "117", e.Code)
	}
}
