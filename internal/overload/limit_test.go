package overload

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLimitAfterManyGaveUp checks that calls fail at once if the queue before them is too long for their deadline. When
// all requests of the queue have given up, a new call waits only for the next token. For a request that gives up, Wait
// returns the error of the context, and not the cause of the context.
func TestLimitAfterManyGaveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start := NewLimit(10, 1), time.Now()
		_, err := l.Wait(t.Context(), nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				_, err := l.Wait(ctx, nil)
				assert.Equal(t, context.Canceled, err)
			})
		}
		synctest.Wait()
		for range 100 {
			_, err = l.Wait(timeout(t, 10*time.Second), nil)
			var held *HeldError
			require.ErrorAs(t, err, &held)
			assert.InDelta(t, 10.1, held.After.Seconds(), 0.001)
		}

		cancel(&HeldError{time.Minute})
		all.Wait()
		_, err = l.Wait(timeout(t, time.Second/5), nil)
		require.NoError(t, err)
		assert.InDelta(t, 0.1, time.Since(start).Seconds(), 0.001)
	})
}

// TestLimitBesideWalks checks that a single call waits for at most one request of a walk, even if eight are waiting.
// The time that WaitInWalk returns must include the wait for the other walks.
func TestLimitBesideWalks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(1, 1)
		_, err := l.Wait(t.Context(), nil)
		require.NoError(t, err)
		var all sync.WaitGroup
		var mu sync.Mutex
		var sum time.Duration
		for range 8 {
			all.Go(func() {
				waited, err := l.WaitInWalk(t.Context(), nil)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				sum += waited
			})
		}
		synctest.Wait()
		waited, err := l.Wait(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, waited)
		all.Wait()
		assert.Equal(t, (1+3+4+5+6+7+8+9)*time.Second, sum)
	})
}

// TestLimitThatFillsUp checks a call that waits for the learned rate, which is one request in ten seconds. Meanwhile
// other requests fill the queue of the Limit. The call must stop waiting for the learned rate early enough to get its
// turn in the Limit before its deadline.
func TestLimitThatFillsUp(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]func(wait func()){
		"30 a second": func(wait func()) {
			for i := range 300 {
				time.AfterFunc(time.Duration(i)*time.Second/30, wait)
			}
		},
		"80 at once": func(wait func()) {
			for range 80 {
				time.AfterFunc(time.Second, wait)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, p := NewLimit(10, 1), NewPace()
			play(p, "rrrr")
			go func() { _, _ = p.Wait(t.Context(), time.Hour, nil) }() // is before the call in the queue
			synctest.Wait()
			p.Refused(Place{}, 0) // confirms the rate, so the call waits for its turn
			join(func() { _, _ = l.Wait(t.Context(), nil) })
			ctx := timeout(t, 10*time.Second)
			place, err := p.Wait(ctx, time.Hour, l)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, place.Waited, time.Second, name)
			_, err = l.Wait(ctx, p)
			require.NoError(t, err, name)
		})
	}
}
