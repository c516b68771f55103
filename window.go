package payvault

import (
	"context"
	"sync"
)

// window runs up to size jobs at a time and gives their results back in the order of the jobs. Without a size a
// job runs when its result is asked for, in the goroutine that asks.
type window[R any] struct {
	size    int
	next    func() (job func() R, ok bool) // called in the goroutine that asks for results
	queue   []chan R                       // the results to come, in the order of the jobs
	running sync.WaitGroup                 // wait for it before leaving
}

func newWindow[R any](size int, next func() (job func() R, ok bool)) *window[R] {
	return &window[R]{size: size, next: next}
}

// fill starts jobs until the window is full or there are no more.
func (w *window[R]) fill() {
	for len(w.queue) < w.size {
		job, ok := w.next()
		if !ok {
			return
		}
		result := make(chan R, 1)
		w.queue = append(w.queue, result)
		w.running.Go(func() { result <- job() })
	}
}

// pop waits for the oldest job. It returns false if there is no job.
func (w *window[R]) pop() (result R, ok bool) {
	if w.size <= 0 {
		job, ok := w.next()
		if ok {
			result = job()
		}
		return result, ok
	}
	w.fill()
	if len(w.queue) == 0 {
		return result, false
	}
	result = <-w.queue[0]
	w.queue = w.queue[1:]
	return result, true
}

// cancelable is context.WithCancel, but leaves it to the calls to refuse a nil context with an error.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}
