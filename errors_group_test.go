package payvault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/service"
)

// silent returns a client of a service that answers only the creation of a payee, with status 429. The service reads
// all other requests and never answers them.
func silent(t *testing.T, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	pool := service.Pipe(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/payee") {
			w.Header().Set("Retry-After", "20")
			service.Say(w, http.StatusTooManyRequests, "")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client has closed the connection
		<-r.Context().Done()
	})
	client, err := payvault.NewClient("http://127.0.0.1:1", service.APIKey,
		append([]payvault.Option{payvault.WithHTTPClient(pool)}, opts...)...)
	require.NoError(t, err)
	return client
}

// siblings returns calls that run beside the call under test. They fail and perform nothing. The call under test must
// not return their errors, because it may have performed something.
func siblings(ctx context.Context, client *payvault.Client) map[string]func() error {
	return map[string]func() error{
		"a failed local check": func() error {
			_, err := client.Payees.Create(ctx, &payvault.PayeeCreateRequest{})
			return err
		},
		"a 429 that cannot be waited out": func() error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_, err := client.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: "Acme"})
			return err
		},
	}
}

// causeJournal is a journal whose Begin returns the cause of its context as an error, as some database drivers do.
type causeJournal struct{}

func (causeJournal) Begin(ctx context.Context, _ string, _ int) (payvault.BatchState, error) {
	return payvault.BatchState{}, context.Cause(ctx)
}

func (causeJournal) End(context.Context, string, int, payvault.BatchOutcome) error { return nil }

// besides returns the functions under test. Each function makes one call or runs SubmitAll, and returns one error per
// call or batch. While the first requests of the function are in flight, the test ends the context with the error of
// another call. The last error of SubmitAll has to match context.Canceled and no sentinel.
func besides(t *testing.T) map[string]func(context.Context, *payvault.Client) []error {
	t.Helper()
	submitAll := func(ctx context.Context, c *payvault.Client, options payvault.SubmitAllOptions) (errs []error) {
		cards := slices.Repeat([]payvault.AccountUpdaterCard{card()}, 10*payvault.MaxAccountUpdaterCards)
		for b, err := range c.AccountUpdater.SubmitAll(ctx, payvault.Cards(cards...), &options) {
			if err != nil {
				service.AssertMatches(t, err)
				assert.ErrorIs(t, err, context.Canceled)
				return errs
			}
			errs = append(errs, b.Err)
		}
		assert.Fail(t, "SubmitAll does not say that it has stopped")
		return errs
	}
	return map[string]func(context.Context, *payvault.Client) []error{
		"a call": func(ctx context.Context, c *payvault.Client) []error {
			return []error{c.Invoices.Send(ctx, "I1", nil)}
		},
		"SubmitAll": func(ctx context.Context, c *payvault.Client) []error {
			return submitAll(ctx, c, payvault.SubmitAllOptions{})
		},
		"a job": func(ctx context.Context, c *payvault.Client) []error {
			return submitAll(ctx, c, payvault.SubmitAllOptions{Journal: causeJournal{}, Job: "job"})
		},
	}
}

// TestError_causeIsTheErrorOfASibling cancels the context of calls as errgroup does: the cause is the error of another
// call, the sibling. The test checks that the requests in flight are of unknown outcome, that no other request is sent,
// and that no error matches the error of the sibling or its sentinels.
func TestError_causeIsTheErrorOfASibling(t *testing.T) {
	t.Parallel()
	for _, sibling := range []string{"a failed local check", "a 429 that cannot be waited out"} {
		for name, work := range besides(t) {
			t.Run(name+" beside "+sibling, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					client := silent(t, payvault.WithObserver(payvault.Observer{
						Attempt: func(_ context.Context, info payvault.CallInfo, r payvault.CallResult) {
							if info.Op != payvault.OpPayeesCreate {
								service.AssertMatches(t, r.Err)
							}
						},
					}))
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					done := make(chan []error, 1)
					go func() { done <- work(ctx, client) }()
					synctest.Wait() // until the requests in flight wait for their answers
					cause := siblings(t.Context(), client)[sibling]()
					require.Error(t, cause)
					cancel(cause)
					errs, inFlight := <-done, 4
					if name == "a call" {
						inFlight = 1
					}
					require.Len(t, errs, map[int]int{1: 1, 4: 5}[inFlight], "one batch was waiting for room")
					for i, err := range errs {
						assertOwn(t, err, i < inFlight, name == "a job")
					}
				})
			})
		}
	}
}

// assertOwn checks that an error matches only the sentinels of its own request, and not the sentinels of the error that
// canceled the context.
func assertOwn(t *testing.T, err error, wasSent, isJob bool) {
	t.Helper()
	if wasSent {
		service.AssertMatches(t, err, payvault.ErrOutcomeUnknown)
		assert.Equal(t, payvault.DeliveryUnknown, service.AsError(t, err).Delivery)
	} else {
		service.AssertMatches(t, err, payvault.ErrStopped)
		assert.Equal(t, payvault.DeliveryNotSent, service.AsError(t, err).Delivery)
	}
	if wasSent && !isJob { // with a journal, the requests in flight go on until they time out
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Equal(t, !wasSent && !isJob, payvault.SafeToRetry(err), err)
}

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
