package payvault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// like is an error that matches a sentinel by its method Is.
type like struct{ sentinel error }

func (like) Error() string { return "like another" }

func (l like) Is(target error) bool { return target == l.sentinel }

// TestError_ofAnotherCall checks calls in which the caller's own code, such as a RoundTripper, returns the error of
// another call. The error of the call must match neither that error nor its sentinels nor its cause.
func TestError_ofAnotherCall(t *testing.T) {
	t.Parallel()
	failing := func(err error) error {
		pool := service.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, err })
		client := service.Client(t, service.Nowhere, service.Over(pool), service.Impatient(1))
		return client.Invoices.Send(t.Context(), "I1", nil)
	}
	others := map[string]error{
		"a sentinel": payvault.ErrRateLimited, "like a sentinel": like{payvault.ErrInvalidRequest},
		"a failed check": service.Client(t, service.Nowhere).Invoices.Send(t.Context(), "", nil),
		"a connection":   failing(&net.OpError{Op: "write", Err: &net.DNSError{Err: "no such host"}}),
		"a canceled one": failing(context.Canceled),
	}
	for name, other := range others {
		for shape, wrapped := range map[string]error{
			"as it is": other, "wrapped": fmt.Errorf("group: %w", other), "joined": errors.Join(context.Canceled, other),
			"late": errors.Join(context.DeadlineExceeded, other),
		} {
			for way, call := range waysOf(t, wrapped) {
				t.Run(name+" "+shape+" by "+way, func(t *testing.T) {
					t.Parallel()
					err := call()
					e := service.AsError(t, err)
					if e.Delivery == payvault.DeliveryUnknown {
						service.AssertMatches(t, err, payvault.ErrOutcomeUnknown)
					} else {
						service.AssertMatches(t, err)
					}
					assert.Equal(t, way == "a key source", e.Delivery == payvault.DeliveryNotSent)
					_, found := errors.AsType[*payvault.Error](errors.Unwrap(e))
					assert.False(t, found, "the error of another call")
					_, found = errors.AsType[*net.DNSError](err)
					assert.False(t, found, "its cause")
					require.NotErrorIs(t, err, other)
					assert.Equal(t, shape == "joined" || way == "a context", errors.Is(err, context.Canceled))
					assert.Equal(t, shape == "late" && way != "a context", errors.Is(err, context.DeadlineExceeded))
				})
			}
		}
	}
}

// waysOf returns calls in which the caller's own code returns err. Each key names that code, such as a key source.
func waysOf(t *testing.T, err error) map[string]func() error {
	t.Helper()
	send := func(opt payvault.Option) func() error {
		return func() error { return service.Client(t, service.Nowhere, opt).Invoices.Send(t.Context(), "I1", nil) }
	}
	return map[string]func() error{
		"a RoundTripper": send(service.Over(service.RoundTripper(
			func(*http.Request) (*http.Response, error) { return nil, err }))),
		"a body": send(service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
			resp := service.Reply(http.StatusOK, "")
			resp.Body = io.NopCloser(iotest.ErrReader(err))
			return resp, nil
		}))),
		"a key source": send(payvault.WithKeySource(func(context.Context) (string, error) { return "", err })),
		"a file": func() error {
			read := service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				_, failed := io.Copy(io.Discard, r.Body)
				return nil, failed
			}))
			content := &checkedOnce{Reader: strings.NewReader("%PDF-1.7"), err: err}
			file := &payvault.File{Name: "a.pdf", Content: content, Size: 8}
			client := service.Client(t, service.Nowhere, read)
			return client.Disputes.Respond(t.Context(), 1, &payvault.DisputeRespondRequest{Message: "m", Evidence: file})
		},
		"a context": func() error {
			ctx, cancel := context.WithCancelCause(t.Context())
			wait := service.Over(service.RoundTripper(func(r *http.Request) (*http.Response, error) {
				cancel(err)
				return nil, context.Cause(r.Context())
			}))
			return service.Client(t, service.Nowhere, wait).Invoices.Send(ctx, "I1", nil)
		},
	}
}

// checkedOnce is a document whose ReadAt fails with err after the SDK has checked the document. The check ends with
// reading the last byte.
type checkedOnce struct {
	*strings.Reader

	err     error
	checked bool
}

func (f *checkedOnce) ReadAt(p []byte, off int64) (int, error) {
	if f.checked {
		return 0, f.err
	}
	f.checked = off == f.Size()-1
	return f.Reader.ReadAt(p, off)
}
