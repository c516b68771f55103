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

// inGroup runs call and sibling as errgroup.WithContext does: the sibling's error becomes the cause of their canceled
// context. The sibling runs when call waits for its answer.
func inGroup(t *testing.T, call func(ctx context.Context) error, sibling func() error) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	failed := make(chan error, 1)
	go func() { failed <- call(ctx) }()
	synctest.Wait()
	cause := sibling()
	require.Error(t, cause)
	cancel(cause)
	return <-failed
}

// silent returns a client of a service that never answers, except that it answers the creation of a payee with 429.
func silent(t *testing.T, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	pool := service.Pipe(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/payee") {
			w.Header().Set("Retry-After", "20")
			service.Say(w, http.StatusTooManyRequests, "")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // until it is read, the server does not notice that the client leaves
		<-r.Context().Done()
	})
	client, err := payvault.NewClient("http://127.0.0.1:1", service.APIKey,
		append([]payvault.Option{payvault.WithHTTPClient(pool)}, opts...)...)
	require.NoError(t, err)
	return client
}

// besideEach runs test once for each sibling, in a synctest bubble.
func besideEach(t *testing.T, name string, test func(t *testing.T, client *payvault.Client, sibling func() error)) {
	t.Helper()
	for _, sibling := range []string{"a failed local check", "a 429"} {
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
				test(t, client, siblings(t, client)[sibling])
			})
		})
	}
}

// siblings returns two calls that fail before they are performed: one is not sent, and one is answered with 429.
func siblings(t *testing.T, client *payvault.Client) map[string]func() error {
	t.Helper()
	return map[string]func() error{
		"a failed local check": func() error {
			_, err := client.Payees.Create(t.Context(), &payvault.PayeeCreateRequest{})
			assert.ErrorIs(t, err, payvault.ErrInvalidRequest)
			return err
		},
		"a 429": func() error { // it asks for more time than the context has
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := client.Payees.Create(ctx, &payvault.PayeeCreateRequest{Name: "Acme"})
			assert.ErrorIs(t, err, payvault.ErrRateLimited)
			return err
		},
	}
}

// assertOwn checks that an error has the Delivery of its own call, whatever canceled the context.
func assertOwn(t *testing.T, err error, want payvault.Error) {
	t.Helper()
	unknown := want.Delivery == payvault.DeliveryUnknown
	if unknown {
		service.AssertError(t, err, want, payvault.ErrOutcomeUnknown)
	} else {
		service.AssertError(t, err, want)
	}
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, unknown, strings.HasSuffix(err.Error(), " (outcome unknown)"), err)
	assert.Equal(t, !unknown, strings.HasSuffix(err.Error(), " (not sent)"), err)
	assert.Equal(t, !unknown, payvault.SafeToRetry(err), err)
	class := payvault.CallResult{Err: err}.ErrorClass()
	assert.NotContains(t, []string{"invalid_request", "rate_limited"}, class)
}

// TestError_causeIsTheErrorOfASibling checks that a call that was sent has an unknown outcome, whatever canceled its
// context.
func TestError_causeIsTheErrorOfASibling(t *testing.T) {
	t.Parallel()
	calls := map[payvault.Operation]func(context.Context, *payvault.Client) error{
		payvault.OpInvoicesSend: func(ctx context.Context, c *payvault.Client) error {
			return c.Invoices.Send(ctx, "I1", nil)
		},
		payvault.OpPayeesDelete: func(ctx context.Context, c *payvault.Client) error {
			return c.Payees.Delete(ctx, 3001)
		},
	}
	for op, call := range calls {
		besideEach(t, string(op), func(t *testing.T, client *payvault.Client, sibling func() error) {
			t.Helper()
			err := inGroup(t, func(ctx context.Context) error { return call(ctx, client) }, sibling)
			assertOwn(t, err, payvault.Error{Op: op, Attempts: 1})
			assert.ErrorContains(t, err, "payees.create", "the text may say why")
		})
	}
}

// TestError_causeIsTheErrorOfASiblingOfSubmitAll checks that batches that were sent have an unknown outcome, and that
// the other batches are reported as not sent.
func TestError_causeIsTheErrorOfASiblingOfSubmitAll(t *testing.T) {
	t.Parallel()
	const inFlight = 4
	besideEach(t, "SubmitAll", func(t *testing.T, client *payvault.Client, sibling func() error) {
		t.Helper()
		cards := slices.Repeat([]payvault.AccountUpdaterCard{card()}, 10*payvault.MaxAccountUpdaterCards)
		var batches []payvault.AccountUpdaterBatch
		err := inGroup(t, func(ctx context.Context) error {
			options := &payvault.SubmitAllOptions{Concurrency: inFlight}
			for b := range client.AccountUpdater.SubmitAll(ctx, slices.Values(cards), options) {
				batches = append(batches, *b)
			}
			return ctx.Err()
		}, sibling)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, batches, 10)
		for i, b := range batches {
			want := payvault.Error{Op: payvault.OpAccountUpdaterSubmit, Attempts: 1}
			if i >= inFlight {
				want.Delivery, want.Attempts = payvault.DeliveryNotSent, 0
			}
			assertOwn(t, b.Err, want)
		}
	})
}

// like is an error whose Is method matches a sentinel.
type like struct{ sentinel error }

func (like) Error() string { return "like another" }

func (l like) Is(target error) bool { return target == l.sentinel }

// TestError_ofAnotherCall checks an error of another call that the caller's code returns to this call, for example from
// a RoundTripper. This call's error must match neither that error nor its sentinels nor its cause.
func TestError_ofAnotherCall(t *testing.T) {
	t.Parallel()
	dns := &net.OpError{Op: "write", Err: &net.DNSError{Err: "no such host"}}
	others := map[string]error{"a sentinel": payvault.ErrRateLimited, "like a sentinel": like{payvault.ErrInvalidRequest}}
	for name, opts := range map[string][]payvault.Option{
		"a failed check": {}, "a connection": {service.Over(service.RoundTripper(
			func(*http.Request) (*http.Response, error) { return nil, dns }))},
		"a key":  {payvault.WithKeySource(func(context.Context) (string, error) { return "", io.EOF })},
		"a size": {service.Over(service.Canned(200, `{"code":0}`)), payvault.WithMaxResponseBytes(1)},
		"a 401":  {service.Over(service.Canned(401, ""))},
	} {
		client := service.Client(t, service.Nowhere, append(opts, service.Impatient(1))...)
		if name == "a failed check" {
			others[name] = client.Invoices.Send(t.Context(), "", nil)
		} else {
			others[name] = client.Invoices.Send(t.Context(), "I1", nil)
		}
		require.Error(t, others[name])
	}
	for name, other := range others {
		for shape, wrapped := range map[string]error{
			"as it is": other, "wrapped": fmt.Errorf("group: %w", other), "joined": errors.Join(context.Canceled, other),
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
				})
			}
		}
	}
}

// waysOf returns calls into which the caller's code brings err: by a RoundTripper, a body, a key source, a file or a
// context.
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

// checkedOnce is a file that fails once its last byte was read, so that only the check before the upload succeeds.
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

// causeJournal is a journal that returns the cause of the context, as a database driver may do.
type causeJournal struct{}

func (causeJournal) Begin(ctx context.Context, _ string, _ int) (payvault.BatchState, error) {
	return payvault.BatchState{}, context.Cause(ctx)
}

func (causeJournal) End(context.Context, string, int, payvault.BatchOutcome) error { return nil }

// TestError_causeIsTheErrorOfASiblingOfAJob checks that batches in flight have an unknown outcome and that the other
// batches are not sent, in a walk with a journal. It does not cancel requests in flight.
func TestError_causeIsTheErrorOfASiblingOfAJob(t *testing.T) {
	t.Parallel()
	besideEach(t, "a job", func(t *testing.T, client *payvault.Client, sibling func() error) {
		t.Helper()
		cards := slices.Repeat([]payvault.AccountUpdaterCard{card()}, 10*payvault.MaxAccountUpdaterCards)
		var batches []payvault.AccountUpdaterBatch
		_ = inGroup(t, func(ctx context.Context) error {
			options := &payvault.SubmitAllOptions{Journal: causeJournal{}, Job: "job"}
			for b := range client.AccountUpdater.SubmitAll(ctx, slices.Values(cards), options) {
				batches = append(batches, *b)
			}
			return ctx.Err()
		}, sibling)
		require.Len(t, batches, 10)
		for i, b := range batches {
			if i < 4 {
				service.AssertMatches(t, b.Err, payvault.ErrOutcomeUnknown)
				assert.Equal(t, payvault.BatchUnknown, b.Status)
			} else {
				service.AssertMatches(t, b.Err)
				require.ErrorIs(t, b.Err, context.Canceled)
				assert.Equal(t, payvault.BatchNotSent, b.Status)
			}
		}
	})
}
