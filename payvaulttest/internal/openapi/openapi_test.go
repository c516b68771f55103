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

func load(t *testing.T) *Operation {
	t.Helper()
	d := MustLoad([]byte(text))
	require.Len(t, d.Operations, 1)
	return d.Operations[0]
}

// A problem has the path of the field, and never its value.
func TestBody(t *testing.T) {
	t.Parallel()
	o := load(t)
	const notJSON = "is not one well-formed JSON value in UTF-8, or a number in it is too long"
	for body, want := range map[string]Problems{
		`{"name":"abc","size":9223372036854775807,"list":[{"name":"x"}]}`: {},
		`{"list":[{"name":"b","name":"b"}]}`:                              {"list[0].name": {"is given twice"}},
		"{\"name\":\"\xff\"}":                                             {"body": {notJSON}},
		`{} {}`:                                                           {"body": {notJSON}},
		`[]`:                                                              {"body": {"must be of type object, not array"}},
		`{}`:                                                              {"name": {"is required"}},
		`{"name":1}`:                                                      {"name": {"must be of type string, not number"}},
		`{"name":"abcd"}`:                                                 {"name": {"takes at most 3 characters"}},
		`{"name":"a","kind":"c"}`:                                         {"kind": {"must be one of [a b]"}},
		`{"name":"a","day":"today"}`:                                      {"day": {"must be a valid date"}},
		`{"name":"a","size":9223372036854775808}`:                   {"size": {"must be a valid int64"}},
		`{"name":"a","size":1.0}`:                                   {"size": {"must be a valid int64"}},
		`{"name":"a","list":[{"name":"b"},{"name":"b","extra":1}]}`: {"list[1].extra": {"is not a known field"}},
		`{"name":"a","list":[{"name":"b"},{},{"name":"c"}]}`: {
			"list": {"takes at most 2 elements"}, "list[1].name": {"is required"},
		},
		`{"name":"a","list":[]}`: {"list": {"does not fit minItems of the document"}},
	} {
		value, wrong := Parse("", []byte(body))
		if wrong == nil {
			wrong = o.Body.Check("", value)
		}
		assert.Equal(t, want, wrong, body)
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	o := load(t)
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

// The validator would take minutes for these.
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
	o := load(t)
	assert.Equal(t, Problems{"page": {"must be of type integer, not string"}},
		o.CheckParameters(func(string) string { return "5" }, url.Values{"page": {strings.Repeat("9", 500_000)}}))
}
