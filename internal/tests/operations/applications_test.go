package operations

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

func amount(text string) payvault.Amount { return payvault.AmountOf(decimal.MustParse(text)) }

// TestApplicationsValidate checks which responses Validate returns as a result and which as an error. For example, a
// status 400 with code 2 and messages about fields is a result.
func TestApplicationsValidate(t *testing.T) {
	t.Parallel()
	const failed, access = `{"code":2,"message":"failed"`, `{"code":2,"message":"no","data":{"access":["denied"]}}`
	empty, required := service.Fields{"tax_id": {}}, service.Fields{"tax_id": {"is required"}}
	limit := service.Fields{"a": {"at least 4004, of [REDACTED] and [REDACTED]"}}
	denied, invalid := service.Fields{"access": {"denied"}}, []error{payvault.ErrRejected, payvault.ErrValidation}
	also := func(kind error) []error { return append(invalid[:2:2], kind) }
	for _, test := range []struct {
		status int
		answer string
		want   service.Fields // Problems of the result, or Fields of the error
		kinds  []error        // sentinels that the error matches; nil means no error
	}{
		{200, `{"code":0}`, nil, nil},
		{200, `{"code":0,"data":{"message":"Success","app_id":1}}`, nil, nil},
		{200, `{"code":0,"data":{"Message":"Success","app_id":1}}`, nil, nil},
		{200, `{"code":0,"data":{"tax_id":["is required"],"legal_name":[]}}`, required, nil},
		{200, `{"code":0,"data":{"tax_id":["5105105105105100"]}}`, service.Fields{"tax_id": {"[REDACTED]"}}, nil},
		// Code 0 with messages, in any form, means that the application has problems.
		{200, `{"code":0,"data":{"tax_id":"is required"}}`, required, nil},
		{200, `{"code":0,"data":{"tax_id":["is required"],"count":1,"passed":true}}`, required, nil},
		{200, `{"code":0,"data":["is required",""]}`, service.Fields{"": {"is required"}}, nil},
		{200, `{"code":0,"data":"is required"}`, service.Fields{"": {"is required"}}, nil},
		{
			200, `{"code":0,"data":{"errors":{"tax_id":["is required"]}}}`,
			service.Fields{"errors": {`{"tax_id":["is required"]}`}},
			nil,
		},
		{200, `{"code":0,"data":[{"tax_id":"is required"}]}`, service.Fields{"": {`{"tax_id":"is required"}`}}, nil},
		{200, `{"code":0,"data":{"tax_id":"","legal_name":[""],"owner":null,"a":false,"b":{},"c":[]}}`, nil, nil},
		{200, `{"code":2,"data":{"tax_id":["is required"]}}`, required, nil},
		{ // 4004 is also the ID of the application, but a short number in a message must not be redacted
			200, `{"code":2,"data":{"a":["at least 4004, of 5105105105105100 and ` + service.APIKey + `"]}}`, limit, nil,
		},
		{400, `{"code":2,"data":{"tax_id":["is required"]}}`, required, nil},
		{200, `{"code":"2","data":{"tax_id":"is required"}}`, required, nil},
		{200, `{"code":2,"data":{"message":["is required"]}}`, service.Fields{"message": {"is required"}}, nil},
		{200, `{"code":2,"data":{"tax_id":[]}}`, empty, nil},
		{
			200, `{"code":2,"data":{"tax_id":{"0":"bad"},"legal_name":["required",5],"owner":null}}`,
			service.Fields{"tax_id": {`{"0":"bad"}`}, "legal_name": {"required", "5"}, "owner": {""}},
			nil,
		},
		{200, `{"code":5,"data":{"tax_id":"12-3456789","list":["a"]}}`, nil, []error{payvault.ErrRejected}},
		{200, failed + `}`, nil, invalid},
		{422, failed + `,"data":null}`, nil, invalid},
		{200, failed + `,"data":{}}`, nil, invalid},
		{200, failed + `,"data":["tax_id"]}`, nil, invalid},
		{401, access, denied, also(payvault.ErrUnauthorized)},
		{500, access, denied, []error{payvault.ErrUnavailable}},
	} {
		var observed payvault.CallResult
		observer := payvault.WithObserver(payvault.Observer{
			End: func(_ context.Context, _ payvault.CallInfo, r payvault.CallResult) { observed = r },
		})
		server := service.Answer(t, test.status, test.answer)
		got, err := service.Client(t, server.URL, observer).Applications.Validate(t.Context(), 4004)
		if test.kinds != nil {
			service.AssertMatches(t, err, test.kinds...)
			assert.Equal(t, test.want, service.AsError(t, err).Fields, test.answer)
			assert.Nil(t, got)
			continue
		}
		require.NoError(t, err, test.answer)
		assert.Equal(t, &payvault.Validation{Problems: test.want}, got)
		assert.Equal(t, test.want == nil, got.OK(), test.answer)
		assert.Regexp(t, `^{"code":"?`+observed.Code+`[",}]`, test.answer)
	}
}

// TestApplicationsValidate_long checks that the error for data of more than 64 KiB says that the data is too long, and
// that a later call would not help.
func TestApplicationsValidate_long(t *testing.T) {
	t.Parallel()
	data := `,"data":{"tax_id":["` + strings.Repeat("x", 70_000) + `"]}}`
	for _, test := range []struct {
		status int
		answer string
		kinds  []error
	}{
		{200, `{"code":0` + data, []error{payvault.ErrMalformedResponse}},
		{200, `{"code":2,"message":"failed"` + data, []error{payvault.ErrRejected, payvault.ErrValidation}},
		{422, `{"code":2,"message":"failed"` + data, []error{payvault.ErrRejected, payvault.ErrValidation}},
	} {
		var response payvault.Response
		client := service.Client(t, service.Nowhere, service.Over(service.Canned(test.status, test.answer)))
		_, err := client.Applications.Validate(t.Context(), 4004, payvault.WithResponse(&response))
		service.AssertMatches(t, err, test.kinds...)
		require.ErrorContains(t, err, "/data cannot be read: too long, with more than 64 KiB")
		assert.False(t, payvault.SafeToRetry(err))
		assert.Equal(t, test.answer, string(response.Body))
	}
}

// TestApplicationData_unmarshal checks how ApplicationData is read from JSON, and that the error for an unreadable
// value has its place.
func TestApplicationData_unmarshal(t *testing.T) {
	t.Parallel()
	type data = payvault.ApplicationData
	times := payvault.AuthTimes{"1", "90+"}
	for wire, want := range map[string]data{
		`[]`: {}, `[{"key":"tax_id","value":null}]`: {},
		`[{"key":"legal_name","value":"A","type":"text","settings":{"required":true}}]`: {LegalName: "A"},
		`[{"key":"processing_history","value":false}]`:                                  {ProcessingHistory: new(false)},
		`[{"key":"high_ticket","value":1500.0}]`:                                        {HighTicket: new(amount("1500.0"))},
		`[{"key":"business_services_auth_time","value":"{1, 90+}"}]`:                    {BusinessServicesAuthTime: times},
		`[{"key":"list","value":[{"key":"a"}]},{"key":"key","value":"b"}]`: {Extra: []payvault.ApplicationField{
			{Key: "list", Value: []any{map[string]any{"key": "a"}}}, {Key: "key", Value: "b"},
		}},
		`{}`: {}, `{"legal_name":"A","limited_partnership":false,"tax_id":null,"z":1,"legal_Name":"B"}`: {
			LegalName: "A", LimitedPartnership: new(false),
			Extra: []payvault.ApplicationField{{Key: "z", Value: json.Number("1")}},
		},
		`{"business_email":"","more":{"a":[1.50]}}`: {Extra: []payvault.ApplicationField{
			{Key: "business_email", Value: ""}, {Key: "more", Value: map[string]any{"a": []any{json.Number("1.50")}}},
		}},
	} {
		var got data
		require.NoError(t, json.Unmarshal([]byte(wire), &got))
		assert.Equal(t, want, got)
	}
	for wire, problem := range map[string]string{
		`"x"`:                            "neither a list of pairs {key, value} nor an object",
		`[{"key":"tax_id","value":[1]}]`: "/tax_id cannot be read: neither text nor number",
		`{"ownership":{"owners":[{"ssn":"[REDACTED]"}]}}`: "/ownership/owners/0/ssn cannot be read: " +
			"a redacted secret, whose text is lost",
		`{"ownership":{"owners":[{"snn":"123456789"}]}}`: "/ownership/owners/0/snn cannot be read: an unknown name",
		`{"ownership":{"owners":[{"4111 1111":1}]}}`:     "/ownership/owners/0 cannot be read: an unknown name",
		// These would lose a value.
		`[{"key":"legal_name","value":"X"},{"key":"tax_id"}]`:           "/1 cannot be read: a pair without a value",
		`[{"key":"legal_name","value":"X"},{"key":"tax_id","val":"1"}]`: "/1/val cannot be read: an unknown name",
		`[{"key":"tax_id","value":"1","4111 1111":1}]`:                  "/0 cannot be read: an unknown name",
		`[null]`: "/0 cannot be read: not an object",
		`{"data":[{"key":"tax_id","value":"1"}]}`:     "/data cannot be read: a list of pairs within an object",
		`{"fields":["x",{"Key":"tax_id","val":"1"}]}`: "/fields cannot be read: a list of pairs within an object",
		`{"key":"tax_id","value":"1"}`:                "/key cannot be read: a pair outside a list",
	} {
		require.EqualError(t, json.Unmarshal([]byte(wire), new(data)), problem)
	}
}

// TestAuthTimes checks which texts are read as a set. All other texts are refused, because an element that is not the
// service's would be sent.
func TestAuthTimes(t *testing.T) {
	t.Parallel()
	type times = payvault.AuthTimes
	for text, want := range map[string]times{
		`"{1,30+}"`: {"1", "30+"}, `" { 1 , 30+ } "`: {"1", "30+"}, `"30+"`: {"30+"}, `30`: {"30"},
		`"{30 days}"`: {"30 days"},
		`"{}"`:        {}, `"{ }"`: {}, `""`: nil, `null`: nil,
	} {
		got := times{"before"}
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		`"[\"1\",\"30\"]"`, `"{\"1\",\"30\"}"`, `"1,30"`, `"{1,30"`, `"1,30}"`, `"{1,,30}"`, `"{1,}"`, `"{{1}}"`,
		`"[1]"`, `"\"1\""`, `["1","30"]`,
	} {
		err := json.Unmarshal([]byte(text), new(times))
		require.ErrorContains(t, err, "not a set of the form {a,b}", text)
	}
}

// TestSavedField_Decode checks that Decode reads saved values of many JSON forms into variables of suitable types. An
// error must have the key and not the value.
func TestSavedField_Decode(t *testing.T) {
	type ownType struct {
		Text  string // the JSON has a number here, which only the tolerant decoder reads
		Float float64
		Uint  uint
		Bytes []byte
		Pair  [2]string
	}
	t.Parallel()
	secret := payvault.NewSecret
	for _, test := range []struct {
		value      string
		into, want any // both are pointers: to the variable, and to its expected value
	}{
		{`null`, new("before"), new("before")},
		{`"Name"`, new(string), new("Name")},
		{`true`, new(bool), new(true)},
		{`"true"`, new(bool), new(true)},
		{`25000.50`, new(payvault.Amount), new(amount("25000.50"))},
		{`""`, new(payvault.Amount), new(payvault.Amount)},
		{`"{}"`, new(payvault.AuthTimes), &payvault.AuthTimes{}},
		{`"{1,30,30+,90+}"`, new(payvault.AuthTimes), &payvault.AuthTimes{"1", "30", "30+", "90+"}},
		{`{"mc":true}`, new(payvault.CardBrands), &payvault.CardBrands{MC: true}},
		{`"xx"`, new(payvault.TradingStatus), new(payvault.TradingStatus("xx"))},
		{`123456789`, new(payvault.Secret), new(secret("123456789"))},
		{`12345678901234567890.10`, new(any), new(any(json.Number("12345678901234567890.10")))},
		{`{"inner":[1,true]}`, new(map[string]any), &map[string]any{"inner": []any{1.0, true}}},
		{`{"a":1.5,"b":"annulled"}`, new(map[string]any), &map[string]any{"a": 1.5, "b": "annulled"}},
		{
			`{"text":5,"float":1.5,"uint":7,"bytes":"AQI=","pair":["a","b"]}`, new(ownType),
			&ownType{"5", 1.5, 7, []byte{1, 2}, [2]string{"a", "b"}},
		},
	} {
		wire := `{"key":"k","value":` + test.value + `,"type":"text","settings":{"required":false}}`
		var saved payvault.SavedField
		require.NoError(t, json.Unmarshal([]byte(wire), &saved))
		require.NoError(t, saved.Decode(test.into), test.value)
		assert.Equal(t, test.want, test.into, test.value)
		again, err := payvault.MarshalWire(saved)
		require.NoError(t, err)
		assert.Equal(t, wire, string(again))
	}
	for value, into := range map[string]any{
		`"perhaps"`: new(bool), `"20 May"`: new(payvault.Date), `["1","30"]`: new(payvault.AuthTimes),
		`{"first":"x"}`: new(string), `{"owners":["12"]}`: new(payvault.Ownership), `"[REDACTED]"`: new(payvault.Secret),
		`{"owners":[null]}`: new(payvault.Ownership), `{"owners":[""]}`: new(payvault.Ownership),
	} {
		err := payvault.SavedField{Key: "k", Value: secret(value)}.Decode(into)
		require.ErrorContains(t, err, "payvault: /k", value)
		require.ErrorContains(t, err, " cannot be read: ", value)
		assert.NotContains(t, err.Error(), strings.Trim(value, `"`))
	}
	for _, into := range []any{true, nil, (*bool)(nil)} {
		err := payvault.SavedField{Key: "k", Value: secret("true")}.Decode(into)
		require.EqualError(t, err, "payvault: k needs a pointer that is not nil to be read into")
	}
	err := json.Unmarshal([]byte(`{"key":"k","value":"[REDACTED]"}`), new(payvault.SavedField))
	require.EqualError(t, err, "/value cannot be read: a redacted secret, whose text is lost")
}

// TestApplicationDataOf checks that ApplicationDataOf turns saved fields into the ApplicationData that was sent, and
// that its error has the key of each unreadable value.
func TestApplicationDataOf(t *testing.T) {
	t.Parallel()
	save := find(payvault.OpApplicationsSaveData)
	saved := save.Want().([]payvault.SavedField)
	data, err := payvault.ApplicationDataOf(append(saved, payvault.SavedField{
		Key: "later_key", Value: payvault.NewSecret(`"of no field"`),
	}))
	require.NoError(t, err)
	assert.Equal(t, save.Full, &data)
	misfits := []payvault.SavedField{
		{Key: "legal_name", Value: payvault.NewSecret(`"Name"`)},
		{Key: "high_ticket", Value: payvault.NewSecret(`"much"`)},
		{Key: "tax_id", Value: payvault.NewSecret(`[12]`)},
	}
	data, err = payvault.ApplicationDataOf(misfits)
	require.ErrorContains(t, err, "payvault: /high_ticket cannot be read: not a decimal number of at most 19 digits")
	require.ErrorContains(t, err, "payvault: /tax_id cannot be read: neither text nor number")
	assert.Equal(t, payvault.ApplicationData{}, data)
}

// TestApplicationData_places gives each value of an ApplicationData, at any depth, a JSON value that it cannot be read
// from. The error has the place of the value and says what is expected there, for JSON of the caller and for saved
// fields. An unknown name in an object is an error in JSON of the caller, and no error in a saved field.
func TestApplicationData_places(t *testing.T) {
	t.Parallel()
	expected := map[reflect.Type]string{
		reflect.TypeFor[payvault.Date]():      "not a date of the form YYYY-MM-DD",
		reflect.TypeFor[payvault.Amount]():    "not a decimal number of at most 19 digits",
		reflect.TypeFor[payvault.Secret]():    "neither text nor number",
		reflect.TypeFor[payvault.AuthTimes](): "not a set of the form {a,b}",
	}
	kinds := map[reflect.Kind]string{
		reflect.String: "not a text", reflect.Bool: "neither true nor false", reflect.Int64: "not an integer that fits",
		reflect.Slice: "not a list", reflect.Struct: "not an object",
	}
	places := map[string]string{} // by place: what is expected
	var note func(place string, of reflect.Type)
	note = func(place string, of reflect.Type) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if text := cmp.Or(expected[of], kinds[of.Kind()]); place != "" && of != reflect.TypeFor[json.RawMessage]() {
			places[place] = text
		}
		switch {
		case expected[of] != "" || of == reflect.TypeFor[json.RawMessage]():
		case of.Kind() == reflect.Slice:
			note(place+"/0", of.Elem())
		case of.Kind() == reflect.Struct:
			for field := range of.Fields() {
				if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
					note(place+"/"+name, field.Type)
				}
			}
		}
	}
	note("", reflect.TypeFor[payvault.ApplicationData]())
	assert.Greater(t, len(places), 100)
	for place, want := range places {
		wrong := `{"canary":[1]}`
		if want == "not an object" {
			wrong = `["canary"]`
			given, saved := readAt(t, place, `{"later":1}`)
			require.EqualError(t, given, place+"/later cannot be read: an unknown name")
			require.NoError(t, saved, "the service may add a name")
		}
		given, saved := readAt(t, place, wrong)
		require.EqualError(t, given, place+" cannot be read: "+want)
		require.EqualError(t, saved, "payvault: "+given.Error())
	}
}

// readAt reads application data in which value stands at the place. It returns the error for JSON of the caller, which
// may be an object or a list of pairs, and for a saved field.
func readAt(t *testing.T, place, value string) (given, saved error) {
	t.Helper()
	names := strings.Split(place, "/")[1:]
	for _, name := range slices.Backward(names[1:]) {
		if name == "0" {
			value = `[` + value + `]`
		} else {
			value = `{"` + name + `":` + value + `}`
		}
	}
	pair := `{"key":"` + names[0] + `","value":` + value + `}`
	given = json.Unmarshal([]byte(`{"`+names[0]+`":`+value+`}`), new(payvault.ApplicationData))
	assert.Equal(t, given, json.Unmarshal([]byte(`[`+pair+`]`), new(payvault.ApplicationData)))
	var field payvault.SavedField
	require.NoError(t, json.Unmarshal([]byte(pair), &field))
	_, saved = payvault.ApplicationDataOf([]payvault.SavedField{field})
	return given, saved
}

// TestApplicationData_numbers checks that a number is not read into application data if it has lost digits that cannot
// come back. A number that has lost the zeros of a country is completed.
func TestApplicationData_numbers(t *testing.T) {
	t.Parallel()
	for value, problem := range map[string]string{
		`{"bank_routing":21000021}`:                  "/bank_routing cannot be read: a number of fewer than nine digits",
		`{"bank_routing":21000021.0}`:                "/bank_routing cannot be read: a number of fewer than nine digits",
		`{"BANK_routing":518}`:                       "/BANK_routing cannot be read: a number of fewer than nine digits",
		`{"bank_routing":2.1e+7}`:                    "/bank_routing cannot be read: a number that has lost digits",
		`{"bank_account_number":8.61e+17}`:           "/bank_account_number cannot be read: a number that has lost digits",
		`{"ownership":{"owners":[{"id":8.61e+17}]}}`: "/ownership/owners/0/id cannot be read: a number that has lost digits",
		`{"ownership":{"owners":[{"id":true}]}}`:     "/ownership/owners/0/id cannot be read: not an ID",
	} {
		require.EqualError(t, json.Unmarshal([]byte(value), new(payvault.ApplicationData)), problem)
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(value), &fields))
		for key, saved := range fields {
			_, err := payvault.ApplicationDataOf([]payvault.SavedField{{Key: key, Value: payvault.NewSecret(string(saved))}})
			require.EqualError(t, err, "payvault: "+problem)
		}
	}
	var data payvault.ApplicationData
	require.NoError(t, json.Unmarshal([]byte(`{"bank_routing":"21000021","business_address":{"country":36}}`), &data))
	assert.Equal(t, "21000021", data.BankRouting.Reveal(), "a text has lost nothing")
	assert.Equal(t, "036", data.BusinessAddress.Country)
	require.NoError(t, json.Unmarshal([]byte(`{"bank_routing":121000021}`), &data))
	assert.Equal(t, "121000021", data.BankRouting.Reveal())
}

// TestApplicationDataOf_none checks that an empty saved value sets no field of ApplicationData. Otherwise the next
// SaveData would send the field as false or zero. The value false counts as empty, except for a field of type *bool.
func TestApplicationDataOf_none(t *testing.T) {
	t.Parallel()
	for _, none := range []string{`""`, `[]`, `{}`, `false`, `null`} {
		var saved []payvault.SavedField
		for _, key := range []string{
			"processing_history", "card_brands", "card_volume", "fulfillment_delivery_method", "legal_name", "ownership",
		} {
			if none != `false` || key != "processing_history" {
				saved = append(saved, payvault.SavedField{Key: key, Value: payvault.NewSecret(none)})
			}
		}
		data, err := payvault.ApplicationDataOf(saved)
		require.NoError(t, err, none)
		assert.Equal(t, payvault.ApplicationData{}, data, none)

		owner := `{"id":"1","personType":` + none + `,"contactType":` + none + `,"interestPercent":` + none + `}`
		data, err = payvault.ApplicationDataOf([]payvault.SavedField{
			{Key: "ownership", Value: payvault.NewSecret(`{"owners":[` + owner + `]}`)},
		})
		require.NoError(t, err, none)
		assert.Equal(t, []payvault.Owner{{ID: "1"}}, data.Ownership.Owners, none)
	}
	data, err := payvault.ApplicationDataOf([]payvault.SavedField{
		{Key: "processing_history", Value: payvault.NewSecret("false")},
		{Key: "business_services_auth_time", Value: payvault.NewSecret("1")},
	})
	require.NoError(t, err)
	assert.Equal(t, payvault.ApplicationData{
		ProcessingHistory: new(false), BusinessServicesAuthTime: payvault.AuthTimes{payvault.AuthTime1},
	}, data)
}

// TestApplicationsSaveData_invalid checks which data SaveData refuses before it sends anything.
func TestApplicationsSaveData_invalid(t *testing.T) {
	t.Parallel()
	const together = "and bank_account_number are required together"
	const typed = "has a field of its own and cannot be in Extra"
	const element = "has an element that is empty or contains a brace, bracket, quote or comma"
	type data = payvault.ApplicationData
	times := []payvault.AuthTime{"1,30", "", `["1"]`}
	unwritable := []payvault.ApplicationField{{Key: "k", Value: func() {}}}
	type fields = []payvault.ApplicationField
	for _, test := range []struct {
		data data
		want service.Fields
	}{
		{data{}, service.Fields{"data": {"has no field"}}},
		{data{BankAccountNumber: payvault.NewSecret("0004445550")}, service.Fields{"bank_routing": {together}}},
		{data{Extra: fields{{Key: "bank_routing", Value: "021000021"}}}, service.Fields{"bank_routing": {typed}}},
		{data{TaxID: payvault.NewSecret("1"), Extra: fields{{Key: "TAX_id"}}}, service.Fields{"TAX_id": {typed}}},
		{data{LegalName: "A", Extra: fields{{Key: "legal_name", Value: ""}}}, service.Fields{"legal_name": {typed}}},
		{data{Extra: fields{{Key: "k"}, {Key: "l"}, {Key: "k"}}}, service.Fields{"k": {"is set twice"}}},
		{data{BusinessServicesAuthTime: times}, service.Fields{"business_services_auth_time": {element, element, element}}},
		{data{Extra: unwritable}, service.Fields{"k": {"cannot be written as JSON: unsupported type: func()"}}},
	} {
		got, err := nowhere(t).Applications.SaveData(t.Context(), 4004, &test.data)
		service.AssertInvalid(t, err, payvault.OpApplicationsSaveData, test.want)
		assert.Nil(t, got)
	}
}

// TestApplicationsSaveData_false checks that SaveData sends fields of type *bool that are false.
func TestApplicationsSaveData_false(t *testing.T) {
	t.Parallel()
	save := find(payvault.OpApplicationsSaveData)
	mixed := payvault.ApplicationData{
		LimitedPartnership: new(true), ProcessingHistory: new(false),
		Ownership: payvault.Ownership{InterestCount: 1, Owners: []payvault.Owner{{
			PersonType: &payvault.PersonType{}, ContactType: &payvault.ContactType{}, Legal: new(false),
		}}},
		BusinessServicesAuthTime:  []payvault.AuthTime{payvault.AuthTime90Plus},
		CardBrands:                &payvault.CardBrands{VI: true, DI: true},
		FulfillmentDeliveryMethod: &payvault.DeliveryMethods{Pickup: true, Service: true},
		DeliveryConfirmation:      new(false), FulfillmentProcessFlag: new(true),
	}
	got, result, err := exchange(t, save, &mixed, `{"code":0,"data":{"fields":[]}}`)
	require.NoError(t, err)
	assert.Equal(t, []payvault.SavedField{}, result)
	assert.JSONEq(t, calls.Fixture("applications/save_data.request.mixed.json"), string(got.Body))
	service.AssertWire(t, mixed, at(t, string(got.Body), "data"))
}

// TestApplicationsSaveData_extra checks that SaveData sends the fields of Extra after the other fields.
func TestApplicationsSaveData_extra(t *testing.T) {
	t.Parallel()
	data := payvault.ApplicationData{LegalName: "Name", Extra: []payvault.ApplicationField{
		{Key: "text", Value: "added later"},
		{Key: "number", Value: json.Number("12345678901234567890.10")},
		{Key: "object", Value: map[string]any{"inner": []any{true, "two", nil}}},
		{Key: "null"},
	}}
	const fields = `[{"key":"legal_name","value":"Name"},{"key":"text","value":"added later"},` +
		`{"key":"number","value":12345678901234567890.10},{"key":"object","value":{"inner":[true,"two",null]}},` +
		`{"key":"null","value":null}]`
	service.AssertWire(t, data, fields)
	got, result, err := exchange(t, find(payvault.OpApplicationsSaveData), &data, `{"code":0,"data":{"fields":[]}}`)
	require.NoError(t, err)
	assert.Empty(t, result)
	assert.Equal(t, `{"data":`+fields+`}`, string(got.Body))
}

// TestValidation_wire checks that a Validation is encoded as in an answer, and can be decoded again.
func TestValidation_wire(t *testing.T) {
	t.Parallel()
	service.AssertWire(t, payvault.Validation{Problems: service.Fields{"tax_id": {"is required"}}},
		`{"data":{"tax_id":["is required"]}}`)
}
