package payvault_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
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

// TestMarshalWire_everyType checks, for each type and both JSON packages, that MarshalWire writes a form that reads
// back as the same value. All other encoders write [REDACTED], which is refused by readers and by MarshalWire.
func TestMarshalWire_everyType(t *testing.T) {
	t.Parallel()
	for name, typ := range wireTypes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value := canary.Filled(typ, "plain")
			switch value := value.(type) {
			case *payvault.DisputeRespondRequest:
				value.Evidence = nil // it is a form part, not JSON
			case *payvault.Page[payvault.Payee]:
				value.Number = 0 // it is taken from the request
			}
			wire, err := payvault.MarshalWire(value)
			require.NoError(t, err)
			holdsSecret := canary.Holds(typ, reflect.TypeFor[payvault.Secret]())
			assert.Equal(t, holdsSecret, strings.Contains(string(wire), canary.Secret), "%s", wire)
			assert.NotContains(t, string(wire), mark)
			shown, err := json.Marshal(value)
			require.NoError(t, err)
			shownV2, err := jsonv2.Marshal(value)
			require.NoError(t, err)
			for how, unmarshal := range service.Readers() {
				back := reflect.New(typ).Interface()
				require.NoError(t, unmarshal(wire, back), how)
				assert.Equal(t, value, back, how)
				for _, text := range [][]byte{shown, shownV2} {
					err := unmarshal(text, reflect.New(typ).Interface())
					assert.Equal(t, holdsSecret, strings.Contains(string(text), `"`+mark+`"`), "%s", text)
					assert.Equal(t, holdsSecret, err != nil && strings.Contains(err.Error(), "a redacted secret"), "%v", err)
				}
			}
			var gobbed bytes.Buffer
			require.NoError(t, gob.NewEncoder(&gobbed).Encode(value))
			back := reflect.New(typ).Interface()
			if err = gob.NewDecoder(&gobbed).Decode(back); holdsSecret {
				require.ErrorContains(t, err, "a redacted secret")
			} else {
				assert.Equal(t, value, back)
			}
			secrets := 0
			eachSecret(reflect.ValueOf(value).Elem(), func(secret *payvault.Secret) {
				before := *secret
				*secret = payvault.NewSecret(mark)
				_, err := payvault.MarshalWire(value)
				require.ErrorIs(t, err, payvault.ErrInvalidRequest)
				require.Regexp(t, `^payvault: MarshalWire: invalid request: .* `+isMark, err.Error())
				assert.NotContains(t, err.Error(), "body", "the place is named")
				*secret = before
				secrets++
			})
			assert.Equal(t, holdsSecret, secrets > 0)
		})
	}
}

// wireTypes returns the exported types that are sent or received as JSON.
func wireTypes() map[string]reflect.Type {
	types := map[string]reflect.Type{"Pairs": reflect.TypeFor[payvault.Pairs]()}
	for name, typ := range canary.Types() {
		for field := range typ.Fields() {
			if tag := field.Tag.Get("json"); tag != "" && tag != "-" || name == "SavedField" {
				types[name] = typ
			}
		}
	}
	return types
}

// eachSecret visits the secrets in a value.
func eachSecret(v reflect.Value, visit func(*payvault.Secret)) {
	if secret, ok := reflect.TypeAssert[*payvault.Secret](v.Addr()); ok {
		visit(secret)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachSecret(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachSecret(v.Index(i), visit)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				eachSecret(value, visit)
			}
		}
	}
}

// TestMarshalWire_open checks that secrets in fields of type any are written too. They are read back as text.
func TestMarshalWire_open(t *testing.T) {
	t.Parallel()
	secret := payvault.NewSecret("4111")
	pairs := payvault.Pairs{
		{Name: "a", Value: secret}, {Name: "b", Value: []payvault.Secret{secret}}, {Name: "c", Value: json.Number("1.50")},
	}
	extra := []payvault.ApplicationField{
		{Key: "a", Value: secret}, {Key: "b", Value: map[string]any{"deep": []any{&secret, json.Number("1.50")}}},
	}
	for text, value := range map[string]any{
		"1.50": json.Number("1.50"), "0": json.Number(""), "null": nil, `"4111"`: &secret,
		`[{"key":"a","value":"4111"},{"key":"b","value":{"deep":["4111",1.50]}}]`: payvault.ApplicationData{Extra: extra},
		`{"merchant_id":"1","echo_fields":"[{\"a\":\"4111\"},{\"b\":[\"4111\"]},{\"c\":1.50}]"}`: payvault.TokenizeRequest{
			MerchantID: 1, EchoFields: pairs,
		},
	} {
		wire, err := payvault.MarshalWire(value)
		require.NoError(t, err)
		assert.Equal(t, text, string(wire))
	}
	marshalV2 := func(v any) ([]byte, error) { return jsonv2.Marshal(v) }
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, marshalV2} {
		text, err := marshal(pairs)
		require.NoError(t, err)
		assert.Equal(t, `"[{\"a\":\"[REDACTED]\"},{\"b\":[\"[REDACTED]\"]},{\"c\":1.50}]"`, string(text))
		require.Error(t, json.Unmarshal(text, new(payvault.Pairs)))
		text, err = marshal(payvault.ApplicationData{Extra: extra})
		require.NoError(t, err)
		require.EqualError(t, new(payvault.ApplicationData).UnmarshalJSON(text), "a: a redacted secret, whose text is lost")
	}
	for _, key := range []string{"tax_id", "ownership", "later_tax_id"} {
		err := json.Unmarshal([]byte(`{"key":"`+key+`","value":"[REDACTED]","type":"tax_id"}`), new(payvault.SavedField))
		require.EqualError(t, err, "a redacted secret, whose text is lost", key)
	}
}

// These are types that a caller could define.
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
		False    bool                `json:"false,omitempty"`
		Text     string              `json:",omitempty"`
		Zero     time.Time           `json:"zero,omitzero"`
		Time     time.Time           `json:"time,omitempty"` //nolint:modernize // what it does is the question
		Wait     time.Duration       `json:"wait"`
		Slice    []int               `json:"slice"`
		Empty    []int               `json:"empty,omitempty"`
		List     []callerInner       `json:"list"`
		Map      map[int]string      `json:"map"`
		NilMap   map[string]int      `json:"nil_map"`
		Open     map[string]any      `json:"open"`
		Bytes    []byte              `json:"bytes"`
		Array    [2]byte             `json:"array"`
		Number   json.Number         `json:"number"`
		NoNumber json.Number         `json:"no_number"`
		Raw      json.RawMessage     `json:"raw"`
		NoRaw    json.RawMessage     `json:"no_raw"`
		Pointer  *callerPointer      `json:"pointer"`
		Nil      *callerPointer      `json:"nil"`
		Record   *callerInner        `json:"record"`
		Quoted   int                 `json:"quoted,string"`
		Any      any                 `json:"any"`
		ByText   map[callerText]int  `json:"by_text"`
		Amount   payvault.Amount     `json:"amount"`
		Date     payvault.Date       `json:"date"`
		Floats   []float64           `json:"floats"`
		Merchant payvault.MerchantID `json:"snake_case"`
		Hidden   string              `json:"-"`
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

// sent returns the request body that the service receives.
func sent(t *testing.T, body any) string {
	t.Helper()
	server := service.Answer(t, 200, `{"code":0}`)
	require.NoError(t, service.Client(t, server.URL).Call(t.Context(), callWith(body), nil), "%T", body)
	return string(server.Seen()[0].Body)
}

// TestCall_bodies checks that types of the caller are written as encoding/json writes them.
func TestCall_bodies(t *testing.T) {
	t.Parallel()
	form := callerForm{
		callerInner: callerInner{Inner: "i"}, Named: callerText{"t"}, Wait: time.Second, Map: map[int]string{2: "b", 1: "a"},
		Bytes: []byte("ab"), Array: [2]byte{1, 2}, Number: "12.50", Raw: json.RawMessage(`{"b":1, "a":"<"}`),
		Pointer: &callerPointer{1}, Quoted: 7, ByText: map[callerText]int{{"k"}: 1}, Floats: []float64{1, 0.1, 1e21, 1e-7},
		Any: []any{1, "a", nil, map[string]any{"z": 1, "a": json.Number("1.0")}, time.Unix(0, 0).UTC()},
	}
	for _, body := range []any{
		callerForm{},
		form, &form,
		[]any{form, &form},
		json.RawMessage(`[1, 2]`),
		map[string]any{"a": (*int)(nil)},
		"<&é>\u2028", "a \ufffd b", `a \ufffd b`,
	} {
		want, err := json.Marshal(body)
		require.NoError(t, err, "%T", body)
		assert.JSONEq(t, string(want), sent(t, body), "%T", body)
	}
}

// TestCall_secrets checks that secrets in bodies of the caller are sent as their texts, never as [REDACTED].
func TestCall_secrets(t *testing.T) {
	t.Parallel()
	const want = `"4111111111111111"`
	card := payvault.NewSecret("4111111111111111")
	for wire, bodies := range map[string][]any{
		want: {card, &card, callerV2{card}},
		`{"card":` + want + `}`: {
			map[string]payvault.Secret{"card": card},
			map[string]any{"card": card},
			map[string]*payvault.Secret{"card": &card},
			holding[payvault.Secret]{Card: card},
			&holding[*payvault.Secret]{Card: &card},
			holding[any]{Card: &card},
		},
		`[` + want + `,"",null]`: {
			[]any{card, payvault.Secret{}, (*payvault.Secret)(nil)}, []*payvault.Secret{&card, {}, nil},
		},
	} {
		for _, body := range bodies {
			assert.JSONEq(t, wire, sent(t, body), "%T", body)
		}
	}
}

// notText is a text that is not UTF-8.
const notText = "J\xe4ne"

// TestUnwritable checks that an unwritable request is not sent. The error names the place, but repeats no text of the
// caller.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	lost := payvault.NewSecret(mark)
	client := service.Client(t, service.Nowhere, payvault.WithMerchantID(1))
	type request = payvault.TokenizeRequest
	for _, test := range []struct {
		request request
		want    service.Fields
	}{
		{request{CardholderName: notText}, service.Fields{"cardholder_name": {notUTF8}}},
		{request{CardNumber: payvault.NewSecret("\xff")}, service.Fields{"card_number": {notUTF8}}},
		{request{EmailAddress: []string{"a", notText}}, service.Fields{"email_address[1]": {notUTF8}}},
		{request{ReportData: payvault.Pairs{{Value: notText}}}, service.Fields{"report_data": {notUTF8}}},
		{request{EchoFields: payvault.Pairs{{Value: lost}}}, service.Fields{"echo_fields": {isMark}}},
		{request{EchoFields: payvault.Pairs{{Value: []any{mark}}}}, service.Fields{"echo_fields": {isMark}}},
		{request{CardNumber: payvault.NewSecret("\u00a0" + mark + "\n")}, service.Fields{"card_number": {isMark}}},
		{request{CardNumber: payvault.NewSecret(fmt.Sprintf("%v,", lost))}, service.Fields{"card_number": {isMark}}},
		{request{ReportData: payvault.Pairs{{Value: fmt.Sprintf("{%v}", lost)}}}, service.Fields{"report_data": {isMark}}},
		{request{ExpDate: "1", CVV2: lost}, service.Fields{"exp_date": {calls.BadExpDate}, "cvv2": {isMark}}},
	} {
		_, err := client.Tokens.Tokenize(t.Context(), &test.request)
		service.AssertInvalid(t, err, payvault.OpTokensTokenize, test.want)
	}

	_, err := client.Customers.Create(t.Context(), &payvault.CustomerCreateRequest{
		ID: "JANE1", FirmName: "\ufffd", BillingCards: []payvault.BillingCardRequest{{}, {CardNumber: lost}},
	})
	require.EqualError(t, err, "payvault: customers.create: invalid request: billing_cards[1].card_number "+isMark)
	cards := []payvault.AccountUpdaterCard{card(), {CardNumber: lost, ExpDate: "1230"}}
	_, err = client.AccountUpdater.Submit(t.Context(), cards)
	service.AssertInvalid(t, err, payvault.OpAccountUpdaterSubmit, service.Fields{"data[1].card_number": {isMark}})
	response := &payvault.DisputeRespondRequest{Type: payvault.DisputeOther, Message: notText}
	err = client.Disputes.Respond(t.Context(), 5002, response)
	service.AssertInvalid(t, err, payvault.OpDisputesRespond, service.Fields{"message": {notUTF8}})
}

// TestUnwritable_data checks that unwritable application data, which has fields of any type, is not sent. The error
// names the place.
func TestUnwritable_data(t *testing.T) {
	t.Parallel()
	client, lost := service.Client(t, service.Nowhere), payvault.NewSecret(mark)
	more := func(value any) payvault.ApplicationData {
		return payvault.ApplicationData{Extra: []payvault.ApplicationField{{Key: "a"}, {Key: "more", Value: value}}}
	}
	owner := func(o payvault.Owner) payvault.ApplicationData {
		return payvault.ApplicationData{BusinessName: "first", Ownership: payvault.Ownership{Owners: []payvault.Owner{{}, o}}}
	}
	raw := []json.RawMessage{[]byte(`{"ssn":"[REDACTED]"}`)}
	for path, data := range map[string]payvault.ApplicationData{
		"legal_name": {LegalName: notText}, "tax_id": {TaxID: lost}, "more[1]": more([]any{1, lost}),
		"more":                               more(map[string]any{"4111111111111111": lost}),
		"other":                              {Extra: []payvault.ApplicationField{{Key: "other", Value: mark}}},
		"quoted":                             {Extra: []payvault.ApplicationField{{Key: "quoted", Value: mark + ", x"}}},
		"ownership.owners[1].name.last_name": owner(payvault.Owner{Name: payvault.OwnerName{LastName: notText}}),
		"ownership.owners[1].ssn":            owner(payvault.Owner{SSN: lost}),
		"ownership.owners[1].relatedBusinesses[0].ssn": owner(payvault.Owner{RelatedBusinesses: raw}),
	} {
		_, err := client.Applications.SaveData(t.Context(), 4004, data)
		e := service.AsError(t, err)
		assert.Len(t, e.Fields, 1, path)
		assert.Len(t, e.Fields[path], 1, "%s: %v", path, err)
	}
}

// TestUnwritable_bodies checks that an unwritable body of the caller is refused by Client.Call and MarshalWire. The
// error names the place.
func TestUnwritable_bodies(t *testing.T) {
	t.Parallel()
	client, lost := service.Client(t, service.Nowhere), payvault.NewSecret(mark)
	type inner struct {
		Cards []*payvault.AccountUpdaterCard `json:"cards"`
		Raw   json.RawMessage                `json:"raw,omitempty"`
		More  map[string]any                 `json:"more,omitempty"`
		Plain string                         `json:",omitempty"`
		Open  any                            `json:"open,omitempty"`
	}
	type outer struct{ inner }
	type embedding struct{ payvault.Secret } // it would write [REDACTED]
	boom := errors.New("boom")
	for _, test := range []struct {
		body         any
		path, reason string
	}{
		{map[string]string{notText: "a"}, "body", notUTF8},
		{map[string]string{"4111111111111111": notText}, "body", notUTF8},
		{lost, "body", isMark},
		{[]any{1, &lost}, "[1]", isMark},
		{&outer{inner{Cards: []*payvault.AccountUpdaterCard{nil, {CardNumber: lost}}}}, "cards[1].card_number", isMark},
		{outer{inner{Raw: []byte(`{"a":{"card_number":"[REDACTED]"}}`)}}, "raw.a.card_number", isMark},
		{outer{inner{More: map[string]any{"4111111111111111": []any{lost}}}}, "more", isMark},
		{outer{inner{Plain: notText}}, "Plain", notUTF8},
		{outer{inner{Open: []any{outer{inner{Open: lost}}}}}, "open[0].open", isMark},
		{outer{inner{Open: callerV1{card().CardNumber}}}, "open.card", isMark},
		{outer{inner{Open: callerMasked{card().CardNumber}}}, "open", isMark},
		{map[callerMasked]int{{card().CardNumber}: 1}, "body", isMark},
		{[]any{embedding{card().CardNumber}}, "[0]", isMark},
		{mark, "body", isMark},
		{map[string]any{"a-4111": &callerV1{card().CardNumber}}, "body", isMark},
		{json.RawMessage(`{"card_number":"[REDACTED]"}`), "card_number", isMark},
		{jsontext.Value(`["{\u005bREDACTED\u005D}"]`), "[0]", isMark},
		{json.RawMessage(`{"a":"1","a":"2"}`), "a", "cannot be written as JSON: duplicate object member name"},
		{json.RawMessage(`{`), "body", "cannot be written as JSON: unexpected EOF"},
		{payvault.SavedField{Key: "ownership", Value: payvault.NewSecret(`["[REDACTED]"]`)}, "value", isMark},
		{outer{inner{Open: failing{boom}}}, "open", "cannot be written as JSON: boom"},
		{otherShape{Form: map[string]any{"a": map[string]any{"b": lost}}}, "a.b", isMark},
		{otherShape{Form: map[string]any{"l": map[string]any{"b": lost}}}, "l.b", isMark},
		{otherShape{Form: map[string]any{"l": []any{lost}}}, "l[0]", isMark},
		{otherShape{Form: map[string]any{"z 1": lost}}, "body", isMark},
		{outer{inner{Open: make(chan int)}}, "open", "cannot be written as JSON: chan int has no form"},
		{inner{Open: json.Number("1x")}, "open", "cannot be written as JSON: invalid character 'x' after top-level value"},
	} {
		err := client.Call(t.Context(), callWith(test.body), nil)
		service.AssertInvalid(t, err, payvault.OpCall, service.Fields{test.path: {test.reason}})
		wire, err := payvault.MarshalWire(test.body)
		assert.Nil(t, wire)
		require.EqualError(t, err, "payvault: MarshalWire: invalid request: "+test.path+" "+test.reason)
		require.ErrorIs(t, err, payvault.ErrInvalidRequest)
	}
}

// otherShape writes JSON of another shape than its fields have.
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

// TestClearing_secretsOfBodies checks that every secret of a body is redacted in errors, wherever it stands in the
// body.
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
