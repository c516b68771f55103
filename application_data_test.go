package payvault_test

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

// TestApplicationData_unmarshal checks how ApplicationData is read from JSON. It also checks the errors for values that
// cannot be read, and for JSON from which a value would be lost.
func TestApplicationData_unmarshal(t *testing.T) {
	t.Parallel()
	type data = payvault.ApplicationData
	times, ticket := payvault.AuthTimes{"1", "90+"}, payvault.MustParseAmount("1500.0")
	for wire, want := range map[string]data{
		`[]`: {}, `[{"key":"tax_id","value":null}]`: {},
		`[{"key":"legal_name","value":"A","type":"text","settings":{"required":true}}]`: {LegalName: "A"},
		`[{"key":"processing_history","value":false}]`:                                  {ProcessingHistory: new(false)},
		`[{"key":"high_ticket","value":1500.0}]`:                                        {HighTicket: &ticket},
		`[{"key":"business_services_auth_time","value":"{1, 90+}"}]`:                    {BusinessServicesAuthTime: times},
		`[{"key":"list","value":[{"key":"a"}]},{"key":"key","value":"b"}]`: {Extra: []payvault.ApplicationField{
			{Key: "list", Value: []any{map[string]any{"key": "a"}}}, {Key: "key", Value: "b"},
		}},
		`{}`: {}, `{"legal_name":"A","limited_partnership":false,"tax_id":null,"z":1}`: {
			LegalName: "A", LimitedPartnership: new(false),
			Extra: []payvault.ApplicationField{{Key: "z", Value: json.Number("1")}},
		},
		`{"business_email":"","more":{"a":[1.50]}}`: {Extra: []payvault.ApplicationField{
			{Key: "business_email", Value: ""}, {Key: "more", Value: map[string]any{"a": []any{json.Number("1.50")}}},
		}},
	} {
		got := data{LegalName: "before"}
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
		`[{"key":"tax_id","value":"1"},{"key":"tax_id","value":"2"}]`:   "/tax_id cannot be read: a second value",
		`{"legal_name":"A","legal_Name":"B"}`:                           "/legal_name cannot be read: a second value",
		`[{"key":"legal_name","value":"X"},{"key":"tax_id","val":"1"}]`: "/1/val cannot be read: an unknown name",
		`[{"key":"tax_id","value":"1","4111 1111":1}]`:                  "/0 cannot be read: an unknown name",
		`[null]`: "/0 cannot be read: not an object",
		`{"data":[{"key":"tax_id","value":"1"}]}`:     "/data cannot be read: a list of pairs within an object",
		`{"fields":["x",{"Key":"tax_id","val":"1"}]}`: "/fields cannot be read: a list of pairs within an object",
		`{"key":"tax_id","value":"1"}`:                "/key cannot be read: a pair outside a list",
		`{"more":{"a":1,"a":2}}`:                      "/more cannot be read",
	} {
		require.EqualError(t, json.Unmarshal([]byte(wire), new(data)), problem)
	}
}

// TestAuthTimes checks which JSON values are read as a set, and which are refused. If a text such as [1] or 1,30 were
// read, it would be sent as one element.
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

// TestApplicationDataOf checks that ApplicationDataOf turns saved fields into the ApplicationData that was sent, and
// that its error has the key of each unreadable value.
func TestApplicationDataOf(t *testing.T) {
	t.Parallel()
	save := calls.Of(payvault.OpApplicationsSaveData)
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

// TestApplicationData_places replaces each value of ApplicationData, at any depth, by JSON of a wrong kind. It leaves
// out values of the type json.RawMessage, because any JSON fits them. The error must have the JSON pointer of the value
// and say what is expected there, for JSON of the caller and for saved fields. An unknown name in an object is an error
// in JSON of the caller, and no error in a saved field.
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

// readAt reads application data in which the value stands at the JSON pointer place. The result given is the error for
// JSON of the caller, and saved is the error for a saved field. JSON of the caller may be an object or a list of pairs:
// readAt checks that both give the same error.
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

// TestApplicationData_numbers checks that a JSON number that has lost digits is refused as an ID, as a routing number
// and as an account number. The value true is refused as an ID. A country code that has lost zeros gets them back.
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
