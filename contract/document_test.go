package contract

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
)

// TestDocument checks that the OpenAPI document is valid, that each schema has a description, and that each integer has
// the format int64.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile(documentFile)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context(), openapi3.EnableExamplesValidation(),
		openapi3.EnableSchemaFormatValidation(), openapi3.EnableMultiError()))
	for name, ref := range doc.Components.Schemas {
		walk(name, ref.Value, func(at string, schema *openapi3.Schema) {
			assert.NotEmpty(t, schema.Description, "no description: %s", at)
			if schema.Type.Is("integer") {
				assert.Equal(t, "int64", schema.Format, at)
			}
		})
	}
	assert.Equal(t, "double", doc.Components.Schemas["Amount"].Value.Format)
	file := doc.Components.Schemas["DisputeRespondForm"].Value.Properties["file"]
	assert.Equal(t, "binary", file.Value.Format, "generators take it for a text otherwise")
}

// TestOperations checks that the document has exactly the operations of the SDK. Each one must have a description and
// require the API key. Each answer must be a reference. The statuses 200 and 2XX must have the same schema.
func TestOperations(t *testing.T) {
	t.Parallel()
	c := load(t)
	key := openapi3.SecurityRequirements{{"basicAuth": {}}}
	assert.Equal(t, key, c.doc.Security)
	assert.Equal(t, "basic", c.doc.Components.SecuritySchemes["basicAuth"].Value.Scheme)
	var documented, own []string
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			name := operation.OperationID
			documented = append(documented, name+" "+method+" "+path)
			assert.NotEmpty(t, operation.Summary, "%s: no summary", name)
			assert.NotEmpty(t, operation.Description, "%s: no description", name)
			assert.Nil(t, operation.Security, name)
			if body := operation.RequestBody; body != nil {
				assert.Equal(t, name != string(payvault.OpInvoicesSend), body.Value.Required, "%s: body is required", name)
			}
			for _, parameter := range operation.Parameters {
				assert.NotEmpty(t, parameter.Value.Description, "%s: %s", name, parameter.Value.Name)
				if schema := parameter.Value.Schema.Value; schema.Type.Is("integer") {
					assert.Equal(t, "int64", schema.Format, "%s: %s", name, parameter.Value.Name)
				}
			}
			for status, answer := range operation.Responses.Map() {
				assert.Contains(t, answer.Ref, "#/components/responses/", "%s: %s", name, status)
				if status != "default" {
					assert.Same(t, c.answer(t, name), answer.Value.Content[jsonType].Schema.Value, "%s: %s", name, status)
				}
			}
			if other := operation.Responses.Value("2XX"); assert.NotNil(t, other, "%s: no answer 2XX", name) {
				assert.NotEqual(t, operation.Responses.Value("200").Ref, other.Ref, "%s: ogen needs two names", name)
			}
		}
	}
	for _, o := range payvault.Operations() {
		own = append(own, string(o.Op)+" "+o.Method+" "+o.Path)
	}
	assert.ElementsMatch(t, own, documented, "operations.go and %s", documentFile)
}

// TestExamples checks that each example in the document matches its schema, including the formats of texts, which
// TestDocument does not check.
func TestExamples(t *testing.T) {
	t.Parallel()
	c := loadClosed(t)
	check := func(what string, content openapi3.Content) {
		for _, media := range content {
			assert.NotEmpty(t, media.Examples, what)
			for name, example := range media.Examples {
				assert.NotEmpty(t, example.Value.Summary, "%s: %s", what, name)
				text, err := json.Marshal(example.Value.Value)
				require.NoError(t, err)
				assert.NoError(t, fits(media.Schema.Value, decode(t, string(text))), "%s: %s", what, name)
			}
		}
	}
	for name, operation := range c.operations() {
		if operation.RequestBody != nil {
			check(name, operation.RequestBody.Value.Content)
		}
		for status, answer := range operation.Responses.Map() {
			if status != "2XX" { // has the schema of 200
				check(name+" "+status, answer.Value.Content)
			}
		}
	}
}

// TestRefused checks that the document refuses wrong messages. A rule in testdata/refused.txt has the name of a schema,
// a message that must match the schema, and a message that must not. A rule for queries has the name of an operation,
// and two queries as its messages.
func TestRefused(t *testing.T) {
	t.Parallel()
	c := load(t)
	text, err := os.ReadFile("testdata/refused.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, messages, _ := strings.Cut(line, " ")
		good, bad, found := strings.Cut(messages, " not ")
		require.True(t, found, "not of the form: name message not message: %s", line)
		check := func(message string) error { return c.checkQuery(t, name, message) }
		if schema := c.doc.Components.Schemas[name]; schema != nil {
			check = func(message string) error { return fits(schema.Value, decode(t, message)) }
		}
		assert.NoError(t, check(good), line)
		assert.Error(t, check(bad), line)
	}
	cards := c.request(t, string(payvault.OpAccountUpdaterSubmit)).Properties["data"].Value
	assert.Equal(t, new(uint64(payvault.MaxAccountUpdaterCards)), cards.MaxItems)
	message := c.request(t, string(payvault.OpDisputesRespond)).Properties["message"].Value
	assert.Equal(t, new(uint64(payvault.MaxDisputeMessage)), message.MaxLength)
}

// checkQuery returns an error unless a query matches the parameters of the operation.
func (c *contract) checkQuery(t *testing.T, op, query string) error {
	t.Helper()
	all := payvault.Operations()
	i := slices.IndexFunc(all, func(o payvault.OperationInfo) bool { return string(o.Op) == op })
	require.NotEqual(t, -1, i, "neither a schema nor an operation: %s", op)
	path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(all[i].Path, "17")
	r := httptest.NewRequestWithContext(t.Context(), all[i].Method, path+"?"+query, http.NoBody)
	r.SetBasicAuth("", "key")
	_, err := c.checkRequest(t.Context(), r, nil)
	return err
}

// TestKnownValues checks that each permitted or known value in the document is a string constant of the SDK, and that
// the document has each of these constants. The test skips a few fixed texts, such as "Success", and the constants that
// only the SDK uses.
func TestKnownValues(t *testing.T) {
	t.Parallel()
	surface, err := os.ReadFile("../api/payvault.txt")
	require.NoError(t, err)
	sdk, _, _ := strings.Cut(string(surface), "\npackage ")
	var constants []string
	for _, found := range regexp.MustCompile(`(?m)^(?:\t|const )\w+ (\w+) = "(.*)"$`).FindAllStringSubmatch(sdk, -1) {
		// these types are not in the document, because only the SDK uses them
		if !slices.Contains([]string{"Operation", "Replay", "BatchStatus", "StopReason"}, found[1]) {
			constants = append(constants, found[2])
		}
	}
	text, err := json.Marshal(load(t).doc)
	require.NoError(t, err)
	listed := slices.DeleteFunc(values(decode(t, string(text))), func(value string) bool {
		// the SDK has no constants for the status P and the account type S: the service does not document their meaning
		return slices.Contains([]string{"true", "false", "000", "Success", "Request validation failed", "P", "S"}, value)
	})
	slices.Sort(constants)
	slices.Sort(listed)
	assert.Equal(t, slices.Compact(constants), slices.Compact(listed),
		"the constants of the SDK, in the generated api/payvault.txt, and %s", documentFile)
}

// values returns all texts in the lists of permitted or known values, which are named enum, x-known-values or
// x-options.
func values(node any) (all []string) {
	switch node := node.(type) {
	case map[string]any:
		for name, member := range node {
			list, isList := member.([]any)
			if !isList || !slices.Contains([]string{"enum", "x-known-values", "x-options"}, name) {
				all = append(all, values(member)...)
				continue
			}
			for _, value := range list {
				if text, ok := value.(string); ok {
					all = append(all, text)
				}
			}
		}
	case []any:
		for _, element := range node {
			all = append(all, values(element)...)
		}
	}
	return all
}
