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

	"example.com/payvault"
)

func TestNotificationHandler(t *testing.T) {
	t.Parallel()
	const most, raw = 1 << 20, "{\"event\": \"transaction_status_updated\"}\r\n\x00\xff not quite JSON"
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "of the request")
	failed := errors.New("secret detail")
	for _, test := range []struct {
		method, body string
		ends         error // of the body
		fails        error // of the function
		want         int
		handed       bool // over to the function
	}{
		{"POST", raw, io.EOF, nil, http.StatusNoContent, true},
		{"POST", "", io.EOF, nil, http.StatusNoContent, true},
		{"POST", strings.Repeat("x", most), io.EOF, nil, http.StatusNoContent, true},
		{"POST", raw, io.EOF, failed, http.StatusInternalServerError, true},
		{"POST", strings.Repeat("x", most+1), io.EOF, nil, http.StatusRequestEntityTooLarge, false},
		{"POST", raw, failed, nil, http.StatusBadRequest, false},
		{"GET", "", io.EOF, nil, http.StatusMethodNotAllowed, false},
		{"post", raw, io.EOF, nil, http.StatusMethodNotAllowed, false},
	} {
		var got *payvault.Notification
		handler := payvault.NotificationHandler(func(ctx context.Context, n *payvault.Notification) error {
			assert.Equal(t, "of the request", ctx.Value(key{}))
			got = n
			return test.fails
		})
		body := io.MultiReader(strings.NewReader(test.body), iotest.ErrReader(test.ends))
		request, w := httptest.NewRequestWithContext(ctx, test.method, "/notify", body), httptest.NewRecorder()
		request.Header = http.Header{"X-Signature": {"one", "two"}, "Content-Type": {"text/plain"}}
		handler.ServeHTTP(w, request)

		assert.Equal(t, test.want, w.Code)
		assert.NotContains(t, w.Body.String(), "secret")
		if test.want == http.StatusMethodNotAllowed {
			assert.Equal(t, "POST", w.Header().Get("Allow"))
		}
		var want *payvault.Notification
		if test.handed {
			want = &payvault.Notification{Header: request.Header.Clone(), Body: []byte(test.body)}
		}
		assert.Equal(t, want, got)
	}
	assert.Panics(t, func() { payvault.NotificationHandler(nil) })
}
