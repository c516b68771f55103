package bulk

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// state maps the number of a batch to its record in a journal.
type state = map[int]payvault.BatchState

// journal is a payvault.Journal in memory. The function fail decides whether a method fails.
type journal struct {
	t    *testing.T
	fail func(step string, i int) error
	hang bool // Begin waits for the end of its context, except for batch 0

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

// outcome returns the outcome that the journal has recorded for a batch.
func (j *journal) outcome(i int) payvault.BatchOutcome {
	j.t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	require.NotNil(j.t, j.known[i].Outcome, "batch %d is not recorded as ended", i)
	return *j.known[i].Outcome
}

// run submits n cards with the journal and returns the batches. The walk must not stop before the end.
func (j *journal) run(s *fake, n int) []batch {
	return complete(j.t, s.submitAll(j.t, stream(n, nil), j.options(3)))
}

// earlier returns the batches that SubmitAll yields for n cards if all batches were accepted in an earlier run.
func earlier(n int) []batch {
	batches := batchesOf(n)
	for i := range batches {
		batches[i].FromJournal = true
	}
	return batches
}

// TestJournal checks that each batch is recorded as begun before it is sent, and as ended before it is yielded. A
// second loop over the same iterator must send nothing, and yield the same batches with FromJournal set.
func TestJournal(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 100, 1950}, func(t *testing.T, n int) {
		j := newJournal(t, nil)
		s := &fake{answer: func(r asked) (*http.Response, error) {
			j.mu.Lock()
			defer j.mu.Unlock()
			assert.True(t, j.known[r.n].Begun, "batch %d is sent, and not recorded", r.n)
			return nil, nil
		}}
		var got []batch
		seq := s.submitAll(t, stream(n, nil), j.options(5))
		for b, err := range seq {
			require.NoError(t, err)
			assert.Equal(t, payvault.BatchOutcome{
				Status: payvault.BatchAccepted, Cards: b.End - b.Start, RequestID: b.RequestID,
			}, j.outcome(b.Index))
			got = append(got, *b)
		}
		assert.ElementsMatch(t, batchesOf(n), got)
		before := maps.Clone(j.known)
		assert.Len(t, before, len(got))
		assert.Equal(t, earlier(n), complete(t, seq))
		assert.Equal(t, before, j.known)
		s.assertSent(t, 0, n)
	})
}

// TestJournalOfFailures checks that a second run sends a failed batch again only if it was recorded as not sent. For
// any other failed batch it must yield an error with the same text, status, code, fields and delivery as the first run.
func TestJournalOfFailures(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300) // as long as the text of an error permits
	for status, test := range map[int]struct {
		body          string
		want          payvault.BatchStatus
		code, message string // in the journal
		fields        map[string][]string
	}{
		200: {`{"code":5,"message":"Example\nrefusal"}`, payvault.BatchRefused, "5", "Example refusal", nil},
		201: {`[]`, payvault.BatchUnknown, "", "malformed response: no result code", nil},
		202: { // an ID that has lost digits
			`{"code":0,"data":{"request_id":1.11e+2}}`, payvault.BatchUnknown, "0",
			"malformed response: /data/request_id is missing, and cannot be read: /data/request_id", nil,
		},
		400: {
			`{"code":2,"message":"Invalid","data":{"data[43].exp_date":["of 4111111111111111"]}}`,
			payvault.BatchRefused, "2", "Invalid: data[43].exp_date of [REDACTED]",
			map[string][]string{"data[43].exp_date": {"of [REDACTED]"}},
		},
		401: {`{"code":1,"message":"key"}`, payvault.BatchNotSent, "1", "key", nil},
		403: {`<html>`, payvault.BatchUnknown, "", "", nil},
		404: {`<html>`, payvault.BatchNotSent, "", "", nil},
		429: {``, payvault.BatchNotSent, "", "", nil},
		422: {`{"code":7,"message":"` + long + `"}`, payvault.BatchRefused, "7", long, nil},
		502: {`{"message":"upstream"}`, payvault.BatchUnknown, "", "upstream", nil},
	} {
		s, j := fake{answer: gives(status, test.body, 0)}, newJournal(t, nil)
		first, _ := collect(s.submitAll(t, stream(37, nil), j.options(3), payvault.WithMaxAttempts(1)))
		assert.Equal(t, payvault.BatchOutcome{
			Status: test.want, Cards: 37, StatusCode: status, Code: test.code, Message: test.message,
			Fields: test.fields,
		}, j.outcome(0))
		assert.Equal(t, test.want, first[0].Status, "status %d", status)

		s.answer, s.cards = nil, nil
		second := j.run(&s, 37)
		if test.want == payvault.BatchNotSent {
			assert.Equal(t, batchesOf(37), second)
			continue
		}
		assert.Empty(t, s.cards, "status %d: the batch is sent again", status)
		assert.True(t, second[0].FromJournal)
		assert.Equal(t, test.want, second[0].Status)
		was, is := service.AsError(t, first[0].Err), service.AsError(t, second[0].Err)
		assert.False(t, payvault.SafeToRetry(is))
		assert.Equal(t, was.Error(), is.Error())
		assert.Equal(t, []any{was.StatusCode, was.Code, was.Fields, was.Delivery},
			[]any{is.StatusCode, is.Code, is.Fields, is.Delivery})
	}
}

// TestJournalOfARequestID checks that the journal gets the request ID as the service sent it. If the digits of the ID
// contain the number of a card of the batch, the journal must get [REDACTED] instead. The first run yields the ID of
// the service. A second run yields the ID from the journal.
func TestJournalOfARequestID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"4111111111111111": "[REDACTED]", "4111-1111-1111-1111": "[REDACTED]", "R-4111 1111 1111 1111": "[REDACTED]",
		"202611280000017": "202611280000017", "2026-11-28-000017": "2026-11-28-000017",
		"5555555555554444":                     "5555555555554444",
		"550e8400-e29b-41d4-a716-446655440a00": "550e8400-e29b-41d4-a716-446655440a00",
	} {
		s, j := fake{answer: gives(200, `{"code":0,"data":{"request_id":"`+id+`"}}`, 0)}, newJournal(t, nil)
		assert.Equal(t, id, j.run(&s, 1)[0].RequestID)
		assert.Equal(t, want, j.outcome(0).RequestID)
		assert.Equal(t, want, j.run(&s, 1)[0].RequestID, "the second run")
	}
}

// TestJournalThatFails checks that SubmitAll stops after an error of the journal, and waits for the answers to the
// requests in flight.
func TestJournalThatFails(t *testing.T) {
	t.Parallel()
	type test struct {
		step string
		at   int // the journal fails at the batch with this number, from 0 to 11
	}
	forEach(t, []test{{"begin", 0}, {"begin", 4}, {"end", 4}, {"end", 11}}, func(t *testing.T, test test) {
		j, s := newJournal(t, nil), &fake{answer: func(asked) (*http.Response, error) {
			<-time.After(time.Millisecond) // the journal may fail during this time
			return nil, nil
		}}
		j.fail = func(step string, i int) error {
			if step == test.step && i == test.at {
				return errDisk
			}
			return nil
		}
		got, err := collect(s.submitAll(t, stream(1150, nil), j.options(3)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopJournal), errDisk)
		require.EqualError(t, err, "payvault: account_updater.submit: journal: disk full")
		sent := s.numbers()
		for i, b := range got {
			assert.Equal(t, i, b.Index)
			if wasSent := slices.Contains(sent, i); wasSent {
				assert.NoError(t, b.Err)
			} else {
				assertLeftOut(t, b, true)
			}
		}
		if test.step == "begin" {
			assert.NotContains(t, sent, test.at)
			assert.Less(t, slices.Max(append(sent, -1)), test.at+4, "a batch was begun after the failure")
		}
	})
}

// TestJournalThatFailsAfterARefusal checks that an error of End becomes the reason for the stop, even if the walk had
// already stopped for another reason. Otherwise the caller would not learn that the journal may lack outcomes.
func TestJournalThatFailsAfterARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, nil)
		j.fail = func(step string, i int) error {
			if step == "end" && i == 1 {
				return errDisk
			}
			return nil
		}
		s := &fake{answer: func(r asked) (*http.Response, error) {
			if r.n == 1 {
				return nil, r.sleep(time.Second)
			}
			return service.Reply(http.StatusUnauthorized, `{"code":1}`), r.sleep(time.Millisecond) // batch 1 is sent before
		}}
		got, err := collect(s.submitAll(t, stream(500, nil), j.options(2)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopJournal), errDisk)
		service.AssertMatches(t, got[0].Err, payvault.ErrUnauthorized, payvault.ErrRejected)
		assert.Equal(t, payvault.BatchAccepted, got[1].Status)
	})
}

// TestJournalOfOtherCards checks that SubmitAll stops if a batch has another number of cards than in an earlier run,
// and does not send the batch.
func TestJournalOfOtherCards(t *testing.T) {
	t.Parallel()
	type test struct{ was, is int }
	forEach(t, []test{{350, 400}, {350, 320}, {350, 1950}}, func(t *testing.T, n test) {
		j := newJournal(t, nil)
		j.run(&fake{}, n.was)
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, r.sleep(time.Millisecond) }}
		got, err := collect(s.submitAll(t, stream(n.is, nil), j.options(3)))
		assertStopped(t, err, payvault.StopOtherCards)
		require.EqualError(t, err, "payvault: account_updater.submit: other cards: "+
			"the job had another number of cards in an earlier run, in batch 3")
		assert.NotContains(t, s.numbers(), 3)
		for _, b := range got[3:] {
			if wasSent := slices.Contains(s.numbers(), b.Index); !wasSent {
				assertLeftOut(t, b, true)
			}
		}
		assert.LessOrEqual(t, len(s.seen), 2, "only batches that were begun at the same time are sent")
	})
}

// TestJournalOutlivesTheContext checks that SubmitAll with a journal still records the outcomes of requests in flight
// if its context ends or the caller leaves the loop. It sends no further request, not even for a batch that got a 429.
func TestJournalOutlivesTheContext(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"end", "leave", "end while refused"}, func(t *testing.T, how string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		// Three requests are in flight at a time. Batches 0 to 4 are accepted at once. Then batches 5, 6 and 7 are in flight.
		// They are accepted after 10 seconds. In the last case, only batch 5 is accepted, and 6 and 7 get a 429.
		accepted := map[string]int{"end": 8, "leave": 8, "end while refused": 6}[how]
		j := newJournal(t, nil)
		s := &fake{answer: func(r asked) (*http.Response, error) {
			switch {
			case r.n < 5:
				return nil, nil
			case r.n < accepted:
				return nil, r.sleep(10 * time.Second) // fails if the context of the request ends
			}
			<-time.After(time.Second)
			return refusal("20")
		}}
		for b, err := range s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), j.options(3)) {
			if err != nil {
				assertStopped(t, err, payvault.StopContext)
				break
			}
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
		// A second run sends only the batches that were not accepted.
		s.answer, s.cards = nil, nil
		assert.Equal(t, append(earlier(accepted*100), batchesOf(1950)[accepted:]...), j.run(s, 1950))
		s.assertSent(t, accepted*100, 1950)
	})
}

// TestJournalOfABatchThatWaits checks that a batch that waits after a 429 is recorded as not sent, and that SubmitAll
// calls Begin again after the wait, because another run may have sent the batch meanwhile.
func TestJournalOfABatchThatWaits(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"sent by another run", "the journal fails"}, func(t *testing.T, meanwhile string) {
		s, j := refusing(times(1, "20")...), newJournal(t, nil)
		time.AfterFunc(10*time.Second, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			if ended := j.known[0].Outcome; assert.NotNil(t, ended, "it is begun while it waits") {
				assert.Equal(t, payvault.BatchNotSent, ended.Status, "it is recorded as turned away")
			}
			if meanwhile == "the journal fails" {
				j.fail = func(step string, _ int) error { return map[string]error{"begin": errDisk}[step] }
			}
			j.known[0] = payvault.BatchState{
				Begun: true, Outcome: &payvault.BatchOutcome{Status: payvault.BatchAccepted, RequestID: "REQ0"},
			}
		})
		got, err := collect(s.submitAll(t, stream(100, nil), j.options(3)))
		assert.Len(t, s.seen, 1)
		assert.Equal(t, payvault.BatchAccepted, j.outcome(0).Status, "the record of the other run stays")
		if meanwhile == "sent by another run" {
			require.NoError(t, err)
			assert.Equal(t, earlier(100), got)
			return
		}
		require.ErrorIs(t, assertStopped(t, err, payvault.StopJournal), errDisk)
		assertLeftOut(t, got[0], true)
	})
}

// TestJournalOfABatchWithoutAConnection checks a batch whose attempts fail to connect. While the batch waits for its
// next attempt, it is recorded as not sent. So a kill during the wait leaves no batch of unknown outcome. But if an
// attempt may have performed the batch, it stays begun until its call ends.
func TestJournalOfABatchWithoutAConnection(t *testing.T) {
	t.Parallel()
	forEach(t, []bool{false, true}, func(t *testing.T, isPerformed bool) {
		j := newJournal(t, nil)
		var steps []string
		var failed time.Time
		attempt := func() {
			j.mu.Lock() // fail has it too
			defer j.mu.Unlock()
			steps = append(steps, "attempt")
			assert.Equal(t, payvault.BatchState{Begun: true}, j.known[0])
			failed = time.Now()
		}
		j.fail = func(step string, _ int) error {
			steps = append(steps, step)
			assert.True(t, step == "begin" || time.Now().Equal(failed), "the end comes before the wait")
			return nil
		}
		s := &fake{answer: func(asked) (*http.Response, error) {
			attempt()
			return service.Reply(http.StatusBadGateway, ``), nil
		}}
		options := []payvault.Option{service.Over(&http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				attempt()
				return nil, errors.New("no route to the host")
			},
		})}
		want := []string{"begin", "attempt", "end", "begin", "attempt", "end", "begin", "attempt", "end"}
		if isPerformed {
			options, want = nil, []string{"begin", "attempt", "attempt", "attempt", "end"}
		}
		submit := s.client(t, options...).AccountUpdater.SubmitAll
		_, err := collect(submit(t.Context(), stream(100, nil), j.options(1),
			payvault.WithReplay(), payvault.WithMaxAttempts(3)))
		require.NoError(t, err)
		assert.Equal(t, want, steps)
	})
}

// TestStoppedWalkDoesNotWait checks that a batch stops waiting for its next attempt when the context ends. The outcome
// of the batch is unknown, because the first attempt may have performed the batch.
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
		seq := s.client(t).AccountUpdater.SubmitAll(ctx, stream(100, nil), j.options(1), payvault.WithReplay())
		got, err := collect(seq)
		assert.Equal(t, time.Second, time.Since(s.start))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.Canceled)
		require.ErrorIs(t, got[0].Err, payvault.ErrStopped)
		require.ErrorContains(t, got[0].Err, "status 503 Service Unavailable: the walk was stopped (outcome unknown)")
		assert.Equal(t, payvault.BatchUnknown, j.outcome(0).Status)
	})
}

// TestStoppedWalkEndsBegin checks that a walk that stops ends the context of a Begin that waits, for example for the
// lease of another run.
func TestStoppedWalkEndsBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, j := fake{answer: gives(401, ``, 0)}, newJournal(t, nil)
		j.hang = true
		_, err := collect(s.submitAll(t, stream(200, nil), j.options(2)))
		assertStopped(t, err, payvault.StopKey, payvault.ErrUnauthorized)
	})
}

// TestJournalOfAContextThatEndsLate checks that batches that are in flight when the context ends are still accepted,
// and that no further batch is sent.
func TestJournalOfAContextThatEndsLate(t *testing.T) {
	t.Parallel()
	forEach(t, []int{300, 400}, func(t *testing.T, n int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &fake{answer: func(r asked) (*http.Response, error) { return nil, r.sleep(2 * time.Second) }}
		j := newJournal(t, nil)
		got, err := collect(s.client(t).AccountUpdater.SubmitAll(ctx, stream(n, nil), j.options(3)))
		assert.Equal(t, batchesOf(300), got[:3])
		if n == 300 {
			require.NoError(t, err, "nothing was left to send")
			assert.Len(t, got, 3)
		} else {
			require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.DeadlineExceeded)
			assertLeftOut(t, got[3], true)
		}
		s.assertSent(t, 0, 300)
	})
}

// TestContextThatEndsInAnAttempt checks that a batch without a journal counts as not sent if the context ends while the
// key source is running or the connection is being dialed. The key source may return the error of the context.
func TestContextThatEndsInAnAttempt(t *testing.T) {
	t.Parallel()
	forEach(t, []string{"key", "no key", "dial"}, func(t *testing.T, slow string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		option := payvault.WithKeySource(func(ctx context.Context) (string, error) {
			<-time.After(2 * time.Second)
			if slow == "no key" {
				return "", ctx.Err()
			}
			return service.APIKey, nil
		})
		if slow == "dial" {
			option = service.Over(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				<-time.After(2 * time.Second)
				return nil, errDisk
			}})
		}
		s := &fake{}
		updater := s.client(t, option).AccountUpdater
		got, err := collect(updater.SubmitAll(ctx, stream(100, nil), nil, payvault.WithMaxAttempts(1)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.DeadlineExceeded)
		assertLeftOut(t, got[0], false)
		assert.Empty(t, s.seen)
		<-time.After(2 * time.Second) // net/http dials to the end
	})
}

// TestContextThatEndsInBegin checks a context that ends while the journal records a batch as begun, before the first
// attempt or again after a 429. The batch must count as not sent. The reason for the stop must be the context and not
// the 429. Observers get a call only if the batch had an attempt.
func TestContextThatEndsInBegin(t *testing.T) {
	t.Parallel()
	forEach(t, []int{0, 1}, func(t *testing.T, attempts int) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s, j, begins, calls := refusing(times(1, "20")...), newJournal(t, nil), 0, 0
		j.fail = func(step string, _ int) error {
			if step == "begin" {
				begins++
			}
			if begins > attempts {
				cancel()
			}
			return nil
		}
		c := s.client(t, payvault.WithObserver(payvault.Observer{
			End: func(context.Context, payvault.CallInfo, payvault.CallResult) { calls++ },
		}))
		got, err := collect(c.AccountUpdater.SubmitAll(ctx, stream(100, nil), j.options(1)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.Canceled)
		assertLeftOut(t, got[0], true)
		assert.Equal(t, payvault.BatchNotSent, j.outcome(0).Status)
		assert.Len(t, s.seen, attempts)
		assert.Equal(t, attempts, calls)
	})
}

// TestJournalThatHangs checks that the context of Begin ends with the context of SubmitAll, and that a batch is not
// sent if its Begin has not returned by then.
func TestJournalThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		j := newJournal(t, state{0: {Begun: true}})
		j.hang = true
		var s fake
		got, err := collect(s.client(t).AccountUpdater.SubmitAll(ctx, stream(1950, nil), j.options(0)))
		require.ErrorIs(t, assertStopped(t, err, payvault.StopContext), context.DeadlineExceeded)
		assert.True(t, got[0].FromJournal)
		require.EqualError(t, got[0].Err,
			"payvault: account_updater.submit: an earlier run began the batch and did not end it (outcome unknown)")
		for _, b := range got[1:] {
			assertLeftOut(t, b, true)
		}
		assert.Empty(t, s.seen)
	})
}
