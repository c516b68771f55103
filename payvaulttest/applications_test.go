package payvaulttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/payvaulttest"
)

// newApplication seeds an application. It returns an api that sends requests as the partner, and the path of the
// application.
func newApplication(t *testing.T) (api, string) {
	t.Helper()
	a := newAPI(t).partner()
	app := a.srv.Applications.Seed(payvaulttest.Application{})
	return a, fmt.Sprintf("/platform/application/%d", app.ID)
}

// save sends a request that saves pairs of keys and values, written as JSON. It returns the fields of the answer.
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
	assert.Equal(t, 1, a.srv.Commits(payvault.OpApplicationsCreate))
}

// saveAll saves a value for every key that the OpenAPI document names.
func (a api) saveAll(t *testing.T, path string) {
	t.Helper()
	all, err := os.ReadFile("../testdata/applications/save_data.request.json")
	require.NoError(t, err)
	a.post(t, path+"/data", string(all)).ok(t)
}

// TestApplicationSave checks that the answer to a save has all saved values in the order in which their keys were first
// saved, with the types and options of the OpenAPI document.
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

// TestValidate checks that a validation lists the required keys without a value, and both bank keys if only one has a
// value.
func TestValidate(t *testing.T) {
	t.Parallel()
	const (
		required = "This field is required"
		together = "Bank account and routing number are required together"
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
	} {
		t.Run(saved, func(t *testing.T) {
			t.Parallel()
			a, path := newApplication(t)
			a.saveAll(t, path)
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

// TestValidateThirdParty checks that a validation requires the data of a third party only if a third party fulfills the
// orders.
func TestValidateThirdParty(t *testing.T) {
	t.Parallel()
	const needed = `":["This field is required when a third party fulfils orders"]`
	a, path := newApplication(t)
	assert.NotContains(t, a.get(t, path+"/validate").body, needed)
	a.save(t, path, `{"key":"fulfillment_provider_flag","value":"thirdparty"}`)
	body := a.get(t, path+"/validate").body
	for _, key := range []string{"name", "contact", "email", "phone", "address"} {
		assert.Contains(t, body, `"fulfillment_`+key+needed)
	}
	assert.Equal(t, 5, strings.Count(body, needed), body)
}
