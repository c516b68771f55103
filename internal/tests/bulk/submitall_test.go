// Package bulk holds SubmitAll, its journal, and the pace and budget of calls in bulk.
package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"slices"
	"strconv"
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

// updater is a RoundTripper that stands for the account updater. It keeps which cards it was sent.
type updater struct {
	before func(req *http.Request, batch int) (*http.Response, error) // if it gives neither, the batch is accepted

	mu             sync.Mutex
	cards          map[string]int // how often each card came, by its ID
	sizes          map[int]int    // of the batches, by their index
	requests       int
	inFlight, most int
}

func (u *updater) RoundTrip(req *http.Request) (*http.Response, error) {
	trace := httptrace.ContextClientTrace(req.Context())
	trace.GetConn("service.test:443")
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	trace.GotConn(httptrace.GotConnInfo{})
	batch, err := u.take(req)
	if err != nil {
		return nil, err
	}
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.inFlight--
	}()
	if u.before != nil {
		if resp, err := u.before(req, batch); resp != nil || err != nil {
			return resp, err
		}
	}
	return jsonAnswer(http.StatusOK, fmt.Sprintf(`{"code":0,"message":"Success","data":{"request_id":"REQ%d"}}`, batch)),
		nil
}

func (u *updater) take(req *http.Request) (batch int, err error) {
	var body struct {
		Data []struct {
			CardID string `json:"card_id"`
		} `json:"data"`
	}
	if err := errors.Join(json.NewDecoder(req.Body).Decode(&body), req.Body.Close()); err != nil {
		return 0, err
	}
	first, err := strconv.Atoi(strings.TrimPrefix(body.Data[0].CardID, "C"))
	if err != nil {
		return 0, err
	}
	batch = first / payvault.MaxAccountUpdaterCards
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cards == nil {
		u.cards, u.sizes = map[string]int{}, map[int]int{}
	}
	for _, card := range body.Data {
		u.cards[card.CardID]++
	}
	u.sizes[batch] = len(body.Data)
	u.requests++
	u.inFlight++
	u.most = max(u.most, u.inFlight)
	return batch, nil
}

func (u *updater) flying() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.inFlight
}

// assertOnce checks that exactly these cards came, each once.
func (u *updater) assertOnce(t *testing.T, ranges ...[2]int) {
	t.Helper()
	want := map[string]int{}
	for _, r := range ranges {
		for i := r[0]; i < r[1]; i++ {
			want["C"+strconv.Itoa(i)] = 1
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(want) == 0 {
		assert.Empty(t, u.cards)
		return
	}
	assert.Equal(t, want, u.cards)
}

func jsonAnswer(status int, body string, header ...string) *http.Response {
	resp := &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	for pair := range slices.Chunk(header, 2) {
		resp.Header.Set(pair[0], pair[1])
	}
	return resp
}

// cardStream is a stream of n cards, of which some are invalid. It counts how many were taken.
func cardStream(n int, taken *atomic.Int64, invalid ...int) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		bad := map[int]bool{}
		for _, i := range invalid {
			bad[i] = true
		}
		for i := range n {
			if taken != nil {
				taken.Add(1)
			}
			card := payvault.AccountUpdaterCard{
				CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229",
				CardID: "C" + strconv.Itoa(i),
			}
			if bad[i] {
				card.ExpDate = "1329"
			}
			if !yield(card) {
				return
			}
		}
	}
}

// batchesOf are the batches of cards, all of them accepted.
func batchesOf(n int) []payvault.AccountUpdaterBatch {
	batches := []payvault.AccountUpdaterBatch{}
	for i := 0; i*100 < n; i++ {
		batches = append(batches, payvault.AccountUpdaterBatch{
			Index: i, Start: i * 100, End: min(i*100+100, n), RequestID: "REQ" + strconv.Itoa(i),
		})
	}
	return batches
}

func collect(seq iter.Seq[*payvault.AccountUpdaterBatch]) []payvault.AccountUpdaterBatch {
	batches := []payvault.AccountUpdaterBatch{}
	for batch := range seq {
		batches = append(batches, *batch)
	}
	return batches
}

func TestSubmitAll(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 99, 100, 101, 200, 250, 1234} {
		for _, concurrency := range []int{-1, 0, 1, 3, 50} {
			t.Run(fmt.Sprintf("%d cards, concurrency %d", n, concurrency), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var u updater
					options := &payvault.SubmitAllOptions{Concurrency: concurrency}
					seq := cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(n, nil), options)
					synctest.Wait()
					assert.Zero(t, u.requests, "nothing is sent before it is ranged over")
					assert.Equal(t, batchesOf(n), collect(seq))
					u.assertOnce(t, [2]int{0, n})
					if concurrency < 1 {
						concurrency = 4
					}
					assert.LessOrEqual(t, u.most, concurrency)
					assert.Zero(t, u.flying())
				})
			})
		}
	}
}

func TestSubmitAllWithoutOptions(t *testing.T) {
	t.Parallel()
	var u updater
	assert.Equal(t, batchesOf(750),
		collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(750, nil), nil)))
	assert.LessOrEqual(t, u.most, 4)
}

// Later changes of the options do not matter, and each walk starts the stream from its beginning.
func TestSubmitAllAgain(t *testing.T) {
	t.Parallel()
	var u updater
	options := &payvault.SubmitAllOptions{Concurrency: 2}
	seq := cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(250, nil), options)
	*options = payvault.SubmitAllOptions{Concurrency: 9, Job: "other", Journal: newJournal(t, nil)}
	for range 2 {
		u.cards = nil
		assert.Equal(t, batchesOf(250), collect(seq))
		u.assertOnce(t, [2]int{0, 250})
	}
	assert.LessOrEqual(t, u.most, 2)
}

// TestSubmitAllWithASlowBatch holds the oldest batch back while the younger ones go through.
func TestSubmitAllWithASlowBatch(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 2, 4, 7} {
		t.Run(strconv.Itoa(concurrency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				gates := newGates(0)
				u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
					select {
					case <-gates[batch]:
						return nil, nil
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
				}}
				done := make(chan []payvault.AccountUpdaterBatch)
				go func() {
					done <- collect(cannedClient(t, &u).AccountUpdater.SubmitAll(
						t.Context(), cardStream(1950, nil), &payvault.SubmitAllOptions{Concurrency: concurrency}))
				}()
				synctest.Wait()
				assert.Equal(t, concurrency, u.flying())
				ahead := 2*concurrency - 1
				for ended := 1; ended < ahead; ended++ {
					close(gates[ended])
					synctest.Wait()
					assert.Equal(t, min(concurrency, ahead-ended), u.flying(), "each batch that ends makes room for another")
				}
				close(gates[0])
				for batch := max(ahead, 1); batch < 20; batch++ {
					close(gates[batch])
				}
				assert.Equal(t, batchesOf(1950), <-done)
				assert.Equal(t, concurrency, u.most)
				u.assertOnce(t, [2]int{0, 1950})
			})
		})
	}
}

func TestSubmitAllReadsAhead(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 3, 8} {
		t.Run(strconv.Itoa(concurrency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var u updater
				var taken atomic.Int64
				options := &payvault.SubmitAllOptions{Concurrency: concurrency}
				for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(2000, &taken), options) {
					synctest.Wait()
					assert.LessOrEqual(t, taken.Load(), int64(batch.Index+2*concurrency+1)*100)
					assert.GreaterOrEqual(t, taken.Load(), int64(batch.End))
				}
				assert.EqualValues(t, 2000, taken.Load())
			})
		})
	}
}

func TestSubmitAllStopsOnBreak(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 3, 8} {
		for _, after := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("concurrency %d, after %d", concurrency, after), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					gates := newGates(after)
					u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
						select {
						case <-gates[batch]:
							return nil, nil
						case <-req.Context().Done():
							return nil, req.Context().Err()
						}
					}}
					var taken atomic.Int64
					seen := 0
					options := &payvault.SubmitAllOptions{Concurrency: concurrency}
					for range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(2000, &taken), options) {
						if seen++; seen == after {
							break
						}
					}
					assert.Zero(t, u.flying(), "nothing is in flight after the loop")
					most := int64(after+2*concurrency) * 100
					assert.LessOrEqual(t, taken.Load(), most)
					requests, read := u.requests, taken.Load()
					synctest.Wait()
					assert.Equal(t, requests, u.requests, "nothing is sent after the loop")
					assert.Equal(t, read, taken.Load(), "nothing is read after the loop")
					for card, times := range u.cards {
						assert.Equal(t, 1, times, card)
					}
				})
			})
		}
	}
}

func TestSubmitAllWhoseConsumerPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
			if batch > 0 {
				<-req.Context().Done()
			}
			return nil, req.Context().Err()
		}}
		assert.PanicsWithValue(t, "consumer", func() {
			for range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(2000, nil), nil) {
				synctest.Wait()
				panic("consumer")
			}
		})
		assert.Zero(t, u.flying())
		assert.LessOrEqual(t, u.requests, 7)
	})
}

// TestSubmitAllWhoseStreamPanics: what was read before is sent and yielded.
func TestSubmitAllWhoseStreamPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u updater
		got := []payvault.AccountUpdaterBatch{}
		assert.PanicsWithValue(t, "stream", func() {
			for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(),
				then(250, func() { panic("stream") }), nil) {
				got = append(got, *batch)
			}
		})
		assert.Equal(t, batchesOf(250)[:2], got)
		assert.Zero(t, u.flying())
	})
}

// TestSubmitAllWhoseStreamExits: a test that fails within its stream does so.
func TestSubmitAllWhoseStreamExits(t *testing.T) {
	t.Parallel()
	var u updater
	assert.Panics(t, func() {
		collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), then(250, runtime.Goexit), nil))
	})
	u.assertOnce(t, [2]int{0, 200})
}

func TestSubmitAllWhoseStreamPanicsOnBreak(t *testing.T) {
	t.Parallel()
	var u updater
	broken := func(yield func(payvault.AccountUpdaterCard) bool) {
		defer func() { panic("stream") }()
		cardStream(2000, nil)(yield)
	}
	assert.PanicsWithValue(t, "stream", func() {
		for range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), broken, nil) {
			break
		}
	})
}

// then is a stream that does something at its end.
func then(n int, do func()) iter.Seq[payvault.AccountUpdaterCard] {
	return func(yield func(payvault.AccountUpdaterCard) bool) {
		for card := range cardStream(n, nil) {
			if !yield(card) {
				return
			}
		}
		do()
	}
}

// TestSubmitAllOfASlowStream: each batch is there when it is accepted, not when the next one has been read.
func TestSubmitAllOfASlowStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pause = 3 * time.Millisecond
		slow := func(yield func(payvault.AccountUpdaterCard) bool) {
			for card := range cardStream(1000, nil) {
				<-time.After(pause)
				if !yield(card) {
					return
				}
			}
		}
		var u updater
		start := time.Now()
		for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), slow, nil) {
			require.NoError(t, batch.Err)
			assert.Equal(t, time.Duration(batch.End)*pause, time.Since(start))
		}
	})
}

// TestSubmitAllOfABlockedStream: it holds up neither the batches before, nor the end of the context, nor that of the
// loop.
func TestSubmitAllOfABlockedStream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hang, leave bool
	}{
		"context ends":                    {},
		"context ends, batches in flight": {hang: true},
		"loop is left":                    {leave: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
					if test.hang && batch == 1 {
						<-req.Context().Done()
					}
					return nil, req.Context().Err()
				}}
				release, taken := make(chan struct{}), true
				blocked := func(yield func(payvault.AccountUpdaterCard) bool) {
					for card := range cardStream(250, nil) {
						if !yield(card) {
							return
						}
					}
					<-release
					taken = yield(payvault.AccountUpdaterCard{})
				}
				var got []payvault.AccountUpdaterBatch
				time.AfterFunc(time.Hour, cancel)
				start := time.Now()
				for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(ctx, blocked, nil) {
					if got = append(got, *batch); len(got) == 1 || len(got) == 2 && !test.hang {
						assert.Equal(t, start, time.Now(), "it does not wait for the stream")
					}
					if test.leave && len(got) == 2 {
						break
					}
				}
				assert.Equal(t, batchesOf(200)[0], got[0])
				require.GreaterOrEqual(t, len(got), 2)
				if test.hang {
					require.ErrorIs(t, got[1].Err, payvault.ErrOutcomeUnknown)
				} else {
					assert.Equal(t, batchesOf(200)[1], got[1])
				}
				if test.leave {
					assert.Equal(t, time.Second, time.Since(start))
				} else {
					assert.Equal(t, time.Hour+time.Second, time.Since(start))
					require.Len(t, got, 3)
					last := got[2]
					require.ErrorIs(t, last.Err, context.Canceled)
					assert.Equal(t, payvault.NotSent, service.AsError(t, last.Err).Delivery)
					last.Err = nil
					assert.Equal(t, payvault.AccountUpdaterBatch{Index: 2, Start: 200, End: 200}, last)
				}
				close(release)
				synctest.Wait()
				assert.False(t, taken, "the stream is told when it comes back")
				u.assertOnce(t, [2]int{0, 200})
			})
		})
	}
}

// TestSubmitAllWhoseStreamFails: it ends the context, so that what it has given is not taken for all there is.
func TestSubmitAllWhoseStreamFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("disk")
		for _, n := range []int{0, 200, 250} {
			ctx, cancel := context.WithCancelCause(t.Context())
			var u updater
			j := newJournal(t, nil)
			got := collect(cannedClient(t, &u).AccountUpdater.SubmitAll(ctx, then(n, func() {
				synctest.Wait()
				cancel(failure)
			}), j.options(4)))
			assert.Len(t, j.known, n/100, "the end is not recorded")
			assert.Equal(t, batchesOf(n/100*100), got[:n/100])
			require.Len(t, got, n/100+1)
			last := got[n/100]
			require.ErrorIs(t, last.Err, failure)
			assert.Equal(t, n/100*100, last.Start)
			assert.Equal(t, n, last.End)
		}
	})
}

func TestSubmitAllWithBatchesThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
			switch batch {
			case 1:
				return jsonAnswer(http.StatusOK, `{"code":5,"message":"Example refusal"}`), nil
			case 3:
				return nil, io.ErrUnexpectedEOF // after the request was read
			case 4:
				return jsonAnswer(http.StatusBadGateway, "<html>"), nil
			case 5:
				return jsonAnswer(http.StatusOK, `{"code":0,"data":{}}`), nil
			}
			return nil, nil
		}}
		got := collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(850, nil, 210, 299), nil))
		require.Len(t, got, 9)
		want := batchesOf(850)
		for i, batch := range got {
			assert.Equal(t, i, batch.Index)
			assert.Equal(t, want[i].Start, batch.Start)
			assert.Equal(t, want[i].End, batch.End)
			switch i {
			case 1:
				assert.ErrorIs(t, batch.Err, payvault.ErrRejected)
				assert.Equal(t, payvault.Answered, service.AsError(t, batch.Err).Delivery)
			case 2:
				service.AssertInvalid(t, batch.Err, payvault.OpAccountUpdaterSubmit, map[string][]string{
					"data[10].exp_date": {"is not of the form MMYY"}, "data[99].exp_date": {"is not of the form MMYY"},
				})
			case 3, 4, 5:
				assert.ErrorIs(t, batch.Err, payvault.ErrOutcomeUnknown, "batch %d", i)
				assert.Equal(t, payvault.Unknown, service.AsError(t, batch.Err).Delivery)
				assert.Equal(t, 1, service.AsError(t, batch.Err).Attempts)
				assert.False(t, payvault.SafeToRetry(batch.Err))
			default:
				assert.NoError(t, batch.Err)
				assert.Equal(t, want[i].RequestID, batch.RequestID)
				continue
			}
			assert.Empty(t, batch.RequestID)
		}
		u.assertOnce(t, [2]int{0, 200}, [2]int{300, 850})
	})
}

func TestSubmitAllRepeatsWhatWasTurnedAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		failed := map[int]int{}
		u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if failed[batch]++; failed[batch] < 3 {
				return jsonAnswer(http.StatusTooManyRequests, `{}`, "Retry-After", "2"), nil
			}
			return nil, nil
		}}
		assert.Equal(t, batchesOf(450),
			collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(450, nil), nil)))
		assert.Equal(t, 15, u.requests)
		assert.LessOrEqual(t, u.most, 4)
	})
}

func TestSubmitAllWhoseContextEnds(t *testing.T) {
	t.Parallel()
	for _, after := range []int{0, 1, 5} {
		t.Run(fmt.Sprintf("after %d", after), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if after == 0 {
					cancel()
				}
				gates := newGates(after)
				u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
					select {
					case <-gates[batch]:
						return nil, nil
					case <-req.Context().Done():
						return nil, req.Context().Err()
					}
				}}
				sent, total := 0, 0
				want := batchesOf(1950)
				for batch := range cannedClient(t, &u).AccountUpdater.SubmitAll(ctx, cardStream(1950, nil), nil) {
					if total++; total == after {
						synctest.Wait() // the next ones are in flight
						cancel()
						sent = u.requests
					}
					assert.Equal(t, want[batch.Index].Start, batch.Start)
					assert.Equal(t, want[batch.Index].End, batch.End)
					assert.Equal(t, total-1, batch.Index)
					switch {
					case batch.Index < after:
						assert.NoError(t, batch.Err)
						continue
					case batch.Index < sent:
						assert.Equal(t, payvault.Unknown, service.AsError(t, batch.Err).Delivery, "batch %d was in flight", batch.Index)
					default:
						assert.Equal(t, payvault.NotSent, service.AsError(t, batch.Err).Delivery, "batch %d", batch.Index)
						assert.True(t, payvault.SafeToRetry(batch.Err))
					}
					assert.ErrorIs(t, batch.Err, context.Canceled)
					assert.Empty(t, batch.RequestID)
				}
				assert.Equal(t, 20, total, "every batch is yielded")
				assert.Equal(t, sent, u.requests, "nothing is sent after the end of the context")
				u.assertOnce(t, [2]int{0, sent * 100})
			})
		})
	}
}

func TestSubmitAllWithResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
			if batch == 3 {
				return jsonAnswer(http.StatusConflict, "<html>batch 3</html>"), nil
			}
			return nil, nil
		}}
		var raw payvault.Response
		callOptions := append(make([]payvault.CallOption, 0, 4), payvault.WithResponse(&raw))
		client := cannedClient(t, &u)
		for batch := range client.AccountUpdater.SubmitAll(t.Context(), cardStream(1000, nil, 510), nil, callOptions...) {
			synctest.Wait() // later batches have been answered
			switch batch.Index {
			case 3:
				assert.Equal(t, http.StatusConflict, raw.StatusCode)
				assert.Equal(t, "<html>batch 3</html>", string(raw.Body))
			case 5: // invalid: not sent
				assert.Zero(t, raw.StatusCode)
				assert.Zero(t, raw.Attempts)
				assert.Empty(t, raw.Body)
			default:
				assert.Equal(t, http.StatusOK, raw.StatusCode)
				assert.Contains(t, string(raw.Body), `"`+batch.RequestID+`"`)
			}
		}
	})
}

func TestSubmitAllForMerchant(t *testing.T) {
	t.Parallel()
	var u updater
	got := collect(cannedClient(t, &u).ForMerchant(7).AccountUpdater.SubmitAll(t.Context(), cardStream(250, nil), nil))
	require.Len(t, got, 1)
	service.AssertMatches(t, got[0].Err, payvault.ErrMerchantNotSupported)
	assert.Zero(t, u.requests)
}

func TestSubmitAllShared(t *testing.T) {
	t.Parallel()
	var u updater
	options := &payvault.SubmitAllOptions{Concurrency: 3}
	callOptions := append(make([]payvault.CallOption, 0, 8), payvault.WithAttempts(2))
	client := cannedClient(t, &u)
	seq := client.AccountUpdater.SubmitAll(t.Context(), cardStream(550, nil), options, callOptions...)
	var running sync.WaitGroup
	for range 6 {
		running.Go(func() { assert.Equal(t, batchesOf(550), collect(seq)) })
		running.Go(func() {
			assert.Equal(t, batchesOf(350), collect(client.AccountUpdater.SubmitAll(t.Context(), cardStream(350, nil),
				&payvault.SubmitAllOptions{Concurrency: 2}, callOptions...)))
		})
	}
	running.Wait()
	assert.Equal(t, &payvault.SubmitAllOptions{Concurrency: 3}, options)
}

// acceptAll answers every submission without looking at it.
type acceptAll struct{}

func (acceptAll) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"REQ"}}`), nil
}

//nolint:paralleltest // it measures the memory of the process
func TestSubmitAllMemoryDoesNotGrow(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var raw payvault.Response
	client := cannedClient(t, acceptAll{})
	var early, most uint64
	batches := 0
	for batch := range client.AccountUpdater.SubmitAll(t.Context(), cardStream(200_000, nil), nil,
		payvault.WithResponse(&raw)) {
		require.NoError(t, batch.Err)
		batches++
		switch {
		case batch.Index == 100:
			early = heap()
		case batch.Index%190 == 0:
			most = max(most, heap())
		}
	}
	assert.Equal(t, 2000, batches)
	assert.Less(t, most, early+2<<20, "200,000 cards need no more memory than 10,000")
}

// TestSubmitAllOfASlowLoop: a walk that is over still yields every batch, however long the loop takes for each.
func TestSubmitAllOfASlowLoop(t *testing.T) {
	t.Parallel()
	for range 20 { // what two channels are ready for is drawn
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			for batch := range cannedClient(t, &updater{}).AccountUpdater.SubmitAll(ctx, cardStream(1950, nil), nil) {
				assert.Equal(t, n, batch.Index)
				n++
				cancel()
				<-time.After(2 * time.Second)
			}
			assert.Equal(t, 20, n)
		})
	}
}

// TestSubmitAllOfALostService: when nothing but unknown outcomes comes, the walk ends before all batches have one.
func TestSubmitAllOfALostService(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ concurrency, most int }{{1, 10}, {4, 10}, {8, 16}} {
		synctest.Test(t, func(t *testing.T) {
			back := false
			u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
				if <-time.After(time.Millisecond); back && batch%4 == 0 {
					return nil, nil
				}
				return jsonAnswer(http.StatusServiceUnavailable, ``), nil
			}}
			submit := func() []payvault.AccountUpdaterBatch {
				return collect(cannedClient(t, &u).AccountUpdater.SubmitAll(
					t.Context(), cardStream(10_000, nil), &payvault.SubmitAllOptions{Concurrency: test.concurrency}))
			}
			got := submit()
			require.Len(t, got, 100)
			assert.GreaterOrEqual(t, u.requests, test.most)
			assert.LessOrEqual(t, u.requests, test.most+test.concurrency-1, "and those in flight")
			for i, batch := range got {
				if i < u.requests {
					require.ErrorIs(t, batch.Err, payvault.ErrOutcomeUnknown)
					continue
				}
				require.NotErrorIs(t, batch.Err, payvault.ErrOutcomeUnknown)
				require.EqualError(t, batch.Err, fmt.Sprintf(
					"payvault: account_updater.submit: the last %d batches are of unknown outcome (not sent)", test.most))
				assert.True(t, payvault.SafeToRetry(batch.Err))
			}
			back, u.requests = true, 0
			submit()
			assert.Equal(t, 100, u.requests, "an answer now and then is enough")
		})
	}
}

// TestSubmitAllWhoseJournalOutlives: the end of the context cuts nothing off that is in flight, and ends what waits for
// its turn.
func TestSubmitAllWhoseJournalOutlives(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			u := updater{before: func(req *http.Request, batch int) (*http.Response, error) {
				if refused && batch > 0 {
					return jsonAnswer(http.StatusTooManyRequests, ``, "Retry-After", "20"), nil
				}
				select {
				case <-time.After(10 * time.Second):
				case <-req.Context().Done():
				}
				return nil, req.Context().Err()
			}}
			time.AfterFunc(5*time.Second, cancel)
			start := time.Now()
			j := newJournal(t, nil)
			got := collect(cannedClient(t, &u).AccountUpdater.SubmitAll(ctx, cardStream(1950, nil), j.options(4)))
			require.Len(t, got, 20)
			assert.Equal(t, 10*time.Second, time.Since(start))
			for i, batch := range got {
				if i == 0 || i < 4 && !refused {
					require.NoError(t, batch.Err)
					continue
				}
				if i >= 4 {
					require.ErrorIs(t, batch.Err, context.Canceled)
				}
				assert.NotErrorIs(t, batch.Err, payvault.ErrOutcomeUnknown)
				if j.known[i].Begun {
					assert.Equal(t, payvault.BatchNotSent, j.known[i].Outcome.Status)
				}
			}
			assert.LessOrEqual(t, u.requests, 4)
		})
	}
}

// TestSubmitAllOfInvalidArguments: they are refused once, and nothing is read.
func TestSubmitAllOfInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ctx     context.Context //nolint:containedctx // an argument
		options payvault.SubmitAllOptions
		opts    []payvault.CallOption
		want    map[string][]string
	}{
		"no context": {want: map[string][]string{"context": {"is nil"}}},
		"no job": {
			ctx: t.Context(), options: payvault.SubmitAllOptions{Journal: newJournal(t, nil)},
			want: map[string][]string{"Job": {"is required with a Journal"}},
		},
		"no journal": {
			ctx: t.Context(), options: payvault.SubmitAllOptions{Job: job},
			want: map[string][]string{"Journal": {"is required with a Job"}},
		},
		"option": {
			ctx: t.Context(), opts: []payvault.CallOption{payvault.WithAttempts(-1)},
			want: map[string][]string{"WithAttempts": {"is not positive"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var u updater
			var taken atomic.Int64
			client := cannedClient(t, &u)
			seq := client.AccountUpdater.SubmitAll(test.ctx, cardStream(1950, &taken), &test.options, test.opts...)
			for range 2 {
				got := collect(seq)
				require.Len(t, got, 1)
				service.AssertInvalid(t, got[0].Err, payvault.OpAccountUpdaterSubmit, test.want)
			}
			assert.Zero(t, taken.Load())
			assert.Zero(t, u.requests)
		})
	}
}

func TestSubmitAllWithTheHighestConcurrency(t *testing.T) {
	t.Parallel()
	var u updater
	options := &payvault.SubmitAllOptions{Concurrency: math.MaxInt}
	assert.Equal(t, batchesOf(1950),
		collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(1950, nil), options)))
}

// TestSubmitAllWithAWrongKey: one that the service does not take is not tried on a million cards.
func TestSubmitAllWithAWrongKey(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{401: payvault.ErrUnauthorized, 403: payvault.ErrForbidden} {
		u := updater{before: func(*http.Request, int) (*http.Response, error) { return jsonAnswer(status, ``), nil }}
		got := collect(cannedClient(t, &u).AccountUpdater.SubmitAll(t.Context(), cardStream(1950, nil), nil))
		require.Len(t, got, 20)
		assert.LessOrEqual(t, u.requests, 4)
		for _, batch := range got {
			require.ErrorIs(t, batch.Err, want)
			if _, sent := u.sizes[batch.Index]; !sent {
				assert.True(t, payvault.SafeToRetry(batch.Err))
				assert.ErrorContains(t, batch.Err, "another request was refused (not sent)")
			}
		}
	}
}

// TestSubmitAllOfABrokenTransport: what the caller's own code does in the goroutine of a batch comes to the loop.
func TestSubmitAllOfABrokenTransport(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(){"panic": func() { panic("broken") }, "exit": runtime.Goexit} {
		for _, place := range []string{"transport", "begin", "end"} {
			t.Run(name+" in "+place, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					u := updater{before: func(_ *http.Request, batch int) (*http.Response, error) {
						if place == "transport" && batch == 2 {
							broken()
						}
						return nil, nil
					}}
					j := newJournal(t, nil)
					j.fail = func(step string, batch int) error {
						if step == place && batch == 2 {
							broken()
						}
						return nil
					}
					n := 0
					defer func() {
						with := recover()
						if name == "panic" {
							assert.Equal(t, "broken", with)
						}
						assert.NotNil(t, with)
						assert.Equal(t, 20, n)
						assert.LessOrEqual(t, u.requests, 7)
					}()
					client := cannedClient(t, &u)
					for batch := range client.AccountUpdater.SubmitAll(t.Context(), cardStream(1950, nil), j.options(3)) {
						n++
						if batch.Index == 2 && place == "end" {
							assert.Equal(t, batchesOf(300)[2], *batch)
						} else if batch.Index == 2 || batch.Index > 8 {
							assert.Error(t, batch.Err)
						}
					}
				})
			})
		}
	}
}

// TestSubmitAllOfAStreamThatComesBack: it was given up, and gives more while the last batch is looked at.
func TestSubmitAllOfAStreamThatComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		wake, returned := make(chan struct{}), false
		stream := func(yield func(payvault.AccountUpdaterCard) bool) {
			cancel()
			<-wake
			cardStream(1000, nil)(yield)
			returned = true
		}
		options := &payvault.SubmitAllOptions{Concurrency: 1}
		for batch := range cannedClient(t, &updater{}).AccountUpdater.SubmitAll(ctx, stream, options) {
			require.ErrorIs(t, batch.Err, context.Canceled)
			close(wake)
			synctest.Wait()
		}
		synctest.Wait()
		assert.True(t, returned)
	})
}

// padded accepts every submission with an answer of 1 MB, of the first one late.
type padded struct {
	requests atomic.Int64
	release  chan struct{}
}

func (p *padded) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.requests.Add(1) == 1 {
		<-p.release
	}
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	return jsonAnswer(http.StatusOK, `{"code":0,"data":{"request_id":"REQ"}}`+strings.Repeat(" ", 1<<20)), nil
}

//nolint:paralleltest // it measures the memory of the process
func TestSubmitAllKeepsNoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := func() uint64 {
			var m runtime.MemStats
			for range 3 { // pools keep theirs for two
				runtime.GC()
			}
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		p := &padded{release: make(chan struct{})}
		before := heap()
		done := make(chan struct{})
		go func() {
			defer close(done)
			options := &payvault.SubmitAllOptions{Concurrency: 16}
			collect(cannedClient(t, p).AccountUpdater.SubmitAll(t.Context(), cardStream(5000, nil), options))
		}()
		<-time.After(time.Hour) // until then timers that were stopped may keep their calls
		assert.EqualValues(t, 31, p.requests.Load())
		assert.Less(t, heap(), before+8<<20, "30 answers of 1 MB have come")
		close(p.release)
		<-done
	})
}
