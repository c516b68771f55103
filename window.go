package payvault

import (
	"context"
	"sync"
)

// window runs up to size jobs at a time and gives their results back in the order of the jobs. With size 0 a
// job runs when its result is asked for, in the goroutine that asks.
type window[R any] struct {
	size    int
	queue   []func() R
	running sync.WaitGroup // wait for it before leaving
}

// fill starts jobs until the window is full or next has no more.
func (w *window[R]) fill(next func() (job func() R, ok bool)) {
	for len(w.queue) < max(w.size, 1) {
		job, ok := next()
		if !ok {
			return
		}
		if w.size > 0 {
			result := make(chan R, 1)
			run := job
			w.running.Go(func() { result <- run() })
			job = func() R { return <-result }
		}
		w.queue = append(w.queue, job)
	}
}

// pop waits for the oldest job. It returns false if there is none.
func (w *window[R]) pop() (result R, ok bool) {
	if len(w.queue) == 0 {
		return result, false
	}
	job := w.queue[0]
	w.queue[0] = nil
	w.queue = w.queue[1:]
	return job(), true
}

// cancelable is context.WithCancel, but leaves it to the calls to refuse a nil context with an error.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}
