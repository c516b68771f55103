package bulk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// refuses is a refusal that comes after some time.
type refuses struct {
	took       time.Duration
	retryAfter string // or succeeds, for a success
}

const succeeds = "success"

// times returns n immediate refusals.
func times(n int, retryAfter string) []refuses { return slices.Repeat([]refuses{{0, retryAfter}}, n) }

// refusing returns a service that begins with these refusals.
func refusing(first ...refuses) *fake {
	return &fake{answer: func(r asked) (*http.Response, error) {
		if r.nth > len(first) {
			return nil, nil
		}
		one := first[r.nth-1]
		if <-time.After(one.took); one.retryAfter == succeeds {
			return nil, nil
		}
		return refusal(one.retryAfter)
	}}
}

// limited returns a service that permits rate requests a second after a burst, and answers each after 50 ms.
func limited(rate, burst float64, retryAfter string) (s *fake, refused *int) {
	var mu sync.Mutex
	tokens, at, refused := burst, time.Duration(0), new(int)
	return &fake{pages: 200, answer: func(r asked) (*http.Response, error) {
		mu.Lock()
		tokens, at = min(max(rate, 1), tokens+rate*(r.at-at).Seconds()), r.at
		permitted := tokens >= 1
		if permitted {
			tokens--
		} else {
			*refused++
		}
		mu.Unlock()
		if err := r.sleep(50 * time.Millisecond); err != nil || permitted {
			return nil, err
		}
		return refusal(retryAfter)
	}}, refused
}

// send makes a call that is not repeated if it may have been performed.
func send(ctx context.Context, c *payvault.Client) error {
	_, err := c.Webhooks.AddEvent(ctx, "W1", "E1")
	return err
}

// sendAll makes n calls at the same time.
func sendAll(t *testing.T, c *payvault.Client, n int) {
	t.Helper()
	service.Together(n, func() { assert.NoError(t, send(t.Context(), c)) })
}

// TestPaceOfBulkWork checks that bulk work comes close to a rate limit that it does not know, and that no batch fails.
func TestPaceOfBulkWork(t *testing.T) {
	t.Parallel()
	type test struct {
		rate, burst float64
		batches     int
		share       float64
	}
	tests := []test{
		{20, 20, 500, 0.9},
		{20, 20, 2000, 0.95},
		{200, 200, 2000, 0.85},
		{5, 5, 1000, 0.9},
		{200, 0, 2000, 0.5},
		{200, 5, 2000, 0.6},
		{20, 5, 2000, 0.9},
	}
	if testing.Short() {
		tests = tests[:1]
	}
	forEach(t, tests, func(t *testing.T, test test) {
		for _, retryAfter := range []string{"", "1"} {
			s, refused := limited(test.rate, test.burst, retryAfter)
			start := time.Now()
			for b := range s.submitAll(t, stream(100*test.batches, nil), atATime(32)) {
				require.NoError(t, b.Err)
			}
			share := (float64(test.batches) - test.burst) / test.rate / time.Since(start).Seconds()
			assert.GreaterOrEqual(t, share, test.share)
			assert.LessOrEqual(t, *refused, 12+test.batches/10, "12 of the first 32 are refused if 20 are permitted")
		}
	})
}

// TestPaceOfAWalk checks that a walk waits and repeats refused requests, however often they are refused.
func TestPaceOfAWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, refused := limited(20, 20, "")
		ids, err := walk(s.all(t, &payvault.ListOptions{Prefetch: 32}))
		require.NoError(t, err)
		assert.Equal(t, allIDs(0, 200), ids)
		assert.LessOrEqual(t, *refused, 30)

		_, err = walk(refusing(times(10, "")...).all(t, nil)) // one page, with more refusals than a call has attempts
		require.NoError(t, err)
	})
}

// TestPaceIsWaitedForByAWalk checks that a batch waits for its turn only if that can come before the context ends. No
// call is made while it waits.
func TestPaceIsWaitedForByAWalk(t *testing.T) {
	t.Parallel()
	forEach(t, []bool{false, true}, func(t *testing.T, journal bool) {
		calls := 0
		c := refusing(times(3, "")...).client(t, payvault.WithObserver(payvault.Observer{
			End: func(context.Context, payvault.CallInfo, payvault.CallResult) { calls++ },
		}))
		var o *payvault.SubmitAllOptions
		if journal {
			o = newJournal(t, nil).options(1)
		}
		_, err := c.AccountUpdater.Submit(t.Context(), []card{newCard(0)})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		got := collect(c.AccountUpdater.SubmitAll(ctx, stream(100, nil), o))
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0].Err, payvault.ErrRateLimited)
		assert.Equal(t, payvault.BatchNotSent, got[0].Status)
		assert.LessOrEqual(t, time.Since(start), 2*time.Second)
		assert.Equal(t, 1, calls)
	})
}

// TestPaceHoldsTheOperation checks that a refusal with Retry-After delays all calls of its operation and no other
// calls. A shorter Retry-After does not shorten the delay.
func TestPaceHoldsTheOperation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		less := refuses{time.Second, "1"}
		s := refusing(refuses{time.Millisecond, "20"}, less, less, less)
		c := s.client(t)
		go sendAll(t, c, 4)
		<-time.After(2 * time.Second)

		brief, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := send(brief, c)
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Equal(t, "rate_limited", payvault.CallResult{Err: err}.ErrorClass())
		e := service.AsError(t, err)
		assert.InDelta(t, 19, e.RetryAfter.Seconds(), 1)
		assert.Zero(t, e.Attempts)
		assert.True(t, payvault.SafeToRetry(err))
		_, err = c.AccountUpdater.Submit(brief, []card{newCard(0)})
		require.NoError(t, err, "another operation")
		assert.Equal(t, 2*time.Second, time.Since(s.start), "at once")

		<-time.After(time.Hour)
		require.Len(t, s.asked(), 9)
		for _, r := range s.asked()[5:] {
			assert.GreaterOrEqual(t, r.at, 20*time.Second)
		}
	})
}

// TestPaceBeyondTheCap checks that a walk stops sending if the service asks for a longer wait than the client accepts.
func TestPaceBeyondTheCap(t *testing.T) {
	t.Parallel()
	forEach(t, []payvault.RetryPolicy{{}, {IgnoreOverload: true}}, func(t *testing.T, policy payvault.RetryPolicy) {
		s := refusing(append(times(3, succeeds), times(2, "3600")...)...)
		c := s.client(t, payvault.WithRetryPolicy(policy))
		got := collect(c.AccountUpdater.SubmitAll(t.Context(), stream(1000, nil), atATime(1)))
		require.Len(t, got, 10)
		assert.Equal(t, batchesOf(300), got[:3])
		for _, b := range got[3:] {
			require.ErrorIs(t, b.Err, payvault.ErrRateLimited)
			assert.Equal(t, time.Hour, service.AsError(t, b.Err).RetryAfter)
			assert.True(t, payvault.SafeToRetry(b.Err))
		}
		assert.Len(t, s.seen, 4)
		_, err := c.AccountUpdater.Submit(t.Context(), []card{newCard(0)})
		require.ErrorIs(t, err, payvault.ErrRateLimited)
		assert.Len(t, s.seen, 5, "the hour does not delay the next call")
	})
}

// TestPaceEndsInShort checks that a batch that was not sent briefly names the refusal that ended the walk.
func TestPaceEndsInShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := refusing(refuses{time.Millisecond, "20"}, refuses{1100 * time.Microsecond, "Sat, 01 Jan 2000 01:00:00 GMT"})
		var texts []string
		for b := range s.submitAll(t, stream(300, nil), atATime(2)) {
			texts = append(texts, strings.TrimPrefix(b.Err.Error(), "payvault: account_updater.submit: "))
		}
		const why = "rate limited: another request was refused for 59m59.999s"
		require.Len(t, texts, 3)
		assert.ElementsMatch(t, []string{"status 429 Too Many Requests", why + " (not sent)"}, texts[:2])
		assert.Equal(t, why+" (not sent)", texts[2])
	})
}

// TestPaceOfABurst checks that one refusal does not make calls fail that can be sent in time, since the rate rises
// while they wait.
func TestPaceOfABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := refusing(times(1, "")...).client(t)
		sendAll(t, c, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		service.Together(100, func() { assert.NoError(t, send(ctx, c)) })
	})
}

// TestPaceOfOneAttempt checks that a caller who permits one attempt gets no other. A walk then ends with the first
// refusal.
func TestPaceOfOneAttempt(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1}, func(t *testing.T, attempts int) {
		opts := []payvault.CallOption{payvault.WithMaxAttempts(1)}
		s := refusing(times(9, "")...)
		c := s.client(t, payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: attempts}))
		got := collect(c.AccountUpdater.SubmitAll(t.Context(), stream(200, nil), atATime(1), opts[attempts:]...))
		assert.Len(t, s.seen, 1)
		require.ErrorIs(t, got[0].Err, payvault.ErrRateLimited)
		assert.EqualError(t, got[1].Err,
			"payvault: account_updater.submit: rate limited: another request was refused (not sent)")
	})
}

// TestPaceBeyondTheDeadline checks that no call waits for a turn that comes after its deadline: neither the refused
// call nor the next one.
func TestPaceBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"", "20"}, func(t *testing.T, retryAfter string) {
		s := refusing(times(100, retryAfter)...)
		c, start := s.client(t), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		for _, attempts := range []int{1, 0} {
			err := send(ctx, c)
			require.ErrorIs(t, err, payvault.ErrRateLimited)
			assert.True(t, payvault.SafeToRetry(err))
			assert.Equal(t, attempts, service.AsError(t, err).Attempts)
			assert.Zero(t, time.Since(start))
		}
	})
}

// TestPaceBeyondTheDeadlineOfAWalk checks that no batch waits for a turn that comes after the deadline, in a walk with
// a journal. There requests may outlive the context.
func TestPaceBeyondTheDeadlineOfAWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, start := refusing(times(1, "20")...), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := collect(s.client(t).AccountUpdater.SubmitAll(ctx, stream(1000, nil), newJournal(t, nil).options(2)))
		require.Len(t, got, 10)
		accepted := 0
		for _, b := range got {
			if b.Err == nil { // either of the first two batches may be refused
				accepted++
				continue
			}
			require.ErrorIs(t, b.Err, payvault.ErrRateLimited)
			assert.InDelta(t, 21, service.AsError(t, b.Err).RetryAfter.Seconds(), 1)
		}
		assert.Equal(t, len(s.seen)-1, accepted)
		assert.Zero(t, time.Since(start))
	})
}

// TestPaceOfAStoppedWalk checks that batches that wait for their turn or their key are not sent after the journal has
// failed. Their errors say why.
func TestPaceOfAStoppedWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fake{answer: func(r asked) (*http.Response, error) {
			if r.nth > 1 {
				return refusal("20")
			}
			return nil, r.sleep(time.Second)
		}}
		j := newJournal(t, nil)
		j.fail = func(step string, _ int) error { return map[string]error{"end": errDisk}[step] }
		var all []error
		for b := range s.submitAll(t, stream(800, nil), j.options(8)) {
			all = append(all, b.Err)
		}
		err := errors.Join(all...)
		require.ErrorIs(t, err, errDisk)
		assert.NotContains(t, err.Error(), "connection failed")
		assert.LessOrEqual(t, len(s.seen), 8)
	})
	synctest.Test(t, func(t *testing.T) { // The journal also fails while batches wait for their key.
		s, j, asked := &fake{}, newJournal(t, nil), atomic.Int32{}
		j.fail = func(step string, _ int) error { return map[string]error{"end": errDisk}[step] }
		slow := payvault.WithKeySource(func(context.Context) (string, error) {
			<-time.After(time.Duration(asked.Add(1)) * time.Second)
			return service.APIKey, nil
		})
		sent := 0 // the walk sends one batch, the first one that gets its key
		for b := range s.client(t, slow).AccountUpdater.SubmitAll(t.Context(), stream(800, nil), j.options(4)) {
			if b.Err == nil {
				sent++
			}
		}
		assert.Equal(t, []int{1, 1}, []int{sent, len(s.seen)})
	})
}

// TestBudget checks that all calls share one retry budget. When it is spent, calls fail after their first attempt, and
// the log says why.
func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fake{answer: func(asked) (*http.Response, error) {
			return service.Reply(http.StatusServiceUnavailable, ``), nil
		}}
		list := func(c *payvault.Client, n int) (requests int) {
			before := len(s.asked())
			for range n {
				_, _ = c.Customers.List(t.Context(), nil)
			}
			return len(s.asked()) - before
		}
		var log strings.Builder
		assert.Equal(t, 400+100, list(s.client(t, debug(&log)), 400))
		assert.Equal(t, 400-100/3, strings.Count(log.String(), " budget_spent=true"))
		c := s.client(t, payvault.WithRetryPolicy(payvault.RetryPolicy{IgnoreOverload: true}))
		assert.Equal(t, 400*4, list(c, 400))
	})
}

func debug(log *strings.Builder) payvault.Option {
	return payvault.WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// TestPaceInTheRecord checks that the log and the observer get the time that an attempt waited for the rate limit.
func TestPaceInTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var waited []time.Duration
		observer := payvault.Observer{Attempt: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) {
			waited = append(waited, r.Waited)
		}}
		sendAll(t, refusing(times(1, "20")...).client(t, debug(&log), payvault.WithObserver(observer)), 1)
		require.Len(t, waited, 2)
		assert.Zero(t, waited[0])
		assert.InDelta(t, 21, waited[1].Seconds(), 1)
		assert.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf(" waited=%v", waited[1])), log.String())
	})
}

// TestPaceAfterAnOutage checks that work continues within seconds after an outage, at slow services and at fast ones.
func TestPaceAfterAnOutage(t *testing.T) {
	t.Parallel()
	type test struct {
		rate     float64
		from, to time.Duration // the begin and the end of the outage
		batches  int
		atATime  int
		most     time.Duration
	}
	forEach(t, []test{
		{20, 10 * time.Second, 15 * time.Second, 400, 32, 40 * time.Second},
		{20, 20 * time.Second, 80 * time.Second, 600, 32, 115 * time.Second},
		{1e9, 0, time.Minute, 1000, 128, 110 * time.Second},
		{1, time.Minute, 2 * time.Minute, 120, 8, 230 * time.Second},
	}, func(t *testing.T, test test) {
		s, refused := limited(test.rate, test.rate, "")
		permits := s.answer
		s.answer = func(r asked) (*http.Response, error) {
			if r.at < test.from || r.at >= test.to {
				return permits(r)
			}
			<-time.After(50 * time.Millisecond)
			return refusal("")
		}
		for b := range s.submitAll(t, stream(100*test.batches, nil), atATime(test.atATime)) {
			require.NoError(t, b.Err)
		}
		assert.LessOrEqual(t, time.Since(s.start), test.most)
		assert.LessOrEqual(t, *refused, test.batches/5)
	})
}

// TestPaceBeyondWhatIsPermitted checks that, of too many calls, as many succeed as the rate permits. The others end
// with their context and may be repeated safely, except for those in flight at that moment.
func TestPaceBeyondWhatIsPermitted(t *testing.T) {
	t.Parallel()
	forEach(t, []float64{0.5, 2, 10}, func(t *testing.T, rate float64) {
		s, _ := limited(rate, rate, "")
		c := s.client(t)
		for range c.AccountUpdater.SubmitAll(t.Context(), stream(int(6000*rate), nil), atATime(8)) {
		}
		permitted := int64(50 * rate)
		var served, cutOff atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		service.Together(int(3*permitted), func() {
			switch _, err := c.AccountUpdater.Submit(ctx, []card{newCard(0)}); {
			case err == nil:
				served.Add(1)
			case errors.Is(err, payvault.ErrOutcomeUnknown):
				cutOff.Add(1)
			default:
				assert.True(t, payvault.SafeToRetry(err))
			}
		})
		assert.GreaterOrEqual(t, served.Load(), permitted*7/10)
		assert.LessOrEqual(t, cutOff.Load(), int64(2))
	})
}

// TestPaceAtItsLowest checks that a service that always refuses is asked every ten seconds, and that this spends no
// retry budget.
func TestPaceAtItsLowest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const refusals = 150
		s := refusing(times(refusals, "")...)
		assert.Equal(t, batchesOf(1), collect(s.submitAll(t, stream(1, nil), nil)))
		assert.Len(t, s.seen, refusals+1)
		average := time.Since(s.start).Seconds() / refusals
		assert.InDelta(t, 10.1, average, 0.48, "ten seconds with a jitter, after a few shorter waits")
	})
}

// TestPaceIgnored checks that with IgnoreOverload each call uses its own attempts, and that a walk continues after a
// refused batch.
func TestPaceIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const batches, attempts = 3, 4
		s := refusing(times(100, "20")...)
		c := s.client(t, payvault.WithRetryPolicy(payvault.RetryPolicy{IgnoreOverload: true}))
		for b := range c.AccountUpdater.SubmitAll(t.Context(), stream(batches*100, nil), nil) {
			assert.ErrorIs(t, b.Err, payvault.ErrRateLimited)
			assert.Equal(t, attempts, service.AsError(t, b.Err).Attempts)
		}
		assert.Len(t, s.seen, batches*attempts)
		assert.Equal(t, (attempts-1)*20*time.Second, time.Since(s.start), "the batches wait at the same time")
	})
}
