package faulty

import (
	"context"
	"errors"
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

// body is a request body that ends after a delay.
type body struct {
	delay time.Duration
	end   error
}

func (b body) Read([]byte) (int, error) {
	<-time.After(b.delay)
	return 0, b.end
}

// strike calls a handler without a connection. It reports whether the handler aborts.
func strike(ctx context.Context, handler http.Handler, in io.Reader) (w *httptest.ResponseRecorder, aborts bool) {
	w = httptest.NewRecorder()
	defer func() { aborts = recover() == http.ErrAbortHandler }() //nolint:errorlint // net/http compares like this
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", in))
	return w, false
}

// TestDripTakesItsTime checks that Drip sends one byte per delay.
func TestDripTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w, aborts := strike(t.Context(), Drip(http.StatusOK, nil, []byte("12345"), time.Second), http.NoBody)
		assert.False(t, aborts)
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.True(t, w.Flushed)
		assert.Equal(t, "12345", w.Body.String())
	})
}

// TestWaitBeginsWhenTheRequestIsIn checks that Wait begins after the whole request was read.
func TestWaitBeginsWhenTheRequestIsIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w, aborts := strike(t.Context(), Wait(time.Minute, Send(http.StatusTeapot, nil, nil)), body{time.Hour, io.EOF})
		assert.False(t, aborts)
		assert.Equal(t, time.Hour+time.Minute, time.Since(began))
		assert.Equal(t, http.StatusTeapot, w.Code)
	})
}

// TestClientsThatGiveUp checks that every slow handler aborts when its client is gone.
func TestClientsThatGiveUp(t *testing.T) {
	t.Parallel()
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("performed") })
	for name, handler := range map[string]http.Handler{
		"wait":     Wait(time.Hour, never),
		"drip":     Drip(http.StatusOK, nil, []byte("x"), time.Hour),
		"oversize": Oversize(nil, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if name == "oversize" { // Oversize does not wait, so its client must be gone at the start
					cancel()
				}
				_, aborts := strike(ctx, handler, http.NoBody)
				assert.True(t, aborts)
			})
		})
	}
	_, aborts := strike(t.Context(), Wait(0, never), body{0, errors.New("lost")})
	assert.True(t, aborts, "its body was cut")
}

// TestCutAndSizes checks that Cut sends half of the body, and Oversize a body of the given size.
func TestCutAndSizes(t *testing.T) {
	t.Parallel()
	w, aborts := strike(t.Context(), Cut(http.StatusOK, http.Header{"content-type": {"text/x"}}, []byte("1234")),
		http.NoBody)
	assert.True(t, aborts)
	assert.Equal(t, "12", w.Body.String())
	assert.Equal(t, "4", w.Header().Get("Content-Length"))
	assert.Equal(t, "text/x", w.Header().Get("Content-Type"))
	for _, size := range []int64{MinOversize, 100_000} {
		w, _ = strike(t.Context(), Oversize(nil, size), http.NoBody)
		assert.Equal(t, int(size), w.Body.Len())
	}
}

// deafWriter accepts neither bytes nor a flush.
type deafWriter struct{ *httptest.ResponseRecorder }

func (deafWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func (deafWriter) FlushError() error { return io.ErrClosedPipe }

// TestClientsThatDoNotListen checks that the handlers abort if nothing can be written.
func TestClientsThatDoNotListen(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	for _, handler := range []http.Handler{
		Cut(0, nil, []byte("12")), Cut(0, nil, nil), Oversize(nil, 100),
	} {
		assert.Panics(t, func() { handler.ServeHTTP(deafWriter{httptest.NewRecorder()}, r) })
	}
}

// TestStatusesWithoutABody checks that no headers for a body are sent with status 204.
func TestStatusesWithoutABody(t *testing.T) {
	t.Parallel()
	w, _ := strike(t.Context(), Send(http.StatusNoContent, nil, nil), http.NoBody)
	assert.NotContains(t, w.Header(), "Content-Length")
	assert.Empty(t, w.Header()["Content-Type"], "none that net/http guesses")
}

// TestReset checks that Reset resets the connection, with and without TLS.
func TestReset(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(Reset))
		srv.EnableHTTP2 = false
		if secure {
			srv.StartTLS()
		} else {
			srv.Start()
		}
		_, err := srv.Client().Post(srv.URL, "", strings.NewReader("x")) //nolint:bodyclose,noctx // there is no answer
		require.ErrorIs(t, err, syscall.ECONNRESET)
		srv.Close()
	}
	_, aborts := strike(t.Context(), http.HandlerFunc(Reset), http.NoBody)
	assert.True(t, aborts, "a connection that cannot be taken")
}
