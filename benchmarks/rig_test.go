//go:debug x509usefallbackroots=1

// Package benchmarks compares payvault with two other clients, and with code that a careful engineer writes by hand for
// the same work.
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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// measure calls the function work b.N times. It also reports the CPU time of the process, which includes garbage
// collection on other processors, and excludes the time of other programs.
func measure(b *testing.B, work func() error) {
	b.Helper()
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		if err := work(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the CPU time that this process has used.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail with these arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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

// canned is a transport that answers each request from memory. The answer costs the same time for every client.
type canned struct {
	body   string
	header http.Header
}

func newCanned(body string) canned {
	return canned{body, http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(body))}}}
}

// RoundTrip answers a request. It refuses a request without a deadline, because every client promises to set one.
func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, ok := req.Context().Deadline(); !ok {
		return nil, errors.New("no deadline")
	}
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: req,
	}, nil
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
