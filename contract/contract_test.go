package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/payvault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	documentFile = "../api/openapi.yaml"
	jsonType     = "application/json"
)

// A contract is the OpenAPI document, with a router that finds the operation of a request.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

func load(t *testing.T) *contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(documentFile)
	require.NoError(t, err)
	doc.Servers = nil // the service does not document its address
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &contract{doc, router}
}

// loadClosed loads the document and forbids unknown members in every object that has documented members. The document
// permits unknown members in answers, but neither the emulator nor testdata may have any.
func loadClosed(t *testing.T) *contract {
	t.Helper()
	c := load(t)
	for name, ref := range c.doc.Components.Schemas {
		walk(name, ref.Value, func(_ string, schema *openapi3.Schema) {
			if len(schema.Properties) > 0 && schema.AdditionalProperties.Has == nil {
				schema.AdditionalProperties.Has = new(false)
			}
		})
	}
	return c
}

// walk calls visit for a schema and for the schemas of its members and elements, at every depth. The parameter at is
// the path of the schema. walk does not follow oneOf.
func walk(at string, schema *openapi3.Schema, visit func(at string, schema *openapi3.Schema)) {
	visit(at, schema)
	for name, property := range schema.Properties {
		walk(at+"."+name, property.Value, visit)
	}
	if schema.Items != nil {
		walk(at+"[]", schema.Items.Value, visit)
	}
	if more := schema.AdditionalProperties.Schema; more != nil {
		walk(at+"{}", more.Value, visit)
	}
}

// operations returns the operations of the document by their IDs.
func (c *contract) operations() map[string]*openapi3.Operation {
	operations := map[string]*openapi3.Operation{}
	for _, item := range c.doc.Paths.Map() {
		for _, operation := range item.Operations() {
			operations[operation.OperationID] = operation
		}
	}
	return operations
}

// request returns the schema of the JSON in a request: the body, or the text of a form field.
func (c *contract) request(t *testing.T, op string) *openapi3.Schema {
	t.Helper()
	operation := c.operations()[op]
	require.NotNil(t, operation, "the document has no operation %s", op)
	require.NotNil(t, operation.RequestBody, "%s has no body in the document", op)
	for media, content := range operation.RequestBody.Value.Content {
		if media == jsonType {
			return content.Schema.Value
		}
		for _, part := range content.Schema.Value.Properties {
			if name, ok := part.Value.Extensions["x-json-text-of"].(string); ok {
				return c.doc.Components.Schemas[name[strings.LastIndex(name, "/")+1:]].Value
			}
		}
	}
	require.Fail(t, "no JSON in the requests of "+op)
	return nil
}

// answer returns the schema of a success of the operation.
func (c *contract) answer(t *testing.T, op string) *openapi3.Schema {
	t.Helper()
	operation := c.operations()[op]
	require.NotNil(t, operation, "the document has no operation %s", op)
	return operation.Responses.Value("200").Value.Content[jsonType].Schema.Value
}

// fits returns an error unless a JSON value matches a schema.
func fits(schema *openapi3.Schema, value any) error {
	return schema.VisitJSON(value, openapi3.EnableFormatValidation(), openapi3.MultiErrors(),
		openapi3.SetSchemaErrorMessageCustomizer(describe))
}

// describe returns the path of a value and its problem. The default text of the library has whole schemas and values.
func describe(err *openapi3.SchemaError) string {
	return "/" + strings.Join(err.JSONPointer(), "/") + ": " + err.Reason
}

// checked is a request with its operation in the document.
type checked = openapi3filter.RequestValidationInput

// checkRequest returns an error unless a request matches the document. The first result is nil if the document has no
// operation for the request.
func (c *contract) checkRequest(ctx context.Context, r *http.Request, body []byte) (*checked, error) {
	r = r.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	options := &openapi3filter.Options{
		MultiError: true, RejectWhenRequestBodyNotSpecified: true, IncludeResponseStatus: true,
		AuthenticationFunc:      checkToken,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableFormatValidation()},
	}
	options.WithCustomSchemaErrorFunc(describe)
	in := &checked{Request: r, PathParams: params, Route: route, Options: options}
	for name := range r.URL.Query() { // the library does not refuse unknown parameters
		if route.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) == nil {
			return in, errors.New("query parameter " + name + " is not in the document")
		}
	}
	return in, openapi3filter.ValidateRequest(ctx, in)
}

// checkToken returns an error unless the Authorization header is HTTP Basic with an empty user and a key.
func checkToken(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	if user, key, ok := in.RequestValidationInput.Request.BasicAuth(); !ok || user != "" || key == "" {
		return errors.New("header Authorization: not Basic with an empty user and a key")
	}
	return nil
}

// checkAnswer returns an error unless the answer to a request matches the document. The service does not document the
// HTTP statuses of failures, so the result code decides whether the answer must match the schema of a success.
func checkAnswer(ctx context.Context, in *checked, header http.Header, body []byte) error {
	status := http.StatusInternalServerError
	switch code := codeOf(body); {
	case code == "0", code == "000",
		code == "2" && in.Route.Operation.OperationID == string(payvault.OpApplicationsValidate):
		status = http.StatusOK
	}
	answer := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: status, Header: header, Options: in.Options,
	}
	return openapi3filter.ValidateResponse(ctx, answer.SetBodyBytes(body))
}

// codeOf returns the code or rcode of an answer.
func codeOf(body []byte) string {
	var answer struct {
		Code  json.Number `json:"code"`
		RCode string      `json:"rcode"`
	}
	_ = json.Unmarshal(body, &answer)
	return answer.Code.String() + answer.RCode
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// absent returns the paths of all members of a schema that are missing or empty in all of the values.
func absent(at string, schema *openapi3.Schema, values ...any) (places []string) {
	var elements []any
	for _, value := range values {
		list, _ := value.([]any)
		elements = append(elements, list...)
	}
	if schema.Items != nil {
		places = absent(at+"[]", schema.Items.Value, elements...)
	}
	for name, property := range schema.Properties {
		var members []any
		for _, value := range values {
			if object, ok := value.(map[string]any); ok && object[name] != nil && object[name] != "" {
				members = append(members, object[name])
			}
		}
		if members == nil {
			places = append(places, at+"."+name)
		} else {
			places = append(places, absent(at+"."+name, property.Value, members...)...)
		}
	}
	return places
}
