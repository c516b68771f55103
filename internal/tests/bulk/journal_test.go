package bulk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
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

// journal keeps what it is told in memory, and what it knew after each step.
type journal struct {
	mu    sync.Mutex
	known map[int]payvault.BatchState
	steps []map[int]payvault.BatchState
	fail  func(step string, batch int) error
	t     *testing.T
}

func newJournal(t *testing.T, known map[int]payvault.BatchState) *journal {
	t.Helper()
	return &journal{t: t, known: maps.Clone(known), fail: func(string, int) error { return nil }}
}

func (j *journal) Begin(ctx context.Context, name string, batch int) (payvault.BatchState, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.Equal(j.t, job, name)
	if err := cmp.Or(ctx.Err(), j.fail("begin", batch)); err != nil {
		return payvault.BatchState{}, err
	}
	s := j.known[batch]
	if s.Outcome != nil && s.Outcome.Status == payvault.BatchNotSent {
		s = payvault.BatchState{}
	}
	if !s.Begun {
		j.note(batch, payvault.BatchState{Begun: true})
	}
	return s, nil
}

func (j *journal) End(ctx context.Context, name string, batch int, outcome payvault.BatchOutcome) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.NoError(j.t, ctx.Err())
	assert.Equal(j.t, job, name)
	if err := j.fail("end", batch); err != nil {
		return err
	}
	for i, known := range j.known {
		notSent := known.Outcome != nil && known.Outcome.Status == payvault.BatchNotSent
		same := known.Outcome != nil && known.Outcome.Status == payvault.BatchEnd && i == batch
		if outcome.Status == payvault.BatchEnd && i >= batch && !notSent && !same {
			return errors.New("it is of other cards: an earlier run saw more batches")
		}
	}
	j.note(batch, payvault.BatchState{Begun: true, Outcome: &outcome})
	return nil
}

func (j *journal) note(batch int, state payvault.BatchState) {
	if j.known == nil {
		j.known = map[int]payvault.BatchState{}
	}
	j.known[batch] = state
	j.steps = append(j.steps, maps.Clone(j.known))
}

// has reports whether a batch is recorded.
func (j *journal) has(batch int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[batch].Begun
}

func (j *journal) options(concurrency int) *payvault.SubmitAllOptions {
	return &payvault.SubmitAllOptions{Concurrency: concurrency, Journal: j, Job: job}
}

// submitAll runs the job over n cards.
func (j *journal) submitAll(ctx context.Context, u *updater, n int) []payvault.AccountUpdaterBatch {
	j.t.Helper()
	return collect(cannedClient(j.t, u).AccountUpdater.SubmitAll(ctx, cardStream(n, nil), j.options(3)))
}

// earlier are the batches of cards, as a later run yields them.
func earlier(n int) []payvault.AccountUpdaterBatch {
	batches := batchesOf(n)
	for i := range batches {
		batches[i].Earlier = true
	}
	return batches
}

// TestJournal: each batch is recorded when it is sent, decided when it is yielded, and never sent again.
func TestJournal(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100, 1950} {
		t.Run(fmt.Sprintf("%d cards", n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := newJournal(t, nil)
				u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
					assert.True(t, j.has(batch), "batch %d is sent, and not recorded", batch)
					return nil, nil
				}}
				got := []payvault.AccountUpdaterBatch{}
				for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(n, nil), j.options(3)) {
					j.mu.Lock()
					assert.Equal(t, &payvault.BatchOutcome{
						Status: payvault.BatchAccepted, Cards: batch.End - batch.Start, RequestID: batch.RequestID,
					}, j.known[batch.Index].Outcome)
					j.mu.Unlock()
					got = append(got, *batch)
				}
				assert.Equal(t, batchesOf(n), got)
				assert.Equal(t, payvault.BatchEnd, j.known[len(got)].Outcome.Status)

				before := maps.Clone(j.known)
				assert.ElementsMatch(t, earlier(n), j.submitAll(t.Context(), &u, n))
				assert.Equal(t, before, j.known)
				u.assertOnce(t, [2]int{0, n})
			})
		})
	}
}

// TestJournalOfAKilledRun goes on from each state in which a process can be killed. What it had begun may have been
// sent.
func TestJournalOfAKilledRun(t *testing.T) {
	t.Parallel()
	const n = 1250
	first := newJournal(t, nil)
	require.Equal(t, batchesOf(n), first.submitAll(t.Context(), &updater{}, n))
	require.Len(t, first.steps, 2*13+1, "the end is not begun")
	for i, known := range first.steps {
		t.Run(fmt.Sprintf("after step %d", i), func(t *testing.T) {
			t.Parallel()
			var u updater
			got := newJournal(t, known).submitAll(t.Context(), &u, n)
			require.Len(t, got, 13)
			for i, want := range batchesOf(n) {
				switch state := known[i]; {
				case !state.Begun:
					assert.Equal(t, want, got[i])
					continue
				case state.Outcome == nil:
					require.ErrorIs(t, got[i].Err, payvault.ErrOutcomeUnknown)
					assert.EqualError(t, got[i].Err,
						"payvault: account_updater.submit: an earlier run began the batch and did not end it (outcome unknown)")
					got[i].Err, got[i].RequestID = nil, want.RequestID
				}
				want.Earlier = true
				assert.Equal(t, want, got[i])
				assert.NotContains(t, u.sizes, i, "it was begun")
			}
			assert.Equal(t, 13-min(len(known), 13), u.requests)
		})
	}
}

// TestJournalOfWhatFailed runs a job twice: what may be sent again is, and the rest is told again.
func TestJournalOfWhatFailed(t *testing.T) {
	t.Parallel()
	type answer = struct {
		status     int // 0 for a connection that is lost
		body       string
		retryAfter string
	}
	for name, test := range map[string]struct {
		answer answer
		again  bool
		want   payvault.BatchOutcome
	}{
		"refused": {
			answer{http.StatusOK, `{"code":5,"message":"Example\nrefusal"}`, ""},
			false,
			payvault.BatchOutcome{Status: payvault.BatchRefused, StatusCode: 200, Code: "5", Message: "Example refusal"},
		},
		"not found": {
			answer{http.StatusNotFound, `<html>`, ""},
			false,
			payvault.BatchOutcome{Status: payvault.BatchRefused, StatusCode: 404},
		},
		"bad gateway": {
			answer{http.StatusBadGateway, `{"message":"upstream"}`, ""},
			false,
			payvault.BatchOutcome{Status: payvault.BatchUnknown, StatusCode: 502, Message: "upstream"},
		},
		"lost": {
			answer{},
			false,
			payvault.BatchOutcome{Status: payvault.BatchUnknown, Message: "unexpected EOF"},
		},
		"unauthorized": {
			answer{http.StatusUnauthorized, `{"code":1,"message":"key"}`, ""},
			true,
			payvault.BatchOutcome{Status: payvault.BatchNotSent, StatusCode: 401, Code: "1", Message: "key"},
		},
		"forbidden": {
			answer{http.StatusForbidden, ``, ""},
			true,
			payvault.BatchOutcome{Status: payvault.BatchNotSent, StatusCode: 403},
		},
		"turned away": {
			answer{http.StatusTooManyRequests, ``, "86400"},
			true,
			payvault.BatchOutcome{Status: payvault.BatchNotSent, StatusCode: 429},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJournal(t, nil)
			failing := updater{before: func(*http.Request, int) (*http.Response, error) {
				if test.answer.status == 0 {
					return nil, io.ErrUnexpectedEOF
				}
				return jsonAnswer(test.answer.status, test.answer.body, "Retry-After", test.answer.retryAfter), nil
			}}
			first := j.submitAll(t.Context(), &failing, 37)
			require.Len(t, first, 1)
			require.Error(t, first[0].Err)
			test.want.Cards = 37
			assert.Equal(t, &test.want, j.known[0].Outcome)

			var u updater
			second := j.submitAll(t.Context(), &u, 37)
			if test.again {
				assert.Equal(t, batchesOf(37), second)
				return
			}
			assert.Zero(t, u.requests)
			is, was := service.AsError(t, second[0].Err), service.AsError(t, first[0].Err)
			assert.True(t, second[0].Earlier)
			assert.False(t, payvault.SafeToRetry(is))
			assert.Equal(t, was.Op, is.Op)
			assert.Equal(t, was.StatusCode, is.StatusCode)
			assert.Equal(t, was.Code, is.Code)
			assert.Equal(t, was.Delivery, is.Delivery)
			assert.Equal(t, errors.Is(was, payvault.ErrOutcomeUnknown), errors.Is(is, payvault.ErrOutcomeUnknown))
			assert.Equal(t, errors.Is(was, payvault.ErrRejected), errors.Is(is, payvault.ErrRejected))
		})
	}
}

// TestJournalOfInvalidCards: nothing was sent, so that they can be mended.
func TestJournalOfInvalidCards(t *testing.T) {
	t.Parallel()
	var u updater
	j := newJournal(t, nil)
	got := collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(150, nil, 7), j.options(1)))
	require.ErrorIs(t, got[0].Err, payvault.ErrInvalidRequest)
	assert.Equal(t, payvault.BatchNotSent, j.known[0].Outcome.Status)
	got = j.submitAll(t.Context(), &u, 150)
	require.NoError(t, got[0].Err)
	assert.Equal(t, earlier(150)[1], got[1])
	u.assertOnce(t, [2]int{0, 150})
}

// TestJournalThatFails ends the walk, with its error, and cuts nothing off that is in flight.
func TestJournalThatFails(t *testing.T) {
	t.Parallel()
	failure := errors.New("disk full")
	for _, step := range []string{"begin", "end"} {
		for _, at := range []int{0, 4, 11, 12} { // 12 batches, and what stands for the end
			if step == "begin" && at == 12 {
				continue // the end of a job that was not known is not begun
			}
			t.Run(fmt.Sprintf("%s of %d", step, at), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					j := newJournal(t, nil)
					var failed atomic.Pointer[time.Time]
					j.fail = func(now string, batch int) error {
						if now == step && batch == at {
							failed.Store(new(time.Now()))
							return failure
						}
						return nil
					}
					var u updater
					u.before = func(*http.Request, int) (*http.Response, error) {
						if then := failed.Load(); then != nil {
							assert.Equal(t, *then, time.Now(), "it was sent after the journal had failed")
						}
						<-time.After(time.Millisecond) // the journal may fail meanwhile
						return nil, nil
					}
					got := j.submitAll(t.Context(), &u, 1150)
					require.GreaterOrEqual(t, len(got), 12)
					for i, batch := range got {
						assert.Equal(t, i, batch.Index)
						if batch.Err == nil {
							assert.Equal(t, batchesOf(1150)[i], batch)
							assert.Contains(t, u.sizes, i)
							continue
						}
						require.ErrorIs(t, batch.Err, failure)
						assert.Equal(t, payvault.NotSent, service.AsError(t, batch.Err).Delivery)
						if step == "begin" && i == at && batch.End > batch.Start {
							assert.False(t, payvault.SafeToRetry(batch.Err), "only the journal knows of earlier runs")
						}
						assert.NotContains(t, u.sizes, i)
					}
					if step == "begin" {
						for i := range u.sizes {
							assert.Less(t, i, at, "nothing is sent after it")
						}
					}
					last := got[len(got)-1]
					require.Error(t, last.Err, "the walk ends with the error")
					assert.EqualError(t, last.Err, "payvault: account_updater.submit: journal: disk full (not sent)")
					assert.Equal(t, 1150, last.End)

					var again updater
					j.fail = func(string, int) error { return nil }
					for _, batch := range j.submitAll(t.Context(), &again, 1150) {
						assert.True(t, batch.Err == nil || errors.Is(batch.Err, payvault.ErrOutcomeUnknown))
					}
					for i := range u.sizes {
						assert.NotContains(t, again.sizes, i)
					}
				})
			})
		}
	}
}

// TestJournalOfOtherCards is refused as soon as it shows, at the latest with the last batch.
func TestJournalOfOtherCards(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ was, is int }{
		"fewer batches":        {500, 300},
		"more batches":         {300, 500},
		"more in the last one": {350, 400},
		"less in the last one": {350, 320},
		"none":                 {350, 0},
		"some after none":      {0, 350},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJournal(t, nil)
			require.Equal(t, batchesOf(test.was), j.submitAll(t.Context(), &updater{}, test.was))
			var u updater
			got := j.submitAll(t.Context(), &u, test.is)
			assert.ErrorContains(t, got[len(got)-1].Err, "journal: it is of other cards: an earlier run saw ")
			assert.Zero(t, u.requests)
		})
	}
}

// TestJournalOutlivesTheContext: what is in flight when the context ends, or when the loop is left, ends and is
// recorded.
func TestJournalOutlivesTheContext(t *testing.T) {
	t.Parallel()
	for _, leave := range []bool{false, true} {
		t.Run(fmt.Sprintf("leave %v", leave), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				j := newJournal(t, nil)
				u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
					if batch < 5 {
						return nil, nil
					}
					select {
					case <-time.After(10 * time.Second):
						return nil, nil
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
				}}
				start := time.Now()
				for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(ctx, cardStream(1950, nil), j.options(3)) {
					if batch.Index == 4 {
						synctest.Wait()
						if leave {
							break
						}
						cancel()
					}
				}
				assert.Equal(t, 10*time.Second, time.Since(start))
				require.Equal(t, 8, u.requests)
				u.before = nil
				for i, batch := range j.submitAll(t.Context(), &u, 1950) {
					want := batchesOf(1950)[i]
					want.Earlier = i < 8
					assert.Equal(t, want, batch)
				}
				u.assertOnce(t, [2]int{0, 1950})
			})
		})
	}
}

// TestJournalThatHangs is left behind when the context ends, since nothing is begun.
func TestJournalThatHangs(t *testing.T) {
	t.Parallel()
	for _, leave := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var u updater
			j := hanging{newJournal(t, map[int]payvault.BatchState{0: {Begun: true}})}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			n := 0
			options := &payvault.SubmitAllOptions{Journal: j, Job: job}
			for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(ctx, cardStream(1950, nil), options) {
				if n++; batch.Index == 0 {
					if require.True(t, batch.Earlier); leave {
						break
					}
					continue
				}
				assert.EqualError(t, batch.Err, "payvault: account_updater.submit: context deadline exceeded (not sent)")
				assert.False(t, payvault.SafeToRetry(batch.Err))
			}
			if !leave {
				assert.Equal(t, 20, n)
				assert.Equal(t, context.DeadlineExceeded, ctx.Err())
			}
			assert.Zero(t, u.requests)
		})
	}
}

// hanging answers for the first batch only.
type hanging struct{ *journal }

func (j hanging) Begin(ctx context.Context, name string, batch int) (payvault.BatchState, error) {
	if batch > 0 {
		<-ctx.Done()
		return payvault.BatchState{}, ctx.Err()
	}
	return j.journal.Begin(ctx, name, batch)
}

// TestJournalOfFewerCards: the first batch was not sent, and what came after it must not be forgotten.
func TestJournalOfFewerCards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, nil)
		u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
			if <-time.After(time.Second); batch == 0 {
				return jsonAnswer(http.StatusForbidden, ``), nil
			}
			return nil, nil
		}}
		j.submitAll(t.Context(), &u, 300)
		known := maps.Clone(j.known)
		require.Equal(t, payvault.BatchNotSent, known[0].Outcome.Status)

		got := j.submitAll(t.Context(), &updater{}, 100)
		require.Len(t, got, 2)
		require.NoError(t, got[0].Err)
		require.ErrorContains(t, got[1].Err, "journal: it is of other cards")
		for _, i := range []int{1, 2} {
			assert.Equal(t, known[i], j.known[i])
		}
	})
}

// TestJournalWhoseEndIsLost: a resumed run dies when it is about to record the end.
func TestJournalWhoseEndIsLost(t *testing.T) {
	t.Parallel()
	j := newJournal(t, nil)
	j.submitAll(t.Context(), &updater{}, 300)
	delete(j.known, 3)
	j.fail = func(step string, batch int) error {
		if step == "end" && batch == 3 {
			return errors.New("killed")
		}
		return nil
	}
	var u updater
	got := j.submitAll(t.Context(), &u, 300)
	require.ErrorContains(t, got[len(got)-1].Err, "killed")
	j.fail = func(string, int) error { return nil }
	for range 2 {
		assert.Equal(t, earlier(300), j.submitAll(t.Context(), &u, 300))
	}
	assert.Zero(t, u.requests)
}

// TestJournalIsCorrected: somebody has found out what came of two batches.
func TestJournalIsCorrected(t *testing.T) {
	t.Parallel()
	j := newJournal(t, map[int]payvault.BatchState{0: {Begun: true}, 1: {Begun: true}, 2: {Begun: true}})
	require.NoError(t, j.End(t.Context(), job, 0,
		payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: "REQ0"}))
	require.NoError(t, j.End(t.Context(), job, 1, payvault.BatchOutcome{Status: payvault.BatchNotSent}))
	var u updater
	got := j.submitAll(t.Context(), &u, 300)
	assert.Equal(t, earlier(300)[0], got[0])
	assert.Equal(t, batchesOf(300)[1], got[1])
	require.ErrorIs(t, got[2].Err, payvault.ErrOutcomeUnknown)
	u.assertOnce(t, [2]int{100, 200})
}

// TestJournalIsToldNextToSending: few more batches are begun than may be in flight, however many have been read.
func TestJournalIsToldNextToSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const concurrency, most = 8, 8 + 8/4 + 1
		var begun, answered, highest atomic.Int64
		j := newJournal(t, nil)
		j.fail = func(step string, _ int) error {
			if step == "begin" {
				now := begun.Add(1) - answered.Load()
				highest.Store(max(highest.Load(), now))
				assert.LessOrEqual(t, now, int64(most))
			}
			return nil
		}
		u := updater{before: func(*http.Request, int) (*http.Response, error) {
			<-time.After(time.Second)
			answered.Add(1)
			return nil, nil
		}}
		options := j.options(concurrency)
		assert.Equal(t, batchesOf(1950),
			collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(1950, nil), options)))
		assert.Equal(t, concurrency, u.most)
		assert.EqualValues(t, most, highest.Load())
	})
}
