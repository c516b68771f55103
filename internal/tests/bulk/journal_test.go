package bulk

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
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
	for later, known := range j.known {
		end := known.Outcome != nil && known.Outcome.Status == payvault.BatchEnd
		if outcome.Status == payvault.BatchEnd && later >= i && !end {
			return errors.New("it is of other cards: an earlier run saw more batches")
		}
	}
	j.known[i] = payvault.BatchState{Begun: true, Outcome: &outcome}
	return nil
}

func (j *journal) options(concurrency int) *payvault.SubmitAllOptions {
	return &payvault.SubmitAllOptions{Concurrency: concurrency, Journal: j, Job: job}
}

// run does the job over n cards.
func (j *journal) run(s *fake, n int) []batch {
	return collect(s.submitAll(j.t, stream(n, nil), j.options(3)))
}

// earlier are the batches of n cards, as a later run yields them.
func earlier(n int) []batch {
	batches := batchesOf(n)
	for i := range batches {
		batches[i].Earlier = true
	}
	return batches
}

// TestJournal: each batch is recorded when it is sent, decided when it is yielded, and never sent again.
func TestJournal(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1, 100, 1950}, func(t *testing.T, n int) {
		t.Helper()
		j := newJournal(t, nil)
		s := &fake{answer: func(r asked) (*http.Response, error) {
			j.mu.Lock()
			defer j.mu.Unlock()
			assert.True(t, j.known[r.n].Begun, "batch %d is sent, and not recorded", r.n)
			return nil, nil
		}}
		var got []batch
		for b := range s.submitAll(t, stream(n, nil), j.options(3)) {
			j.mu.Lock()
			assert.Equal(t, &payvault.BatchOutcome{
				Status: payvault.BatchAccepted, Cards: b.End - b.Start, RequestID: b.RequestID,
			}, j.known[b.Index].Outcome)
			j.mu.Unlock()
			got = append(got, *b)
		}
		assert.ElementsMatch(t, batchesOf(n), got)
		before := maps.Clone(j.known)
		assert.Equal(t, payvault.BatchEnd, before[len(got)].Outcome.Status)
		assert.Equal(t, earlier(n), j.run(s, n))
		assert.Equal(t, before, j.known)
		s.assertSent(t, 0, n)
	})
}

// TestJournalOfWhatFailed runs a job twice: what may be sent again is, and the rest is told again.
func TestJournalOfWhatFailed(t *testing.T) {
	t.Parallel()
	for status, test := range map[int]struct { // 0 for a connection that is lost, 1 for an invalid card
		body       string
		want       payvault.BatchStatus
		code, text string
	}{
		0:   {``, payvault.BatchUnknown, "", "unexpected EOF"},
		1:   {``, payvault.BatchNotSent, "", "invalid request"},
		200: {`{"code":5,"message":"Example\nrefusal"}`, payvault.BatchRefused, "5", "Example refusal"},
		401: {`{"code":1,"message":"key"}`, payvault.BatchNotSent, "1", "key"},
		403: {``, payvault.BatchNotSent, "", ""},
		404: {`<html>`, payvault.BatchRefused, "", ""},
		429: {``, payvault.BatchNotSent, "", ""},
		502: {`{"message":"upstream"}`, payvault.BatchUnknown, "", "upstream"},
	} {
		s, j := fake{answer: gives(status, test.body, 0)}, newJournal(t, nil)
		want := &payvault.BatchOutcome{
			Status: test.want, Cards: 37, StatusCode: status, Code: test.code, Message: test.text,
		}
		cards := slices.Collect(stream(37, nil))
		switch status {
		case 0:
			s.answer = func(asked) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
		case 1:
			cards[7].ExpDate, want.StatusCode = "1329", 0
		}
		first := collect(s.submitAll(t, slices.Values(cards), j.options(3), payvault.WithAttempts(1)))
		was := service.AsError(t, first[0].Err)
		assert.Equal(t, want, j.known[0].Outcome)

		s.answer, s.cards = nil, nil
		again := j.run(&s, 37)
		if test.want == payvault.BatchNotSent {
			assert.Equal(t, batchesOf(37), again)
			continue
		}
		assert.Empty(t, s.cards)
		assert.True(t, again[0].Earlier)
		is := service.AsError(t, again[0].Err)
		assert.False(t, payvault.SafeToRetry(is))
		require.ErrorContains(t, is, test.text)
		assert.Equal(t, []any{was.Op, was.StatusCode, was.Code, was.Delivery},
			[]any{is.Op, is.StatusCode, is.Code, is.Delivery})
	}
}

// TestJournalThatFails ends the walk, with its error, and cuts nothing off that is in flight.
func TestJournalThatFails(t *testing.T) {
	t.Parallel()
	type test struct {
		step string
		at   int // there are 12 batches, and what stands for the end, which is not begun
	}
	forEach(t, []test{
		{"begin", 0}, {"begin", 4}, {"begin", 11}, {"end", 0}, {"end", 4}, {"end", 11}, {"end", 12},
	}, func(t *testing.T, test test) {
		t.Helper()
		j := newJournal(t, nil)
		var failed atomic.Bool
		j.fail = func(step string, i int) error {
			if step != test.step || i != test.at {
				return nil
			}
			time.AfterFunc(1, func() { failed.Store(true) })
			return errDisk
		}
		s := &fake{answer: func(asked) (*http.Response, error) {
			assert.False(t, failed.Load(), "it was sent after the journal had failed")
			<-time.After(time.Millisecond) // the journal may fail meanwhile
			return nil, nil
		}}
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
		if test.step == "begin" {
			assert.False(t, payvault.SafeToRetry(got[test.at].Err), "only the journal knows of earlier runs")
			assert.Less(t, slices.Max(append(sent, -1)), test.at, "nothing is sent after it")
		}

		j.fail, s.answer = func(string, int) error { return nil }, nil
		for _, b := range j.run(s, 1150) {
			assert.True(t, b.Err == nil || errors.Is(b.Err, payvault.ErrOutcomeUnknown))
		}
		assert.Equal(t, slices.Compact(s.numbers()), s.numbers(), "none was sent twice")
	})
}

// TestJournalOfOtherCards is refused as soon as it shows, at the latest with the last batch.
func TestJournalOfOtherCards(t *testing.T) {
	t.Parallel()
	forEach(t, []struct{ was, is int }{{500, 300}, {300, 500}, {350, 400}, {350, 320}, {350, 0}, {0, 350}},
		func(t *testing.T, n struct{ was, is int }) {
			t.Helper()
			j := newJournal(t, nil)
			j.run(&fake{}, n.was)
			var s fake
			got := j.run(&s, n.is)
			assert.ErrorContains(t, got[len(got)-1].Err, "journal: it is of other cards: an earlier run saw ")
			assert.Empty(t, s.seen)
		})
}

// TestJournalOutlivesTheContext: what is in flight when the context ends, or when the loop is left, ends and is
// recorded. What waits for its turn is not sent.
func TestJournalOutlivesTheContext(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"end", "leave", "end while refused"}, func(t *testing.T, how string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		j, decided := newJournal(t, nil), 8
		if how == "end while refused" {
			decided = 6
		}
		s := &fake{answer: func(r asked) (*http.Response, error) {
			if r.n < 5 {
				return nil, nil
			}
			if r.n >= decided {
				return refusal("20")
			}
			return nil, r.sleep(10 * time.Second)
		}}
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), j.options(3)) {
			if b.Index == 4 {
				synctest.Wait()
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

// TestJournalThatHangs is left behind when the context ends, since nothing is begun.
func TestJournalThatHangs(t *testing.T) {
	t.Parallel()
	forEach(t, []bool{false, true}, func(t *testing.T, leave bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		j := newJournal(t, state{0: {Begun: true}})
		j.hang = true
		var s fake
		n := 0
		for b := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), j.options(0)) {
			if n++; n > 1 {
				require.EqualError(t, b.Err, "payvault: account_updater.submit: context deadline exceeded (not sent)")
				assert.False(t, payvault.SafeToRetry(b.Err))
			} else if require.True(t, b.Earlier); leave {
				break
			}
		}
		assert.Equal(t, leave, n < 20)
		assert.Empty(t, s.seen)
	})
}

// TestJournalIsCorrected: somebody has found out what came of two batches.
func TestJournalIsCorrected(t *testing.T) {
	t.Parallel()
	j := newJournal(t, state{
		0: {Begun: true, Outcome: &payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: "REQ0"}},
		1: {Begun: true, Outcome: &payvault.BatchOutcome{Status: payvault.BatchNotSent}},
		2: {Begun: true},
	})
	var s fake
	got := j.run(&s, 300)
	assert.Equal(t, append(earlier(100), batchesOf(300)[1]), got[:2])
	require.EqualError(t, got[2].Err,
		"payvault: account_updater.submit: an earlier run began the batch and did not end it (outcome unknown)")
	assert.True(t, got[2].Earlier)
	s.assertSent(t, 100, 200)
}
