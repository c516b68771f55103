package payvaulttest_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
	"example.com/payvault/payvaulttest"
)

// TestNewError checks the error of each operation and each kind: the operation, the delivery, whether there are Fields,
// SafeToRetry, the sentinels and the cause. NewError must panic for an unknown operation or kind.
func TestNewError(t *testing.T) {
	t.Parallel()
	for _, op := range payvault.Operations() {
		reads := op.Replay == payvault.ReplayRead
		repeats := reads || op.Replay == payvault.ReplaySame
		lost := []error{payvault.ErrOutcomeUnknown}
		if reads {
			lost = nil
		}
		for kind, want := range map[payvaulttest.ErrorKind]struct {
			delivery payvault.Delivery
			is       []error
			safe     bool
			cause    error
		}{
			payvaulttest.ErrorInvalid: {
				payvault.DeliveryNotSent, []error{payvault.ErrInvalidRequest}, false, payvault.ErrInvalidRequest,
			},
			payvaulttest.ErrorNotSent: {payvault.DeliveryNotSent, nil, true, syscall.ECONNREFUSED},
			payvaulttest.ErrorRefused: {payvault.DeliveryAnswered, []error{payvault.ErrRejected}, false, nil},
			payvaulttest.ErrorRateLimited: {
				payvault.DeliveryAnswered, []error{payvault.ErrRateLimited, payvault.ErrRejected}, true, nil,
			},
			payvaulttest.ErrorUnknown:  {payvault.DeliveryUnknown, lost, repeats, nil},
			payvaulttest.ErrorTimedOut: {payvault.DeliveryUnknown, lost, repeats, context.DeadlineExceeded},
		} {
			err := payvaulttest.NewError(op.Op, kind)
			assert.Equal(t, op.Op, err.Op, kind)
			assert.Equal(t, want.delivery, err.Delivery, "%s: %v", kind, err)
			assert.Equal(t, want.safe, payvault.SafeToRetry(err), "%s: %v", kind, err)
			assert.Equal(t, kind == payvaulttest.ErrorInvalid, len(err.Fields) > 0, "%s: %v", kind, err)
			service.AssertMatches(t, err, want.is...)
			if want.cause != nil {
				assert.ErrorIs(t, err, want.cause, kind)
			}
		}
	}
	assert.PanicsWithValue(t, "payvaulttest: NewError knows no operation no.operation", func() {
		_ = payvaulttest.NewError("no.operation", payvaulttest.ErrorUnknown)
	})
	assert.Panics(t, func() { _ = payvaulttest.NewError(payvault.OpInvoicesSend, "no kind") })
}

// TestNewErrorOfAnotherRefusal checks that a test may change the status, the code and the message of a refusal: the
// sentinels and the text follow the change, and SafeToRetry stays false.
func TestNewErrorOfAnotherRefusal(t *testing.T) {
	t.Parallel()
	err := payvaulttest.NewError(payvault.OpInvoicesSend, payvaulttest.ErrorRefused)
	err.StatusCode, err.Code, err.Message = 409, "51", "Already sent"
	service.AssertMatches(t, err, payvault.ErrConflict, payvault.ErrRejected)
	assert.False(t, payvault.SafeToRetry(err))
	assert.EqualError(t, err, "payvault: invoices.send: status 409 Conflict: code 51: Already sent")
}
