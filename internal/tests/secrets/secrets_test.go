// Package secrets looks for what must not be seen in whatever shows a value, an error or a record of the SDK, for every
// type and every operation.
package secrets

import (
	"bytes"
	"context"
	"encoding/gob"
	stdjson "encoding/json"
	"encoding/xml"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eachFilled calls check with a pointer to a filled value of every exported type, once for each content of its fields
// of type any; a short run has two of these.
func eachFilled(t *testing.T, check func(t *testing.T, content string, pointer any)) {
	t.Helper()
	for name, typ := range canary.Types() {
		for content, open := range canary.Opens(typ) {
			if testing.Short() && content != "nothing" && content != "a secret" {
				continue
			}
			t.Run(name+" with "+content, func(t *testing.T) {
				t.Parallel()
				check(t, content, canary.Filled(typ, open))
			})
		}
	}
}

// assertSilent wants none of the forms in a text.
func assertSilent(t *testing.T, text, how string, forms []string) {
	t.Helper()
	if form := canary.Find(text, forms); form != "" {
		require.Fail(t, "a canary is seen", "%s: %q in %.3000s", how, form, text)
	}
}

// TestRedaction_fmt: no verb shows a secret, wherever it is. Raw bodies stay unseen where methods are called.
func TestRedaction_fmt(t *testing.T) {
	t.Parallel()
	secret, both := canary.Forms(canary.Secret), canary.Forms(canary.Secret, canary.Raw)
	methodless := []string{"%p", "%w", "%z", "%", "%+p", "%#w"}
	common := []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%T"}
	eachFilled(t, func(t *testing.T, content string, pointer any) {
		t.Helper()
		all := common
		if content == "nothing" || content == "a secret" {
			all = append(service.Verbs(), common...)
		}
		for shape, value := range canary.Shapes(pointer) {
			for _, verb := range all {
				assertSilent(t, fmt.Sprintf(verb, value), shape+" under "+verb, both)
			}
			for _, verb := range methodless {
				assertSilent(t, fmt.Sprintf(verb, value), shape+" under "+verb, secret)
			}
			assertSilent(t, fmt.Errorf("wrapped: %v, %+v", value, value).Error(), shape+" in an error", both)
		}
		for shape, value := range canary.Hidden(pointer) {
			for _, verb := range append(all, methodless...) {
				assertSilent(t, fmt.Sprintf(verb, value), shape+" under "+verb, secret)
			}
		}
	})
}

// TestRedaction_slog: raw bodies stay unseen in what is logged by itself.
func TestRedaction_slog(t *testing.T) {
	t.Parallel()
	secret, both := canary.Forms(canary.Secret), canary.Forms(canary.Secret, canary.Raw)
	eachFilled(t, func(t *testing.T, _ string, pointer any) {
		t.Helper()
		assertSilent(t, service.Logged(pointer), "pointer", both)
		for _, shapes := range []map[string]any{canary.Shapes(pointer), canary.Hidden(pointer)} {
			for shape, value := range shapes {
				assertSilent(t, service.Logged(value), shape, secret)
			}
		}
	})
}

// encoders are those of the standard library, and JSON v2. An error is text too.
func encoders() map[string]func(v any) (string, error) {
	type executer interface {
		Execute(w io.Writer, data any) error
	}
	execute := func(t executer) func(v any) (string, error) {
		return func(v any) (string, error) {
			var b bytes.Buffer
			err := t.Execute(&b, v)
			return b.String(), err
		}
	}
	html := func(text string) func(v any) (string, error) {
		return execute(htmltemplate.Must(htmltemplate.New("").Parse(text)))
	}
	written := func(b []byte, err error) (string, error) { return string(b), err }
	return map[string]func(v any) (string, error){
		"encoding/json":        func(v any) (string, error) { return written(stdjson.Marshal(v)) },
		"encoding/json, lines": func(v any) (string, error) { return written(stdjson.MarshalIndent(v, "", " ")) },
		"JSON v2":              func(v any) (string, error) { return written(json.Marshal(v)) },
		"JSON v2, options": func(v any) (string, error) {
			other := json.MarshalToFunc(func(enc *jsontext.Encoder, d payvault.Date) error {
				return enc.WriteToken(jsontext.String(d.String()))
			})
			return written(json.Marshal(v, json.StringifyNumbers(true), jsontext.Multiline(true), json.WithMarshalers(other)))
		},
		"xml": func(v any) (string, error) { return written(xml.Marshal(v)) },
		"gob": func(v any) (string, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.String(), err
		},
		"text/template": execute(template.Must(template.New("").Parse(
			`{{.}} {{printf "%s %#v %x" . . .}} {{js .}} {{html .}}`))),
		"html/template":           html(`<p>{{.}}</p>`),
		"html/template attribute": html(`<p title="{{.}}" data-x={{.}}></p>`),
		"html/template URL":       html(`<a href="/?q={{.}}"></a>`),
		"html/template style":     html(`<style>p { color: {{.}} }</style>`),
		"html/template script":    html(`<script>x = {{.}}; y = "{{.}}"</script><p onclick="f({{.}})"></p>`),
	}
}

func TestRedaction_encoders(t *testing.T) {
	t.Parallel()
	all, secret := encoders(), canary.Forms(canary.Secret)
	eachFilled(t, func(t *testing.T, _ string, pointer any) {
		t.Helper()
		for name, encode := range all {
			for _, shapes := range []map[string]any{canary.Shapes(pointer), canary.Hidden(pointer)} {
				for shape, value := range shapes {
					text, err := encode(value)
					assertSilent(t, fmt.Sprint(text, err), shape+" by "+name, secret)
				}
			}
		}
	})
}

// TestRedaction_rawBodies: what came over the wire is in no JSON or XML, by which most loggers write.
func TestRedaction_rawBodies(t *testing.T) {
	t.Parallel()
	raw := canary.Forms(canary.Raw)
	header := http.Header{"X": {canary.Raw}}
	response := payvault.Response{StatusCode: 418, Header: header, Body: []byte(canary.Raw)}
	notification := payvault.Notification{Header: header, Body: []byte(canary.Raw)}
	for name, encode := range encoders() {
		if name == "gob" || strings.HasPrefix(name, "text/") { // which is asked for all
			continue
		}
		for _, value := range []any{
			response, &response,
			[]payvault.Response{response},
			map[string]any{"a": &response},
			notification, &notification,
			[]*payvault.Notification{&notification},
			struct{ N payvault.Notification }{notification},
		} {
			text, err := encode(value)
			assertSilent(t, text, name, raw)
			if strings.HasPrefix(name, "encoding/json") {
				require.NoError(t, err, name)
			}
			assertSilent(t, service.Logged(value), "slog", raw)
		}
	}
	text, err := encoders()["encoding/json"](response)
	require.NoError(t, err)
	assert.Contains(t, text, "418")
}

// TestRedaction_shows: what shows nothing at all would pass the tests above.
func TestRedaction_shows(t *testing.T) {
	t.Parallel()
	card := payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret(canary.Secret), ExpDate: "1230", CardID: "mine"}
	for name, encode := range encoders() {
		text, err := encode(card)
		require.NoError(t, err, name)
		if name == "html/template style" { // where it takes no text
			continue
		}
		assert.Contains(t, text, "REDACTED", name)
		assert.Contains(t, text, "1230", name)
	}
	assert.Equal(t, "{CardNumber:[REDACTED] ExpDate:1230 CardID:mine}", fmt.Sprintf("%+v", card))
	assert.Contains(t, service.Logged(card), `value="{CardNumber:[REDACTED] ExpDate:1230 CardID:mine}"`)
	assert.Contains(t, service.Logged(&card), `"value":{"card_number":"[REDACTED]","exp_date":"1230","card_id":"mine"}`)
	assert.Contains(t, service.Logged(card.CardNumber), "value=[REDACTED]")
	assert.Contains(t, service.Logged(card.CardNumber), `"value":"[REDACTED]"`)
	file := payvault.FileFromBytes("a.pdf", []byte(canary.Raw))
	assert.Equal(t, `{Name:"a.pdf" Size:9}`, fmt.Sprint(*file))
	assert.Contains(t, service.Logged(file), `"value":{"Name":"a.pdf","Size":9}`)
	response := payvault.Response{StatusCode: 200, Body: []byte(canary.Raw), Attempts: 2, Duration: time.Second}
	assert.Equal(t, "{StatusCode:200 Body:9 bytes Attempts:2 Duration:1s}", fmt.Sprint(response))
	assert.Equal(t, "{Body:9 bytes}", fmt.Sprint(payvault.Notification{Body: []byte(canary.Raw)}))
	request := payvault.Request{Method: "POST", Path: []string{"a"}, Query: url.Values{"a": {"b"}}, Body: "a"}
	assert.Equal(t, "[method=POST path_segments=1 body=true]", fmt.Sprint(request))
}

// TestRedaction_index: only types that show something of their own have methods for it, so that a reader of the package
// page finds the others.
func TestRedaction_index(t *testing.T) {
	t.Parallel()
	api, err := os.ReadFile(filepath.Join(calls.Root(), "api", "payvault.txt"))
	require.NoError(t, err)
	methods := regexp.MustCompile(
		`(?m)^pkg payvault, method .*\) (Format|LogValue|MarshalJSON)\(`,
	).FindAllString(string(api), -1)
	assert.NotEmpty(t, methods)
	assert.LessOrEqual(t, len(methods), 20)
}

// TestSecret_gob: what holds secrets goes through gob, without their texts, and does not come back as a card.
func TestSecret_gob(t *testing.T) {
	t.Parallel()
	through := func(number payvault.Secret) (card payvault.AccountUpdaterCard, err error) {
		var b bytes.Buffer
		require.NoError(t, gob.NewEncoder(&b).Encode(payvault.AccountUpdaterCard{CardNumber: number, ExpDate: "1230"}))
		assert.NotContains(t, b.String(), "4111")
		err = gob.NewDecoder(&b).Decode(&card)
		return card, err
	}
	_, err := through(payvault.NewSecret("4111111111111111"))
	require.ErrorContains(t, err, "a redacted secret, whose text is lost")
	card, err := through(payvault.Secret{})
	require.NoError(t, err)
	assert.Equal(t, payvault.AccountUpdaterCard{ExpDate: "1230"}, card)
}

// TestSecrets_typesOfFields: every field that the design names is a Secret, in requests and in results.
func TestSecrets_typesOfFields(t *testing.T) {
	t.Parallel()
	names := []string{
		"cvv2", "card_swipe", "tr_number", "dda_number", "payload_wallet_one_pay", "payload_wallet_two_pay",
		"ssn", "passport", "dl_number", "tax_id", "bank_routing", "bank_account_number",
	}
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

func TestSecrets_client(t *testing.T) {
	t.Parallel()
	secret := canary.Forms(canary.Secret)
	newClient := func(opts ...payvault.Option) *payvault.Client {
		client, err := payvault.NewClient("https://sandbox.example.com", canary.Secret, opts...)
		require.NoError(t, err)
		return client
	}
	source := payvault.WithKeySource(func(context.Context) (string, error) { return canary.Secret, nil })
	for _, client := range []*payvault.Client{newClient(), newClient().ForMerchant(17), newClient(source)} {
		values := []any{
			client, client.Tokens, client.Customers, client.Payees, client.Applications, client.Disputes, client.Subscriptions,
			client.Invoices, client.AccountUpdater, client.Webhooks,
		}
		for _, value := range values {
			for _, verb := range service.Verbs() {
				assertSilent(t, fmt.Sprintf(verb, value), verb, secret)
			}
			assertSilent(t, service.Logged(value), "log", secret)
		}
	}
	assert.Contains(t, service.Logged(newClient().ForMerchant(17)), "for_merchant=17")
	assert.Contains(t, service.Logged(newClient()), "base_url=https://sandbox.example.com")
}
