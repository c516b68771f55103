package payvault

import (
	"context"
	"sync"
)

// window runs up to size jobs at a time and gives their results back in the order of the jobs. Without a size a
// job runs when its result is asked for, in the goroutine that asks.
type window[R any] struct {
	size    int
	most    int                            // jobs that run or whose results wait for an older one
	next    func() (job func() R, ok bool) // called in the goroutine that asks for results
	queue   []chan R                       // the results to come, in the order of the jobs
	slots   chan struct{}                  // holds one for each job that runs
	running sync.WaitGroup                 // wait for it before leaving
}

func newWindow[R any](size, most int, next func() (job func() R, ok bool)) *window[R] {
	return &window[R]{size: size, most: most, next: next, slots: make(chan struct{}, max(size, 0))}
}

// fill starts jobs until the window is full or there are no more.
func (w *window[R]) fill() {
	for len(w.queue) < w.size {
		w.slots <- struct{}{}
		if !w.start() {
			return
		}
	}
}

// start runs the next job in the slot that has been taken for it.
func (w *window[R]) start() bool {
	job, ok := w.next()
	if !ok {
		<-w.slots
		return false
	}
	result := make(chan R, 1)
	w.queue = append(w.queue, result)
	w.running.Go(func() {
		result <- job()
		<-w.slots
	})
	return true
}

// pop waits for the oldest job. Each younger one that ends meanwhile makes room for another, so that a slow job does not
// hold up the rest. It returns false if there is no job.
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
	oldest, slots := w.queue[0], w.slots
	for {
		if len(oldest) > 0 || len(w.queue) == w.most {
			slots = nil
		}
		select {
		case result = <-oldest:
			w.queue = w.queue[1:]
			return result, true
		case slots <- struct{}{}:
			if !w.start() {
				slots = nil
			}
		}
	}
}

// cancelable is context.WithCancel, but leaves it to the calls to refuse a nil context with an error.
func cancelable(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		return nil, func() {}
	}
	return context.WithCancel(ctx)
}
