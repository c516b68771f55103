package payvaulttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// newApplication creates an application. It returns the api of the partner and the path of the application.
func newApplication(t *testing.T) (api, string) {
	t.Helper()
	a := newAPI(t).partner()
	data := a.post(t, "/platform/application/add", `{"channel_id":4001,"sales_rep":4002}`).ok(t)
	app, _ := data["app"].(map[string]any)
	return a, fmt.Sprintf("/platform/application/%.0f", app["app_id"])
}

// TestApplicationCreate checks the answer and the stored record of a new application.
func TestApplicationCreate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon)).partner()
	data := a.post(t, "/platform/application/add", `{"channel_id":4001,"sales_rep":4002,"termination_node":4003}`).ok(t)
	app, _ := data["app"].(map[string]any)
	id, _ := app["app_id"].(float64)
	delete(app, "app_id")
	assert.Equal(t, map[string]any{
		"merchant_id": 0.0, "app_status": "INCOMPLETE", "dba_name": "", "db_timestamp": "2026-01-15T17:00:00Z",
		"submit_timestamp": "2026-01-15T17:00:00Z", "credit_timestamp": "2026-01-15T17:00:00Z",
	}, app)
	pricing, _ := data["pricing"].(map[string]any)
	assert.Positive(t, pricing["pricing_id"])
	assert.IsType(t, map[string]any{}, pricing["plan"])

	saved, ok := a.srv.Applications.Get(payvault.ApplicationID(id))
	require.True(t, ok)
	assert.Equal(t, int64(4001), saved.ChannelID)
	assert.Equal(t, int64(4003), saved.TerminationNode)
	assert.Equal(t, payvault.MerchantID(partnerID), saved.Partner)
	assert.Len(t, a.srv.Applications.All(), 1)
}

// TestApplicationCreateRefuses checks that an invalid request is refused with the name of the field, and that nothing
// is stored.
func TestApplicationCreateRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t).partner()
	for body, field := range map[string]string{
		`{"sales_rep":1}`:                                       "channel_id",
		`{"channel_id":1}`:                                      "sales_rep",
		`{"channel_id":"1","sales_rep":1}`:                      "channel_id",
		`{"channel_id":1,"sales_rep":1.5}`:                      "sales_rep",
		`{"channel_id":1,"sales_rep":1,"x":1}`:                  "x",
		`{"channel_id":1,"sales_rep":1,"termination_node":"3"}`: "termination_node",
	} {
		a.post(t, "/platform/application/add", body).refused(t, http.StatusBadRequest, field)
	}
	assert.Empty(t, a.srv.Applications.All())
}

// allData is a value of every documented key of application data, in the order of api/openapi.yaml.
const allData = `[
	{"key":"legal_name","value":"Legal LLC"},
	{"key":"business_name","value":"Business"},
	{"key":"business_websites","value":"https://shop.example.com"},
	{"key":"business_email","value":"b@example.com"},
	{"key":"business_phone","value":"212-555-0141"},
	{"key":"business_address","value":{"firm_name":"F","address1":"1 Street","address2":"","city":"Dover","state":"DE",
	"zip":"19901",
		"zip4":"4101","country":"840","attempted":true,"validated":false}},
	{"key":"business_type","value":"llc"},
	{"key":"limited_partnership","value":"false"},
	{"key":"trading_status","value":"np"},
	{"key":"tax_id_type","value":"ein"},
	{"key":"tax_id","value":"00-1234567"},
	{"key":"state_filed","value":"NV"},
	{"key":"business_established","value":"2015-03-14"},
	{"key":"business_mcc","value":"5999"},
	{"key":"business_description","value":"Things"},
	{"key":"ownership","value":{"interestCount":1,"owners":[{"name":{"first_name":"Olga","last_name":"Owner"},
		"personType":{"owner":true,"control":true,"user":false},"id":"O1","contactType":{"admin":true},"phone":"2125550142",
		"email":"o@example.com","dob":"1980-05-21","ssn":"000123456","passport":"","dl_number":"L","dl_state":"NJ",
		"dl_expiration_date":"2030-07-24","interestPercent":62.5,"relatedBusinesses":[],"cbExp":"","legal":true,"legalExp":"",
		"title":"Member","address":{"address1":"2 Street","country":"840"}}]}},
	{"key":"processing_history","value":"true"},
	{"key":"business_services_process","value":"fulfill"},
	{"key":"business_services_auth_time","value":"{1,30,30+}"},
	{"key":"card_brands","value":{"vi":true,"mc":true,"di":false,"am":false,"gp":false}},
	{"key":"card_volume","value":"25000.00"},
	{"key":"ach_volume","value":"0"},
	{"key":"total_volume","value":"30000.5"},
	{"key":"high_ticket","value":"1500"},
	{"key":"fulfillment_provider_flag","value":"thirdparty"},
	{"key":"fulfillment_delivery_method","value":{"digitally":true,"Service":false}},
	{"key":"delivery_confirmation","value":"true"},
	{"key":"fulfillment_name","value":"House"},
	{"key":"fulfillment_contact","value":"Frank"},
	{"key":"fulfillment_email","value":"f@example.com"},
	{"key":"fulfillment_phone","value":"(212) 555-0143"},
	{"key":"fulfillment_address","value":{"address1":"3 Street"}},
	{"key":"fulfillment_process_flag","value":"false"},
	{"key":"bank_routing","value":"123456780"},
	{"key":"bank_account_number","value":"0004445550"}]`

// TestApplicationSaveEverything checks that every documented field can be saved and validated.
func TestApplicationSaveEverything(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	data := a.post(t, path+"/data", `{"data":`+allData+`}`).ok(t)
	var sent []map[string]any
	require.NoError(t, json.Unmarshal([]byte(allData), &sent))
	fields, _ := data["fields"].([]any)
	require.Len(t, fields, len(sent))
	types := map[string]string{}
	for i, field := range fields {
		field, _ := field.(map[string]any)
		key, _ := field["key"].(string)
		assert.Equal(t, sent[i]["key"], key)
		assert.Equal(t, sent[i]["value"], field["value"], key)
		types[key], _ = field["type"].(string)
		settings, _ := field["settings"].(map[string]any)
		assert.IsType(t, true, settings["required"], key)
	}
	assert.Equal(t, "toggle", types["limited_partnership"])
	assert.Equal(t, "checkbox_row", types["card_brands"])
	assert.Equal(t, "bank_dda", types["bank_account_number"])

	assert.JSONEq(t, `{"code":0,"message":"Success"}`, a.get(t, path+"/validate").body)
	assert.Equal(t, 1, a.srv.Commits(payvault.OpApplicationsSaveData))
	assert.Equal(t, 1, a.srv.Commits(payvault.OpApplicationsValidate))
}

// TestApplicationSettings checks the type and settings of saved fields, and that earlier fields are kept.
func TestApplicationSettings(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	got := a.post(t, path+"/data",
		`{"data":[{"key":"trading_status","value":"np"},{"key":"my_key","value":{"any":[1]}},{"key":"ach_volume",`+
			`"value":"1"}]}`)
	assert.JSONEq(t, `{"code":0,"message":"Success","data":{"fields":[
		{"key":"trading_status","value":"np","type":"radio","settings":{"required":true,"options":[
			{"label":"pt","value":"pt"},{"label":"np","value":"np"}]}},
		{"key":"my_key","value":{"any":[1]},"type":"text","settings":{"required":false}},
		{"key":"ach_volume","value":"1","type":"currency","settings":{"required":false}}]}}`, got.body)

	got = a.post(t, path+"/data", `{"data":[{"key":"trading_status","value":"pt"}]}`)
	fields, _ := got.ok(t)["fields"].([]any)
	assert.Len(t, fields, 3, "all that is saved so far")
	app := a.srv.Applications.All()[0]
	assert.Len(t, app.Data(), 3)
	assert.JSONEq(t, `"pt"`, string(app.Data()["trading_status"]))
	app.Data()["trading_status"][1] = 'x'
	assert.JSONEq(t, `"pt"`, string(app.Data()["trading_status"]), "a copy")
}

// TestApplicationSaveRefuses checks that an invalid value is refused with its key, and that nothing is saved.
func TestApplicationSaveRefuses(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	for pair, field := range map[string]string{
		`"legal_name","value":5`:                                        "legal_name",
		`"legal_name","value":null`:                                     "legal_name",
		`"legal_name","value":{}`:                                       "legal_name",
		`"limited_partnership","value":true`:                            "limited_partnership",
		`"limited_partnership","value":"yes"`:                           "limited_partnership",
		`"business_type","value":"llcc"`:                                "business_type",
		`"business_type","value":["llc"]`:                               "business_type",
		`"trading_status","value":"xx"`:                                 "trading_status",
		`"business_address","value":"1 Street"`:                         "business_address",
		`"business_address","value":{"address3":"x"}`:                   "business_address.address3",
		`"business_address","value":{"attempted":"true"}`:               "business_address.attempted",
		`"business_address","value":{"country":"USA"}`:                  "business_address.country",
		`"ownership","value":{"owners":[{"address":{"country":"U"}}]}`:  "ownership.owners[0].address.country",
		`"business_established","value":"14.03.2015"`:                   "business_established",
		`"business_services_auth_time","value":"1,30"`:                  "business_services_auth_time",
		`"business_services_auth_time","value":"{7}"`:                   "business_services_auth_time",
		`"card_brands","value":"vi"`:                                    "card_brands",
		`"card_brands","value":{"vi":"true"}`:                           "card_brands.vi",
		`"card_brands","value":{"xx":true}`:                             "card_brands.xx",
		`"fulfillment_delivery_method","value":{"service":true}`:        "fulfillment_delivery_method.service",
		`"card_volume","value":25000`:                                   "card_volume",
		`"ownership","value":[]`:                                        "ownership",
		`"ownership","value":{"interestCount":"1"}`:                     "ownership.interestCount",
		`"ownership","value":{"owners":[{},{"dob":"1.1.1980"}]}`:        "ownership.owners[1].dob",
		`"ownership","value":{"owners":[{"interestPercent":"5"}]}`:      "ownership.owners[0].interestPercent",
		`"ownership","value":{"owners":[{"personType":{"boss":true}}]}`: "ownership.owners[0].personType.boss",
		`"my_key","value":5`:                                            "my_key",
		`"no_value"`:                                                    "data[1].value",
		`"x","value":"x","type":"text"`:                                 "data[1].type",
	} {
		t.Run(pair, func(t *testing.T) {
			t.Parallel()
			a.post(t, path+"/data", `{"data":[{"key":"business_name","value":"B"},{"key":`+pair+`}]}`).refused(t,
				http.StatusBadRequest, field)
		})
	}
	t.Cleanup(func() { assert.Empty(t, a.srv.Applications.All()[0].Data(), "all or nothing") })
}

// TestApplicationSaveNothing checks that requests without data and requests for unknown applications are refused.
func TestApplicationSaveNothing(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	a.post(t, path+"/data", `{}`).refused(t, http.StatusBadRequest, "data")
	a.post(t, "/platform/application/1/data", `{"data":[{"key":"tax_id","value":""}]}`).refused(t, http.StatusNotFound)
	a.get(t, "/platform/application/1/validate").refused(t, http.StatusNotFound)
	a.get(t, path+"/validate?deep=true").refused(t, http.StatusBadRequest, "deep")
}

// problems saves data and returns the problems that a validation of the application finds.
func (a api) problems(t *testing.T, path, data string) map[string][]string {
	t.Helper()
	if data != "" {
		a.post(t, path+"/data", `{"data":`+data+`}`).ok(t)
	}
	got := a.get(t, path+"/validate")
	require.Equal(t, http.StatusOK, got.status)
	var envelope struct {
		Code    int                 `json:"code"`
		Message string              `json:"message"`
		Data    map[string][]string `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.body), &envelope))
	if len(envelope.Data) > 0 {
		assert.Equal(t, 2, envelope.Code)
		assert.Equal(t, "Request validation failed", envelope.Message)
	}
	return envelope.Data
}

// TestValidateRequires checks that each required field is reported while it is missing or empty.
func TestValidateRequires(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	got := a.problems(t, path, "")
	assert.Len(t, got, 27, "the required keys of application data in api/openapi.yaml")
	assert.Contains(t, got, "legal_name")
	assert.NotContains(t, got, "ach_volume")

	got = a.problems(t, path,
		`[{"key":"legal_name","value":"L"},{"key":"card_brands","value":{"vi":false}},{"key":"business_services_auth_time",`+
			`"value":"{}"}]`)
	assert.NotContains(t, got, "legal_name")
	assert.NotContains(t, got, "card_brands")
	assert.Contains(t, got, "business_services_auth_time", "an empty set")
	got = a.problems(t, path, `[{"key":"legal_name","value":""},{"key":"card_brands","value":{ }}]`)
	assert.Contains(t, got, "legal_name", "cleared")
	assert.Contains(t, got, "card_brands", "empty")
	got = a.problems(t, path, `[{"key":"legal_name","value":"0"},{"key":"legal_name","value":"  "}]`)
	assert.Contains(t, got, "legal_name", "the last value counts, and it is blank")
}

// TestValidateBank checks that the account number and the routing number are required together.
func TestValidateBank(t *testing.T) {
	t.Parallel()
	for missing, other := range map[string]string{
		"bank_routing":        "bank_account_number",
		"bank_account_number": "bank_routing",
	} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			a, path := newApplication(t)
			a.problems(t, path, allData)
			got := a.problems(t, path, `[{"key":"`+missing+`","value":""}]`)
			const together = "Bank account and routing number are required together"
			assert.Equal(t, map[string][]string{missing: {"This field is required", together}, other: {together}}, got)
		})
	}
}

// TestSavingRefusesWhatIsEmpty checks that an empty choice, toggle, set or date is refused, and that an empty text or
// number is stored.
func TestSavingRefusesWhatIsEmpty(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	for _, key := range []string{
		"business_type", "limited_partnership", "trading_status", "tax_id_type", "business_established", "processing_history",
		"business_services_process", "business_services_auth_time", "fulfillment_provider_flag", "delivery_confirmation",
		"fulfillment_process_flag",
	} {
		for _, value := range []string{`""`, `" "`} {
			a.post(t, path+"/data", `{"data":[{"key":"`+key+`","value":`+value+`}]}`).refused(t, http.StatusBadRequest, key)
		}
	}
	for _, name := range []string{"dob"} {
		a.post(t, path+"/data", `{"data":[{"key":"ownership","value":{"owners":[{"`+name+`":""}]}}]}`).
			refused(t, http.StatusBadRequest, "ownership.owners[0]."+name)
	}
	for key, value := range map[string]string{
		"legal_name": `""`, "business_email": `""`, "card_volume": `""`,
		"bank_routing": `" "`,
	} {
		a.post(t, path+"/data", `{"data":[{"key":"`+key+`","value":`+value+`}]}`).ok(t)
	}
}

func repeat(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}
