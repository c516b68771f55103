package operations

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/govalues/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
	"example.com/payvault/internal/tests/service"
)

// validate makes the call against a service with this answer, a fixture or JSON.
func validate(t *testing.T, status int, answer string) (*payvault.Validation, error) {
	t.Helper()
	if !strings.HasPrefix(answer, "{") {
		answer = calls.Fixture(answer)
	}
	server := service.Answer(t, status, answer)
	return service.Client(t, server.URL).Applications.Validate(t.Context(), 4004)
}

func TestApplicationsValidate(t *testing.T) {
	t.Parallel()
	problems := map[string][]string{
		"legal_name":     {"Example text: legal_name is required"},
		"business_email": {"Example text: business_email is required"},
		"ownership":      {"Example text: ownership is required", "Example text: an owner is required"},
		"bank_routing":   {"Example text: bank account and routing number are required together"},
		"bank_account_number": {
			"Example text: bank_account_number is required",
			"Example text: bank account and routing number are required together",
		},
	}
	tests := map[string]struct {
		status int
		answer string
		want   *payvault.Validation
	}{
		"fails with 200": {
			http.StatusOK, "applications/validate.invalid.json",
			&payvault.Validation{Problems: problems},
		},
		"fails with 422": {
			http.StatusUnprocessableEntity, "applications/validate.invalid.json",
			&payvault.Validation{Problems: problems},
		},
		"fails with a text": {
			http.StatusOK, `{"code":"2","data":{"tax_id":"is required"}}`,
			&payvault.Validation{Problems: service.Fields{"tax_id": {"is required"}}},
		},
		"a field message": {
			http.StatusOK, `{"code":2,"data":{"message":["is required"]}}`,
			&payvault.Validation{Problems: service.Fields{"message": {"is required"}}},
		},
		"field without texts": {
			http.StatusOK, `{"code":2,"data":{"tax_id":[]}}`,
			&payvault.Validation{Problems: service.Fields{"tax_id": {}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := validate(t, test.status, test.answer)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.want.Problems == nil, got.OK())
		})
	}
}

// Booleans have no distinct values to tell them apart by.
func TestBooleans(t *testing.T) {
	t.Parallel()
	assertWire(t, payvault.CustomerCreateRequest{AutoGenerateCustomerID: true}, `{"auto_generate_customer_id":true}`)
	assertWire(t, payvault.ShippingAddress{Primary: true}, `{"primary":true}`)
	assertWire(t, payvault.BillingCardRequest{Verify: true}, `{"verify":true}`)
	assertWire(t, payvault.BillingCardRequest{Primary: true}, `{"primary":true}`)
	assertWire(t, payvault.BillingCard{Primary: true}, `{"primary":true}`)
	for wire, brands := range map[string]payvault.CardBrands{
		`{"vi":true,"mc":false,"di":false,"am":false,"gp":false}`: {VI: true},
		`{"vi":false,"mc":true,"di":false,"am":false,"gp":false}`: {MC: true},
		`{"vi":false,"mc":false,"di":true,"am":false,"gp":false}`: {DI: true},
		`{"vi":false,"mc":false,"di":false,"am":true,"gp":false}`: {AM: true},
		`{"vi":false,"mc":false,"di":false,"am":false,"gp":true}`: {GP: true},
	} {
		assertWire(t, brands, wire)
	}
	for wire, methods := range map[string]payvault.DeliveryMethods{
		`{"digitally":true,"pickup":false,"delivery":false,"Service":false}`: {Digitally: true},
		`{"digitally":false,"pickup":true,"delivery":false,"Service":false}`: {Pickup: true},
		`{"digitally":false,"pickup":false,"delivery":true,"Service":false}`: {Delivery: true},
		`{"digitally":false,"pickup":false,"delivery":false,"Service":true}`: {Service: true},
	} {
		assertWire(t, methods, wire)
	}
	for wire, person := range map[string]payvault.PersonType{
		`{"owner":true,"control":false,"user":false}`: {Owner: true},
		`{"owner":false,"control":true,"user":false}`: {Control: true},
		`{"owner":false,"control":false,"user":true}`: {User: true},
	} {
		assertWire(t, person, wire)
	}
	assertWire(t, payvault.ApplicationAddress{Attempted: true}, `{"attempted":true}`)
	assertWire(t, payvault.ApplicationAddress{Validated: true}, `{"validated":true}`)
	assertWire(t, payvault.Owner{Legal: new(false)}, `{"legal":false}`)
	assertWire(t, payvault.Ownership{InterestCount: 2}, `{"interestCount":2}`)
}

func TestApplicationData_extra(t *testing.T) {
	t.Parallel()
	data := payvault.ApplicationData{
		LegalName: "Minimal Legal Name",
		Extra: []payvault.ApplicationField{
			{Key: "later_text", Value: "a later addition"},
			{Key: "later_number", Value: json.Number("12345678901234567890.10")},
			{Key: "later_object", Value: map[string]any{"inner": []any{true, nil}}},
			{Key: "later_null"},
		},
	}
	assertWire(t, data, `[
		{"key":"legal_name","value":"Minimal Legal Name"},
		{"key":"later_text","value":"a later addition"},
		{"key":"later_number","value":12345678901234567890.10},
		{"key":"later_object","value":{"inner":[true,null]}},
		{"key":"later_null","value":null}
	]`)
}

func TestApplicationData_unmarshal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wire, problem string
		want          payvault.ApplicationData
	}{
		"null values": {`[{"key":"tax_id","value":null},{"key":"card_brands"}]`, "", payvault.ApplicationData{}},
		"plain toggle": {
			`[{"key":"processing_history","value":false}]`, "",
			payvault.ApplicationData{ProcessingHistory: new(false)},
		},
		"plain number": {
			`[{"key":"high_ticket","value":1500.0}]`, "",
			payvault.ApplicationData{HighTicket: new(payvault.AmountOf(decimal.MustParse("1500.0")))},
		},
		"set with spaces": {
			`[{"key":"business_services_auth_time","value":"{1, 90+}"}]`, "",
			payvault.ApplicationData{BusinessServicesAuthTime: []payvault.AuthTime{"1", "90+"}},
		},
		"not a list": {`{"legal_name":"x"}`, "not a list of pairs {key, value}", payvault.ApplicationData{}},
		"wrong type": {
			`[{"key":"tax_id","value":[1]}]`, "tax_id: cannot be read as Secret",
			payvault.ApplicationData{},
		},
		"wrong toggle": {
			`[{"key":"processing_history","value":"maybe"}]`, "processing_history: cannot be read as bool",
			payvault.ApplicationData{},
		},
		"wrong set": {
			`[{"key":"business_services_auth_time","value":[1]}]`,
			"business_services_auth_time: cannot be read as string",
			payvault.ApplicationData{},
		},
		"secret in object": {
			`[{"key":"ownership","value":{"owners":[{"ssn":[1]}]}}]`,
			"ownership: cannot be read as Ownership",
			payvault.ApplicationData{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got payvault.ApplicationData
			err := json.Unmarshal([]byte(test.wire), &got)
			if test.problem != "" {
				require.EqualError(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestSavedField_value(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key, kind, value string
		want             any
	}{
		"null":                   {"tax_id", "tax_id", `null`, nil},
		"null of an unknown key": {"later_key", "text", `null`, nil},
		"JSON toggle":            {"processing_history", "toggle", `true`, true},
		"JSON number": {
			"card_volume", "currency", `25000.50`,
			payvault.AmountOf(decimal.MustParse("25000.50")),
		},
		"empty amount": {"card_volume", "currency", `""`, payvault.Amount{}},
		"empty set":    {"business_services_auth_time", "checkbox_group", `"{}"`, []payvault.AuthTime(nil)},
		"all auth times": {
			"business_services_auth_time", "checkbox_group", `"{1,30,30+,90+}"`,
			[]payvault.AuthTime{"1", "30", "30+", "90+"},
		},
		"some brands":                 {"card_brands", "checkbox_row", `{"mc":true}`, payvault.CardBrands{MC: true}},
		"unknown value of an enum":    {"trading_status", "radio", `"xx"`, payvault.TradingStatus("xx")},
		"text does not fit a toggle":  {"processing_history", "toggle", `"perhaps"`, payvault.NewSecret("perhaps")},
		"text does not fit an amount": {"card_volume", "currency", `"a lot"`, payvault.NewSecret("a lot")},
		"text does not fit a date":    {"business_established", "date", `"14.03.2015"`, payvault.NewSecret("14.03.2015")},
		"text does not fit an address": {
			"business_address", "address_suggest", `"401 Business Street"`,
			payvault.NewSecret("401 Business Street"),
		},
		"array does not fit a set": {
			"business_services_auth_time", "checkbox_group", `["1","30"]`,
			payvault.NewSecret(`["1","30"]`),
		},
		"object does not fit a text": {"legal_name", "text", `{"first":"x"}`, payvault.NewSecret(`{"first":"x"}`)},
		"number for a secret":        {"tax_id", "tax_id", `123456789`, payvault.NewSecret("123456789")},
		"unfitting ownership": {
			"ownership", "ownership", `{"owners":[{"ssn":[123456789]}]}`,
			payvault.NewSecret(`{"owners":[{"ssn":[123456789]}]}`),
		},
		"secret under an unknown key": {"later_tax_id", "tax_id", `"001234567"`, payvault.NewSecret("001234567")},
		"later routing number":        {"later_routing", "bank_routing", `123456780`, payvault.NewSecret("123456780")},
		"later account number":        {"later_account", "bank_dda", `"0004445550"`, payvault.NewSecret("0004445550")},
		"number of an unknown key": {
			"later_key", "currency", `12345678901234567890.10`,
			json.Number("12345678901234567890.10"),
		},
		"toggle of an unknown key": {"later_key", "toggle", `"true"`, "true"},
		"object of an unknown key": {
			"later_key", "text", `{"inner":[1,true]}`,
			map[string]any{"inner": []any{json.Number("1"), true}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wire := `{"key":"` + test.key + `","value":` + test.value + `,"type":"` + test.kind +
				`","settings":{"required":false}}`
			want := payvault.SavedField{Key: test.key, Value: test.want, Type: test.kind}

			var got payvault.SavedField
			require.NoError(t, json.Unmarshal([]byte(wire), &got))
			assert.Equal(t, want, got)

			again, err := payvault.MarshalWire(got)
			require.NoError(t, err)
			var back payvault.SavedField
			require.NoError(t, json.Unmarshal(again, &back))
			assert.Equal(t, want, back)
		})
	}
}

func TestSavedField_missing(t *testing.T) {
	t.Parallel()
	var got payvault.SavedField
	require.NoError(t, json.Unmarshal([]byte(`{"key":"tax_id"}`), &got))
	assert.Equal(t, payvault.SavedField{Key: "tax_id"}, got)
}

func TestApplicationsSaveData_invalid(t *testing.T) {
	t.Parallel()
	together := []string{"and bank_account_number are required together"}
	element := "has an element that is empty or contains a brace or comma"
	noDate := payvault.Date{Year: 2015, Month: time.February, Day: 29}
	field := func(key string) payvault.ApplicationField { return payvault.ApplicationField{Key: key, Value: "x"} }
	tests := map[string]struct {
		data payvault.ApplicationData
		want service.Fields
	}{
		"empty": {payvault.ApplicationData{}, service.Fields{"data": {"has no field"}}},
		"routing number alone": {
			payvault.ApplicationData{BankRouting: payvault.NewSecret("123456780")},
			service.Fields{"bank_routing": together},
		},
		"account number alone": {
			payvault.ApplicationData{BankAccountNumber: payvault.NewSecret("0004445550")},
			service.Fields{"bank_routing": together},
		},
		"key of a field": {payvault.ApplicationData{
			TaxID: payvault.NewSecret("1"),
			Extra: []payvault.ApplicationField{field("tax_id")},
		}, service.Fields{"tax_id": {"is set twice"}}},
		"key twice": {payvault.ApplicationData{Extra: []payvault.ApplicationField{
			field("k"), field("l"),
			field("k"),
		}}, service.Fields{"k": {"is set twice"}}},
		"no key": {
			payvault.ApplicationData{Extra: []payvault.ApplicationField{field("")}},
			service.Fields{"data": {"has a field without a key"}},
		},
		"no day of the year": {
			payvault.ApplicationData{BusinessEstablished: noDate},
			service.Fields{"business_established": {calls.BadDate}},
		},
		"auth times": {
			payvault.ApplicationData{BusinessServicesAuthTime: []payvault.AuthTime{"1,30", "", "}"}},
			service.Fields{"business_services_auth_time": {element, element, element}},
		},
		"value that is no JSON": {payvault.ApplicationData{Extra: []payvault.ApplicationField{{
			Key:   "k",
			Value: func() {},
		}}}, service.Fields{"k": {"cannot be written as JSON: func() has no form"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := service.Client(t, service.Nowhere).Applications.SaveData(t.Context(), 4004, test.data)
			service.AssertInvalid(t, err, payvault.OpApplicationsSaveData, test.want)
			assert.Nil(t, got)
		})
	}
}

func TestApplicationsValidate_rejected(t *testing.T) {
	t.Parallel()
	const failed = "Request validation failed"
	tests := map[string]struct {
		status     int
		answer     string
		code, text string
	}{
		"another code with data": {
			http.StatusOK,
			`{"code":5,"message":"no","data":{"tax_id":"a record","list":["a value"]}}`, "5", "no",
		},
		"no data": {http.StatusOK, `{"code":2,"message":"Request validation failed"}`, "2", failed},
		"no data with 422": {
			http.StatusUnprocessableEntity,
			`{"code":2,"message":"Request validation failed","data":null}`, "2", failed,
		},
		"empty data": {http.StatusOK, `{"code":2,"message":"Request validation failed","data":{}}`, "2", failed},
		"data of another shape": {
			http.StatusOK, `{"code":2,"message":"Request validation failed","data":["tax_id"]}`, "2",
			failed,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := validate(t, test.status, test.answer)
			want := []error{payvault.ErrRejected}
			if test.code == "2" {
				want = append(want, payvault.ErrValidation)
			}
			service.AssertError(t, err, payvault.Error{
				Op: payvault.OpApplicationsValidate, StatusCode: test.status, Code: test.code, Message: test.text,
				Delivery: payvault.Answered, Attempts: 1,
			}, want...)
			assert.Nil(t, got)
		})
	}
}

// TestApplicationsValidate_refused: code 2 is the answer to the question only where the question was answered.
func TestApplicationsValidate_refused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusInternalServerError,
	} {
		validation, err := validate(t, status, `{"code":2,"message":"no","data":{"access":["denied"]}}`)
		require.Error(t, err, status)
		assert.Nil(t, validation)
	}
}

// TestApplicationsSaveData: toggles that are off, and fields that have no type of their own.
func TestApplicationsSaveData(t *testing.T) {
	t.Parallel()
	save := &calls.Table()[slices.IndexFunc(calls.Table(),
		func(o calls.Operation) bool { return o.Op == payvault.OpApplicationsSaveData })]
	got, result, err := exchange(t, save, calls.MixedData(), `{"code":0,"data":{"fields":[]}}`)
	require.NoError(t, err)
	assert.Equal(t, []payvault.SavedField{}, result)
	assert.JSONEq(t, calls.Fixture("applications/save_data.request.mixed.json"), string(got.Body))
	assertWire(t, calls.MixedData(), at(t, calls.Fixture("applications/save_data.request.mixed.json"), "/data"))
	got, result, err = exchange(t, save, payvault.ApplicationData{LegalName: "Name", Extra: []payvault.ApplicationField{
		{Key: "later_object", Value: map[string]any{"inner": []any{1, "two", nil}}},
		{Key: "later_secret", Value: payvault.NewSecret("4107")},
	}}, `{"code":0,"data":{}}`)
	require.NoError(t, err)
	assert.Nil(t, result)
	assert.JSONEq(t, `{"data":[
		{"key":"legal_name","value":"Name"}, {"key":"later_object","value":{"inner":[1,"two",null]}}, {"key":"later_secret",
		"value":"4107"}
	]}`, string(got.Body))
	// Lists of messages by field come with any code.
	_, _, err = exchange(t, save, calls.MixedData(), `{"code":5,"message":"no","data":{"tax_id":["is required"]}}`)
	assert.Equal(t, service.Fields{"tax_id": {"is required"}}, service.AsError(t, err).Fields)
	assertWire(t, payvault.ApplicationData{}, `[]`)
	assertWire(t, payvault.Validation{Problems: service.Fields{"tax_id": {"is required"}}},
		`{"data":{"tax_id":["is required"]}}`)
}
