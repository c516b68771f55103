package overload

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
)

// play tells p the outcomes of requests, one per millisecond. Each letter of script is one outcome or a pause.
func play(p *Pace, script string) {
	first := Place{at: time.Now()}
	for _, event := range script {
		<-time.After(time.Millisecond)
		now := Place{at: time.Now()}
		switch event {
		case 'a':
			p.Answered(now)
		case 'r':
			p.Refused(now, 0)
		case 'b': // an answer to a request that was sent before all others
			p.Answered(first)
		case 'q': // a refusal of a request that was sent before all others
			p.Refused(first, 0)
		case 'u': // an answer to a request that was sent without its turn, or when there was no limit
			p.Answered(Place{})
		case 'v': // a refusal of such a request
			p.Refused(Place{}, 0)
		case 'w': // a refusal with a Retry-After
			p.Refused(now, time.Millisecond)
		case 's':
			<-time.After(time.Second)
		case 'm':
			<-time.After(time.Minute + 20*time.Second)
		}
	}
}

// TestRateOfAPace checks the rate after each sequence of answers and refusals. The function play explains all letters.
// For example, "a" is an answer, "r" a refusal, and "s" a second without requests.
func TestRateOfAPace(t *testing.T) {
	t.Parallel()
	const ten = "aaaaaaaaaa"
	const hundred = ten + ten + ten + ten + ten + ten + ten + ten + ten + ten
	for script, want := range map[string]rate.Limit{
		// The first refusal sets the rate to 0.8 times the number of answers in a second, and to at least 0.8. The answer to
		// a request that was sent without its turn, or when there was no limit, can raise the rate even after a refusal. The
		// refusal of such a request does not change the rate.
		"r":                       0.8,
		hundred + "r":             80,
		hundred + "sr":            80,
		hundred + "ssr":           0.8,
		hundred + "s" + ten + "r": 80,
		"ruuuuuuuuuu":             8,
		hundred + "ru":            80.8,
		hundred + "rssu":          80,
		"rarruuuuuuuuuu":          0.8 * 11,
		"rv":                      0.8,
		"rarvvvv":                 1.194,
		// If no answer has come since the previous refusal, a refusal halves the rate, down to 0.1. If the refused request
		// was sent before the latest cut, the rate does not change.
		"rr":    0.4,
		"rrr":   0.2,
		"rrrr":  0.1,
		"rrrrr": 0.1,
		"rq":    0.8,
		"rrrrq": 0.1,
		// Up to the known rate, each answer adds 0.693, but at most doubles the rate. After the first refusal no rate is
		// known. A later refusal makes the new rate the known rate, if an answer has come since the previous refusal.
		"ra":          0.8 + 0.693,
		"raa":         0.8 + 2*0.693,
		"rrrra":       0.2,
		"rrrraa":      0.4,
		"rar":         1.194,
		"rarr":        0.597,
		"rarra":       1.194,
		"rarrb":       0.597,
		"rarrraa":     1.194,
		"raarr" + ten: 1.749,
		// The first ten answers after a cut do not raise the rate above the known rate. Each later answer adds at least 0.05.
		"rar" + ten:         1.194,
		"rar" + ten + "b":   1.194,
		"rar" + ten + "a":   1.244,
		"rar" + ten + "aaa": 1.344,
		// If a rate is known, a refusal after more than ten answers multiplies the rate by 0.9 instead of 0.8.
		"rar" + ten + "r":        0.956,
		"rar" + ten + "ar":       1.120,
		"rar" + ten + "ar" + ten: 1.120,
		"rar" + ten + "arr":      0.560,
		"rar" + ten + "aw":       0.995, // with a Retry-After the factor is 0.8
		"r" + ten + "ar":         6.740,
		"rrrrarararar":           0.1,
		// A minute after the latest refusal the known rate is dropped, and answers add 0.693 again.
		"rarma":  1.194 + 0.693,
		"rarmaa": 1.194 + 2*0.693,
		// The known rate is kept for the time of 40 requests at the present rate, if that is longer than a minute.
		"rarrrrrma":     0.2,
		"rarrrrrmaaa":   0.8,
		"rarrrrrmaaaa":  0.8 + 0.693,
		"rarrrrrmmmmma": 0.2,
		// After two minutes without a refusal, or after the time of 80 requests if that is longer, an answer ends the limit.
		// The next refusal is a first refusal again.
		"rarmma":              rate.Inf,
		"rarrrrrmmmmmmmmmma":  0.2,
		"rarrrrrmmmmmmmmmmma": rate.Inf,
		"rarrmmassr":          0.8,
		"rarrmmassra":         0.8 + 0.693,
		"rarrmmassrr":         0.4,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := NewPace()
				play(p, script)
				assert.InDelta(t, float64(want), float64(p.limiter.Limit()), 0.001)
				assert.Equal(t, want != rate.Inf, p.limited.Load())
			})
		})
	}
}

// TestLiftedForThoseWhoWait checks that requests that wait at the lowest rate, one in ten seconds, are all sent within
// a second after the limit has ended.
func TestLiftedForThoseWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, gone := NewPace(), make(chan time.Time, 20)
		play(p, "rrrr") // sets the lowest rate
		// The random wait after the latest refusal is at most 5 seconds. 800 seconds later, which is the time of 80 requests,
		// the limit may end. Time alone does not end it: the next answer does.
		<-time.After(805 * time.Second)
		for range cap(gone) {
			go func() {
				_, err := p.Wait(t.Context(), time.Hour, nil)
				assert.NoError(t, err)
				gone <- time.Now()
			}()
		}
		<-time.After(15 * time.Second)
		assert.LessOrEqual(t, len(gone), 3)
		lifted := time.Now()
		p.Answered(Place{}) // ends the limit; Place{} is a place of a request that was sent without a limit
		for range cap(gone) {
			assert.LessOrEqual(t, (<-gone).Sub(lifted), time.Second)
		}
	})
}

// TestTurnOfThoseWhoGaveUp checks that a request need not wait for earlier requests whose contexts have ended. An
// earlier request gets the error of its context, and not the cause, which may be the error of another call.
func TestTurnOfThoseWhoGaveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		play(p, "rss")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(&HeldError{time.Minute})
		for range 50 {
			_, err := p.Wait(gone, time.Hour, nil)
			require.Equal(t, context.Canceled, err)
		}
		at, err := p.Wait(t.Context(), time.Hour, nil)
		require.NoError(t, err)
		assert.Zero(t, at.Waited)
	})
}

// TestCallBesideWalks checks that a single call waits for at most one request of a walk, even if eight requests of
// walks are waiting. A walk is a loop of many calls.
func TestCallBesideWalks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		play(p, "rarss") // sets the rate to one request in 0.84 seconds
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := p.Wait(ctx, time.Hour, nil)
		require.NoError(t, err)
		for range 8 {
			go func() { _, _ = p.WaitInWalk(ctx, time.Hour) }()
		}
		synctest.Wait()
		start := time.Now()
		_, err = p.Wait(ctx, time.Hour, nil)
		require.NoError(t, err)
		assert.InDelta(t, 2/1.194, time.Since(start).Seconds(), 0.01)
	})
}

// TestWhileHeld checks that no request is sent before the end of a Retry-After. Waiting requests that may not wait that
// long fail with a HeldError as soon as the service asks for the wait.
func TestWhileHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const hold = 300 * time.Second // Retry-After of the second refusal, a second after the first
		const untilEnd = time.Second + hold
		p, first, start := NewPace(), Place{at: time.Now()}, time.Now()
		p.Refused(first, 2*time.Second)
		brief, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		var all sync.WaitGroup
		for _, wait := range []func(context.Context, time.Duration) (Place, error){p.waitWithoutLimit, p.WaitInWalk} {
			// tooLong checks a request that accepts the first wait, which is 2 seconds. It fails when the second refusal comes.
			tooLong := func(ctx context.Context, longest time.Duration) {
				_, err := wait(ctx, longest)
				var held *HeldError
				if assert.ErrorAs(t, err, &held) {
					assert.InDelta(t, 1.05*hold.Seconds(), held.After.Seconds(), 0.05*hold.Seconds(), "with a jitter of a tenth")
				}
				assert.Equal(t, time.Second, time.Since(start))
			}
			for range 2 { // only one request has the turn, and the others wait for it
				all.Go(func() {
					_, err := wait(t.Context(), time.Hour)
					assert.NoError(t, err)
					assert.GreaterOrEqual(t, time.Since(start), untilEnd)
				})
				all.Go(func() { tooLong(brief, time.Hour) })              // the deadline is before the end of the second wait
				all.Go(func() { tooLong(t.Context(), hold-time.Second) }) // accepts a second less than the second Retry-After
			}
		}
		// All requests above wait. After one second the second refusal comes.
		<-time.After(time.Second)
		p.Refused(Place{at: time.Now()}, hold)
		p.Refused(first, time.Second) // a shorter Retry-After does not replace the longer one
		<-time.After(90 * time.Second)
		p.Answered(first) // an answer does not end the wait
		all.Wait()
	})
}

// waitWithoutLimit calls Wait without a Limit. It has the same parameters as WaitInWalk.
func (p *Pace) waitWithoutLimit(ctx context.Context, longest time.Duration) (Place, error) {
	return p.Wait(ctx, longest, nil)
}

// timeout returns a context with a deadline.
func timeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// waits makes calls with the same timeout at the same time. It returns how long they waited, the shortest wait first.
func waits(t *testing.T, p *Pace, calls int, within time.Duration) []time.Duration {
	t.Helper()
	waited := make(chan time.Duration, calls)
	for range calls {
		go func() {
			place, err := p.Wait(timeout(t, within), time.Hour, nil)
			assert.NoError(t, err)
			waited <- place.Waited
		}()
	}
	all := make([]time.Duration, calls)
	for i := range all {
		all[i] = <-waited
	}
	slices.Sort(all)
	return all
}

// TestSlowQueue checks that a call is sent at once if its turn would come after half of its timeout. The rate is 0.8
// requests a second. So the turns of calls come after 0, 1.25, 2.5 seconds and so on.
func TestSlowQueue(t *testing.T) {
	t.Parallel()
	const turn = 1250 * time.Millisecond
	for within, want := range map[time.Duration][]time.Duration{
		2 * time.Second: {0, 0, 0, 0, 0, 0, 0, 0}, // one of these has its turn
		4 * time.Second: {0, 0, 0, 0, 0, 0, 0, turn},
		6 * time.Second: {0, 0, 0, 0, 0, 0, turn, 2 * turn},
		time.Minute:     {0, turn, 2 * turn, 3 * turn, 4 * turn, 5 * turn, 6 * turn, 7 * turn},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPace()
			play(p, "rss")
			assert.InDeltaSlice(t, want, waits(t, p, len(want), within), float64(time.Millisecond), within)
		})
	}
}

// TestQueueThatBecomesSlow checks that a call that waits for its turn is sent after half of its timeout, if the rate
// has fallen meanwhile.
func TestQueueThatBecomesSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		play(p, "rss")
		time.AfterFunc(time.Millisecond, func() { play(p, "rrr") }) // sets the lowest rate: one request in ten seconds
		want := []time.Duration{0, 0, 0, 2 * time.Second}
		assert.InDeltaSlice(t, want, waits(t, p, len(want), 4*time.Second), float64(time.Millisecond))
	})
}

// TestConfirmedRate checks that after the refusal of a call that was sent without its turn, calls wait for half of
// their timeouts. A second later, calls are sent at once again. The refusal does not make other calls wait longer for
// their turns.
func TestConfirmedRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		play(p, "rss")
		assert.Zero(t, waits(t, p, 2, 2*time.Second)[1])
		until := p.until
		p.Refused(Place{}, 0)
		assert.Equal(t, until, p.until)
		assert.Equal(t, []time.Duration{time.Second, time.Second}, waits(t, p, 2, 2*time.Second))
		assert.Zero(t, waits(t, p, 2, 2*time.Second)[0])
	})
}

// TestSlowQueueWhileHeld checks that a call that is sent without its turn waits as long as the service has asked. Only
// the rest of its timeout, after this wait, is halved. A call whose deadline is before the end of this wait fails at
// once.
func TestSlowQueueWhileHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		play(p, "rss")
		p.Refused(Place{}, 3*time.Second)
		start := time.Now()
		_, err := p.Wait(timeout(t, 2*time.Second), time.Hour, nil)
		require.ErrorAs(t, err, new(*HeldError))
		assert.Zero(t, time.Since(start))
		<-time.After(time.Second)
		got := waits(t, p, 3, 3*time.Second) // one second more than the wait
		assert.Equal(t, []time.Duration{2 * time.Second, 2 * time.Second}, got[:2])
		assert.Greater(t, got[2], 2*time.Second, "it has its turn after the random addition")
	})
}

// TestWalkInASlowQueue checks that a call of a walk and a call without a deadline are sent in their turns only.
func TestWalkInASlowQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace()
		play(p, "rarrrm") // sets the rate to one request in 3.35 seconds
		_, err := p.WaitInWalk(timeout(t, time.Second), time.Hour)
		require.NoError(t, err)
		place, err := p.WaitInWalk(timeout(t, 4*time.Second), time.Hour)
		require.NoError(t, err)
		assert.InDelta(t, 3.35, place.Waited.Seconds(), 0.01)
		place, err = p.Wait(t.Context(), time.Hour, nil)
		require.NoError(t, err)
		assert.InDelta(t, 3.35, place.Waited.Seconds(), 0.01)
		_, err = p.WaitInWalk(timeout(t, time.Second), time.Hour)
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

// TestLongestWait checks that only the Retry-After is compared with the longest wait that a request accepts. A random
// time is added to the Retry-After, so the wait may be longer.
func TestLongestWait(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			for range 20 {
				p := NewPace()
				p.Refused(Place{}, after)
				_, err := p.Wait(t.Context(), after, nil)
				require.NoError(t, err)
			}
		})
	}
}

// TestJitter checks that clients that were refused at the same time wait for different times within the permitted
// range.
func TestJitter(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration][2]time.Duration{
		0:           {0, 625 * time.Millisecond}, // at most half of the interval, which is 1.25 s at 0.8 requests a second
		time.Second: {time.Second, 1100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			back := map[time.Duration]bool{}
			for range 40 {
				p := NewPace()
				p.Refused(Place{}, after)
				held := time.Until(p.until)
				assert.GreaterOrEqual(t, held, want[0])
				assert.LessOrEqual(t, held, want[1])
				back[held.Truncate(time.Millisecond)] = true
			}
			assert.Greater(t, len(back), 20)
		})
	}
}

// TestOrderBesideALimit checks that single calls are sent in the order in which they came, although the queue of the
// Limit grows while they wait. A call that has given up does not stop the calls behind it.
func TestOrderBesideALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, gaveUp = 20, 10
		p, l := NewPace(), NewLimit(100, 1)
		p.Refused(Place{}, 0)
		var mu sync.Mutex
		var sent []int
		var all sync.WaitGroup
		for i := range calls {
			ctx := timeout(t, time.Hour)
			if i == gaveUp {
				ended, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				ctx = ended
			}
			all.Go(func() {
				_, err := p.Wait(ctx, time.Minute, l)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					sent = append(sent, i)
				}
			})
			synctest.Wait()
		}
		for range 10 * calls { // other requests, which do not wait for the Pace
			_, err := l.Wait(t.Context(), nil)
			require.NoError(t, err)
		}
		all.Wait()
		want := make([]int, 0, calls)
		for i := range calls {
			if i != gaveUp {
				want = append(want, i)
			}
		}
		assert.Equal(t, want, sent)
	})
}
