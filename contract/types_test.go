package contract

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTypes checks that the Go types of the SDK have the names and kinds of the document, and no others.
func TestTypes(t *testing.T) {
	t.Parallel()
	c := loadContract(t)
	v := newComparison(t, c, sdkSide(sdkSource(t), c))
	v.walk()
	failList(t, "the SDK and the document differ", v.found)
	failList(t, "types of the SDK with wire names that stand for no schema: add them to sdkSide", v.unpairedTypes())
	failList(t, "schemas that no type of the SDK stands for", v.unpairedSchemas())
	failList(t, "exceptions that are none any more", v.stale())
}

// A comparison walks through the types of a side and the schemas of the document at once.
type comparison struct {
	side    side
	schemas map[string]*openapi3.Schema
	names   map[*openapi3.Schema]string
	met     map[string][]*openapi3.Schema // by the name of the type
	ignored map[string][]string           // by the name of the type
	opened  map[string]bool
	found   []string
}

func newComparison(t *testing.T, c *contract, s side) *comparison {
	t.Helper()
	v := &comparison{
		side: s, names: schemaNames(c), schemas: map[string]*openapi3.Schema{},
		met: map[string][]*openapi3.Schema{}, ignored: map[string][]string{}, opened: map[string]bool{},
	}
	for schema, name := range v.names {
		v.schemas[name] = schema
	}
	for _, r := range s.roots {
		require.Contains(t, s.source.structs, r.goType, "the type is not there any more, or has no wire names")
		for _, schema := range r.schemas {
			require.Contains(t, v.schemas, schema, "the schema is not there any more")
		}
	}
	return v
}

func (v *comparison) walk() {
	for _, r := range v.side.roots {
		v.ignored[r.goType] = r.ignored
		for _, schema := range r.schemas {
			v.visitStruct(r.goType, v.side.source.structs[r.goType], v.schemas[schema])
		}
	}
	for name, schemas := range v.met {
		if v.side.unions[name] != "" {
			v.compareNames(name, v.side.source.structs[name], schemas...)
		}
	}
}

// visit compares the kind of a value, and what is in it.
func (v *comparison) visit(at string, goType types.Type, schema *openapi3.Schema) {
	for {
		pointer, ok := goType.(*types.Pointer)
		if !ok {
			break
		}
		goType = pointer.Elem()
	}
	if _, ok := goType.(*types.TypeParam); ok || schemaKind(schema) == anything {
		return
	}
	switch kind := kindOf(goType); {
	case kind != schemaKind(schema) && v.side.open[at] != "":
		v.opened[at] = true
		return
	case kind != schemaKind(schema):
		v.found = append(v.found, fmt.Sprintf("%s is %s, in the document %s (%s)", at, kind, schemaKind(schema),
			v.names[schema]))
		return
	}
	if _, ok := ownKinds()[types.TypeString(goType, nil)]; ok {
		return
	}
	switch u := goType.Underlying().(type) {
	case *types.Slice:
		if schema.Items != nil {
			v.visit(at+"[]", u.Elem(), schema.Items.Value)
		}
	case *types.Struct:
		if named, ok := goType.(*types.Named); ok && isTagged(u) {
			v.visitStruct(named.Obj().Name(), u, schema)
		} else if !ok {
			v.visitStruct(at, u, schema)
		}
	}
}

// visitStruct compares a struct with a record once. Names of unions are compared in the end.
func (v *comparison) visitStruct(name string, s *types.Struct, schema *openapi3.Schema) {
	if slices.Contains(v.met[name], schema) {
		return
	}
	v.met[name] = append(v.met[name], schema)
	for _, f := range wireFields(s) {
		if property := schema.Properties[f.name]; property != nil {
			v.visit(name+"."+f.name, f.goType, property.Value)
		}
	}
	if v.side.unions[name] == "" {
		v.compareNames(name, s, schema)
	}
}

func (v *comparison) compareNames(name string, s *types.Struct, schemas ...*openapi3.Schema) {
	documented, titles := map[string]bool{}, []string{}
	for _, schema := range schemas {
		titles = append(titles, v.names[schema])
		for property := range schema.Properties {
			documented[property] = true
		}
	}
	for _, ignored := range v.ignored[name] {
		delete(documented, ignored)
	}
	title, fields := strings.Join(titles, ", "), namesOf(s)
	for _, missing := range without(slices.Collect(maps.Keys(documented)), fields) {
		v.found = append(v.found, fmt.Sprintf("%s is in the document (%s), not in %s", missing, title, name))
	}
	for _, extra := range without(fields, slices.Collect(maps.Keys(documented))) {
		v.found = append(v.found, fmt.Sprintf("%s.%s is not in the document (%s)", name, extra, title))
	}
}

// schemaKind is the type of a schema.
func schemaKind(schema *openapi3.Schema) string {
	if kinds := schema.Type.Slice(); len(kinds) == 1 {
		return kinds[0]
	}
	return anything
}

func (v *comparison) unpairedTypes() []string {
	var names []string
	inner := v.embedded()
	for name := range v.side.source.structs {
		if v.met[name] == nil && v.side.apart[name] == "" && !inner[name] {
			names = append(names, name)
		}
	}
	return names
}

// embedded are the types whose fields count as those of another.
func (v *comparison) embedded() map[string]bool {
	names := map[string]bool{}
	for name := range v.met {
		s := v.side.source.structs[name]
		for i := 0; s != nil && i < s.NumFields(); i++ {
			if s.Field(i).Embedded() {
				names[s.Field(i).Name()] = true
			}
		}
	}
	return names
}

func (v *comparison) unpairedSchemas() []string {
	seen := map[*openapi3.Schema]bool{}
	for _, schemas := range v.met {
		for _, schema := range schemas {
			seen[schema] = true
		}
	}
	var names []string
	for name, schema := range v.schemas {
		record := len(schema.Properties) > 0 && !strings.Contains(name, "(")
		if record && !isEnvelope(schema) && !seen[schema] && v.side.without[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// isEnvelope reports whether a schema is a code, a message, and perhaps data: the envelopes of the SDK read it, see
// TestTraffic.
func isEnvelope(schema *openapi3.Schema) bool {
	names := slices.Sorted(maps.Keys(schema.Properties))
	return slices.Equal(without(names, []string{"data"}), []string{"code", "message"})
}

// stale lists the exceptions that nothing needs.
func (v *comparison) stale() []string {
	var names []string
	for name := range v.side.open {
		if !v.opened[name] {
			names = append(names, "open "+name)
		}
	}
	for name := range v.side.unions {
		if len(v.met[name]) < 2 {
			names = append(names, "union "+name)
		}
	}
	for name := range v.side.apart {
		if v.side.source.structs[name] == nil {
			names = append(names, "apart "+name)
		}
	}
	for name := range v.side.without {
		if v.schemas[name] == nil {
			names = append(names, "without "+name)
		}
	}
	return names
}

// TestFieldNames wants fields of the SDK to be named after their wire names, at least after their end (FirstName for
// customer_first_name): sets of names do not show that two fields have each other's.
func TestFieldNames(t *testing.T) {
	t.Parallel()
	others := map[string]string{ // by decision
		"Page.Items": "data", "Validation.Problems": "data", "tokenizeReply.Result": "rcode", "listQuery.Filters": "filter",
		"DisputeRespondRequest.EvidenceType":   "cbr_ce_type",
		"DisputeRespondRequest.AllocationType": "cbr_id_type", "DisputeRespondRequest.Reason": "reason_desc",
	}
	for name, s := range sdkSource(t).structs {
		for _, f := range wireFields(s) {
			squeezed := strings.ToLower(strings.ReplaceAll(f.name, "_", ""))
			if others[name+"."+f.goName] != f.name {
				assert.True(t, strings.HasSuffix(squeezed, strings.ToLower(f.goName)), "%s.%s is %s on the wire", name,
					f.goName, f.name)
			}
		}
	}
}

func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// assertSame says what one side has and the other has not.
func assertSame(t *testing.T, documented, sdk []string) {
	t.Helper()
	failList(t, "in the document, not in the SDK", without(documented, sdk))
	failList(t, "in the SDK, not in the document", without(sdk, documented))
}
