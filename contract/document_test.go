package contract

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestDocument validates the document by the rules of OpenAPI, its examples included.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile(documentFile)
	require.NoError(t, err)
	err = doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation(),
		openapi3.EnableMultiError())
	report(t, documentFile, problemsOf(err))
}

// TestNotes checks that the document repeats what the interface says beside the wire.
func TestNotes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, note := range []string{
		"A sandbox account gives test credentials; a production account is applied for after testing.",
		"(transactions_status_updated); transaction_status_updated, the form of the path example, is the one to use.",
		"Webhooks and their events can be managed in the manager portal or through the webhooks API.",
		"When moving to production, the validation of the webhook configuration must be done again.",
	} {
		assert.Contains(t, words, note)
	}
}

// TestDescriptions checks that everything in the document has a description, and operations and examples a summary.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	var without []string
	note := func(what, text string) {
		if text == "" {
			without = append(without, what)
		}
	}
	content := func(where string, content openapi3.Content) {
		for _, media := range content {
			for name, example := range media.Examples {
				note("the example "+name+" of "+where, example.Value.Summary)
			}
		}
	}
	for name, operation := range c.operations() {
		note(name, operation.Description)
		note(name+" (summary)", operation.Summary)
		for _, parameter := range operation.Parameters {
			note(name+" "+parameter.Value.Name, parameter.Value.Description)
		}
		if body := operation.RequestBody; body != nil {
			note("the request of "+name, body.Value.Description)
			content("the request of "+name, body.Value.Content)
		}
		for status, response := range operation.Responses.Map() {
			note("the answer "+status+" of "+name, *response.Value.Description)
			content("the answer "+status+" of "+name, response.Value.Content)
		}
	}
	for schema, name := range schemaNames(c) {
		note(name, schema.Description)
	}
	failList(t, "without a description, or a summary", without)
}

// TestValidationAnswers checks that code, message and data of a validation agree.
func TestValidationAnswers(t *testing.T) {
	t.Parallel()
	schema := loadContract(t).schema(t, "ApplicationValidation")
	for text, permitted := range map[string]bool{
		`{"code":0,"message":"Success"}`:                                               true,
		`{"code":2,"message":"Request validation failed","data":{"tax_id":["x"]}}`:     true,
		`{"code":0,"message":"Request validation failed","data":{"tax_id":["wrong"]}}`: false,
		`{"code":2,"message":"Success","data":{"tax_id":["x"]}}`:                       false,
		`{"code":2,"message":"Request validation failed"}`:                             false,
		`{"code":2,"message":"Request validation failed","data":{}}`:                   false,
		`{"code":2,"message":"Request validation failed","data":{"tax_id":"x"}}`:       false,
	} {
		assert.Equal(t, permitted, checkJSON(schema, []byte(text)) == nil, text)
	}
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

// checkExamples checks that there is an example, and that JSON in texts is valid.
func checkExamples(
	t *testing.T, c *contract, what string, ref *openapi3.SchemaRef, examples openapi3.Examples, single any,
) {
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

// An operationRow is what the table of the SDK says of an operation.
type operationRow struct{ name, method, path string }

func operationRows() []operationRow {
	var rows []operationRow
	for _, info := range payvault.Operations() {
		rows = append(rows, operationRow{string(info.Op), info.Method, info.Path})
	}
	return rows
}

// TestOperations checks that the document and the table of the SDK have the same operations.
func TestOperations(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	var documented []operationRow
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			documented = append(documented, operationRow{operation.OperationID, method, path})
		}
	}
	assert.ElementsMatch(t, operationRows(), documented)
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
