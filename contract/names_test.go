package contract

import (
	"encoding/json"
	"go/ast"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// A pairing says which schemas a Go type stands for. A type that stands for a request and a result has the names of
// both.
type pairing struct {
	goType  string
	value   any // of the type, if it is exported
	schemas []string
	ignored []string // properties that another type reads
}

// pairings maps every type of the SDK with wire names, but for ApplicationData and listQuery, which have tests of their
// own. Properties of objects without a name follow the name of the schema that they are in.
func pairings() []pairing {
	return []pairing{
		{"TokenizeRequest", payvault.TokenizeRequest{}, []string{"TokenizeRequest"}, nil},
		{"TokenizeResponse", payvault.TokenizeResponse{}, []string{"TokenizeResponse"}, nil},
		{"tokenizeReply", nil, []string{"TokenizeResponse"}, nil},

		{"CustomerCreateRequest", payvault.CustomerCreateRequest{}, []string{"CustomerCreateRequest"}, nil},
		{"Customer", payvault.Customer{}, []string{"Customer"}, nil},
		{"ShippingAddress", payvault.ShippingAddress{}, []string{"ShippingAddressRequest", "ShippingAddress"}, nil},
		{"BillingCardRequest", payvault.BillingCardRequest{}, []string{"BillingCardRequest"}, nil},
		{"BillingCard", payvault.BillingCard{}, []string{"BillingCard"}, nil},
		{"Page", payvault.Page[payvault.Customer]{}, []string{"CustomerListResponse"}, envelope()},

		{"PayeeCreateRequest", payvault.PayeeCreateRequest{}, []string{"PayeeCreateRequest"}, nil},
		{"Payee", payvault.Payee{}, []string{"Payee"}, nil},
		{"PayeeAddress", payvault.PayeeAddress{}, []string{"PayeeAddressRequest", "PayeeAddress"}, nil},
		{"PayeeAccount", payvault.PayeeAccount{}, []string{"PayeeAccountRequest", "PayeeAccount"}, nil},

		{"ApplicationCreateRequest", payvault.ApplicationCreateRequest{}, []string{"ApplicationCreateRequest"}, nil},
		{"ApplicationCreated", payvault.ApplicationCreated{}, []string{"ApplicationCreateResponse.data"}, nil},
		{"Application", payvault.Application{}, []string{"Application"}, nil},
		{"Pricing", payvault.Pricing{}, []string{"ApplicationPricing"}, nil},
		{"applicationDataBody", nil, []string{"ApplicationSaveDataRequest"}, nil},
		{"ApplicationField", payvault.ApplicationField{}, []string{"ApplicationField"}, nil},
		{"savedData", nil, []string{"ApplicationSaveDataResponse.data"}, nil},
		{"savedField", nil, []string{"SavedApplicationField"}, nil},
		{"FieldSettings", payvault.FieldSettings{}, []string{"ApplicationFieldSettings"}, nil},
		{"FieldOption", payvault.FieldOption{}, []string{"ApplicationFieldOption"}, nil},
		{"ApplicationAddress", payvault.ApplicationAddress{}, []string{"ApplicationAddress"}, nil},
		{"CardBrands", payvault.CardBrands{}, []string{"ApplicationCardBrands"}, nil},
		{"DeliveryMethods", payvault.DeliveryMethods{}, []string{"ApplicationDeliveryMethod"}, nil},
		{"Ownership", payvault.Ownership{}, []string{"ApplicationOwnership"}, nil},
		{"Owner", payvault.Owner{}, []string{"ApplicationOwner"}, nil},
		{"OwnerName", payvault.OwnerName{}, []string{"ApplicationOwner.name"}, nil},
		{"PersonType", payvault.PersonType{}, []string{"ApplicationOwner.personType"}, nil},
		{"ContactType", payvault.ContactType{}, []string{"ApplicationOwner.contactType"}, nil},
		{"Validation", payvault.Validation{}, []string{"ApplicationIncomplete"}, envelope()},

		{"DisputeResponse", payvault.DisputeResponse{}, []string{"DisputeResponse"}, nil},

		{"Transaction", payvault.Transaction{}, []string{"SubscriptionTransaction"}, nil},
		{"Page", payvault.Page[payvault.Transaction]{}, []string{"SubscriptionTransactionsResponse"}, envelope()},
		{"SubscriptionCancelRequest", payvault.SubscriptionCancelRequest{}, []string{"SubscriptionCancelRequest"}, nil},
		{"Confirmation", payvault.Confirmation{}, []string{"ConfirmationResponse.data"}, nil},

		{"InvoiceSendRequest", payvault.InvoiceSendRequest{}, []string{"InvoiceSendRequest"}, nil},

		{"accountUpdaterBody", nil, []string{"AccountUpdaterSubmitRequest"}, nil},
		{"AccountUpdaterCard", payvault.AccountUpdaterCard{}, []string{"AccountUpdaterCard"}, nil},
		{"AccountUpdaterRequest", payvault.AccountUpdaterRequest{}, []string{"AccountUpdaterSubmitResponse.data"}, nil},

		// The message of a success is always the same; that of a failure is read by the type failure.
		{"platformReply", nil, []string{
			"CustomerCreateResponse", "CustomerListResponse", "PayeeCreateResponse", "PayeeDeleteResponse",
			"ApplicationCreateResponse", "ApplicationSaveDataResponse", "ApplicationValidateResponse", "DisputeRespondResponse",
			"SubscriptionTransactionsResponse", "ConfirmationResponse", "InvoiceSendResponse", "AccountUpdaterSubmitResponse",
		}, []string{"message"}},
		// A tokenize that failed has no result: what it may carry besides is in the raw answer.
		{"failure", nil, []string{
			"PlatformFailure", "ApplicationValidateFailure", "ApplicationIncomplete", "TokenizeFailure",
		}, []string{"pg_id", "card_id", "card_number", "echo_fields"}},
	}
}

// envelope names what is around the data of an answer, which platformReply reads.
func envelope() []string { return []string{"code", "message"} }

// ownTests are the types that have a test of their own below, with its name.
func ownTests() map[string]string {
	return map[string]string{"ApplicationData": "TestApplicationData", "listQuery": "TestListQuery"}
}

// withoutType are the schemas with properties that no Go type stands for, with the reason.
func withoutType() map[string]string {
	return map[string]string{
		"DisputeRespondForm":         "its two parts are written by Disputes.Respond and checked by TestTraffic",
		"PayeeDeleteResponse.data":   "an empty object",
		"ApplicationPricing.plan":    "open: json.RawMessage",
		"ApplicationIncomplete.data": "a map by field name: Validation.Problems",
	}
}

// TestEveryType wants every type with wire names to be paired, so that a new one cannot be forgotten, and every
// exported one with the value that the checks by reflection need.
func TestEveryType(t *testing.T) {
	t.Parallel()
	src := parseSource(t, "..")
	paired := map[string]bool{}
	for name := range ownTests() {
		paired[name] = true
	}
	for _, p := range pairings() {
		paired[p.goType] = true
		if p.value == nil {
			assert.False(t, ast.IsExported(p.goType), "%s is exported, so pair it with a value", p.goType)
			continue
		}
		name, _, _ := strings.Cut(reflect.TypeOf(p.value).Name(), "[")
		assert.Equal(t, p.goType, name)
		assert.Equal(t, src.wire[p.goType], wireNames(reflect.TypeOf(p.value)), "%s by source and by reflection", p.goType)
	}
	for name := range src.wire {
		assert.True(t, paired[name], "the type %s has wire names: pair it with its schema", name)
	}
	for name := range paired {
		assert.True(t, src.wire[name] != nil, "%s is paired, but not in the SDK", name)
	}
}

// TestEverySchema wants every record of the document to be paired.
func TestEverySchema(t *testing.T) {
	t.Parallel()
	paired := maps.Clone(withoutType())
	for _, p := range pairings() {
		for _, name := range p.schemas {
			paired[name] = p.goType
		}
	}
	names := map[string]bool{}
	for schema, name := range schemaNames(loadContract(t)) {
		names[name] = true
		if schema.Type.Is("object") && !strings.Contains(name, "(") {
			assert.True(t, paired[name] != "", "no Go type is paired with the schema %s", name)
		}
	}
	for name := range paired {
		assert.True(t, names[name], "%s is paired, but not in the document", name)
	}
}

// TestNames wants the same names on both sides of every pair.
func TestNames(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	src := parseSource(t, "..")
	for _, p := range pairings() {
		t.Run(p.goType, func(t *testing.T) {
			t.Parallel()
			documented := map[string]bool{}
			for _, schema := range p.find(t, c) {
				for name := range schema.Properties {
					documented[name] = true
				}
			}
			for _, name := range p.ignored {
				assert.True(t, documented[name], "%s is ignored, but not in the document", name)
				delete(documented, name)
			}
			assertSame(t, slices.Sorted(maps.Keys(documented)), src.wire[p.goType])
		})
	}
}

// TestFieldNames wants fields to be named after their wire names, at least after their end (FirstName for
// customer_first_name): sets of names do not show that two fields have each other's.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	others := map[string]string{ // by decision
		"Page.Items": "data", "Validation.Problems": "data",
		"DisputeResponse.Amount": "amt_tran", "DisputeResponse.EvidenceType": "cbr_ce_type",
		"DisputeResponse.AllocationType": "cbr_id_type", "DisputeResponse.Reason": "reason_desc",
	}
	types := []reflect.Type{reflect.TypeFor[payvault.ApplicationData]()}
	goTypes := []string{"ApplicationData"}
	for _, p := range pairings() {
		if p.value != nil {
			types, goTypes = append(types, reflect.TypeOf(p.value)), append(goTypes, p.goType)
		}
	}
	for i, goType := range types {
		for field := range goType.Fields() {
			name := wireName(field.Tag.Get("json"), field.Name)
			if name == "-" || others[goTypes[i]+"."+field.Name] == name {
				continue
			}
			squeezed := strings.ToLower(strings.ReplaceAll(name, "_", ""))
			assert.True(t, strings.HasSuffix(squeezed, strings.ToLower(field.Name)), "%s.%s is %s on the wire", goTypes[i], field.Name, name)
		}
	}
}

// find gives the schemas of a pairing.
func (p pairing) find(t *testing.T, c *contract) []*openapi3.Schema {
	t.Helper()
	byName := map[string]*openapi3.Schema{}
	for schema, name := range schemaNames(c) {
		byName[name] = schema
	}
	var schemas []*openapi3.Schema
	for _, name := range p.schemas {
		require.Contains(t, byName, name)
		schemas = append(schemas, byName[name])
	}
	return schemas
}

// assertSame says what one side has and the other has not.
func assertSame(t *testing.T, documented, sdk []string) {
	t.Helper()
	failList(t, "in the document, not in the SDK", without(documented, sdk))
	failList(t, "in the SDK, not in the document", without(sdk, documented))
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// wireNames gives the wire names of a type by reflection.
func wireNames(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		if name := wireName(field.Tag.Get("json"), field.Name); field.IsExported() && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// TestValues writes every type with every field set and checks each value against the schema of its property: names
// alone do not tell a text from a number.
func TestValues(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	f := filler{values: map[string]any{"card_number": maskedNumber}} // fits requests and results
	for _, p := range pairings() {
		if p.value == nil {
			continue
		}
		t.Run(p.goType+" "+p.schemas[0], func(t *testing.T) {
			t.Parallel()
			v := reflect.New(reflect.TypeOf(p.value))
			require.NoError(t, f.fill(v.Elem(), ""))
			text, err := json.Marshal(v.Interface())
			require.NoError(t, err)
			var members map[string]any
			require.NoError(t, json.Unmarshal(text, &members))
			for _, schema := range p.find(t, c) {
				for name, property := range schema.Properties {
					if member, ok := members[name]; ok {
						err := property.Value.VisitJSON(prune(property.Value, member), openapi3.EnableFormatValidation(), openapi3.MultiErrors())
						report(t, name, problemsOf(err))
					}
				}
			}
		})
	}
}

// prune drops the members that a record does not have: a type for requests and results has the fields of both.
// TestNames sees to it that there are no others.
func prune(schema *openapi3.Schema, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if property := schema.Properties[name]; property != nil {
				value[name] = prune(property.Value, member)
			} else if len(schema.Properties) > 0 {
				delete(value, name)
			}
		}
	case []any:
		for i := range value {
			if schema.Items != nil {
				value[i] = prune(schema.Items.Value, value[i])
			}
		}
	}
	return value
}

// TestApplicationData wants one field of ApplicationData per key, in the order of the table, with values that fit.
func TestApplicationData(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	var keys []string
	for _, key := range applicationKeys(t, c) {
		keys = append(keys, key.Key)
	}
	fields := wireNames(reflect.TypeFor[payvault.ApplicationData]())
	assertSame(t, keys, fields)
	assert.True(t, slices.Equal(keys, fields), "the fields of ApplicationData are not in the order of the table")

	text, err := json.Marshal(allData(t))
	require.NoError(t, err)
	property := c.schema(t, "ApplicationSaveDataRequest").Value.Properties["data"]
	report(t, "ApplicationData", problemsOf(checkJSON(property, text)))
	var pairs []struct {
		Key string `json:"key"`
	}
	require.NoError(t, json.Unmarshal(text, &pairs))
	require.GreaterOrEqual(t, len(pairs), len(keys))
	for i, key := range keys {
		assert.Equal(t, key, pairs[i].Key)
	}
}

// TestListQuery wants the query parameters of the lists in listQuery, and all its fields in ListOptions.
func TestListQuery(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	src := parseSource(t, "..")
	for name, operation := range c.operations() {
		var parameters []string
		for _, parameter := range operation.Parameters {
			if parameter.Value.In == openapi3.ParameterInQuery {
				parameters = append(parameters, parameter.Value.Name)
			}
		}
		switch name {
		case string(payvault.OpCustomersList), string(payvault.OpSubscriptionsTransactions):
			assertSame(t, parameters, src.wire["listQuery"])
		case string(payvault.OpPayeesDelete):
			assert.Equal(t, []string{"merchant_id"}, parameters, name) // set by hand, and checked by TestTraffic
		default:
			assert.Empty(t, parameters, name)
		}
	}
	options := slices.DeleteFunc(src.fields["ListOptions"], func(name string) bool { return name == "Prefetch" })
	assert.ElementsMatch(t, src.fields["listQuery"], options)
}

// TestConstants wants the values that the document shows as the constants of the SDK.
func TestConstants(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	values := map[string][]string{}
	for _, key := range applicationKeys(t, c) {
		values[key.Key] = key.Values
	}
	want := map[string][]string{
		"BusinessType":        values["business_type"],
		"TradingStatus":       values["trading_status"],
		"TaxIDType":           values["tax_id_type"],
		"ServicesProcess":     values["business_services_process"],
		"FulfillmentProvider": values["fulfillment_provider_flag"],
		"AuthTime":            {"1", "30", "30+", "90+"}, // a pattern in the document: allData sends all of them
		"DisputeResponseType": enumOf(c.schema(t, "DisputeResponse").Value.Properties["cbr_response_type"]),
		"Order":               enumOf(c.doc.Components.Parameters["order_by"].Value.Schema),
		"ApplicationStatus":   knownValues(t, c.schema(t, "Application").Value.Properties["app_status"]),
		"TransactionStatus":   knownValues(t, c.schema(t, "SubscriptionTransaction").Value.Properties["tran_status"]),
		"Event":               knownValues(t, c.operations()[string(payvault.OpWebhooksAddEvent)].Parameters.GetByInAndName("path", "event").Schema),
	}
	constants := parseSource(t, "..").constants
	for name, values := range want {
		assert.NotEmpty(t, values, name)
		assertSame(t, values, constants[name])
	}
}

func enumOf(ref *openapi3.SchemaRef) []string {
	var values []string
	for _, value := range ref.Value.Enum {
		values = append(values, value.(string))
	}
	return values
}

// knownValues are the values that are shown for a text that stays open.
func knownValues(t *testing.T, ref *openapi3.SchemaRef) []string {
	t.Helper()
	text, err := json.Marshal(ref.Value.Extensions["x-known-values"])
	require.NoError(t, err)
	var known []struct {
		Value string `json:"value"`
	}
	require.NoError(t, json.Unmarshal(text, &known))
	var values []string
	for _, k := range known {
		values = append(values, k.Value)
	}
	return values
}

// TestEmulatorNames wants every wire name of the emulator's requests and answers in the document: traffic shows what
// the emulator answers, but not what it would take beyond the document.
func TestEmulatorNames(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for schema := range schemaNames(loadContract(t)) {
		for name := range schema.Properties {
			documented[name] = true
		}
	}
	for name, names := range parseSource(t, "../payvaulttest").wire {
		if ast.IsExported(name) || name == "notification" { // its own seeds, and deliveries, which are not shown
			continue
		}
		for _, wire := range names {
			assert.True(t, documented[wire], "%s of the emulator's %s is not in the document", wire, name)
		}
	}
}
