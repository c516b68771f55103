package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
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
func stream(n int, before func(i int)) iter.Seq[card] {
	return func(yield func(card) bool) {
		for i := range n + 1 {
			if before != nil {
				before(i)
			}
			if i == n || !yield(newCard(i)) {
				return
			}
		}
	}
}

func newCard(i int) card {
	return card{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CardID: strconv.Itoa(i)}
}

func atATime(n int) *payvault.SubmitAllOptions { return &payvault.SubmitAllOptions{Concurrency: n} }

func (s *fake) submitAll(t *testing.T, cards iter.Seq[card], o *payvault.SubmitAllOptions, opts ...payvault.CallOption,
) iter.Seq[*batch] {
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

func collect(seq iter.Seq[*batch]) []batch {
	batches := []batch{}
	for b := range seq {
		batches = append(batches, *b)
		*b = batch{} // a caller may change a batch, so SubmitAll must not read it any more
	}
	return batches
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
			assert.Equal(t, batchesOf(n), collect(seq))
			s.assertSent(t, 0, n)
			service.Together(8, func() { assert.Equal(t, batchesOf(n), collect(seq)) })
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
		go func() { done <- collect(seq) }()
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
		assert.Equal(t, (ahead+1)*100-1, taken)
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
		for range s.submitAll(t, stream(2000, func(i int) { taken = i }), atATime(concurrency)) {
			synctest.Wait() // requests of the next batches are in flight
			break
		}
		assert.Zero(t, s.flying.Load())
		assert.Zero(t, time.Since(s.start), "it does not wait for their answers")
		assert.Len(t, s.seen, 1+concurrency)
		assert.Less(t, taken, (1+2*concurrency)*100)
	})
}

// TestSubmitAllOfASlowStream checks that the complete batches before a pause of the stream are sent and yielded without
// delay. If the context ends during the pause, the last batch, which is incomplete, is reported as not sent.
func TestSubmitAllOfASlowStream(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"goes on to the end", "is left"}, func(t *testing.T, how string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Hour, cancel)
		cards := func(yield func(card) bool) {
			stream(250, nil)(yield)
			<-ctx.Done() // like a queue that has no cards at present
		}
		s, start, got := &fake{}, time.Now(), []batch{}
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, cards, atATime(1)) {
			if got = append(got, *b); how == "is left" && len(got) == 2 {
				cancel()
				break
			}
			if len(got) < 3 {
				assert.Equal(t, start, time.Now(), "the batch has waited for the stream")
			}
		}
		assert.Equal(t, batchesOf(200), got[:2])
		s.assertSent(t, 0, 200)
		if how == "is left" {
			assert.Zero(t, time.Since(start))
			return
		}
		assert.Equal(t, time.Hour, time.Since(start))
		require.Len(t, got, 3)
		require.ErrorIs(t, got[2].Err, context.Canceled)
		assert.Equal(t, batch{Index: 2, Start: 200, End: 250, Status: payvault.BatchNotSent, Err: got[2].Err}, got[2])
	})
}

// TestSubmitAllWhoseStreamFails checks a stream of cards that cancels the context because it cannot read all cards. The
// last batch may lack cards, so it must be neither sent nor recorded in the journal. Its error must contain the cause
// of the context.
func TestSubmitAllWhoseStreamFails(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 200, 250}, func(t *testing.T, n int) {
		ctx, cancel := context.WithCancelCause(t.Context())
		j := newJournal(t, nil)
		got := collect(new(fake).client(t).AccountUpdater.SubmitAll(ctx, stream(n, func(i int) {
			if i == n {
				synctest.Wait()
				cancel(errDisk)
			}
		}), j.options(4)))
		whole := n / 100
		assert.Len(t, j.known, whole, "the end is not recorded")
		require.Len(t, got, whole+1)
		require.ErrorContains(t, got[whole].Err, errDisk.Error())
		got[whole].Err = nil
		assert.Equal(t, append(batchesOf(whole*100), batch{
			Index: whole, Start: whole * 100, End: n, Status: payvault.BatchNotSent,
		}), got)
	})
}

// TestSubmitAllWithBatchesThatFail checks that SubmitAll goes on after a batch that the service refuses, and after a
// batch without a valid card. WithResponse must give the response of the batch that the loop is getting.
func TestSubmitAllWithBatchesThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fake{answer: gives(http.StatusConflict, `{"code":7}`, 1)}
		cards, want := slices.Collect(stream(850, nil)), batchesOf(850)
		for i := range cards[200:300] {
			cards[200+i].ExpDate = "1329"
		}
		var raw payvault.Response
		n := 0
		for b := range s.submitAll(t, slices.Values(cards), nil, payvault.WithResponse(&raw)) {
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

// TestSubmitAllWhoseContextEnds checks that SubmitAll without a journal yields every batch even if its context ends. A
// batch that is in flight at that time has the status BatchUnknown, and a later batch has the status BatchNotSent.
func TestSubmitAllWhoseContextEnds(t *testing.T) {
	t.Parallel()
	forEach(t, []int{1, 5}, func(t *testing.T, after int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, sent, want := fake{gates: newGates(after)}, 0, batchesOf(1950)
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), nil) {
			if b.Index+1 == after {
				synctest.Wait() // requests of the next batches are in flight
				sent = len(s.asked())
				cancel()
			}
			if b.Index >= after {
				require.ErrorIs(t, b.Err, context.Canceled)
				assert.Equal(t, b.Index < sent, errors.Is(b.Err, payvault.ErrOutcomeUnknown))
				assert.Equal(t, b.Index >= sent, payvault.SafeToRetry(b.Err))
				want[b.Index].RequestID, want[b.Index].Status, b.Err = "", payvault.BatchNotSent, nil
				if b.Index < sent {
					want[b.Index].Status = payvault.BatchUnknown
				}
			}
			assert.Equal(t, want[b.Index], *b)
			<-time.After(2 * time.Second)
		}
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
		for b := range seq {
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
		got := collect(seq)
		require.Len(t, got, 40)
		sent := len(s.seen)
		assert.GreaterOrEqual(t, sent, test.most)
		assert.Less(t, sent, test.most+test.concurrency, "and those in flight")
		for _, b := range got {
			if wasSent := slices.Contains(s.numbers(), b.Index); wasSent {
				assert.ErrorIs(t, b.Err, payvault.ErrOutcomeUnknown)
			} else {
				require.ErrorContains(t, b.Err, fmt.Sprintf(
					"the last %d batches that were sent are of unknown outcome (not sent)", test.most))
				assert.True(t, payvault.SafeToRetry(b.Err))
			}
		}
		back, s.cards = true, nil
		collect(seq)
		s.assertSent(t, 0, 4000) // a success at every fourth batch keeps SubmitAll going
	})
}

// TestSubmitAllOfALostServiceWithoutAKey checks that SubmitAll stops after 10 batches of unknown outcome, even if
// batches between them are not sent because the key source fails.
func TestSubmitAllOfALostServiceWithoutAKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fake{answer: func(asked) (*http.Response, error) {
			return service.Reply(http.StatusServiceUnavailable, ``), nil
		}}
		calls := 0
		client := s.client(t, payvault.WithKeySource(func(context.Context) (string, error) {
			if calls++; calls%3 == 0 {
				return "", errors.New("no key now")
			}
			return "key", nil
		}))
		got := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(4000, nil), atATime(1)))
		assert.Len(t, got, 40)
		assert.Len(t, s.seen, 10)
	})
}

// TestSubmitAllOfInvalidArguments checks that SubmitAll with an invalid argument reads no card, and yields one batch
// with the error.
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
			got := collect(seq)
			require.Len(t, got, 1)
			service.AssertInvalid(t, got[0].Err, payvault.OpAccountUpdaterSubmit, service.Fields{name: {test.want}})
		}
	}
	assert.Empty(t, known.known)
	got := collect(new(fake).client(t).ForMerchant(7).AccountUpdater.SubmitAll(t.Context(), stream(250, nil), nil))
	require.Len(t, got, 1)
	service.AssertMatches(t, got[0].Err, payvault.ErrMerchantNotSupported)
}

// TestSubmitAllOfAnswersToAllBatches checks that SubmitAll stops after an answer that every batch would get: a refusal
// of the key, or a refusal without a code of the service. SubmitAll goes on after a status 400 with a code.
func TestSubmitAllOfAnswersToAllBatches(t *testing.T) {
	t.Parallel()
	type test struct {
		status int
		body   string
		match  error  // sentinel that the errors of unsent batches match; nil means none
		text   string // text of the errors of unsent batches; "" if all are sent
	}
	const none = "a request was refused with status 400 and no code of the service"
	forEach(t, []test{
		{401, `{"code":1}`, payvault.ErrUnauthorized, "unauthorized: a request was refused"},
		{403, ``, payvault.ErrForbidden, "forbidden: a request was refused"},
		{404, `<h1>Not Found</h1>`, nil, "a request was refused with status 404 and no code of the service"},
		{400, `{"error":"Invalid","error":"host"}`, nil, none}, // a complete body, although a name is repeated
		{400, "{\"error\":\"ung\xfcltig\"}", nil, none},        // a complete body, in Latin-1
		{400, ``, nil, none}, // an empty body: a code may have been lost
		{400, `{"code":2,"message":"Invalid"}`, nil, ""},
	}, func(t *testing.T, test test) {
		s := fake{answer: func(asked) (*http.Response, error) { return service.Reply(test.status, test.body), nil }}
		got := collect(s.submitAll(t, stream(1950, nil), nil))
		require.Len(t, got, 20)
		sent := s.numbers()
		if test.text == "" {
			assert.Len(t, sent, 20)
		} else {
			assert.LessOrEqual(t, len(sent), 4)
		}
		for i, b := range got {
			if slices.Contains(sent, i) {
				assert.Equal(t, test.status, service.AsError(t, b.Err).StatusCode)
				isSentAgain := test.text != "" && (test.body != "" || test.match != nil)
				assert.Equal(t, isSentAgain, b.Status == payvault.BatchNotSent)
				continue
			}
			assert.Equal(t, payvault.BatchNotSent, b.Status)
			assert.True(t, payvault.SafeToRetry(b.Err))
			// the text also says "the walk was stopped" if the batch had begun and not been sent
			require.ErrorContains(t, b.Err, test.text+" (not sent)")
			if test.match != nil {
				require.ErrorIs(t, b.Err, test.match)
			}
			assert.NotErrorIs(t, b.Err, payvault.ErrNotFound, "the status is that of another batch")
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
				got := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(300, nil), atATime(1)))
				require.Len(t, got, 3)
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
		cards := stream(1950, func(i int) { _ = j.fail("stream", i/100) })
		assert.PanicsWithValue(t, "broken", func() {
			for b := range s.submitAll(t, cards, j.options(concurrency)) {
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
