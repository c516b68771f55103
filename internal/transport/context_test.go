package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type valueKey struct{}

func newDeadline(caller context.Context, after time.Duration) *deadline {
	return &deadline{Context: caller, at: time.Now().Add(after)}
}

var errShutdown = errors.New("shutting down")

// TestDeadline_likeContext ends a deadline and a context of the standard library in each way, and compares all that can be seen.
func TestDeadline_likeContext(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, cancelCaller context.CancelCauseFunc, end func()){
		"not at all":           func(*testing.T, context.CancelCauseFunc, func()) {},
		"by time":              func(*testing.T, context.CancelCauseFunc, func()) { <-time.After(2 * time.Second) },
		"by the caller":        func(_ *testing.T, cancel context.CancelCauseFunc, _ func()) { cancel(nil) },
		"by the caller, cause": func(_ *testing.T, cancel context.CancelCauseFunc, _ func()) { cancel(errShutdown) },
		"by the attempt":       func(_ *testing.T, _ context.CancelCauseFunc, end func()) { end() },
		"twice": func(_ *testing.T, cancel context.CancelCauseFunc, end func()) {
			end()
			cancel(nil)
			<-time.After(2 * time.Second)
		},
	}
	looks := map[string]func(ctx context.Context){
		"nobody looks":       func(context.Context) {},
		"somebody waits":     func(ctx context.Context) { ctx.Done() },
		"somebody asks":      func(ctx context.Context) { _ = ctx.Err() },
		"a context below it": func(ctx context.Context) { context.AfterFunc(ctx, func() {}) },
	}
	callers := map[string]func(root context.Context) (context.Context, context.CancelCauseFunc){
		"that never ends": func(root context.Context) (context.Context, context.CancelCauseFunc) {
			return context.WithoutCancel(root), func(error) {}
		},
		"cancelable": func(root context.Context) (context.Context, context.CancelCauseFunc) {
			return context.WithCancelCause(context.WithValue(root, valueKey{}, "caller's"))
		},
		"with an earlier deadline": func(root context.Context) (context.Context, context.CancelCauseFunc) {
			ctx, cancel := context.WithCancelCause(root)
			ctx, end := context.WithTimeout(ctx, time.Second/2)
			return ctx, func(cause error) {
				cancel(cause)
				end()
			}
		},
	}
	see := func(ctx context.Context, start time.Time) map[string]any {
		synctest.Wait()
		at, ok := ctx.Deadline()
		done := false
		select {
		case <-ctx.Done():
			done = true
		default:
		}
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		return map[string]any{
			"err": ctx.Err(), "cause": context.Cause(ctx), "done": done, "deadline": at.Sub(start), "ok": ok,
			"value": ctx.Value(valueKey{}), "other": ctx.Value("none"), "child": child.Err(), "child's cause": context.Cause(child),
		}
	}
	for wayName, way := range ways {
		for lookName, look := range looks {
			for callerName, caller := range callers {
				t.Run(wayName+"/"+lookName+"/"+callerName, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						start := time.Now()
						ctx, cancel := caller(t.Context())
						own := newDeadline(ctx, time.Second)
						std, end := context.WithDeadline(ctx, own.at)
						look(own)
						look(std)
						way(t, cancel, func() { own.cancel(context.Canceled); end() })
						assert.Equal(t, see(std, start), see(own, start))
						own.cancel(context.Canceled)
						end()
						cancel(nil)
						assert.Equal(t, see(std, start)["done"], see(own, start)["done"])
					})
				})
			}
		}
	}
}

// TestDeadline_Err: nobody has called Done.
func TestDeadline_Err(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		caller, cancel := context.WithCancel(t.Context())
		late, canceled := newDeadline(caller, time.Second), newDeadline(caller, time.Hour)
		require.NoError(t, late.Err())
		<-time.After(time.Second)
		require.ErrorIs(t, late.Err(), context.DeadlineExceeded)
		cancel()
		require.ErrorIs(t, canceled.Err(), context.Canceled)
		assert.ErrorIs(t, late.Err(), context.DeadlineExceeded, "what ended it first")
	})
}

// TestDeadline_printed fails under the race detector if fmt reads the fields of a context that is in use.
func TestDeadline_printed(t *testing.T) {
	t.Parallel()
	d := newDeadline(context.WithValue(t.Context(), valueKey{}, "v"), time.Hour)
	var all sync.WaitGroup
	all.Go(func() { assert.Contains(t, fmt.Sprintf("%v", d), "WithDeadline") })
	all.Go(func() { d.Done() })
	all.Go(func() { d.cancel(context.Canceled) })
	all.Wait()
}

// TestDeadline_printsNoFields: a caller's context may hold anything.
func TestDeadline_printsNoFields(t *testing.T) {
	t.Parallel()
	type own struct {
		context.Context //nolint:containedctx // a caller's context

		Token string
	}
	text := fmt.Sprintf("%+v", newDeadline(own{t.Context(), "caller-token"}, time.Hour))
	assert.NotContains(t, text, "caller-token")
	assert.Contains(t, text, "transport.own.WithDeadline(")
}

// TestSentTwiceByNetHTTP: a request that net/http itself sends again, since a connection that was used before was lost, may have been
// performed the first time, whatever the answer to the second is.
func TestSentTwiceByNetHTTP(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	c := New(testConfig(pipes(t, func(conn net.Conn) {
		first, r := connections.Add(1) == 1, bufio.NewReader(conn)
		for n := 1; readRequest(r) == nil && (!first || n < 2); n++ {
			_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
	})))
	for _, unsure := range []bool{false, true} {
		request := post(true).to(t, "http://service.test/")
		request.Method, request.Body = http.MethodGet, nil
		result, err := c.Do(t.Context(), request)
		require.NoError(t, err)
		assert.Equal(t, http.StatusNotFound, result.Status)
		assert.Equal(t, 1, result.Attempts)
		assert.Equal(t, unsure, result.Unsure)
	}
	assert.EqualValues(t, 2, connections.Load())
}

// forgetful is a RoundTripper that keeps nothing.
type forgetful step

func (f forgetful) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestAttemptLeavesNothing: neither its timer nor the caller's context keep what an attempt used, the body and the key among it.
//
//nolint:paralleltest // it measures the heap of the process
func TestAttemptLeavesNothing(t *testing.T) {
	caller, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last context.Context
	c := New(testConfig(forgetful(func(req *http.Request) (*http.Response, error) {
		last = req.Context()
		last.Done()
		return response(http.StatusOK, strings.NewReader("{}"), 2), nil
	})))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 5000 {
		_, err := c.Do(caller, post(false))
		require.NoError(t, err)
	}
	assert.Less(t, heap(), before+1<<20)
	assert.ErrorIs(t, last.Err(), context.Canceled, "the attempt is over")
}

// TestDeadline_noGoroutine: a context below it is linked, not waited for.
func TestDeadline_noGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDeadline(t.Context(), time.Second)
		child, cancel := context.WithCancelCause(d)
		defer cancel(nil)
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		assert.False(t, bytes.Contains(stacks, []byte("created by context.(*cancelCtx).propagateCancel")))
		d.cancel(context.Canceled)
		<-child.Done()
		assert.ErrorIs(t, child.Err(), context.Canceled)
	})
}

func TestDeadline_AfterFunc(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDeadline(t.Context(), time.Second)
		var mu sync.Mutex
		var called []string
		register := func(name string) func() bool {
			return d.AfterFunc(func() {
				mu.Lock()
				defer mu.Unlock()
				called = append(called, name)
			})
		}
		stopFirst, stopSecond := register("first"), register("second")
		assert.True(t, stopFirst())
		assert.False(t, stopFirst(), "already stopped")
		<-time.After(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"second"}, called)
		assert.False(t, stopSecond(), "already called")
		assert.False(t, stopFirst())
		stopLate := register("late")
		synctest.Wait()
		assert.Equal(t, []string{"second", "late"}, called)
		assert.False(t, stopLate())
		d.cancel(context.Canceled)
		synctest.Wait()
		assert.Len(t, called, 2)
	})
}

// TestDeadline_race is for the race detector.
func TestDeadline_race(t *testing.T) {
	t.Parallel()
	for range 200 {
		caller, cancel := context.WithCancel(t.Context())
		d := newDeadline(caller, 50*time.Microsecond)
		var all sync.WaitGroup
		for _, f := range []func(){
			func() { <-d.Done() }, func() { _ = d.Err() }, cancel, func() { d.cancel(context.Canceled) },
			func() { d.AfterFunc(func() {})() },
			func() {
				child, cancel := context.WithCancel(d)
				defer cancel()
				<-child.Done()
			},
		} {
			all.Go(f)
		}
		all.Wait()
		require.Error(t, d.Err())
	}
}

// TestKeySourceHasNoHooks: connections of the key source are not taken for those of the request.
func TestKeySourceHasNoHooks(t *testing.T) {
	t.Parallel()
	config := testConfig(&script{steps: []step{func(*http.Request) (*http.Response, error) { return nil, errRefused }}})
	config.Authorization = func(ctx context.Context, deadline time.Time) (string, error) {
		assert.Nil(t, httptrace.ContextClientTrace(ctx))
		assert.False(t, deadline.IsZero())
		return "Basic key", nil
	}
	result, err := New(config).Do(t.Context(), post(false))
	require.ErrorIs(t, err, errRefused)
	assert.Equal(t, Unknown, result.Delivery, "a transport that calls no hooks proves nothing")
}
