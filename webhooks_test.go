package payvault_test

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
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestNotificationHandler checks the status of the answer, and that the caller's function gets the context, the header
// and the body of the request unchanged. NotificationHandler must panic if the function is nil.
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
		{"POST", raw, io.EOF, &http.MaxBytesError{}, http.StatusInternalServerError, true},
		{"POST", raw, failed, nil, http.StatusBadRequest, false},
		{"GET", "", io.EOF, nil, http.StatusMethodNotAllowed, false},
		{"post", raw, io.EOF, nil, http.StatusMethodNotAllowed, false},
	} {
		var got *payvault.Notification
		handler := payvault.NotificationHandler(func(ctx context.Context, n *payvault.Notification) error {
			assert.Equal(t, "of the request", ctx.Value(key{}))
			got = n
			return test.fails
		}, slog.New(slog.DiscardHandler))
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
	assert.Panics(t, func() { payvault.NotificationHandler(nil, nil) })
}

// TestNotificationHandler_reports checks that the handler logs the error of the caller's function, and the error about
// a body that is too large. It uses the given logger, or else slog.Default. The error of the function is not sent back,
// and the log has neither the URL nor the body of the request.
func TestNotificationHandler_reports(t *testing.T) { //nolint:paralleltest // it sets the default logger
	before := slog.Default()
	defer slog.SetDefault(before)
	for _, byDefault := range []bool{true, false} {
		var log bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&log, nil))
		if byDefault {
			slog.SetDefault(logger)
			logger = nil
		}
		fails := errors.New("the database is full")
		handler := payvault.NotificationHandler(func(context.Context, *payvault.Notification) error { return fails }, logger)
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
		assert.Equal(t, http.StatusRequestEntityTooLarge, post(strings.Repeat("canary", 1<<20)).Code)
		assert.Contains(t, log.String(), `"level":"ERROR"`)
		assert.Contains(t, log.String(), `"error":"payvault: ReadNotification: `)
		assert.NotContains(t, log.String(), "canary")
		slog.SetDefault(before)
	}
}

// TestNotificationHandler_readBefore checks that a notification is not acknowledged if a middleware has read its body
// before, even in part, has closed it, or has replaced it by a shorter one. The caller's function must not be called,
// and the log must say what happened. A body that a middleware has restored, or replaced together with ContentLength,
// must be received.
func TestNotificationHandler_readBefore(t *testing.T) {
	t.Parallel()
	const body, received, failed = "event=transaction_status", http.StatusNoContent, http.StatusInternalServerError
	for _, test := range []struct {
		middleware string
		read       func(r *http.Request) error
		want       int
	}{
		{"ReadAll", func(r *http.Request) error { _, err := io.ReadAll(r.Body); return err }, failed},
		{"ParseForm", (*http.Request).ParseForm, failed},
		{"reads a part", func(r *http.Request) error { _, err := r.Body.Read(make([]byte, 5)); return err }, failed},
		{"Close", func(r *http.Request) error { return r.Body.Close() }, failed},
		{"none", func(*http.Request) error { return nil }, received},
		{"restores the body", func(r *http.Request) error {
			read, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(read))
			return err
		}, received},
		{"replaces only the body", func(r *http.Request) error {
			r.Body = io.NopCloser(strings.NewReader("short"))
			return nil
		}, failed},
		{"replaces the body", func(r *http.Request) error {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("short")), -1
			return nil
		}, received},
	} {
		var log bytes.Buffer
		calls := 0
		handler := payvault.NotificationHandler(func(context.Context, *payvault.Notification) error {
			calls++
			return nil
		}, slog.New(slog.NewTextHandler(&log, nil)))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			assert.NoError(t, test.read(r))
			handler.ServeHTTP(w, r)
		}))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := srv.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		srv.Close()
		assert.Equal(t, test.want, response.StatusCode, test.middleware)
		if test.want == received {
			assert.Equal(t, 1, calls, test.middleware)
			assert.Empty(t, log.String(), test.middleware)
			continue
		}
		assert.Zero(t, calls, test.middleware)
		assert.Regexp(t, "level=ERROR .*the body of the request was read before.* or Content-Length is", log.String(),
			test.middleware)
	}
}

// TestReadNotification checks that a handler of the caller gets the notification, or an error that names the reason.
func TestReadNotification(t *testing.T) {
	t.Parallel()
	post := func(body io.Reader) *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/notify", body)
		r.Header.Set("X-Signature", "one")
		return r
	}
	n, err := payvault.ReadNotification(post(strings.NewReader("canary")))
	require.NoError(t, err)
	assert.Equal(t, &payvault.Notification{Header: http.Header{"X-Signature": {"one"}}, Body: []byte("canary")}, n)
	noBody, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/notify", nil)
	require.NoError(t, err)
	n, err = payvault.ReadNotification(noBody) // its Body is nil
	require.NoError(t, err)
	assert.Empty(t, n.Body)
	_, err = payvault.ReadNotification(post(strings.NewReader(strings.Repeat("x", 1<<20+1))))
	require.ErrorAs(t, err, new(*http.MaxBytesError))
}
