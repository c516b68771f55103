package payvaulttest

import (
	"regexp"
	"slices"
	"strings"

	"example.com/payvault/payvaulttest/internal/inspect"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// index finds the place in a list, which might be a name that looks like one.
var index = regexp.MustCompile(`\[\d+\]`)

// plain is a name that can be shown though the document does not have it: it holds no number.
var plain = regexp.MustCompile(`^[A-Za-z_]{1,32}$`)

// shape is what the page shows of a request: names that the document has, and no value.
func (x *exchange) shape() map[string]any {
	query, form := map[string]any{}, map[string]any{}
	for name := range x.request.Query {
		query[name] = ""
	}
	for _, part := range x.parts {
		value, wrong := openapi.Parse("", part.Content())
		if wrong != nil { // a file
			value = ""
		}
		form[part.Name] = value
	}
	body, _ := openapi.Parse("", x.body)
	return inspect.Shape(map[string]any{"query": query, "form": form, "body": body}, x.server.service.document.names)
}

// reason is what the page shows of a refusal, which repeats no value, and no name that might be one.
func (x *exchange) reason() string {
	if x.why == nil {
		return ""
	}
	fields, keys := map[string][]string{}, inspector{x.server}.Keys()
	hidden := func(name string) bool {
		return !x.server.service.document.names[name] && (!plain.MatchString(name) || inspect.HasKey(name, keys))
	}
	for path, wrong := range x.why.fields {
		path = index.ReplaceAllString(path, "[]")
		if slices.ContainsFunc(strings.Split(strings.ReplaceAll(path, "[]", ""), "."), hidden) {
			path = "?"
		}
		fields[path] = slices.Compact(slices.Sorted(slices.Values(append(fields[path], wrong...))))
	}
	return (&refusal{message: x.why.message, fields: fields}).Error()
}
