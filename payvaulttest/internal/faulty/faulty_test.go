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

// A slowBody is a request body that, after a delay, ends with an error or io.EOF.
type slowBody struct {
	delay time.Duration
	end   error
}

func (b slowBody) Read([]byte) (int, error) {
	<-time.After(b.delay)
	return 0, b.end
}

// TestTimeBeginsWhenTheRequestIsIn checks that Wait and Drip wait only after the whole request has arrived, and not at
// all if it is cut off.
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

// TestReset checks that Reset also makes a TCP reset when the connection uses TLS.
func TestReset(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(Reset))
	srv.EnableHTTP2 = false
	srv.StartTLS()
	defer srv.Close()
	_, err := srv.Client().Post(srv.URL, "", strings.NewReader("x")) //nolint:bodyclose,noctx // there is no answer
	require.ErrorIs(t, err, syscall.ECONNRESET)
}
