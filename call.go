package payvault

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"example.com/payvault/internal/formdata"
	"example.com/payvault/internal/urlpath"
)

// call describes one call of an operation: its request, and the variable for its answer.
type call struct {
	op      OperationInfo // row of the operation in the table of operations
	path    []pathValue   // values for the parameters of the path, in their order
	content makeContent   // nil for an operation that has neither query nor body
	reply   reply
}

// makeContent makes the query or the body of a request. It adds a problem for each value that is wrong.
type makeContent func(c *caller, p *problems) content

// content is the query and the body of a request.
type content struct {
	query url.Values                       // nil if there is none
	body  any                              // written as JSON; nil if there is none
	form  func(text []byte) *formdata.Body // puts the JSON of the body into a form; nil to send the JSON itself
}

// request is implemented by a pointer to the body of an operation.
type request[T any] interface {
	*T
	// prepare fills in values from the settings of the client, and adds a problem for each value that is wrong.
	prepare(c *caller, p *problems)
}

// jsonBody returns a makeContent that sends req as JSON. It prepares and sends a copy of req, because a call must not
// change its arguments.
func jsonBody[T any, R request[T]](req *T) makeContent {
	return func(c *caller, p *problems) content {
		if req == nil {
			p.add("request", "is nil")
			return content{}
		}
		filled := *req
		R(&filled).prepare(c, p)
		return content{body: &filled}
	}
}

// pathValue is the value of one parameter of a path, or the problem with it.
type pathValue struct{ text, problem string }

// inPath returns the values for the parameters of a path. It checks that integers are positive. checkPath checks texts.
func inPath[T ~int64 | ~string](values ...T) []pathValue {
	path := make([]pathValue, len(values))
	for i, v := range values {
		var none T
		path[i].text = fmt.Sprint(v)
		switch {
		case v < none:
			path[i].problem = "is negative"
		case path[i].text == "0" && v == none: // v is the integer 0; the text "0" may be an ID
			path[i].problem = "is required"
		}
	}
	return path
}

// checkPath returns the texts for the parameters of the path. It adds a problem for each value that is wrong.
func (c *call) checkPath(p *problems) []string {
	texts := make([]string, len(c.path))
	for i, name := range urlpath.Params(c.op.Path) {
		v := c.path[i]
		if v.problem == "" {
			if err := urlpath.Check(v.text); err != nil {
				v.problem = err.Error()
			}
		}
		if v.problem != "" {
			p.add(name, v.problem)
		}
		texts[i] = v.text
	}
	return texts
}

// pathSecrets returns the values of the path that no error may repeat. It leaves out words of documented paths, words
// of the name of the operation, and the name of an event (publicParam).
func (c *call) pathSecrets() (ids []string) {
	words := strings.FieldsFunc(string(c.op.Op), func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	for i, name := range urlpath.Params(c.op.Path) {
		if value := c.path[i].text; name != publicParam && !isDocumented(value) && !slices.Contains(words, value) {
			ids = append(ids, value)
		}
	}
	return ids
}

// isDocumented reports whether a segment of a path is also a segment of the path of a typed operation. For example,
// customer is a segment of /platform/vault/customer.
func isDocumented(part string) bool {
	return slices.ContainsFunc(operations, func(op OperationInfo) bool {
		return slices.Contains(strings.Split(op.Path, "/"), part)
	})
}
