package cardnumber

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMask checks that the first four and the last six digits are shown.
func TestMask(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"4111111111111111": "4111xxxxxx111111", "411111111111": "4111xx111111", "1234567890": "xxxxxxxxxx", "": "",
	} {
		assert.Equal(t, want, Mask(number))
	}
}

// TestMasked checks that only texts that are card numbers are masked.
func TestMasked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4111111111111111": "4111xxxxxx111111", "4111xxxxxx111111": "4111xxxxxx111111", "41111111111": "41111111111",
		"4111 1111": "4111 1111", "": "",
	} {
		assert.Equal(t, want, Masked(text))
	}
}

// TestValid checks that a card number has 12 to 19 digits.
func TestValid(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{
		"411111111111": true, "4111111111111111111": true, "41111111111": false, "41111111111111111111": false,
		"4111 11111111": false,
	} {
		assert.Equal(t, want, Valid(number), number)
	}
}

// TestNetwork checks the network that the first two digits stand for.
func TestNetwork(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"41": "VI", "51": "MC", "22": "MC", "34": "AM", "37": "AM", "35": "",
		"60": "DI", "": "",
	} {
		assert.Equal(t, want, Network(number), number)
	}
}

// TestOfTrack checks that the card number is found in track data.
func TestOfTrack(t *testing.T) {
	t.Parallel()
	for swipe, want := range map[string]string{
		"%B4111111111111111^DOE/JANE^3012": "4111111111111111", ";5111111111111111=3012": "5111111111111111",
		"%B411^": "", "4111111111111111": "", "": "",
	} {
		assert.Equal(t, want, OfTrack(swipe), swipe)
	}
}
