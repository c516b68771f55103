package benchmarks

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client/sdk"
)

// pager answers each page after a delay.
func pager(pages, records int, delay time.Duration) http.Handler {
	prefix, rest, _ := strings.Cut(customers(records), `"totalPages":1,`)
	body := prefix + `"totalPages":` + strconv.Itoa(pages) + "," + rest
	parts := strings.Split(body, `:"cust`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
		// Every page has records of its own, as the walk insists.
		answer := strings.Join(parts, `:"p`+r.URL.Query().Get("page")+"x")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = io.WriteString(w, answer) //nolint:gosec // JSON, for a client of our own
	})
}

// heapWatch samples the live heap until it is stopped.
type heapWatch struct {
	peak atomic.Uint64
	stop chan struct{}
	done chan struct{}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func watchHeap() *heapWatch {
	w := &heapWatch{stop: make(chan struct{}), done: make(chan struct{})}
	runtime.GC()
	before := heapInUse()
	go func() {
		defer close(w.done)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-ticker.C:
				if now := heapInUse(); now > before {
					w.peak.Store(max(w.peak.Load(), now-before))
				}
			}
		}
	}()
	return w
}

// Peak ends the watch and gives the highest growth in bytes.
func (w *heapWatch) Peak() float64 {
	close(w.stop)
	<-w.done
	return float64(w.peak.Load())
}

// walk goes over all records and checks their order. The caller spends busy on each page.
func walk(c *payvault.Client, prefetch, pages, records int, busy time.Duration) error {
	n := 0
	for customer, err := range c.Customers.All(context.Background(), &payvault.ListOptions{Count: records, Prefetch: prefetch}) {
		if err != nil {
			return err
		}
		if want := fmt.Sprintf("p%dx%06d", n/records, n%records); customer.ID != want {
			return fmt.Errorf("record %d is %s", n, customer.ID)
		}
		if n++; n%records == 0 && busy > 0 {
			idle(busy)
		}
	}
	return checkCount(n, pages*records)
}

// idle stands for work of the caller's that uses no processor.
func idle(d time.Duration) { <-time.After(d) }

// Pages measures a walk over many pages.
func Pages(rounds, pages int, delay time.Duration) (Section, error) {
	const records = 100
	s := Section{
		Title: fmt.Sprintf("%d pages × %d records, %v per page", pages, records, delay),
		Head:  []string{"walk", "time", "speed ÷ sequential", "peak of the heap, garbage included", "CPU time per page"},
	}
	server := NewServer(HTTP1, pager(pages, records, delay))
	defer server.Close()
	c, err := sdk.NewClient(server.URL, server.Transport())
	if err != nil {
		return s, err
	}
	// A caller who needs longer for a page than the network is the bottleneck: the best possible is his own time.
	busy := 2 * delay
	walks := []*pageWalk{
		{prefetch: 0},
		{prefetch: 1},
		{prefetch: 8},
		{prefetch: 32},
		{prefetch: 0, busy: busy},
		{prefetch: 8, busy: busy},
	}
	for range rounds {
		for _, i := range rand.Perm(len(walks)) { //nolint:gosec // an order need not be unpredictable
			if err := walks[i].run(c, pages, records); err != nil {
				return s, err
			}
		}
	}
	want := map[int]float64{8: 6.8, 32: 16}
	if strings.HasPrefix(runtime.Version(), "go1.26") {
		want = map[int]float64{8: 6, 32: 13}
	}
	var sequential *pageWalk
	for _, w := range walks {
		if w.prefetch == 0 {
			sequential = w
		}
		speed := ratio(sequential.took, w.took)
		s.row(w.name(), seconds(median(w.took)), speed, megabytes(w.heap), seconds(median(w.cpu)/float64(pages)))
		switch {
		case w.busy > 0 && w.prefetch > 0:
			s.atLeast(w.name()+", speed ÷ sequential", 1, speed)
		case want[w.prefetch] > 0:
			s.atLeast(w.name()+", speed ÷ sequential", want[w.prefetch], speed)
		}
	}
	return s, s.liveHeap(pages, records)
}

// liveHeap compares what walks of different length hold.
func (s *Section) liveHeap(pages, records int) error {
	for _, prefetch := range []int{8, 32} {
		var live []float64
		for _, n := range []int{pages / 4, pages} {
			c, err := sdk.NewClient("http://127.0.0.1", handled{pager(n, records, 0)})
			if err != nil {
				return err
			}
			runtime.GC()
			before, seen, most := float64(heapInUse()), 0, 0.0
			for _, err := range c.Customers.All(context.Background(), &payvault.ListOptions{Count: records, Prefetch: prefetch}) {
				if err != nil {
					return err
				}
				if seen++; seen%(5*records) == 0 {
					runtime.GC()
					most = max(most, float64(heapInUse())-before)
				}
			}
			live = append(live, most)
			s.row(fmt.Sprintf("Prefetch %d, %d pages without delay, live heap", prefetch, n), "", "", megabytes(most), "")
		}
		// A record of 1.6 KB takes 2.4 KB in memory, and its text is held besides while it is decoded. Besides those in flight there are the
		// page in use and what the walk remembers of two before.
		inFlight := float64(prefetch+2) * float64(records) * 4100
		s.atMost(fmt.Sprintf("live heap of %d pages, Prefetch %d", pages, prefetch), inFlight/1e6, live[1]/1e6, " MB")
	}
	return nil
}

// pageWalk is one way to walk.
type pageWalk struct {
	prefetch  int
	busy      time.Duration
	took, cpu []float64 // seconds, one per round
	heap      float64   // the most of all rounds
}

func (w *pageWalk) name() string {
	name := "Prefetch " + strconv.Itoa(w.prefetch)
	if w.busy > 0 {
		name += ", caller busy " + w.busy.String() + " per page"
	}
	return name
}

func (w *pageWalk) run(c *payvault.Client, pages, records int) error {
	heap, start, cpu := watchHeap(), time.Now(), cpuTime()
	err := walk(c, w.prefetch, pages, records, w.busy)
	w.took, w.cpu = append(w.took, time.Since(start).Seconds()), append(w.cpu, (cpuTime()-cpu).Seconds())
	w.heap = max(w.heap, heap.Peak())
	return err
}
