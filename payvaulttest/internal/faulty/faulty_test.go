package faulty

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A slowBody arrives late, and then says how it ends.
type slowBody struct {
	delay time.Duration
	end   error
}

func (b slowBody) Read([]byte) (int, error) {
	<-time.After(b.delay)
	return 0, b.end
}

// strike lets a handler answer a request that has no connection, and reports whether it aborts.
func strike(ctx context.Context, handler http.Handler, in io.Reader) (w *httptest.ResponseRecorder, aborts bool) {
	w = httptest.NewRecorder()
	defer func() { aborts = recover() == http.ErrAbortHandler }() //nolint:errorlint // net/http compares like this
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", in))
	return w, false
}

// A handler takes its time, after the request has come in, and ends with the client.
func TestTime(t *testing.T) {
	t.Parallel()
	wait := Wait(time.Minute, Send(http.StatusTeapot, nil, nil))
	drip := Drip(http.StatusOK, nil, []byte("12345"), time.Second)
	for name, test := range map[string]struct {
		handler http.Handler
		in      slowBody
		gone    time.Duration // when the client gives up
		aborts  bool
		took    time.Duration
	}{
		"wait":                       {wait, slowBody{time.Hour, io.EOF}, 2 * time.Hour, false, 61 * time.Minute},
		"drip":                       {drip, slowBody{time.Hour, io.EOF}, 2 * time.Hour, false, time.Hour + 5*time.Second},
		"wait, and the client gone":  {wait, slowBody{0, io.EOF}, time.Second, true, time.Second},
		"drip, and the client gone":  {drip, slowBody{0, io.EOF}, 1500 * time.Millisecond, true, 1500 * time.Millisecond},
		"oversize to no client":      {Oversize(nil, 0), slowBody{0, io.EOF}, 0, true, 0},
		"wait for a body that ended": {wait, slowBody{0, io.ErrUnexpectedEOF}, time.Hour, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.gone)
				defer cancel()
				began := time.Now()
				_, aborts := strike(ctx, test.handler, test.in)
				assert.Equal(t, test.aborts, aborts)
				assert.Equal(t, test.took, time.Since(began))
			})
		})
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	w, aborts := strike(t.Context(), Cut(http.StatusOK, nil, []byte("1234")), http.NoBody)
	assert.True(t, aborts)
	assert.Equal(t, []string{"12", "4"}, []string{w.Body.String(), w.Header().Get("Content-Length")})
	for _, size := range []int64{MinOversize, 100_000} {
		w, _ = strike(t.Context(), Oversize(nil, size), http.NoBody)
		assert.Equal(t, int(size), w.Body.Len())
	}
	w, _ = strike(t.Context(), Send(http.StatusNoContent, nil, nil), http.NoBody)
	assert.NotContains(t, w.Header(), "Content-Length")
}

// A deafWriter takes neither bytes nor a flush.
type deafWriter struct{ *httptest.ResponseRecorder }

func (deafWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func (deafWriter) FlushError() error { return io.ErrClosedPipe }

func TestClientsThatDoNotListen(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	for _, handler := range []http.Handler{Cut(0, nil, []byte("12")), Cut(0, nil, nil), Oversize(nil, 100)} {
		assert.Panics(t, func() { handler.ServeHTTP(deafWriter{httptest.NewRecorder()}, r) })
	}
}

// A reset is one under TLS, too.
func TestReset(t *testing.T) {
	t.Parallel()
	for _, start := range []func(*httptest.Server){(*httptest.Server).Start, (*httptest.Server).StartTLS} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(Reset))
		srv.EnableHTTP2 = false
		start(srv)
		_, err := srv.Client().Post(srv.URL, "", strings.NewReader("x")) //nolint:bodyclose,noctx // there is no answer
		require.ErrorIs(t, err, syscall.ECONNRESET)
		srv.Close()
	}
	_, aborts := strike(t.Context(), http.HandlerFunc(Reset), http.NoBody)
	assert.True(t, aborts, "a connection that cannot be taken")
}
