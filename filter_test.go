package payvault_test

import (
	"math"
	"testing"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestListOptions_page checks that a page number is refused if the number of a later page of the walk could overflow.
func TestListOptions_page(t *testing.T) {
	t.Parallel()
	assertRefused(t, payvault.OpCustomersList, &payvault.ListOptions{Page: math.MaxInt - 1},
		service.Fields{"page": {"is out of range"}})
}
