package benchmarks

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
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

	opened    []int64   // in each set
	wall, cpu []float64 // seconds per call, one for each chunk
}

// Load measures many callers at once and counts the connections that they open. The clients take turns in chunks, on several sets
// of servers and connections, which differ.
func Load(sets, chunks, callers, calls int) (Section, error) {
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
		clients := []*loadClient{{name: nameFloor}, {name: nameSDK}, {name: "payvault with its own pool"}}
		for range sets {
			if err := load(p, clients, chunks, callers, calls/chunks); err != nil {
				return s, err
			}
		}
		s.load(p, clients)
		if err := s.unheld(p, sets, callers, calls); err != nil {
			return s, err
		}
	}
	return s, nil
}

// unheld counts the connections without the gate.
func (s *Section) unheld(p Protocol, sets, callers, calls int) error {
	for _, kind := range []struct {
		name string
		new  client.New
	}{{nameFloor, floor.New}, {nameSDK, sdk.New}} {
		var opened []float64
		for range sets {
			server := NewServer(p, answering(floor.Answer))
			call, err := kind.new(server.URL, server.Transport())
			if err == nil {
				_, err = burst(call, callers, calls)
			}
			opened = append(opened, float64(server.Connections.Load()))
			server.Close()
			if err != nil {
				return err
			}
		}
		s.row(string(p)+", "+kind.name+", first requests not held", "", "", "", "",
			fmt.Sprintf("%.0f (%.0f to %.0f)", median(opened), slices.Min(opened), slices.Max(opened)))
	}
	return nil
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

// load lets clients work on a set of their own.
func load(p Protocol, clients []*loadClient, chunks, callers, calls int) error {
	g := newGate(answering(floor.Answer))
	server := NewServer(p, g)
	defer server.Close()
	for i, kind := range []struct {
		new       client.New
		transport http.RoundTripper
	}{
		{floor.New, server.Transport()},
		{sdk.New, server.Transport()},
		{sdk.New, nil},
	} {
		call, err := kind.new(server.URL, kind.transport)
		if err != nil {
			return err
		}
		clients[i].call, clients[i].opened = call, append(clients[i].opened, 0)
	}
	for chunk := range chunks {
		for _, i := range rand.Perm(len(clients)) { //nolint:gosec // an order need not be unpredictable
			c := clients[i]
			if chunk == 0 {
				g.close(callers)
			}
			runtime.GC() // so that none pays for the garbage of the one before it
			before, cpu := server.Connections.Load(), cpuTime()
			rate, err := burst(c.call, callers, calls)
			if err != nil {
				return err
			}
			c.wall = append(c.wall, 1/rate)
			c.cpu = append(c.cpu, (cpuTime()-cpu).Seconds()/float64(callers*calls))
			c.opened[len(c.opened)-1] += server.Connections.Load() - before
		}
	}
	return nil
}

func (s *Section) load(p Protocol, clients []*loadClient) {
	for i, c := range clients {
		perSecond, perCPU := 1/ratio(c.wall, clients[0].wall), 1/ratio(c.cpu, clients[0].cpu)
		opened := slices.Max(c.opened)
		s.row(string(p)+", "+c.name, int(1/median(c.wall)), perSecond, int(1/median(c.cpu)), perCPU, opened)
		if i > 0 {
			s.atMost("connections, "+string(p)+", "+c.name, 70, float64(opened), "")
			s.atLeast("calls per CPU second ÷ floor, "+string(p)+", "+c.name, 0.95, perCPU)
		}
	}
}
