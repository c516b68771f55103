package contract

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDocument validates the document by the rules of OpenAPI, its examples included.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile(documentFile)
	require.NoError(t, err)
	err = doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation(), openapi3.EnableMultiError())
	report(t, documentFile, problemsOf(err))
}

// TestExamples checks every example against its schema, with formats, which the validation above leaves out.
func TestExamples(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for name, operation := range c.operations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, parameter := range operation.Parameters {
				checkExamples(t, c, parameter.Value.Name, parameter.Value.Schema, parameter.Value.Examples, parameter.Value.Example)
			}
			if operation.RequestBody != nil {
				checkMediaExamples(t, c, "request", operation.RequestBody.Value.Content)
			}
			for status, response := range operation.Responses.Map() {
				checkMediaExamples(t, c, "answer "+status, response.Value.Content)
			}
		})
	}
	for name, ref := range c.doc.Components.Schemas {
		if ref.Value.Example != nil {
			checkExamples(t, c, name, ref, nil, ref.Value.Example)
		}
	}
}

func checkMediaExamples(t *testing.T, c *contract, what string, content openapi3.Content) {
	t.Helper()
	for contentType, media := range content {
		checkExamples(t, c, what+" "+contentType, media.Schema, media.Examples, media.Example)
	}
}

// checkExamples wants at least one example, and checks JSON in texts, too.
func checkExamples(t *testing.T, c *contract, what string, ref *openapi3.SchemaRef, examples openapi3.Examples, single any) {
	t.Helper()
	values := map[string]any{}
	for name, example := range examples {
		values[name] = example.Value.Value
	}
	if single != nil {
		values["example"] = single
	}
	assert.NotEmpty(t, values, "%s has no example", what)
	for name, value := range values {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		report(t, what+", "+name, problemsOf(checkJSON(ref, text)))
		members, _ := value.(map[string]any)
		for property, member := range members {
			inner, isText := member.(string)
			if text := ref.Value.Properties[property]; text != nil && isText && c.jsonText(text) != nil {
				report(t, what+", "+name+", "+property, problemsOf(checkJSON(c.jsonText(text), []byte(inner))))
			}
		}
	}
}

// An operationRow is what the list of operations says about one of them.
type operationRow struct{ name, method, path string }

func (r operationRow) String() string { return r.name + " " + r.method + " " + r.path }

func operationRows(t *testing.T) []operationRow {
	t.Helper()
	text, err := os.ReadFile("../testdata/operations.txt")
	require.NoError(t, err)
	var rows []operationRow
	for line := range strings.Lines(string(text)) {
		if columns := strings.Split(strings.TrimSpace(line), "\t"); !strings.HasPrefix(line, "#") && len(columns) > 3 {
			rows = append(rows, operationRow{columns[1], columns[2], columns[3]})
		}
	}
	return rows
}

// TestOperations wants the same operations in the list of the fixtures, in the document and in the SDK.
func TestOperations(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	rows := operationRows(t)
	var listed, documented []string
	for _, row := range rows {
		listed = append(listed, row.String())
	}
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			documented = append(documented, operationRow{operation.OperationID, method, path}.String())
		}
	}
	assert.Len(t, rows, 14)
	failList(t, "in operations.txt, not in the document", without(listed, documented))
	failList(t, "in the document, not in operations.txt", without(documented, listed))

	constants := parseSource(t, "..").constants["Operation"]
	constants = slices.DeleteFunc(constants, func(name string) bool { return strings.HasPrefix(name, "client.") })
	assertSame(t, slices.Sorted(maps.Keys(c.operations())), constants)
}

// TestAnswers makes sure of the form on which the other tests rely: every 2XX is a oneOf, the success first, and the
// code tells the branches apart; the default has the failures, and no success.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	for name, operation := range c.operations() {
		schemas := answerSchemas(operation)
		if !assert.GreaterOrEqual(t, len(schemas), 2, name) {
			continue
		}
		code, success := "code", any(float64(0))
		if schemas[0].Value.Properties["code"] == nil {
			code, success = "rcode", "000"
		}
		for i, ref := range schemas {
			accepted := ref.Value.Properties[code].Value.VisitJSON(success) == nil
			assert.Equal(t, i == 0, accepted, "%s: %s and the code of success", name, ref.Ref)
		}
		assert.NotContains(t, refsOf(operation.Responses.Value("default").Value.Content[jsonType].Schema), schemas[0].Ref, name)
	}
}

// refsOf gives the reference, or those of the branches.
func refsOf(ref *openapi3.SchemaRef) []string {
	refs := []string{ref.Ref}
	for _, branch := range ref.Value.OneOf {
		refs = append(refs, branch.Ref)
	}
	return refs
}

// TestClosed makes sure that the records refuse names that they do not list: without that, the checks of traffic see
// no misspelt name.
func TestClosed(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	open := []string{"PlatformFailure", "TokenizeFailure", "ApplicationValidateFailure"}
	for schema, name := range schemaNames(c) {
		if len(schema.Properties) == 0 || strings.Contains(name, "(") || slices.Contains(open, name) {
			continue // branches hold constraints; failures may carry more
		}
		closed := schema.AdditionalProperties.Has
		assert.True(t, closed != nil && !*closed, "%s is not closed", name)
	}
}

// TestApplicationKeys holds the table of application keys against the branches that say what their values are.
func TestApplicationKeys(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	keys := applicationKeys(t, c)
	types := map[string]any{}
	for _, key := range keys {
		types[key.Key] = key.Type
	}
	branchTypes := map[string]any{}
	for _, branch := range c.schema(t, "ApplicationValueByKey").Value.OneOf {
		key, kind := branch.Value.Properties["key"].Value, branch.Value.Properties["type"].Value
		for _, name := range key.Enum {
			branchTypes[name.(string)] = kind.Enum[0]
		}
		if key.Not != nil { // the branch of all other keys
			assert.Len(t, key.Not.Value.Enum, len(keys))
		}
	}
	assert.Len(t, keys, 35)
	assert.Equal(t, types, branchTypes)
}

// An applicationKey is a row of the table of application keys.
type applicationKey struct {
	Key    string   `json:"key"`
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

func applicationKeys(t *testing.T, c *contract) []applicationKey {
	t.Helper()
	text, err := json.Marshal(c.schema(t, "ApplicationValueByKey").Value.Extensions["x-application-keys"])
	require.NoError(t, err)
	var keys []applicationKey
	require.NoError(t, json.Unmarshal(text, &keys))
	return keys
}

// TestDocumentRefuses shows that the document is as strict as the interface: it refuses what is almost right.
func TestDocumentRefuses(t *testing.T) {
	t.Parallel()
	const customer = `{"customer_id":"a","customer_firm_name":"b",`
	tests := []struct{ name, method, path, body string }{
		{"misspelt field", "POST", "/pg/tokenize", `{"merchant_id":"1","cvv":"1"}`},
		{"no merchant_id", "POST", "/pg/tokenize", `{}`},
		{"merchant_id as an integer", "POST", "/pg/tokenize", `{"merchant_id":1}`},
		{"month 13", "POST", "/pg/tokenize", `{"merchant_id":"1","exp_date":"1330"}`},
		{"echo_fields not a text", "POST", "/pg/tokenize", `{"merchant_id":"1","echo_fields":[{"a":"b"}]}`},
		{"no name", "POST", "/platform/vault/customer", `{"customer_id":"a"}`},
		{"half a name", "POST", "/platform/vault/customer", `{"customer_id":"a","customer_first_name":"b"}`},
		{"no ID", "POST", "/platform/vault/customer", `{"auto_generate_customer_id":false,"customer_firm_name":"b"}`},
		{"merchant_id as a text", "POST", "/platform/vault/customer", customer + `"merchant_id":"1"}`},
		{"shipping_id in a request", "POST", "/platform/vault/customer", customer + `"shipping_addresses":[{"shipping_id":1}]}`},
		{"one email that is no list", "POST", "/platform/vault/customer", customer + `"billing_cards":[{"billing_email":"x"}]}`},
		{"unknown order", "GET", "/platform/vault/customer?order_by=up", ""},
		{"negative page", "GET", "/platform/vault/customer?page=-1", ""},
		{"filter of two parts", "GET", "/platform/vault/customer?filter=a%2CX", ""},
		{"one date of two", "GET", "/platform/vault/customer?filter=d%2CBETWEEN_DATES%2C2026-01-01", ""},
		{"misspelt parameter", "GET", "/platform/vault/customer?orderby=asc", ""},
		{"payee_phone in a request", "POST", "/platform/vault/payee", `{"payee_name":"a","payee_phone":"1"}`},
		{"payee ID that is no integer", "DELETE", "/platform/vault/payee/x", ""},
		{"no sales_rep", "POST", "/platform/application/add", `{"channel_id":1}`},
		{"toggle as a boolean", "POST", "/platform/application/1/data", `{"data":[{"key":"limited_partnership","value":true}]}`},
		{"delivery method in small letters", "POST", "/platform/application/1/data", `{"data":[{"key":"fulfillment_delivery_method","value":{"service":true}}]}`},
		{"unknown business type", "POST", "/platform/application/1/data", `{"data":[{"key":"business_type","value":"gmbh"}]}`},
		{"body where none is taken", "POST", "/platform/webhook/1/event/a", `{}`},
		{"no customer_id", "POST", "/platform/subscription/1/cancel", `{}`},
		{"phone numbers as texts", "POST", "/platform/invoice/1/send", `{"phone_number":["14155550100"]}`},
		{"card without a date", "POST", "/platform/aus/add", `{"data":[{"card_number":"4111111111111111"}]}`},
	}
	c := loadContract(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := c.find(newRequest(t, tt.method, tt.path, jsonType, []byte(tt.body)), []byte(tt.body))
			require.NoError(t, err)
			assert.NotEmpty(t, c.checkRequest(m))
		})
	}
}

// newRequest is a request with the headers that every request has.
func newRequest(t *testing.T, method, target, contentType string, body []byte) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+target, bytes.NewReader(body))
	r.Header.Set("Accept", jsonType)
	r.SetBasicAuth("", "key")
	if len(body) > 0 {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}
