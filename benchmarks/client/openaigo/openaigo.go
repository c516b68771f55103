// Package openaigo asks for a short completion through openai-go, a call of comparable size.
package openaigo

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"example.com/payvault/benchmarks/client"
)

// Answer is the body of an answer.
const Answer = `{"id":"chatcmpl-123","object":"chat.completion","created":1680893993,"model":"small",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"Note G."},"finish_reason":"stop"}]}`

// New asks for a completion.
func New(baseURL string, transport http.RoundTripper) (client.Call, error) {
	c := openai.NewClient(option.WithBaseURL(baseURL), option.WithAPIKey(client.Key),
		option.WithHTTPClient(&http.Client{Transport: transport}))
	return func(ctx context.Context) error {
		completion, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{
			Model:    "small",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Which note has the table of operations? ada@example.com, 12 St James's Square")},
		})
		if err == nil && completion.ID == "" {
			err = errors.New("no ID")
		}
		return err
	}, nil
}
