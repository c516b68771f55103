package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

type (
	card  = payvault.AccountUpdaterCard
	batch = payvault.AccountUpdaterBatch
)

// stream returns an iterator over n cards. The iterator calls before(i) before it yields card i, and before(n) at the
// end. The function may be nil.
func stream(n int, before func(i int)) iter.Seq2[card, error] {
	return func(yield func(card, error) bool) {
		for i := range n + 1 {
			if before != nil {
				before(i)
			}
			if i == n || !yield(newCard(i), nil) {
				return
			}
		}
	}
}

// breaksOff returns an iterator that yields n cards, and then an error. It calls before() just before the error.
func breaksOff(n int, err error, before func()) iter.Seq2[card, error] {
	return func(yield func(card, error) bool) {
		for _, c := range newCards(n) {
			if !yield(c, nil) {
				return
			}
		}
		before()
		yield(newCard(n), err) // SubmitAll must not use the card beside an error
	}
}

// newCards returns n cards, as stream yields them.
func newCards(n int) []card {
	cards := make([]card, n)
	for i := range cards {
		cards[i] = newCard(i)
	}
	return cards
}

func newCard(i int) card {
	return card{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CardID: strconv.Itoa(i)}
}

func atATime(n int) *payvault.SubmitAllOptions { return &payvault.SubmitAllOptions{Concurrency: n} }

func (s *fake) submitAll(
	t *testing.T, cards iter.Seq2[card, error], o *payvault.SubmitAllOptions, opts ...payvault.CallOption,
) iter.Seq2[*batch, error] {
	t.Helper()
	return s.client(t).AccountUpdater.SubmitAll(t.Context(), cards, o, opts...)
}

// assertSent checks that the service received each card of the given ranges once, and no other card. For each range,
// bounds has the position of the first card and the position after the last card.
func (s *fake) assertSent(t *testing.T, bounds ...int) {
	t.Helper()
	var want []int
	for bound := range slices.Chunk(bounds, 2) {
		for i := bound[0]; i < bound[1]; i++ {
			want = append(want, i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.cards)
	assert.True(t, slices.Equal(want, s.cards), "sent %v", s.cards)
}

// batchesOf returns the batches that SubmitAll yields for n cards if all batches are accepted.
func batchesOf(n int) []batch {
	batches := []batch{}
	for i := 0; i*100 < n; i++ {
		batches = append(batches, batch{
			Index: i, Start: i * 100, End: min(i*100+100, n), Status: payvault.BatchAccepted, RequestID: fmt.Sprint("REQ", i),
		})
	}
	return batches
}

// collect loops over the result of SubmitAll. It returns the batches, and the error of the last element, or nil.
func collect(seq iter.Seq2[*batch, error]) (batches []batch, stop error) {
	batches = []batch{}
	for b, err := range seq {
		if err != nil {
			return batches, err
		}
		batches = append(batches, *b)
		*b = batch{} // a caller may change a batch, so SubmitAll must not read it any more
	}
	return batches, nil
}

// complete returns the batches that SubmitAll yields. An error at the end of the walk fails the test.
func complete(t *testing.T, seq iter.Seq2[*batch, error]) []batch {
	t.Helper()
	batches, err := collect(seq)
	require.NoError(t, err)
	return batches
}

// assertStopped checks the last error of a walk, and returns it as a StopError. The error must have the given reason,
// match the given sentinels and no other, and not be safe to retry.
func assertStopped(t *testing.T, err error, reason payvault.StopReason, sentinels ...error) *payvault.StopError {
	t.Helper()
	stop, ok := errors.AsType[*payvault.StopError](err)
	require.True(t, ok, "%T: %v", err, err)
	assert.Equal(t, reason, stop.Reason)
	service.AssertMatches(t, err, sentinels...)
	assert.False(t, payvault.SafeToRetry(err), "a second walk without a journal would send all cards again")
	return stop
}

// assertLeftOut checks a batch that was read, and not sent because the walk had stopped. With a journal the error of
// the batch is not safe to retry, because an earlier run may have sent the batch.
func assertLeftOut(t *testing.T, b batch, hasJournal bool) {
	t.Helper()
	assert.Equal(t, payvault.BatchNotSent, b.Status)
	service.AssertMatches(t, b.Err, payvault.ErrStopped)
	assert.Equal(t, !hasJournal, payvault.SafeToRetry(b.Err))
}

// TestSubmitAll checks that SubmitAll yields all batches in order and sends each of them once, and that a second loop
// starts again. Changes of the options after the call have no effect.
func TestSubmitAll(t *testing.T) {
	t.Parallel()
	forEach(t, []int{-1, 0, 1, 3, math.MaxInt}, func(t *testing.T, concurrency int) {
		for _, n := range []int{0, 1, 100, 101, 1234} {
			var s fake
			options, opts := atATime(concurrency), append(make([]payvault.CallOption, 0, 4), payvault.WithMaxAttempts(2))
			if concurrency == 0 {
				options = nil
			}
			seq := s.submitAll(t, stream(n, nil), options, opts...)
			if opts[0] = payvault.WithMaxAttempts(-1); options != nil {
				options.Job = "changed"
			}
			synctest.Wait()
			assert.Empty(t, s.seen, "nothing is sent before it is ranged over")
			assert.Equal(t, batchesOf(n), complete(t, seq))
			s.assertSent(t, 0, n)
			service.Together(8, func() { assert.Equal(t, batchesOf(n), complete(t, seq)) })
		}
	})
}

// TestSubmitAllWithASlowBatch checks that the batches after a slow one are sent, until 2 × Concurrency - 1 batches have
// been sent but not yielded. At most Concurrency batches are in flight.
func TestSubmitAllWithASlowBatch(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1, 2, 4, 8}, func(t *testing.T, concurrency int) {
		s, j, taken, done := fake{gates: newGates(0)}, newJournal(t, nil), 0, make(chan []batch)
		seq := s.submitAll(t, stream(1950, func(i int) { taken = i }), j.options(concurrency))
		go func() { done <- complete(t, seq) }()
		concurrency = cmp.Or(concurrency, 4)
		synctest.Wait()
		assert.Len(t, j.known, concurrency)
		ahead := 2*concurrency - 1
		for ended := range ahead {
			if ended > 0 {
				close(s.gates[ended])
			}
			synctest.Wait()
			assert.EqualValues(t, min(concurrency, ahead-ended), s.flying.Load(), "each batch that ends makes room for another")
		}
		assert.Equal(t, (ahead+1)*100, taken)
		close(s.gates[0])
		for _, gate := range s.gates[ahead:] {
			close(gate)
		}
		assert.Equal(t, batchesOf(1950), <-done)
		s.assertSent(t, 0, 1950)
	})
}

// TestSubmitAllThatIsLeft checks that a break out of the loop cancels the requests that are in flight.
func TestSubmitAllThatIsLeft(t *testing.T) {
	t.Parallel()
	forEach(t, []int{3, 8}, func(t *testing.T, concurrency int) {
		s, taken := fake{gates: newGates(1)}, 0
		for _, err := range s.submitAll(t, stream(2000, func(i int) { taken = i }), atATime(concurrency)) {
			require.NoError(t, err)
			synctest.Wait() // requests of the next batches are in flight
			break
		}
		assert.Zero(t, s.flying.Load())
		assert.Zero(t, time.Since(s.start), "it does not wait for their answers")
		assert.Len(t, s.seen, 1+concurrency)
		assert.Less(t, taken, (1+2*concurrency)*100)
	})
}

// TestSubmitAllOfASlowStream checks a stream that pauses. A batch of 100 cards is sent as soon as the stream yields the
// card after it. Only then is the last card of the batch surely complete. If the context ends during the pause, the
// walk stops with reason StopContext, even if the stream then fails. A batch of 100 cards without a card after it is
// then yielded as not sent, and a smaller batch is not yielded.
func TestSubmitAllOfASlowStream(t *testing.T) {
	t.Parallel()
	type test struct {
		cards, sent int
		isLeft      bool // the caller leaves the loop after the batches that were sent
		fails       bool // the stream yields the error of the context
	}
	tests := []test{{250, 2, false, false}, {250, 2, true, false}, {201, 2, false, true}, {200, 1, false, false}}
	forEach(t, tests, func(t *testing.T, test test) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Hour, cancel)
		cards := func(yield func(card, error) bool) {
			stream(test.cards, nil)(yield)
			<-ctx.Done() // like a queue that has no cards at present
			if test.fails {
				yield(card{}, ctx.Err())
			}
		}
		s, start, got, stop := &fake{}, time.Now(), []batch{}, error(nil)
		for b, err := range s.client(t).AccountUpdater.SubmitAll(ctx, cards, atATime(1)) {
			if stop = err; err != nil {
				break
			}
			got = append(got, *b)
			if len(got) <= test.sent {
				assert.Equal(t, start, time.Now(), "the batch has waited for the stream")
			}
			if test.isLeft && len(got) == test.sent {
				cancel()
				break
			}
		}
		assert.Equal(t, batchesOf(100*test.sent), got[:test.sent])
		s.assertSent(t, 0, 100*test.sent)
		if test.isLeft {
			assert.Zero(t, time.Since(start))
			return
		}
		assert.Equal(t, time.Hour, time.Since(start))
		require.ErrorIs(t, assertStopped(t, stop, payvault.StopContext), context.Canceled)
		require.Len(t, got, test.cards/100)
		for _, b := range got[test.sent:] {
			assertLeftOut(t, b, false)
		}
	})
}

// TestSubmitAllWhoseStreamFails checks a stream of cards that ends with an error. The last card before the error may be
// incomplete, so its batch must not be sent, even if the batch has 100 cards. Requests in flight are completed. A later
// run with the same journal and all cards sends the rest, and nothing twice.
func TestSubmitAllWhoseStreamFails(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1, 99, 100, 101, 200, 250}, func(t *testing.T, n int) {
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, r.sleep(time.Second) }}
		j := newJournal(t, nil)
		got, err := collect(s.submitAll(t, breaksOff(n, errDisk, synctest.Wait), j.options(4)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopStream), errDisk)
		require.EqualError(t, err, "payvault: account_updater.submit: stream: disk full")
		sent := max(0, n-1) / 100
		s.assertSent(t, 0, 100*sent)
		assert.Len(t, j.known, sent, "what was not sent is not recorded")
		require.Len(t, got, n/100)
		assert.Equal(t, batchesOf(100*sent), got[:sent])
		for _, b := range got[sent:] {
			assert.Equal(t, []int{sent * 100, sent*100 + 100}, []int{b.Start, b.End})
			assertLeftOut(t, b, true)
		}
		assert.Equal(t, append(earlier(100*sent), batchesOf(350)[sent:]...), j.run(s, 350))
		s.assertSent(t, 0, 350)
	})
}

// TestSubmitAllThatStopsForAnErrorOfThisPackage checks a walk that stops because the stream or the journal returns an
// error of package payvault that is safe to retry. The last error of the walk must not be safe to retry, because the
// walk may have sent batches.
func TestSubmitAllThatStopsForAnErrorOfThisPackage(t *testing.T) {
	t.Parallel()
	unsent := &payvault.Error{Delivery: payvault.DeliveryNotSent}
	require.True(t, payvault.SafeToRetry(unsent))
	s, j := &fake{}, newJournal(t, nil)
	got, err := collect(s.submitAll(t, breaksOff(101, fmt.Errorf("part 7: %w", unsent), func() {}), nil))
	assertStopped(t, err, payvault.StopStream)
	require.ErrorContains(t, err, "stream: part 7: ")
	assert.Len(t, got, 1)
	j.fail = func(string, int) error { return unsent }
	_, err = collect(s.submitAll(t, stream(100, nil), j.options(1)))
	assertStopped(t, err, payvault.StopJournal)
}

// TestSubmitAllWithBatchesThatFail checks that SubmitAll goes on after a batch that the service refuses, and after a
// batch without a valid card. WithResponse must give the response of the batch that the loop is getting.
func TestSubmitAllWithBatchesThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fake{answer: gives(http.StatusConflict, `{"code":7}`, 1)}
		cards, want := newCards(850), batchesOf(850)
		for i := range cards[200:300] {
			cards[200+i].ExpDate = "1329"
		}
		var raw payvault.Response
		n := 0
		for b, err := range s.submitAll(t, payvault.Cards(cards...), nil, payvault.WithResponse(&raw)) {
			require.NoError(t, err)
			synctest.Wait() // the next batches have been answered by now
			n++
			switch b.Index {
			case 1:
				service.AssertMatches(t, b.Err, payvault.ErrConflict, payvault.ErrRejected)
				assert.Equal(t, `{"code":7}`, string(raw.Body))
			case 2:
				service.AssertInvalid(t, b.Err, payvault.OpAccountUpdaterSubmit, service.Fields{
					"data": {"has no card that can be sent"},
				})
				assert.Equal(t, payvault.Response{}, raw)
			default:
				assert.Equal(t, want[b.Index], *b)
				assert.Contains(t, string(raw.Body), `"`+b.RequestID+`"`)
				continue
			}
			status := map[int]payvault.BatchStatus{1: payvault.BatchRefused, 2: payvault.BatchNotSent}[b.Index]
			assert.Equal(t, batch{
				Index: b.Index, Start: b.Index * 100, End: b.Index*100 + 100, Invalid: b.Invalid, Status: status, Err: b.Err,
			}, *b)
		}
		assert.Len(t, want, n)
		s.assertSent(t, 0, 200, 300, 850)
	})
}

// TestSubmitAllWhoseContextEnds checks what SubmitAll without a journal yields when its context ends. A batch in flight
// is then of unknown outcome. A batch that is not yet in flight is not sent. The last error has the reason StopContext.
// The cause of the context is the error of another call, as in errgroup. No error of the walk matches this cause.
func TestSubmitAllWhoseContextEnds(t *testing.T) {
	t.Parallel()
	forEach(t, []int{1, 5}, func(t *testing.T, after int) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		s, sent, want := fake{gates: newGates(after)}, 0, batchesOf(1950)
		next, stop := 0, error(nil)
		for b, err := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), nil) {
			if stop = err; err != nil {
				break
			}
			assert.Equal(t, next, b.Index)
			if next++; next == after {
				synctest.Wait() // requests of the next batches are in flight
				sent = len(s.asked())
				cancel(&payvault.Error{StatusCode: http.StatusNotFound, Delivery: payvault.DeliveryNotSent})
			}
			switch {
			case b.Index < after:
				assert.Equal(t, want[b.Index], *b)
			case b.Index < sent:
				assert.Equal(t, payvault.BatchUnknown, b.Status)
				service.AssertMatches(t, b.Err, payvault.ErrOutcomeUnknown)
				require.ErrorIs(t, b.Err, context.Canceled)
			default:
				assertLeftOut(t, *b, false)
			}
			<-time.After(2 * time.Second)
		}
		require.ErrorIs(t, assertStopped(t, stop, payvault.StopContext), context.Canceled)
		assert.GreaterOrEqual(t, next, sent)
		s.assertSent(t, 0, sent*100)
	})
}

// TestSubmitAllMemory checks that SubmitAll keeps neither responses nor yielded batches in memory.
//
//nolint:paralleltest // it measures the memory of the process
func TestSubmitAllMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 { // a sync.Pool frees its objects only after two collections
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	synctest.Test(t, func(t *testing.T) {
		s := fake{answer: func(r asked) (*http.Response, error) {
			if r.n == 0 {
				<-time.After(2 * time.Hour)
			}
			padding := strings.Repeat(" ", max(0, 50-r.n)<<15)
			return service.Reply(http.StatusOK, `{"code":0,"data":{"request_id":"REQ"}}`+padding), nil
		}}
		before, seq := heap(), s.submitAll(t, stream(100_000, nil), atATime(16))
		time.AfterFunc(time.Hour, func() { // an hour later: a stopped timer may keep its call in memory
			assert.Len(t, s.asked(), 31)
			assert.Less(t, heap(), before+8<<20, "31 MB of answers have come")
		})
		for b, err := range seq {
			require.NoError(t, err)
			if require.NoError(t, b.Err); b.Index == 990 {
				assert.Less(t, heap(), before+8<<20, "of 99,000 cards")
			}
		}
	})
}

// TestSubmitAllOfALostService checks that SubmitAll stops after 10 batches of unknown outcome without a success between
// them, or after 2 × Concurrency such batches if that is more.
func TestSubmitAllOfALostService(t *testing.T) {
	t.Parallel()
	type test struct{ concurrency, most int }
	forEach(t, []test{{1, 10}, {4, 10}, {8, 16}}, func(t *testing.T, test test) {
		back := false
		s := fake{answer: func(r asked) (*http.Response, error) {
			if <-time.After(time.Millisecond); back && r.n%4 == 0 {
				return nil, nil
			}
			return service.Reply(http.StatusServiceUnavailable, ``), nil
		}}
		seq := s.submitAll(t, stream(4000, nil), atATime(test.concurrency))
		got, err := collect(seq)
		assertStopped(t, err, payvault.StopUnknown)
		require.EqualError(t, err, fmt.Sprintf(
			"payvault: account_updater.submit: unknown outcome: the last %d batches are of unknown outcome", test.most))
		sent := len(s.seen)
		assert.GreaterOrEqual(t, sent, test.most)
		assert.Less(t, sent, test.most+test.concurrency, "and those in flight")
		for _, b := range got {
			if wasSent := slices.Contains(s.numbers(), b.Index); wasSent {
				assert.ErrorIs(t, b.Err, payvault.ErrOutcomeUnknown)
			} else {
				assertLeftOut(t, b, false)
			}
		}
		back, s.cards = true, nil
		assert.Len(t, complete(t, seq), 40)
		s.assertSent(t, 0, 4000) // a success at every fourth batch keeps SubmitAll going
	})
}

// TestSubmitAllOfALostServiceWhoseContextEnds checks that requests that the end of ctx cuts off do not count towards
// StopUnknown. Eight batches get status 503, and the end of ctx cuts off eight more. All 16 are of unknown outcome, and
// 16 can stop this walk with StopUnknown. But the walk must stop with StopContext.
func TestSubmitAllOfALostServiceWhoseContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := fake{answer: func(r asked) (*http.Response, error) {
			if r.n < 8 {
				return service.Reply(http.StatusServiceUnavailable, ``), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		_, err := collect(s.client(t).AccountUpdater.SubmitAll(ctx, stream(4000, nil), atATime(8)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.DeadlineExceeded)
		assert.Len(t, s.seen, 16)
	})
}

// TestSubmitAllOfBatchesThatCannotBeSent checks that SubmitAll stops after 10 batches in a row that could not be sent,
// or after 2 × Concurrency such batches if that is more. Each batch is yielded as not sent. If the journal has a batch,
// its outcome there is also not sent.
func TestSubmitAllOfBatchesThatCannotBeSent(t *testing.T) {
	t.Parallel()
	type test struct {
		without           string
		concurrency, most int
	}
	forEach(t, []test{{"key", 1, 10}, {"key", 8, 16}, {"connection", 4, 10}}, func(t *testing.T, test test) {
		option := payvault.WithKeySource(func(context.Context) (string, error) { return "", errors.New("no key now") })
		if test.without == "connection" {
			option = service.Over(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("no route to the host")
			}})
		}
		s, j := &fake{}, newJournal(t, nil)
		c := s.client(t, option)
		got, err := collect(c.AccountUpdater.SubmitAll(t.Context(), stream(40_000, nil), j.options(test.concurrency)))
		assertStopped(t, err, payvault.StopNotSent)
		require.EqualError(t, err, fmt.Sprintf(
			"payvault: account_updater.submit: not sent: the last %d batches could not be sent", test.most))
		assert.Empty(t, s.seen)
		assert.GreaterOrEqual(t, len(got), test.most)
		assert.LessOrEqual(t, len(got), test.most+4*test.concurrency, "and those that were read meanwhile")
		for i, b := range got {
			assert.Equal(t, payvault.BatchNotSent, b.Status)
			if known := j.known[i]; known.Begun {
				assert.Equal(t, payvault.BatchNotSent, j.outcome(i).Status)
			}
		}
	})
}

// TestSubmitAllOfSomeBatchesThatCannotBeSent checks that batches that could not be sent do not stop SubmitAll if every
// fourth batch is accepted.
func TestSubmitAllOfSomeBatchesThatCannotBeSent(t *testing.T) {
	t.Parallel()
	calls := 0
	client := new(fake).client(t, payvault.WithKeySource(func(context.Context) (string, error) {
		if calls++; calls%4 == 0 {
			return "key", nil
		}
		return "", errors.New("no key now")
	}))
	once := payvault.WithMaxAttempts(1)
	got, err := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(4000, nil), atATime(1), once))
	require.NoError(t, err)
	assert.Len(t, got, 40)
	assert.Equal(t, payvault.BatchNotSent, got[0].Status)
}

// TestSubmitAllThatStopsTwice checks that the reason for the stop does not change if another batch in flight also gets
// an answer that stops a walk.
func TestSubmitAllThatStopsTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fake{answer: func(r asked) (*http.Response, error) {
			if r.n == 0 {
				return service.Reply(http.StatusUnauthorized, `{"code":1}`), r.sleep(time.Second)
			}
			return service.Reply(http.StatusBadRequest, ``), r.sleep(2 * time.Second)
		}}
		_, err := collect(s.submitAll(t, stream(4000, nil), atATime(2)))
		assertStopped(t, err, payvault.StopKey, payvault.ErrUnauthorized)
		assert.Len(t, s.seen, 2)
	})
}

// TestSubmitAllOfALostServiceWithoutAKey checks that SubmitAll stops after 10 batches of unknown outcome, even if
// two batches between each of them are not sent because the key source fails.
func TestSubmitAllOfALostServiceWithoutAKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fake{answer: func(asked) (*http.Response, error) {
			return service.Reply(http.StatusServiceUnavailable, ``), nil
		}}
		calls := 0
		client := s.client(t, payvault.WithKeySource(func(context.Context) (string, error) {
			if calls++; calls%3 == 0 {
				return "key", nil
			}
			return "", errors.New("no key now")
		}))
		once := payvault.WithMaxAttempts(1)
		_, err := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(4000, nil), atATime(1), once))
		assertStopped(t, err, payvault.StopUnknown)
		assert.Len(t, s.seen, 10)
	})
}

// TestSubmitAllOfInvalidArguments checks that SubmitAll with an invalid argument reads no card, and yields only the
// error. A second loop yields the same error. SubmitAll of a client made by ForMerchant also yields only an error.
func TestSubmitAllOfInvalidArguments(t *testing.T) {
	t.Parallel()
	known := newJournal(t, nil)
	j := known.options(1)
	for name, test := range map[string]struct {
		ctx  context.Context //nolint:containedctx // an argument of the walk
		o    payvault.SubmitAllOptions
		n    int // argument of WithMaxAttempts
		want string
	}{
		"context":         {nil, payvault.SubmitAllOptions{}, 1, "is nil"},
		"Job":             {t.Context(), payvault.SubmitAllOptions{Journal: j.Journal}, 1, "is required with a Journal"},
		"Journal":         {t.Context(), payvault.SubmitAllOptions{Job: j.Job}, 1, "is required with a Job"},
		"WithMaxAttempts": {t.Context(), *j, -1, "is not positive"},
		"cards":           {t.Context(), *j, 1, "is nil"},
	} {
		unread := stream(1, func(int) { assert.Fail(t, "the stream is read") })
		if name == "cards" {
			unread = nil
		}
		seq := new(fake).client(t).AccountUpdater.SubmitAll(test.ctx, unread, &test.o, payvault.WithMaxAttempts(test.n))
		for range 2 {
			got, err := collect(seq)
			assert.Empty(t, got)
			service.AssertInvalid(t, err, payvault.OpAccountUpdaterSubmit, service.Fields{name: {test.want}})
		}
	}
	assert.Empty(t, known.known)
	got, err := collect(new(fake).client(t).ForMerchant(7).AccountUpdater.SubmitAll(t.Context(), stream(250, nil), nil))
	assert.Empty(t, got)
	service.AssertMatches(t, err, payvault.ErrMerchantNotSupported)
}

// TestLoopsShareNoProblems checks SubmitAll and All with two invalid arguments. A second loop over the same iterator
// must report each problem only once.
func TestLoopsShareNoProblems(t *testing.T) {
	t.Parallel()
	var none context.Context
	c, once := new(fake).client(t), payvault.WithMaxAttempts(0)
	submit := c.AccountUpdater.SubmitAll(none, stream(1, nil), nil, once)
	list := c.Customers.All(none, nil, once)
	want := service.Fields{"context": {"is nil"}, "WithMaxAttempts": {"is not positive"}}
	for range 2 {
		_, err := collect(submit)
		service.AssertInvalid(t, err, payvault.OpAccountUpdaterSubmit, want)
		_, err = walk(list)
		service.AssertInvalid(t, err, payvault.OpCustomersList, want)
	}
}

// TestStopReason_Passes checks after which reasons a program may start a job again by itself.
func TestStopReason_Passes(t *testing.T) {
	t.Parallel()
	for reason, want := range map[payvault.StopReason]bool{
		payvault.StopJournal:    true,
		payvault.StopRateLimit:  true,
		payvault.StopNotSent:    true,
		payvault.StopContext:    false,
		payvault.StopStream:     false,
		payvault.StopOtherCards: false,
		payvault.StopKey:        false,
		payvault.StopNoCode:     false,
		payvault.StopUnknown:    false, // each run adds more batches of unknown outcome
	} {
		assert.Equal(t, want, reason.Passes(), reason)
	}
}

// TestSubmitAllOfAnswersToAllBatches checks that SubmitAll stops after an answer that every batch would get: a refusal
// of the key, or a refusal without a code of the service. After a 403 without a code, the batch is of unknown outcome.
// SubmitAll goes on after a status 400 with a code.
func TestSubmitAllOfAnswersToAllBatches(t *testing.T) {
	t.Parallel()
	type test struct {
		status int
		body   string
		reason payvault.StopReason // "" if all batches are sent
		text   string              // text of the last error
		match  []error
	}
	const refused = "a request was refused with status "
	noCode := func(status int, body string) test {
		text := fmt.Sprintf("no code: %s%d and no code of the service", refused, status)
		return test{status, body, payvault.StopNoCode, text, nil}
	}
	forEach(t, []test{
		{401, `{"code":1}`, payvault.StopKey, "key: unauthorized: " + refused + "401", []error{payvault.ErrUnauthorized}},
		{401, ``, payvault.StopKey, "key: unauthorized: " + refused + "401", []error{payvault.ErrUnauthorized}},
		{403, `{"code":1}`, payvault.StopKey, "key: forbidden: " + refused + "403", []error{payvault.ErrForbidden}},
		noCode(403, `<h1>Blocked</h1>`), noCode(403, `{"code":0}`),
		noCode(404, `<h1>Not Found</h1>`),
		noCode(400, `{"error":"Invalid","error":"host"}`), // a complete body, although a name is repeated
		noCode(400, "{\"error\":\"ung\xfcltig\"}"),        // a complete body, in Latin-1
		noCode(400, ``), // an empty body: a code may have been lost
		{400, `{"code":2,"message":"Invalid"}`, "", "", nil},
	}, func(t *testing.T, test test) {
		s := &fake{answer: func(asked) (*http.Response, error) {
			reply := service.Reply(test.status, test.body)
			if strings.HasPrefix(test.body, "<") {
				reply.Header.Set("Content-Type", "text/html")
			}
			return reply, nil
		}}
		got, err := collect(s.submitAll(t, stream(1950, nil), nil))
		sent := s.numbers()
		if test.reason == "" {
			require.NoError(t, err)
			assert.Len(t, sent, 20)
		} else {
			assertStopped(t, err, test.reason, test.match...)
			require.EqualError(t, err, "payvault: account_updater.submit: "+test.text)
			assert.LessOrEqual(t, len(sent), 4)
		}
		mayHaveLostCode := test.status == http.StatusBadRequest && test.body == ""
		mayBePerformed := test.status == http.StatusForbidden && test.reason == payvault.StopNoCode
		for i, b := range got {
			if slices.Contains(sent, i) {
				assert.Equal(t, test.status, service.AsError(t, b.Err).StatusCode)
				isSentAgain := test.reason != "" && !mayHaveLostCode && !mayBePerformed
				assert.Equal(t, isSentAgain, b.Status == payvault.BatchNotSent)
				assert.Equal(t, mayBePerformed, b.Status == payvault.BatchUnknown)
			} else {
				assertLeftOut(t, b, false)
			}
		}
	})
}

// TestSubmitAllOfAnswersThatProveNothing checks refusals that do not prove that the batch was not performed: a 408, and
// a status 4xx with a body that is cut off, so that its code may be missing. A later run must not send the batch again,
// so the status of the batch is BatchRefused.
func TestSubmitAllOfAnswersThatProveNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		body   func(w http.ResponseWriter)
		sent   int // how many of the three batches are sent
	}{
		"a body that is cut off": {451, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9")
			service.Say(w, 451, `<html`)
		}, 1},
		"half an object, with its length": {451, func(w http.ResponseWriter) { service.Say(w, 451, ` {"co`) }, 1},
		"408":                             {408, func(w http.ResponseWriter) { service.Say(w, 408, "") }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pool := service.Pipe(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Connection", "close") // a 408 on a reused connection means an unknown outcome
					test.body(w)
				})
				client, err := payvault.NewClient("http://127.0.0.1:1", service.APIKey, payvault.WithHTTPClient(pool))
				require.NoError(t, err)
				got, err := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(300, nil), atATime(1)))
				assert.Equal(t, test.sent < 3, err != nil)
				for i, b := range got {
					want := payvault.BatchNotSent
					if i < test.sent {
						want = payvault.BatchRefused
						assert.Equal(t, test.status, service.AsError(t, b.Err).StatusCode)
					}
					assert.Equal(t, want, b.Status, "batch %d", i)
				}
			})
		})
	}
}

// TestSubmitAllThatPanics checks that a panic of the stream, the RoundTripper or the journal comes out of the caller's
// loop, after all earlier batches. A later run must yield an error for each batch that was begun but not ended, and for
// no other batch.
func TestSubmitAllThatPanics(t *testing.T) {
	t.Parallel()
	const yielded, concurrency = 2, 3
	forEach(t, []string{"stream", "transport", "begin", "end"}, func(t *testing.T, place string) {
		j, got := newJournal(t, nil), []batch{}
		j.fail = func(step string, i int) error {
			if step == place && i == yielded {
				panic("broken")
			}
			return nil
		}
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, j.fail("transport", r.n) }}
		cards := stream(1950, func(i int) { _ = j.fail("stream", (i-1)/100) }) // after the first card of a batch
		assert.PanicsWithValue(t, "broken", func() {
			for b, err := range s.submitAll(t, cards, j.options(concurrency)) {
				require.NoError(t, err)
				got = append(got, *b)
			}
		})
		assert.Equal(t, batchesOf(100*yielded), got)
		assert.LessOrEqual(t, len(s.seen), yielded+2*concurrency, "those that were read")
		if place == "transport" || place == "end" {
			assert.Equal(t, payvault.BatchState{Begun: true}, j.known[yielded])
		} else {
			assert.NotContains(t, j.known, yielded)
		}

		j.fail, s.answer = func(string, int) error { return nil }, nil // no failure is injected into the later run
		for _, b := range j.run(s, 1950) {
			wasLost := j.known[b.Index].Outcome == nil
			assert.Equal(t, wasLost, b.Err != nil)
		}
	})
}
