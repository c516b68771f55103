package benchmarks

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/client/sdk"
)

// burst makes calls from many goroutines at once and gives calls per second.
func burst(call client.Call, callers, calls int) (rate float64, err error) {
	var failed atomic.Pointer[error]
	start := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				if err := call(context.Background()); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	if p := failed.Load(); p != nil {
		return 0, *p
	}
	return float64(callers*calls) / time.Since(start).Seconds(), nil
}

// gate holds the first request of each of n callers until all of them have come, as a service does that needs longer for an
// answer than it takes to connect. Without it a caller could take a connection for which another one has dialed.
type gate struct {
	next http.Handler
	mu   sync.Mutex
	wait int
	open chan struct{}
}

func newGate(next http.Handler) *gate { return &gate{next: next, open: make(chan struct{})} }

// close makes the gate wait for n requests.
func (g *gate) close(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wait, g.open = n, make(chan struct{})
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	open := g.open
	if g.wait--; g.wait == 0 {
		close(open)
	}
	held := g.wait >= 0
	g.mu.Unlock()
	if held {
		<-open
	}
	g.next.ServeHTTP(w, r)
}

// loadClient is one of the clients under load.
type loadClient struct {
	name string
	call client.Call

	opened    int64
	wall, cpu []float64 // seconds per call, one for each chunk
}

// Load measures many callers at once and counts the connections that they open. The clients take turns in chunks.
func Load(chunks, callers, calls int) (Section, error) {
	s := Section{
		Title: fmt.Sprintf("%d callers × %d calls", callers, calls),
		Head:  []string{"client", "calls/s", "÷ floor", "calls per CPU second", "÷ floor", "connections opened"},
	}
	trusted, err := trustServers()
	if err != nil {
		return s, err
	}
	defer func() { _ = os.Remove(trusted) }()
	for _, p := range []Protocol{HTTP1, TLS1, HTTP2} {
		if err := s.load(p, chunks, callers, calls/chunks); err != nil {
			return s, err
		}
	}
	return s, nil
}

// trustServers makes the process trust the certificate of test servers, so that a client can use the pool of its own.
func trustServers() (path string, err error) {
	server := NewServer(TLS1, http.NotFoundHandler())
	defer server.Close()
	f, err := os.CreateTemp("", "benchmarks")
	if err != nil {
		return "", err
	}
	err = pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: server.server.Certificate().Raw})
	return f.Name(), errors.Join(err, f.Close(), os.Setenv("SSL_CERT_FILE", f.Name()), os.Setenv("SSL_CERT_DIR", os.DevNull))
}

func (s *Section) load(p Protocol, chunks, callers, calls int) error {
	g := newGate(answering(floor.Answer))
	server := NewServer(p, g)
	defer server.Close()
	var clients []*loadClient
	for _, kind := range []struct {
		name      string
		new       client.New
		transport http.RoundTripper
	}{
		{nameFloor, floor.New, server.Transport()},
		{nameSDK, sdk.New, server.Transport()},
		{"payvault with its own pool", sdk.New, nil},
	} {
		call, err := kind.new(server.URL, kind.transport)
		if err != nil {
			return err
		}
		clients = append(clients, &loadClient{name: kind.name, call: call})
	}
	for chunk := range chunks {
		for _, c := range clients {
			if chunk == 0 {
				g.close(callers)
			}
			before, cpu := server.Connections.Load(), cpuTime()
			rate, err := burst(c.call, callers, calls)
			if err != nil {
				return err
			}
			c.wall = append(c.wall, 1/rate)
			c.cpu = append(c.cpu, (cpuTime()-cpu).Seconds()/float64(callers*calls))
			c.opened += server.Connections.Load() - before
		}
	}
	for i, c := range clients {
		perSecond, perCPU := 1/ratio(c.wall, clients[0].wall), 1/ratio(c.cpu, clients[0].cpu)
		s.row(string(p)+", "+c.name, int(1/median(c.wall)), perSecond, int(1/median(c.cpu)), perCPU, c.opened)
		if i > 0 {
			s.atMost("connections, "+string(p)+", "+c.name, 70, float64(c.opened), "")
			s.atLeast("calls per CPU second ÷ floor, "+string(p)+", "+c.name, 0.95, perCPU)
		}
	}
	return nil
}
