package operations

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
)

// TestNotificationHandler checks the status of the answer, and that the caller's function gets the header and the body
// of the request unchanged.
func TestNotificationHandler(t *testing.T) {
	t.Parallel()
	const most, raw = 1 << 20, "{\"event\": \"transaction_status_updated\"}\r\n\x00\xff not quite JSON"
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "of the request")
	failed := errors.New("secret detail")
	for _, test := range []struct {
		method, body string
		ends         error // error of the body reader after the last byte
		fails        error // error that the caller's function returns
		want         int
		handed       bool // the caller's function is called
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

// TestNotificationHandler_reports checks that the error of the caller's function is logged but not sent back, and that
// the log has neither the URL nor the body of the request.
func TestNotificationHandler_reports(t *testing.T) { //nolint:paralleltest // it sets the default logger
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	fails := errors.New("the database is full")
	handler := payvault.NotificationHandler(func(context.Context, *payvault.Notification) error { return fails })
	post := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/secret-url", strings.NewReader(body))
		handler.ServeHTTP(w, r)
		return w
	}
	w := post("canary")
	assert.Equal(t, http.StatusInternalServerError, w.Code)
	assert.NotContains(t, w.Body.String(), "database")
	assert.Contains(t, log.String(), `"level":"ERROR","msg":"payvault notification","error":"the database is full"`)
	assert.NotContains(t, log.String(), "secret-url")
	assert.NotContains(t, log.String(), "canary")

	log.Reset()
	fails = nil
	assert.Equal(t, http.StatusNoContent, post("").Code)
	assert.Empty(t, log.String())
}
