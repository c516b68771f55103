package payvault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

const (
	secretCanary = "5ecretCanary" // the text of every Secret
	rawCanary    = "7awCanary"    // the text of every raw body and header
)

// structTypes are all exported struct types, by name; TestSecrets_allTypes holds it against the sources. Page is the
// one generic type.
func structTypes() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[payvault.AccountUpdaterBatch](),
		reflect.TypeFor[payvault.AccountUpdaterCard](),
		reflect.TypeFor[payvault.AccountUpdaterRequest](),
		reflect.TypeFor[payvault.AccountUpdaterService](),
		reflect.TypeFor[payvault.Amount](),
		reflect.TypeFor[payvault.Application](),
		reflect.TypeFor[payvault.ApplicationAddress](),
		reflect.TypeFor[payvault.ApplicationCreateRequest](),
		reflect.TypeFor[payvault.ApplicationCreated](),
		reflect.TypeFor[payvault.ApplicationData](),
		reflect.TypeFor[payvault.ApplicationField](),
		reflect.TypeFor[payvault.ApplicationsService](),
		reflect.TypeFor[payvault.BillingCard](),
		reflect.TypeFor[payvault.BillingCardRequest](),
		reflect.TypeFor[payvault.CallInfo](),
		reflect.TypeFor[payvault.CallResult](),
		reflect.TypeFor[payvault.CardBrands](),
		reflect.TypeFor[payvault.Client](),
		reflect.TypeFor[payvault.Confirmation](),
		reflect.TypeFor[payvault.ContactType](),
		reflect.TypeFor[payvault.Customer](),
		reflect.TypeFor[payvault.CustomerCreateRequest](),
		reflect.TypeFor[payvault.CustomersService](),
		reflect.TypeFor[payvault.Date](),
		reflect.TypeFor[payvault.DeliveryMethods](),
		reflect.TypeFor[payvault.DisputeResponse](),
		reflect.TypeFor[payvault.DisputesService](),
		reflect.TypeFor[payvault.Error](),
		reflect.TypeFor[payvault.FieldOption](),
		reflect.TypeFor[payvault.FieldSettings](),
		reflect.TypeFor[payvault.File](),
		reflect.TypeFor[payvault.Filter](),
		reflect.TypeFor[payvault.InvoiceSendRequest](),
		reflect.TypeFor[payvault.InvoicesService](),
		reflect.TypeFor[payvault.ListOptions](),
		reflect.TypeFor[payvault.Notification](),
		reflect.TypeFor[payvault.Observer](),
		reflect.TypeFor[payvault.Owner](),
		reflect.TypeFor[payvault.OwnerName](),
		reflect.TypeFor[payvault.Ownership](),
		reflect.TypeFor[payvault.Pair](),
		reflect.TypeFor[payvault.Payee](),
		reflect.TypeFor[payvault.PayeeAccount](),
		reflect.TypeFor[payvault.PayeeAddress](),
		reflect.TypeFor[payvault.PayeeCreateRequest](),
		reflect.TypeFor[payvault.PayeesService](),
		reflect.TypeFor[payvault.PersonType](),
		reflect.TypeFor[payvault.Pricing](),
		reflect.TypeFor[payvault.Request](),
		reflect.TypeFor[payvault.Response](),
		reflect.TypeFor[payvault.RetryPolicy](),
		reflect.TypeFor[payvault.SavedField](),
		reflect.TypeFor[payvault.ShippingAddress](),
		reflect.TypeFor[payvault.SubmitAllOptions](),
		reflect.TypeFor[payvault.SubscriptionCancelRequest](),
		reflect.TypeFor[payvault.SubscriptionsService](),
		reflect.TypeFor[payvault.Timestamp](),
		reflect.TypeFor[payvault.TokenizeRequest](),
		reflect.TypeFor[payvault.TokenizeResponse](),
		reflect.TypeFor[payvault.TokensService](),
		reflect.TypeFor[payvault.Transaction](),
		reflect.TypeFor[payvault.Validation](),
		reflect.TypeFor[payvault.WebhooksService](),
	} {
		types[t.Name()] = t
	}
	types["Page"] = reflect.TypeFor[payvault.Page[payvault.Customer]]()
	return types
}

// TestSecrets_allTypes keeps structTypes complete: a new type is covered, or this test fails.
func TestSecrets_allTypes(t *testing.T) {
	t.Parallel()
	var want []string
	for _, file := range rootSources(t) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					if _, isStruct := spec.Type.(*ast.StructType); isStruct {
						want = append(want, spec.Name.Name)
					}
				}
			}
		}
	}
	assert.ElementsMatch(t, want, slices.Collect(maps.Keys(structTypes())))
}

// anyValues are what a field of type any is filled with.
func anyValues() map[string]any {
	secret := payvault.Secret(secretCanary)
	return map[string]any{
		"a secret":            secret,
		"a pointer":           &secret,
		"a slice":             []payvault.Secret{secret},
		"an array":            [1]payvault.Secret{secret},
		"a slice of any":      []any{"plain", secret},
		"a map":               map[string]payvault.Secret{"key": secret},
		"a map of any":        map[string]any{"key": []any{map[string]any{"deep": secret}}},
		"a map by secrets":    map[payvault.Secret]int{secret: 1},
		"a struct":            payvault.Owner{SSN: secret},
		"a pointer to one":    &payvault.Owner{SSN: secret},
		"a slice of pointers": []*payvault.AccountUpdaterCard{{CardNumber: secret}},
		"pairs":               payvault.Pairs{{Name: "n", Value: secret}},
		"the caller's struct": struct{ Number payvault.Secret }{secret},
	}
}

// fill fills a value deeply: secrets and raw bytes with canaries, all else with plain values.
func fill(t *testing.T, v reflect.Value, open any) {
	t.Helper()
	switch target := v.Addr().Interface().(type) {
	case *payvault.Secret:
		*target = secretCanary
		return
	case *payvault.Amount:
		*target = payvault.AmountOf(decimal.MustParse("12.50"))
		return
	case *payvault.Timestamp:
		*target = payvault.Timestamp{Time: time.Unix(1e9, 0)}
		return
	case *json.RawMessage:
		*target = json.RawMessage(`{"plain":1}`) // of which nothing is documented; not a secret
		return
	case *[]byte:
		*target = []byte(rawCanary)
		return
	case *http.Header:
		*target = http.Header{"X-Raw": {rawCanary}}
		return
	case *io.ReaderAt:
		*target = strings.NewReader(rawCanary)
		return
	case *error:
		*target = errors.New("plain")
		return
	case *any:
		*target = open
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("plain")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), open)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), open)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, open)
		fill(t, value, open)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), open)
			}
		}
	case reflect.Func: // nothing to print
	default:
		require.Fail(t, "fill does not know this type", "%s", v.Type())
	}
}

// filled returns a filled value of a type.
func filled(t *testing.T, typ reflect.Type, open any) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	if typ.Name() == "Client" || strings.HasSuffix(typ.Name(), "Service") {
		client := reflect.ValueOf(canaryClient(t)).Elem()
		if typ.Name() == "Client" {
			return client
		}
		for i := range client.NumField() {
			if client.Type().Field(i).Type == reflect.PointerTo(typ) {
				return client.Field(i).Elem()
			}
		}
	}
	fill(t, v, open)
	return v
}

// canaryClient returns a client whose API key is the canary.
func canaryClient(t *testing.T, opts ...payvault.Option) *payvault.Client {
	t.Helper()
	client, err := payvault.NewClient("https://sandbox.example.com", secretCanary, opts...)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// shown are the forms in which a text can appear under some verb.
func shown(text string) []string {
	forms := []string{
		text, base64.StdEncoding.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(":" + text)),
	}
	for _, format := range []string{"%x", "%X", "% x", "% X", "%d", "%o", "%b", "%U"} {
		forms = append(forms, strings.Trim(fmt.Sprintf(format, []byte(text)), "[]"))
	}
	return append(forms, strings.Trim(fmt.Sprintf("%#v", []byte(text)), "[]byte{}"))
}

// assertShowsNone wants no form of the canaries in a text.
func assertShowsNone(t *testing.T, text, how string, forms []string) bool {
	t.Helper()
	for _, form := range forms {
		if strings.Contains(text, form) {
			return assert.Fail(t, "a canary is seen", "%s: %q in %.3000s", how, form, text)
		}
	}
	return true
}

// TestSecrets_everyTypeUnderEveryVerb prints a filled value of every exported struct type in every way.
func TestSecrets_everyTypeUnderEveryVerb(t *testing.T) {
	t.Parallel()
	forms := append(shown(secretCanary), shown(rawCanary)...)
	for name, typ := range structTypes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opens := anyValues()
			if !holds(typ, isAny, nil) {
				opens = map[string]any{"nothing": nil}
			}
			all := verbs()
			for what, open := range opens {
				for shape, value := range shapes(filled(t, typ, open)) {
					for _, verb := range all {
						if !assertShowsNone(t, fmt.Sprintf(verb, value), shape+" with "+what+" under "+verb, forms) {
							return
						}
					}
				}
				all = []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%e", "%U"} // enough for the other contents of any
			}
		})
	}
}

// shapes are the ways to hand a value to fmt: by itself, and within values of the caller.
func shapes(v reflect.Value) map[string]any {
	t := v.Type()
	pointer := reflect.New(t)
	if t != reflect.TypeFor[payvault.Client]() { // which may not be copied
		pointer.Elem().Set(v)
	} else {
		pointer = v.Addr()
	}
	v = pointer.Elem()
	list := func(v reflect.Value) any {
		return reflect.Append(reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, 1), v).Interface()
	}
	dict := func(v reflect.Value) any {
		m := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), v.Type()))
		m.SetMapIndex(reflect.ValueOf("key"), v)
		return m.Interface()
	}
	field := func(v reflect.Value) any {
		s := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Field", Type: v.Type()}})).Elem()
		s.Field(0).Set(v)
		return s.Interface()
	}
	all := map[string]any{
		"value": v.Interface(), "pointer": pointer.Interface(),
		"slice": list(v), "slice of pointers": list(pointer), "map": dict(v), "map of pointers": dict(pointer),
		"field": field(v), "field with a pointer": field(pointer), "slice of any": []any{v.Interface(), pointer.Interface()},
		"map of any":      map[string]any{"value": v.Interface(), "pointer": pointer.Interface()},
		"struct with any": struct{ V any }{v.Interface()}, "struct with a pointer in any": struct{ V any }{pointer.Interface()},
		"error text": fmt.Errorf("wrapped: %v, %+v", v.Interface(), pointer.Interface()),
	}
	return all
}

// TestSecrets_everyTypeInLogs logs a filled value of every exported struct type through log/slog.
func TestSecrets_everyTypeInLogs(t *testing.T) {
	t.Parallel()
	forms := append(shown(secretCanary), shown(rawCanary)...)
	for name, typ := range structTypes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opens := anyValues()
			if !holds(typ, isAny, nil) {
				opens = map[string]any{"nothing": nil}
			}
			for what, open := range opens {
				v := filled(t, typ, open)
				assertShowsNone(t, handlers(v.Addr().Interface()), "pointer with "+what, forms)
				if name != "Client" {
					assertShowsNone(t, handlers(v.Interface()), "value with "+what, forms)
				}
			}
		})
	}
}

func isAny(t reflect.Type) bool    { return t == reflect.TypeFor[any]() }
func isSecret(t reflect.Type) bool { return t == reflect.TypeFor[payvault.Secret]() }

// holds reports whether a value of t can hold, at any depth, a value of a type that match takes.
func holds(t reflect.Type, match func(reflect.Type) bool, within []reflect.Type) bool {
	if match(t) {
		return true
	}
	if slices.Contains(within, t) {
		return false
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return holds(t.Elem(), match, within)
	case reflect.Map:
		return holds(t.Key(), match, within) || holds(t.Elem(), match, within)
	case reflect.Struct:
		for field := range t.Fields() {
			if field.IsExported() && holds(field.Type, match, within) {
				return true
			}
		}
	}
	return false
}

// TestSecrets_logValuers: the handlers of log/slog marshal what is no LogValuer, and the wire form shows secrets. The
// raw types do not even have one.
func TestSecrets_logValuers(t *testing.T) {
	t.Parallel()
	secret, open := 0, 0
	for name, typ := range structTypes() {
		canHold := holds(typ, isSecret, nil)
		if canHold {
			secret++
		}
		if !canHold && holds(typ, isAny, nil) {
			open++
			canHold = true
		}
		raw := slices.Contains([]string{"Response", "Notification", "File", "DisputeResponse", "Error", "Client"}, name)
		if canHold || raw {
			assert.True(t, reflect.PointerTo(typ).Implements(reflect.TypeFor[slog.LogValuer]()), "%s can hold a secret", name)
		}
	}
	assert.Greater(t, secret, 9)
	assert.Greater(t, open, 2)
	assert.Implements(t, (*slog.LogValuer)(nil), payvault.Pairs{})
	assert.Implements(t, (*slog.LogValuer)(nil), payvault.Secret(""))
}

// TestSecrets_requestsAndResultsAreLogValuers: design.md promises one on each request and result.
func TestSecrets_requestsAndResultsAreLogValuers(t *testing.T) {
	t.Parallel()
	for name, typ := range structTypes() {
		isResult := slices.Contains([]string{
			"Customer", "Payee", "Page", "ApplicationCreated", "SavedField", "Validation", "Transaction", "Confirmation",
			"TokenizeResponse", "AccountUpdaterRequest",
		}, name)
		if strings.HasSuffix(name, "Request") || isResult {
			assert.True(t, typ.Implements(reflect.TypeFor[slog.LogValuer]()), name)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	secret := payvault.Secret(secretCanary)
	assert.Equal(t, secretCanary, secret.Reveal())
	assert.Equal(t, "[REDACTED]", secret.String())
	for verb, want := range map[string]string{
		"%v": "[REDACTED]", "%s": "[REDACTED]", "%+v": "[REDACTED]", "%x": "[REDACTED]", "%d": "[REDACTED]",
		"%q": `"[REDACTED]"`, "%#v": `"[REDACTED]"`,
	} {
		assert.Equal(t, want, fmt.Sprintf(verb, secret), verb)
		assert.Equal(t, want, fmt.Sprintf(verb, &secret), verb)
	}
	text, err := json.Marshal(secret)
	require.NoError(t, err)
	assert.Equal(t, `"`+secretCanary+`"`, string(text), "the wire has the text")
	var back payvault.Secret
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, secret, back)
	assert.NotContains(t, handlers(secret)+handlers(&secret), secretCanary)

	var none payvault.Secret
	assert.Empty(t, none.String()+fmt.Sprint(none), "that nothing is there is no secret")
	assert.Equal(t, `""`, fmt.Sprintf("%q", none))
}

// TestSecret_documentedExceptions: what Go leaves out of the type's hands is said where users look for it.
func TestSecret_documentedExceptions(t *testing.T) {
	t.Parallel()
	var doc string
	for _, file := range rootSources(t) {
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok && len(group.Specs) == 1 {
				if spec, ok := group.Specs[0].(*ast.TypeSpec); ok && spec.Name.Name == "Secret" {
					doc = group.Doc.Text()
				}
			}
		}
	}
	for _, exception := range []string{"%p", "%w", "unexported fields", "json.Marshal"} {
		assert.Contains(t, doc, exception)
	}
}

// TestSecrets_typesOfFields: every field that the design names is a Secret, in requests and in results.
func TestSecrets_typesOfFields(t *testing.T) {
	t.Parallel()
	names := []string{
		"cvv2", "card_swipe", "tr_number", "dda_number", "payload_wallet_one_pay", "payload_wallet_two_pay", "ssn", "passport",
		"dl_number", "tax_id", "bank_routing", "bank_account_number",
	}
	found := map[string]bool{}
	for typeName, typ := range structTypes() {
		for field := range typ.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			isRequestCard := name == "card_number" && slices.Contains([]string{"TokenizeRequest", "BillingCardRequest", "AccountUpdaterCard"}, typeName)
			if slices.Contains(names, name) || isRequestCard {
				found[name] = true
				assert.True(t, isSecret(field.Type), "%s.%s", typeName, field.Name)
			}
		}
	}
	assert.Len(t, found, len(names)+1)
}

func TestSecrets_client(t *testing.T) {
	t.Parallel()
	source := func(context.Context) (string, error) { return secretCanary, nil }
	forms := shown(secretCanary)
	for _, client := range []*payvault.Client{
		canaryClient(t), canaryClient(t).ForMerchant(17), canaryClient(t, payvault.WithKeySource(source), payvault.WithDeveloperID("plain")),
	} {
		values := []any{client, client.Tokens, client.Customers, client.Payees, client.Applications, client.Disputes, client.Subscriptions, client.Invoices, client.AccountUpdater, client.Webhooks}
		for _, value := range values {
			for _, verb := range verbs() {
				assertShowsNone(t, fmt.Sprintf(verb, value), verb, forms)
			}
			assertShowsNone(t, handlers(value), "log", forms)
		}
	}
	assert.Contains(t, handlers(canaryClient(t).ForMerchant(17)), "for_merchant=17")
	assert.Contains(t, handlers(canaryClient(t)), "base_url=https://sandbox.example.com")
}

// TestSecrets_redactionKeepsTheRest: redacting is no reason to show nothing.
func TestSecrets_redactionKeepsTheRest(t *testing.T) {
	t.Parallel()
	card := payvault.AccountUpdaterCard{CardNumber: secretCanary, ExpDate: "1230", CardID: "mine"}
	assert.Equal(t, "{CardNumber:[REDACTED] ExpDate:1230 CardID:mine}", fmt.Sprintf("%+v", card))
	assert.Equal(t, "[{CardNumber:[REDACTED] ExpDate:1230 CardID:mine}]", fmt.Sprintf("%+v", []*payvault.AccountUpdaterCard{&card}))
	assert.Contains(t, handlers(card), "value.card_number=[REDACTED] value.exp_date=1230 value.card_id=mine")
	assert.Contains(t, handlers(&card), `"value":{"card_number":"[REDACTED]","exp_date":"1230","card_id":"mine"}`)
	file := payvault.FileFromBytes("a.pdf", []byte(rawCanary))
	assert.Equal(t, `{Name:"a.pdf" Size:9}`, fmt.Sprint(*file))
	response := payvault.Response{StatusCode: 200, Body: []byte(rawCanary), Attempts: 2, Duration: time.Second}
	assert.Equal(t, "{StatusCode:200 Body:9 bytes Attempts:2 Duration:1s}", fmt.Sprint(response))
	assert.Equal(t, "{Body:9 bytes}", fmt.Sprint(payvault.Notification{Body: []byte(rawCanary)}))
	request := payvault.Request{Method: "POST", Path: []string{rawCanary}, Query: url.Values{rawCanary: {rawCanary}}, Body: rawCanary}
	assert.Equal(t, "[method=POST path_segments=1 body=true]", fmt.Sprint(request))
}

// TestSecrets_debugLog runs every operation, with success and with failures, under a logger that keeps everything.
func TestSecrets_debugLog(t *testing.T) {
	t.Parallel()
	const key = "key-" + secretCanary
	answers := map[string]func(c opCase) http.HandlerFunc{
		"success": func(c opCase) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { say(w, 200, c.success) }
		},
	}
	for _, answer := range badAnswers() {
		answers[answer.name] = func(opCase) http.HandlerFunc { return answer.serve }
	}
	answers["an echo"] = func(opCase) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			text, _ := json.Marshal(map[string]any{"code": 7, "message": "you are " + r.Header.Get("Authorization")})
			say(w, 200, string(text))
		}
	}
	hidden := append(shown(secretCanary), shown(key)...)
	hidden = append(hidden, "4111111111111111", "123456780", "0003334440", "987654321", // secrets of the table
		"70005", "70007", "70009", "70010", string(tableInvoice), string(tableWebhook), // IDs
		"a@example.com", "Legal Person", "880055554444", // bodies
		"<html>", "X-Header", "header-value")
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var records bytes.Buffer
			for i, c := range opCases() {
				if i%2 == len(name)%2 && name != "success" && name != "an echo" {
					continue // half of them for each failure
				}
				server := observe(t, func(_ int, w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Header", "header-value")
					answer(c)(w, r)
				})
				logger := slog.New(slog.NewJSONHandler(&records, &slog.HandlerOptions{
					Level: slog.LevelDebug,
					ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
						if a.Key == slog.TimeKey || a.Key == "duration" { // digits that may look like an ID
							return slog.Attr{}
						}
						return a
					},
				}))
				client, err := payvault.NewClient(server.URL, key, payvault.WithMerchantID(880055554444), payvault.WithLogger(logger), impatient(2), payvault.WithMaxResponseBytes(failureCap))
				require.NoError(t, err)
				_, _ = c.call(t.Context(), client, payvault.WithHeader("X-Header", "header-value"))
				client.CloseIdleConnections()
				server.Close()
			}
			assert.Contains(t, records.String(), `"operation":"customers.`)
			assertShowsNone(t, records.String(), "debug log", hidden)
		})
	}
}
