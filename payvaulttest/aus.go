package payvaulttest

import (
	"fmt"
	"slices"

	"example.com/payvault"
	"example.com/payvault/internal/cardnumber"
)

// AccountUpdaterRequest is an accepted account updater request, its fields named as on the wire.
type AccountUpdaterRequest struct {
	MerchantID payvault.MerchantID
	RequestID  string
	Cards      []UpdaterCard
}

// UpdaterCard is a card of an account updater request, its number masked.
type UpdaterCard struct {
	MaskedNumber string // first four and last six digits
	ExpDate      string // MMYY
	CardID       string // the caller's own ID
}

func (r *AccountUpdaterRequest) clone() AccountUpdaterRequest {
	view := *r
	view.Cards = slices.Clone(view.Cards)
	return view
}

func (v *service) prepareUpdate(r *AccountUpdaterRequest) error {
	r.RequestID = freshText(v.ids, "aus", v.AccountUpdaterRequests, r.RequestID)
	return v.seedMerchant(&r.MerchantID)
}

type updateRequest struct {
	Data []struct {
		CardNumber string `json:"card_number"`
		ExpDate    string `json:"exp_date"`
		CardID     string `json:"card_id"`
	} `json:"data"`
}

type updateResponse struct {
	RequestID string `json:"request_id"`
}

// submitUpdate performs POST /platform/aus/add. The cards count as updated at once.
func (v *service) submitUpdate(c *call) (any, error) {
	in, err := bind[updateRequest](c.body)
	if err != nil {
		return nil, err
	}
	p := problems{}
	request := AccountUpdaterRequest{MerchantID: c.account.MerchantID}
	for i, card := range in.Data {
		p.check(cardnumber.Valid(card.CardNumber), fmt.Sprintf("data[%d].card_number", i), "must be 12 to 19 digits")
		request.Cards = append(request.Cards, UpdaterCard{cardnumber.Mask(card.CardNumber), card.ExpDate, card.CardID})
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if request, err = v.AccountUpdaterRequests.seed(request); err != nil {
		return nil, err
	}
	answer := updateResponse{request.RequestID}
	v.occur(request.MerchantID, EventAccountUpdaterRequestCreated, answer)
	v.occur(request.MerchantID, EventAccountUpdaterRequestCompleted, answer)
	return success(answer), nil
}
