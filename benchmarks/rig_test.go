//go:debug x509usefallbackroots=1

// Package benchmarks compares payvault with resty, with the retryer of the AWS SDK, and with code that a careful
// engineer writes by hand for the same work.
package benchmarks

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the whole process trust the certificate of the test servers. So each client can use a connection pool
// of its own.
func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(nil)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	server.Close()
	x509.SetFallbackRoots(roots)
	goleak.VerifyTestMain(m)
}

// burst runs the function call in as many goroutines as callers says, and in each of them as often as calls says. A
// goroutine stops at its first error.
func burst(ctx context.Context, callers, calls int, call func(context.Context) error) error {
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := 0; n < calls && errs[i] == nil; n++ {
				errs[i] = call(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// checkOrder returns an error unless the stream has the wanted number of items and no error, and the function right
// reports true for each item and its position.
func checkOrder[T any](items iter.Seq2[T, error], want int, right func(item T, n int) bool) error {
	n := 0
	for item, err := range items {
		if err != nil {
			return err
		}
		if !right(item, n) {
			return fmt.Errorf("item %d is not in its place", n)
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%d items instead of %d", n, want)
	}
	return nil
}

// newServer starts a service on the loopback interface. It uses TLS if network is "tls", and plain HTTP/1.1 if network
// is "http1". newServer also returns a counter of the connections to the service.
func newServer(tb testing.TB, network string, handler http.Handler) (url string, connections *atomic.Int64) {
	tb.Helper()
	connections = new(atomic.Int64)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	start := server.Start
	if network == "tls" {
		start = server.StartTLS
	}
	start()
	tb.Cleanup(server.Close)
	return server.URL, connections
}

// answering returns a service that reads each request and sends the given answer.
func answering(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, body)
	})
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = io.WriteString(w, body)
}

// late returns a service that waits before it passes each request on.
func late(delay time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(delay)
		next.ServeHTTP(w, r)
	})
}

// together returns a service that answers the first n requests only when all n have arrived. So n callers need n
// connections.
func together(n int64, next http.Handler) http.Handler {
	var came atomic.Int64
	all := make(chan struct{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if came.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		next.ServeHTTP(w, r)
	})
}

// requests records all requests as text, without the parts that may differ: the host, the user agent and the boundary
// of a form.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (l *requests) recording(next http.Handler) http.Handler {
	differs := regexp.MustCompile(`(Host|User-Agent): .*|[0-9a-f]{60}`) // hex digits: the boundary of a form
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := httputil.DumpRequest(r, true)
		l.mu.Lock()
		l.all = append(l.all, differs.ReplaceAllString(string(text), ""))
		l.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}
