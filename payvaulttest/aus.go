package payvaulttest

import (
	"fmt"
	"slices"

	"example.com/payvault"
)

// MaxUpdaterCards is the number of cards that one account updater request may hold.
const MaxUpdaterCards = 100

// AccountUpdaterRequest is an accepted account updater request (interface §2.7).
type AccountUpdaterRequest struct {
	MerchantID payvault.MerchantID
	RequestID  string
	Cards      []UpdaterCard
}

// UpdaterCard is a card of an account updater request (interface §2.7), its number masked.
type UpdaterCard struct {
	MaskedNumber string // first four and last six digits
	ExpDate      string // MMYY
	CardID       string // the caller's own ID
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
	var in updateRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	request := AccountUpdaterRequest{MerchantID: c.account.MerchantID, RequestID: freshText(v.ids, "aus", v.updates)}
	for _, card := range in.Data {
		request.Cards = append(request.Cards, UpdaterCard{mask(card.CardNumber), card.ExpDate, card.CardID})
	}
	answer := updateResponse{request.RequestID}
	v.updates.put(request.RequestID, request)
	v.occur(request.MerchantID, EventAccountUpdaterRequestCreated, answer)
	v.occur(request.MerchantID, EventAccountUpdaterRequestCompleted, answer)
	return success(answer), nil
}

func (in *updateRequest) check() error {
	p := problems{}
	p.check(len(in.Data) > 0, "data", "is required")
	p.check(len(in.Data) <= MaxUpdaterCards, "data", fmt.Sprintf("takes at most %d cards", MaxUpdaterCards))
	for i, card := range in.Data {
		path := fmt.Sprintf("data[%d]", i)
		p.check(isCardNumber(card.CardNumber), join(path, "card_number"), "must be 12 to 19 digits")
		p.check(isExpDate(card.ExpDate), join(path, "exp_date"), "must be MMYY")
	}
	return p.err()
}

// AccountUpdaterRequests returns the accepted account updater requests, in order of arrival.
func (s *Server) AccountUpdaterRequests() []AccountUpdaterRequest {
	s.service.mu.Lock()
	defer s.service.mu.Unlock()
	list := s.service.updates.all()
	for i := range list {
		list[i].Cards = slices.Clone(list[i].Cards)
	}
	return list
}
