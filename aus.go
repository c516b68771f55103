package payvault

import (
	"context"
	"iter"
	"slices"
	"strconv"
)

// AccountUpdaterService submits cards so that card networks refresh their data (interface §2.7).
type AccountUpdaterService struct{ client *Client }

// MaxAccountUpdaterCards is how many cards one request takes (interface §8).
const MaxAccountUpdaterCards = 100

// AccountUpdaterCard is a card to refresh (interface §2.7). Number and expiration date are required.
type AccountUpdaterCard struct {
	CardNumber Secret `json:"card_number"`      // card number
	ExpDate    string `json:"exp_date"`         // MMYY; see the function ExpDate
	CardID     string `json:"card_id,omitzero"` // chosen by the caller; not the ID of a tokenized card
}

func (c *AccountUpdaterCard) check(p *problems) {
	require(p, "card_number", c.CardNumber)
	require(p, "exp_date", c.ExpDate)
	checkExpDate("exp_date", c.ExpDate, p)
}

// accountUpdaterBody is the body of a submission.
type accountUpdaterBody struct {
	Data []AccountUpdaterCard `json:"data"`
}

func (b accountUpdaterBody) prepare(_ *Client, p *problems) any {
	if n := len(b.Data); n < 1 || n > MaxAccountUpdaterCards {
		p.add("data", "has "+strconv.Itoa(n)+" cards; 1 to 100 are allowed")
		return nil
	}
	for i := range b.Data {
		var own problems
		b.Data[i].check(&own)
		for field, texts := range own {
			for _, text := range texts {
				p.add("data["+strconv.Itoa(i)+"]."+field, text)
			}
		}
	}
	return &b
}

// AccountUpdaterRequest is a submission that the service has accepted. Its typical turnaround is 3 to 4 business days
// (interface §8).
type AccountUpdaterRequest struct {
	RequestID string `json:"request_id,omitzero"` // identifies the submission
}

func (r *AccountUpdaterRequest) missing() string {
	if r.RequestID == "" {
		return "request_id"
	}
	return ""
}

// Submit submits 1 to 100 cards. Another number of cards, a card without a number, and an expiration date that is not
// MMYY fail before anything is sent.
//
// It is never repeated by itself once it may have reached the service; see [SafeToRetry].
//
// POST /platform/aus/add (interface §2.7; §4, rule 13).
func (s *AccountUpdaterService) Submit(ctx context.Context, cards []AccountUpdaterCard, opts ...CallOption) (*AccountUpdaterRequest, error) {
	return do[AccountUpdaterRequest](ctx, s, OpAccountUpdaterSubmit, send(accountUpdaterBody{cards}), opts)
}

// SubmitAllOptions sets how [AccountUpdaterService.SubmitAll] works through its cards.
type SubmitAllOptions struct {
	// Concurrency is how many requests are in flight; 4 if it is not positive, which leaves the service and the connections to
	// other callers and still sends 60,000 cards a second where a request takes 5 ms. More of them send in proportion: 32 eight
	// times as many. Up to 128, each finds an idle connection of the client's own pool.
	Concurrency int
	SkipBatches int // batches at the start of the stream that an earlier run has dealt with
}

const defaultConcurrency = 4

// AccountUpdaterBatch is what came of up to 100 cards of a stream.
type AccountUpdaterBatch struct {
	Index     int    // zero-based, counted from the start of the stream
	Start     int    // position of the first card in the stream, zero-based
	End       int    // position after the last card
	RequestID string // set if Err is nil
	Err       error  // an *Error; its Delivery tells whether the batch was sent
}

// SubmitAll cuts cards into requests of 100 and keeps some of them in flight. It yields every batch exactly once, in the
// order of the stream, with the RequestID or with the error. A batch whose outcome is unknown is never sent again by
// itself. Memory does not grow with the stream, which is read in the goroutine of the loop; each walk starts it from its
// beginning. While a slow batch is waited for, others start in the place of those that have ended, so that up to
// 2 × Concurrency − 1 batches may have been read, and sent, that were not yielded yet.
//
// When ctx ends, the batches in flight end with it, and the rest of the stream is yielded as not sent: keep ranging to
// learn the outcome of every batch. Leaving the loop ends the batches in flight too, but the outcome of those that were
// not yielded yet is lost. To resume, skip the batches that have been dealt with.
//
// POST /platform/aus/add (interface §2.7; §4, rule 13).
func (s *AccountUpdaterService) SubmitAll(ctx context.Context, cards iter.Seq[AccountUpdaterCard], opt *SubmitAllOptions, opts ...CallOption) iter.Seq[*AccountUpdaterBatch] {
	o := SubmitAllOptions{Concurrency: defaultConcurrency}
	if opt != nil {
		o.SkipBatches = opt.SkipBatches
		setPositive(&o.Concurrency, opt.Concurrency)
	}
	type submitted struct {
		batch AccountUpdaterBatch
		raw   Response
	}
	opts = slices.Clone(opts) // what the caller changes later does not change the walk
	keepRaw := newCallOptions(opts).response
	return func(yield func(*AccountUpdaterBatch) bool) {
		ctx, cancel := cancelable(ctx)
		nextBatch, stop := iter.Pull2(batches(cards, o.SkipBatches))
		defer stop()
		w := newWindow(o.Concurrency, 2*o.Concurrency-1, func() (func() submitted, bool) {
			index, batch, ok := nextBatch()
			start := index * MaxAccountUpdaterCards
			return func() (b submitted) {
				b.batch = AccountUpdaterBatch{Index: index, Start: start, End: start + len(batch)}
				own := slices.Clip(opts)
				if keepRaw != nil {
					own = append(own, WithResponse(&b.raw))
				}
				var accepted *AccountUpdaterRequest
				if accepted, b.batch.Err = s.Submit(ctx, batch, own...); accepted != nil {
					b.batch.RequestID = accepted.RequestID
				}
				return b
			}, ok
		})
		defer w.running.Wait()
		defer cancel()
		for {
			b, ok := w.pop()
			if !ok {
				return
			}
			if keepRaw != nil {
				*keepRaw = b.raw
			}
			if !yield(&b.batch) {
				return
			}
		}
	}
}

// batches cuts a stream and numbers the pieces; the first ones are left out.
func batches(cards iter.Seq[AccountUpdaterCard], skip int) iter.Seq2[int, []AccountUpdaterCard] {
	return func(yield func(int, []AccountUpdaterCard) bool) {
		if cards == nil {
			return
		}
		position, batch := 0, []AccountUpdaterCard(nil)
		for card := range cards {
			if position/MaxAccountUpdaterCards >= skip {
				batch = append(batch, card)
			}
			position++
			if len(batch) == MaxAccountUpdaterCards {
				if !yield(position/MaxAccountUpdaterCards-1, batch) {
					return
				}
				batch = make([]AccountUpdaterCard, 0, MaxAccountUpdaterCards)
			}
		}
		if len(batch) > 0 {
			yield(position/MaxAccountUpdaterCards, batch)
		}
	}
}
