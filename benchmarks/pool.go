package benchmarks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/client/sdk"
)

// Pool shows what the sizes of a pool do: idle connections per host under many callers, and buffers per connection, which are 4 KB
// by default.
func Pool(chunks, callers, calls int) (Section, error) {
	s := Section{
		Title: fmt.Sprintf("sizes of the pool, HTTP/1.1, %d callers × %d calls", callers, calls),
		Head:  []string{"pool", "calls/s", "CPU time per call ÷ that of 128", "p", "connections opened", "CPU time per page of 100 customers ÷ that of 128", "p"},
	}
	sized := func(idle, buffer int) func(*http.Transport) {
		return func(t *http.Transport) {
			t.MaxIdleConnsPerHost, t.ReadBufferSize, t.WriteBufferSize = idle, buffer, buffer
		}
	}
	var pools []*pool
	for _, idle := range []int{16, 32, 64, 128, 256} {
		pools = append(pools, &pool{name: fmt.Sprintf("%d idle connections per host", idle), size: sized(idle, 0)})
	}
	for _, kb := range []int{2, 16, 64} {
		pools = append(pools, &pool{name: fmt.Sprintf("128, buffers of %d KB", kb), size: sized(128, kb<<10)})
	}
	g := newGate(answering(floor.Answer))
	small, large := NewServer(HTTP1, g), NewServer(HTTP1, answering(customers(100)))
	defer small.Close()
	defer large.Close()
	for chunk := range chunks {
		for _, i := range rand.Perm(len(pools)) { //nolint:gosec // an order need not be unpredictable
			p := pools[i]
			if chunk == 0 {
				g.close(callers)
			}
			runtime.GC()
			if err := p.run(small, large, callers, calls/chunks); err != nil {
				return s, err
			}
		}
	}
	base := pools[3]
	for _, p := range pools {
		s.row(p.name, int(1/median(p.wall)), ratio(p.cpu, base.cpu), probability(p.cpu, base.cpu), p.opened,
			ratio(p.page, base.page), probability(p.page, base.page))
	}
	return s, nil
}

// pool is one set of sizes.
type pool struct {
	name string
	size func(*http.Transport)

	call            func(context.Context) error
	pages           *payvault.Client
	opened          int64
	wall, cpu, page []float64 // seconds per call, one for each chunk
}

func (p *pool) run(small, large *Server, callers, calls int) (err error) {
	if p.call == nil {
		t := small.Transport()
		p.size(t)
		if p.call, err = sdk.New(small.URL, t); err != nil {
			return err
		}
		if p.pages, err = sdk.NewClient(large.URL, t); err != nil {
			return err
		}
	}
	before, cpu := small.Connections.Load(), cpuTime()
	rate, err := burst(p.call, callers, calls)
	if err != nil {
		return err
	}
	p.opened += small.Connections.Load() - before
	p.wall, p.cpu = append(p.wall, 1/rate), append(p.cpu, (cpuTime()-cpu).Seconds()/float64(callers*calls))
	const pages = 20
	cpu = cpuTime()
	for range pages {
		if _, err := p.pages.Customers.List(context.Background(), nil); err != nil {
			return err
		}
	}
	p.page = append(p.page, (cpuTime()-cpu).Seconds()/pages)
	return nil
}
