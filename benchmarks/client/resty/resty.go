// Package resty makes the same call through resty.
package resty

import (
	"context"
	"errors"
	"net/http"

	"resty.dev/v3"

	"example.com/payvault/benchmarks/client"
	"example.com/payvault/benchmarks/client/floor"
)

// Answer is the body of a tokenize answer.
const Answer = floor.Answer

// New tokenizes a card.
func New(baseURL string, transport http.RoundTripper) (client.Call, error) {
	c := resty.New().SetTransport(transport).SetBaseURL(baseURL).SetBasicAuth("", client.Key).SetRetryCount(3).
		SetLoggerWarnLevel(true) // about plain http
	return func(ctx context.Context) error {
		var out floor.TokenizeResponse
		resp, err := c.R().SetContext(ctx).SetBody(&floor.TokenizeRequest{
			MerchantID: "4001", CardholderName: "Ada Lovelace", AVSAddress: "12 St James's Square", AVSZip: "10001",
			EmailAddress: []string{"ada@example.com"}, CardNumber: "4111111111111111", ExpDate: "1230", CVV2: "123",
		}).SetResult(&out).Post("/pg/tokenize")
		switch {
		case err != nil:
			return err
		case resp.StatusCode() != http.StatusOK || out.CardID == "":
			return errors.New("no card ID")
		}
		return nil
	}, nil
}
