package openapi

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const text = `
openapi: 3.0.3
paths:
  /things/{id}:
    post:
      operationId: things.change
      parameters:
        - {name: id, in: path, required: true, schema: {type: integer, format: int64}}
        - $ref: '#/components/parameters/filter'
        - {name: page, in: query, schema: {type: integer, minimum: 0}}
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Thing'}
      responses:
        '200': {description: done, content: {application/json: {schema: {type: object}}}}
components:
  parameters:
    filter: {name: filter, in: query, schema: {type: array, items: {type: string, pattern: '^[a-z]+$'}}}
  schemas:
    Thing:
      type: object
      additionalProperties: false
      required: [name]
      properties:
        name: {type: string, maxLength: 3}
        kind: {type: string, enum: [a, b]}
        day: {type: string, format: date}
        size: {type: integer, format: int64}
        list: {type: array, maxItems: 2, minItems: 1, items: {$ref: '#/components/schemas/Thing'}}
`

func load(t *testing.T) (*Document, *Operation) {
	t.Helper()
	d := MustLoad([]byte(text))
	require.Len(t, d.Operations, 1)
	return d, d.Operations[0]
}

// TestOperation checks how an operation is read from a document, and that references are followed.
func TestOperation(t *testing.T) {
	t.Parallel()
	d, o := load(t)
	assert.Equal(t, []string{"things.change", "POST", "/things/{id}", JSON}, []string{o.ID, o.Method, o.Path, o.Media})
	assert.True(t, o.Needed)
	assert.Equal(t, "string", d.At("components", "schemas", "Thing", "properties", "kind")["type"])
	assert.Contains(t, d.At("components", "schemas", "Thing", "properties", "list", "items"), "properties",
		"the reference is followed")
	assert.Nil(t, d.At("components", "nothing"))
	assert.Panics(t, func() { d.Schema("components", "nothing") })
}

// TestBody checks the problems that are found in a body.
func TestBody(t *testing.T) {
	t.Parallel()
	_, o := load(t)
	for body, want := range map[string]Problems{
		`{"name":"abc","size":9223372036854775807,"list":[{"name":"x"}]}`: {},
		`[]`:                         {"body": {"must be of type object, not array"}},
		`{}`:                         {"name": {"is required"}},
		`{"name":1}`:                 {"name": {"must be of type string, not number"}},
		`{"name":"abcd"}`:            {"name": {"takes at most 3 characters"}},
		`{"name":"a","kind":"c"}`:    {"kind": {"must be one of [a b]"}},
		`{"name":"a","day":"today"}`: {"day": {"must be a valid date"}},
		`{"name":"a","size":9223372036854775808}`:                   {"size": {"must be a valid int64"}},
		`{"name":"a","size":1.0}`:                                   {"size": {"must be a valid int64"}},
		`{"name":"a","list":[{"name":"b"},{"name":"b","extra":1}]}`: {"list[1].extra": {"is not a known field"}},
		`{"name":"a","list":[{"name":"b"},{},{"name":"c"}]}`: {
			"list": {"takes at most 2 elements"}, "list[1].name": {"is required"},
		},
		`{"name":"a","list":[]}`: {"list": {"does not fit minItems of the document"}},
	} {
		value, wrong := Parse("", []byte(body))
		require.Empty(t, wrong)
		assert.Equal(t, want, o.Body.Check("", value), body)
	}
}

// TestParameters checks the problems that are found in path and query parameters.
func TestParameters(t *testing.T) {
	t.Parallel()
	_, o := load(t)
	for raw, want := range map[string]Problems{
		"filter=a&filter=b&page=0": {},
		"filter=a&filter=B":        {"filter[1]": {"must match ^[a-z]+$"}},
		"page=-1":                  {"page": {"must be at least 0"}},
		"page=x":                   {"page": {"must be of type integer, not string"}},
		"page=1.0":                 {"page": {"must be of type integer, not string"}},
		"page=9223372036854775808": {"page": {"must be of type integer, not string"}},
		"page=1&page=2":            {"page": {"must be of type integer, not array"}},
		"other=1":                  {"other": {"is not a known field"}},
		"id=1":                     {"id": {"must be of type integer, not array"}},
	} {
		query, err := url.ParseQuery(raw)
		require.NoError(t, err)
		assert.Equal(t, want, o.CheckParameters(func(string) string { return "5" }, query), raw)
	}
	wrong := o.CheckParameters(func(string) string { return "x" }, url.Values{})
	assert.Equal(t, Problems{"id": {"must be of type integer, not string"}}, wrong)
}

// TestParse checks that only one well-formed JSON value is accepted, without repeated names.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Problems{
		`{"a":[{"b":1,"b":2}]}`: {"in.a[0].b": {"is given twice"}},
		"{\"a\":\"\xff\"}":      {"in.body": {"is not one well-formed JSON value in UTF-8, or a number in it is too long"}},
		`{} {}`:                 {"in.body": {"is not one well-formed JSON value in UTF-8, or a number in it is too long"}},
	} {
		_, wrong := Parse("in", []byte(text))
		assert.Equal(t, want, wrong, text)
	}
}

// TestNumbersThatTakeLong checks that numbers that would take the validator minutes are refused.
func TestNumbersThatTakeLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 900_000)
	for _, number := range []string{"1e999999", "1E-999999", "1e+0001000", long, "0." + long} {
		_, wrong := Parse("", []byte(`{"size":`+number+`}`))
		assert.NotEmpty(t, wrong, number[:8])
	}
	for _, number := range []string{"1e308", "-1.5E-007", strings.Repeat("9", 64)} {
		_, wrong := Parse("", []byte(`{"size":`+number+`}`))
		assert.Empty(t, wrong, number)
	}
	_, o := load(t)
	assert.Equal(t, Problems{"page": {"must be of type integer, not string"}},
		o.CheckParameters(func(string) string { return "5" }, url.Values{"page": {strings.Repeat("9", 500_000)}}))
}

// TestDocumentsThatCannotBeRead checks that an invalid document panics.
func TestDocumentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"\t",
		`paths: {/x: {get: {operationId: x, requestBody: {content: {application/json: {schema: {type: 5}}}}}}}`,
	} {
		assert.Panics(t, func() { MustLoad([]byte(text)) }, text)
	}
}
