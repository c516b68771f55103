package operations

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

func TestNotificationHandler(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	raw := "{\"event\": \"transaction_status_updated\"}\r\n\x00\xff not quite JSON"
	tests := map[string]struct {
		method string
		body   io.Reader
		fails  error
		want   int
		handed bool // over to the function
	}{
		"POST":         {http.MethodPost, strings.NewReader(raw), nil, http.StatusNoContent, true},
		"empty body":   {http.MethodPost, http.NoBody, nil, http.StatusNoContent, true},
		"largest body": {http.MethodPost, strings.NewReader(strings.Repeat("x", most)), nil, http.StatusNoContent, true},
		"function fails": {
			http.MethodPost, strings.NewReader(raw), errors.New("secret detail"),
			http.StatusInternalServerError, true,
		},
		"oversized body": {
			http.MethodPost, strings.NewReader(strings.Repeat("x", most+1)), nil,
			http.StatusRequestEntityTooLarge, false,
		},
		"unreadable body": {
			http.MethodPost, iotest.ErrReader(errors.New("secret detail")), nil,
			http.StatusBadRequest, false,
		},
		"body ends early": {http.MethodPost, iotest.DataErrReader(io.MultiReader(strings.NewReader(raw),
			iotest.ErrReader(io.ErrUnexpectedEOF))), nil, http.StatusBadRequest, false},
		"GET":              {http.MethodGet, http.NoBody, nil, http.StatusMethodNotAllowed, false},
		"PUT":              {http.MethodPut, strings.NewReader(raw), nil, http.StatusMethodNotAllowed, false},
		"lower-case post":  {"post", strings.NewReader(raw), nil, http.StatusMethodNotAllowed, false},
		"HEAD of the same": {http.MethodHead, http.NoBody, nil, http.StatusMethodNotAllowed, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handed := false
			handler := payvault.NotificationHandler(func(context.Context, *payvault.Notification) error {
				handed = true
				return test.fails
			})
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, "/notify", test.body))

			assert.Equal(t, test.want, w.Code)
			assert.Equal(t, test.handed, handed)
			assert.NotContains(t, w.Body.String(), "secret")
			if test.want == http.StatusMethodNotAllowed {
				assert.Equal(t, "POST", w.Header().Get("Allow"))
			}
		})
	}
}

func TestNotificationHandler_untouched(t *testing.T) {
	t.Parallel()
	type key struct{}
	const raw = "{\"event\": \"transaction_status_updated\"}\r\n\x00\xff not quite JSON"
	request := httptest.NewRequestWithContext(context.WithValue(t.Context(), key{}, "of the request"), http.MethodPost,
		"/notify", strings.NewReader(raw))
	request.Header = http.Header{"X-Signature": {"one", "two"}, "Content-Type": {"text/plain"}}
	var got *payvault.Notification
	handler := payvault.NotificationHandler(func(ctx context.Context, n *payvault.Notification) error {
		assert.Equal(t, "of the request", ctx.Value(key{}))
		got = n
		return nil
	})

	handler.ServeHTTP(httptest.NewRecorder(), request)
	assert.Equal(t, &payvault.Notification{
		Header: http.Header{"X-Signature": {"one", "two"}, "Content-Type": {"text/plain"}}, Body: []byte(raw),
	}, got)
}

func TestNotificationHandler_overHTTP(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(payvault.NotificationHandler(func(_ context.Context, n *payvault.Notification) error {
		assert.Equal(t, `{"id":1}`, string(n.Body))
		return nil
	}))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"id":1}`))
	require.NoError(t, err)

	response, err := server.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNoContent, response.StatusCode)
}

func TestNotificationHandler_nil(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { payvault.NotificationHandler(nil) })
}
