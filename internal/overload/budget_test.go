package overload

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestBudget checks that a retry costs 5, that a retry after a timeout costs 10, that a refund never makes the budget
// larger than 500, and that a nil budget is never spent.
func TestBudget(t *testing.T) {
	t.Parallel()
	var b Budget
	for range 100 {
		assert.EqualValues(t, 5, b.Take(false))
	}
	assert.Zero(t, b.Take(false), "it is spent")
	for range 9 {
		b.Refund(0)
	}
	assert.Zero(t, b.Take(true))
	b.Refund(0)
	assert.EqualValues(t, 10, b.Take(true), "a timeout costs more")
	b.Refund(10)
	assert.EqualValues(t, 10, b.Take(true), "what its success gives back")
	for range 1000 {
		b.Refund(10)
	}
	b.Take(false)
	b.Refund(10) // puts back more than was taken
	for range 100 {
		assert.NotZero(t, b.Take(false))
	}
	assert.Zero(t, b.Take(false), "it is no larger than before")

	var none *Budget
	for range 200 {
		assert.NotZero(t, none.Take(true))
	}
	none.Refund(0)
}
