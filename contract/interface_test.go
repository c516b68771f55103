package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// TestInterface holds the document against what the service says of its interface, written down once more in
// testdata/interface.txt: without it nothing would see that the document alone drops a limit, or asks for less than it
// should.
func TestInterface(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/interface.txt")
	require.NoError(t, err)
	var stated []string
	var owners []string
	for line := range strings.Lines(string(text)) {
		line, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !indented:
			owners = strings.Split(line, " & ")
		default:
			names, rule, found := strings.Cut(line, ": ")
			require.True(t, found, "no rule in: %s", line)
			for _, owner := range owners {
				for name := range strings.FieldsSeq(names) {
					stated = append(stated, fact(owner, name, strings.TrimSpace(rule)))
				}
			}
		}
	}
	facts := documentFacts(t, loadContract(t))
	failList(t, "in testdata/interface.txt, not in "+documentFile, without(stated, facts))
	failList(t, "in "+documentFile+", not in testdata/interface.txt", without(facts, stated))
}

// A fact is what is said about a name in an operation or a record, whose own name is "is".
func fact(owner, name, rule string) string { return owner + " " + name + ": " + rule }

// documentFacts says everything that the document says about the wire, but for the branches of application data, which
// TestApplicationData compares.
func documentFacts(t *testing.T, c *contract) []string {
	t.Helper()
	var facts []string
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			facts = append(facts, fact(operation.OperationID, method, path))
			facts = append(facts, operationFacts(t, c, operation)...)
		}
	}
	for name, ref := range c.doc.Components.SecuritySchemes {
		facts = append(facts, fact(name, "is", ref.Value.Type+" "+ref.Value.Scheme))
	}
	for schema, name := range schemaNames(c) {
		if isRecord(schema) || c.doc.Components.Schemas[name] != nil {
			facts = append(facts, schemaFacts(t, name, schema)...)
		}
	}
	return facts
}

func operationFacts(t *testing.T, c *contract, operation *openapi3.Operation) []string {
	t.Helper()
	var facts []string
	add := func(name, format string, args ...any) {
		facts = append(facts, fact(operation.OperationID, name, fmt.Sprintf(format, args...)))
	}
	security := c.doc.Security
	if operation.Security != nil {
		security = *operation.Security
	}
	for _, requirement := range security {
		add("security", "%s", strings.Join(slices.Sorted(maps.Keys(requirement)), " and "))
	}
	for _, ref := range operation.Parameters {
		p := ref.Value
		style := ""
		if p.Explode != nil && *p.Explode {
			style = ", repeated"
		}
		add(p.Name, "%s, %s%s%s", p.In, describe(t, p.Schema), style, optional(p.Required))
	}
	if body := operation.RequestBody; body != nil {
		for media, content := range body.Value.Content {
			add("body", "%s %s%s", media, describe(t, content.Schema), optional(body.Value.Required))
			for name, encoding := range content.Encoding {
				add(name, "part, %s", encoding.ContentType)
			}
		}
	}
	for status, response := range operation.Responses.Map() {
		for media, content := range response.Value.Content {
			add(status, "%s %s", media, describe(t, content.Schema))
		}
	}
	return facts
}

func optional(required bool) string {
	if required {
		return ", required"
	}
	return ""
}

// isRecord reports whether a schema has facts of its own; others are described where they are used.
func isRecord(schema *openapi3.Schema) bool {
	closed := schema.AdditionalProperties.Has
	return len(schema.Properties) > 0 || closed != nil && !*closed || schema.Title != ""
}

// schemaFacts are the properties of a record, and what else it says.
func schemaFacts(t *testing.T, owner string, schema *openapi3.Schema) []string {
	t.Helper()
	facts := []string{fact(owner, "is", describeSchema(t, schema))}
	types, _ := schema.Extensions["x-types"].(map[string]any)
	for name, property := range schema.Properties {
		rule := describe(t, property)
		if types[name] != nil {
			rule += fmt.Sprintf(", type %s", types[name])
		}
		facts = append(facts, fact(owner, name, rule+optional(slices.Contains(schema.Required, name))))
	}
	for _, name := range schema.Required {
		if schema.Properties[name] == nil { // a condition
			facts = append(facts, fact(owner, name, "required"))
		}
	}
	return facts
}

func describe(t *testing.T, ref *openapi3.SchemaRef) string {
	t.Helper()
	if ref.Ref != "" {
		return baseName(ref.Ref)
	}
	return describeSchema(t, ref.Value)
}

// describeSchema returns the kind of a schema and every rule that it has.
func describeSchema(t *testing.T, schema *openapi3.Schema) string {
	t.Helper()
	kind := schemaKind(schema)
	if schema.Items != nil {
		kind += " of " + describe(t, schema.Items)
	}
	if more := schema.AdditionalProperties.Schema; more != nil {
		kind += " of " + describe(t, more)
	}
	if closed := schema.AdditionalProperties.Has; closed != nil && !*closed {
		kind = "closed " + kind
	}
	parts := []string{kind}
	for i, refs := range []openapi3.SchemaRefs{schema.AllOf, schema.AnyOf, schema.OneOf} {
		if len(refs) > 0 {
			parts = append(parts, []string{"all of ", "any of ", "one of "}[i]+describeAll(t, refs))
		}
	}
	return strings.TrimPrefix(strings.Join(append(parts, rules(t, schema)...), ", "), anything+", ")
}

func describeAll(t *testing.T, refs openapi3.SchemaRefs) string {
	t.Helper()
	var names []string
	for _, ref := range refs {
		if title := ref.Value.Title; title != "" {
			names = append(names, "("+title+")")
		} else {
			names = append(names, describe(t, ref))
		}
	}
	return strings.Join(names, " / ")
}

// rules are the keywords of a schema that neither describe it nor stand elsewhere, whatever they are.
func rules(t *testing.T, schema *openapi3.Schema) []string {
	t.Helper()
	text, err := json.Marshal(schema)
	require.NoError(t, err)
	var keywords map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &keywords))
	for _, elsewhere := range []string{
		"type", "title", "description", "example", "properties", "required", "additionalProperties", "items",
		"allOf", "anyOf", "oneOf", "x-go-type", "x-types",
	} {
		delete(keywords, elsewhere)
	}
	var all []string
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		all = append(all, keyword+" "+string(keywords[keyword]))
	}
	return all
}
