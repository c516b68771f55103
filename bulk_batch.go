package payvault

import (
	"errors"
	"slices"
	"strings"
)

// The tests of this file are in internal/tests/bulk.

// AccountUpdaterBatch is the result of up to 100 cards of a stream.
type AccountUpdaterBatch struct {
	Index       int           // number of the batch in the stream, zero-based
	Start       int           // position of the first card in the stream, zero-based
	End         int           // position in the stream after the last card of the batch
	Refs        []string      // the Ref of each card from Start to End-1, also of invalid cards; nil if none has a Ref
	Invalid     []InvalidCard // cards that Check refuses, in the order of the stream; they are not sent
	Status      BatchStatus   // BatchAccepted, BatchRefused, BatchUnknown or BatchNotSent
	RequestID   string        // set if the service accepted the batch
	Err         error         // an *Error; nil if the service accepted the batch
	FromJournal bool          // true if the journal has the batch from an earlier run, so that this run does not send it
}

// InvalidCard is a card that cannot be sent.
type InvalidCard struct {
	Position int    // zero-based position in the stream
	Ref      string // the Ref of the card
	Err      error  // error of AccountUpdaterCard.Check
}

// Position turns i, the index of a card in the request, into the position of the card in the stream. The service may
// name this card data[i] in a refusal, but does not document the form. The index does not count the invalid cards,
// because they are not sent. If i is too large for the request, the result is End or larger. The Ref of the card is
// Refs[position-Start], unless Refs is nil.
func (b *AccountUpdaterBatch) Position(i int) int {
	position := b.Start + i
	for _, invalid := range b.Invalid {
		if invalid.Position <= position {
			position++
		}
	}
	return position
}

// bulkBatch is a batch that SubmitAll works on.
type bulkBatch struct {
	AccountUpdaterBatch

	raw Response // the answer, if the caller uses WithResponse
}

// isFull reports whether b has as many cards as a request may have, invalid cards included.
func (b *bulkBatch) isFull() bool { return b.End-b.Start == MaxAccountUpdaterCards }

// next returns the batch that follows b, without cards.
func (b *bulkBatch) next() *bulkBatch {
	return &bulkBatch{AccountUpdaterBatch: AccountUpdaterBatch{Index: b.Index + 1, Start: b.End, End: b.End}}
}

// addRef adds the Ref of the next card, whose position is End. Refs stays nil as long as no card has a Ref.
func (b *bulkBatch) addRef(ref string) {
	switch {
	case b.Refs != nil:
		b.Refs = append(b.Refs, ref)
	case ref != "":
		b.Refs = make([]string, b.End-b.Start, MaxAccountUpdaterCards)
		b.Refs = append(b.Refs, ref)
	}
}

// sent returns the number of cards in the request of a batch.
func (b *bulkBatch) sent() int { return b.End - b.Start - len(b.Invalid) }

// outcome returns the record of a batch for the journal. cards are the cards that were sent. A RequestID whose digits
// contain the number of one of these cards is redacted, because the service may have sent the number as the ID.
func (b *bulkBatch) outcome(cards []AccountUpdaterCard) BatchOutcome {
	o := BatchOutcome{Status: b.Status, Cards: b.sent()}
	o.RequestID = strings.ReplaceAll(b.RequestID, "\x00", "\uFFFD") // Postgres refuses texts with NUL
	if containsCard(b.RequestID, cards) {
		o.RequestID = redacted
	}
	if e, failed := errors.AsType[*Error](b.Err); failed {
		o.StatusCode, o.Code, o.Fields = e.StatusCode, oneLine(e.Code), e.Fields
		o.Message = lineOf(e.reason(), longCause)
	}
	return o
}

// containsCard reports whether the digits of a text contain the number of a card.
func containsCard(text string, cards []AccountUpdaterCard) bool {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
	return slices.ContainsFunc(cards, func(card AccountUpdaterCard) bool {
		return strings.Contains(digits, card.CardNumber.Reveal())
	})
}

// isOther reports whether an earlier run sent another number of cards in the batch. It returns false if the journal
// does not have the earlier number of cards.
func (b *bulkBatch) isOther(known BatchState) bool {
	return known.Outcome != nil && known.Outcome.Cards != 0 && known.Outcome.Cards != b.sent()
}

// takeFrom sets the status, the RequestID and the error of a batch from the record of an earlier run. If the earlier
// run began the batch and recorded no outcome, the status is BatchUnknown.
func (b *bulkBatch) takeFrom(known BatchState) {
	b.FromJournal = true
	o := BatchOutcome{Message: "an earlier run began the batch and did not end it"}
	if known.Outcome != nil {
		o = *known.Outcome
	}
	switch o.Status {
	case BatchAccepted:
		b.Status, b.RequestID = o.Status, o.RequestID
		return
	case BatchRefused:
		b.Status = BatchRefused
	default:
		b.Status = BatchUnknown
	}
	b.Err = earlierError(o)
}
