package cardnumber

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNumbers checks for each number whether it is valid, how it is masked, and its network.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		number  string
		valid   bool
		masked  string // result of Masked
		network string
	}{
		{"4111111111111111", true, "4111xxxxxx111111", "VI"},
		{"411111111111", true, "4111xx111111", "VI"},
		{"6011000990139424000", true, "6011xxxxxxxxx424000", "DI"},
		{"5454545454545454", true, "5454xxxxxx545454", "MC"},
		{"2223003122003222", true, "2223xxxxxx003222", "MC"},
		{"378282246310005", true, "3782xxxxx310005", "AM"},
		{"341111111111111", true, "3411xxxxx111111", "AM"},
		{"351111111111111", true, "3511xxxxx111111", ""},
		{"41111111111", false, "41111111111", "VI"},
		{"41111111111111111111", false, "41111111111111111111", "VI"},
		{"4111 11111111", false, "4111 11111111", "VI"},
		{"4111xxxxxx111111", false, "4111xxxxxx111111", "VI"},
		{"", false, "", ""},
	} {
		assert.Equal(t, test.valid, Valid(test.number), test.number)
		assert.Equal(t, test.masked, Masked(test.number))
		assert.Equal(t, test.network, Network(test.number), test.number)
	}
	assert.Equal(t, "xxxxxxxxxx", Mask("1234567890"), "ten digits show nothing")
}
