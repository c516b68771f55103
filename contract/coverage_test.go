package contract

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// The directions of a message.
const (
	sent = "sent"
	read = "read"
)

// A place is a parameter of an operation, or a property of a schema in one direction: schemas that requests and answers
// share have to be seen in both.
type place struct{ direction, owner, name string }

func (p place) String() string { return p.direction + ": " + p.owner + "." + p.name }

// neverSeen are places that no traffic between SDK and emulator can reach with a value, with the reason.
func neverSeen() map[place]string {
	return map[place]string{
		{read, "Application", "dba_name"}:    "the emulator has nothing to put there",
		{read, "Payee", "payee_phone"}:       "the emulator has nothing to put there: it is in no request",
		{read, "Application", "merchant_id"}: "0 in the answer of create",
		{read, "PayeeDeleted", "data"}:       "an empty object",

		{read, "ApplicationFieldOption", "disabled"}: "the emulator disables none",
	}
}

// A coverage tells what of the document was on the wire.
type coverage struct {
	contract *contract
	names    map[*openapi3.Schema]string

	mu   sync.Mutex
	want map[place]bool
	seen map[place]bool
}

func newCoverage(c *contract) *coverage {
	v := &coverage{contract: c, names: schemaNames(c), want: map[place]bool{}, seen: map[place]bool{}}
	for name, operation := range c.operations() {
		for _, parameter := range operation.Parameters {
			v.want[place{sent, name, parameter.Value.Name}] = true
		}
		for _, ref := range requestSchemas(operation) {
			v.expect(sent, ref, nil, map[*openapi3.Schema]bool{})
		}
		for _, response := range operation.Responses.Map() {
			v.expect(read, response.Value.Content[jsonType].Schema, nil, map[*openapi3.Schema]bool{})
		}
	}
	return v
}

func requestSchemas(operation *openapi3.Operation) []*openapi3.SchemaRef {
	var all []*openapi3.SchemaRef
	if operation.RequestBody != nil {
		for _, media := range operation.RequestBody.Value.Content {
			all = append(all, media.Schema)
		}
	}
	return all
}

// schemaNames names every schema of the document: by its own name, or by the path from the nearest one that has one.
func schemaNames(c *contract) map[*openapi3.Schema]string {
	names := map[*openapi3.Schema]string{}
	for name, ref := range c.doc.Components.Schemas {
		names[ref.Value] = name
	}
	for _, name := range slices.Sorted(maps.Keys(c.doc.Components.Schemas)) {
		nameInner(names, c.doc.Components.Schemas[name].Value)
	}
	return names
}

func nameInner(names map[*openapi3.Schema]string, schema *openapi3.Schema) {
	name := func(ref *openapi3.SchemaRef, suffix string) {
		if _, named := names[ref.Value]; !named {
			names[ref.Value] = names[schema] + suffix
			nameInner(names, ref.Value)
		}
	}
	for property, ref := range schema.Properties {
		name(ref, "."+property)
	}
	if schema.Items != nil {
		name(schema.Items, "[]")
	}
	if more := schema.AdditionalProperties.Schema; more != nil {
		name(more, "{}")
	}
	for _, ref := range branches(schema) {
		name(ref, " ("+ref.Value.Title+")")
	}
}

func branches(schema *openapi3.Schema) openapi3.SchemaRefs {
	return slices.Concat(schema.AllOf, schema.AnyOf, schema.OneOf)
}

// expect wants every property of a schema and of those in it. Branches of a closed record hold constraints on its
// properties, and only these, which are given as declared.
func (v *coverage) expect(
	direction string, ref *openapi3.SchemaRef, declared openapi3.Schemas, visited map[*openapi3.Schema]bool,
) {
	schema := ref.Value
	if visited[schema] {
		return
	}
	visited[schema] = true
	if strings.HasSuffix(v.names[schema], "ApplicationField") {
		v.expect(direction, v.contract.doc.Components.Schemas["ApplicationData"], nil, visited)
	}
	for name, property := range schema.Properties {
		if _, ok := declared[name]; declared != nil && !ok {
			continue
		}
		v.want[place{direction, v.names[schema], name}] = true
		v.expect(direction, property, nil, visited)
		if text := v.contract.jsonText(property); text != nil {
			v.expect(direction, text, nil, visited)
		}
	}
	if schema.Items != nil {
		v.expect(direction, schema.Items, nil, visited)
	}
	if len(schema.Properties) > 0 {
		declared = schema.Properties
	}
	for _, branch := range branches(schema) {
		v.expect(direction, branch, declared, visited)
	}
}

// mark notes what is in a request and its answer.
func (v *coverage) mark(m message, answer []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	operation := m.Route.Operation
	for name := range m.PathParams {
		v.seen[place{sent, operation.OperationID, name}] = true
	}
	for name := range m.Request.URL.Query() {
		v.seen[place{sent, operation.OperationID, name}] = true
	}
	for _, ref := range requestSchemas(operation) {
		v.markValue(sent, ref, bodyOf(m))
	}
	if value, err := decodeJSON(answer); err == nil {
		if ref := answerSchema(operation, value); ref != nil {
			v.markValue(read, ref, value)
		}
	}
}

// bodyOf is the body of a request as a JSON value; a form is an object of texts.
func bodyOf(m message) any {
	if _, parts, _ := formParts(m); parts != nil {
		form := map[string]any{}
		for name, text := range parts {
			form[name] = text
		}
		return form
	}
	value, _ := decodeJSON(m.body)
	return value
}

func (v *coverage) markValue(direction string, ref *openapi3.SchemaRef, value any) {
	schema := ref.Value
	switch value := value.(type) {
	case map[string]any:
		if key, ok := value["key"].(string); ok && strings.HasSuffix(v.names[schema], "ApplicationField") {
			v.markValue(direction, v.contract.doc.Components.Schemas["ApplicationData"], map[string]any{key: value["value"]})
		}
		for name, member := range value {
			if property := schema.Properties[name]; property != nil {
				if !isZero(member) || len(property.Value.Enum) > 0 {
					v.seen[place{direction, v.names[schema], name}] = true
				}
				v.markValue(direction, property, member)
			}
		}
	case []any:
		for _, element := range value {
			if schema.Items != nil {
				v.markValue(direction, schema.Items, element)
			}
		}
	case string:
		var inner any
		if text := v.contract.jsonText(ref); text != nil && json.Unmarshal([]byte(value), &inner) == nil {
			v.markValue(direction, text, inner)
		}
	}
	for _, branch := range branches(schema) {
		if branch.Value.VisitJSON(value) == nil {
			v.markValue(direction, branch, value)
		}
	}
}

// isZero reports whether a value says nothing: an identifier that is always 0 is as good as none. Fixed values may be
// zero.
func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil || value == "" || value == false || value == float64(0)
}

// assertComplete fails for parts of the document that were never on the wire, and for exceptions that are no longer
// needed.
func (v *coverage) assertComplete(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	exceptions := neverSeen()
	var missing, stale []string
	onWire := 0
	for p := range v.want {
		if v.seen[p] {
			onWire++
		}
		switch _, excepted := exceptions[p]; {
		case !v.seen[p] && !excepted:
			missing = append(missing, p.String())
		case v.seen[p] && excepted:
			stale = append(stale, p.String())
		}
	}
	for p := range exceptions {
		if !v.want[p] {
			stale = append(stale, p.String())
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(exceptions),
		func(a, b place) int { return strings.Compare(a.String(), b.String()) }) {
		t.Logf("never on the wire: %s: %s", p, exceptions[p])
	}
	t.Logf("%d of %d parameters and properties were on the wire", onWire, len(v.want))
	failList(t, "in the document, but never on the wire", missing)
	failList(t, "seen or gone, so no longer to be listed in neverSeen", stale)
}

// failList fails the test for every name in a list.
func failList(t *testing.T, what string, names []string) {
	t.Helper()
	if len(names) > 0 {
		slices.Sort(names)
		t.Errorf("%s:\n    %s", what, strings.Join(names, "\n    "))
	}
}

// baseName is the name of a schema in a reference to it.
func baseName(ref string) string { return path.Base(ref) }
