package contract

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// A sender sends a request whose fields are filled as it is told.
type sender func(ctx context.Context, client *payvault.Client, f filler) error

// sends has the requests of the SDK by schema.
func sends(t *testing.T) map[string]sender {
	t.Helper()
	return map[string]sender{
		"TokenizeRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			_, err := client.Tokens.Tokenize(ctx, filled[payvault.TokenizeRequest](t, f))
			return err
		},
		"CustomerCreateRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			_, err := client.Customers.Create(ctx, filled[payvault.CustomerCreateRequest](t, f))
			return err
		},
		"PayeeCreateRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			_, err := client.Payees.Create(ctx, filled[payvault.PayeeCreateRequest](t, f))
			return err
		},
		"ApplicationCreateRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			_, err := client.Applications.Create(ctx, filled[payvault.ApplicationCreateRequest](t, f))
			return err
		},
		"DisputeRespondRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			return client.Disputes.Respond(ctx, 1, filled[payvault.DisputeRespondRequest](t, f))
		},
		"SubscriptionCancelRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			_, err := client.Subscriptions.Cancel(ctx, 1, filled[payvault.SubscriptionCancelRequest](t, f))
			return err
		},
		"InvoiceSendRequest": func(ctx context.Context, client *payvault.Client, f filler) error {
			return client.Invoices.Send(ctx, "1", filled[payvault.InvoiceSendRequest](t, f))
		},
		"AccountUpdaterCard": func(ctx context.Context, client *payvault.Client, f filler) error {
			_, err := client.AccountUpdater.Submit(ctx,
				[]payvault.AccountUpdaterCard{*filled[payvault.AccountUpdaterCard](t, f)})
			return err
		},
	}
}

var errHeld = errors.New("the request is held")

// nowhere is a transport that sends nothing.
type nowhere struct{}

// RoundTrip implements [http.RoundTripper].
func (nowhere) RoundTrip(*http.Request) (*http.Response, error) { return nil, errHeld }

// assertSends checks that a request is sent, or is refused for the named field before that.
func assertSends(t *testing.T, s sender, f filler, refused string, what string) {
	t.Helper()
	client, err := payvault.NewClient("https://base-url.invalid", "key",
		payvault.WithHTTPClient(&http.Client{Transport: nowhere{}}),
		payvault.WithRetryPolicy(payvault.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	err = s(t.Context(), client, f)
	if refused == "" {
		assert.ErrorIs(t, err, errHeld, "the SDK refuses what the document permits: %s", what)
		return
	}
	assert.ErrorIs(t, err, payvault.ErrInvalidRequest, "the SDK sends what the document refuses: %s", what)
	var failed *payvault.Error
	require.ErrorAs(t, err, &failed)
	paths := strings.Join(slices.Sorted(maps.Keys(failed.Fields)), " ")
	assert.Contains(t, paths, refused, what)
}

// TestRequired leaves out one field of a request after the other: the SDK has to refuse the request exactly if the
// document requires the field.
func TestRequired(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for name, s := range sends(t) {
		schema := c.schema(t, name).Value
		for property := range schema.Properties {
			refused := ""
			if slices.Contains(schema.Required, property) {
				refused = property
			}
			f := requestFiller(nil)
			f.skip[property] = true
			assertSends(t, s, f, refused, name+" without "+property)
		}
	}
}

// TestConditions leaves out two fields of a customer, for which the document has conditions.
func TestConditions(t *testing.T) {
	t.Parallel()
	tests := []struct{ one, other, refused string }{
		{"customer_id", "auto_generate_customer_id", "customer_id"},
		{"customer_firm_name", "customer_first_name", "customer_first_name"},
		{"customer_firm_name", "customer_last_name", "customer_first_name"},
		{"customer_first_name", "customer_last_name", ""},
	}
	for _, tt := range tests {
		f := requestFiller(nil)
		f.skip[tt.one], f.skip[tt.other] = true, true
		assertSends(t, sends(t)["CustomerCreateRequest"], f, tt.refused, "a customer without "+tt.one+" and "+tt.other)
	}
}

// TestLimits goes up to the limits of the document, and one beyond.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	cards := limit(t, c.schema(t, "AccountUpdaterSubmitRequest").Value.Properties["data"].Value.MaxItems)
	message := limit(t, c.schema(t, "DisputeRespondRequest").Value.Properties["message"].Value.MaxLength)
	for more, refused := range []string{"", "data"} {
		submitMany := func(ctx context.Context, client *payvault.Client, f filler) error {
			card := *filled[payvault.AccountUpdaterCard](t, f)
			_, err := client.AccountUpdater.Submit(ctx, slices.Repeat([]payvault.AccountUpdaterCard{card}, cards+more))
			return err
		}
		assertSends(t, submitMany, requestFiller(nil), refused, "cards up to the limit, or one more")
	}
	for more, refused := range []string{"", "message"} {
		long := requestFiller(map[string]any{"message": strings.Repeat("é", message+more)})
		assertSends(t, sends(t)["DisputeRespondRequest"], long, refused, "a message up to the limit, or one character more")
	}
}

func limit(t *testing.T, of *uint64) int {
	t.Helper()
	require.NotNil(t, of, "the document has no limit")
	return int(*of) //nolint:gosec // small
}
