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

// index matches a list index in the path of a field, such as [0].
var index = regexp.MustCompile(`\[\d+\]`)

// plain matches the names that reasonOf may write although api/openapi.yaml does not have them. These names have no
// digits, so they cannot be card numbers.
var plain = regexp.MustCompile(`^[A-Za-z_]{1,32}$`)

// shapeOf returns the structure of the query, form and body of a request. The structure has no values, and only the
// names that api/openapi.yaml has.
func shapeOf(r Request, names map[string]bool) map[string]any {
	query, form := map[string]any{}, map[string]any{}
	for name := range r.Query {
		query[name] = ""
	}
	for _, part := range r.Parts {
		value, wrong := openapi.Parse("", part.Content())
		if wrong != nil { // the part is not JSON, such as a file
			value = ""
		}
		form[part.Name] = value
	}
	body, _ := openapi.Parse("", r.Body())
	return inspect.Shape(map[string]any{"query": query, "form": form, "body": body}, names)
}

// reasonOf returns the reason that the page of [Inspect] shows for a refusal, or "" if there was no refusal. The reason
// contains no value of the request. If a name in the path of a field might be a value, reasonOf writes ? in place of
// the path.
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

const shownBytes = 16 << 10 // maximum number of bytes of a body that the page shows

// bodyOf returns the beginning of a request's body as text. For a form, the text lists the parts: a file with its name
// and size, any other part with the beginning of its content.
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

// textOf returns the beginning of a body. Bytes that are not UTF-8 become replacement characters.
func textOf(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), shownBytes)]), "\uFFFD")
}

var (
	// inPath matches a parameter in a route, such as {appId}.
	inPath = regexp.MustCompile(`\{[^}]*\}`)
	// fileName matches a file name without characters that are special to curl.
	fileName = regexp.MustCompile(`^\w[\w.-]*$`)
)

// curlOf returns a curl command that sends a request again, with placeholders for hidden values. It returns "" if it
// cannot make a command.
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

// fill adds the body, form and query of a request to a command: the names in the shape, with placeholders for the
// values.
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
