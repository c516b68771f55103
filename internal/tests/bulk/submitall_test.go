package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
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

// stream gives n cards. It calls before, if there is one, with the position of each, and with n before it ends.
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

// assertSent wants the cards from one position up to another, or several such ranges, to have come once.
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

// batchesOf are the batches of n cards, all of them accepted.
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
	}
	return batches
}

// TestSubmitAll: each walk starts from the beginning, whatever becomes of the options after the call.
func TestSubmitAll(t *testing.T) {
	t.Parallel()
	forEach(t, []int{-1, 0, 1, 3, 50, math.MaxInt}, func(t *testing.T, concurrency int) {
		for _, n := range []int{0, 1, 99, 100, 101, 200, 250, 1234} {
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

// TestSubmitAllWithASlowBatch: it begins, sends and reads on, up to a bound each.
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

// TestSubmitAllThatIsLeft cuts off what is in flight.
func TestSubmitAllThatIsLeft(t *testing.T) {
	t.Parallel()
	forEach(t, []int{3, 8}, func(t *testing.T, concurrency int) {
		s, taken := fake{gates: newGates(1)}, 0
		for range s.submitAll(t, stream(2000, func(i int) { taken = i }), atATime(concurrency)) {
			synctest.Wait() // those behind it are in flight
			break
		}
		assert.Zero(t, s.flying.Load())
		assert.Zero(t, time.Since(s.start), "it does not wait for their answers")
		assert.Len(t, s.seen, 1+concurrency)
		assert.Less(t, taken, (1+2*concurrency)*100)
	})
}

// TestSubmitAllOfASlowStream: it holds up no batch that was read, and the walk is over when it ends with its context.
func TestSubmitAllOfASlowStream(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"stays", "is left"}, func(t *testing.T, how string) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		cards := func(yield func(card) bool) {
			for i := range 250 {
				if !yield(newCard(i)) {
					return
				}
			}
			<-ctx.Done() // as a queue without further cards
		}
		s, start, got := &fake{}, time.Now(), []batch{}
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, cards, atATime(1)) {
			if got = append(got, *b); len(got) < 3 {
				assert.Equal(t, start, time.Now(), "it does not wait for the stream")
			}
			if how == "is left" && len(got) == 2 {
				cancel()
				break
			}
		}
		assert.Equal(t, batchesOf(200), got[:2])
		s.assertSent(t, 0, 200)
		if how == "stays" {
			assert.Equal(t, time.Hour, time.Since(start))
			require.Len(t, got, 3)
			require.ErrorIs(t, got[2].Err, context.Canceled)
			assert.Equal(t, batch{Index: 2, Start: 200, End: 250, Status: payvault.BatchNotSent, Err: got[2].Err}, got[2])
		} else {
			assert.Zero(t, time.Since(start))
		}
	})
}

// TestSubmitAllWhoseStreamFails: it ends the context, so that what it has given is not taken for all there is.
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

// TestSubmitAllWithBatchesThatFail goes on with the others. The response is that of the batch in use.
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
			synctest.Wait() // later batches have been answered
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

// TestSubmitAllWhoseContextEnds still yields every batch, however long the loop takes for each.
func TestSubmitAllWhoseContextEnds(t *testing.T) {
	t.Parallel()
	forEach(t, []int{1, 5}, func(t *testing.T, after int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, sent, want := fake{gates: newGates(after)}, 0, batchesOf(1950)
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), nil) {
			if b.Index+1 == after {
				synctest.Wait() // the next ones are in flight
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

// TestSubmitAllMemory: neither what has been yielded is kept, nor the answers of what has not.
//
//nolint:paralleltest // it measures the memory of the process
func TestSubmitAllMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 { // pools keep theirs for two
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
		time.AfterFunc(time.Hour, func() { // until then timers that were stopped may keep their calls
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

// TestSubmitAllOfALostService: when nothing but unknown outcomes comes, the walk ends before all batches have one.
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
					"the last %d batches are of unknown outcome (not sent)", test.most))
				assert.True(t, payvault.SafeToRetry(b.Err))
			}
		}
		back, s.cards = true, nil
		collect(seq)
		s.assertSent(t, 0, 4000) // an answer now and then is enough
	})
}

// TestSubmitAllOfInvalidArguments: they are refused once, and nothing is read. No stream is not one without cards.
func TestSubmitAllOfInvalidArguments(t *testing.T) {
	t.Parallel()
	known := newJournal(t, nil)
	j := known.options(1)
	for name, test := range map[string]struct {
		ctx  context.Context //nolint:containedctx // an argument
		o    payvault.SubmitAllOptions
		n    int // attempts
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

// TestSubmitAllOfAnswersToAllBatches: a key that the service does not take, or a wrong base URL, is not tried on a
// million cards. A refusal with a code is about its batch.
func TestSubmitAllOfAnswersToAllBatches(t *testing.T) {
	t.Parallel()
	type test struct {
		status int
		body   string
		match  error  // of the batches that were not sent; nil for none
		text   string // of these; "" if all batches are sent
	}
	const none = "another request was refused with status 400 and no code of the service"
	forEach(t, []test{
		{401, ``, payvault.ErrUnauthorized, "unauthorized: another request was refused"},
		{401, `{"code":1}`, payvault.ErrUnauthorized, "unauthorized: another request was refused"},
		{403, ``, payvault.ErrForbidden, "forbidden: another request was refused"},
		{404, `<h1>Not Found</h1>`, nil, "another request was refused with status 404 and no code of the service"},
		{400, `{"error":"Invalid","error":"host"}`, nil, none}, // whole, though the name comes twice
		{400, "{\"error\":\"ung\xfcltig\"}", nil, none},        // whole, in Latin-1
		{400, ``, nil, none}, // which may have been lost, with its code
		{400, ` `, nil, none},
		{404, `{"code":7}`, nil, ""},
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
			require.EqualError(t, b.Err, "payvault: account_updater.submit: "+test.text+" (not sent)")
			if test.match != nil {
				require.ErrorIs(t, b.Err, test.match)
			}
			for _, other := range []error{payvault.ErrNotFound, payvault.ErrInvalidRequest, payvault.ErrRejected} {
				assert.NotErrorIs(t, b.Err, other)
			}
		}
	})
}

// TestSubmitAllOfACutAnswer: the service may have given a code in what was lost. So the batch is not sent again.
func TestSubmitAllOfACutAnswer(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"cut off":               io.MultiReader(strings.NewReader(`{"co`), iotest.ErrReader(io.ErrUnexpectedEOF)),
		"half, with its length": strings.NewReader(` {"co`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fake{answer: func(asked) (*http.Response, error) {
				answer := service.Reply(http.StatusUnavailableForLegalReasons, "")
				answer.Body = io.NopCloser(body)
				return answer, nil
			}}
			got := collect(s.submitAll(t, stream(300, nil), atATime(1)))
			require.Len(t, got, 3)
			assert.Equal(t, payvault.BatchRefused, got[0].Status)
			assert.Equal(t, payvault.BatchNotSent, got[1].Status)
			assert.Equal(t, []int{0}, s.numbers())
		})
	}
}

// TestSubmitAllOfATimeoutOfTheService: with status 408 a service may give up what it was at work on. That is no proof
// that the batch was not performed.
func TestSubmitAllOfATimeoutOfTheService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := service.Pipe(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Connection", "close")
			service.Say(w, http.StatusRequestTimeout, "")
		})
		client, err := payvault.NewClient("http://127.0.0.1:1", service.APIKey, payvault.WithHTTPClient(pool))
		require.NoError(t, err)
		got := collect(client.AccountUpdater.SubmitAll(t.Context(), stream(300, nil), atATime(1)))
		require.Len(t, got, 3)
		for _, b := range got {
			assert.Equal(t, http.StatusRequestTimeout, service.AsError(t, b.Err).StatusCode)
			assert.Equal(t, payvault.BatchRefused, b.Status)
		}
	})
}

// TestSubmitAllOfBrokenCode: a panic of the caller's own code in a goroutine comes to the loop, after the batches
// before it. Nothing more is sent, and what was begun is not forgotten.
func TestSubmitAllOfBrokenCode(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"stream", "transport", "begin", "end"}, func(t *testing.T, place string) {
		j, got := newJournal(t, nil), []batch{}
		j.fail = func(step string, i int) error {
			if step == place && i == 2 {
				panic("broken")
			}
			return nil
		}
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, j.fail("transport", r.n) }}
		cards := stream(1950, func(i int) { _ = j.fail("stream", i/100) })
		assert.PanicsWithValue(t, "broken", func() {
			for b := range s.submitAll(t, cards, j.options(3)) {
				got = append(got, *b)
			}
		})
		assert.Equal(t, batchesOf(200), got)
		assert.LessOrEqual(t, len(s.seen), 2+2*3, "those that were read")
		if place == "transport" || place == "end" {
			assert.Equal(t, payvault.BatchState{Begun: true}, j.known[2])
		} else {
			assert.NotContains(t, j.known, 2)
		}
		j.fail = func(string, int) error { return nil }
		s.answer = nil
		s.cards = nil
		for _, b := range j.run(s, 1950) {
			assert.Equal(t, j.known[b.Index].Outcome == nil, b.Err != nil)
		}
	})
}

// TestSubmitAllOfBrokenCodeThatIsLeft: a panic is not lost when nobody waits for its batch any more.
func TestSubmitAllOfBrokenCodeThatIsLeft(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"stream", "transport"}, func(t *testing.T, place string) {
		s := &fake{answer: func(r asked) (*http.Response, error) {
			if place == "transport" && r.n == 1 {
				panic("broken")
			}
			return nil, nil
		}}
		cards := func(yield func(card) bool) {
			stream(2000, nil)(yield)
			if place == "stream" {
				panic("broken")
			}
		}
		assert.PanicsWithValue(t, "broken", func() {
			for range s.submitAll(t, cards, atATime(2)) {
				synctest.Wait()
				break
			}
		})
	})
}

const job = "cards of November"

var errDisk = errors.New("disk full")

// state is what a journal knows.
type state = map[int]payvault.BatchState

// journal keeps what it is told in memory.
type journal struct {
	t    *testing.T
	fail func(step string, i int) error
	hang bool // with all batches but the first

	mu    sync.Mutex
	known state
}

func newJournal(t *testing.T, known state) *journal {
	t.Helper()
	j := &journal{t: t, known: state{}, fail: func(string, int) error { return nil }}
	maps.Copy(j.known, known)
	return j
}

func (j *journal) Begin(ctx context.Context, name string, i int) (payvault.BatchState, error) {
	if j.hang && i > 0 {
		<-ctx.Done()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.Equal(j.t, job, name)
	if err := cmp.Or(ctx.Err(), j.fail("begin", i)); err != nil {
		return payvault.BatchState{}, err
	}
	known := j.known[i]
	if known.Outcome != nil && known.Outcome.Status == payvault.BatchNotSent {
		known = payvault.BatchState{}
	}
	if !known.Begun {
		j.known[i] = payvault.BatchState{Begun: true}
	}
	return known, nil
}

func (j *journal) End(ctx context.Context, name string, i int, outcome payvault.BatchOutcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.Equal(j.t, job, name)
	if err := cmp.Or(ctx.Err(), j.fail("end", i)); err != nil {
		return err
	}
	j.known[i] = payvault.BatchState{Begun: true, Outcome: &outcome}
	return nil
}

func (j *journal) options(concurrency int) *payvault.SubmitAllOptions {
	return &payvault.SubmitAllOptions{Concurrency: concurrency, Journal: j, Job: job}
}

// outcome returns what the journal knows of a batch that has ended.
func (j *journal) outcome(i int) payvault.BatchOutcome {
	j.t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	require.NotNil(j.t, j.known[i].Outcome, "batch %d is not recorded as ended", i)
	return *j.known[i].Outcome
}

// run does the job over n cards.
func (j *journal) run(s *fake, n int) []batch {
	return collect(s.submitAll(j.t, stream(n, nil), j.options(3)))
}

// earlier are the batches of n cards, as a later run yields them.
func earlier(n int) []batch {
	batches := batchesOf(n)
	for i := range batches {
		batches[i].FromJournal = true
	}
	return batches
}

// TestJournal: each batch is recorded when it is sent, decided when it is yielded, and never sent again.
func TestJournal(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1, 100, 1950}, func(t *testing.T, n int) {
		j := newJournal(t, nil)
		s := &fake{answer: func(r asked) (*http.Response, error) {
			j.mu.Lock()
			defer j.mu.Unlock()
			assert.True(t, j.known[r.n].Begun, "batch %d is sent, and not recorded", r.n)
			return nil, nil
		}}
		var got []batch
		for b := range s.submitAll(t, stream(n, nil), j.options(5)) {
			assert.Equal(t, payvault.BatchOutcome{
				Status: payvault.BatchAccepted, Cards: b.End - b.Start, RequestID: b.RequestID,
			}, j.outcome(b.Index))
			got = append(got, *b)
		}
		assert.ElementsMatch(t, batchesOf(n), got)
		before := maps.Clone(j.known)
		assert.Len(t, before, len(got))
		assert.Equal(t, earlier(n), j.run(s, n))
		assert.Equal(t, before, j.known)
		s.assertSent(t, 0, n)
	})
}

// TestJournalOfWhatFailed runs a job twice: what may be sent again is, and the rest is told again.
func TestJournalOfWhatFailed(t *testing.T) {
	t.Parallel()
	for status, test := range map[int]struct { // 0 for a connection that is lost
		body       string
		want       payvault.BatchStatus
		code, text string
	}{
		0:   {``, payvault.BatchUnknown, "", "no complete answer: unexpected EOF"},
		200: {`{"code":5,"message":"Example\nrefusal"}`, payvault.BatchRefused, "5", "Example refusal"},
		201: {`[]`, payvault.BatchUnknown, "", "malformed response: no result code"},
		400: {
			`{"code":2,"message":"Invalid","data":{"data[42].card_number":["must be\n12 to 19 digits"],` +
				`"data[43].exp_date":["of 4111111111111111"]}}`,
			payvault.BatchRefused, "2",
			"Invalid: data[42].card_number must be 12 to 19 digits; data[43].exp_date of [REDACTED]",
		},
		401: {`{"code":1,"message":"key"}`, payvault.BatchNotSent, "1", "key"},
		403: {``, payvault.BatchNotSent, "", ""},
		404: {`<html>`, payvault.BatchNotSent, "", ""},
		409: {`{"code":7,"message":"twice"}`, payvault.BatchRefused, "7", "twice"},
		429: {``, payvault.BatchNotSent, "", ""},
		502: {`{"message":"upstream"}`, payvault.BatchUnknown, "", "upstream"},
	} {
		s, j := fake{answer: gives(status, test.body, 0)}, newJournal(t, nil)
		want := payvault.BatchOutcome{
			Status: test.want, Cards: 37, StatusCode: status, Code: test.code, Message: test.text,
		}
		if status == 0 {
			s.answer = func(asked) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
		}
		first := collect(s.submitAll(t, stream(37, nil), j.options(3), payvault.WithMaxAttempts(1)))
		was := service.AsError(t, first[0].Err)
		assert.Equal(t, want, j.outcome(0))

		s.answer, s.cards = nil, nil
		again := j.run(&s, 37)
		if test.want == payvault.BatchNotSent {
			assert.Equal(t, batchesOf(37), again)
			continue
		}
		assert.Empty(t, s.cards)
		assert.True(t, again[0].FromJournal)
		is := service.AsError(t, again[0].Err)
		assert.False(t, payvault.SafeToRetry(is))
		assert.Equal(t, was.Error(), is.Error())
		assert.Empty(t, is.Message, "it may be no text of the service")
		assert.Equal(t, test.want, first[0].Status)
		assert.Equal(t, test.want, again[0].Status)
		assert.Equal(t, []any{was.Op, was.StatusCode, was.Code, was.Delivery},
			[]any{is.Op, is.StatusCode, is.Code, is.Delivery})
	}
}

// TestJournalOfANumber: what may be a card number is yielded as it came, and not recorded. A UUID is.
func TestJournalOfANumber(t *testing.T) {
	t.Parallel()
	const uuid = "550e8400-e29b-41d4-a716-446655440a00"
	for id, want := range map[string]string{
		"4111111111111111": "[REDACTED]", "4111-1111-1111-1111": "[REDACTED]", "R4111111111111111": "R[REDACTED]", uuid: uuid,
		"id-4111-1111-1111-1111": "id-[REDACTED]", "R-3782 822463 10005": "R-[REDACTED]",
		"id-1234-5678-901": "id-1234-5678-901",
	} {
		s, j := fake{answer: gives(200, `{"code":0,"data":{"request_id":"`+id+`"}}`, 0)}, newJournal(t, nil)
		assert.Equal(t, id, j.run(&s, 1)[0].RequestID)
		assert.Equal(t, want, j.outcome(0).RequestID)
	}
}

// TestJournalThatFails ends the walk, with its error, and cuts nothing off that is in flight.
func TestJournalThatFails(t *testing.T) {
	t.Parallel()
	type test struct {
		step string
		at   int // there are 12 batches
	}
	forEach(t, []test{{"begin", 0}, {"begin", 4}, {"end", 4}, {"end", 11}}, func(t *testing.T, test test) {
		j, s := newJournal(t, nil), &fake{answer: func(asked) (*http.Response, error) {
			<-time.After(time.Millisecond) // the journal may fail meanwhile
			return nil, nil
		}}
		j.fail = func(step string, i int) error {
			if step == test.step && i == test.at {
				return errDisk
			}
			return nil
		}
		got, sent := j.run(s, 1150), s.numbers()
		for i, b := range got {
			assert.Equal(t, i, b.Index)
			assert.Equal(t, b.Err == nil, slices.Contains(sent, i))
			if b.Err != nil {
				require.EqualError(t, b.Err, "payvault: account_updater.submit: journal: disk full (not sent)")
			}
		}
		last := got[len(got)-1]
		require.ErrorIs(t, last.Err, errDisk, "the walk ends with the error")
		assert.Equal(t, 1150, last.End)
		assert.Len(t, got, map[bool]int{true: 13, false: 12}[test.step == "end" && test.at > 10], "it is told once")
		if test.step == "begin" {
			assert.False(t, payvault.SafeToRetry(got[test.at].Err), "only the journal knows of earlier runs")
			assert.Less(t, slices.Max(append(sent, -1)), test.at+4, "nothing is sent but what was being begun")
		}
	})
}

// TestJournalOfOtherCards: another number of cards in a batch is refused, and the walk ends.
func TestJournalOfOtherCards(t *testing.T) {
	t.Parallel()
	type test struct{ was, is int }
	forEach(t, []test{{350, 400}, {350, 320}, {350, 1950}}, func(t *testing.T, n test) {
		j := newJournal(t, nil)
		j.run(&fake{}, n.was)
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, r.sleep(time.Millisecond) }}
		got := j.run(s, n.is)
		const text = "had another number of cards in an earlier run, in batch 3"
		service.AssertInvalid(t, got[3].Err, payvault.OpAccountUpdaterSubmit, service.Fields{"Job": {text}})
		assert.False(t, payvault.SafeToRetry(got[3].Err), "it will be the same each time")
		assert.NotContains(t, s.numbers(), 3)
		for _, b := range got[4:] {
			if b.Err != nil {
				require.EqualError(t, b.Err, "payvault: account_updater.submit: the job "+text+" (not sent)")
			}
		}
		assert.LessOrEqual(t, len(s.seen), 2, "that were begun at the same time")
	})
}

// TestJournalOutlivesTheContext: what is in flight then is recorded, and what waits for its turn is not sent.
func TestJournalOutlivesTheContext(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"end", "leave", "end while refused"}, func(t *testing.T, how string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		j, decided := newJournal(t, nil), map[string]int{"end": 8, "leave": 8, "end while refused": 6}[how]
		s := &fake{answer: func(r asked) (*http.Response, error) {
			switch {
			case r.n < 5:
				return nil, nil
			case r.n < decided:
				return nil, r.sleep(10 * time.Second)
			}
			<-time.After(time.Second)
			return refusal("20")
		}}
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), j.options(3)) {
			if b.Index == 4 {
				<-time.After(2 * time.Second)
				if how == "leave" {
					break
				}
				cancel()
			}
		}
		assert.Equal(t, 10*time.Second, time.Since(s.start))
		assert.LessOrEqual(t, len(s.seen), 8)
		s.answer, s.cards = nil, nil
		assert.Equal(t, append(earlier(decided*100), batchesOf(1950)[decided:]...), j.run(s, 1950))
		s.assertSent(t, decided*100, 1950)
	})
}

// open are the batches that were begun and have not ended.
func (j *journal) open() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, known := range j.known {
		if known.Begun && known.Outcome == nil {
			n++
		}
	}
	return n
}

// TestJournalWhileThePaceHolds: nothing is recorded as begun while it waits, so that a process that is killed leaves
// nothing of unknown outcome but what is in flight.
func TestJournalWhileThePaceHolds(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"", "1", "20"}, func(t *testing.T, retryAfter string) {
		s, _ := limited(20, 20, retryAfter)
		j, waited := newJournal(t, nil), 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			defer cancel()
			for range 1000 {
				select {
				case <-time.After(33 * time.Millisecond):
				case <-ctx.Done(): // the loop was left
					return
				}
				synctest.Wait()
				flying := s.flying.Load()
				if flying == 0 {
					waited++
				}
				assert.LessOrEqual(t, flying, int64(32))
				assert.EqualValues(t, flying, j.open())
			}
		}()
		accepted := 0
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(100_000, nil), j.options(32)) {
			if accepted++; b.Err != nil {
				break
			}
		}
		assert.Greater(t, accepted, 30)
		assert.Positive(t, waited)
	})
}

// TestJournalOfABatchThatAnotherRunHasSent while it waited, as the workers of a queue may.
func TestJournalOfABatchThatAnotherRunHasSent(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"sent", "fails"}, func(t *testing.T, how string) {
		s, j := refusing(times(1, "20")...), newJournal(t, nil)
		time.AfterFunc(10*time.Second, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			if how == "fails" { // once: nothing is recorded over what the other run has
				j.fail = func(step string, _ int) error { return map[string]error{"begin": errDisk}[step] }
			}
			j.known[0] = payvault.BatchState{
				Begun: true, Outcome: &payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: "REQ0"},
			}
		})
		got := j.run(s, 100)
		assert.Len(t, s.seen, 1)
		assert.Equal(t, payvault.BatchAccepted, j.outcome(0).Status)
		if how == "sent" {
			assert.Equal(t, earlier(100), got)
		} else {
			require.ErrorIs(t, got[0].Err, errDisk)
			assert.False(t, payvault.SafeToRetry(got[0].Err), "the journal was not asked")
		}
	})
}

// TestStoppedWalkDoesNotWait for an attempt that will not come.
func TestStoppedWalkDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s, j := &fake{answer: func(asked) (*http.Response, error) {
			resp := service.Reply(http.StatusServiceUnavailable, ``)
			resp.Header.Set("Retry-After", "29")
			return resp, nil
		}}, newJournal(t, nil)
		var observed []error
		client := s.client(t, payvault.WithObserver(payvault.Observer{
			End: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) {
				observed = append(observed, r.Err)
			},
		}))
		got := collect(client.AccountUpdater.SubmitAll(ctx, stream(100, nil), j.options(1), payvault.WithReplay()))
		assert.Equal(t, time.Second, time.Since(s.start))
		assert.NotContains(t, observed[0].Error(), "canceled", "what observers have is not changed after the call")
		require.ErrorContains(t, got[0].Err,
			"status 503 Service Unavailable: the walk was stopped: context canceled (outcome unknown)")
		assert.Equal(t, payvault.BatchUnknown, j.outcome(0).Status)
	})
}

// TestJournalOfAContextThatEndsLate: what is in flight then are the last batches, and the job is at its end.
func TestJournalOfAContextThatEndsLate(t *testing.T) {
	t.Parallel()
	forEach(t, []int{300, 400}, func(t *testing.T, n int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, r.sleep(2 * time.Second) }}
		j := newJournal(t, nil)
		got := collect(s.client(t).AccountUpdater.SubmitAll(ctx, stream(n, nil), j.options(3)))
		assert.Equal(t, batchesOf(300), got[:3])
		if n == 300 {
			assert.Len(t, got, 3)
			assert.NotContains(t, j.known, 3)
		} else {
			require.ErrorIs(t, got[3].Err, context.DeadlineExceeded)
			assert.Equal(t, payvault.BatchNotSent, got[3].Status)
			assert.NotContains(t, j.known, 4)
		}
	})
}

// TestJournalThatHangs is left behind when the context ends, since nothing is begun.
func TestJournalThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		j := newJournal(t, state{0: {Begun: true}})
		j.hang = true
		var s fake
		got := collect(s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), j.options(0)))
		require.Len(t, got, 20)
		assert.True(t, got[0].FromJournal)
		require.EqualError(t, got[0].Err,
			"payvault: account_updater.submit: an earlier run began the batch and did not end it (outcome unknown)")
		for _, b := range got[1:] {
			require.EqualError(t, b.Err, "payvault: account_updater.submit: context deadline exceeded (not sent)")
			assert.False(t, payvault.SafeToRetry(b.Err))
		}
		assert.Empty(t, s.seen)
	})
}
