// Package secrets prints and encodes values of the SDK's types, and checks that the output contains no secret.
package secrets

import (
	"bytes"
	"encoding/gob"
	stdjson "encoding/json"
	"encoding/xml"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRedaction checks that printed and encoded values show no secret. If a value is not inside an unexported field,
// fmt, log/slog, JSON, XML and html/template must not show its bodies, headers, files, paths, queries and filters
// either.
func TestRedaction(t *testing.T) {
	t.Parallel()
	all, secret, both := encoders(), canary.Forms(canary.Secret), canary.Forms(canary.Secret, canary.Raw)
	canary.EachFilled(t, func(t *testing.T, _ string, pointer any) {
		t.Helper()
		silent := func(text, how string, forms []string) {
			if form := canary.Find(text, forms); form != "" {
				require.Fail(t, "a canary is seen", "%s: %q in %.3000s", how, form, text)
			}
		}
		open, hidden := canary.Shapes(pointer)
		for _, shapes := range []map[string]any{open, hidden} {
			for shape, value := range shapes {
				silent(service.Logged(value), shape+" in slog", secret)
				for _, verb := range append(service.Verbs(), "%T", "%t", "%p", "%w", "%z", "%", "%+p", "%#w") {
					silent(fmt.Sprintf(verb, value), shape+" under "+verb, secret)
				}
				for name, encode := range all {
					text, err := encode(value)
					silent(fmt.Sprint(text, err), shape+" by "+name, secret)
				}
			}
		}
		for shape, value := range open {
			silent(service.Logged(value), shape+" in slog", both)
			for _, verb := range service.Verbs() {
				silent(fmt.Sprintf(verb, value), shape+" under "+verb, both)
			}
			for name, encode := range all {
				// gob and text/template print all exported fields
				if text, _ := encode(value); name != "gob" && name != "text/template" {
					silent(text, shape+" by "+name, both)
				}
			}
		}
	})
}

// encoders returns functions that encode a value with the standard library or with JSON v2.
func encoders() map[string]func(v any) (string, error) {
	execute := func(execute func(w io.Writer, data any) error) func(v any) (string, error) {
		return func(v any) (string, error) {
			var b bytes.Buffer
			err := execute(&b, v)
			return b.String(), err
		}
	}
	html := func(text string) func(v any) (string, error) {
		return execute(htmltemplate.Must(htmltemplate.New("").Parse(text)).Execute)
	}
	written := func(b []byte, err error) (string, error) { return string(b), err }
	return map[string]func(v any) (string, error){
		"encoding/json": func(v any) (string, error) { return written(stdjson.Marshal(v)) },
		"JSON v2":       func(v any) (string, error) { return written(json.Marshal(v)) },
		"JSON v2, options": func(v any) (string, error) {
			other := json.MarshalToFunc(func(enc *jsontext.Encoder, d payvault.Date) error {
				return enc.WriteToken(jsontext.String(d.String()))
			})
			return written(json.Marshal(v, json.StringifyNumbers(true), jsontext.Multiline(true), json.WithMarshalers(other)))
		},
		"xml": func(v any) (string, error) { return written(xml.Marshal(v)) },
		"gob": execute(func(w io.Writer, v any) error { return gob.NewEncoder(w).Encode(v) }),
		"text/template": execute(template.Must(template.New("").Parse(
			`{{.}} {{printf "%s %#v %x" . . .}} {{js .}} {{html .}}`)).Execute),
		"html/template": html(`<p title="{{.}}" data-x={{.}}>{{.}} <a href="/?q={{.}}"></a>
			<script>x = {{.}}; y = "{{.}}"</script><p onclick="f({{.}})">`),
		"html/template style": html(`<style>p { color: {{.}} }</style>`),
	}
}

// TestRedaction_shows checks that values that are not secret are shown. Without this test, an encoder that writes
// nothing would pass TestRedaction.
func TestRedaction_shows(t *testing.T) {
	t.Parallel()
	card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(canary.Secret), ExpDate: "1230", CardID: "mine", Ref: "7"}
	for name, encode := range encoders() {
		text, err := encode(card)
		require.NoError(t, err, name)
		if name != "html/template style" { // html/template does not print this text within CSS
			assert.Contains(t, text, "REDACTED", name)
			assert.Contains(t, text, "1230", name)
		}
	}
	assert.Contains(t, service.Logged(card), `value="{CardNumber:[REDACTED] ExpDate:1230 CardID:mine Ref:7}"`)
	assert.Contains(t, service.Logged(&card), `"value":{"card_number":"[REDACTED]","exp_date":"1230","card_id":"mine"}`)
	assert.Contains(t, service.Logged(card.CardNumber), `"value":"[REDACTED]"`)
	client, err := payvault.NewClient("https://sandbox.example.com", canary.Secret)
	require.NoError(t, err)
	assert.Contains(t, service.Logged(client.ForMerchant(17)),
		"value.base_url=https://sandbox.example.com value.for_merchant=17")
	file := payvault.FileFromBytes("a.pdf", []byte(canary.Raw))
	assert.Contains(t, service.Logged(file), `"value":{"Name":"a.pdf","Size":9}`)
	response := payvault.Response{StatusCode: 418, Body: []byte(canary.Raw), Attempts: 2, Duration: time.Second}
	text, err := encoders()["encoding/json"](response)
	require.NoError(t, err)
	assert.Contains(t, text, "418")
	request := payvault.Request{
		Name: "a.b", Method: "POST", Path: []string{"a"}, Query: url.Values{"a": {"b"}}, Body: "a",
	}
	for want, value := range map[string]any{
		"{CardNumber:[REDACTED] ExpDate:1230 CardID:mine Ref:7}": card,
		`{Name:"a.pdf" Size:9}`:                                  *file,
		"{StatusCode:418 Body:9 bytes Attempts:2 Duration:1s}":   response,
		"{Body:9 bytes}": payvault.Notification{Body: []byte(canary.Raw)},
		"[operation=a.b method=POST path_segments=1 body=true]": request,
	} {
		assert.Equal(t, want, fmt.Sprintf("%+v", value))
	}
}

// TestSecrets_typesOfFields checks that secret fields have the type Secret: all fields with certain JSON names, and the
// card numbers of requests.
func TestSecrets_typesOfFields(t *testing.T) {
	t.Parallel()
	names := strings.Fields(`cvv2 card_swipe tr_number dda_number payload_wallet_one_pay payload_wallet_two_pay
		ssn passport dl_number tax_id bank_routing bank_account_number`)
	requestCards := []string{"TokenizeRequest", "BillingCardRequest", "AccountUpdaterCard"}
	found := map[string]bool{}
	for typeName, typ := range canary.Types() {
		for field := range typ.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			isRequestCard := name == "card_number" && slices.Contains(requestCards, typeName)
			if slices.Contains(names, name) || isRequestCard {
				found[name] = true
				assert.True(t, field.Type == reflect.TypeFor[payvault.Secret](), "%s.%s", typeName, field.Name)
			}
		}
	}
	assert.Len(t, found, len(names)+1)
}
