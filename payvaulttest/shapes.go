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

// index matches the place in a list. A name of the caller's may look like one.
var index = regexp.MustCompile(`\[\d+\]`)

// plain matches a name that is shown though the document does not have it. It cannot be a card number.
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
// value.
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

const shownBytes = 16 << 10 // of a body, where bodies are shown

// bodyOf returns the body of a request, a form by its parts.
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

// textOf returns the beginning of a body. What is no text has replacement characters.
func textOf(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), shownBytes)]), "\uFFFD")
}

var (
	// inPath finds the parameters of a route.
	inPath = regexp.MustCompile(`\{[^}]*\}`)
	// fileName is a name that curl takes as it stands.
	fileName = regexp.MustCompile(`^\w[\w.-]*$`)
)

// curlOf returns the curl command that sends a request again, as far as the page shows the request. It returns nothing
// if the page shows too little, or if the body cannot stand in a command.
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

// fill adds to a command what the shape of its request has, with fillIn for the values.
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
