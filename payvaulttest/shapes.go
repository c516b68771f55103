package payvaulttest

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/payvault/payvaulttest/internal/inspect"
	"example.com/payvault/payvaulttest/internal/openapi"
)

// index matches the index in a list. A name that the caller chose may look like an index.
var index = regexp.MustCompile(`\[\d+\]`)

// plain matches an unknown name that may be shown, because it cannot be a card number.
var plain = regexp.MustCompile(`^[A-Za-z_]{1,32}$`)

// shapeOf returns the shape of a request for the page: names of the document, and no value.
func shapeOf(r Request, names map[string]bool) map[string]any {
	query, form := map[string]any{}, map[string]any{}
	for name := range r.Query {
		query[name] = ""
	}
	for _, part := range r.Parts {
		value, wrong := openapi.Parse("", part.Content())
		if wrong != nil { // the part is a file
			value = ""
		}
		form[part.Name] = value
	}
	body, _ := openapi.Parse("", r.Body())
	return inspect.Shape(map[string]any{"query": query, "form": form, "body": body}, names)
}

// reasonOf returns the reason of a refusal for the page, or "". It repeats no value, and no name that might be a value.
func reasonOf(why *refusal, names map[string]bool) string {
	if why == nil {
		return ""
	}
	fields := map[string][]string{}
	hidden := func(name string) bool {
		return !names[name] && !plain.MatchString(name)
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

const shownBytes = 16 << 10 // bytes of a body that the page shows

// bodyOf returns the body of a request as text. The body of a form is made from its parts.
func bodyOf(r Request) string {
	if len(r.Parts) == 0 {
		return textOf(r.Body())
	}
	var parts []string
	for _, part := range r.Parts {
		text := textOf(part.Content())
		if part.FileName != "" {
			text = fmt.Sprintf("%s, %d bytes", part.FileName, part.Size)
		}
		parts = append(parts, part.Name+": "+text)
	}
	return strings.Join(parts, "\n")
}

// textOf returns the beginning of a body. Bytes that are not text become replacement characters.
func textOf(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), shownBytes)]), "\uFFFD")
}

var (
	// inPath matches the parameters of a route.
	inPath = regexp.MustCompile(`\{[^}]*\}`)
	// fileName matches a file name that curl does not interpret.
	fileName = regexp.MustCompile(`^\w[\w.-]*$`)
)

// curlOf returns the curl command that sends a request again, as far as the page shows the request. It returns "" if
// the page shows too little, or if a command cannot contain the body.
func curlOf(shown inspect.Request, r Request, server, basePath, key string) string {
	c := inspect.Command{Method: r.Method, Key: cmp.Or(key, inspect.FillIn)}
	c.Texts, c.Files = map[string]string{}, map[string]string{}
	switch {
	case shown.Path != "":
		c.URL = server + shown.Path
		if len(r.Parts) == 0 {
			c.JSON = string(r.Body())
		}
		for _, part := range r.Parts {
			if part.FileName == "" {
				c.Texts[part.Name] = string(part.Content())
			} else {
				c.Files[part.Name] = cmp.Or(fileName.FindString(part.FileName), inspect.FillIn)
			}
		}
	case shown.Operation != "":
		c.URL = server + basePath + inPath.ReplaceAllString(shown.Route, inspect.FillIn)
		fill(&c, shown.Shape, r)
	default:
		return ""
	}
	if c.JSON != "" && !jsontext.Value(c.JSON).IsValid() {
		return ""
	}
	return c.String()
}

// fill adds the body, the form and the query to a command. It takes their names from the shape of the request r, and
// writes fillIn in place of the values.
func fill(c *inspect.Command, shape any, r Request) {
	filled, _ := inspect.Fill(shape).(map[string]any)
	if body := filled["body"]; body != nil {
		c.JSON = string(encode(body))
	}
	form, _ := filled["form"].(map[string]any)
	for _, part := range r.Parts {
		value, known := form[part.Name]
		switch {
		case !known:
		case part.FileName != "":
			c.Files[part.Name] = inspect.FillIn
		case value == inspect.FillIn:
			c.Texts[part.Name] = inspect.FillIn
		default:
			c.Texts[part.Name] = string(encode(value))
		}
	}
	query := url.Values{}
	fields, _ := filled["query"].(map[string]any)
	for name := range fields {
		query.Set(name, inspect.FillIn)
	}
	if len(query) > 0 {
		c.URL += "?" + query.Encode()
	}
}
