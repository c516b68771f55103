package operations

import (
	"context"
	"encoding/json"
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
		{
			200, `{"code":0,"data":{"tax_id":["` + strings.Repeat("x", 64<<10) + `"]}}`, nil,
			[]error{payvault.ErrMalformedResponse},
		},
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
		{200, failed + `,"data":{"tax_id":["` + strings.Repeat("x", 64<<10) + `"]}}`, nil, invalid},
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

// TestApplicationData_unmarshal checks how ApplicationData is read from JSON, and that the error for an unreadable
// value has its key.
func TestApplicationData_unmarshal(t *testing.T) {
	t.Parallel()
	type data = payvault.ApplicationData
	times := payvault.AuthTimes{"1", "90+"}
	for wire, want := range map[string]data{
		`[]`: {}, `[{"key":"tax_id","value":null},{"key":"card_brands"}]`: {},
		`[{"key":"processing_history","value":false}]`:               {ProcessingHistory: new(false)},
		`[{"key":"high_ticket","value":1500.0}]`:                     {HighTicket: new(amount("1500.0"))},
		`[{"key":"business_services_auth_time","value":"{1, 90+}"}]`: {BusinessServicesAuthTime: times},
	} {
		var got data
		require.NoError(t, json.Unmarshal([]byte(wire), &got))
		assert.Equal(t, want, got)
	}
	for wire, problem := range map[string]string{
		`{"legal_name":"x"}`:                                     "not a list of pairs {key, value}",
		`[{"key":"tax_id","value":[1]}]`:                         "tax_id: cannot be read as payvault.Secret",
		`[{"key":"processing_history","value":"maybe"}]`:         "processing_history: cannot be read as bool",
		`[{"key":"bank_routing","value":[1]}]`:                   "bank_routing: cannot be read as payvault.Secret",
		`[{"key":"ownership","value":{"owners":[{"ssn":[1]}]}}]`: "ownership: cannot be read as payvault.Ownership",
	} {
		require.EqualError(t, json.Unmarshal([]byte(wire), new(data)), problem)
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
		require.ErrorContains(t, err, "payvault: k cannot be read as ", value)
		assert.NotContains(t, err.Error(), strings.Trim(value, `"`))
	}
	for _, into := range []any{true, nil, (*bool)(nil)} {
		err := payvault.SavedField{Key: "k", Value: secret("true")}.Decode(into)
		require.EqualError(t, err, "payvault: k needs a pointer that is not nil to be read into")
	}
	err := json.Unmarshal([]byte(`{"key":"k","value":"[REDACTED]"}`), new(payvault.SavedField))
	require.EqualError(t, err, "a redacted secret, whose text is lost")
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
	require.ErrorContains(t, err, "payvault: high_ticket cannot be read as payvault.Amount")
	require.ErrorContains(t, err, "payvault: tax_id cannot be read as payvault.Secret")
	assert.Equal(t, payvault.ApplicationData{}, data)
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
	const element = "has an element that is empty or contains a brace or comma"
	type data = payvault.ApplicationData
	times, unwritable := []payvault.AuthTime{"1,30", "", "}"}, []payvault.ApplicationField{{Key: "k", Value: func() {}}}
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
