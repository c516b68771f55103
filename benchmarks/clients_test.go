package benchmarks

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"resty.dev/v3"

	"example.com/payvault"
)

const apiKey = "benchmark-key"

// call makes one call and checks its result.
type call func(context.Context) error

// maker describes an implementation. Its function make creates a client, and returns a function that makes one small
// call. If transport is nil, the client uses a connection pool of its own.
type maker struct {
	impl   string
	answer string // body of the answer that the call expects
	make   func(tb testing.TB, url string, transport http.RoundTripper) call
}

// rivals returns the two implementations that most of the benchmarks compare: byhand and payvault, in random order.
func rivals() []maker {
	const answer = `{"rcode":"000","rmsg":"Approved","pg_id":"8f14e45fceea167a5a36dedd4bea2543",` +
		`"card_id":"c20ad4d76fe97759aa27a0c99bff6710","card_number":"4111xxxxxx111111","echo_fields":"[{\"order\":\"17\"}]"}`
	list := []maker{{"byhand", answer, tokenizeByHand}, {"payvault", answer, tokenizePayvault}}
	rand.Shuffle(2, func(i, j int) { list[i], list[j] = list[j], list[i] }) //nolint:gosec // no secret
	return list
}

// everyone returns the rivals and resty, an HTTP client for SDKs. It was the fastest of several packages that were
// tried.
func everyone() []maker {
	list := rivals()
	return append(list, maker{"resty", list[0].answer, tokenizeResty})
}

// checkID returns err, or an error if the answer has no ID.
func checkID(id string, err error) error {
	if err == nil && id == "" {
		return errors.New("the answer has no ID")
	}
	return err
}

// orPool returns transport, or a connection pool for many callers if transport is nil.
func orPool(tb testing.TB, transport http.RoundTripper) http.RoundTripper {
	tb.Helper()
	if transport != nil {
		return transport
	}
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConns, pool.MaxIdleConnsPerHost = 0, 128
	tb.Cleanup(pool.CloseIdleConnections)
	return pool
}

// newPayvault returns a client of payvault. If transport is nil, the client uses its default connection pool.
func newPayvault(tb testing.TB, url string, transport http.RoundTripper) *payvault.Client {
	tb.Helper()
	client, err := payvault.NewClient(url, apiKey, payvault.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(tb, err)
	tb.Cleanup(client.CloseIdleConnections)
	return client
}

func tokenizePayvault(tb testing.TB, url string, transport http.RoundTripper) call {
	tb.Helper()
	c := newPayvault(tb, url, transport)
	return func(ctx context.Context) error {
		resp, err := c.Tokens.Tokenize(ctx, &payvault.TokenizeRequest{
			MerchantID: 4001, CardholderName: "Ada Lovelace", AVSAddress: "12 St James's Square", AVSZip: "10001",
			EmailAddress: []string{"ada@example.com"}, ExpDate: "1230",
			CardNumber: payvault.NewSecret("4111111111111111"), CVV2: payvault.NewSecret("123"),
		})
		if err != nil {
			return err
		}
		return checkID(resp.CardID, nil)
	}
}

func newTokenizeRequest() *tokenizeRequest {
	return &tokenizeRequest{
		MerchantID: "4001", CardholderName: "Ada Lovelace", AVSAddress: "12 St James's Square", AVSZip: "10001",
		EmailAddress: []string{"ada@example.com"}, CardNumber: "4111111111111111", ExpDate: "1230", CVV2: "123",
	}
}

func tokenizeByHand(tb testing.TB, url string, transport http.RoundTripper) call {
	tb.Helper()
	c := newByHand(url, orPool(tb, transport))
	return func(ctx context.Context) error {
		resp, err := c.tokenize(ctx, newTokenizeRequest())
		return checkID(resp.CardID, err)
	}
}

func tokenizeResty(tb testing.TB, url string, transport http.RoundTripper) call {
	tb.Helper()
	c := resty.New().SetTransport(orPool(tb, transport)).SetBaseURL(url).SetBasicAuth("", apiKey).
		SetTimeout(attemptTimeout).SetResponseBodyLimit(maxAnswer).SetRetryCount(3).SetLoggerWarnLevel(true)
	tb.Cleanup(func() { _ = c.Close() })
	return func(ctx context.Context) error {
		var out tokenizeResponse
		_, err := c.R().SetContext(ctx).SetBody(newTokenizeRequest()).SetResult(&out).Post("/pg/tokenize")
		return checkID(out.CardID, err)
	}
}

// walk yields all customers, and requests inFlight pages at a time. It uses the client that impl names.
func walk(tb testing.TB, impl, url string, inFlight int) iter.Seq2[*payvault.Customer, error] {
	tb.Helper()
	if impl == "byhand" {
		return newByHand(url, orPool(tb, nil)).customers(tb.Context(), inFlight)
	}
	options := &payvault.ListOptions{Count: pageSize, Prefetch: inFlight}
	return newPayvault(tb, url, nil).Customers.All(tb.Context(), options)
}

// submit sends n cards, and yields the ID of each request. It sends inFlight requests at a time, with the client that
// impl names.
func submit(tb testing.TB, impl, url string, n, inFlight int) iter.Seq2[string, error] {
	tb.Helper()
	if impl == "byhand" {
		return newByHand(url, orPool(tb, nil)).submitAll(tb.Context(), count(n, func(i int) card {
			return card{CardNumber: "4111111111111111", ExpDate: "1230", CardID: strconv.Itoa(i)}
		}), inFlight)
	}
	cards := withoutError(count(n, func(i int) payvault.AccountUpdaterCard {
		return payvault.AccountUpdaterCard{
			CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230", CardID: strconv.Itoa(i),
		}
	}))
	batches := newPayvault(tb, url, nil).AccountUpdater.SubmitAll(tb.Context(), cards,
		&payvault.SubmitAllOptions{Concurrency: inFlight})
	return func(yield func(string, error) bool) {
		for batch, err := range batches {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(batch.RequestID, batch.Err) {
				return
			}
		}
	}
}

// withoutError returns a stream that yields each item with a nil error.
func withoutError[T any](items iter.Seq[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// upload returns a function that answers a dispute with the file at path. It uses the client that impl names.
func upload(tb testing.TB, impl, url, path string) call {
	tb.Helper()
	if impl == "byhand" {
		c := newByHand(url, orPool(tb, nil))
		return func(ctx context.Context) error { return c.respond(ctx, 7, "see file", path) }
	}
	c := newPayvault(tb, url, nil)
	return func(ctx context.Context) error {
		file, err := payvault.OpenFile(path)
		if err != nil {
			return err
		}
		response := &payvault.DisputeRespondRequest{Message: "see file", Evidence: file}
		return errors.Join(c.Disputes.Respond(ctx, 7, response), file.Close())
	}
}
