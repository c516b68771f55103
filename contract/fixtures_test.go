package contract

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/payvault"
	"example.com/payvault/internal/tests/calls"
)

// TestFixtures checks that the requests and answers in testdata match the OpenAPI document, except testdata/errors. The
// files *.request.json and *.response.json must have every field of their schemas, because internal/tests/operations
// compares them with the types of the SDK.
func TestFixtures(t *testing.T) {
	t.Parallel()
	c := loadClosed(t)
	files, err := filepath.Glob(filepath.Join(calls.Root(), "testdata", "*", "*.json"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, file := range files {
		resource, base := filepath.Base(filepath.Dir(file)), filepath.Base(file)
		name, kind, _ := strings.Cut(strings.TrimSuffix(base, ".json"), ".")
		if resource == "errors" {
			continue
		}
		op := resource + "." + name
		seen[op] = seen[op] || kind == "response"
		schema := c.answer(t, op)
		if strings.HasPrefix(kind, "request") {
			schema = c.request(t, op)
		}
		message := decode(t, calls.Fixture(resource+"/"+base))
		assert.NoError(t, fits(schema, message), file)
		if kind == "request" || kind == "response" {
			assert.Empty(t, absent(kind, schema, message), "%s has nothing there", file)
		}
	}
	for _, o := range payvault.Operations() {
		assert.True(t, seen[string(o.Op)], "testdata has no %s", strings.Replace(string(o.Op), ".", "/", 1)+".response.json")
	}
	for _, o := range calls.Table() {
		if o.Lists() {
			require.NoError(t, c.checkQuery(t, string(o.Op), calls.Fixture("list.query")), o.Op)
			for _, parameter := range c.operations()[string(o.Op)].Parameters {
				if parameter.Value.In == "query" {
					assert.Contains(t, "&"+calls.Fixture("list.query"), "&"+parameter.Value.Name+"=", o.Op)
				}
			}
		}
	}
}

// TestRequiredInRequests checks that the document requires each field of a request that the SDK requires, and permits
// no unknown field in a request.
func TestRequiredInRequests(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, o := range calls.Table() {
		if o.Full == nil || o.Lists() {
			continue
		}
		walk("", c.request(t, string(o.Op)), func(at string, record *openapi3.Schema) {
			if len(record.Properties) > 0 {
				assert.Equal(t, new(false), record.AdditionalProperties.Has, "%s: additionalProperties of the request of %s%s",
					documentFile, o.Op, at)
			}
			for name := range record.Properties {
				place := strings.TrimPrefix(strings.ReplaceAll(at, "[]", "[0]")+"."+name, ".")
				if slices.Equal(o.Problems[place], []string{calls.Required}) {
					assert.Contains(t, record.Required, name, "%s: required of the request of %s%s", documentFile, o.Op, at)
				}
			}
		})
	}
}

// TestRequiredInAnswers checks that the document requires every field of the outer object of an answer, and the ID that
// the SDK needs, and permits unknown fields. The test skips Tokenize and Validate, whose rules are in
// testdata/refused.txt.
func TestRequiredInAnswers(t *testing.T) {
	t.Parallel()
	c := load(t)
	for _, o := range calls.Table() {
		schema := c.answer(t, string(o.Op))
		if schema.Properties["code"] == nil {
			continue
		}
		assert.ElementsMatch(t, slices.Collect(maps.Keys(schema.Properties)), schema.Required,
			"%s: required of the answer of %s", documentFile, o.Op)
		walk("", schema, func(at string, record *openapi3.Schema) {
			assert.NotEqual(t, new(false), record.AdditionalProperties.Has, "%s: additionalProperties of the answer of %s%s",
				documentFile, o.Op, at)
			if record.Properties[o.NeededID] != nil {
				assert.Contains(t, record.Required, o.NeededID, "%s: required of the answer of %s%s", documentFile, o.Op, at)
			}
		})
	}
}

// TestApplicationData checks that the key-value pairs in save_data.request.json and save_data.response.json, which are
// in testdata/applications, have the names and types of the members of the schema ApplicationData.
func TestApplicationData(t *testing.T) {
	t.Parallel()
	schema := loadClosed(t).doc.Components.Schemas["ApplicationData"].Value
	sent := pairs(t, decode(t, calls.Fixture("applications/save_data.request.json")), "value", "data")
	saved := decode(t, calls.Fixture("applications/save_data.response.json"))
	for _, data := range []map[string]any{sent, pairs(t, saved, "value", "data", "fields")} {
		assert.NoError(t, fits(schema, data))
		assert.Empty(t, absent("data", schema, data))
	}
	assert.Equal(t, schema.Extensions["x-types"], pairs(t, saved, "type", "data", "fields"))
	for key, settings := range pairs(t, saved, "settings", "data", "fields") {
		required, _ := settings.(map[string]any)
		assert.Equal(t, required["required"], slices.Contains(schema.Required, key), key)
	}
}

// pairs returns the given member of each pair in a list, by the key of the pair. path leads to the list.
func pairs(t *testing.T, value any, member string, path ...string) map[string]any {
	t.Helper()
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	list, _ := value.([]any)
	require.NotEmpty(t, list)
	all := map[string]any{}
	for _, element := range list {
		pair, _ := element.(map[string]any)
		key, _ := pair["key"].(string)
		all[key] = pair[member]
	}
	return all
}

// TestErrorFixtures checks that the failures in testdata/errors match their schemas, except the files that are
// malformed on purpose.
func TestErrorFixtures(t *testing.T) {
	t.Parallel()
	c := loadClosed(t)
	for file, name := range map[string]string{
		"platform.json": "PlatformFailure", "platform_detail.json": "PlatformFailure", "rcode.json": "TokenizeFailure",
		"validation_fields.json": "ApplicationValidation",
	} {
		assert.NoError(t, fits(c.doc.Components.Schemas[name].Value, decode(t, calls.Fixture("errors/"+file))), file)
	}
}
