package payvault

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"
)

// More tests of this file are in internal/tests/operations, over the table in internal/tests/calls.

// AccountUpdaterService submits cards, so that the card networks refresh the data of the cards.
type AccountUpdaterService struct{ caller *caller }

// MaxAccountUpdaterCards is the largest number of cards in one request.
const MaxAccountUpdaterCards = 100

// AccountUpdaterCard is a card to refresh. Number and expiration date are required.
type AccountUpdaterCard struct {
	CardNumber Secret `json:"card_number"`      // card number
	ExpDate    string `json:"exp_date"`         // MMYY; see FormatExpDate
	CardID     string `json:"card_id,omitzero"` // chosen by the caller; not the ID of a tokenized card
	// Ref is a text of your own that identifies the card, such as its line in a file. It is neither sent nor stored in
	// a Journal, and JSON leaves it out. SubmitAll gives it back in InvalidCard.Ref and AccountUpdaterBatch.Refs. It is
	// printed as it is, so keep card numbers out of it.
	Ref string `json:"-"`
}

// Check returns nil if the card can be sent. The number has to be 12 to 19 digits, the expiration date MMYY, and the
// CardID valid UTF-8 without [REDACTED]. Otherwise Check returns an *[Error] that matches [ErrInvalidRequest] and names
// the invalid fields.
func (c AccountUpdaterCard) Check() error {
	var p problems
	c.check(&p)
	return p.err(OpAccountUpdaterSubmit)
}

// check adds a problem for each field that cannot be sent.
func (c AccountUpdaterCard) check(p *problems) {
	number := c.CardNumber.Reveal()
	switch {
	case number == "":
		p.add("card_number", "is required")
	case hasMark(number):
		p.add("card_number", markedText)
	case len(number) < 12 || len(number) > 19 || strings.Trim(number, "0123456789") != "":
		p.add("card_number", "is not 12 to 19 digits")
	}
	require(p, "exp_date", c.ExpDate)
	checkExpDate("exp_date", c.ExpDate, p)
	switch {
	case hasMark(c.CardID):
		p.add("card_id", markedText)
	case !utf8.ValidString(c.CardID):
		p.add("card_id", "is not valid UTF-8")
	}
}

// markedText is the problem of a field that contains [REDACTED], the text that json.Marshal writes for a [Secret].
const markedText = "cannot be written as JSON: a redacted secret, whose text is lost"

// accountUpdaterBody is the body of a submission.
type accountUpdaterBody struct {
	Data []AccountUpdaterCard `json:"data"`
}

// prepare checks the number of cards, and each card. The path of a problem has the index of the card, as in
// data[3].card_number.
func (b *accountUpdaterBody) prepare(_ *caller, p *problems) {
	if n := len(b.Data); n < 1 || n > MaxAccountUpdaterCards {
		p.add("data", "has "+strconv.Itoa(n)+" cards; 1 to 100 are allowed")
		b.Data = nil
		return
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
}

// AccountUpdaterSubmission is a submission that the service has accepted. The service typically completes it in 3 to 4
// business days.
type AccountUpdaterSubmission struct {
	RequestID string `json:"request_id,omitzero" answer:"id"` // identifies the submission
}

func (r *AccountUpdaterSubmission) missing() string {
	if r.RequestID == "" {
		return "request_id"
	}
	return ""
}

// Submit submits 1 to 100 cards. Without a card, with more than 100 cards, or with a card that fails
// [AccountUpdaterCard.Check], Submit fails before anything is sent.
//
// Not replayable. POST /platform/aus/add.
func (s *AccountUpdaterService) Submit(
	ctx context.Context, cards []AccountUpdaterCard, opts ...CallOption,
) (*AccountUpdaterSubmission, error) {
	return doRecord[AccountUpdaterSubmission](ctx, s.caller, submission(cards), opts)
}

// submission returns the call that submits cards, for Submit and SubmitAll.
func submission(cards []AccountUpdaterCard) call {
	return call{op: OpAccountUpdaterSubmit.info(), content: jsonBody(&accountUpdaterBody{cards})}
}
