package faulty

import (
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

// A handler that takes its time begins when the request has come in. If that is cut, it aborts: net/http does not
// notice that a client is gone while there is more to read.
func TestTimeBeginsWhenTheRequestIsIn(t *testing.T) {
	t.Parallel()
	for _, handler := range []http.Handler{
		Wait(time.Minute, Send(http.StatusOK, nil, nil)), Drip(http.StatusOK, nil, []byte("123456"), 10*time.Second),
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			serve := func(body slowBody) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
			serve(slowBody{time.Hour, io.EOF})
			assert.Equal(t, time.Hour+time.Minute, time.Since(began))
			assert.PanicsWithValue(t, http.ErrAbortHandler, func() { serve(slowBody{0, io.ErrUnexpectedEOF}) })
			assert.Equal(t, time.Hour+time.Minute, time.Since(began))
		})
	}
}

// A reset is one under TLS, too.
func TestReset(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(Reset))
	srv.EnableHTTP2 = false
	srv.StartTLS()
	defer srv.Close()
	_, err := srv.Client().Post(srv.URL, "", strings.NewReader("x")) //nolint:bodyclose,noctx // there is no answer
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
