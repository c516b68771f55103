package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"example.com/payvault"
	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/floor"
	"example.com/payvault/benchmarks/client/sdk"
)

// cards is a stream of cards that is never held in memory.
func cards(n int) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		for range n {
			if !yield(payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230", CardID: "card-17"}) {
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

// byHand sends all cards from as many goroutines, as one would without SubmitAll: in no order, without results.
func byHand(c *floor.Client, n, concurrency int) error {
	work, failed := make(chan []payvault.AccountUpdaterCard), make(chan error, concurrency)
	for range concurrency {
		go func() {
			var err error
			for batch := range work {
				var out struct {
					Code int                            `json:"code"`
					Data payvault.AccountUpdaterRequest `json:"data"`
				}
				in := struct {
					Data []payvault.AccountUpdaterCard `json:"data"`
				}{batch}
				err = errors.Join(err, c.Do(context.Background(), http.MethodPost, c.BaseURL+"/platform/aus/add", in, &out))
			}
			failed <- err
		}()
	}
	for batch := range chunks(cards(n), payvault.MaxAccountUpdaterCards) {
		work <- batch
	}
	close(work)
	var err error
	for range concurrency {
		err = errors.Join(err, <-failed)
	}
	return err
}

// chunks cuts a stream into slices.
func chunks[T any](stream iter.Seq[T], size int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		chunk := make([]T, 0, size)
		for item := range stream {
			if chunk = append(chunk, item); len(chunk) == size {
				if !yield(chunk) {
					return
				}
				chunk = make([]T, 0, size)
			}
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// waiting is what the delays take alone, since timers come late: as many goroutines do nothing but wait.
func waiting(requests, concurrency int, delay time.Duration) {
	var all sync.WaitGroup
	for range concurrency {
		all.Go(func() {
			for range requests / concurrency {
				idle(delay)
			}
		})
	}
	all.Wait()
}

// Batches measures SubmitAll against the ideal, which is the delays alone or the processor time alone if that is more, and against
// the same work done by hand.
func Batches(rounds, n, concurrency int, delay time.Duration) (Section, error) {
	s := Section{
		Title: fmt.Sprintf("SubmitAll of %d cards, %v per request, concurrency %d", n, delay, concurrency),
		Head:  []string{"sender", "time", "CPU time", "ideal", "ideal ÷ time", "time by hand ÷ time", "live heap at 1/4, 2/4, 3/4, 4/4"},
	}
	requests := n / payvault.MaxAccountUpdaterCards
	ideal := time.Duration(requests) * delay / time.Duration(concurrency)
	var idled []float64
	for range rounds {
		start := time.Now()
		waiting(requests, concurrency, delay)
		idled = append(idled, time.Since(start).Seconds())
	}
	s.row("goroutines that only wait", seconds(median(idled)), "", ideal, ideal.Seconds()/median(idled), "", "")
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
		c, err := sdk.NewClient(kind.url, kind.transport)
		if err != nil {
			return s, err
		}
		var heap []uint64
		own := &sender{do: func() (err error) {
			heap, err = submit(c, n, concurrency)
			return err
		}}
		hand := &sender{do: func() error { return byHand(floor.NewClient(kind.url, kind.transport), n, concurrency) }}
		for range rounds {
			if err := errors.Join(hand.run(ideal), own.run(ideal)); err != nil {
				return s, err
			}
		}
		s.row("by hand, "+kind.name, seconds(median(hand.took)), seconds(median(hand.used)), seconds(median(hand.ideal)), ratio(hand.ideal, hand.took), 1.0, "")
		share, byHand := ratio(own.ideal, own.took), ratio(hand.took, own.took)
		var levels []string
		for _, bytes := range heap {
			levels = append(levels, megabytes(float64(bytes)))
		}
		s.row("SubmitAll, "+kind.name, seconds(median(own.took)), seconds(median(own.used)), seconds(median(own.ideal)), share, byHand, strings.Join(levels, ", "))
		s.atLeast("ideal ÷ time, "+kind.name, 0.95, share)
		s.atLeast("time by hand ÷ time, "+kind.name, 0.95, byHand)
		if len(heap) >= 4 {
			s.atMost("heap at the end − at 1/4, "+kind.name, 1, (float64(heap[3])-float64(heap[0]))/1e6, " MB")
		}
	}
	return s, nil
}

// sender is one way to send all cards, with its figures in seconds.
type sender struct {
	do                func() error
	took, used, ideal []float64
}

func (w *sender) run(ideal time.Duration) error {
	start, cpu := time.Now(), cpuTime()
	if err := w.do(); err != nil {
		return err
	}
	took, used := time.Since(start), cpuTime()-cpu
	w.took, w.used = append(w.took, took.Seconds()), append(w.used, used.Seconds())
	w.ideal = append(w.ideal, max(ideal, used/time.Duration(runtime.GOMAXPROCS(0))).Seconds())
	return nil
}
