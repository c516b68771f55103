package calls_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestEveryOperation: the package, this table, the hand-written list of the interface and the services name the same.
func TestEveryOperation(t *testing.T) {
	t.Parallel()
	var want, got []payvault.Operation
	var methods []string
	for _, info := range payvault.Operations() {
		want = append(want, info.Op)
	}
	for _, o := range calls.Table() {
		got = append(got, o.Op)
	}
	assert.ElementsMatch(t, want, got)
	for _, c := range calls.All() {
		methods = append(methods, c.GoName)
	}
	slices.Sort(methods)
	assert.ElementsMatch(t, service.Methods(), slices.Compact(methods))
}

// TestInterface runs every operation and holds what the service sees against what is stated of it by hand.
func TestInterface(t *testing.T) {
	t.Parallel()
	replays := map[payvault.Operation]string{}
	for _, c := range calls.All() {
		repeated := observedReplay(t, &c)
		assert.Equal(t, c.Repeats, repeated, c.Name)
		word := map[bool]string{true: "yes", false: "no"}[repeated]
		if before := replays[c.Op]; before != "" && before != word {
			word = "card_id"
		}
		replays[c.Op] = word
	}
	for _, o := range calls.Table() {
		method, path := observedEndpoint(t, &o)
		assert.Equal(t, o.Stated, strings.Join([]string{method, path, replays[o.Op], observedMerchant(t, &o)}, " "), o.Op)
	}
}

// Names that stand for themselves in a path.
func marked() calls.IDs {
	ids := calls.Documented()
	ids.Payee, ids.Application, ids.Dispute, ids.Subscription = 70005, 70007, 70009, 70010
	return ids
}

func observedEndpoint(t *testing.T, o *calls.Operation) (method, path string) {
	t.Helper()
	server := service.Answer(t, http.StatusOK, o.Answer())
	_, err := o.Do(t.Context(), service.Client(t, server.URL), marked(), o.Full)
	require.NoError(t, err, o.Op)
	require.Len(t, server.Seen(), 1)
	got := server.Seen()[0]
	assert.False(t, got.Chunked, "%s: every length is known", o.Op)
	ids := marked()
	return got.Method, strings.NewReplacer(
		"70005", "{payee_id}", "70007", "{appId}", "70009", "{rec_id}", "70010", "{subscription_id}",
		string(ids.Invoice), "{invoice_id}", string(ids.Webhook), "{webhook_id}", string(ids.Event), "{event}",
	).Replace(got.Path)
}

func observedReplay(t *testing.T, c *calls.Call) bool {
	t.Helper()
	server := service.Observe(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		service.Say(w, http.StatusOK, c.Answer())
	})
	_, err := c.Do(t.Context(), service.Client(t, server.URL), marked(), c.Full)
	return err == nil
}

// observedMerchant says where an operation puts the merchant of ForMerchant.
func observedMerchant(t *testing.T, o *calls.Operation) string {
	t.Helper()
	server := service.Answer(t, http.StatusOK, o.Answer())
	client := service.Client(t, server.URL).ForMerchant(calls.ActingFor)
	request := o.Minimal
	if o.Op == payvault.OpTokensTokenize {
		request = &payvault.TokenizeRequest{} // the other names a merchant
	}
	if _, err := o.Do(t.Context(), client, marked(), request); err != nil {
		service.AssertError(t, err, payvault.Error{Op: o.Op, Delivery: payvault.NotSent}, payvault.ErrMerchantNotSupported)
		assert.Empty(t, server.Seen())
		return "-"
	}
	got := server.Seen()[0]
	if got.Query.Get("merchant_id") == "212346" {
		return "query"
	}
	var body struct {
		MerchantID json.RawMessage `json:"merchant_id"`
	}
	require.NoError(t, json.Unmarshal(got.Body, &body))
	return map[string]string{`212346`: "body", `"212346"`: "body-string"}[string(body.MerchantID)]
}
