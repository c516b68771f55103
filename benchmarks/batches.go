package benchmarks

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/sdk"
)

// cards is a stream of cards that is never held in memory.
func cards(n int) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		for range n {
			if !yield(payvault.AccountUpdaterCard{CardNumber: "4111111111111111", ExpDate: "1230", CardID: "card-17"}) {
				return
			}
		}
	}
}

// delayed answers after a while, without a server that would use the same processors.
type delayed struct {
	next  http.RoundTripper
	delay time.Duration
}

func (d delayed) RoundTrip(req *http.Request) (*http.Response, error) {
	timer := time.NewTimer(d.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return d.next.RoundTrip(req)
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// stopwatch adds up how long its requests take.
type stopwatch struct {
	next  http.RoundTripper
	total atomic.Int64 // nanoseconds
}

func (s *stopwatch) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	defer func() { s.total.Add(int64(time.Since(start))) }()
	return s.next.RoundTrip(req)
}

const submitAnswer = `{"code":0,"message":"Success","data":{"request_id":"aus-17"}}`

// submit sends all cards and gives the live heap in the course of it.
func submit(c *payvault.Client, n, concurrency int) (heap []uint64, err error) {
	batches := (n + payvault.MaxAccountUpdaterCards - 1) / payvault.MaxAccountUpdaterCards
	step, seen := max(1, batches/4), 0
	for b := range c.AccountUpdater.SubmitAll(context.Background(), cards(n), &payvault.SubmitAllOptions{Concurrency: concurrency}) {
		if b.Err != nil {
			return nil, b.Err
		}
		if b.Index != seen {
			return nil, fmt.Errorf("batch %d came as number %d", b.Index, seen)
		}
		if seen++; seen%step == 0 {
			runtime.GC()
			heap = append(heap, heapInUse())
		}
	}
	return heap, checkCount(seen, batches)
}

// Batches measures SubmitAll against the ideal: the delays alone, as long as they really were (timers come late on a busy
// machine), or the processor time alone if that is more.
func Batches(rounds, n, concurrency int, delay time.Duration) (Section, error) {
	s := Section{
		Title: fmt.Sprintf("SubmitAll of %d cards, %v per request, concurrency %d", n, delay, concurrency),
		Head:  []string{"transport", "time", "requests × delay ÷ concurrency", "the same with the delays that were", "CPU time", "ideal ÷ time", "live heap at 1/4, 2/4, 3/4, 4/4"},
	}
	ideal := time.Duration(n/payvault.MaxAccountUpdaterCards) * delay / time.Duration(concurrency)
	server := NewServer(HTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		timer := time.NewTimer(delay)
		defer timer.Stop()
		<-timer.C
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, submitAnswer)
	}))
	defer server.Close()
	for _, kind := range []struct {
		name      string
		url       string
		transport http.RoundTripper
	}{
		{"canned with the delay", "http://127.0.0.1", delayed{client.Canned(submitAnswer), delay}},
		{"loopback, the server on the same processors", server.URL, server.Transport()},
	} {
		watch := &stopwatch{next: kind.transport}
		c, err := sdk.NewClient(kind.url, watch)
		if err != nil {
			return s, err
		}
		var took, used, waited, shares []float64
		var heap []uint64
		for range rounds {
			start, cpu, before := time.Now(), cpuTime(), watch.total.Load()
			if heap, err = submit(c, n, concurrency); err != nil {
				return s, err
			}
			t, u, w := time.Since(start), cpuTime()-cpu, time.Duration(watch.total.Load()-before)/time.Duration(concurrency)
			best := max(ideal, u/time.Duration(runtime.GOMAXPROCS(0)), w)
			took, used, waited = append(took, t.Seconds()), append(used, u.Seconds()), append(waited, w.Seconds())
			shares = append(shares, best.Seconds()/t.Seconds())
		}
		share := median(shares)
		var levels []string
		for _, bytes := range heap {
			levels = append(levels, megabytes(float64(bytes)))
		}
		s.row(kind.name, seconds(median(took)), ideal, seconds(median(waited)), seconds(median(used)), share, strings.Join(levels, ", "))
		s.atLeast("ideal ÷ time, "+kind.name, 0.95, share)
		if len(heap) >= 4 {
			s.atMost("heap at the end − at 1/4, "+kind.name, 1, (float64(heap[3])-float64(heap[0]))/1e6, " MB")
		}
	}
	return s, nil
}
