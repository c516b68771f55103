package payvaulttest

import (
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What depends on time is tested from within, where synctest can have the clock.

// strikeAlone lets a fault strike a request that has no connection, and returns what was answered.
func strikeAlone(t *testing.T, fault Fault, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	x := &exchange{w: w, r: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body), fault: &fault}
	assert.Equal(t, fault.Kind != Delay, x.strike(beforeCommit))
	return w
}

func TestDripInterval(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: 10 * time.Millisecond, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			w := strikeAlone(t, Fault{Kind: SlowDrip, Delay: given}, http.NoBody)
			assert.Equal(t, want*time.Duration(w.Body.Len()), time.Since(began))
			assert.True(t, w.Flushed)
		})
	}
}

// A slowBody arrives late.
type slowBody struct{ delay time.Duration }

func (b slowBody) Read([]byte) (int, error) {
	<-time.After(b.delay)
	return 0, io.EOF
}

func TestDelayIsCountedFromItsBeginning(t *testing.T) {
	t.Parallel()
	for body, want := range map[time.Duration]time.Duration{time.Second: time.Minute, time.Hour: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			strikeAlone(t, Fault{Kind: Delay, Delay: time.Minute}, slowBody{body})
			assert.Equal(t, want, time.Since(began))
		})
	}
}

func TestBombSize(t *testing.T) {
	t.Parallel()
	for given, want := range map[int64]uint32{0: 64 << 20, 1000: 1000} {
		zipped := strikeAlone(t, Fault{Kind: GzipBomb, Size: given}, http.NoBody).Body.Bytes()
		assert.Equal(t, want, binary.LittleEndian.Uint32(zipped[len(zipped)-4:]), "the size that gzip notes at its end")
	}
}

// A silentTransport never answers.
type silentTransport struct{}

func (silentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestDeliveryTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t.Context(), false, slog.New(slog.DiscardHandler))
		d.client.Transport = silentTransport{}
		began := time.Now()
		d.post("http://127.0.0.1:1/", notification{WebhookID: "W", Event: "e"})
		<-d.due()[0]
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.Equal(t, "timeout", errorClass(d.history[0].Err))
		d.end()
	})
}

// A pipeListener takes connections from memory.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestCloseWaitsForConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg, err := newConfig(nil)
		require.NoError(t, err)
		service, err := newService(cfg)
		require.NoError(t, err)
		s := newServer(cfg, service, identity{})
		go s.listen(pipeListener{make(chan net.Conn), make(chan struct{})})
		synctest.Wait()
		lingering, other := net.Pipe()
		s.conns.track(lingering, http.StateNew) // it has not been told that the server is closed

		closed := false
		go func() {
			s.Close()
			closed = true
		}()
		synctest.Wait()
		assert.False(t, closed)
		s.conns.track(lingering, http.StateClosed)
		synctest.Wait()
		assert.True(t, closed)
		require.NoError(t, cmp.Or(lingering.Close(), other.Close()))
	})
}

// After the end of a server no worker is started: nothing would wait for it.
func TestNothingIsPostedAfterTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := newDispatcher(ctx, false, slog.New(slog.DiscardHandler))
	cancel()
	d.end()
	d.post("http://127.0.0.1:1/", notification{WebhookID: "W", Event: "e"})
	assert.Empty(t, d.due())
}

// Newer versions of net/http take few headers, so these do not come over the wire.
func TestHistoryCountsHeaders(t *testing.T) {
	t.Parallel()
	names, values := http.Header{}, http.Header{"X": make([]string, 20_000)}
	for i := range 10_000 {
		names[strconv.Itoa(i)] = []string{""}
	}
	for _, header := range []http.Header{names, values} {
		const requests = 80
		log := requestLog{limit: DefaultHistory}
		for range requests {
			log.add(Request{Header: header})
		}
		assert.Less(t, len(log.list), requests)
		assert.Greater(t, len(log.list), requests/4)
	}
}

// A connection that becomes idle after the fault was injected is of no use either.
func TestConnectionsThatBecomeIdle(t *testing.T) {
	t.Parallel()
	for _, refusing := range []bool{false, true} {
		c := newConnections(func() bool { return refusing })
		conn, other := net.Pipe()
		for _, state := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle} {
			c.track(conn, state)
		}
		err := conn.SetDeadline(time.Time{})
		assert.Equal(t, refusing, err != nil, "closed")
		require.NoError(t, cmp.Or(conn.Close(), other.Close()))
	}
}
