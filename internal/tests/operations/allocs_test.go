//go:build !race

package operations

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// TestAllocations guards the client's own cost, that of the answer in memory included. The race detector allocates too.
//
//nolint:paralleltest // it counts the allocations of the process
func TestAllocations(t *testing.T) {
	quiet := slog.New(slog.NewJSONHandler(io.Discard, nil))
	cards := make([]payvault.AccountUpdaterCard, payvault.MaxAccountUpdaterCards)
	for i := range cards {
		cards[i] = payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}
	}
	request := tokenizeRequest()
	tokenize := func(ctx context.Context, c *payvault.Client) error {
		_, err := c.Tokens.Tokenize(ctx, request)
		return err
	}
	for name, test := range map[string]struct {
		most   float64
		answer string
		opts   []payvault.Option
		call   func(ctx context.Context, c *payvault.Client) error
	}{
		"tokenize": {52, string(tokenizeAnswer()), nil, tokenize},
		"tokenize, logger without Debug": {
			53, string(tokenizeAnswer()),
			[]payvault.Option{payvault.WithLogger(quiet)},
			tokenize,
		},
		"a page of no customers": {
			60, `{"code":0,"totalPages":0,"totalRecords":0,"data":[]}`, nil,
			func(ctx context.Context, c *payvault.Client) error {
				_, err := c.Customers.List(ctx, nil)
				return err
			},
		},
		"a submission of 100 cards": {
			52, `{"code":0,"data":{"request_id":"r1"}}`, nil,
			func(ctx context.Context, c *payvault.Client) error {
				_, err := c.AccountUpdater.Submit(ctx, cards)
				return err
			},
		},
	} {
		opts := append(test.opts, service.Over(service.Canned(200, test.answer)))
		client, err := payvault.NewClient("https://service.test/gateway/v1", "test-api-key", opts...)
		require.NoError(t, err)
		ctx := t.Context()
		got := testing.AllocsPerRun(1000, func() { err = test.call(ctx, client) })
		require.NoError(t, err)
		assert.LessOrEqual(t, got, test.most, name)
	}
}

func tokenizeAnswer() []byte {
	return []byte(`{"rcode":"000","rmsg":"Success","pg_id":"PG1001","card_id":"CARD1002",` +
		`"card_number":"4111xxxxxx111111"}`)
}

func tokenizeRequest() *payvault.TokenizeRequest {
	return &payvault.TokenizeRequest{
		MerchantID: 212345, CardholderName: "Tina Tester", AVSZip: "10001",
		CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1229", CVV2: payvault.NewSecret("123"),
	}
}
