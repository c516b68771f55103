package payvault

import (
	"context"
	"runtime"
	"sync"
)

// window runs up to size jobs at a time and gives their results back in the order of the jobs. Without a size a
// job runs when its result is asked for, in the goroutine that asks.
type window[R any] struct {
	size    int
	next    func() (job func() R, ok bool) // called in the goroutine that asks for results
	queue   []chan func() R                // the results to come, in the order of the jobs
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
		w.start(job)
	}
}

// start runs a job in a goroutine of its own. If that ends with a panic or with runtime.Goexit, so does the one that
// asks for the result.
func (w *window[R]) start(job func() R) {
	end := func() (r R) {
		runtime.Goexit()
		return r
	}
	result := make(chan func() R, 1)
	w.queue = append(w.queue, result)
	w.running.Go(func() {
		defer func() {
			if with := recover(); with != nil {
				end = func() R { panic(with) }
			}
			result <- end
		}()
		r := job()
		end = func() R { return r }
	})
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
	end := <-w.queue[0]
	w.queue = w.queue[1:]
	return end(), true
}

// cancelable is context.WithCancel, but leaves it to the calls to refuse a nil context with an error.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}
