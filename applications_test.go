package payvault_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// TestApplicationsValidate checks which responses Validate returns as a result and which as an error. For example, a
// status 400 with code 2 and messages about fields is a result. For each result, observers get the code of the
// response.
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
		{422, `{"code":2,"data":{"message":["is required"]}}`, service.Fields{"message": {"is required"}}, nil},
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

// TestApplicationsValidate_long checks that data of more than 64 KiB is an error that says so, and that SafeToRetry is
// false for this error. WithResponse must have the whole answer.
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

// TestApplicationsSaveData_answer checks that SaveData succeeds even if the answer lacks the list of saved fields.
// Unread must name each element, key or setting that cannot be read, each key that is missing, and missing data.
func TestApplicationsSaveData_answer(t *testing.T) {
	t.Parallel()
	save := named(t, "applications.save_data")
	assertRead(t, save, `{"code":0}`, []payvault.SavedField{}, "/data")
	assertRead(t, save, `{"code":0,"data":{"fields":{}}}`, []payvault.SavedField{})
	assertRead(t, save,
		`{"code":0,"data":{"fields":["",{"key":"a"},{},{"key":[1]},{"key":"b","settings":{"required":5}}]}}`,
		[]payvault.SavedField{{}, {Key: "a"}, {}, {}, {Key: "b"}},
		"/data/fields/0", "/data/fields/3/key", "/data/fields/4/settings/required", "/data/fields/2/key")
}

// TestValidation_wire checks that a Validation is encoded as in an answer, and can be decoded again.
func TestValidation_wire(t *testing.T) {
	t.Parallel()
	service.AssertWire(t, payvault.Validation{Problems: service.Fields{"tax_id": {"is required"}}},
		`{"data":{"tax_id":["is required"]}}`)
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
		assertRefused(t, payvault.OpApplicationsSaveData, &test.data, test.want)
	}
}

// TestApplicationsSaveData_unwritable checks that data is not sent if a value in it is not UTF-8 or contains
// [REDACTED]. The error has the path of the value, in which the key of a pair stands for the pair.
func TestApplicationsSaveData_unwritable(t *testing.T) {
	t.Parallel()
	const bad = "J\xe4ne"
	lost, client := payvault.NewSecret(mark), service.Client(t, service.Nowhere)
	field := func(key string, value any) payvault.ApplicationData {
		return payvault.ApplicationData{Extra: []payvault.ApplicationField{{Key: "first"}, {Key: key, Value: value}}}
	}
	owner := func(o payvault.Owner) payvault.ApplicationData {
		return payvault.ApplicationData{BusinessName: "first", Ownership: payvault.Ownership{Owners: []payvault.Owner{{}, o}}}
	}
	for path, data := range map[string]payvault.ApplicationData{
		"legal_name": {LegalName: bad}, "tax_id": {TaxID: lost}, "more[1]": field("more", []any{1, lost}),
		"more": field("more", map[string]any{"4111111111111111": lost}), "quoted": field("quoted", mark+", x"),
		"ownership.owners[1].name.last_name": owner(payvault.Owner{Name: payvault.OwnerName{LastName: bad}}),
		"ownership.owners[1].relatedBusinesses[0].ssn": owner(payvault.Owner{
			RelatedBusinesses: []json.RawMessage{[]byte(`{"ssn":"[REDACTED]"}`)},
		}),
	} {
		_, err := client.Applications.SaveData(t.Context(), 4004, &data)
		e := service.AsError(t, err)
		assert.Len(t, e.Fields, 1, path)
		assert.Len(t, e.Fields[path], 1, "%s: %v", path, err)
	}
}

// TestApplicationsSaveData_false checks that SaveData sends false, for fields of type *bool and for flags of a struct.
func TestApplicationsSaveData_false(t *testing.T) {
	t.Parallel()
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
	body := perform(t, payvault.OpApplicationsSaveData, &mixed)
	assert.JSONEq(t, calls.Fixture("applications/save_data.request.mixed.json"), body)
	sent, err := decode[struct{ Data json.RawMessage }](body)
	require.NoError(t, err)
	service.AssertWire(t, mixed, string(sent.Data))
}

// TestApplicationsSaveData_extra checks that SaveData sends the fields of Extra after the other fields. It also checks
// that an empty list of owners, an empty set, and the empty text of a field in Extra are sent.
func TestApplicationsSaveData_extra(t *testing.T) {
	t.Parallel()
	data := payvault.ApplicationData{LegalName: "Name", Extra: []payvault.ApplicationField{
		{Key: "fulfillment_name", Value: ""},
		{Key: "text", Value: "added later"},
		{Key: "number", Value: json.Number("12345678901234567890.10")},
		{Key: "object", Value: map[string]any{"inner": []any{true, "two", nil}}},
		{Key: "null"},
	}}
	data.Ownership.Owners = []payvault.Owner{}
	data.BusinessServicesAuthTime = payvault.AuthTimes{}
	const fields = `[{"key":"legal_name","value":"Name"},{"key":"ownership","value":{"interestCount":0,"owners":[]}},` +
		`{"key":"business_services_auth_time","value":"{}"},` +
		`{"key":"fulfillment_name","value":""},{"key":"text","value":"added later"},` +
		`{"key":"number","value":12345678901234567890.10},{"key":"object","value":{"inner":[true,"two",null]}},` +
		`{"key":"null","value":null}]`
	service.AssertWire(t, data, fields)
	assert.Equal(t, `{"data":`+fields+`}`, perform(t, payvault.OpApplicationsSaveData, &data))
}
