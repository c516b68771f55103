//go:build !race

package payvault_test

import (
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestAllocationsOfOneCall guards the client's own cost: those of the request and of the answer in memory are among them. The
// race detector allocates too, and encoding/json allocates less from Go 1.27 on.
//
//nolint:paralleltest // it counts the allocations of the process
func TestAllocationsOfOneCall(t *testing.T) {
	want := 22.0
	if strings.HasPrefix(runtime.Version(), "go1.26") {
		want = 30
	}
	quiet := slog.New(slog.NewJSONHandler(io.Discard, nil))
	for name, opts := range map[string][]payvault.Option{
		"no logger": nil, "a logger that does not want Debug": {payvault.WithLogger(quiet)},
	} {
		opts = append(opts, payvault.WithHTTPClient(&http.Client{Transport: newCanned(tokenizeAnswer())}))
		client, err := payvault.NewClient("https://service.test/gateway/v1", "test-api-key", opts...)
		require.NoError(t, err)
		in := tokenizeRequest()
		ctx := t.Context()
		got := testing.AllocsPerRun(1000, func() { _, err = client.Tokens.Tokenize(ctx, in) })
		assert.NoError(t, err)
		assert.LessOrEqual(t, got, want, name)
	}
}
