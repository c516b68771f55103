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

// newApplication seeds an application and returns the partner's api and the application's path.
func newApplication(t *testing.T) (api, string) {
	t.Helper()
	a := newAPI(t).partner()
	app := a.srv.Applications.Seed(payvaulttest.Application{})
	return a, fmt.Sprintf("/platform/application/%d", app.ID)
}

// save saves pairs of keys and values, in JSON, and returns the fields of the answer.
func (a api) save(t *testing.T, path, pairs string) []any {
	t.Helper()
	fields, _ := a.post(t, path+"/data", `{"data":[`+pairs+`]}`).ok(t)["fields"].([]any)
	return fields
}

// TestApplicationCreate checks the answer and the stored record of a new application.
func TestApplicationCreate(t *testing.T) {
	t.Parallel()
	a := newAPI(t, payvaulttest.WithClock(noon)).partner()
	data := a.post(t, "/platform/application/add", `{"channel_id":4001,"sales_rep":4002,"termination_node":4003}`).ok(t)
	saved := a.srv.Applications.All()
	require.Len(t, saved, 1)
	assert.Equal(t, map[string]any{
		"app_id": float64(saved[0].ID), "merchant_id": 0.0, "app_status": "INCOMPLETE", "dba_name": "",
		"db_timestamp": "2026-01-15T17:00:00Z", "submit_timestamp": "2026-01-15T17:00:00Z",
		"credit_timestamp": "2026-01-15T17:00:00Z",
	}, data["app"])
	pricing, _ := data["pricing"].(map[string]any)
	assert.Positive(t, pricing["pricing_id"])
	assert.IsType(t, map[string]any{}, pricing["plan"])
	assert.Equal(t, payvault.MerchantID(partnerID), saved[0].Partner)
	assert.Equal(t, []int64{4001, 4002, 4003},
		[]int64{saved[0].ChannelID, saved[0].SalesRep, saved[0].TerminationNode})
}

// A value of every key that is required, and of some that are not.
const completeData = `
	{"key":"legal_name","value":"Legal LLC"},
	{"key":"business_name","value":"Business"},
	{"key":"business_websites","value":"https://shop.example.com"},
	{"key":"business_email","value":"b@example.com"},
	{"key":"business_phone","value":"212-555-0141"},
	{"key":"business_address","value":{"firm_name":"F","address1":"1 Street","country":"840","attempted":true}},
	{"key":"business_type","value":"llc"},
	{"key":"limited_partnership","value":"false"},
	{"key":"trading_status","value":"np"},
	{"key":"tax_id_type","value":"ein"},
	{"key":"tax_id","value":"00-1234567"},
	{"key":"state_filed","value":"NV"},
	{"key":"business_established","value":"2015-03-14"},
	{"key":"business_mcc","value":"5999"},
	{"key":"business_description","value":"Things"},
	{"key":"ownership","value":{"interestCount":1,"owners":[{"id":"O1","dob":"1980-05-21","interestPercent":62.5}]}},
	{"key":"processing_history","value":"true"},
	{"key":"business_services_process","value":"fulfill"},
	{"key":"business_services_auth_time","value":"{1,30,30+}"},
	{"key":"card_brands","value":{"vi":true,"mc":true,"di":false,"am":false,"gp":false}},
	{"key":"card_volume","value":"25000.00"},
	{"key":"total_volume","value":"30000.5"},
	{"key":"high_ticket","value":"1500"},
	{"key":"fulfillment_provider_flag","value":"business"},
	{"key":"fulfillment_delivery_method","value":{"digitally":true,"Service":false}},
	{"key":"delivery_confirmation","value":"true"},
	{"key":"bank_routing","value":"123456780"},
	{"key":"bank_account_number","value":"0004445550"}`

// An answer to saving has all that is saved so far, in order of saving, with what the document says of each key.
func TestApplicationSave(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	a.save(t, path, `{"key":"trading_status","value":"np"},{"key":"my_key","value":{"any":[1]}}`)
	saved := a.save(t, path, `{"key":"card_brands","value":{"vi":true}},{"key":"trading_status","value":"pt"}`)
	fields, err := json.Marshal(saved)
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"key":"trading_status","value":"pt","type":"radio","settings":{"required":true,"options":[
			{"label":"pt","value":"pt"},{"label":"np","value":"np"}]}},
		{"key":"my_key","value":{"any":[1]},"type":"text","settings":{"required":false}},
		{"key":"card_brands","value":{"vi":true},"type":"checkbox_row","settings":{"required":true}}]`, string(fields))
	assert.Equal(t, 2, a.srv.Commits(payvault.OpApplicationsSaveData))

	data := a.srv.Applications.All()[0].Data()
	assert.Len(t, data, 3)
	assert.JSONEq(t, `"pt"`, string(data["trading_status"]))
	data["trading_status"][1] = 'x'
	assert.JSONEq(t, `"pt"`, string(a.srv.Applications.All()[0].Data()["trading_status"]), "a copy")
}

// Validation names the keys that have no value, in any form, and the number that a bank needs besides the other.
func TestValidate(t *testing.T) {
	t.Parallel()
	const (
		required = "This field is required"
		together = "Bank account and routing number are required together"
		party    = "This field is required when a third party fulfils orders"
	)
	for saved, want := range map[string]map[string][]string{
		`{"key":"ach_volume","value":""}`:                    {},
		`{"key":"card_brands","value":{"vi":false}}`:         {},
		`{"key":"legal_name","value":""}`:                    {"legal_name": {required}},
		`{"key":"legal_name","value":"  "}`:                  {"legal_name": {required}},
		`{"key":"card_brands","value":{ }}`:                  {"card_brands": {required}},
		`{"key":"business_services_auth_time","value":"{}"}`: {"business_services_auth_time": {required}},
		`{"key":"bank_routing","value":""}`: {
			"bank_routing": {required, together}, "bank_account_number": {together},
		},
		`{"key":"bank_account_number","value":""}`: {
			"bank_account_number": {required, together}, "bank_routing": {together},
		},
		`{"key":"fulfillment_provider_flag","value":"thirdparty"}`: {
			"fulfillment_name": {party}, "fulfillment_contact": {party}, "fulfillment_email": {party},
			"fulfillment_phone": {party}, "fulfillment_address": {party},
		},
	} {
		t.Run(saved, func(t *testing.T) {
			t.Parallel()
			a, path := newApplication(t)
			a.save(t, path, completeData)
			a.save(t, path, saved)
			got := a.get(t, path+"/validate")
			assert.Equal(t, 1, a.srv.Commits(payvault.OpApplicationsValidate))
			if len(want) == 0 {
				assert.JSONEq(t, `{"code":0,"message":"Success"}`, got.body)
				return
			}
			data, err := json.Marshal(want)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, got.status)
			assert.JSONEq(t, `{"code":2,"message":"Request validation failed","data":`+string(data)+`}`, got.body)
		})
	}
}

// Choices, toggles, sets and dates have a form in which they cannot be empty. Texts may be cleared.
func TestSavingRefusesWhatIsEmpty(t *testing.T) {
	t.Parallel()
	a, path := newApplication(t)
	for _, key := range []string{
		"business_type", "limited_partnership", "trading_status", "tax_id_type", "business_established", "processing_history",
		"business_services_process", "business_services_auth_time", "fulfillment_provider_flag", "delivery_confirmation",
		"fulfillment_process_flag",
	} {
		a.post(t, path+"/data", `{"data":[{"key":"`+key+`","value":""}]}`).refused(t, http.StatusBadRequest, key)
	}
	for _, key := range []string{"business_email", "card_volume", "bank_routing"} {
		a.save(t, path, `{"key":"`+key+`","value":""}`)
	}
}
