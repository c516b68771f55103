package payvault_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/canary"
	"example.com/payvault/internal/tests/service"
)

const (
	notUTF8 = "cannot be written as JSON: invalid UTF-8"
	isMark  = "cannot be written as JSON: a redacted secret, whose text is lost"
)

// TestMarshalWire_open checks that MarshalWire writes the text of a secret in a value of type any. json.Marshal
// writes [REDACTED], which cannot be read back.
func TestMarshalWire_open(t *testing.T) {
	t.Parallel()
	secret := payvault.NewSecret("4111")
	pairs := payvault.Pairs{{Name: "a", Value: secret}, {Name: "b", Value: []any{&secret, json.Number("1.50")}}}
	data := payvault.ApplicationData{Extra: []payvault.ApplicationField{
		{Key: "a", Value: secret}, {Key: "b", Value: map[string]any{"deep": []any{&secret, json.Number("1.50")}}},
	}}
	for text, value := range map[string]any{
		"1.50": json.Number("1.50"), "0": json.Number(""), "null": nil,
		`"[{\"a\":\"4111\"},{\"b\":[\"4111\",1.50]}]"`:                            pairs,
		`[{"key":"a","value":"4111"},{"key":"b","value":{"deep":["4111",1.50]}}]`: data,
	} {
		wire, err := payvault.MarshalWire(value)
		require.NoError(t, err)
		assert.Equal(t, text, string(wire))
	}
	marshalV2 := func(v any) ([]byte, error) { return jsonv2.Marshal(v) }
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, marshalV2} {
		text, err := marshal(pairs)
		require.NoError(t, err)
		assert.Equal(t, `"[{\"a\":\"[REDACTED]\"},{\"b\":[\"[REDACTED]\",1.50]}]"`, string(text))
		require.Error(t, json.Unmarshal(text, new(payvault.Pairs)))
		text, err = marshal(data)
		require.NoError(t, err)
		require.ErrorContains(t, json.Unmarshal(text, new(payvault.ApplicationData)), "a redacted secret")
	}
	for _, key := range []string{"tax_id", "ownership", "later_tax_id"} {
		err := json.Unmarshal([]byte(`{"key":"`+key+`","value":"[REDACTED]","type":"tax_id"}`), new(payvault.SavedField))
		require.EqualError(t, err, "/value cannot be read: a redacted secret, whose text is lost", key)
	}
}

// These types stand for types of the caller.
type (
	callerText    struct{ text string }
	callerPointer struct {
		N int `json:"n"`
	}
	callerV2     struct{ Card payvault.Secret }
	callerV1     struct{ Card payvault.Secret }
	callerMasked struct{ card payvault.Secret }
	callerInner  struct {
		Inner string `json:"inner"`
		Other string `json:"other"`
	}
	holding[T any] struct {
		Card T               `json:"card"`
		No   payvault.Secret `json:"no,omitzero"`
	}
	callerForm struct {
		callerInner

		Named    callerText          `json:"named"`
		None     int                 `json:"none,omitempty"`
		Time     time.Time           `json:"time,omitempty"` //nolint:modernize // the test is about its effect
		Wait     time.Duration       `json:"wait"`
		Slice    []int               `json:"slice"`
		NilMap   map[string]int      `json:"nil_map"`
		List     []callerInner       `json:"list"`
		Map      map[int]string      `json:"map"`
		Bytes    []byte              `json:"bytes"`
		Array    [2]byte             `json:"array"`
		Number   json.Number         `json:"number"`
		Raw      json.RawMessage     `json:"raw"`
		Pointer  *callerPointer      `json:"pointer"`
		Record   *callerInner        `json:"record"`
		Quoted   int                 `json:"quoted,string"`
		Any      any                 `json:"any"`
		Merchant payvault.MerchantID `json:"snake_case"`
	}
)

func (c callerText) MarshalText() ([]byte, error)     { return []byte("<" + c.text + ">"), nil }
func (c *callerPointer) MarshalJSON() ([]byte, error) { return []byte(`"by pointer"`), nil }
func (c callerMasked) MarshalText() ([]byte, error)   { return fmt.Appendf(nil, "card %v", c.card), nil }

func (c callerV1) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{"card": c.Card}) }

func (c callerV2) MarshalJSONTo(enc *jsontext.Encoder) error {
	return jsonv2.MarshalEncode(enc, c.Card)
}

func card() payvault.AccountUpdaterCard {
	return payvault.AccountUpdaterCard{CardNumber: payvault.NewSecret("4111111111111111"), ExpDate: "1230"}
}

func callWith(body any) payvault.Request {
	return payvault.Request{Method: "POST", Path: []string{"x"}, Body: body}
}

// TestMarshalWire_ownTypes checks that MarshalWire writes types of the caller as encoding/json does, except that it
// writes the texts of secrets.
func TestMarshalWire_ownTypes(t *testing.T) {
	t.Parallel()
	form := callerForm{
		callerInner: callerInner{Inner: "i"}, Named: callerText{"t"}, Wait: time.Second, Map: map[int]string{2: "b", 1: "a"},
		Bytes: []byte("ab"), Array: [2]byte{1, 2}, Number: "12.50", Raw: json.RawMessage(`{"b":1, "a":"<"}`),
		Pointer: &callerPointer{1}, Quoted: 7, Any: []any{nil, map[callerText]int{{"k"}: 1}, time.Unix(0, 0).UTC(), 1e21},
	}
	for _, value := range []any{callerForm{}, []any{form, &form}, json.RawMessage(`[1, 2]`), "<&é>\u2028", `a \ufffd b`} {
		want, err := json.Marshal(value)
		require.NoError(t, err, "%T", value)
		wire, err := payvault.MarshalWire(value)
		require.NoError(t, err, "%T", value)
		assert.JSONEq(t, string(want), string(wire), "%T", value)
	}
	secret := payvault.NewSecret("4111")
	for want, values := range map[string][]any{
		`"4111"`:           {secret, &secret, callerV2{secret}},
		`{"card":"4111"}`:  {map[string]*payvault.Secret{"card": &secret}, holding[any]{Card: &secret}},
		`["4111","",null]`: {[]any{secret, payvault.Secret{}, (*payvault.Secret)(nil)}},
	} {
		for _, value := range values {
			wire, err := payvault.MarshalWire(value)
			require.NoError(t, err, "%T", value)
			assert.JSONEq(t, want, string(wire), "%T", value)
		}
	}
}

// TestMarshalWire_oddFields checks that MarshalWire and Client.Call write fields that JSON v2 alone would refuse. A
// secret in such a field is redacted in texts of the service. If a field has a value that cannot be written, the error
// has the reason.
func TestMarshalWire_oddFields(t *testing.T) {
	t.Parallel()
	type (
		Name  string
		Map   map[string]payvault.Secret
		Inner interface{ Unwrap() error }
		name  string
		odd   struct {
			Name
			Map
			Inner
			name

			Err     error
			List    []int     `json:"list,string"` //nolint:staticcheck // the test is about its effect
			Time    time.Time `json:"time,string"` //nolint:staticcheck // the test is about its effect
			Pointer *bool     `json:"pointer,string"`
			Any     any       `json:"any"`
		}
	)
	// The struct has an unexported field with a tag. go vet would report such a field in a declared struct.
	hidden := reflect.StructOf([]reflect.StructField{
		{Name: "hidden", PkgPath: "main", Type: reflect.TypeFor[int](), Tag: `json:"hidden"`},
		{Name: "Shown", Type: reflect.TypeFor[int]()},
	})
	for _, value := range []any{odd{}, reflect.Zero(hidden).Interface(), odd{
		Name: "n", Map: Map{"a": payvault.NewSecret("")}, Err: errShutdown, List: []int{1}, Pointer: new(true), name: "x",
	}} {
		want, err := json.Marshal(value)
		require.NoError(t, err)
		wire, err := payvault.MarshalWire(value)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(wire))
		server := service.Answer(t, 200, `{"code":0}`)
		require.NoError(t, service.Client(t, server.URL).Call(t.Context(), callWith(value), nil))
		assert.JSONEq(t, string(want), string(server.Seen()[0].Body))
	}
	secret := payvault.NewSecret("4111111111111111")
	err := answering(t, 400, `{"code":7,"message":"not 4111111111111111"}`).
		Call(t.Context(), callWith(odd{Map: Map{"a": secret}}), nil)
	assert.Equal(t, "not [REDACTED]", service.AsError(t, err).Message)
	for reason, value := range map[string]any{
		"unsupported value: NaN": math.NaN(), "the program shuts down": failing{errShutdown}, "invalid UTF-8": "\xff",
		"unsupported type: chan int": make(chan int), "a redacted secret, whose text is lost": payvault.NewSecret(mark),
	} {
		_, err := payvault.MarshalWire([]any{odd{}, odd{Any: value}})
		require.ErrorContains(t, err, reason)
	}
}

// TestUnwritable_requests checks that a request is not sent if a value in it is not UTF-8 or contains [REDACTED]. The
// error has the path of the value.
func TestUnwritable_requests(t *testing.T) {
	t.Parallel()
	const bad = "J\xe4ne"
	lost := payvault.NewSecret(mark)
	client := service.Client(t, service.Nowhere, payvault.WithMerchantID(1))
	type request = payvault.TokenizeRequest
	for _, test := range []struct {
		request request
		want    service.Fields
	}{
		{request{CardNumber: payvault.NewSecret("\xff")}, service.Fields{"card_number": {notUTF8}}},
		{request{EmailAddress: []string{"a", bad}}, service.Fields{"email_address[1]": {notUTF8}}},
		{request{ReportData: payvault.Pairs{{Value: bad}}}, service.Fields{"report_data": {notUTF8}}},
		{request{EchoFields: payvault.Pairs{{Value: []any{mark}}}}, service.Fields{"echo_fields": {isMark}}},
		{request{CardNumber: payvault.NewSecret("\u00a0" + mark + "\n")}, service.Fields{"card_number": {isMark}}},
		{request{ExpDate: "1", CVV2: lost}, service.Fields{"exp_date": {calls.BadExpDate}, "cvv2": {isMark}}},
	} {
		_, err := client.Tokens.Tokenize(t.Context(), &test.request)
		service.AssertInvalid(t, err, payvault.OpTokensTokenize, test.want)
	}
}

// TestUnwritable_ownTypes checks that a call fails if its body is of the caller's own type and has a value that cannot
// be sent. The error has the path of the value. The path ends before the first name that may be a secret.
func TestUnwritable_ownTypes(t *testing.T) {
	t.Parallel()
	type inner struct {
		Cards []*payvault.AccountUpdaterCard `json:"cards"`
		Raw   json.RawMessage                `json:"raw,omitempty"`
		More  map[string]any                 `json:"more,omitempty"`
		Open  any                            `json:"open,omitempty"`
	}
	type outer struct{ inner }
	type embedding struct{ payvault.Secret } // json.Marshal writes it as [REDACTED]
	open := func(value any) outer { return outer{inner{Open: value}} }
	lost, number := payvault.NewSecret(mark), card().CardNumber
	client := service.Client(t, service.Nowhere)
	for _, test := range []struct {
		body         any
		path, reason string
	}{
		{map[string]string{"4111111111111111": "\xff"}, "body", notUTF8},
		{mark, "body", isMark},
		{[]any{1, &lost}, "[1]", isMark},
		{[]any{embedding{number}}, "[0]", isMark},
		{&outer{inner{Cards: []*payvault.AccountUpdaterCard{nil, {CardNumber: lost}}}}, "cards[1].card_number", isMark},
		{outer{inner{Raw: []byte(`{"a":{"card_number":"[REDACTED]"}}`)}}, "raw.a.card_number", isMark},
		{outer{inner{More: map[string]any{"4111111111111111": []any{lost}}}}, "more", isMark},
		{open([]any{open(lost)}), "open[0].open", isMark},
		{open(callerV1{number}), "open.card", isMark},
		{open(callerMasked{number}), "open", isMark},
		{map[callerMasked]int{{number}: 1}, "body", isMark},
		{jsontext.Value(`["{\u005bREDACTED\u005D}"]`), "[0]", isMark},
		{payvault.SavedField{Key: "ownership", Value: payvault.NewSecret(`["[REDACTED]"]`)}, "value", isMark},
		{json.RawMessage(`{"a":"1","a":"2"}`), "a", "cannot be written as JSON: duplicate object member name"},
		{json.RawMessage(`{`), "body", "cannot be written as JSON: unexpected EOF"},
		{open(failing{errShutdown}), "open", "cannot be written as JSON: the program shuts down"},
		{open(make(chan int)), "open", "cannot be written as JSON: unsupported type: chan int"},
		{otherShape{Form: map[string]any{"l": map[string]any{"b": lost}}}, "l.b", isMark},
		{otherShape{Form: map[string]any{"z 1": lost}}, "body", isMark},
	} {
		err := client.Call(t.Context(), callWith(test.body), nil)
		service.AssertInvalid(t, err, payvault.OpCall, service.Fields{test.path: {test.reason}})
		wire, err := payvault.MarshalWire(test.body)
		assert.Nil(t, wire)
		require.EqualError(t, err, "payvault: MarshalWire: invalid request: "+test.path+" "+test.reason)
		require.ErrorIs(t, err, payvault.ErrInvalidRequest)
	}
}

// otherShape is a type that writes other JSON members than its fields.
type otherShape struct {
	A    *int           `json:"a"`
	L    []int          `json:"l"`
	Form map[string]any `json:"-"`
}

func (o otherShape) MarshalJSON() ([]byte, error) { return json.Marshal(o.Form) }
func (o otherShape) MarshalJSONTo(enc *jsontext.Encoder) error {
	return jsonv2.MarshalEncode(enc, o.Form)
}

type failing struct{ err error }

func (f failing) MarshalJSON() ([]byte, error) { return nil, f.err }

// TestClearing_secretsOfBodies checks that every secret of a request body is redacted in a message of the service,
// wherever the body has the secret.
func TestClearing_secretsOfBodies(t *testing.T) {
	t.Parallel()
	type (
		Inner struct{ Key payvault.Secret }
		inner struct{ Other payvault.Secret }
		outer struct {
			*Inner
			inner

			X any
		}
	)
	first, second := payvault.NewSecret("inner-secret-1"), payvault.NewSecret("other-secret-2")
	client := answering(t, 400, `{"code":7,"message":"not inner-secret-1, other-secret-2"}`)
	for _, body := range []any{
		outer{Inner: &Inner{first}, inner: inner{second}},
		outer{X: []any{&first, map[string]any{"a": second}}},
		[]any{callerV2{first}, callerV2{second}},
		[]any{map[payvault.Secret]int{first: 1, payvault.NewSecret("third"): 2}, second},
		payvault.Pairs{{Name: "a", Value: first}, {Name: "b", Value: second}},
		payvault.ApplicationData{TaxID: first, Extra: []payvault.ApplicationField{{Key: "b", Value: second}}},
		[]payvault.SavedField{
			{Key: "tax_id", Value: payvault.NewSecret(`"inner-secret-1"`)},
			{Key: "other", Value: payvault.NewSecret(`"other-secret-2"`)},
		},
	} {
		err := client.Call(t.Context(), callWith(body), nil)
		assert.Equal(t, "not [REDACTED], [REDACTED]", service.AsError(t, err).Message, "%T", body)
	}
}

// callersOwn is a type of the caller with values of the SDK.
type callersOwn struct {
	Cards []holding[payvault.Secret] `json:"cards"`
	Paid  payvault.Amount            `json:"paid"`
	Born  *payvault.Date             `json:"born"`
}

// eachLeaf calls visit for the fields in a type, at any depth. It omits fields that take any JSON value. In place of a
// field that has fields of its own, it visits these, unless the field has an UnmarshalJSON. visit gets the JSON name of
// the field, and the JSON before and after its value.
func eachLeaf(of reflect.Type, name, before, after string, visit func(name, before, after string)) {
	if of.Kind() == reflect.Pointer {
		eachLeaf(of.Elem(), name, before, after, visit)
		return
	}
	readsItself := name != "" && reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]())
	switch {
	case of == reflect.TypeFor[json.RawMessage](), of.Kind() == reflect.Interface, of.Kind() == reflect.Map: // open
	case of.Kind() == reflect.Slice && !readsItself:
		eachLeaf(of.Elem(), name, before+`[`, `]`+after, visit)
	case of.Kind() == reflect.Struct && !readsItself:
		for field := range of.Fields() {
			if wire, _, _ := strings.Cut(field.Tag.Get("json"), ","); wire != "" && wire != "-" {
				eachLeaf(field.Type, wire, before+`{"`+wire+`":`, `}`+after, visit)
			}
		}
	case name != "":
		visit(name, before, after)
	}
}

// TestUnmarshal_places gives the fields of the SDK's types and of callersOwn, at any depth, JSON of a wrong kind. Two
// fields are left out. The error of encoding/json and of JSON v2 must have the name of the field, and no part of the
// JSON.
func TestUnmarshal_places(t *testing.T) {
	t.Parallel()
	types, seen := canary.Types(), 0
	types["callersOwn"] = reflect.TypeFor[callersOwn]()
	for typeName, typ := range types {
		eachLeaf(typ, "", "", "", func(name, before, after string) {
			switch typeName + "." + name {
			case "SavedField.value": // any value is read
				return
			case "TokenizeRequest.merchant_id": // encoding/json of Go 1.26 names no field with the option string
				return
			}
			for _, wrong := range []string{`{"` + garbageCanary + `":{}}`, `["` + garbageCanary + `"]`} {
				for how, unmarshal := range service.Readers() {
					seen++
					err := unmarshal([]byte(before+wrong+after), reflect.New(typ).Interface())
					require.ErrorContains(t, err, name, "%s: %s by %s", before, typeName, how)
					assert.NotContains(t, err.Error(), garbageCanary)
				}
			}
		})
	}
	assert.Greater(t, seen, 1000)
	for text, problem := range map[string]string{
		`{"cards":[{"card":true}]}`:           `cards\.(0\.)?card.*neither text nor number|neither.*cards\.card`,
		`{"cards":[{"card":"` + mark + `"}]}`: `cards\.(0\.)?card.*a redacted secret|a redacted secret.*cards\.card`,
		`{"born":"20 May"}`:                   `born.*not a date of the form YYYY-MM-DD|YYYY-MM-DD.*born`,
	} {
		err := json.Unmarshal([]byte(text), new(callersOwn))
		require.Error(t, err)
		assert.Regexp(t, problem, err.Error())
	}
}
