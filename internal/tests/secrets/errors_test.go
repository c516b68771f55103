package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func quoted(text string) string {
	b, _ := jsontext.AppendQuote(nil, text) // with U+FFFD for what is no UTF-8
	return string(b)
}

// TestHiddenURL: net/http wraps every failure in a *url.Error, with path and query.
func TestHiddenURL(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("quotes /quoted-path?q=1")
	client := service.Client(t, "http://127.0.0.1/quoted-path", service.Over(service.RoundTripper(
		func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: errOwn}
		})))
	for _, c := range calls.All() {
		_, err := c.Do(t.Context(), client, calls.Documented(), c.Full)
		service.AssertHidden(t, err, "quoted-path", service.APIKey)
		_, found := errors.AsType[*url.Error](err)
		assert.False(t, found, "errors.As must not dig it out")
		assert.ErrorIs(t, err, errOwn, "what the transport said can still be matched")
		assert.ErrorContains(t, err, "connection failed")
	}
}

// TestEchoOfTheCaller: what the caller has put into path, filters, queries and headers is not repeated, even if the
// service does, as it is or escaped. Names of fields are.
func TestEchoOfTheCaller(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere, service.Over(service.RoundTripper(
		func(r *http.Request) (*http.Response, error) {
			echo := fmt.Sprint(r.URL.Path, " ", r.Header.Get("X-Trace"), " ", r.URL.RawQuery, " ", r.URL.Query())
			return service.Reply(400, `{"code":9,"message":`+quoted(echo)+`}`), nil
		})))
	const private = "ada ä+b%y&ron@example.com"
	sent := client.Invoices.Send(t.Context(), "inv-secret", nil, payvault.WithHeader("X-Trace", "hunter2-token"))
	_, listed := client.Customers.List(t.Context(), &payvault.ListOptions{
		OrderOn: "customer_id", Filters: []payvault.Filter{payvault.Where("customer_email", "EQUALS", private)},
	})
	errs := []error{sent, listed}
	for _, query := range []url.Values{{"filter": {"field,EQUALS," + private}}, {"q": {private}, "page": {"0"}}} {
		request := payvault.Request{Method: "GET", Path: []string{"x"}, Query: query}
		errs = append(errs, client.Call(t.Context(), request, nil))
	}
	for _, err := range errs {
		require.ErrorIs(t, err, payvault.ErrRejected)
		service.AssertHidden(t, err, "inv-secret", "hunter2-token", "ada", "C3", "ron", "example.com")
	}
	assert.Contains(t, service.AsError(t, listed).Message, "order_on=customer_id")
	assert.Contains(t, service.AsError(t, listed).Message, "customer_email")
}

// TestEchoOfSecretsThatOverlap: a code is the start of the card number, or within it, and must not break up a number.
func TestEchoOfSecretsThatOverlap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ card, account, cvv, said, want string }{
		{"4111111111111111", "", "411", "card 4111111111111111 with code 411", "card [REDACTED] with code [REDACTED]"},
		{"4111111111111111", "", "1111", "card 4111111111111111 with code 1111", "card [REDACTED] with code [REDACTED]"},
		{"", "123456789", "123", "bad account 123456789", "bad account [REDACTED]"},
		{"", "123456789", "123", "bad account 123-456 789", "bad account [REDACTED]"},
	} {
		client := service.Client(t, service.Nowhere,
			service.Over(service.Canned(200, `{"rcode":"905","rmsg":"`+test.said+`"}`)))
		_, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{
			MerchantID: 1, CardNumber: payvault.NewSecret(test.card), CVV2: payvault.NewSecret(test.cvv),
			DDANumber: payvault.NewSecret(test.account),
		})
		assert.Equal(t, test.want, service.AsError(t, err).Message)
	}
}

// TestCodeThatEqualsAnID: a program decides by the code, whatever digits the caller's ID or security code has.
func TestCodeThatEqualsAnID(t *testing.T) {
	t.Parallel()
	client := service.Client(t, service.Nowhere, service.Over(service.Canned(200,
		`{"code":117,"rcode":"117","message":"refused","rmsg":"refused"}`)))
	_, cancelErr := client.Subscriptions.Cancel(t.Context(), 117, &payvault.SubscriptionCancelRequest{CustomerID: "C1"})
	request := &payvault.TokenizeRequest{MerchantID: 1, CVV2: payvault.NewSecret("117")}
	_, tokenizeErr := client.Tokens.Tokenize(t.Context(), request)
	assert.Equal(t, "117", service.AsError(t, cancelErr).Code)
	assert.Equal(t, "117", service.AsError(t, tokenizeErr).Code)
}

// TestEchoOfEveryKey: the key of an earlier attempt may still be valid.
func TestEchoOfEveryKey(t *testing.T) {
	t.Parallel()
	server := service.Observe(t, func(n int, w http.ResponseWriter, r *http.Request) {
		service.Say(w, []int{429, 429, 400}[n-1],
			`{"code":7,"message":"rotated-key-1 then rotated-key-2 then `+r.Header.Get("Authorization")+`"}`)
	})
	asked := 0
	source := func(context.Context) (string, error) {
		asked++
		return "rotated-key-" + strconv.Itoa(asked), nil
	}
	_, err := service.Client(t, server.URL, payvault.WithKeySource(source)).Applications.Validate(t.Context(), 1)
	service.AssertHidden(t, err, "rotated-key", base64.StdEncoding.EncodeToString([]byte(":rotated-key-3")))
	assert.Equal(t, "[REDACTED] then [REDACTED] then Basic [REDACTED]", service.AsError(t, err).Message)
}
