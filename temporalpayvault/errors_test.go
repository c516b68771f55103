package temporalpayvault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// TestActivityError checks the result for several failures of a call: its type, whether Temporal retries, and after
// which delay.
func TestActivityError(t *testing.T) {
	t.Parallel()
	limit := func(after string) payvaulttest.Fault {
		return payvaulttest.Fault{Kind: payvaulttest.RateLimit, RetryAfter: after}
	}
	status := func(n int) payvaulttest.Fault { return payvaulttest.Fault{Kind: payvaulttest.Respond, Status: n} }
	refusal := payvaulttest.Fault{Kind: payvaulttest.OtherCode, Code: 2, Message: "card 4111 1111 1111 1111 is bad"}
	for name, test := range map[string]struct {
		fault payvaulttest.Fault
		cards int
		want  string
		retry bool
		delay time.Duration
	}{
		"rate limit":      {limit("7"), 1, TypeSafeToRetry, true, 7 * time.Second},
		"rate limit, 12h": {limit("43200"), 1, TypeSafeToRetry, true, 12 * time.Hour},
		"lost answer":     {payvaulttest.Fault{Kind: payvaulttest.DropAfterCommit}, 1, TypeOutcomeUnknown, false, 0},
		"503":             {status(503), 1, TypeOutcomeUnknown, false, 0},
		"401":             {status(401), 1, TypeRefused, false, 0},
		"refused":         {refusal, 1, TypeRefused, false, 0},
		"local check":     {payvaulttest.Fault{}, 101, TypeRefused, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			if test.fault.Kind != "" {
				test.fault.Times = 1
				inject(t, srv, test.fault)
			}
			cards, err := deck{n: test.cards}.Cards(t.Context(), "", 0, test.cards)
			require.NoError(t, err)
			_, err = once(srv).AccountUpdater.Submit(t.Context(), cards)
			app, ok := errors.AsType[*temporal.ApplicationError](ActivityError(err))
			require.True(t, ok)
			assert.Equal(t, test.want, app.Type())
			assert.Equal(t, !test.retry, app.NonRetryable())
			assert.Equal(t, test.delay, app.NextRetryDelay())
			assert.NoError(t, errors.Unwrap(app), "a cause may hold more")
			assert.NotContains(t, app.Error(), "11111111")
		})
	}
}

// joined joins errors as avast/retry-go does: Unwrap returns only the last error, and WrappedErrors returns all errors.
// hashicorp/go-multierror has the method WrappedErrors too.
type joined []error

func (j joined) Error() string { return fmt.Sprint([]error(j)) }

func (j joined) WrappedErrors() []error { return j }

func (j joined) Unwrap() error { return j[len(j)-1] }

// listed joins errors as go.uber.org/multierr 1.9 does: it has the method Errors and no Unwrap.
type listed []error

func (l listed) Error() string { return fmt.Sprint([]error(l)) }

func (l listed) Errors() []error { return l }

// TestActivityError_several checks the result for several joined errors. An error of unknown outcome decides the
// result, at any position. If there is none, the first error of package payvault decides.
func TestActivityError_several(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	cards, err := deck{n: 1}.Cards(t.Context(), "", 0, 1)
	require.NoError(t, err)
	submit := func(kind payvaulttest.FaultKind) error {
		inject(t, srv, payvaulttest.Fault{Operation: op, Kind: kind, Times: 1})
		_, err := once(srv).AccountUpdater.Submit(t.Context(), cards)
		return err
	}
	limited, lost, other := submit(payvaulttest.RateLimit), submit(payvaulttest.DropAfterCommit), errCut
	for want, errs := range map[string][]error{
		TypeSafeToRetry: {errors.Join(other, limited), fmt.Errorf("%w after %w", limited, limited)},
		TypeOutcomeUnknown: {
			errors.Join(limited, lost), errors.Join(lost, limited), fmt.Errorf("all: %w", errors.Join(limited, other, lost)),
			fmt.Errorf("%w: %w", limited, fmt.Errorf("%w: %w", other, errors.Join(limited, lost))),
			listed{lost, other},
			joined{limited, fmt.Errorf("wrapped: %w", lost), limited},
		},
	} {
		for _, err := range errs {
			app, ok := errors.AsType[*temporal.ApplicationError](ActivityError(err))
			require.True(t, ok)
			assert.Equal(t, want, app.Type(), err)
			assert.Equal(t, want == TypeOutcomeUnknown, app.NonRetryable())
			text, _ := errors.AsType[*payvault.Error](map[bool]error{true: lost, false: limited}[want == TypeOutcomeUnknown])
			assert.Equal(t, text.Error(), app.Message(), "it tells of that one")
		}
	}
}

// TestActivityError_notSent checks that Temporal retries a batch that was not sent because the journal failed.
func TestActivityError_notSent(t *testing.T) {
	t.Parallel()
	cards, err := deck{n: 300}.Cards(t.Context(), "", 0, 300)
	require.NoError(t, err)
	broken := newBook()
	broken.fail = func(bool) error { return errCut }
	options := &payvault.SubmitAllOptions{Journal: broken, Job: "job"}
	batches := 0
	for b, err := range newServer(t).Client().AccountUpdater.SubmitAll(t.Context(), payvault.Cards(cards...), options) {
		if err != nil {
			app, ok := errors.AsType[*temporal.ApplicationError](ActivityError(err))
			require.True(t, ok)
			assert.True(t, app.NonRetryable(), "without a journal, a second run would send all cards again")
			break
		}
		batches++
		app, ok := errors.AsType[*temporal.ApplicationError](ActivityError(b.Err))
		require.True(t, ok)
		assert.Equal(t, TypeSafeToRetry, app.Type())
		assert.False(t, app.NonRetryable())
	}
	assert.Equal(t, 3, batches)
}

// TestActivityError_merchant checks that Temporal does not retry a call for a merchant if the operation does not
// support ForMerchant.
func TestActivityError_merchant(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	cards, err := deck{n: 1}.Cards(t.Context(), "", 0, 1)
	require.NoError(t, err)
	_, err = srv.Client().ForMerchant(srv.Merchant().MerchantID).AccountUpdater.Submit(t.Context(), cards)
	app, ok := errors.AsType[*temporal.ApplicationError](ActivityError(err))
	require.True(t, ok)
	assert.Equal(t, TypeRefused, app.Type())
	assert.True(t, app.NonRetryable())
}

// TestActivityError_others checks that nil and errors of other packages are returned unchanged.
func TestActivityError_others(t *testing.T) {
	t.Parallel()
	assert.NoError(t, ActivityError(nil))
	assert.Equal(t, context.Canceled, ActivityError(context.Canceled))
}

// TestActivityError_causeOfAnotherCall checks that ActivityError ignores the cause of a canceled context, even if the
// cause is the error of another call.
func TestActivityError_causeOfAnotherCall(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	client := once(srv)
	invalid := client.Invoices.Send(t.Context(), "", nil)
	require.ErrorIs(t, invalid, payvault.ErrInvalidRequest)
	inject(t, srv, payvaulttest.Fault{Operation: op, Kind: payvaulttest.DropAfterCommit, Times: 1})
	card, err := deck{n: 1}.Cards(t.Context(), "", 0, 1)
	require.NoError(t, err)
	_, lost := client.AccountUpdater.Submit(t.Context(), card)
	require.ErrorIs(t, lost, payvault.ErrOutcomeUnknown)
	for _, other := range []error{invalid, lost} {
		ctx, cancel := context.WithCancelCause(t.Context())
		during := through(srv, func(r *http.Request) (*http.Response, error) {
			res, err := http.DefaultTransport.RoundTrip(r)
			cancel(other)
			if err == nil {
				_ = res.Body.Close()
			}
			return nil, errCut
		})
		_, performed := during.AccountUpdater.Submit(ctx, card)
		app, ok := errors.AsType[*temporal.ApplicationError](ActivityError(performed))
		require.True(t, ok)
		assert.Equal(t, TypeOutcomeUnknown, app.Type())
		_, unsent := client.AccountUpdater.Submit(ctx, card)
		assert.Equal(t, context.Canceled, ActivityError(unsent))
	}
}
