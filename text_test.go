package payvault_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestTextThatIsNotUTF8: encoding/json would replace it silently, and the service would store another text.
func TestTextThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	const bad = "J\xe4ne"
	not := []string{"is not UTF-8"}
	client := newService(t).client(payvault.WithMerchantID(212345))
	_, err := client.Tokens.Tokenize(t.Context(), &payvault.TokenizeRequest{
		CardholderName: bad, CardNumber: "\xff", EmailAddress: []string{"a@example.com", bad},
		ReportData: payvault.Pairs{{Name: "order", Value: "17"}, {Name: "note", Value: bad}},
	})
	assertInvalid(t, err, payvault.OpTokensTokenize, fields{
		"cardholder_name": not, "card_number": not, "email_address[1]": not, "report_data[1].Value": not,
	})
	_, err = client.Customers.Create(t.Context(), &payvault.CustomerCreateRequest{
		ID: "JANE1", FirmName: "\ufffd", BillingCards: []payvault.BillingCardRequest{{}, {Addr1: bad}},
	})
	assertInvalid(t, err, payvault.OpCustomersCreate, fields{"billing_cards[1].billing_addr1": not})
	_, err = client.Applications.SaveData(t.Context(), 4004, payvault.ApplicationData{
		LegalName: bad, Ownership: payvault.Ownership{Owners: []payvault.Owner{{Name: payvault.OwnerName{LastName: bad}}}},
		Extra: []payvault.ApplicationField{{Key: "more", Value: map[string]any{"a": bad}}},
	})
	assertInvalid(t, err, payvault.OpApplicationsSaveData, fields{
		"legal_name": not, "ownership.owners[0].name.last_name": not, "Extra[0].value": not,
	})
	err = client.Disputes.Respond(t.Context(), 5002, &payvault.DisputeResponse{Type: payvault.DisputeOther, Message: bad})
	assertInvalid(t, err, payvault.OpDisputesRespond, fields{"message": not})
	err = client.Call(t.Context(), payvault.Request{Method: "POST", Path: []string{"x"}, Body: map[string]string{bad: "a"}}, nil)
	assertInvalid(t, err, payvault.OpCall, fields{"body": not})
	for _, body := range []any{json.RawMessage(`"` + bad + `"`), map[string]any{"a": rawText(`"` + bad + `"`)}, embedding{embedded{bad}}} {
		err = client.Call(t.Context(), payvault.Request{Method: "POST", Path: []string{"x"}, Body: body}, nil)
		require.ErrorIs(t, err, payvault.ErrInvalidRequest, "%T", body)
	}
}

type (
	rawText   string
	embedded  struct{ Text string }
	embedding struct{ embedded }
)

func (r rawText) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// TestFailureOfEmbeddedBodies: what a body embeds is looked through for secrets too, and may be nil.
func TestFailureOfEmbeddedBodies(t *testing.T) {
	t.Parallel()
	type (
		Inner struct{ Key payvault.Secret }
		inner struct{ Other payvault.Secret }
		outer struct {
			*Inner
			inner

			X string
		}
		knot struct {
			*knot

			Y payvault.Secret
		}
	)
	tied := &knot{Y: "knot-secret-1"}
	tied.knot = tied
	for name, body := range map[string]any{
		"nil": outer{X: "a"}, "both": outer{Inner: &Inner{"inner-secret-1"}, inner: inner{"other-secret-2"}}, "in itself": tied,
	} {
		server := observe(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			say(w, 400, `{"code":7,"message":"not inner-secret-1, other-secret-2, knot-secret-1"}`)
		})
		err := tableClient(t, server.URL).Call(t.Context(), payvault.Request{Method: "POST", Path: []string{"x"}, Body: body}, nil)
		require.ErrorIs(t, err, payvault.ErrRejected, name)
		switch name {
		case "both":
			assert.NotContains(t, err.Error(), "secret-1,")
			assert.NotContains(t, err.Error(), "other-secret-2")
		case "in itself":
			assert.NotContains(t, err.Error(), "knot-secret-1")
		}
	}
}

// TestTextThatLooksReplaced: the character by which encoding/json replaces is a text like any other, and so is its escape.
func TestTextThatLooksReplaced(t *testing.T) {
	t.Parallel()
	for text, wire := range map[string]string{"a \ufffd b": "a \ufffd b", `a \ufffd b`: `a \\ufffd b`} {
		s := newService(t)
		s.expect("POST", "/platform/subscription/6006/cancel", `{"customer_id":"`+wire+`"}`, `{"code":0,"data":{}}`)
		_, err := s.client().Subscriptions.Cancel(t.Context(), 6006, &payvault.SubscriptionCancelRequest{CustomerID: text})
		require.NoError(t, err)
	}
}
