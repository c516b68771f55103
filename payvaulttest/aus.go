package payvaulttest

import (
	"fmt"
	"slices"

	"example.com/payvault"
	"example.com/payvault/payvaulttest/internal/cardnumber"
)

// AccountUpdaterRequest is an accepted account updater request.
type AccountUpdaterRequest struct {
	MerchantID payvault.MerchantID
	RequestID  string
	Cards      []UpdaterCard
}

// UpdaterCard is a card of an account updater request. Its number is masked.
type UpdaterCard struct {
	CardNumber string // masked: first four and last six digits
	ExpDate    string // MMYY
	CardID     string // card ID that the caller chose
}

type accountUpdaterRequests struct {
	*state
	*Store[string, AccountUpdaterRequest]
}

func newAccountUpdaterRequests(s *state) *Store[string, AccountUpdaterRequest] {
	v := &accountUpdaterRequests{state: s}
	v.Store = newStore(s, "aus", v)
	s.actions[payvault.OpAccountUpdaterSubmit] = reading(v.submitUpdate)
	return v.Store
}

func (*accountUpdaterRequests) key(r *AccountUpdaterRequest) (string, *payvault.MerchantID) {
	return r.RequestID, &r.MerchantID
}

func (v *accountUpdaterRequests) prepare(r *AccountUpdaterRequest) {
	freshText(v.Store, &r.RequestID)
	for i, card := range r.Cards {
		r.Cards[i].CardNumber = cardnumber.Masked(card.CardNumber)
	}
}

func (*accountUpdaterRequests) permits(*AccountUpdaterRequest) error { return nil }

func (*accountUpdaterRequests) detach(r *AccountUpdaterRequest) { r.Cards = slices.Clone(r.Cards) }

type updateRequest struct {
	Data []paymentFields `json:"data"`
}

// submitUpdate performs POST /platform/aus/add. If the request is valid, it triggers the created event and immediately
// afterwards the completed event of the account updater.
func (v *accountUpdaterRequests) submitUpdate(c *call, in updateRequest) (any, error) {
	p := problems{}
	request := AccountUpdaterRequest{MerchantID: c.merchant}
	for i, card := range in.Data {
		p.check(cardnumber.Valid(card.CardNumber), fmt.Sprintf("data[%d].card_number", i), wrongNumber)
		request.Cards = append(request.Cards, UpdaterCard{card.CardNumber, card.ExpDate, card.CardID})
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	answer := map[string]string{"request_id": v.put(request).RequestID}
	v.occur(c.merchant, payvault.EventAccountUpdaterRequestCreated, answer)
	v.occur(c.merchant, payvault.EventAccountUpdaterRequestCompleted, answer)
	return success(answer), nil
}
