package contract

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

// TestConstants wants the values that the document shows as the constants of the SDK, and no constant of any text type
// besides.
func TestConstants(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	values := applicationKeys(t, c)
	shown := func(schema, name string) []string {
		return shownValues(c.schema(t, schema).Value.Properties[name].Value)
	}
	operations := []string{string(payvault.OpCall), string(payvault.OpNewClient)} // not of the service
	for name := range c.operations() {
		operations = append(operations, name)
	}
	want := map[string][]string{
		"string":              {payvault.Version},
		"Operation":           operations,
		"BusinessType":        values["business_type"],
		"TradingStatus":       values["trading_status"],
		"TaxIDType":           values["tax_id_type"],
		"ServicesProcess":     values["business_services_process"],
		"FulfillmentProvider": values["fulfillment_provider_flag"],
		"AuthTime":            values["business_services_auth_time"],
		"ACHAccountType":      shown("TokenizeRequest", "type_id"),
		"DisputeResponseType": shown("DisputeRespondRequest", "cbr_response_type"),
		"Replay":              {"never", "with a card_id", "same", "read"},    // the SDK's own
		"BatchStatus":         {"accepted", "refused", "unknown", "not sent"}, // likewise
		"Order":               shownValues(c.doc.Components.Parameters["orderBy"].Value.Schema.Value),
		"Condition":           shownValues(c.doc.Components.Parameters["filterBy"].Value.Schema.Value),
		"ApplicationStatus":   shown("Application", "app_status"),
		"TransactionStatus":   shown("Transaction", "tran_status"),
		"Event": shownValues(
			c.operations()[string(payvault.OpWebhooksAddEvent)].Parameters.GetByInAndName("path", "event").Schema.Value,
		),
	}
	constants := sdkSource(t).constants
	for kind, texts := range want {
		assert.NotEmpty(t, texts, "the document shows no value for %s", kind)
		failList(t, "in the document, no constant of the SDK's "+kind, without(texts, constants[kind]))
	}
	for kind, texts := range constants {
		failList(t, "constants of the SDK's "+kind+" that the document does not show", without(texts, want[kind]))
	}
}

// shownValues are the values that the document lists, whether or not there may be others.
func shownValues(schema *openapi3.Schema) []string {
	if schema == nil {
		return nil
	}
	var values []string
	known, _ := schema.Extensions["x-known-values"].([]any)
	options, _ := schema.Extensions["x-options"].([]any)
	for _, value := range slices.Concat(schema.Enum, known, options) {
		if text, ok := value.(string); ok {
			values = append(values, text)
		}
	}
	return values
}

// applicationKeys are the keys of application data with the values that the document shows for them.
func applicationKeys(t *testing.T, c *contract) map[string][]string {
	t.Helper()
	keys := map[string][]string{}
	for key, property := range c.schema(t, "ApplicationData").Value.Properties {
		keys[key] = shownValues(property.Value)
	}
	return keys
}

// TestApplicationData checks that ApplicationData has one field per key, with values that fit.
func TestApplicationData(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	keys := slices.Collect(maps.Keys(applicationKeys(t, c)))
	assertSame(t, keys, namesOf(sdkSource(t).structs["ApplicationData"]))

	text, err := payvault.MarshalWire(allData(t))
	require.NoError(t, err)
	property := c.schema(t, "ApplicationSaveDataRequest").Value.Properties["data"]
	report(t, "ApplicationData", problemsOf(checkJSON(property, text)))
	var pairs []struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	require.NoError(t, json.Unmarshal(text, &pairs))
	data := map[string]json.RawMessage{}
	for _, pair := range pairs {
		data[pair.Key] = pair.Value
	}
	text, err = json.Marshal(data)
	require.NoError(t, err)
	report(t, "ApplicationData", problemsOf(checkJSON(c.schema(t, "ApplicationData"), text)))
}

// TestListQuery checks that listQuery has exactly the documented query parameters of each list.
func TestListQuery(t *testing.T) {
	t.Parallel()
	query := namesOf(sdkSource(t).structs["listQuery"])
	documented := queryParameters(loadContract(t))
	for _, o := range calls.Table() {
		switch parameters := documented[string(o.Op)]; {
		case o.Lists():
			assertSame(t, parameters, query)
		case strings.HasSuffix(o.Stated, " query"): // it is set by hand, and TestTraffic checks it
			assert.Equal(t, []string{"merchant_id"}, parameters, o.Op)
		default:
			assert.Empty(t, parameters, o.Op)
		}
	}
}

// queryParameters are the names of the query parameters by operation.
func queryParameters(c *contract) map[string][]string {
	names := map[string][]string{}
	for name, operation := range c.operations() {
		names[name] = nil
		for _, parameter := range operation.Parameters {
			if parameter.Value.In == openapi3.ParameterInQuery {
				names[name] = append(names[name], parameter.Value.Name)
			}
		}
	}
	return names
}
