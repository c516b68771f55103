package payvaulttest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// TestAccountUpdater checks the answer to a submission and the stored record, whose card numbers are masked.
func TestAccountUpdater(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	data := a.post(t, "/platform/aus/add", `{"data":[{"card_number":"4111111111111111","exp_date":"1229","card_id":"MINE"},
		{"card_number":"5454545454545454","exp_date":"0130"}]}`).ok(t)
	requests := a.srv.AccountUpdaterRequests.All()
	require.Len(t, requests, 1)
	assert.Equal(t, payvaulttest.AccountUpdaterRequest{
		MerchantID: merchantID, RequestID: requests[0].RequestID,
		Cards: []payvaulttest.UpdaterCard{{"4111xxxxxx111111", "1229", "MINE"}, {"5454xxxxxx545454", "0130", ""}},
	}, requests[0])
	assert.Equal(t, map[string]any{"request_id": requests[0].RequestID}, data)

	own := []payvaulttest.UpdaterCard{{CardNumber: "4111111111111111"}}
	seeded := a.srv.AccountUpdaterRequests.Seed(payvaulttest.AccountUpdaterRequest{Cards: own})
	assert.Equal(t, "4111xxxxxx111111", seeded.Cards[0].CardNumber)
	assert.Equal(t, "4111111111111111", own[0].CardNumber, "what is given is left as it is")
}

// TestAccountUpdaterLimit checks that 100 cards are accepted and 101 are refused.
func TestAccountUpdaterLimit(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	cards := func(n int) string {
		return `{"data":[` + strings.Join(repeat(`{"card_number":"4111111111111111","exp_date":"1229"}`, n), ",") + `]}`
	}
	a.post(t, "/platform/aus/add", cards(101)).refused(t, http.StatusBadRequest, "data")
	a.post(t, "/platform/aus/add", `{}`).refused(t, http.StatusBadRequest, "data")
	assert.Empty(t, a.srv.AccountUpdaterRequests.All())
	a.post(t, "/platform/aus/add", cards(100)).ok(t)
	a.post(t, "/platform/aus/add", cards(0)).ok(t) // the document sets no minimum
}

// TestAccountUpdaterRefuses checks that an invalid card is refused with the name of the field, without repeating its
// number.
func TestAccountUpdaterRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for body, field := range map[string]string{
		`{"data":[{"card_number":"4111111111111111","exp_date":"1229"},{"card_number":"4111111111111111",` +
			`"exp_date":"12/29"}]}`: "data[1].exp_date",
		`{"data":[{"card_number":"4111111111111111","exp_date":"0029"}]}`:            "data[0].exp_date",
		`{"data":[{"exp_date":"1229"}]}`:                                             "data[0].card_number",
		`{"data":[{"card_number":"","exp_date":"1229"}]}`:                            "data[0].card_number",
		`{"data":[{"card_number":"41111111111","exp_date":"1229"}]}`:                 "data[0].card_number",
		`{"data":[{"card_number":4111111111111111,"exp_date":"1229"}]}`:              "data[0].card_number",
		`{"data":[{"card_number":"4111111111111111","exp_date":"1229","cvv2":"1"}]}`: "data[0].cvv2",
		`{"cards":[]}`: "cards",
	} {
		got := a.post(t, "/platform/aus/add", body)
		got.refused(t, http.StatusBadRequest, field)
		assert.NotContains(t, got.body, "4111111111111111")
	}
}
