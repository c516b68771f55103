// Package gogithub creates an issue comment through go-github, a call of comparable size.
package gogithub

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-github/v89/github"

	"example.com/payvault/benchmarks/client"
)

// Answer is the body of an answer.
const Answer = `{"id":1347,"node_id":"MDU6SXNzdWUx","body":"12 St James's Square, 10001, ada@example.com",` +
	`"created_at":"2026-01-15T09:30:42Z","updated_at":"2026-01-15T09:30:42Z","author_association":"OWNER"}`

// New comments on an issue.
func New(baseURL string, transport http.RoundTripper) (client.Call, error) {
	base := baseURL + "/"
	c, err := github.NewClient(github.WithHTTPClient(&http.Client{Transport: transport}), github.WithAuthToken(client.Key),
		github.WithURLs(&base, &base))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		comment, _, err := c.Issues.CreateComment(ctx, "ada", "engine", 17, &github.IssueComment{
			Body: new("12 St James's Square, 10001, ada@example.com: note G of the translation, with the table of operations"),
		})
		if err == nil && comment.GetID() == 0 {
			err = errors.New("no ID")
		}
		return err
	}, nil
}
