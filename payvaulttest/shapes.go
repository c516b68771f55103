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

// shapeOf returns what the page shows of a request: names that the document has, and no value.
func shapeOf(r Request, names map[string]bool) map[string]any {
	query, form := map[string]any{}, map[string]any{}
	for name := range r.Query {
		query[name] = ""
	}
	for _, part := range r.Parts {
		value, wrong := openapi.Parse("", part.Content())
		if wrong != nil { // a file
			value = ""
		}
		form[part.Name] = value
	}
	body, _ := openapi.Parse("", r.Body())
	return inspect.Shape(map[string]any{"query": query, "form": form, "body": body}, names)
}

// reasonOf returns what the page shows of a refusal, if there is one. It repeats no value, and no name that might be a
// value or holds one of the keys.
func reasonOf(why *refusal, names map[string]bool, keys []string) string {
	if why == nil {
		return ""
	}
	fields := map[string][]string{}
	hidden := func(name string) bool {
		return !names[name] && (!plain.MatchString(name) || inspect.HasKey(name, keys))
	}
	for path, wrong := range why.fields {
		path = index.ReplaceAllString(path, "[]")
		if slices.ContainsFunc(strings.Split(strings.ReplaceAll(path, "[]", ""), "."), hidden) {
			path = "?"
		}
		fields[path] = slices.Compact(slices.Sorted(slices.Values(append(fields[path], wrong...))))
	}
	return (&refusal{message: why.message, fields: fields}).Error()
}
