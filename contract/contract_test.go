package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	documentFile = "../api/openapi.yaml"
	jsonType     = "application/json"
	formType     = "multipart/form-data"
	// jsonTextOf names the schema of a text that holds JSON.
	jsonTextOf = "x-json-text-of"
)

// A contract is the interface document, ready to check messages.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

func loadContract(t *testing.T) *contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(documentFile)
	require.NoError(t, err)
	doc.Servers = nil // the address of the service is not shown
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &contract{doc, router}
}

// schema finds a schema of the document by its name.
func (c *contract) schema(t *testing.T, name string) *openapi3.SchemaRef {
	t.Helper()
	ref := c.doc.Components.Schemas[name]
	require.NotNil(t, ref, "the document has no schema %s", name)
	return ref
}

// operations are the operations of the document by their names.
func (c *contract) operations() map[string]*openapi3.Operation {
	operations := map[string]*openapi3.Operation{}
	for _, item := range c.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			operations[operation.OperationID] = operation
		}
	}
	return operations
}

// A message is a request and the operation of the document that it belongs to.
type message struct {
	*openapi3filter.RequestValidationInput
	body []byte
}

// find looks a request up in the document.
func (c *contract) find(r *http.Request, body []byte) (message, error) {
	r = r.Clone(r.Context())
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength = int64(len(body))
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		return message{}, err
	}
	return message{&openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: filterOptions(),
	}, body}, nil
}

func filterOptions() *openapi3filter.Options {
	return &openapi3filter.Options{
		MultiError:                        true,
		IncludeResponseStatus:             true,
		RejectWhenRequestBodyNotSpecified: true,
		AuthenticationFunc:                checkToken,
		SchemaValidationOptions:           []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()},
	}
}

// checkToken checks that the header is HTTP Basic with an empty user.
func checkToken(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	user, key, ok := in.RequestValidationInput.Request.BasicAuth()
	if in.SecuritySchemeName != "basicAuth" || !ok || user != "" || key == "" {
		return errors.New("header Authorization: not Basic with an empty user part and a key")
	}
	return nil
}

// checkRequest says where a request departs from the document.
func (c *contract) checkRequest(m message) []problem {
	all := problemsOf(openapi3filter.ValidateRequest(m.Request.Context(), m.RequestValidationInput))
	all = append(all, queryProblems(m)...)
	all = append(all, c.formProblems(m)...)
	if accept := m.Request.Header.Values("Accept"); len(accept) != 1 || accept[0] != jsonType {
		all = append(all, problem{at: "header Accept", text: "is not " + jsonType})
	}
	if contentType := m.Request.Header.Get("Content-Type"); len(m.body) == 0 && contentType != "" {
		all = append(all, problem{at: "header Content-Type", text: "is sent without a body"})
	}
	return all
}

// queryProblems finds what kin-openapi lets pass: parameters that the operation does not have, repeated ones, and
// commas that are not encoded.
func queryProblems(m message) []problem {
	var all []problem
	if strings.Contains(m.Request.URL.RawQuery, ",") { // kin-openapi does not look at allowReserved, which is false
		all = append(all, problem{at: "query", text: "has a comma that is not encoded as %2C"})
	}
	for name, values := range m.Request.URL.Query() {
		parameter := m.Route.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, name)
		switch {
		case parameter == nil:
			all = append(all, problem{at: "query parameter " + name, text: "is not in the document"})
		case len(values) > 1 && !parameter.Schema.Value.Type.Is("array"):
			all = append(all, problem{at: "query parameter " + name, text: "is repeated"})
		}
	}
	return all
}

// formProblems checks what kin-openapi does not see in a form: texts that hold JSON.
func (c *contract) formProblems(m message) []problem {
	form, parts, err := formParts(m)
	if err != nil {
		return []problem{{at: "form", text: err.Error()}}
	}
	var all []problem
	for name, text := range parts {
		property := form.Properties[name]
		if property == nil {
			continue // the form is closed, and its schema has been checked
		}
		if ref := c.jsonText(property); ref != nil {
			all = append(all, nested("part "+name, "", checkJSON(ref, []byte(text)))...)
		}
	}
	return all
}

// jsonText returns the schema of the JSON that a text property holds, or nil.
func (c *contract) jsonText(property *openapi3.SchemaRef) *openapi3.SchemaRef {
	name, _ := property.Value.Extensions[jsonTextOf].(string)
	return c.doc.Components.Schemas[baseName(name)]
}

// formParts reads the texts of a form, and gives the schema of the form; other requests have none. A file counts as a
// text.
func formParts(m message) (*openapi3.Schema, map[string]string, error) {
	contentType, params, _ := mime.ParseMediaType(m.Request.Header.Get("Content-Type"))
	if contentType != formType || m.Route.Operation.RequestBody == nil {
		return nil, nil, nil
	}
	form, err := multipart.NewReader(bytes.NewReader(m.body), params["boundary"]).ReadForm(int64(len(m.body)))
	if err != nil {
		return nil, nil, err
	}
	parts := map[string]string{}
	for name, values := range form.Value {
		parts[name] = values[0]
	}
	for name := range form.File {
		parts[name] = "a file"
	}
	return m.Route.Operation.RequestBody.Value.Content[formType].Schema.Value, parts, nil
}

// checkResponse says where an answer departs from the document.
func (c *contract) checkResponse(m message, status int, header http.Header, body []byte) []problem {
	value, err := decodeJSON(body)
	if err != nil {
		return []problem{{at: "response", text: "is not JSON"}}
	}
	named := answerSchema(m.Route.Operation, value)
	if named == nil {
		return []problem{{at: "response", text: "has no code or rcode that the document knows"}}
	}
	all := extraMembers("response "+baseName(named.Ref)+" ", named.Value, value)
	all = append(all, nested("response "+baseName(named.Ref), "", checkJSON(named, body))...)
	if contentType := header.Get("Content-Type"); contentType != jsonType {
		all = append(all, problem{at: "response header Content-Type", text: "is not " + jsonType})
	}
	if code := codeOf(body); (code == "0" || code == "000") && status != http.StatusOK {
		all = append(all, problem{at: "response", text: "is a success with another status than 200"})
	}
	return all
}

// extraMembers finds members that are not documented: answers are open, but neither the emulator nor a fixture may
// invent any.
func extraMembers(at string, schema *openapi3.Schema, value any) []problem {
	var all []problem
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			inside := at + "/" + name
			switch property := schema.Properties[name]; {
			case property != nil:
				all = append(all, extraMembers(inside, property.Value, member)...)
			case schema.Properties != nil && schema.AdditionalProperties.Schema == nil:
				all = append(all, problem{at: inside, text: "is not in the document"})
			}
		}
	case []any:
		for i, element := range value {
			if schema.Items != nil {
				all = append(all, extraMembers(fmt.Sprintf("%s/%d", at, i), schema.Items.Value, element)...)
			}
		}
	}
	return all
}

// answerSchema picks the schema of an answer by its code or rcode: success, failure, or an incomplete application.
func answerSchema(operation *openapi3.Operation, value any) *openapi3.SchemaRef {
	answer, _ := value.(map[string]any)
	for _, branch := range answerSchemas(operation) {
		for _, name := range []string{"code", "rcode"} {
			property, code := branch.Value.Properties[name], answer[name]
			if property != nil && code != nil && property.Value.VisitJSON(code) == nil {
				return branch
			}
		}
	}
	return nil
}

// answerSchemas are the schemas that an answer of an operation may have, whatever its status: the success first, which
// may be one of several.
func answerSchemas(operation *openapi3.Operation) openapi3.SchemaRefs {
	success := operation.Responses.Value("200").Value.Content[jsonType].Schema
	failure := operation.Responses.Value("default").Value.Content[jsonType].Schema
	if branches := success.Value.OneOf; len(branches) > 0 {
		return append(slices.Clone(branches), failure)
	}
	return openapi3.SchemaRefs{success, failure}
}

// checkJSON checks a JSON text against a schema.
func checkJSON(ref *openapi3.SchemaRef, text []byte) error {
	value, err := decodeJSON(text)
	if err != nil {
		return err
	}
	return ref.Value.VisitJSON(value, openapi3.EnableFormatValidation(), openapi3.MultiErrors())
}

func decodeJSON(text []byte) (any, error) {
	var value any
	err := json.Unmarshal(text, &value)
	return value, err
}
