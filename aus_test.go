package payvault_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestAccountUpdaterSubmit_number checks that Submit refuses 0 and 101 cards, and sends 100.
func TestAccountUpdaterSubmit_number(t *testing.T) {
	t.Parallel()
	const op = payvault.OpAccountUpdaterSubmit
	cards := slices.Repeat([]payvault.AccountUpdaterCard{card()}, 101)
	assertRefused(t, op, cards[:0], service.Fields{"data": {"has 0 cards; 1 to 100 are allowed"}})
	assertRefused(t, op, cards, service.Fields{"data": {"has 101 cards; 1 to 100 are allowed"}})
	text := `,{"card_number":"4111111111111111","exp_date":"1230"}`
	assert.JSONEq(t, `{"data":[`+strings.Repeat(text, 100)[1:]+`]}`, perform(t, op, cards[1:]))
}

// TestAccountUpdaterCard_Check checks which cards Check refuses, and that Submit refuses them with the same problem.
func TestAccountUpdaterCard_Check(t *testing.T) {
	t.Parallel()
	const op = payvault.OpAccountUpdaterSubmit
	check := func(field, problem string, change func(c *payvault.AccountUpdaterCard)) {
		t.Helper()
		changed := card()
		change(&changed)
		service.AssertInvalid(t, changed.Check(), op, service.Fields{field: {problem}})
		cards := []payvault.AccountUpdaterCard{card(), changed}
		assertRefused(t, op, cards, service.Fields{"data[1]." + field: {problem}})
	}
	number := func(text string) func(c *payvault.AccountUpdaterCard) {
		return func(c *payvault.AccountUpdaterCard) { c.CardNumber = payvault.NewSecret(text) }
	}
	check("card_number", "is required", number(""))
	check("card_number", isMark, number(mark))
	for _, text := range []string{
		"4111 1111 1111 1111", "41111111111", "41111111111111111111", "४१११११११११११११११", "411111111111\xff",
	} {
		check("card_number", "is not 12 to 19 digits", number(text))
	}
	check("exp_date", "is required", func(c *payvault.AccountUpdaterCard) { c.ExpDate = "" })
	check("exp_date", "is not of the form MMYY", func(c *payvault.AccountUpdaterCard) { c.ExpDate = "1329" })
	check("card_id", "is not valid UTF-8", func(c *payvault.AccountUpdaterCard) { c.CardID = "Jos\xe9" })
	check("card_id", isMark, func(c *payvault.AccountUpdaterCard) { c.CardID = "a " + mark })

	for _, text := range []string{"411111111111", "4111111111111111", "4111111111111111111"} {
		valid := card()
		valid.CardNumber = payvault.NewSecret(text)
		assert.NoError(t, valid.Check())
		perform(t, op, []payvault.AccountUpdaterCard{valid})
	}
}
