package payvault_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const ausPath = "/platform/aus/add"

// fullCards are account_updater/submit.request.json.
func fullCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{
		{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CardID: "CALLERCARD8001"},
		{CardNumber: payvault.NewSecret("5454545454545454"), ExpDate: "0130", CardID: "CALLERCARD8002"},
	}
}

func minimalCards() []payvault.AccountUpdaterCard {
	return []payvault.AccountUpdaterCard{{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229"}}
}

func TestAccountUpdaterSubmit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cards        []payvault.AccountUpdaterCard
		body, answer string
	}{
		"full":     {fullCards(), "account_updater/submit.request.json", "account_updater/submit.response.json"},
		"minimal":  {minimalCards(), "account_updater/submit.request.min.json", "account_updater/submit.response.json"},
		"tolerant": {minimalCards(), "account_updater/submit.request.min.json", "account_updater/submit.response.tolerant.json"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			srv.expect(http.MethodPost, ausPath, test.body, test.answer)
			client := srv.client(payvault.WithMerchantID(1), payvault.WithVendorID(2), payvault.WithDeveloperID("3"))

			got, err := client.AccountUpdater.Submit(t.Context(), test.cards)
			require.NoError(t, err)
			assert.Equal(t, &payvault.AccountUpdaterRequest{RequestID: "AUSREQUEST8003"}, got)
		})
	}
}

func TestAccountUpdaterSubmit_rejected(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, ausPath, "account_updater/submit.request.json", "account_updater/submit.error.json")

	got, err := srv.client().AccountUpdater.Submit(t.Context(), fullCards())
	assertRejected(t, err, payvault.Error{
		Op: payvault.OpAccountUpdaterSubmit, Code: "5", Message: "Example refusal of account_updater.submit",
	})
	assert.Nil(t, got)
}

func TestAccountUpdaterSubmit_invalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cards []payvault.AccountUpdaterCard
		want  fields
	}{
		"nil":      {nil, fields{"data": {"has 0 cards; 1 to 100 are allowed"}}},
		"empty":    {[]payvault.AccountUpdaterCard{}, fields{"data": {"has 0 cards; 1 to 100 are allowed"}}},
		"too many": {slices.Repeat(minimalCards(), 101), fields{"data": {"has 101 cards; 1 to 100 are allowed"}}},
		"all at once": {
			[]payvault.AccountUpdaterCard{{}, {CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229"}, {CardNumber: payvault.NewSecret("1"), ExpDate: "1329"}, {ExpDate: "0130"}},
			fields{
				"data[0].card_number": {"is required"},
				"data[0].exp_date":    {"is required"},
				"data[2].exp_date":    {badExpDate},
				"data[3].card_number": {"is required"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newService(t).client().AccountUpdater.Submit(t.Context(), test.cards)
			assertInvalid(t, err, payvault.OpAccountUpdaterSubmit, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestAccountUpdaterSubmit_mostCards(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	card := `,{"card_number":"4111111111111111","exp_date":"1229"}`
	srv.expect(http.MethodPost, ausPath, `{"data":[`+strings.Repeat(card, 100)[1:]+`]}`, "account_updater/submit.response.json")

	_, err := srv.client().AccountUpdater.Submit(t.Context(), slices.Repeat(minimalCards(), 100))
	require.NoError(t, err)
}

func TestAccountUpdaterSubmit_forMerchant(t *testing.T) {
	t.Parallel()
	got, err := newService(t).client().ForMerchant(actingFor).AccountUpdater.Submit(t.Context(), fullCards())
	assertNoMerchant(t, err, payvault.OpAccountUpdaterSubmit)
	assert.Nil(t, got)
}

func TestAccountUpdaterSubmit_leavesCardsAlone(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	srv.expect(http.MethodPost, ausPath, "account_updater/submit.request.json", "account_updater/submit.response.json").times(callers)
	client, cards := srv.client(), fullCards()

	together(func() {
		_, err := client.AccountUpdater.Submit(t.Context(), cards)
		assert.NoError(t, err)
	})
	assert.Equal(t, fullCards(), cards)
}

func TestAccountUpdater_wire(t *testing.T) {
	t.Parallel()
	assertWire(t, fullCards(), fixtureData(t, "account_updater/submit.request.json"))
	assertWire(t, minimalCards(), fixtureData(t, "account_updater/submit.request.min.json"))
	assertWire(t, payvault.AccountUpdaterRequest{RequestID: "AUSREQUEST8003"}, fixtureData(t, "account_updater/submit.response.json"))
}
