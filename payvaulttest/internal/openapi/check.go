package openapi

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Problems has messages about the fields of a request. A key is the path of a field, such as data[0].card_number, or
// body for the whole body.
type Problems map[string][]string

func (p Problems) add(field, message string) { p[field] = append(p[field], message) }

// Check checks a value against the schema and returns the problems. path is the path of the value in the request.
// A number in value must be a json.Number or an int64.
func (s *Schema) Check(path string, value any) Problems {
	p := Problems{}
	if failure, ok := errors.AsType[*jsonschema.ValidationError](s.compiled.Validate(value)); ok {
		p.addAll(path, failure)
	}
	return p
}

// addAll adds a problem for each innermost cause of a failure.
func (p Problems) addAll(path string, failure *jsonschema.ValidationError) {
	for _, cause := range failure.Causes {
		p.addAll(path, cause)
	}
	if len(failure.Causes) > 0 {
		return
	}
	place := WirePath(path, failure.InstanceLocation...)
	switch k := failure.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			p.add(WirePath(place, name), "is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			p.add(WirePath(place, name), "is not a known field")
		}
	default:
		if place == "" {
			place = "body"
		}
		p.add(place, describe(failure.ErrorKind))
	}
}

// describe returns a message with the rule that a value violates. The message never contains the value.
func describe(failure jsonschema.ErrorKind) string {
	switch k := failure.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be of type %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return fmt.Sprintf("must be one of %v", k.Want)
	case *kind.Pattern:
		return "must match " + k.Want
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.MaxItems:
		return fmt.Sprintf("takes at most %d elements", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("takes at most %d characters", k.Want)
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	default:
		return "does not fit " + strings.Join(failure.KeywordPath(), ".") + " of the document"
	}
}

// WirePath appends names and list indexes to a path, and returns a path such as billing_cards[1].exp_date.
func WirePath(path string, tokens ...string) string {
	for _, token := range tokens {
		switch {
		case isDigits(token):
			path += "[" + token + "]"
		case path == "":
			path = token
		default:
			path += "." + token
		}
	}
	return path
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// CheckParameters checks the parameters of the query and of the path against the document. inPath returns the value of
// a path parameter by its name. A query may have only parameters of the operation. A parameter may occur more than once
// only if it is an array.
func (o *Operation) CheckParameters(inPath func(name string) string, query url.Values) Problems {
	given, values := maps.Clone(query), map[string]any{}
	for _, name := range o.inPath {
		given[name] = append(given[name], inPath(name))
	}
	for name, texts := range given {
		if values[name] = o.value(name, texts[0]); o.kinds[name] == "array" || len(texts) > 1 {
			list := []any{}
			for _, text := range texts {
				list = append(list, text)
			}
			values[name] = list
		}
	}
	return o.object.Check("", values)
}

// value returns an int64 if the parameter is an integer and the text is one, too. Otherwise value returns the text.
func (o *Operation) value(name, text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && o.kinds[name] == "integer" {
		return n
	}
	return text
}
