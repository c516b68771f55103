package payvault_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestMain fails if a goroutine is still running after the tests, for example because a test has not closed a server.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errShutdown = errors.New("the program shuts down")

// answering returns a client of a service that gives the same answer to each request.
func answering(tb testing.TB, status int, body string, opts ...payvault.Option) *payvault.Client {
	tb.Helper()
	return service.Client(tb, service.Nowhere, append(opts, service.Over(service.Canned(status, body)))...)
}

// inTurn returns an option for a service that answers with the given statuses in order, and then repeats the last one.
// Each answer has the body of a success. Status 0 is a lost connection.
func inTurn(statuses ...int) payvault.Option {
	return service.Over(service.RoundTripper(func(*http.Request) (*http.Response, error) {
		status := statuses[0]
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
		if status == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		return service.Reply(status, `{"code":0,"data":{}}`), nil
	}))
}

// addEvent calls AddEvent. Without WithReplay, the client does not repeat AddEvent after an attempt that may have
// performed it.
func addEvent(tb testing.TB, c *payvault.Client, opts ...payvault.CallOption) error {
	tb.Helper()
	_, err := c.Webhooks.AddEvent(tb.Context(), "w", "e", opts...)
	return err
}

// call is a function that makes one call by the given client.
type call func(c *payvault.Client, opts ...payvault.CallOption) (any, error)

// named returns the call that has the given name in package calls. The call sends the smallest request.
func named(tb testing.TB, name string) call {
	tb.Helper()
	all := calls.All()
	at := slices.IndexFunc(all, func(c calls.Call) bool { return c.Name == name })
	return func(c *payvault.Client, opts ...payvault.CallOption) (any, error) {
		return all[at].Do(tb.Context(), c, calls.Documented(), all[at].Minimal, opts...)
	}
}

// perform calls an operation of a service that answers with the documented success. It returns the body of the request
// that the service got.
func perform(t *testing.T, op payvault.Operation, request any, opts ...payvault.Option) string {
	t.Helper()
	o := calls.Of(op)
	got, _, err := service.Exchange(t, &o, request, o.Answer(), opts...)
	require.NoError(t, err)
	return string(got.Body)
}

// assertRefused checks that an operation refuses a request with the given problems, and that nothing is sent.
func assertRefused(t *testing.T, op payvault.Operation, request any, problems service.Fields) {
	t.Helper()
	o := calls.Of(op)
	result, err := o.Do(t.Context(), service.Client(t, service.Nowhere), calls.Documented(), request)
	service.AssertInvalid(t, err, op, problems)
	assert.Nil(t, result)
}

// assertRead checks that a call succeeds if the answer has the given body. The call must return want, and
// Response.Unread must be equal to unread.
func assertRead(t *testing.T, do call, body string, want any, unread ...string) {
	t.Helper()
	var response payvault.Response
	got, err := do(answering(t, http.StatusOK, body), payvault.WithResponse(&response))
	require.NoError(t, err, body)
	assert.Equal(t, want, got, body)
	assert.Equal(t, unread, response.Unread, body)
}

// assertUnread checks that a call fails if the answer has the given body. The error must have the reason, and Response
// must have the body unchanged.
func assertUnread(t *testing.T, do call, body, reason string) {
	t.Helper()
	var response payvault.Response
	_, err := do(answering(t, http.StatusOK, body), payvault.WithResponse(&response))
	require.ErrorContains(t, err, reason, "%.200s", body)
	assert.Equal(t, body, string(response.Body), "the answer as it came")
}

// request returns a request for Client.Call.
func request(method string) payvault.Request {
	return payvault.Request{Method: method, Path: []string{"x"}}
}

// decode decodes a JSON text into a T.
func decode[T any](text string) (T, error) {
	var v T
	err := json.Unmarshal([]byte(text), &v)
	return v, err
}

// garbageCanary is part of test values that cannot be read. No error may contain it.
const garbageCanary = "4111garbage1111"

// assertUnreadable checks that decoding into a T fails for each text, for the JSON value true, and for values with
// garbageCanary. The error must contain neither garbageCanary nor the text. A text of up to 8 bytes is not looked for,
// because it may occur in the error by chance.
func assertUnreadable[T any](t *testing.T, texts ...string) {
	t.Helper()
	texts = append(texts, `"`+garbageCanary+`"`, `{"a":"`+garbageCanary+`"}`, `["`+garbageCanary+`"]`, `true`)
	for _, text := range texts {
		_, err := decode[T](text)
		if assert.Error(t, err, text) && len(text) > 8 {
			assert.NotContains(t, err.Error(), garbageCanary)
			assert.NotContains(t, err.Error(), text)
		}
	}
}
