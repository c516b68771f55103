package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"example.com/payvault/payvaulttest"
)

// A mutant replaces one part of a request by another.
type mutant struct {
	name      string
	permitted bool // the emulator has to take it if the document does
	change    func(r *http.Request, body []byte) []byte
}

func mutantsOf(t *testing.T, c *contract, whole heldRequest, words []string) []mutant {
	t.Helper()
	m := whole.message(t, c)
	all := slices.Concat(headerMutants(), pathMutants(m), queryMutants(m, words))
	payload, schema := whole.body, (*openapi3.Schema)(nil)
	for _, ref := range requestSchemas(m.Route.Operation) {
		schema = ref.Value
	}
	if _, parts, _ := formParts(m); parts != nil {
		payload, schema = []byte(parts["disputeResponse"]), c.schema(t, "DisputeResponse").Value
		all = append(all, replaced("another name of the part disputeResponse", `name="disputeResponse"`, `name="other"`),
			replaced("another name of the part file", `name="file"`, `name="other"`))
	}
	if len(payload) == 0 {
		return append(all, mutant{"a body", false, func(*http.Request, []byte) []byte { return []byte("{}") }})
	}
	all = append(all, replaced("no JSON", string(payload), `{"a":`), mutant{"no body", false, func(r *http.Request, _ []byte) []byte {
		r.Header.Del("Content-Type")
		return nil
	}})
	value, err := decodeJSON(payload)
	require.NoError(t, err)
	for name, changed := range valueMutants("", value, schema, words) {
		text, err := json.Marshal(changed)
		require.NoError(t, err)
		one := replaced(name, string(payload), string(text))
		one.permitted = strings.HasPrefix(name, "no ") || strings.HasPrefix(name, "longest ") || strings.HasPrefix(name, "shown ")
		all = append(all, one)
	}
	return all
}

// replaced is a mutant that has another text in its body.
func replaced(name, old, text string) mutant {
	return mutant{name, false, func(_ *http.Request, body []byte) []byte {
		return bytes.Replace(body, []byte(old), []byte(text), 1)
	}}
}

func headerMutants() []mutant {
	change := func(name string, set func(http.Header)) mutant {
		return mutant{name, false, func(r *http.Request, body []byte) []byte {
			set(r.Header)
			return body
		}}
	}
	return []mutant{
		change("no Authorization", func(h http.Header) { h.Del("Authorization") }),
		change("a user part", func(h http.Header) { h.Set("Authorization", "Basic dXNlcjptZXJjaGFudC1hcGkta2V5") }),
		change("another Accept", func(h http.Header) { h.Set("Accept", "text/html") }),
		change("another key", func(h http.Header) { h.Set("Authorization", payvaulttest.BasicToken("")) }),
	}
}

func pathMutants(m message) []mutant {
	var all []mutant
	for name, value := range m.PathParams {
		change := func(text string, permitted bool) mutant {
			return mutant{fmt.Sprintf("%s in the path as %s", name, text), permitted, func(r *http.Request, body []byte) []byte {
				r.URL.Path = strings.Replace(r.URL.Path, "/"+value, "/"+text, 1)
				r.URL.RawPath = ""
				return body
			}}
		}
		all = append(all, change("text", false), change("1.5", false))
		for _, shown := range shownValues(m.Route.Operation.Parameters.GetByInAndName(openapi3.ParameterInPath, name).Schema.Value) {
			all = append(all, change(shown, true))
		}
	}
	return all
}

func queryMutants(m message, words []string) []mutant {
	whole := m.Request.URL.Query()
	change := func(name string, permitted bool, set func(url.Values)) mutant {
		return mutant{name, permitted, func(r *http.Request, body []byte) []byte {
			query := r.URL.Query()
			set(query)
			r.URL.RawQuery = query.Encode()
			return body
		}}
	}
	plain := mutant{"commas that are not encoded", false, func(r *http.Request, body []byte) []byte {
		r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "%2C", ",")
		return body
	}}
	all := []mutant{change("an unknown parameter", false, func(q url.Values) { q.Set("unknown", "1") })}
	for name := range whole {
		all = append(all, change("no parameter "+name, true, func(q url.Values) { q.Del(name) }))
		schema := m.Route.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, name).Schema.Value
		if schema.Type.Is("string") {
			for _, shown := range shownValues(schema) {
				all = append(all, change(fmt.Sprintf("parameter %s as %s, which is shown", name, shown), true, func(q url.Values) { q.Set(name, shown) }))
			}
		}
		texts := []string{"", "text", "1.5", "-1", "a,b", "tran_date,BETWEEN_DATES,2026-01-01"}
		if len(schema.Enum) > 0 {
			texts = append(texts, words...)
		}
		for _, text := range texts {
			all = append(all, change(fmt.Sprintf("parameter %s as %q", name, text), false, func(q url.Values) { q.Set(name, text) }))
		}
		all = append(all, change("parameter "+name+" twice", false, func(q url.Values) { q.Add(name, q.Get(name)) }))
	}
	if whole.Has("filter") {
		all = append(all, plain)
	}
	return all
}

// valueMutants gives copies of a JSON value with one thing changed, by a name that says what.
func valueMutants(at string, value any, schema *openapi3.Schema, words []string) map[string]any {
	all := map[string]any{}
	for _, other := range []any{nil, true, 7.0, 1.5, "?", "", []any{}, map[string]any{}} {
		all[fmt.Sprintf("%s as %v", at, other)] = other
	}
	if schema != nil && len(schema.Enum) > 0 {
		for _, word := range words {
			all[fmt.Sprintf("%s as %q", at, word)] = word
		}
	}
	for _, shown := range shownValues(schema) {
		all[fmt.Sprintf("shown %s as %q", at, shown)] = shown
	}
	if schema != nil && schema.MaxLength != nil {
		longest := strings.Repeat("é", int(*schema.MaxLength)) //nolint:gosec // small
		all["longest "+at], all["too long "+at] = longest, longest+"é"
	}
	switch value := value.(type) {
	case map[string]any:
		all["unknown member in "+at] = withMember(value, "unknown", 1.0)
		for name, member := range value {
			rest := withoutMember(value, name)
			all["no "+at+"."+name] = rest
			if schema != nil && len(schema.AllOf) > 0 { // it has conditions, which look at two members at once
				for other := range rest {
					all["no "+at+"."+name+", no "+at+"."+other] = withoutMember(rest, other)
				}
			}
			for what, changed := range valueMutants(at+"."+name, member, propertyOf(schema, name), words) {
				all[what] = withMember(value, name, changed)
			}
		}
	case []any:
		if schema != nil && schema.MaxItems != nil {
			all["too many "+at] = slices.Repeat(value[:1], int(*schema.MaxItems)+1) //nolint:gosec // small
			all["longest "+at] = slices.Repeat(value[:1], int(*schema.MaxItems))    //nolint:gosec // small
		}
		for i, element := range value {
			if i > 0 && fmt.Sprint(element) == fmt.Sprint(value[0]) {
				continue // another of the same
			}
			for what, changed := range valueMutants(fmt.Sprintf("%s[%s]", at, keyOf(element, i)), element, itemsOf(schema), words) {
				all[what] = []any{changed} // the others would only take time
			}
		}
	}
	return all
}

func withMember(record map[string]any, name string, member any) map[string]any {
	changed := maps.Clone(record)
	changed[name] = member
	return changed
}

func withoutMember(record map[string]any, name string) map[string]any {
	changed := maps.Clone(record)
	delete(changed, name)
	return changed
}

// keyOf names an element: by its key, if it is a pair.
func keyOf(element any, i int) string {
	pair, _ := element.(map[string]any)
	if key, ok := pair["key"].(string); ok {
		return key
	}
	return strconv.Itoa(i)
}

func propertyOf(schema *openapi3.Schema, name string) *openapi3.Schema {
	if schema == nil || schema.Properties[name] == nil {
		return nil
	}
	return schema.Properties[name].Value
}

func itemsOf(schema *openapi3.Schema) *openapi3.Schema {
	if schema == nil || schema.Items == nil {
		return nil
	}
	return schema.Items.Value
}
