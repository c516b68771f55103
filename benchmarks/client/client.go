// Package client names what the clients under comparison have in common. Each has a package of its own, so that
// a program that links one of them shows what that one costs.
package client

import (
	"context"
	"net/http"
)

// Call makes one small call and checks its result.
type Call func(ctx context.Context) error

// New makes a ready Call to the service at baseURL.
type New func(baseURL string, transport http.RoundTripper) (Call, error)

// Key is the API key of every client.
const Key = "sk_test_0123456789abcdef"
