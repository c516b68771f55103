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

// A body that arrives late, and then says how it ends.
type body struct {
	delay time.Duration
	end   error
}

func (b body) Read([]byte) (int, error) {
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

// A client that is gone, or that goes away, ends every handler that takes its time.
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
				if name == "oversize" { // without an end it does not wait
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

// A deafWriter takes neither bytes nor a flush.
type deafWriter struct{ *httptest.ResponseRecorder }

func (deafWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func (deafWriter) FlushError() error { return io.ErrClosedPipe }

func TestClientsThatDoNotListen(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	for _, handler := range []http.Handler{
		Cut(0, nil, []byte("12")), Cut(0, nil, nil), Oversize(nil, 100),
	} {
		assert.Panics(t, func() { handler.ServeHTTP(deafWriter{httptest.NewRecorder()}, r) })
	}
}

func TestStatusesWithoutABody(t *testing.T) {
	t.Parallel()
	w, _ := strike(t.Context(), Send(http.StatusNoContent, nil, nil), http.NoBody)
	assert.NotContains(t, w.Header(), "Content-Length")
	assert.Empty(t, w.Header()["Content-Type"], "none that net/http guesses")
}

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
