package payvault

import (
	"context"
	"strconv"
)

// AccountUpdaterService submits cards so that card networks refresh their data.
type AccountUpdaterService struct{ client *Client }

// MaxAccountUpdaterCards is how many cards one request takes.
const MaxAccountUpdaterCards = 100

// AccountUpdaterCard is a card to refresh. Number and expiration date are required.
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

// AccountUpdaterRequest is a submission that the service has accepted. Its typical turnaround is 3 to 4 business days.
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
// POST /platform/aus/add.
func (s *AccountUpdaterService) Submit(
	ctx context.Context, cards []AccountUpdaterCard, opts ...CallOption,
) (*AccountUpdaterRequest, error) {
	return do[AccountUpdaterRequest](ctx, s, OpAccountUpdaterSubmit, send(accountUpdaterBody{cards}), opts)
}
